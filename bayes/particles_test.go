package bayes_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
)

// weighted is a posterior of particles 0, 1, 2, ... (their first coordinate) with the given weights, chains and
// evidence.
func weighted(t *testing.T, weights []float64, chains int, evidence bayes.Evidence) *bayes.Posterior {
	t.Helper()
	bound, err := bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}.Bind(features, 1)
	if err != nil {
		t.Fatal(err)
	}
	phi := make([]float64, len(weights)*bound.D)
	logWeights := make([]float64, len(weights))
	for j, w := range weights {
		phi[j*bound.D], logWeights[j] = float64(j), math.Log(w)
		phi[j*bound.D+1] = evidence.Value // a run of another evidence has other particles
	}
	return remade(t, bound, bayes.Draws{
		Phi: compute.Floats(compute.Float32, phi, len(weights), bound.D), LogWeights: logWeights, Chains: chains,
		Evidence: evidence,
	}, bayes.Origin{Provenance: bayes.Provenance{Algorithm: "by hand", DataHash: "abc"}})
}

// holds checks the particles of a posterior, by their first coordinate, their weights and their chains.
func holds(t *testing.T, what string, p *bayes.Posterior, err error, particles, weights []float64, chains int) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	values, _, err := p.Parameter("layer1/weights")
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for j := 0; j < len(values); j += len(values) / p.Particles() {
		got = append(got, values[j])
	}
	if !slices.Equal(got, particles) || p.Chains() != chains {
		t.Errorf("%s: particles %v of %d chains, want %v of %d", what, got, p.Chains(), particles, chains)
	}
	computetest.Near(t, what+": weights", p.LogWeights().Weights(), weights, 1e-12)
}

func TestPrune(t *testing.T) {
	p := weighted(t, []float64{.1, 0, .5, .05, .35}, 0, bayes.Evidence{})
	pruned, err := p.Prune(0)
	holds(t, "weight 0", pruned, err, []float64{0, 2, 3, 4}, []float64{.1, .5, .05, .35}, 0)
	pruned, err = p.Prune(.1501)
	holds(t, "15 %", pruned, err, []float64{2, 4}, []float64{.5 / .85, .35 / .85}, 0)
	pruned, err = p.Prune(.999)
	holds(t, "all but one", pruned, err, []float64{2}, []float64{1}, 0)
	for _, mass := range []float64{-1, 1, math.NaN()} {
		if _, err := p.Prune(mass); err == nil || !strings.Contains(err.Error(), "mass of") {
			t.Errorf("a mass of %v: error %v", mass, err)
		}
	}
	chained := weighted(t, []float64{.25, .25, .25, .25}, 2, bayes.Evidence{})
	if pruned, err = chained.Prune(.1); err != nil || pruned.Chains() != 2 {
		t.Errorf("nothing to drop: %d chains, %v", pruned.Chains(), err)
	}
}

func TestThin(t *testing.T) {
	equal := slices.Repeat([]float64{1. / 10}, 10)
	thinned, err := weighted(t, equal, 2, bayes.Evidence{Value: -3, StdErr: .1}).Thin(2)
	holds(t, "two chains", thinned, err, []float64{0, 2, 4, 5, 7, 9}, slices.Repeat([]float64{1. / 6}, 6), 2)
	if e := thinned.Evidence(); e != (bayes.Evidence{Value: -3, StdErr: .1}) {
		t.Errorf("evidence %v", e)
	}
	thinned, err = weighted(t, []float64{.1, .2, .3, .4}, 0, bayes.Evidence{}).Thin(3)
	holds(t, "no chains", thinned, err, []float64{0, 3}, []float64{.2, .8}, 0)
	for _, every := range []int{0, 6} {
		if _, err := weighted(t, equal, 2, bayes.Evidence{}).Thin(every); err == nil ||
			!strings.Contains(err.Error(), "of 5 draws") {
			t.Errorf("every %d: error %v", every, err)
		}
	}
}

