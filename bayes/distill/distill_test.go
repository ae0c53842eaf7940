package distill_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/distill"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// lines is a posterior of lines with these slopes and intercepts 0, equally weighted unless weights are given.
func lines(t *testing.T, likelihood bayes.Likelihood, slopes, logWeights []float64) *bayes.Posterior {
	t.Helper()
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	if logWeights == nil {
		logWeights = bayes.EqualLogWeights(len(slopes))
	}
	phi := make([]float64, len(slopes)*bound.D)
	for j, s := range slopes {
		phi[j*bound.D] = s
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, len(slopes), bound.D), LogWeights: logWeights,
	}, bayes.Origin{Engine: engine, Target: dataset.Scaler{Mean: []float64{5}, StdDev: []float64{3}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var points = mat.NewDense(5, 1, []float64{-2, -1, 0, .5, 2})

func slopesOf(t *testing.T, p *bayes.Posterior) map[float64]float64 {
	t.Helper()
	slopes, err := p.Coordinate(0)
	if err != nil {
		t.Fatal(err)
	}
	weights := map[float64]float64{}
	for j, w := range p.LogWeights().Weights() {
		weights[slopes[j]] += w
	}
	return weights
}

// Of many particles that are copies of a few, or have no weight, the few remain with their weights.
func TestCopies(t *testing.T) {
	var slopes, logWeights []float64
	for slope, copies := range map[float64]int{-1: 50, 2: 30, 7: 20} {
		for range copies {
			slopes, logWeights = append(slopes, slope, 1e6), append(logWeights, 0, math.Inf(-1))
		}
	}
	p := lines(t, bayes.Gaussian{StdDev: .3}, slopes, logWeights)
	small, off, err := distill.Posterior(t.Context(), p, points, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	got := slopesOf(t, small)
	for slope, want := range map[float64]float64{-1: .5, 2: .3, 7: .2} {
		if math.Abs(got[slope]-want) > 1e-9 {
			t.Errorf("slope %v has weight %v, want %v", slope, got[slope], want)
		}
	}
	if small.Particles() > 10 || len(got) != 3 || off.Mean > 1e-6 || off.StdDev > 1e-6 {
		t.Errorf("%d particles of slopes %v, off by %+v", small.Particles(), got, off)
	}
	if from := small.Provenance().Approximation; from != "distilled from 100 particles" {
		t.Errorf("it says that it is %q", from)
	}
}

// The stated error is that of the predictions, and a few dozen of ten thousand draws are enough for 2 %.
func TestErrorIsTrue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	slopes := make([]float64, 10_000)
	for j := range slopes {
		slopes[j] = 2 + .5*rng.NormFloat64()
	}
	const within = .02
	for _, likelihood := range []bayes.Likelihood{bayes.Gaussian{StdDev: .3}, bayes.Bernoulli{}} {
		p := lines(t, likelihood, slopes, nil)
		small, off, err := distill.Posterior(t.Context(), p, points, within)
		if err != nil {
			t.Fatal(err)
		}
		if n := small.Particles(); n > 60 {
			t.Errorf("%T: %d particles", likelihood, n)
		}
		whole, err := p.Predict(t.Context(), points)
		if err != nil {
			t.Fatal(err)
		}
		few, err := small.Predict(t.Context(), points)
		if err != nil {
			t.Fatal(err)
		}
		mean, stdDev := 0., 0.
		if likelihood.Task() == dataset.Regression {
			m, s := numbers(t, whole)
			n, r := numbers(t, few)
			for i := range m {
				mean, stdDev = max(mean, math.Abs(n[i]-m[i])/s[i]), max(stdDev, math.Abs(r[i]/s[i]-1))
			}
		} else {
			a, err := whole.Probabilities()
			if err != nil {
				t.Fatal(err)
			}
			b, err := few.Probabilities()
			if err != nil {
				t.Fatal(err)
			}
			for i := range a {
				mean = max(mean, math.Abs(a[i][1]-b[i][1]))
			}
		}
		if math.Abs(mean-off.Mean) > 1e-9 || math.Abs(stdDev-off.StdDev) > 1e-6 || max(mean, stdDev) > within {
			t.Errorf("%T: off by %v and %v, and it says %+v", likelihood, mean, stdDev, off)
		}
	}
}

func numbers(t *testing.T, p bayes.Prediction) (mean, stdDev []float64) {
	t.Helper()
	mean, err := p.Mean()
	if err != nil {
		t.Fatal(err)
	}
	if stdDev, err = p.StdDev(); err != nil {
		t.Fatal(err)
	}
	return mean, stdDev
}

// Of few particles that all matter none is left out.
func TestNoFewer(t *testing.T) {
	p := lines(t, bayes.Gaussian{StdDev: .1}, []float64{1, 5, 20}, nil)
	small, off, err := distill.Posterior(t.Context(), p, points, 1e-4)
	if err != nil || small != p || off != (distill.Error{}) {
		t.Errorf("%v, %+v, %v", small, off, err)
	}
}

// heavy is Student's t with 1.5 degrees of freedom, which has no variance.
type heavy struct{ bayes.Gaussian }

func (heavy) Predictive(outputs, _ []float64, k int) bayes.Distribution {
	return distuv.StudentsT{Mu: outputs[k], Sigma: 1, Nu: 1.5}
}

func TestRefuses(t *testing.T) {
	p := lines(t, bayes.Gaussian{StdDev: .1}, []float64{1, 5}, nil)
	for _, c := range []struct {
		want   string
		p      *bayes.Posterior
		x      mat.Matrix
		within float64
	}{
		{"the posterior is nil", nil, points, .1},
		{"the largest difference is 5", p, points, 5},
		{"the largest difference is NaN", p, points, math.NaN()},
		{"shape [1, 2]", p, mat.NewDense(1, 2, nil), .1},
		{"variance", lines(t, heavy{}, []float64{1, 5}, nil), points, .1},
	} {
		if _, _, err := distill.Posterior(t.Context(), c.p, c.x, c.within); err == nil ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
}
