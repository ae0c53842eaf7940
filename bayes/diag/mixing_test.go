package diag_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"

	"gonum.org/v1/gonum/mat"
)

// Agreement doubts chains that are apart, stand at values of their own, have different tails, or few effective draws;
// of 200 sets of four right chains with a bulk ESS of 700 of 4000 draws, for five coordinates each, it doubts two at
// most.
func TestAgreement(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	sample := func(draws, parameters int, correlation float64, change func(chain int, x float64) float64) diag.Sample {
		s := diag.Sample{Chains: 4, Draws: draws, Parameters: parameters}
		for chain := range 4 {
			x := make([]float64, parameters)
			for draw := range draws {
				for k := range x {
					keep := correlation
					if draw == 0 {
						keep = 0
					}
					x[k] = keep*x[k] + math.Sqrt(1-keep*keep)*rng.NormFloat64()
					s.Values = append(s.Values, change(chain, x[k]))
				}
			}
		}
		return s
	}
	same := func(_ int, x float64) float64 { return x }
	for _, c := range []struct {
		name   string
		sample diag.Sample
		says   string
	}{
		{"independent", sample(100, 3, 0, same), ""},
		{"few draws", sample(3, 1, 0, same), ""},
		{"apart", sample(1000, 2, 0, func(chain int, x float64) float64 { return x + float64(chain)/2 }),
			"the 4 chains disagree: R-hat is up to 1."},
		{"other tails", sample(1000, 1, 0, func(chain int, x float64) float64 { return x * float64(1+chain) }),
			"the 4 chains disagree: R-hat is up to 1."},
		{"at values of their own", sample(100, 1, 0, func(chain int, _ float64) float64 { return float64(chain) }),
			"R-hat is up to +Inf"},
		{"slow", sample(1000, 1, .9, same), "the effective sample size is as small as "},
		{"still", sample(100, 2, 0, func(int, float64) float64 { return 3 }), "2 of 2 coordinates never change"},
		{"not finite", sample(100, 1, 0, func(int, float64) float64 { return math.Inf(1) }), "is not known"},
	} {
		got := strings.Join(diag.Agreement(c.sample).Sentences(), "; ")
		if !strings.Contains(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
	doubted := 0
	for range 200 {
		doubted += len(diag.Agreement(sample(1000, 5, .7, same)))
	}
	if doubted > 2 {
		t.Errorf("%d of 200 right samples are doubted", doubted)
	}
}

// Mixing is silent of independent draws, of chains that differ in what no prediction depends on, and of particles that
// are of no chains; it warns of chains apart, of one that wanders, and of a few effective draws. Of 2000 sets of
// 1000 independent draws the largest R-hat was 1.013.
func TestMixing(t *testing.T) {
	const draws = 250
	rng := rand.New(rand.NewPCG(5, 6))
	x := mat.NewDense(40, 2, nil) // the second feature is 0: the second weight is in no prediction
	for n := range 40 {
		x.Set(n, 0, 1+rng.Float64())
	}
	for _, c := range []struct {
		name   string
		chains int
		draw   func(chain, i int) (first, second float64)
		says   []string // empty: nothing
	}{
		{"independent", 4, func(int, int) (float64, float64) { return rng.NormFloat64(), rng.NormFloat64() }, nil},
		{"one chain", 1, func(int, int) (float64, float64) { return rng.NormFloat64(), rng.NormFloat64() }, nil},
		{"apart in no prediction", 4, func(chain, _ int) (float64, float64) {
			return rng.NormFloat64(), 9*float64(chain) + rng.NormFloat64()
		}, nil},
		{"apart", 4, func(chain, _ int) (float64, float64) {
			return float64(chain) + rng.NormFloat64(), 0
		}, []string{"the 4 chains disagree on predictions: R-hat is up to 1.", "for 32 of 32 training rows'",
			"of 1000 draws"}},
		{"wide", 4, func(chain, _ int) (float64, float64) { return math.Pow(6, float64(chain)) * rng.NormFloat64(), 0 },
			[]string{"the 4 chains disagree"}},
		{"wanders", 1, func(_, i int) (float64, float64) { return float64(i) / 50, 0 },
			[]string{"the two halves of the chain disagree", "of 250 draws"}},
		{"stands still", 4, func(chain, i int) (float64, float64) {
			return float64((chain*7+i/60)%4) + 1e-3*rng.Float64(), 0
		}, []string{"as small as "}},
		{"no chains", 0, func(_, i int) (float64, float64) { return float64(i), 0 }, nil},
		{"all the same", 4, func(int, int) (float64, float64) { return 1, 1 }, nil},
	} {
		var phi []float64
		for chain := range max(c.chains, 1) {
			for i := range draws {
				first, second := c.draw(chain, i)
				phi = append(phi, first, second)
			}
		}
		p := posteriorOf(t, phi, bayes.EqualLogWeights(len(phi)/2), c.chains, bayes.Provenance{})
		stopped, cancel := context.WithCancel(t.Context())
		cancel() // as after a run that was cancelled
		got := strings.Join(diag.Mixing(stopped, p, &dataset.Dataset{X: x}).Sentences(), "\n")
		if len(c.says) == 0 && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
		if c.name == "apart" || c.name == "independent" { // whose second weight is drawn alike
			if drawn := diag.Mixing(stopped, p, nil); (len(drawn) > 0) != (len(c.says) > 0) {
				t.Errorf("%s, at drawn rows: %q", c.name, drawn)
			}
		}
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q does not say %q", c.name, got, want)
			}
		}
	}
	if got := diag.Mixing(t.Context(), nil, &dataset.Dataset{X: x}); len(got) > 0 {
		t.Errorf("no posterior: %q", got)
	}
}