// Systematic resampling draws a particle n w_j times, rounded up or down, and n w_j times in the mean.
func TestResample(t *testing.T) {
	weights := []float64{.13, 0, .5, .37, 0}
	p := weighted(t, weights, 0, bayes.Evidence{})
	const n, seeds = 10, 4000
	counts := make([]float64, len(weights))
	for seed := range uint64(seeds) {
		drawn, err := p.Resample(n, seed)
		if err != nil {
			t.Fatal(err)
		}
		own := make([]int, len(weights))
		values, _, err := drawn.Parameter("layer1/weights")
		if err != nil {
			t.Fatal(err)
		}
		for j := 0; j < len(values); j += len(values) / n {
			own[int(values[j])]++
		}
		for j, c := range own {
			if expected := n * weights[j]; float64(c) < math.Floor(expected) || float64(c) > math.Ceil(expected) {
				t.Fatalf("particle %d of weight %v is drawn %d times of %d", j, weights[j], c, n)
			}
			counts[j] += float64(c) / seeds
		}
		if seed == 0 {
			computetest.Near(t, "weights", drawn.LogWeights().Weights(), slices.Repeat([]float64{.1}, n), 1e-12)
		}
	}
	for j, w := range weights { // a count varies by a half at most
		if math.Abs(counts[j]-n*w) > 5*.5/math.Sqrt(seeds) {
			t.Errorf("particle %d is drawn %v times in the mean, want %v", j, counts[j], n*w)
		}
	}
	if _, err := p.Resample(0, 1); err == nil || !strings.Contains(err.Error(), "0 particles") {
		t.Errorf("no particles: error %v", err)
	}
}

// Resampled chains stay chains, each with equally many of its draws in their order.
func TestResampleChains(t *testing.T) {
	equal := slices.Repeat([]float64{1. / 10}, 10)
	p := weighted(t, equal, 2, bayes.Evidence{})
	for seed := range uint64(20) {
		drawn, err := p.Resample(4, seed)
		if err != nil {
			t.Fatal(err)
		}
		values, _, err := drawn.Parameter("layer1/weights")
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for j := 0; j < len(values); j += len(values) / 4 {
			got = append(got, values[j])
		}
		// Every 5/2-th draw of each chain.
		if drawn.Chains() != 2 || got[1] < got[0]+2 || got[1] > 4 || got[2] != got[0]+5 || got[3] != got[1]+5 {
			t.Errorf("seed %d: draws %v of %d chains", seed, got, drawn.Chains())
		}
	}
	same, err := p.Resample(10, 1)
	holds(t, "to as many", same, err, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, equal, 2)
	if _, err := p.Resample(5, 1); err == nil || !strings.Contains(err.Error(), "a multiple of 2, such as 6") {
		t.Errorf("to 5 of 2 chains: error %v", err)
	}
	unequal := weighted(t, []float64{.2, .2, .3, .3}, 2, bayes.Evidence{})
	if _, err := unequal.Resample(4, 1); err == nil || !strings.Contains(err.Error(), "chain 0 has the weight 0.4") {
		t.Errorf("chains of unequal weight: error %v", err)
	}
	if pruned, err := weighted(t, []float64{0, .25, .25, .25, 0, .25}, 2, bayes.Evidence{}).Prune(0); err != nil ||
		pruned.Chains() != 2 {
		t.Errorf("a draw less of each chain: %d chains, %v", pruned.Chains(), err)
	}
	if pruned, err := weighted(t, []float64{0, 0, .25, .25, .25, .25}, 2, bayes.Evidence{}).Prune(0); err != nil ||
		pruned.Chains() != 0 {
		t.Errorf("two draws less of one chain: %d chains, %v", pruned.Chains(), err)
	}
}

