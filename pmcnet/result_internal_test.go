package pmcnet

import (
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
)

// A run is doubtful where more than a tenth of its covariances were replaced, or of its draws were not finite.
func TestDoubtful(t *testing.T) {
	const proposals, draws, iterations = 10, 40, 5 // 50 covariances and 2000 draws
	for _, c := range []struct {
		replaced, nonFinite int
		says                string
	}{
		{5, 200, ""}, {6, 0, "6 of 50 covariances were not positive definite"},
		{0, 201, "201 of 2000 draws had a log-density that is not finite"},
	} {
		r := &running{
			PMC: PMC{Proposals: proposals, Draws: draws, Weights: honestWeights}, problem: density.Problem{Dim: 3},
		}
		d := &Details{ESS: proposals * draws}
		for range iterations {
			d.Trace = append(d.Trace, IterationRecord{Exponent: 1})
		}
		d.Trace[1].Replaced, d.Trace[3].NonFinite = c.replaced, c.nonFinite
		said := r.doubts(d)
		if c.says == "" && len(said) > 0 ||
			c.says != "" && !slices.ContainsFunc(said, func(d fit.Doubt) bool { return strings.HasPrefix(d.Text, c.says) }) {
			t.Errorf("%d replaced, %d not finite: warnings %q, want %q", c.replaced, c.nonFinite, said, c.says)
		}
	}
}
