package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// world is a posterior over a few coefficients, from which predictions of independent draws are made for always the
// same rows.
type world struct {
	seed    uint64
	rows    int
	classes int  // 0 for regression
	unequal bool // draws are weighted by importance
}

// draw is a prediction by that many independent draws, and the rows' targets, which depend on the world alone. Each
// output is linear in 4 coefficients, N(0, 1) under the proposal; with unequal weights the posterior has mean 0.7 and
// standard deviation 0.9 in the first.
func draw(w world, particles int, repetition uint64) (bayes.Prediction, []float64) {
	const coefficients = 4
	fixed := rand.New(rand.NewPCG(w.seed, 0))
	width := max(w.classes, 1)
	design := make([]float64, w.rows*width*coefficients)
	for i := range design {
		design[i] = 0.5 * fixed.NormFloat64()
	}
	offset := make([]float64, w.rows*width)
	for i := range offset {
		offset[i] = fixed.NormFloat64()
	}
	y := make([]float64, w.rows)
	for n := range y {
		if w.classes > 0 {
			best := math.Inf(-1)
			for c := range width {
				if v := offset[n*width+c] - math.Log(fixed.ExpFloat64()); v > best { // Gumbel: a draw from the softmax
					y[n], best = float64(c), v
				}
			}
		} else {
			y[n] = offset[n] + 1.2*fixed.NormFloat64()
		}
	}

	rng := rand.New(rand.NewPCG(w.seed, 1+repetition))
	p := bayes.Prediction{Particles: particles, Rows: w.rows, Width: width, Weights: make([]float64, particles),
		Likelihood: bayes.Gaussian{Learn: true}}
	if w.classes > 0 {
		p.Likelihood = bayes.Categorical{}
	}
	sum := 0.0
	for j := range particles {
		var theta [coefficients]float64
		for k := range theta {
			theta[k] = rng.NormFloat64()
		}
		p.Weights[j] = 1
		if w.unequal {
			z := (theta[0] - 0.7) / 0.9
			p.Weights[j] = math.Exp(0.5*theta[0]*theta[0] - 0.5*z*z)
		}
		sum += p.Weights[j]
		for i, o := range offset {
			for k, v := range theta {
				o += v * design[i*coefficients+k]
			}
			p.Outputs = append(p.Outputs, o)
		}
		if w.classes == 0 {
			p.Own = append(p.Own, 0.2*theta[3]) // log standard deviations
		}
	}
	for j := range p.Weights {
		p.Weights[j] /= sum
	}
	return p, y
}

// spread compares the standard deviation of scores over repetitions with the root mean square of their standard errors.
type spread struct{ n, sum, square, variance float64 }

func (s *spread) add(e metric.Estimate) {
	s.n++
	s.sum += e.Value
	s.square += e.Value * e.Value
	s.variance += e.StdErr * e.StdErr
}

// between and within are the variance over repetitions and the mean squared standard error.
func (s *spread) between() float64 { return (s.square - s.sum*s.sum/s.n) / (s.n - 1) }
func (s *spread) within() float64  { return s.variance / s.n }

// The standard error must be the standard deviation of the score over independent sets of particles. The two are
// compared over 150 sets, which give the first to 6 % (1/sqrt(300)) and the second to 1 %. The jackknife is right to
// first order in 1/J only, and the stretched replicates of step functions approximately; 17 % is allowed. Coverage has
// a test of its own, below.
func TestStandardErrorsAreCalibrated(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of scores")
	}
	const repetitions, particles, tolerance = 150, 200, 0.17
	for _, w := range []world{{seed: 2, rows: 30, unequal: true}, {seed: 3, rows: 60, classes: 3}} {
		spreads := map[string]*spread{}
		for repetition := range uint64(repetitions) {
			p, y := draw(w, particles, repetition)
			table, err := metric.Scores(p, y)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range table {
				if spreads[s.Name] == nil {
					spreads[s.Name] = &spread{}
				}
				spreads[s.Name].add(s.Estimate)
			}
		}
		delete(spreads, "coverage 95%")
		for name, s := range spreads {
			if ratio := math.Sqrt(s.within() / s.between()); !(math.Abs(ratio-1) <= tolerance) {
				t.Errorf("%+v: %s varies by %.4g, but its standard error is %.3f times that",
					w, name, math.Sqrt(s.between()), ratio)
			}
		}
	}
}

// Where coverage varies by less than a row, how much it does depends on whether a row's target happens to lie at the
// end of its interval. So variances are averaged over 8 worlds, which gives their ratio to about 10 %; 20 % is allowed.
// Without stretching, the ratio would be 1.8 to 2.
func TestCoverageStandardErrorIsCalibrated(t *testing.T) {
	const repetitions, particles, tolerance = 60, 200, 0.2
	levels := []float64{0.5, 0.8, 0.95}
	for _, unequal := range []bool{false, true} {
		between, within := make([]float64, len(levels)), make([]float64, len(levels))
		for seed := range uint64(8) {
			spreads := make([]spread, len(levels))
			for repetition := range uint64(repetitions) {
				p, y := draw(world{seed: 100 + seed, rows: 60, unequal: unequal}, particles, repetition)
				for i, level := range levels {
					coverage, err := metric.Coverage(p, y, level)
					if err != nil {
						t.Fatal(err)
					}
					spreads[i].add(coverage)
				}
			}
			for i, s := range spreads {
				between[i] += s.between()
				within[i] += s.within()
			}
		}
		for i, level := range levels {
			if ratio := math.Sqrt(within[i] / between[i]); !(math.Abs(ratio-1) <= tolerance) {
				t.Errorf("unequal weights %v: coverage at %v has a standard error %.3f times its standard deviation",
					unequal, level, ratio)
			}
		}
	}
}
