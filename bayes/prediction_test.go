package bayes_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// twoParticles is a regression of 2 particles and 3 rows: in the target's own units the particles say 1, 2, 3 and 5, 2,
// -1, with noise 1 and 2.
func twoParticles() bayes.Prediction {
	return bayes.Prediction{
		Likelihood: bayes.Gaussian{Learn: true}, Particles: 2, Rows: 3, Width: 1, Weights: []float64{0.25, 0.75},
		Outputs: []float64{-2.25, -2, -1.75, -1.25, -2, -2.75}, Own: []float64{math.Log(0.25), math.Log(0.5)},
		Target: dataset.Scaler{Mean: []float64{10}, StdDev: []float64{4}},
	}
}

// threeClasses is a classification of 2 particles, 2 rows and 3 classes whose softmaxes are the numbers in the
// logarithms.
func threeClasses() bayes.Prediction {
	ln := math.Log
	return bayes.Prediction{
		Likelihood: bayes.Categorical{}, Particles: 2, Rows: 2, Width: 3, Weights: []float64{0.5, 0.5},
		Outputs: []float64{
			ln(0.2), ln(0.3), ln(0.5), ln(0.1) + 7, ln(0.8) + 7, ln(0.1) + 7,
			ln(0.6), ln(0.3), ln(0.1), ln(0.7), ln(0.2), ln(0.1),
		},
	}
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*math.Max(1, math.Abs(want[i]))) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func TestPredictionRegressionByHand(t *testing.T) {
	p := twoParticles()
	mean := computetest.Must(p.Mean())
	near(t, "mean", mean, []float64{4, 2, 0}, 1e-14)
	epistemic := computetest.Must(p.EpistemicStdDev())
	near(t, "epistemic", epistemic, []float64{math.Sqrt(3), 0, math.Sqrt(3)}, 1e-14)
	total := computetest.Must(p.StdDev())
	noise := 0.25*1 + 0.75*4
	near(t, "std dev", total, []float64{math.Sqrt(3 + noise), math.Sqrt(noise), math.Sqrt(3 + noise)}, 1e-14)

	density := computetest.Must(p.LogDensity([]float64{1, 2, 3000}))
	normal := func(y, m, s float64) float64 { return distuv.Normal{Mu: m, Sigma: s}.Prob(y) }
	near(t, "log density", density, []float64{
		math.Log(0.25*normal(1, 1, 1) + 0.75*normal(1, 5, 2)),
		math.Log(0.25*normal(2, 2, 1) + 0.75*normal(2, 2, 2)),
		math.Log(0.75) + distuv.Normal{Mu: -1, Sigma: 2}.LogProb(3000), // the density underflows, its logarithm does not
	}, 1e-13)
}

func TestPredictionClassificationByHand(t *testing.T) {
	p := threeClasses()
	probabilities, err := p.Probabilities()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "row 0", probabilities[0], []float64{0.4, 0.3, 0.3}, 1e-15)
	near(t, "row 1", probabilities[1], []float64{0.4, 0.5, 0.1}, 1e-15)
	labels, err := p.Labels()
	if err != nil || !slices.Equal(labels, []int{0, 1}) {
		t.Errorf("labels %v, %v", labels, err)
	}
	density := computetest.Must(p.LogDensity([]float64{2, 0}))
	near(t, "log density", density, []float64{math.Log(0.3), math.Log(0.4)}, 1e-14)
	if !slices.Equal(p.StandardiseTarget([]float64{2, 0}), []float64{2, 0}) ||
		&p.Standardised().Outputs[0] != &p.Outputs[0] {
		t.Error("a classification is not to be standardised")
	}
}

