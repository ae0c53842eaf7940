package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
)

// energyOf is the energy score of a mixture of N(m_j, s^2 I) in three dimensions, where the mean distance of N(m, s^2
// I) from the origin is s (sqrt(2/pi) exp(-r^2/2) + (r + 1/r) erf(r/sqrt 2)), r = |m|/s (the mean of a noncentral chi).
func energyOf(weights []float64, means [][3]float64, s float64, y [3]float64) (sum float64) {
	distance := func(a, b [3]float64, s float64) float64 {
		r := math.Sqrt((a[0]-b[0])*(a[0]-b[0])+(a[1]-b[1])*(a[1]-b[1])+(a[2]-b[2])*(a[2]-b[2])) / s
		if r < 1e-6 {
			return s * 2 * math.Sqrt(2/math.Pi)
		}
		return s * (math.Sqrt(2/math.Pi)*math.Exp(-r*r/2) + (r+1/r)*math.Erf(r/math.Sqrt2))
	}
	for i, w := range weights {
		sum += w * distance(means[i], y, s)
		for j, v := range weights {
			sum -= w * v / 2 * distance(means[i], means[j], math.Sqrt2*s)
		}
	}
	return sum
}

// blobs is a prediction of three targets by random particles, whose noise is 1 in the targets' own units.
func blobs(particles int, seed uint64) (p bayes.Prediction, y []float64) {
	fixed, rng := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, seed))
	p = bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: .5}, Particles: particles, Rows: 10, Width: 3, Size: 3,
		Target: dataset.Scaler{Mean: []float64{5, -1, 0}, StdDev: []float64{2, 2, 2}}}
	for j := range particles {
		p.Weights = append(p.Weights, float64(2*(j+1))/float64(particles*(particles+1)))
		shift := rng.NormFloat64()
		for range p.Rows * p.Width {
			p.Outputs = append(p.Outputs, shift+.5*rng.NormFloat64())
		}
	}
	for range p.Rows * p.Width {
		y = append(y, 2+2*fixed.NormFloat64())
	}
	return p, y
}

// Over seeds the energy score is the closed form's on average.
func TestEnergyScore(t *testing.T) {
	for _, particles := range []int{1, 2, 60} {
		p, y := blobs(particles, 0)
		want := 0.
		for n := range p.Rows {
			var means [][3]float64
			for j := range particles {
				f := p.Outputs[(j*p.Rows+n)*3:]
				means = append(means, [3]float64{5 + 2*f[0], -1 + 2*f[1], 2 * f[2]})
			}
			want += energyOf(p.Weights, means, 1, [3]float64(y[3*n:])) / float64(p.Rows)
		}
		const seeds = 200 // tell a bias of 1/300 of the distance between draws
		sum, square := 0., 0.
		for seed := range uint64(seeds) {
			e, err := metric.EnergyScore(p, y, seed)
			if err != nil {
				t.Fatal(err)
			}
			sum += e.Value - want
			square += (e.Value - want) * (e.Value - want)
		}
		deviation := math.Sqrt(square / seeds)
		if off := math.Abs(sum / seeds); !(off <= 3*deviation/math.Sqrt(seeds)) || !(deviation <= .015*want) {
			t.Errorf("%d particles: %v off, deviation %v, of %v", particles, off, deviation, want)
		}
	}
}

// Its standard error is the standard deviation over independent particles and draws.
func TestEnergyScoreStdErr(t *testing.T) {
	var s spread
	for seed := range uint64(80) {
		p, y := blobs(100, 1+seed)
		e, err := metric.EnergyScore(p, y, seed)
		if err != nil {
			t.Fatal(err)
		}
		s.add(e)
	}
	if ratio := math.Sqrt(s.within() / s.between()); !(math.Abs(ratio-1) <= .25) {
		t.Errorf("the score varies by %v, but its standard error is %.3f times that", math.Sqrt(s.between()), ratio)
	}
}
