package metric_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// crpsOf is the closed form for a mixture of normals (Grimit and others 2006, eq. 5).
func crpsOf(weights, means, sds []float64, y float64) (sum float64) {
	a := func(mean, variance float64) float64 {
		sd := math.Sqrt(variance)
		return 2*sd*distuv.UnitNormal.Prob(mean/sd) + mean*(2*distuv.UnitNormal.CDF(mean/sd)-1)
	}
	for i, w := range weights {
		sum += w * a(y-means[i], sds[i]*sds[i])
		for j, v := range weights {
			sum -= w * v / 2 * a(means[i]-means[j], sds[i]*sds[i]+sds[j]*sds[j])
		}
	}
	return sum
}

// The CRPS and the jackknife's replicates are the closed form's, of mixtures from one particle to many, with narrow
// parts far apart, of one width or many, and for targets within and far outside.
func TestCRPS(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, j := range []int{1, 2, 30, 400} {
		for _, spread := range []float64{.1, 3, 1000} {
			for _, widths := range []float64{.1, 1, 2} {
				p := bayes.Prediction{Likelihood: bayes.Gaussian{Learn: true}, Particles: j, Rows: 1, Width: 1}
				var sds []float64
				for range j {
					p.Outputs = append(p.Outputs, spread*rng.NormFloat64())
					p.Own = append(p.Own, widths*rng.NormFloat64())
					sds = append(sds, math.Exp(p.Own[len(p.Own)-1]))
					p.Weights = append(p.Weights, rng.Float64())
				}
				floats.Scale(1/floats.Sum(p.Weights), p.Weights)
				for _, y := range []float64{0, 1.5, -40, 1e5} {
					want := crpsOf(p.Weights, p.Outputs, sds, y)
					e, err := metric.CRPS(p, []float64{y})
					if off := e.Value/want - 1; err != nil || !(math.Abs(off) <= 1e-4) {
						t.Errorf("%d particles, spread %v, widths %v, y %v: %v, %v, off by %.2g", j, spread, widths, y, e, err, off)
					}
				}
			}
		}
	}
	p := regression([]float64{.25, .75}, 1, []float64{1}, []float64{5})
	e := value(t, "two particles", crpsOf([]float64{.25, .75}, []float64{1, 5}, []float64{1, 1}, 2), 1e-5)(
		metric.CRPS(p, []float64{2}))
	one, two := crpsOf([]float64{1}, []float64{1}, []float64{1}, 2), crpsOf([]float64{1}, []float64{5}, []float64{1}, 2)
	if want := math.Abs(one-two) / 2; math.Abs(e.StdErr-want) > 1e-5 {
		t.Errorf("Monte Carlo standard error %v, want %v", e.StdErr, want)
	}
	p.Likelihood = heavy{bayes.Gaussian{Learn: true}, .5} // its tails have no end
	if e, err := metric.CRPS(p, []float64{2}); err != nil || !math.IsInf(e.Value, 1) {
		t.Errorf("Student's t with half a degree of freedom: %v, %v, want an infinite score", e, err)
	}
}

// heavy is Student's t, as a likelihood of a user's own.
type heavy struct {
	bayes.Gaussian
	dof float64
}

func (h heavy) Predictive(outputs, own []float64, k int) bayes.Distribution {
	return distuv.StudentsT{Mu: outputs[k], Sigma: math.Exp(own[k]), Nu: h.dof}
}

// laplace is another.
type laplace struct{ bayes.Gaussian }

func (laplace) Predictive(outputs, own []float64, k int) bayes.Distribution {
	return distuv.Laplace{Mu: outputs[k], Scale: math.Exp(own[k])}
}

