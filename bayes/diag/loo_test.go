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
		l, err := NewLOO(floats64(c.LogLikelihood), c.Rows, bayes.LogWeights{}, c.REff)
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
	t.Log("\n" + comparison.String())
	ours, theirs := make([]float64, len(comparison)), make([]float64, len(comparison))
	for i, r := range comparison {
		c := reference.Comparison[i]
		if r.Name != c.Name || !near(r.LOO.ELPD, c.ELPD) || !near(r.LOO.StdErr, c.SE) || !near(r.Difference, c.Difference) ||
			!near(r.DifferenceStdErr, c.DSE) || !near(r.Worse, c.Worse) {
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
		one, other := LOO{Draws: 1000}, LOO{Draws: 1000}
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

// Of 1000 draws of which 60 have nearly all of the weight, no more than these count.
func TestLOOWarnsOfFewEffectiveDraws(t *testing.T) {
	logWeights, logLikelihood := make([]float64, 1000), make([]float64, 1000)
	for j := range logWeights {
		logLikelihood[j] = -1 + .1*math.Sin(float64(j))
		if j >= 60 {
			logWeights[j] = -20
		}
	}
	uneven, err := bayes.NewLogWeights(logWeights)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		w    bayes.LogWeights
		want bool
	}{{uneven, true}, {bayes.LogWeights{}, false}} {
		l, err := NewLOO(logLikelihood, 1, c.w, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(l.String(), "only 60 of 1000 draws are effective"); got != c.want {
			t.Errorf("warns of 60 draws: %t, want %t: %v", got, c.want, l)
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
	for _, c := range []struct {
		values     []float64
		rows       int
		w          bayes.LogWeights
		efficiency float64
		says       string
	}{
		{good, 0, bayes.LogWeights{}, 1, "60 log-likelihoods"},
		{good, 7, bayes.LogWeights{}, 1, "60 log-likelihoods"},
		{good[:20], 2, bayes.LogWeights{}, 1, "10 draws"},
		{good[:20], 2, few, 1, "30 weights of 10 draws"},
		{good, 2, few, 1, "LOO of 20 draws with weight"},
		{impossible, 2, bayes.LogWeights{}, 1, "row 1 and draw 3, -Inf"},
		{good, 2, bayes.LogWeights{}, 0, "relative efficiency 0"},
	} {
		if _, err := NewLOO(c.values, c.rows, c.w, c.efficiency); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
	two, err := NewLOO(good, 2, bayes.LogWeights{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	one, err := NewLOO(good, 1, bayes.LogWeights{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	other := two
	two.targets, other.targets = []float64{1, 2}, []float64{1, 3}
	for says, models := range map[string]map[string]LOO{
		"with 1 models": {"a": two}, "predicts": {"a": two, "b": one}, "other targets": {"a": two, "b": other},
		"no rows": {"a": {}, "b": {}},
	} {
		if _, err := Compare(models); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
}

// Of a single row nothing tells how much the ELPD of another one would differ: no standard error is 0.
func TestLOOOfOneRow(t *testing.T) {
	models := map[string]LOO{}
	for name, slope := range map[string]float64{"a": .1, "b": .2} {
		logLikelihood := make([]float64, 400)
		for j := range logLikelihood {
			logLikelihood[j] = -1 - slope*math.Abs(math.Sin(float64(j)))
		}
		l, err := NewLOO(logLikelihood, 1, bayes.LogWeights{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(l.Warnings, "; "); !math.IsNaN(l.StdErr) || !strings.Contains(said, "of a single row") {
			t.Errorf("%v: warns %q", l, said)
		}
		models[name] = l
	}
	comparison, err := Compare(models)
	if err != nil {
		t.Fatal(err)
	}
	if r := comparison[1]; !(r.Difference < 0) || !math.IsNaN(r.DifferenceStdErr) || !math.IsNaN(r.Worse) {
		t.Errorf("%+v", r)
	}
}

// A row that one draw alone nearly excludes has the weight of that draw, and a k-hat of +Inf, which is said.
func TestLOOOfOneDraw(t *testing.T) {
	const draws, rows = 400, 3
	models := map[string]LOO{}
	for name, lone := range map[string]float64{"with": -1e4, "without": -1} {
		logLikelihood := make([]float64, draws*rows)
		for i := range logLikelihood {
			logLikelihood[i] = -1 - .1*math.Abs(math.Sin(float64(i)))
		}
		logLikelihood[7*rows+1] = lone
		l, err := NewLOO(logLikelihood, rows, bayes.LogWeights{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		models[name] = l
	}
	with, without := models["with"], models["without"]
	said := strings.Join(with.Warnings, "; ")
	if k := with.Rows[1].KHat; !math.IsInf(k, 1) || !(with.Rows[0].KHat < .7) ||
		!strings.Contains(said, "in 1 of 3 rows, worst +Inf in row 1") || len(without.Warnings) != 0 {
		t.Errorf("k-hat is %v, warns %q; of the other %q", k, said, without.Warnings)
	}
	comparison, err := Compare(models)
	if err != nil {
		t.Fatal(err)
	}
	if r := comparison[1]; r.Name != "with" || !strings.Contains(r.Note, "in 1 rows") {
		t.Errorf("%+v", r)
	}
}

// The PIT of a count is P(Y < y) + P(Y = y)/2, here by sums of the probabilities of two Poisson distributions.
func TestPITOfCounts(t *testing.T) {
	rates, weights := []float64{3, 5}, []float64{.25, .75}
	const y = 4
	want := 0.
	for j, rate := range rates {
		p := math.Exp(-rate) // P(Y = n)
		for n := range y {
			want += weights[j] * p
			p *= rate / float64(n+1)
		}
		want += weights[j] * p / 2
	}
	p := bayes.Prediction{
		Likelihood: bayes.Poisson{}, Outputs: []float64{math.Log(3), math.Log(5)}, Particles: 2, Rows: 1, Width: 1,
		Weights: weights,
	}
	if got := pitOf(p, 0, []float64{y}, weights); len(got) != 1 || math.Abs(got[0]-want) > 1e-12 {
		t.Errorf("PIT %v, want %v", got, want)
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
	if math.Abs(got.ELPD-want.ELPD) > 1e-12 || got.Draws != draws ||
		math.Abs(got.Rows[1].PIT[0]-want.Rows[1].PIT[0]) > 1e-12 {
		t.Errorf("with dead particles %v, PIT %v; without %v, PIT %v", got, got.Rows[1].PIT, want, want.Rows[1].PIT)
	}
}
