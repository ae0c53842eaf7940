package surrogate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// errNoMode says that no mode was found: at the place where a search begins or has ended, the log-density or its
// derivatives are not finite, the gradient is not small, or the density is flat.
var errNoMode = errors.New("surrogate: no mode was found")

// start is where the search begins: the first row of Problem.Start, else a draw of Problem.Initial.
func (p *places) start(seed uint64) ([]float64, error) {
	problem := p.problem
	if problem.Start != nil {
		all, err := compute.Float64s(problem.Start)
		if err != nil || len(all) < p.dim {
			return nil, fmt.Errorf("surrogate: Problem.Start has shape %s: it must be [J, %d] %w",
				problem.Start.Shape(), p.dim, err)
		}
		return all[:p.dim], nil
	}
	drawn, err := graph.CallOnce(p.engine.Backend(), func(g *graph.Graph) *graph.Node {
		rng := random.New(g, seed).Named("initial")
		if problem.Initial == nil {
			return rng.Normal(compute.Float64, 1, p.dim)
		}
		return problem.Initial(rng, compute.Float64, 1)
	})
	if err != nil {
		return nil, fmt.Errorf("surrogate: where the search begins: %w", err)
	}
	return compute.Float64s(drawn)
}

// mostIterations ends a search for a mode.
const mostIterations = 20_000

// climb goes from the start to a local maximum of the log-density, [D], by L-BFGS in float64 (Nocedal 1980). It ends
// where the log-density no longer rises, or after 20 000 iterations. Whether this is a mode is checked by
// whiten, by the gradient in units of the posterior's standard deviations. The error wraps errNoMode if the search
// begins where the log-density or its gradient is not finite.
func (p *places) climb(seed uint64) ([]float64, error) {
	at, err := p.start(seed)
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
		values, gradients, err := p.gradients(x)
		gradient := make([]float64, p.dim)
		if err != nil {
			failed = cmp.Or(failed, err)
			values = []float64{math.Inf(-1)}
		} else {
			floats.ScaleTo(gradient, -1, gradients.RawRowView(0))
		}
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
		return nil, fmt.Errorf("%w: the search begins where the log-density is %v or its gradient is not finite", errNoMode,
			-known.value)
	}
	best, lowest := slices.Clone(at), known.value
	// A line search that finds nothing lower ends with an error where rounding hides the slope, as at a mode: whiten
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
		MajorIterations: mostIterations, GradientThreshold: 1e-9,
		Converger: &optimize.FunctionConverge{Absolute: 1e-9, Relative: 1e-15, Iterations: 20},
	}, &optimize.LBFGS{Store: 30})
	if failed != nil {
		return nil, failed
	}
	return best, nil
}