func TestPredictionBinary(t *testing.T) {
	p := bayes.Prediction{
		Likelihood: bayes.Bernoulli{}, Particles: 2, Rows: 2, Width: 1, Weights: []float64{0.4, 0.6},
		Outputs: []float64{0, 1000, math.Log(3), 2000},
	}
	probabilities := computetest.Must(p.Probabilities())
	near(t, "row 0", probabilities[0], []float64{0.4*0.5 + 0.6*0.25, 0.4*0.5 + 0.6*0.75}, 1e-15)
	near(t, "row 1", probabilities[1], []float64{0, 1}, 1e-15)
	density := computetest.Must(p.LogDensity([]float64{1, 0}))
	// The second is log(0.4 e^-1000 + 0.6 e^-2000), whose terms underflow.
	near(t, "log density", density, []float64{math.Log(0.65), math.Log(0.4) - 1000}, 1e-14)
}

// randomRegression has particles whose spread is that many times their noise.
func randomRegression(particles, rows int, spread float64, seed uint64) bayes.Prediction {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := bayes.Prediction{Likelihood: bayes.Gaussian{Learn: true}, Particles: particles, Rows: rows, Width: 1}
	sum := 0.0
	for range particles {
		w := rng.ExpFloat64()
		sum += w
		p.Weights = append(p.Weights, w)
		p.Own = append(p.Own, math.Log(0.5+rng.Float64()))
	}
	for j := range p.Weights {
		p.Weights[j] /= sum
	}
	for range particles * rows {
		p.Outputs = append(p.Outputs, spread*rng.NormFloat64())
	}
	return p
}

func TestPredictionQuantile(t *testing.T) {
	cases := map[string]bayes.Prediction{
		"Gaussian-like":       randomRegression(50, 20, 0.5, 1),
		"one particle":        randomRegression(1, 3, 1, 2),
		"wide":                randomRegression(7, 20, 30, 3),
		"gaps between modes":  randomRegression(5, 20, 1e5, 4),
		"far from the origin": randomRegression(5, 5, 1, 5),
	}
	far := cases["far from the origin"]
	for i := range far.Outputs {
		far.Outputs[i] += 1e6
	}
	for name, p := range cases {
		for _, level := range []float64{1e-12, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 1 - 1e-9} {
			quantiles := computetest.Must(p.Quantile(level))
			for n, q := range quantiles {
				// The distribution function at the quantile must be the level; on the tail's side, where no digits are lost. The
				// slack of a few ulps of q matters for steep distributions far from 0.
				tail := func(q float64) (sum float64) {
					for j, w := range p.Weights {
						z := (q - p.Outputs[j*p.Rows+n]) / math.Exp(p.Own[j])
						if level > 0.5 {
							z = -z
						}
						sum += w * 0.5 * math.Erfc(-z/math.Sqrt2)
					}
					return sum
				}
				want := math.Min(level, 1-level)
				slack := 8 * math.Abs(q) * 0x1p-52
				a, b := tail(q-slack), tail(q+slack)
				if math.Min(a, b) > want*(1+1e-9) || math.Max(a, b) < want*(1-1e-9) {
					t.Errorf("%s: level %v, row %d: quantile %v, where the tail is %v, want %v", name, level, n, q, tail(q), want)
				}
			}
		}
	}
}

// The distribution function at the quantile by quadrature of exp(LogDensity): two pieces of code must agree.
func TestPredictionQuantileAgainstDensity(t *testing.T) {
	p := twoParticles()
	lower, upper, err := p.Interval(0.9)
	if err != nil {
		t.Fatal(err)
	}
	for n := range p.Rows {
		density := func(y float64) float64 {
			targets := make([]float64, p.Rows)
			targets[n] = y
			d := computetest.Must(p.LogDensity(targets))
			return math.Exp(d[n])
		}
		inside := quad.Fixed(density, lower[n], upper[n], 200, nil, 0)
		below := quad.Fixed(density, -40, lower[n], 400, nil, 0)
		near(t, "mass inside and below", []float64{inside, below}, []float64{0.9, 0.05}, 1e-10)
	}
}

