package metric_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"

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
// parts far apart, and for targets within and far outside.
func TestCRPS(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, j := range []int{1, 2, 30, 400} {
		for _, spread := range []float64{.1, 3, 1000} {
			p := bayes.Prediction{Likelihood: bayes.Gaussian{Learn: true}, Particles: j, Rows: 1, Width: 1}
			var sds []float64
			total := 0.
			for range j {
				sds = append(sds, math.Exp(rng.NormFloat64()))
				p.Outputs = append(p.Outputs, spread*rng.NormFloat64())
				p.Own = append(p.Own, math.Log(sds[len(sds)-1]))
				p.Weights = append(p.Weights, rng.Float64())
				total += p.Weights[len(p.Weights)-1]
			}
			for i := range p.Weights {
				p.Weights[i] /= total
			}
			for _, y := range []float64{0, 1.5, -40, 1e5} {
				want := crpsOf(p.Weights, p.Outputs, sds, y)
				e, err := metric.CRPS(p, []float64{y})
				if off := e.Value/want - 1; err != nil || !(math.Abs(off) <= 5e-4) {
					t.Errorf("%d particles, spread %v, y %v: %v, %v, off by %.2g", j, spread, y, e, err, off)
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
}

// Of counts the CRPS is E|X - y| - E|X - X'| / 2 as sums.
func TestCRPSOfCounts(t *testing.T) {
	p := bayes.Prediction{Likelihood: bayes.Poisson{}, Particles: 2, Rows: 1, Width: 1, Weights: []float64{.3, .7},
		Outputs: []float64{math.Log(2), math.Log(9)}}
	mass := func(k float64) float64 {
		return .3*distuv.Poisson{Lambda: 2}.Prob(k) + .7*distuv.Poisson{Lambda: 9}.Prob(k)
	}
	for _, y := range []float64{0, 7, 60} {
		want := 0.
		for k := range 60 {
			want += mass(float64(k)) * math.Abs(float64(k)-y)
			for l := range 60 {
				want -= mass(float64(k)) * mass(float64(l)) * math.Abs(float64(k-l)) / 2
			}
		}
		value(t, fmt.Sprint("y ", y), want, 1e-8)(metric.CRPS(p, []float64{y}))
	}
}
