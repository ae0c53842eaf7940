package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The normal of values some of which are censored has the greatest likelihood of all beside it.
func TestNormalOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var values []float64
	var censored []bool
	for range 500 {
		y, last := 3+2*rng.NormFloat64(), 3+rng.NormFloat64()
		values, censored = append(values, min(y, last)), append(censored, y > last)
	}
	logLikelihood := func(n distuv.Normal) (sum float64) {
		for i, y := range values {
			if censored[i] {
				sum += math.Log(n.Survival(y))
			} else {
				sum += n.LogProb(y)
			}
		}
		return sum
	}
	got := normalOf(values, censored)
	best := logLikelihood(got)
	for _, step := range []float64{-.01, .01} {
		for _, beside := range []distuv.Normal{{Mu: got.Mu + step, Sigma: got.Sigma}, {Mu: got.Mu, Sigma: got.Sigma + step}} {
			if l := logLikelihood(beside); l >= best {
				t.Errorf("N(%v, %v) has log-likelihood %v, and N(%v, %v) %v", got.Mu, got.Sigma, best, beside.Mu, beside.Sigma, l)
			}
		}
	}
	if math.Abs(got.Mu-3) > .5 || math.Abs(got.Sigma-2) > .5 { // four standard errors
		t.Errorf("of N(3, 2^2): N(%v, %v^2)", got.Mu, got.Sigma)
	}
}