func TestPredictionStandardised(t *testing.T) {
	p := twoParticles()
	s := p.Standardised()
	means, err := s.ParticleMeans()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "standardised means of both particles", means, []float64{-2.25, -2, -1.75, -1.25, -2, -2.75}, 1e-15)
	if means, err = p.ParticleMeans(); err != nil {
		t.Fatal(err)
	}
	near(t, "means in the target's units", means, []float64{1, 2, 3, 5, 2, -1}, 1e-15)
	y := []float64{1, 20, 3}
	raw := computetest.Must(p.LogDensity(y))
	standardised := computetest.Must(s.LogDensity(p.StandardiseTarget(y)))
	for n := range raw {
		raw[n] += math.Log(4) // the Jacobian of y -> (y - 10)/4
	}
	near(t, "log density", standardised, raw, 1e-14)
}

func TestPredictionDeadParticle(t *testing.T) {
	p := twoParticles()
	want, err := p.LogDensity([]float64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	p.Particles, p.Weights = 3, append(p.Weights, 0)
	p.Outputs = append(p.Outputs, nan, nan, nan)
	p.Own = append(p.Own, nan)
	got := computetest.Must(p.LogDensity([]float64{1, 2, 3}))
	near(t, "log density", got, want, 0)
	mean := computetest.Must(p.Mean())
	near(t, "mean", mean, []float64{4, 2, 0}, 1e-14)
	lower, upper, err := p.Interval(0.5)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "symmetric interval", []float64{upper[1] - 2}, []float64{2 - lower[1]}, 1e-12)
}

func TestPredictionErrors(t *testing.T) {
	regression := func(change func(p *bayes.Prediction)) bayes.Prediction {
		p := twoParticles()
		change(&p)
		return p
	}
	invalid := []struct {
		name string
		p    bayes.Prediction
		want []string
	}{
		{"outputs short", regression(func(p *bayes.Prediction) { p.Outputs = p.Outputs[1:] }),
			[]string{"5 outputs", "Width is 6"}},
		{"weights short", regression(func(p *bayes.Prediction) { p.Weights = p.Weights[1:] }),
			[]string{"1 weights", "Particles is 2"}},
		{"noise short", regression(func(p *bayes.Prediction) { p.Own = nil }), []string{"0 values in Own", "2 Particles"}},
		{"no rows", regression(func(p *bayes.Prediction) { p.Rows, p.Outputs = 0, nil }), []string{"0 Rows"}},
		{"width", regression(func(p *bayes.Prediction) { p.Width = 2 }), []string{"Width is 2"}},
		{"no likelihood", regression(func(p *bayes.Prediction) { p.Likelihood = nil }), []string{"no Likelihood"}},
		{"NaN outputs", regression(func(p *bayes.Prediction) { p.Outputs[4], p.Outputs[5] = math.NaN(), math.Inf(1) }),
			[]string{"2 of 6 outputs", "NaN", "particle 1", "row 1"}},
		{"negative weight", regression(func(p *bayes.Prediction) { p.Weights = []float64{1.5, -0.5} }),
			[]string{"particle 1", "-0.5"}},
		{"NaN weight", regression(func(p *bayes.Prediction) { p.Weights[0] = math.NaN() }), []string{"particle 0", "NaN"}},
		{"ordered classes without their number", regression(func(p *bayes.Prediction) { p.Likelihood = bayes.Ordinal{} }),
			[]string{"Size is 0", "Width, 1", "at least 2"}},
		{"ordered classes of one", regression(func(p *bayes.Prediction) { p.Likelihood, p.Size = bayes.Ordinal{}, 1 }),
			[]string{"Size is 1", "at least 2"}},
		{"a logit for each ordered class", regression(func(p *bayes.Prediction) {
			p.Likelihood, p.Size, p.Width = bayes.Ordinal{}, 2, 2
		}), []string{"Width is 2", "Ordinal takes 1 outputs for 2 classes"}},
		{"no cut points", regression(func(p *bayes.Prediction) { p.Likelihood, p.Size = bayes.Ordinal{}, 4 }),
			[]string{"2 values in Own", "is 6"}},
		{"weights sum", regression(func(p *bayes.Prediction) { p.Weights = []float64{0.5, 0.25} }), []string{"sum to 0.75"}},
	}
	for _, c := range invalid {
		_, density := c.p.LogDensity([]float64{1, 2, 3})
		for _, err := range []error{c.p.Validate(), density} {
			computetest.WantError(t, c.name, err, c.want...)
		}
	}

	r, c := twoParticles(), threeClasses()
	failing := map[string]func() error{
		"Mean is for regression":                func() error { _, err := c.Mean(); return err },
		"StdDev is for regression":              func() error { _, err := c.StdDev(); return err },
		"EpistemicStdDev is for regression":     func() error { _, err := c.EpistemicStdDev(); return err },
		"Quantile is for regression":            func() error { _, err := c.Quantile(0.5); return err },
		"Interval is for regression":            func() error { _, _, err := c.Interval(0.5); return err },
		"Probabilities is for classification":   func() error { _, err := r.Probabilities(); return err },
		"Labels is for classification":          func() error { _, err := r.Labels(); return err },
		"level is 1: it must":                   func() error { _, err := r.Quantile(1); return err },
		"level is 0: it must":                   func() error { _, _, err := r.Interval(0); return err },
		"level is NaN: it must":                 func() error { _, _, err := r.Interval(math.NaN()); return err },
		"y has 2 values, but the":               func() error { _, err := r.LogDensity([]float64{1, 2}); return err },
		"y of row 1 is NaN":                     func() error { return r.ValidateTarget([]float64{1, math.NaN(), 3}) },
		"y of row 1 is 3: it must be the index": func() error { _, err := c.LogDensity([]float64{1, 3}); return err },
		"y of row 0 is -1":                      func() error { return c.ValidateTarget([]float64{-1, 2}) },
		"y of row 0 is 0.5":                     func() error { return c.ValidateTarget([]float64{0.5, 2}) },
	}
	for want, call := range failing {
		computetest.WantError(t, "a call", call(), want)
	}
}

