package smc

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// The step of the ladder is the largest at which the effective sample size is at least the threshold: held to a search
// on the host, to the solver's 2^-15 of an octave and what float32 does to the effective sample size.
func TestLadderStep(t *testing.T) {
	const particles = 300
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(scale float64) []float64 {
		v := make([]float64, particles)
		for i := range v {
			v[i] = scale * rng.NormFloat64()
		}
		return v
	}
	zero, weighted := make([]float64, particles), normal(.3)
	half := normal(20)
	for i := range particles / 10 {
		half[10*i] = math.Inf(-1)
	}
	lost := normal(1) // nine tenths have no likelihood: no step is small enough
	for i := range lost {
		if i%10 > 0 {
			lost[i] = math.Inf(-1)
		}
	}
	cases := []struct {
		name                string
		threshold           float64
		weights, likelihood []float64
		fixed, most, want   float64 // want 0: by the search
	}{
		{"flat", .5, zero, normal(30), 0, 1, 0},
		{"near the end", .5, zero, normal(30), 0, .01, .01},
		{"huge", .5, zero, normal(1e6), 0, 1, 0},
		{"small steps", .95, zero, normal(30), 0, .7, 0},
		{"weighted", .7, weighted, normal(5), 0, 1, 0},
		{"some lost", .5, zero, half, 0, 1, 0},
		{"most lost", .5, zero, lost, 0, 1, math.Pow(2, -64)},
		{"all alike", .5, zero, zero, 0, .3, .3},
		{"given", .5, zero, normal(30), .25, 1, .25},
	}
	var weights, likelihoods []any
	var wants []float64
	for _, c := range cases {
		w, err := bayes.NewLogWeights(c.weights)
		if err != nil {
			t.Fatal(err)
		}
		enough := func(step float64) bool {
			moved := make([]float64, particles)
			for i := range moved {
				moved[i] = w[i] + step*c.likelihood[i]
			}
			next, err := bayes.NewLogWeights(moved)
			return err == nil && next.EffectiveSampleSize() >= c.threshold*particles
		}
		low, high := 0., c.most
		for range 100 {
			if middle := (low + high) / 2; enough(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		if c.want == 0 {
			c.want = low
		}
		wants = append(wants, c.want)
		weights, likelihoods = append(weights, c.weights), append(likelihoods, c.likelihood)
	}
	engine := computetest.Go(t) // compiling takes long elsewhere
	for _, dtype := range []compute.DType{compute.Float32, compute.Float64} {
		found := computetest.Run(t, engine, func(g *Graph, args []*Node) []*Node {
			var steps []*Node
			for i, c := range cases {
				stages := &Stages{Spec: Spec{Particles: particles, Threshold: c.threshold}}
				w, _ := Normalise(ConvertDType(args[i], dtype))
				likelihood := ConvertDType(args[len(cases)+i], dtype)
				steps = append(steps, stages.step(w, likelihood, Scalar(g, compute.Float64, c.fixed),
					Scalar(g, compute.Float64, c.most)))
			}
			return steps
		}, append(slices.Clone(weights), likelihoods...)...)
		for i, c := range cases {
			if got, want := found[i][0], wants[i]; !(math.Abs(got/want-1) < 1e-4) {
				t.Errorf("%s in %s: a step of %v, want %v", c.name, dtype, got, want)
			}
		}
	}
}

// The correlations of columns, by hand: of (1, 2, 3) with (1, 3, 2), a half; none with what is the same for all; that
// of a column with itself is 1, however large what is added to it; one that is not finite counts as 0.
func TestCorrelations(t *testing.T) {
	engine := computetest.Engines(t)[0]
	out := computetest.Run(t, engine, func(_ *Graph, args []*Node) []*Node {
		return []*Node{correlations(args[0], args[1])}
	}, [][]float32{{1, 5, 1e4 + 1, 1}, {2, 5, 1e4 + 2, float32(math.Inf(-1))}, {3, 5, 1e4 + 3, -1}},
		[][]float32{{1, 1, 1e4 + 1, -1}, {3, 2, 1e4 + 2, 0}, {2, 3, 1e4 + 3, 1}})
	computetest.Near(t, "correlations", out[0], []float64{.5, 0, 1, -1}, 1e-6)
}

// The relative variance of a mean of weights .1 to .4, by hand: with four particles (.6^2 + .2^2 + .2^2 + .6^2) / 12.
// Of two waste-free chains, which have every second particle, the weights are .4 and .6: (.2^2 + .2^2) / 2.
func TestRelativeVariance(t *testing.T) {
	out := computetest.Run(t, computetest.Go(t), func(_ *Graph, args []*Node) []*Node {
		four, two := &Stages{Spec: Spec{Particles: 4, chains: 4}}, &Stages{Spec: Spec{Particles: 4, chains: 2}}
		return []*Node{four.relativeVariance(args[0]), two.relativeVariance(args[0])}
	}, []float64{.1, .2, .3, .4})
	computetest.Near(t, "relative variance", []float64{out[0][0], out[1][0]}, []float64{.8 / 12, .04}, 1e-12)
}

// Each reason to doubt a result is a warning that says what to do; a sound run has none.
func TestDoubts(t *testing.T) {
	type finished struct {
		*machine
		Trace []StepRecord
	}
	sound := func() *finished {
		m := &finished{machine: &machine{Tempered: Tempered{Particles: 1000}}}
		m.Genealogy = Genealogy{Before: 1}
		m.Trace = []StepRecord{
			{Place: .25, First: 1000, Transitions: 5, Acceptance: .8, Correlation: .1},
			{Place: 1, First: 300, Transitions: 5, Acceptance: .7, Correlation: .1},
		}
		return m
	}
	if w := sound().doubts(sound().Trace); len(w) > 0 {
		t.Errorf("a sound run warns: %q", w)
	}
	noisy := sound()
	noisy.Drift = drift{Sum: .1, Variance: .002}
	if w := noisy.doubts(noisy.Trace); len(w) > 0 {
		t.Errorf("a drift of 2.2 standard deviations warns: %q", w)
	}
	for _, c := range []struct {
		change func(m *finished)
		says   string
	}{
		{func(m *finished) { m.Trace[1].First = 7 },
			"all particles descend from few of the first ones (effectively from 7.0): the standard error of the log " +
				"evidence is unreliable; take more particles"},
		{func(m *finished) { m.WasteFree, m.Moves = 10, 1 }, "there are only 100 waste-free chains, too few for " +
			"the standard error of the log evidence: with 100 chains it comes out too small by a fifth; take more particles, " +
			"or a smaller WasteFree"},
		{func(m *finished) { m.Trace[0].Acceptance = .01 }, "moves were accepted with a mean probability of only 0.010 at " +
			"power 0.25: particles that are copies of each other hardly separate; take a smaller step size, or more moves"},
		{func(m *finished) { m.Trace[0].Correlation, m.Moves = .7, 5 }, "the moves at power 0.25 left the particles' " +
			"log prior or log-likelihood with a correlation of 0.70 to its value before them: particles that were copies of " +
			"each other are still close, and the log evidence is too low in most such runs; take more Moves, or 0, which " +
			"makes as many as it takes"},
		{func(m *finished) { m.Trace[1].Correlation = .7 },
			"the moves at power 1 left the particles' log prior or log-likelihood with a correlation of 0.70 to its value " +
				"before them: particles that were copies of each other are still close, and the log evidence is too low in " +
				"most such runs; take another kernel, or give a number of Moves above 100"},
		{func(m *finished) { m.Genealogy = Genealogy{Since: .01}; m.Drift = drift{Sum: -.2, Variance: .0009} },
			"moving the particles changed the estimate of the log evidence by -0.20 in all, more than chance explains: a " +
				"part of the posterior had too few particles before the moves; the standard error includes 0.20 for this, " +
				"and the log evidence may be off by more; take longer trajectories (HMC.Steps), more moves, or more " +
				"particles"},
		{func(m *finished) { m.Trace[0].Unmoved, m.Trace[0].Divergent = 50, 210 },
			"50 of 1000 particles never moved at power 0.25, where the others moved well (210 of 5000 trajectories " +
				"diverged): they are copies of their ancestors, probably in a region that is narrow for the step size, and " +
				"their share and the log evidence may be wrong; take more moves, or a smaller step size"},
		{func(m *finished) { m.Trace[1].Rejected = 1200 }, "1200 of 10000 proposals had a log-density or a gradient that " +
			"is not finite: check the target"},
	} {
		m := sound()
		c.change(m)
		if w := m.doubts(m.Trace); len(w) != 1 || w.Sentences()[0] != c.says {
			t.Errorf("warnings %q, want %q", w, c.says)
		}
	}
}

// Moves end where their correlation is small enough, at 100, and, from 40 on, where twice as many gained less
// than a tenth: not before, and not where they gain more, as at exp(-t/100).
func TestEnoughMoves(t *testing.T) {
	for _, c := range []struct {
		name        string
		correlation func(t float64) float64
		want        int
	}{
		{"forgets", func(t float64) float64 { return math.Exp(-t / 10) }, 24},
		{"slow", func(t float64) float64 { return math.Exp(-t / 100) }, 100},
		{"plateau", func(t float64) float64 { return .7 + .3*math.Exp(-t/5) }, 40},
		{"late plateau", func(t float64) float64 { return .2 + .8*math.Exp(-t/8) }, 80},
	} {
		m := &machine{Tempered: Tempered{Particles: 1000}}
		for m.Transition = 1; !m.enough(movement{correlation: c.correlation(float64(m.Transition))}); m.Transition++ {
		}
		if m.Transition != c.want {
			t.Errorf("%s: %d moves, want %d", c.name, m.Transition, c.want)
		}
	}
}

// Moves go on while more than a hundredth of the particles have not moved, though all together have forgotten.
func TestEnoughMovesOfAll(t *testing.T) {
	m := &machine{Tempered: Tempered{Particles: 1000}, position: position{Transition: 5}}
	for unmoved, want := range map[int]bool{0: true, 10: true, 11: false} {
		if got := m.enough(movement{correlation: .05, unmoved: unmoved}); got != want {
			t.Errorf("%d of 1000 particles have not moved: enough is %v", unmoved, got)
		}
	}
}
