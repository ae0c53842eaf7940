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

// bringing is a target with its surrogate.
type bringing struct{ density.Target }

func (bringing) Surrogate() density.Target { return normalAt(.2, 1.2) }

func delayedProblem(target density.Target) density.Problem {
	return density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target { return target }}
}

// The target's own surrogate is taken, and what each stage evaluates is counted: of a hundred transitions of three
// inner ones of two steps each, 100 log-densities of the target and 600 gradients of the surrogate.
func TestDelayedCounts(t *testing.T) {
	kernel := DelayedAcceptance{Inner: HMC{StepSize: .6, Steps: 2}, Transitions: 3, Share: .01}
	problem := delayedProblem(bringing{normalAt(0, 1)})
	_, result := sample(t, problem, Chains{Kernel: kernel, Chains: 2, Draws: 100, WarmUp: 10},
		run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	want := Evaluations{Full: 200, PartialGradients: 1200, PartialShare: .01}
	if got := result.Evaluations; got != want {
		t.Errorf("evaluations: %+v, want %+v", got, want)
	}
	if got := result.Evaluations.Forwards(); math.Abs(got-236) > 1e-9 {
		t.Errorf("%v forwards, want 200 and 3 x 12", got)
	}
	for _, c := range result.Stats {
		if c.Acceptance < .5 || c.Extra["inner acceptance"] < .5 || c.Extra["second-stage acceptance"] < c.Acceptance {
			t.Errorf("acceptance %.3f, of the stages %v", c.Acceptance, c.Extra)
		}
	}
	plain := Chains{Chains: 2, Draws: 50, WarmUp: NoWarmUp}
	for kernel, want := range map[Kernel]Evaluations{
		RandomWalkMetropolis{StepSize: 1}: {Full: 100}, HMC{StepSize: .5, Steps: 3}: {FullGradients: 300},
		ULA{StepSize: .1}:        {FullGradients: 100},
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
	kernel := DelayedAcceptance{
		Inner: RandomWalkMetropolis{StepSize: 2}, Transitions: 4,
		Cheap: func(density.Target) density.Target { return normalAt(300, 1) },
	}
	problem := delayedProblem(normalAt(0, .001))
	problem.Initial = func(rng random.Stream, dtype compute.DType, chains int) *Node {
		return Zeros(rng.Graph(), shapes.Make(dtype, chains, 2))
	}
	_, err := fit.Sample(t.Context(), problem, Chains{Kernel: kernel, Chains: 4, Draws: 1000, WarmUp: NoWarmUp},
		run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	var stuck *StuckError
	if !errors.Is(err, ErrStuck) || !errors.As(err, &stuck) || stuck.Transitions != 1000 || stuck.Accepted != 0 ||
		!strings.Contains(err.Error(), "of 1000 ends the target refused all, at a mean log-ratio of -") {
		t.Errorf("%v", err)
	}
}

func TestDelayedBadInput(t *testing.T) {
	for want, kernel := range map[string]DelayedAcceptance{
		"Inner is nil":                          {},
		"Transitions is -1":                     {Inner: MALA{StepSize: 1}, Transitions: -1},
		"Share is 1.5":                          {Inner: MALA{StepSize: 1}, Share: 1.5},
		"MALA.StepSize is 0":                    {Inner: MALA{}},
		"is mcmc.ULA, which does not say":       {Inner: ULA{StepSize: .1}},
		"is mcmc.SGHMC, which does not say":     {Inner: SGHMC{LearningRate: .1}},
		"is mcmc.OrnsteinUhlenbeck, which does": {Inner: OrnsteinUhlenbeck{}},
		"up to 2046 moves of mcmc.NUTS":         {Inner: NUTS{StepSize: .1}, Transitions: 2},
		"no cheap target: set Cheap, or give the target, density.Func, a method": {Inner: MALA{StepSize: .1}},
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
			kernel := DelayedAcceptance{Inner: inner, Cheap: func(density.Target) density.Target { return c.cheap }}
			_, err := fit.Sample(t.Context(), delayedProblem(right),
				Chains{Kernel: kernel, Chains: 4, Draws: 10, WarmUp: NoWarmUp},
				run.Settings{Engine: engine, DType: compute.Float64})
			if err == nil || !strings.Contains(err.Error(), "cheap target: the target's log-density has shape (Float64)") ||
				!strings.Contains(err.Error(), c.shape+": it must be (Float64)[4]") {
				t.Errorf("%T, %s: %v", inner, name, err)
			}
		}
	}
}

// Evaluations of cheap targets of several shares add up to what they cost.
func TestEvaluationsPlus(t *testing.T) {
	a := Evaluations{Full: 1, Partial: 2, PartialGradients: 1, PartialShare: .1}
	b := Evaluations{FullGradients: 2, Partial: 10, PartialShare: .4}
	if sum := a.plus(b); math.Abs(sum.Forwards()-(1+6+.5+4)) > 1e-12 || sum.Partial != 12 || sum.PartialGradients != 1 {
		t.Errorf("%+v: %v forwards", sum, sum.Forwards())
	}
	if sum := (Evaluations{Full: 3}).plus(b); sum.PartialShare != .4 || sum.Forwards() != 13 {
		t.Errorf("%+v: %v forwards", sum, sum.Forwards())
	}
}
