package study

import "slices"

// Share is what one table, and the figures of the same repetitions, get of the time in which everything is computed.
type Share struct {
	IDs   []string // the studies, of which the first computes the repetitions
	Hours float64
}

// Shares are the shares of all studies on two cores, a third more than what their repetitions are known to take. A
// study's first repetition is made whatever it takes; what is left of its hours goes to further ones, up to its own
// number: most for those whose claims rest on differences within the standard errors.
func Shares() []Share {
	return []Share{
		{IDs: []string{"pmcnet.table2", "pmcnet.fig1"}, Hours: .2},
		{IDs: []string{"pmcnet.table3", "pmcnet.fig2", "pmcnet.fig3"}, Hours: .1},
		{IDs: []string{"pmcnet.table6", "pmcnet.fig4", "pmcnet.fig5"}, Hours: .1},
		{IDs: []string{"pmcnet.table7", "pmcnet.fig6", "pmcnet.fig7", "pmcnet.fig8"}, Hours: .3},
		{IDs: []string{"pmcnet.table10", "pmcnet.fig10", "pmcnet.fig11"}, Hours: .2},
		{IDs: []string{"pmcnet.table11"}, Hours: .1},
		{IDs: []string{"pmcnet.floored"}, Hours: .2},
		{IDs: []string{"pmcnet.evidence"}, Hours: 1},
		{IDs: []string{"ohsmc.table1", "ohsmc.fig3", "ohsmc.fig6"}, Hours: 1},
		{IDs: []string{"ohsmc.table2", "ohsmc.fig4", "ohsmc.fig7"}, Hours: .8},
		{IDs: []string{"ohsmc.table8", "ohsmc.table3"}, Hours: 6},
		{IDs: []string{"ohsmc.fig1", "ohsmc.fig2", "ohsmc.fig5"}, Hours: .2},
		{IDs: []string{"gohsmc.table1", "gohsmc.table6", "gohsmc.fig1"}, Hours: 1},
		{IDs: []string{"fbnn.tableA1", "fbnn.fig2", "fbnn.fig4", "fbnn.fig5", "fbnn.fig6"}, Hours: 1},
		{IDs: []string{"fbnn.tableA2", "fbnn.fig3", "fbnn.fig7"}, Hours: .6},
		{IDs: []string{"fbnn.fig1", "fbnn.theorems"}, Hours: .1},
		{IDs: []string{"pbnn.fig1", "pbnn.fig2", "pbnn.fig3", "pbnn.fig4"}, Hours: .5},
		{IDs: []string{"practice.tables", "practice.splits"}, Hours: 1},
		{IDs: []string{"practice.airfoil"}, Hours: .8},
		{IDs: []string{"practice.bike"}, Hours: .6},
		{IDs: []string{"practice.gal"}, Hours: .3},

		{IDs: []string{"gohsmc.table2", "gohsmc.fig2"}, Hours: .6},
		{IDs: []string{"gohsmc.table3", "gohsmc.fig3", "gohsmc.table7"}, Hours: 1.1},
		{IDs: []string{"gohsmc.table4", "gohsmc.fig4"}, Hours: .9},
		{IDs: []string{"gohsmc.table5", "gohsmc.fig5"}, Hours: .5},
		{IDs: []string{"gohsmc.table10", "gohsmc.fig6"}, Hours: .3},
		{IDs: []string{"gohsmc.table11", "gohsmc.fig7"}, Hours: .5},
		{IDs: []string{"ohsmc.table4"}, Hours: .6},
		{IDs: []string{"pmcnet.table9", "pmcnet.fig9", "pmcnet.table12"}, Hours: .5},
	}
}

// Hours are those of all shares.
func Hours() (sum float64) {
	for _, s := range Shares() {
		sum += s.Hours
	}
	return sum
}

// OfAll are the options for a study where all are computed in so many hours: its share of them.
func (o Options) OfAll(id string, hours float64) Options {
	all := Shares()
	s := all[slices.IndexFunc(all, func(s Share) bool { return slices.Contains(s.IDs, id) })]
	o.Seconds = 3600 * hours * s.Hours / Hours()
	return o
}
