package mcmc

import (
	"cmp"
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/train"

	. "github.com/gomlx/gomlx/core/graph"
)

// checkClimb returns an error that names what is wrong.
func checkClimb(c *density.Climb) error {
	if c == nil {
		return nil
	}
	rate := c.Rate
	return limits.Fill("mcmc: Problem.Climb", limits.Float("Rate", &rate, .1).Positive())
}

// The state's entries of a climb beside startName: Adam's moments.
const (
	climbMean   = "climb mean"
	climbSquare = "climb square"
)

// climber is Adam with a mean of squared gradients over some twenty steps. Gradients are thousands of times larger at
// the start of a climb than at its end: with the usual 0.999 the steps would stay as short as they are at the start.
var climber = train.Adam{Beta2: 0.95}

// drawStep draws where the climb begins. Input: its key.
func (m *moves) drawStep(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	phi := m.initial(random.FromKey(inputs[0]), nil)
	none := ZerosLike(phi)
	return compute.Nodes{startName: phi, climbMean: none, climbSquare: none}, ConstAs(phi, []float64{0})
}

// climbStep is one step uphill by Adam. A chain whose density or gradient is not finite instead goes half the way to 0,
// around which draws from a prior lie. Inputs: the step's key, its number counted from 1, the rate, and those of the
// problem.
func (m *moves) climbStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	phi := nodes[startName]
	rng := random.FromKey(inputs[0])
	density, gradient := density.ByMiniBatch(rng, m.target(nodes, inputs[3:])).Gradient(phi)
	moments := train.Moments{Mean: nodes[climbMean], Square: nodes[climbSquare]}
	step, rate := ConvertDType(inputs[1], m.dtype), ConvertDType(inputs[2], m.dtype)
	next, moments, moved := climber.AscendFinite(IsFinite(density), phi, gradient, moments, step, rate)
	next = Choose(moved, next, MulScalar(phi, 0.5))
	return compute.Nodes{startName: next, climbMean: moments.Mean, climbSquare: moments.Square},
		ConstAs(phi, []float64{0})
}

// climbUp draws the points where the chains begin, and lets them climb from there.
func (r *sampling) climbUp(ctx context.Context) error {
	key := random.KeyOf(r.Seed)
	if _, err := r.moves.draw.Run(r.state, key.Named("initial").Words()); err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	steps := r.problem.ClimbSteps()
	schedule := train.Exponential(cmp.Or(r.problem.Climb.Rate, 0.1), 0.01, steps)
	for step := range steps {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("mcmc: cancelled while the chains climbed to where they begin: %w", err)
		}
		number := uint32(step + 1)
		inputs := []any{key.Named("climb").At(number).Words(), number, schedule.At(step)}
		own, err := climbInputs(ctx, r.problem, step)
		if err != nil {
			return fmt.Errorf("mcmc: step %d uphill could not be made: %w", step+1, err)
		}
		if _, err := r.moves.climb.Run(r.state, append(inputs, own...)...); err != nil {
			return fmt.Errorf("mcmc: step %d uphill, before the first move: %w", step+1, err)
		}
	}
	return nil
}

// climbInputs returns a problem's inputs for a step uphill.
func climbInputs(ctx context.Context, p density.Problem, step int) ([]any, error) {
	switch {
	case p.Inputs != nil:
		return p.Inputs(step), nil
	case p.HostInputs != nil && p.HostInputs.OfMove:
		return p.HostInputs.Inputs(ctx, step, nil)
	}
	return blankInputs(p), nil
}