// Counts so large that not all whole numbers are there have quantiles too, and a mean that overflows is no number that
// a prediction may have.
func TestHugeCounts(t *testing.T) {
	for name, likelihood := range map[string]bayes.Likelihood{
		"Poisson": bayes.Poisson{}, "negative binomial": bayes.NegativeBinomial{},
	} {
		for _, f := range []float64{20, 37, 40, 60} {
			p := bayes.Prediction{Likelihood: likelihood, Outputs: []float64{f, f + .01}, Particles: 2, Rows: 1, Width: 1,
				Weights: []float64{.5, .5}, Own: make([]float64, 2*len(likelihood.Parameters(1)))}
			q, err := p.Quantile(.5)
			if err != nil || name == "Poisson" && math.Abs(q[0]/math.Exp(f)-1) > .02 {
				t.Errorf("%s, exp %v: median %v, %v", name, f, q, err)
			}
		}
	}
	p := bayes.Prediction{Likelihood: bayes.Poisson{}, Outputs: []float64{1, 1000}, Particles: 2, Rows: 1, Width: 1,
		Weights: []float64{.5, .5}}
	if mean, err := p.Mean(); err == nil || !strings.Contains(err.Error(), "particle 1 at row 0 is +Inf") {
		t.Errorf("a mean that overflows: %v, %v", mean, err)
	}
	want := math.Log(.5) + distuv.Poisson{Lambda: math.E}.LogProb(3) // the other particle's part of the mixture
	if density, err := p.LogDensity([]float64{3}); err != nil || !(math.Abs(density[0]-want) <= 1e-12) {
		t.Errorf("a mean that overflows: log-density %v, %v, want %v", density, err, want)
	}
}

func negativeBinomial(mean, size float64) bayes.Distribution {
	return bayes.NegativeBinomial{}.Predictive([]float64{math.Log(mean)}, []float64{math.Log(size)}, 0)
}