// Runs that are joined in two steps count as much as in one, also after a file; the same run is found within others.
func TestJoinNested(t *testing.T) {
	a := weighted(t, []float64{.25, .75}, 0, bayes.Evidence{Value: -100, StdErr: .1})
	b := weighted(t, []float64{.5, .5}, 0, bayes.Evidence{Value: -100 + math.Log(3), StdErr: .2})
	c := weighted(t, []float64{.4, .6}, 0, bayes.Evidence{Value: -100 + math.Log(2), StdErr: .3})
	two, err := bayes.Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "two")
	if err := two.Save(folder); err != nil {
		t.Fatal(err)
	}
	loaded, err := bayes.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []*bayes.Posterior{two, loaded} {
		three, err := bayes.Join(part, c)
		holds(t, "three runs", three, err, []float64{0, 1, 0, 1, 0, 1},
			[]float64{.25 / 6, .75 / 6, 1.5 / 6, 1.5 / 6, .8 / 6, 1.2 / 6}, 0)
		// Z = (1 + 3 + 2)/3 e^-100, with a standard error of sqrt(.1^2 + (3*.2)^2 + (2*.3)^2)/3 e^-100.
		want := bayes.Evidence{Value: -100 + math.Log(2), StdErr: math.Sqrt(.01+.36+.36) / 6}
		if e := three.Evidence(); math.Abs(e.Value-want.Value) > 1e-12 || math.Abs(e.StdErr-want.StdErr) > 1e-12 {
			t.Errorf("evidence %v, want %v", e, want)
		}
		if from := three.Provenance(); from.Runs != 3 || from.Algorithm != "3 runs joined, the first by hand" {
			t.Errorf("%d runs: %q", from.Runs, from.Algorithm)
		}
		for _, again := range []*bayes.Posterior{a, b} {
			if _, err := bayes.Join(part, again); err == nil || !strings.Contains(err.Error(), "are of the same run") {
				t.Errorf("a run that is joined already: error %v", err)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	a := weighted(t, []float64{.25, .75}, 0, bayes.Evidence{Value: -100, StdErr: .1})
	b := weighted(t, []float64{.5, .5}, 0, bayes.Evidence{Value: -100 + math.Log(3), StdErr: .2})
	joined, err := bayes.Join(a, b)
	holds(t, "by evidence", joined, err, []float64{0, 1, 0, 1}, []float64{.25 / 4, .75 / 4, 1.5 / 4, 1.5 / 4}, 0)
	// Z = (1 + 3)/2 e^-100, with a standard error of sqrt(.1^2 + (3*.2)^2)/2 e^-100.
	want := bayes.Evidence{Value: -100 + math.Log(2), StdErr: math.Hypot(.1, .6) / 4}
	if e := joined.Evidence(); math.Abs(e.Value-want.Value) > 1e-12 || math.Abs(e.StdErr-want.StdErr) > 1e-12 {
		t.Errorf("evidence %v, want %v", e, want)
	}
	if err := joined.Save(filepath.Join(t.TempDir(), "joined")); err != nil {
		t.Error(err)
	}

	chains := weighted(t, slices.Repeat([]float64{.25}, 4), 2, bayes.Evidence{})
	other := weighted(t, slices.Repeat([]float64{.5}, 2), 1, bayes.Evidence{})
	joined, err = bayes.JoinWeighted([]float64{2, 1}, chains, other)
	holds(t, "chains", joined, err, []float64{0, 1, 2, 3, 0, 1}, slices.Repeat([]float64{1. / 6}, 6), 3)
	joined, err = bayes.JoinWeighted([]float64{1, 1}, chains, other)
	holds(t, "chains of other weight", joined, err, []float64{0, 1, 2, 3, 0, 1},
		[]float64{.125, .125, .125, .125, .25, .25}, 0)

	elsewhere, err := a.Draws()
	if err != nil {
		t.Fatal(err)
	}
	origin := a.Origin()
	origin.Provenance.DataHash = "def"
	otherData := remade(t, a.Bound(), elsewhere, origin)
	origin.Target = dataset.Scaler{Mean: []float64{3}, StdDev: []float64{2}}
	otherScale := remade(t, a.Bound(), elsewhere, origin)
	origin = a.Origin()
	for i := range features {
		origin.FeatureNames = append(origin.FeatureNames, fmt.Sprint("column ", i))
	}
	order := remade(t, a.Bound(), elsewhere, origin)
	slices.Reverse(origin.FeatureNames)
	otherOrder := remade(t, a.Bound(), elsewhere, origin)
	if _, err := bayes.JoinWeighted([]float64{1, 1}, a, otherOrder); err != nil {
		t.Errorf("where one has no names: %v", err)
	}
	shared := newPosterior(t, predicted[0].model, 1, 2, compute.Float32)
	for what, c := range map[string]struct {
		make func() (*bayes.Posterior, error)
		says string
	}{
		"no evidence": {func() (*bayes.Posterior, error) { return bayes.Join(a, chains) }, "JoinWeighted"},
		"another model": {func() (*bayes.Posterior, error) { return bayes.JoinWeighted([]float64{1, 1}, a, shared) },
			"its model"},
		"other data":   {func() (*bayes.Posterior, error) { return bayes.Join(a, otherData) }, "cannot be compared"},
		"the same run": {func() (*bayes.Posterior, error) { return bayes.Join(b, a, b) }, "posteriors 0 and 2"},
		"another scale": {func() (*bayes.Posterior, error) { return bayes.JoinWeighted([]float64{1, 1}, a, otherScale) },
			"scaler of the target"},
		"another order": {func() (*bayes.Posterior, error) { return bayes.JoinWeighted([]float64{1, 1}, order, otherOrder) },
			"order of features"},
		"a weight below": {func() (*bayes.Posterior, error) { return bayes.JoinWeighted([]float64{1, -1}, a, b) }, "-1"},
		"a weight less": {func() (*bayes.Posterior, error) { return bayes.JoinWeighted([]float64{1}, a, b) },
			"1 weights for 2"},
		"nothing to join": {func() (*bayes.Posterior, error) { return bayes.Join() }, "no posteriors"},
		"nil":             {func() (*bayes.Posterior, error) { return bayes.Join(a, nil) }, "nil"},
	} {
		if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", what, err, c.says)
		}
	}
}
