package mcmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// ErrNoMode says that no mode was found: at the place where a search begins or has ended, the log-density or its
// derivatives are not finite, the gradient is not small, or the density is flat.
var ErrNoMode = errors.New("mcmc: no mode was found")

// ModeSettings are the settings of FindMode. The zero value works.
type ModeSettings struct {
	Start []float64 // [D]; default: the first row of Problem.Start, else a draw of Problem.Initial
	Seed  uint64    // of that draw
	// Iterations is the largest number of iterations of L-BFGS; default 2000.
	Iterations int
	Engine     *compute.Engine // default compute.Default
}

// FindMode climbs to a local maximum of a problem's log-density, by L-BFGS in float64 (Nocedal 1980), and returns it,
// [D]. It ends where the log-density no longer rises, or after ModeSettings.Iterations, and does not itself say whether
// this is a mode: NewWhitening does, by the gradient in units of the posterior's standard deviations. The error wraps
// ErrNoMode if the search begins where the log-density or its gradient is not finite.
func FindMode(ctx context.Context, problem SplitProblem, s ModeSettings) ([]float64, error) {
	p, err := newPlaces(ctx, s.Engine, problem)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.climb(problem.Problem, s)
}

// start is where the search begins.
func (p *places) start(problem density.Problem, s ModeSettings) ([]float64, error) {
	switch {
	case len(s.Start) == p.dim:
		return s.Start, nil
	case len(s.Start) != 0:
		return nil, fmt.Errorf("mcmc: ModeSettings.Start has %d numbers: the problem's dimension is %d", len(s.Start), p.dim)
	case problem.Start != nil:
		all, err := compute.Float64s(problem.Start)
		if err != nil || len(all) < p.dim {
			return nil, fmt.Errorf("mcmc: Problem.Start has shape %s: it must be [J, %d] %w", problem.Start.Shape(), p.dim, err)
		}
		return all[:p.dim], nil
	}
	engine, err := s.Engine.Or()
	if err != nil {
		return nil, err
	}
	m := &moves{problem: problem, chains: 1, dtype: compute.Float64}
	program, err := compute.NewProgram(engine, "mcmc initial", nil, nil,
		func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			return nil, Reshape(m.initial(random.FromKey(inputs[0]), nil), p.dim)
		})
	if err != nil {
		return nil, err
	}
	defer program.Close()
	state := compute.NewState(engine)
	defer state.Close()
	return program.Run(state, random.KeyOf(s.Seed).Named("initial").Words())
}

// climb goes from the start to a local maximum.
func (p *places) climb(problem density.Problem, s ModeSettings) ([]float64, error) {
	at, err := p.start(problem, s)
	if err != nil {
		return nil, err
	}
	var failed error
	known := struct { // the last place, whose value and gradient L-BFGS asks for separately
		at, gradient []float64
		value        float64
	}{}
	evaluate := func(x []float64) {
		if known.at != nil && floats.Equal(known.at, x) {
			return
		}
		values, gradient, err := p.gradients(x)
		if err != nil {
			failed = cmp.Or(failed, err)
			values, gradient = []float64{math.Inf(-1)}, make([]float64, p.dim)
		}
		floats.Scale(-1, gradient)
		known.at, known.value, known.gradient = slices.Clone(x), -values[0], gradient
		if math.IsNaN(known.value) {
			known.value = math.Inf(1)
		}
	}
	evaluate(at)
	if failed != nil {
		return nil, failed
	}
	if !finite(known.value) || !finite(floats.Sum(known.gradient)) {
		return nil, fmt.Errorf("%w: the search begins where the log-density is %v or its gradient is not finite", ErrNoMode,
			-known.value)
	}
	best, lowest := slices.Clone(at), known.value
	// A line search that finds nothing lower ends with an error where rounding hides the slope, as at a mode: NewWhitening
	// judges the place.
	_, _ = optimize.Minimize(optimize.Problem{
		Func: func(x []float64) float64 {
			evaluate(x)
			if known.value < lowest {
				best, lowest = slices.Clone(x), known.value
			}
			return known.value
		},
		Grad:   func(gradient, x []float64) { evaluate(x); copy(gradient, known.gradient) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, failed },
	}, at, &optimize.Settings{
		MajorIterations: cmp.Or(s.Iterations, 2000), GradientThreshold: 1e-9,
		Converger: &optimize.FunctionConverge{Absolute: 1e-9, Relative: 1e-15, Iterations: 20},
	}, &optimize.LBFGS{Store: 30})
	if failed != nil {
		return nil, failed
	}
	return best, nil
}
