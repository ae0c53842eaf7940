package mcmc

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// normalAt is the density of N(mean, sd^2) in each coordinate.
func normalAt(mean, sd float64) density.Func {
	return func(phi *Node) *Node {
		return MulScalar(ReduceSum(Square(DivScalar(AddScalar(phi, -mean), sd)), 1), -.5)
	}
}

// surrogated is a target with its cheap one.
type surrogated struct {
	density.Target
	cheap density.Target
}

func (s surrogated) Surrogate() density.Target { return s.cheap }

func delayedProblem(target density.Target) density.Problem {
	return density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target { return target }}
}

// What each stage evaluates is counted: of a hundred transitions with an inner one of two steps each, 100 log-densities
// of the target and 200 gradients of the surrogate.
func TestDelayedCounts(t *testing.T) {
	kernel := DelayedAcceptance{Inner: HMC{StepSize: .6, Steps: 2}, Share: .01}
	problem := delayedProblem(surrogated{normalAt(0, 1), normalAt(.2, 1.2)})
	_, result := sample(t, problem, Chains{Kernel: kernel, Chains: 2, Draws: 100, WarmUp: 10},
		run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	want := Evaluations{Full: 200, PartialGradients: 400, PartialShare: .01}
	if got := result.Evaluations; got != want {
		t.Errorf("evaluations: %+v, want %+v", got, want)
	}
	if got := result.Evaluations.Forwards(); math.Abs(got-212) > 1e-9 {
		t.Errorf("%v forwards, want 200 and 12", got)
	}
	for _, c := range result.Stats {
		if c.Acceptance < .5 || c.Extra["inner acceptance"] < .5 || c.Extra["second-stage acceptance"] < c.Acceptance {
			t.Errorf("acceptance %.3f, of the stages %v", c.Acceptance, c.Extra)
		}
	}
	plain := Chains{Chains: 2, Draws: 50, WarmUp: NoWarmUp}
	for kernel, want := range map[Kernel]Evaluations{
		RandomWalkMetropolis{StepSize: 1}: {Full: 100}, HMC{StepSize: .5, Steps: 3}: {FullGradients: 300},
		MALA{StepSize: .5}:       {FullGradients: 100},
		SGLD{StepSize: .1}:       {PartialGradients: 100, PartialShare: .25},
		SGHMC{LearningRate: .01}: {PartialGradients: 100, PartialShare: .25},
	} {
		problem := delayedProblem(normalAt(0, 1))
		problem.BatchShare = want.PartialShare
		if _, r := sample(t, problem, with(plain, kernel),
			run.Settings{Engine: computetest.Go(t)}); r.Evaluations != want {
			t.Errorf("%T: %+v, want %+v", kernel, r.Evaluations, want)
		}
	}
}

// A second stage that never accepts ends the run, and the error has the numbers of both stages.
func TestDelayedNeverAccepts(t *testing.T) {
	kernel := DelayedAcceptance{Inner: RandomWalkMetropolis{StepSize: 2}}
	problem := delayedProblem(surrogated{normalAt(0, .001), normalAt(300, 1)})
	problem.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
		return Zeros(rng.Graph(), shapes.Make(dtype, chains, 2))
	}
	_, err := fit.Sample(t.Context(), problem, Chains{Kernel: kernel, Chains: 4, Draws: 1000, WarmUp: NoWarmUp},
		run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	const says = "the target refused all ends, at a mean log-ratio of -"
	if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
}

func TestDelayedBadInput(t *testing.T) {
	for want, kernel := range map[string]DelayedAcceptance{
		"Inner is nil":                                             {},
		"Share is 1.5":                                             {Inner: MALA{StepSize: 1}, Share: 1.5},
		"MALA.StepSize is 0":                                       {Inner: MALA{}},
		"is mcmc.SGHMC, which does not say":                        {Inner: SGHMC{LearningRate: .1}},
		"is mcmc.OrnsteinUhlenbeck, which does":                    {Inner: OrnsteinUhlenbeck{}},
		"mcmc.NUTS with too long trajectories":                     {Inner: NUTS{StepSize: .1}},
		"mcmc.HMC with too long trajectories":                      {Inner: HMC{StepSize: .1, Steps: 1025}},
		"no cheap target: give the target, density.Func, a method": {Inner: MALA{StepSize: .1}},
	} {
		_, err := fit.Sample(t.Context(), delayedProblem(normalAt(0, 1)),
			Chains{Kernel: kernel, Chains: 2, Draws: 5, WarmUp: 5}, run.Settings{Engine: computetest.Go(t)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", kernel, err, want)
		}
	}
}

// A cheap target whose log-density is not one number for each chain is an error that says so: one number for all of
// them would decide on each chain by the others.
func TestShapesOfCheapTargets(t *testing.T) {
	engine := computetest.Go(t)
	right := normalAt(0, 1)
	for name, c := range map[string]struct {
		cheap density.Func
		shape string
	}{
		"for all":  {func(phi *Node) *Node { return ReduceAllSum(right(phi)) }, "(Float64)"},
		"of one":   {func(phi *Node) *Node { return Reshape(ReduceAllSum(right(phi)), 1) }, "(Float64)[1]"},
		"a column": {func(phi *Node) *Node { return ExpandAxes(right(phi), 1) }, "1]"},
	} {
		for _, inner := range []Kernel{RandomWalkMetropolis{StepSize: 1}, HMC{StepSize: .5, Steps: 2}} {
			_, err := fit.Sample(t.Context(), delayedProblem(surrogated{right, c.cheap}),
				Chains{Kernel: DelayedAcceptance{Inner: inner}, Chains: 4, Draws: 10, WarmUp: NoWarmUp},
				run.Settings{Engine: engine, DType: compute.Float64})
			if err == nil || !strings.Contains(err.Error(), "the target's log-density has shape (Float64)") ||
				!strings.Contains(err.Error(), c.shape+": it must be (Float64)[4]") {
				t.Errorf("%T, %s: %v", inner, name, err)
			}
		}
	}
}