// The CRPS is twice the mean quantile score, integrated over levels (Gneiting and Ranjan 2011, eq. 17 with weight 1),
//
//	2 integral (1{y <= q(a)} - a) (q(a) - y) da
//
// of every kind of distribution.
func TestCRPSOfQuantiles(t *testing.T) {
	p := regression([]float64{.3, .7}, 1, []float64{1}, []float64{4})
	p.Own[1] = -1
	scaled := p
	scaled.Target = dataset.Scaler{Mean: []float64{10}, StdDev: []float64{3}}
	counts := bayes.Prediction{Likelihood: bayes.Poisson{}, Particles: 2, Rows: 1, Width: 1, Weights: []float64{.3, .7},
		Outputs: []float64{0, 2}}
	overdispersed := counts
	overdispersed.Likelihood, overdispersed.Own = bayes.NegativeBinomial{}, []float64{math.Log(3), math.Log(3)}
	with := func(p bayes.Prediction, l bayes.Likelihood) bayes.Prediction { p.Likelihood = l; return p }
	for name, p := range map[string]bayes.Prediction{
		"normal": p, "scaled": scaled, "t": with(p, heavy{bayes.Gaussian{Learn: true}, 4}),
		"Laplace": with(p, laplace{bayes.Gaussian{Learn: true}}), "Poisson": counts,
		"negative binomial": overdispersed,
	} {
		for _, y := range []float64{0, 3, 12} {
			want := 0.
			const step = .004
			for z := -7.5 + step/2; z < 7.5; z += step { // a = Phi(z)
				a := distuv.UnitNormal.CDF(z)
				q, err := p.Quantile(a)
				if err != nil {
					t.Fatal(err)
				}
				want += 2 * math.Max((1-a)*(q[0]-y), a*(y-q[0])) * distuv.UnitNormal.Prob(z) * step
			}
			value(t, name+fmt.Sprint(", y ", y), want, 1e-3*want)(metric.CRPS(p, []float64{y}))
		}
	}
}

// Of counts the CRPS is E|X - y| - E|X - X'| / 2 as sums.
func TestCRPSOfCounts(t *testing.T) {
	p := bayes.Prediction{Likelihood: bayes.Poisson{}, Particles: 2, Rows: 1, Width: 1, Weights: []float64{.3, .7},
		Outputs: []float64{math.Log(2), math.Log(9)}}
	mass := func(k float64) float64 {
		return .3*distuv.Poisson{Lambda: 2}.Prob(k) + .7*distuv.Poisson{Lambda: 9}.Prob(k)
	}
	for _, y := range []float64{0, 7, 14, 60} {
		want := 0.
		for k := range 60 {
			want += mass(float64(k)) * math.Abs(float64(k)-y)
			for l := range 60 {
				want -= mass(float64(k)) * mass(float64(l)) * math.Abs(float64(k-l)) / 2
			}
		}
		value(t, fmt.Sprint("y ", y), want, 1e-8)(metric.CRPS(p, []float64{y}))
	}
	// Counts too many to be summed.
	for _, c := range []struct{ size, mean float64 }{{2, 1000}, {.1, 20}, {.02, 20}} { // of 0: .001, .59 and .87
		p = bayes.Prediction{Likelihood: bayes.NegativeBinomial{}, Particles: 1, Rows: 1, Width: 1,
			Weights: []float64{1}, Outputs: []float64{math.Log(c.mean)}, Own: []float64{math.Log(c.size)}}
		for _, y := range []float64{0, 3, 900, 9000} {
			want := 0.
			for k := range 20_000 {
				f := p.Distribution(0, 0, 0).CDF(float64(k))
				if float64(k) >= y {
					f = 1 - f
				}
				want += f * f
			}
			value(t, fmt.Sprintf("%+v, y %v", c, y), want, 1e-4*want)(metric.CRPS(p, []float64{y}))
		}
	}
}

func BenchmarkCRPS(b *testing.B) {
	p, y := draw(world{seed: 1, rows: 100}, 1000, 0)
	for b.Loop() {
		if _, err := metric.CRPS(p, y); err != nil {
			b.Fatal(err)
		}
	}
}
