package surrogate

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"

	"github.com/gomlx/gomlx/core/tensors"
)

// posterior is the density of a job with what a mode, a whitening and a surrogate are made of. The chains evaluate
// neither.
type posterior struct {
	density.Problem
	// part, if set, is the target estimated from a part of the rows, as many as given, for surrogates: see subset. A
	// density of a user's own has none.
	part func(rows int) (subset, error)
	// blocks, if set, divides the rows into blocks, for the mode, the Hessian and the log-densities that a pilot compares.
	blocks *density.Blocks
}

// newPosterior is the density that a job samples: of a model that given all rows, with parts of them, and for many rows
// blocks of them.
func newPosterior(j *fit.Job, chains int) (posterior, error) {
	problem, err := j.Density(chains)
	if err != nil || j.Bound == nil || problem.Data["features"] == nil {
		return posterior{Problem: problem}, err
	}
	return posteriorOf(j.Engine, j.Bound, problem, chains, j.Devices), nil
}

// posteriorOf is the posterior of density.NewProblem with parts of its rows.
func posteriorOf(
	engine *compute.Engine, bound *bayes.BoundModel, problem density.Problem, chains, devices int,
) posterior {
	return posterior{
		Problem: problem,
		part: func(rows int) (subset, error) {
			return subsetOf(engine, bound, problem.Data, rows, chains, devices)
		},
		blocks: inBlocks(engine, bound, problem.Data),
	}
}

// rowsOfBlock is the number of rows of a block, whose activations stay in a processor's cache.
const rowsOfBlock = 8192

// inBlocks divides a problem's data, its features, [width, N], and y, into blocks of rows; nil for few rows.
func inBlocks(engine *compute.Engine, bound *bayes.BoundModel, data map[string]*tensors.Tensor) *density.Blocks {
	rows := data["y"].Shape().Dim(0)
	if rows < 2*rowsOfBlock {
		return nil
	}
	return density.NewBlocks(bound, rows, rowsOfBlock, func(from, count int) (map[string]*tensors.Tensor, error) {
		these := make([]int, rowsOfBlock)
		for i := range count {
			these[i] = from + i
		}
		own, err := some(engine, data["y"], 0, these)
		if err != nil {
			return nil, err
		}
		features, err := some(engine, data["features"], 1, these)
		return map[string]*tensors.Tensor{"features": features, "y": own}, err
	})
}
