package diag

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
)

func TestLOOAgreesWithArviZ(t *testing.T) {
	reference := load(t)
	models := map[string]LOO{}
	for _, c := range reference.LOO {
		l, err := newLOO(floats64(c.LogLikelihood), c.Rows, equalWeights(len(c.LogLikelihood)/c.Rows), 1, c.REff)
		if err != nil {
			t.Fatal(err)
		}
		if !near(l.ELPD, c.ELPD) || !near(l.StdErr, c.SE) || !near(l.Parameters, c.P) {
			t.Errorf("%s: %v ± %v with %v parameters, ArviZ says %v ± %v with %v", c.Name, l.ELPD, l.StdErr, l.Parameters,
				c.ELPD, c.SE, c.P)
		}
		for n, r := range l.Rows {
			if !near(r.ELPD, c.Each[n]) || !near(r.KHat, c.KHat[n]) {
				t.Errorf("%s, row %d: %v with k-hat %v, ArviZ says %v with %v", c.Name, n, r.ELPD, r.KHat, c.Each[n], c.KHat[n])
			}
		}
		if c.Name != "autocorrelated" { // of fewer rows
			models[c.Name] = l
		}
	}
	comparison, err := Compare(models)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := make([]float64, len(comparison)), make([]float64, len(comparison))
	for i, r := range comparison {
		c := reference.Comparison[i]
		if r.Name != c.Name || !near(r.LOO.ELPD, c.ELPD) || !near(r.LOO.StdErr, c.SE) || !near(r.Difference, c.Difference) ||
			!near(r.DifferenceStdErr, c.DSE) {
			t.Errorf("place %d: %+v, ArviZ says %+v", i, r, c)
		}
		ours[i], theirs[i] = r.Weight, float64(c.Weight)
	}
	// Their optimiser stops where the sum changes by less than 1e-6: ours must be better, and near.
	score := func(w []float64) (sum float64) {
		for n := range comparison[0].LOO.Rows {
			mixed := 0.
			for i, r := range comparison {
				mixed += w[i] * math.Exp(r.LOO.Rows[n].ELPD)
			}
			sum += math.Log(mixed)
		}
		return sum
	}
	if score(ours) < score(theirs)-1e-9 || !floats.EqualApprox(ours, theirs, 1e-3) {
		t.Errorf("weights %v of log score %v, ArviZ's are %v of %v", ours, score(ours), theirs, score(theirs))
	}
}

// Two models of which one is twice as good in some of 10 rows, and half as good in the others: weight w of the first
// maximises a log(1 + w) + b log(1 - w/2), for a rows and b = 10 - a, at w = (2 a - b)/(a + b), or at 0 or 1 where that
// lies beyond.
func TestStackingIsExact(t *testing.T) {
	for _, c := range []struct {
		better int
		want   float64
	}{{3, 0}, {6, .8}, {9, 1}, {4, .2}} {
		one, other := LOO{}, LOO{}
		for n := range 10 {
			gain := -math.Ln2
			if n < c.better {
				gain = math.Ln2
			}
			one.Rows = append(one.Rows, LOORow{ELPD: gain})
			other.Rows = append(other.Rows, LOORow{})
			one.ELPD += gain
		}
		comparison, err := Compare(map[string]LOO{"one": one, "other": other})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range comparison {
			want := c.want
			if r.Name == "other" {
				want = 1 - c.want
			}
			if math.Abs(r.Weight-want) > 1e-9 {
				t.Errorf("better in %d of 10 rows: %s has weight %.12f, want %v", c.better, r.Name, r.Weight, want)
			}
		}
	}
}

func TestLOOBadInput(t *testing.T) {
	good := slices.Repeat([]float64{-1, -2}, 30)
	for i := range good {
		good[i] += .01 * float64(i)
	}
	impossible := slices.Clone(good)
	impossible[7] = math.Inf(-1)
	few, err := bayes.NewLogWeights(append(make([]float64, 20), slices.Repeat([]float64{math.Inf(-1)}, 10)...))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error, says string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
	_, err = newLOO(good, 2, few, 1, 1)
	refused(err, "LOO of 20 draws with weight")
	_, err = newLOO(impossible, 2, equalWeights(30), 1, 1)
	refused(err, "row 1 and draw 3, -Inf")
	two, one := looOf(t, good, 2), looOf(t, good, 1)
	other := two
	two.targets, other.targets = []float64{1, 2}, []float64{1, 3}
	for says, models := range map[string]map[string]LOO{
		"with 1 models": {"a": two}, "predicts": {"a": two, "b": one}, "other targets": {"a": two, "b": other},
		"no rows": {"a": {}, "b": {}},
	} {
		_, err := Compare(models)
		refused(err, says)
	}
}

