package study

import (
	_ "embed" // for the hours
	"slices"
	"strconv"
	"strings"
)

// sharesText has the hours that one table, and the figures of the same repetitions, get on two cores of the time in
// which everything is computed: a third more than what their repetitions are known to take. A study's first repetition
// is made whatever it takes; what is left of its hours goes to further ones, up to its own number: most for those whose
// claims rest on differences within the standard errors.
//
//go:embed shares.txt
var sharesText string

// share has the studies of some hours, of which the first computes the repetitions.
type share struct {
	hours float64
	ids   []string
}

var shares = readShares(sharesText)

func readShares(text string) (all []share) {
	for line := range strings.Lines(text) {
		hours, ids, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all = append(all, share{must(strconv.ParseFloat(hours, 64)), strings.Split(ids, ", ")})
	}
	return all
}

// InTurn are the IDs of all studies, in the order in which they are computed.
func InTurn() (ids []string) {
	for _, s := range shares {
		ids = append(ids, s.ids...)
	}
	return ids
}

// Hours are those of all shares.
func Hours() (sum float64) {
	for _, s := range shares {
		sum += s.hours
	}
	return sum
}

// OfAll are the options for a study where all are computed in so many hours: its share of them.
func (o Options) OfAll(id string, hours float64) Options {
	i := slices.IndexFunc(shares, func(s share) bool { return slices.Contains(s.ids, id) })
	o.Seconds = 3600 * hours * shares[i].hours / Hours()
	return o
}