// The log-probability of a negative binomial count must be right for every size, up to where it is a Poisson count. The
// reference takes Gamma(y+r)/Gamma(r) as the product r (r+1) ... (r+y-1).
func TestNegativeBinomialOfAnySize(t *testing.T) {
	for _, size := range []float64{.3, 2, 15.9, 16, 40, 1e4, 1e8, 1e12, 1e15} {
		for _, mean := range []float64{.5, 3, 200} {
			for _, y := range []float64{0, 1, 4, 170, 900} {
				factorial, _ := math.Lgamma(y + 1)
				want := y*math.Log(mean) - (y+size)*math.Log1p(mean/size) - factorial
				for i := range int(y) {
					want += math.Log1p(float64(i) / size)
				}
				got := negativeBinomial(mean, size).LogProb(y)
				if !(math.Abs(got-want) <= 1e-10*max(1, math.Abs(want))) {
					t.Errorf("size %v, mean %v, y %v: log-probability %v, want %v", size, mean, y, got, want)
				}
			}
		}
	}
}

// noMean is Cauchy noise, a likelihood of a user's own.
type noMean struct{ bayes.Gaussian }

func (noMean) Predictive(outputs, own []float64, k int) bayes.Distribution {
	return cauchyNoise{distuv.StudentsT{Mu: outputs[k], Sigma: math.Exp(own[k]), Nu: 1}}
}

type cauchyNoise struct{ distuv.StudentsT }

func (cauchyNoise) Mean() float64 { return math.NaN() }

// A distribution without a mean has quantiles: what needs the mean is an error.
func TestNoMean(t *testing.T) {
	p := twoParticles()
	p.Likelihood = noMean{bayes.Gaussian{Learn: true}}
	_, noMean := p.Mean()
	_, noStdDev := p.StdDev()
	_, noParticleMeans := p.ParticleMeans()
	for method, err := range map[string]error{"Mean": noMean, "StdDev": noStdDev, "ParticleMeans": noParticleMeans} {
		computetest.WantError(t, method, err, "Prediction."+method+": the mean of particle 0 at row 0 is NaN")
	}
	cauchy := func(y, m, s float64) float64 { return 0.5 + math.Atan((y-m)/s)/math.Pi }
	median := computetest.Must(p.Quantile(0.5))
	for n, centres := range [][2]float64{{1, 5}, {2, 2}, {3, -1}} {
		if at := 0.25*cauchy(median[n], centres[0], 1) + 0.75*cauchy(median[n], centres[1], 2); math.Abs(at-0.5) > 1e-9 {
			t.Errorf("row %d: P(Y <= median) = %v", n, at)
		}
	}
}

// The distribution function of a negative binomial of any size, up to the Poisson limit, is the sum of the
// probabilities.
func TestNegativeBinomialSums(t *testing.T) {
	for _, mean := range []float64{.1, 3, 1000} {
		for _, size := range []float64{1e2, 1e5, 1.1e5, 1e6, 1e7, 1e8, 1e10, 1e12, 1e14, 1e16, 1e20, 1e300} {
			d := negativeBinomial(mean, size)
			sum, last := 0.0, math.Floor(mean+6*math.Sqrt(d.Variance()))
			for y := range int(last) + 1 {
				sum += math.Exp(d.LogProb(float64(y)))
				below, above := d.CDF(float64(y)), d.Survival(float64(y))
				if !(math.Abs(below-sum) < 1e-8 && math.Abs(above-(1-sum)) < 1e-8) {
					t.Fatalf("mean %v, size %v: at %d %v is below and %v above, the probabilities sum to %v", mean, size, y,
						below, above, sum)
				}
			}
			if at := d.Quantile(.9); !(d.CDF(at) >= .9 && d.CDF(at-1) < .9) || at > last {
				t.Errorf("mean %v, size %v: the quantile of 90%% is %v", mean, size, at)
			}
		}
	}
}
