package mcmc

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// A target that the host evaluates between the moves gives the draws of the same target in the graph, bit by bit, and
// the same numbers of what it took; one evaluation more is that of the start.
func TestHosted(t *testing.T) {
	const count, draws = 3, 60
	cheap := density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target { return normalAt(.2, 1.2) }}
	for _, inner := range []Kernel{HMC{StepSize: .6, Steps: 2, Jitter: .3}, RandomWalkMetropolis{StepSize: 1.5}} {
		kernel := DelayedAcceptance{Inner: inner, Share: .01}
		chains := Chains{Chains: count, Draws: draws, WarmUp: NoWarmUp}
		settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64, Seed: 4}
		_, want := sample(t, delayedProblem(surrogated{normalAt(0, .9), normalAt(.2, 1.2)}), with(chains, kernel), settings)
		evaluated := 0
		problem := Hosted(cheap, count, func(_ context.Context, phi *mat.Dense) ([]float64, error) {
			evaluated++
			var out []float64
			for j := range count {
				row := phi.RawRowView(j)
				out = append(out, -.5*((row[0]/.9)*(row[0]/.9)+(row[1]/.9)*(row[1]/.9)))
			}
			return out, nil
		})
		kernel.OnHost = true
		_, got := sample(t, problem, with(chains, kernel), settings)
		if !slices.Equal(numbers(t, got), numbers(t, want)) {
			t.Errorf("%T: other draws than of the target in the graph", inner)
		}
		if evaluated != draws+1 || got.Evaluations != want.Evaluations {
			t.Errorf("%T: %d evaluations, %+v, want %+v", inner, evaluated, got.Evaluations, want.Evaluations)
		}
		for i, c := range got.Stats {
			w := want.Stats[i]
			if c.Accepted != w.Accepted || c.Transitions != draws || c.NonFinite != 0 ||
				math.Abs(c.Acceptance-w.Acceptance) > 1e-9 {
				t.Errorf("%T, chain %d: %+v, want %+v", inner, i, c, w)
			}
			for name, v := range w.Extra {
				if name != "inner acceptance" && math.Abs(c.Extra[name]-v) > 1e-9 { // that is of the next one
					t.Errorf("%T, chain %d: %s is %v, want %v", inner, i, name, c.Extra[name], v)
				}
			}
		}
	}
}

// Where the host's log-densities are large, float32 chains compare them in float64: a difference of .3 of a million.
// A place where there is none is rejected, a start without one is an error, and so are the wrong kernels.
func TestHostedBadInput(t *testing.T) {
	cheap := density.Problem{Dim: 1, Target: func(compute.Nodes, []*Node) density.Target { return normalAt(0, 1) }}
	chains, settings := Chains{Chains: 2, Draws: 400, WarmUp: NoWarmUp}, run.Settings{Engine: computetest.Go(t)}
	kernel := DelayedAcceptance{Inner: RandomWalkMetropolis{StepSize: 2}, OnHost: true}
	half := Hosted(cheap, 2, func(_ context.Context, phi *mat.Dense) (out []float64, err error) {
		for j := range 2 {
			v := phi.At(j, 0)
			if v < 0 {
				out = append(out, math.NaN())
			} else {
				out = append(out, 1e9-v*v/2)
			}
		}
		return out, nil
	})
	half.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
		return AddScalar(MulScalar(rng.Uniform(dtype, chains, 1), .1), .5)
	}
	_, r := sample(t, half, with(chains, kernel), settings)
	mean := 0.
	for _, chain := range r.Draws.Coordinate(0) {
		for _, v := range chain {
			if v < 0 {
				t.Fatalf("a draw at %v, where the density is 0", v)
			}
			mean += v / 800
		}
	}
	// A half normal has the mean .798 and the standard deviation .603; some 100 of the 800 draws are effective.
	if math.Abs(mean-.798) > .27 || r.Stats[0].NonFinite == 0 {
		t.Errorf("mean %.3f, %+v", mean, r.Stats[0])
	}

	nowhere := Hosted(cheap, 2, func(context.Context, *mat.Dense) ([]float64, error) {
		return []float64{0, math.Inf(-1)}, nil
	})
	if _, err := fit.Sample(t.Context(), nowhere, with(chains, kernel), settings); !errors.Is(err, errStart) ||
		!strings.Contains(err.Error(), "chain 1 is -Inf") {
		t.Errorf("no density at the start: %v", err)
	}
	for want, c := range map[string]struct {
		problem density.Problem
		kernel  Kernel
	}{
		"sample a problem of mcmc.Hosted":              {cheap, kernel},
		"carries the log-density of the move before":   {half, DelayedAcceptance{Inner: kernel.Inner}},
		"take mcmc.DelayedAcceptance with OnHost":      {half, SGLD{StepSize: .01}},
		"takes new inputs at each move, but mcmc.HMC ": {half, HMC{StepSize: .1}},
	} {
		if _, err := fit.Sample(t.Context(), c.problem, with(chains, c.kernel), settings); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", c.kernel, err, want)
		}
	}
}
