package pmcnet

import (
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
)

// A run is doubtful where more than a tenth of its covariances were replaced, or of its draws were not finite.
func TestDoubtful(t *testing.T) {
	const proposals, draws, iterations = 10, 40, 5 // 50 covariances and 2000 draws
	weights, err := bayes.NewLogWeights(make([]float64, proposals*draws))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		replaced, nonFinite int
		says                string
	}{
		{5, 200, ""}, {6, 0, "6 of 50 covariances were not positive definite"},
		{0, 201, "201 of 2000 draws had a log-density that is not finite"},
	} {
		m := &machine{
			PMC: PMC{Proposals: proposals, Draws: draws, Weights: Honest},
			Job: &Job{Settings: Settings{Engine: computetest.Go(t)}, Problem: density.Problem{Dim: 3}},
		}
		for range iterations {
			m.Trace = append(m.Trace, IterationRecord{Exponent: 1})
		}
		m.Iteration = iterations
		m.Trace[1].Replaced, m.Trace[3].NonFinite = c.replaced, c.nonFinite
		said := m.doubts(&Result{LogWeights: weights, ESS: proposals * draws})
		if c.says == "" && len(said) > 0 ||
			c.says != "" && !slices.ContainsFunc(said, func(w string) bool { return strings.HasPrefix(w, c.says) }) {
			t.Errorf("%d replaced, %d not finite: warnings %q, want %q", c.replaced, c.nonFinite, said, c.says)
		}
	}
}