// equalWeights are the weights of n draws.
func equalWeights(n int) bayes.LogWeights {
	w, err := bayes.NewLogWeights(make([]float64, n))
	if err != nil {
		panic(err)
	}
	return w
}

// looOf is LOO of equal draws' log-likelihoods, [J, rows].
func looOf(t *testing.T, logLikelihood []float64, rows int) LOO {
	t.Helper()
	l, err := newLOO(logLikelihood, rows, equalWeights(len(logLikelihood)/rows), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Of a single row nothing tells how much the ELPD of another one would differ: no standard error is 0.
func TestLOOOfOneRow(t *testing.T) {
	models := map[string]LOO{}
	for name, slope := range map[string]float64{"a": .1, "b": .2} {
		logLikelihood := make([]float64, 400)
		for j := range logLikelihood {
			logLikelihood[j] = -1 - slope*math.Abs(math.Sin(float64(j)))
		}
		l := looOf(t, logLikelihood, 1)
		if said := strings.Join(l.Warnings, "; "); !math.IsNaN(l.StdErr) || !strings.Contains(said, "of a single row") {
			t.Errorf("%v: warns %q", l, said)
		}
		models[name] = l
	}
	comparison, err := Compare(models)
	if err != nil {
		t.Fatal(err)
	}
	if r := comparison[1]; !(r.Difference < 0) || !math.IsNaN(r.DifferenceStdErr) {
		t.Errorf("%+v", r)
	}
}

// The ESS of an autoregression with coefficient a is (1-a)/(1+a) of its draws: 1 for three rows, a third for four. Of
// likelihoods that hardly vary it is that of their logs. The mean of seven estimates from 4000 draws each has a
// standard deviation of some .02; the tolerance is five of them.
func TestLikelihoodEfficiency(t *testing.T) {
	const chains, draws, rows = 4, 1000, 7
	rng := rand.New(rand.NewPCG(3, 4))
	p := bayes.Prediction{Chains: chains, Particles: chains * draws, Rows: rows}
	for range p.Particles {
		p.Weights = append(p.Weights, 1./chains/draws)
	}
	logLikelihood := make([]float64, p.Particles*rows)
	for n := range rows {
		a := 0.
		if n >= 3 {
			a = .5
		}
		x := rng.NormFloat64()
		for j := range p.Particles {
			if x = a*x + math.Sqrt(1-a*a)*rng.NormFloat64(); j%draws == 0 { // a chain begins
				x = rng.NormFloat64()
			}
			logLikelihood[j*rows+n] = .01 * x
		}
	}
	got, err := likelihoodEfficiency(logLikelihood, p)
	if want := (3 + 4./3) / rows; err != nil || math.Abs(got-want) > .1 {
		t.Errorf("efficiency %v, %v, want %v", got, err, want)
	}
}

// Particles of weight 0 are ignored, whatever their outputs.
func TestLOOOfDeadParticles(t *testing.T) {
	const draws = 60
	p := bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: .5}, Particles: draws, Rows: 2, Width: 1}
	rng := rand.New(rand.NewPCG(3, 4))
	for range draws {
		p.Outputs = append(p.Outputs, .1*rng.NormFloat64(), 1+.1*rng.NormFloat64())
		p.Weights = append(p.Weights, 1./draws)
	}
	y := []float64{.2, .7}
	want, err := looForPrediction(p, y, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Particles += 2
	p.Outputs, p.Weights = append(p.Outputs, math.NaN(), 0, 0, math.Inf(1)), append(p.Weights, 0, 0)
	got, err := looForPrediction(p, y, 1)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.ELPD-want.ELPD) > 1e-12 || got.draws != draws {
		t.Errorf("with dead particles %v; without %v", got, want)
	}
}
