package study

import "slices"

// Share is what one table, and the figures of the same repetitions, get of the time in which everything is computed.
type Share struct {
	IDs   []string // the studies, of which the first computes the repetitions
	Hours float64
	Reps  int  // at most: the paper's; 0: the study's own
	Full  bool // with the paper's epochs and rows
}

// Shares are the shares of all studies: 8 hours without pictures and 8 with them, on two cores. A study's first
// repetition is made whatever it takes; what is left of its hours goes to further ones, up to the paper's, where its
// claims rest on differences within its standard errors.
func Shares() []Share {
	return []Share{
		{IDs: []string{"pmcnet.table2", "pmcnet.fig1"}, Hours: .3, Reps: 10},
		{IDs: []string{"pmcnet.table3", "pmcnet.fig2", "pmcnet.fig3"}, Hours: .3, Reps: 10},
		{IDs: []string{"pmcnet.table6", "pmcnet.fig4", "pmcnet.fig5"}, Hours: .3, Reps: 10},
		{IDs: []string{"pmcnet.table7", "pmcnet.fig6", "pmcnet.fig7", "pmcnet.fig8"}, Hours: .4, Reps: 10},
		{IDs: []string{"pmcnet.table10", "pmcnet.fig10", "pmcnet.fig11"}, Hours: .7, Reps: 5, Full: true},
		{IDs: []string{"pmcnet.table11"}, Hours: .1, Reps: 3},
		{IDs: []string{"pmcnet.floored"}, Hours: .2, Reps: 10},
		{IDs: []string{"pmcnet.evidence"}, Hours: .3},
		{IDs: []string{"ohsmc.table1", "ohsmc.fig3", "ohsmc.fig6"}, Hours: .5, Reps: 100},
		{IDs: []string{"ohsmc.table2", "ohsmc.fig4", "ohsmc.fig7"}, Hours: .5, Reps: 100},
		{IDs: []string{"ohsmc.table8", "ohsmc.table3"}, Hours: .9, Reps: 10},
		{IDs: []string{"ohsmc.fig1", "ohsmc.fig2", "ohsmc.fig5"}, Hours: .1},
		{IDs: []string{"gohsmc.table1", "gohsmc.table6", "gohsmc.fig1"}, Hours: 1, Reps: 5, Full: true},
		{IDs: []string{"fbnn.tableA1", "fbnn.fig2", "fbnn.fig4", "fbnn.fig5", "fbnn.fig6"}, Hours: .6, Reps: 3},
		{IDs: []string{"fbnn.tableA2", "fbnn.fig3", "fbnn.fig7"}, Hours: .4, Reps: 3},
		{IDs: []string{"fbnn.fig1", "fbnn.theorems"}, Hours: .1},
		{IDs: []string{"pbnn.fig1", "pbnn.fig2", "pbnn.fig3", "pbnn.fig4"}, Hours: .3},
		{IDs: []string{"practice.tables", "practice.splits"}, Hours: .5, Reps: 5},
		{IDs: []string{"practice.airfoil"}, Hours: .3, Reps: 5},
		{IDs: []string{"practice.bike"}, Hours: .1, Reps: 1},
		{IDs: []string{"practice.gal"}, Hours: .1, Reps: 5},

		{IDs: []string{"gohsmc.table2", "gohsmc.fig2"}, Hours: 1.2, Reps: 10},
		{IDs: []string{"gohsmc.table3", "gohsmc.fig3", "gohsmc.table7"}, Hours: 1.1, Reps: 10},
		{IDs: []string{"gohsmc.table4", "gohsmc.fig4"}, Hours: .8, Reps: 5},
		{IDs: []string{"gohsmc.table5", "gohsmc.fig5"}, Hours: .5, Reps: 5},
		{IDs: []string{"gohsmc.table10", "gohsmc.fig6"}, Hours: .6, Reps: 10},
		{IDs: []string{"gohsmc.table11", "gohsmc.fig7"}, Hours: .5, Reps: 10},
		{IDs: []string{"ohsmc.table4"}, Hours: 2.6, Reps: 10},
		{IDs: []string{"pmcnet.table9", "pmcnet.fig9", "pmcnet.table12"}, Hours: .7, Reps: 3},
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
	o.Seconds, o.Reps, o.Full = 3600*hours*s.Hours/Hours(), s.Reps, s.Full
	return o
}
