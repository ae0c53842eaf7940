// Package surrogate has the posteriors of networks as problems for SplitHMC.
package surrogate

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// NewProblem is density.NewProblem, the posterior given all rows, with what SplitHMC needs beside the target: a part of
// the rows for a surrogate and, for many rows, blocks of them for the mode and the Hessian.
func NewProblem(
	engine *compute.Engine, bound *bayes.BoundModel, x, y, psi *tensors.Tensor, chains, devices int,
) (mcmc.SplitProblem, error) {
	problem, err := density.NewProblem(engine, bound, x, y, psi, chains, devices)
	if err != nil {
		return mcmc.SplitProblem{}, err
	}
	return mcmc.SplitProblem{
		Problem: problem,
		Part: func(rows int, mode []float64) (mcmc.Part, error) {
			return part(engine, bound, problem.Data, rows, mode, chains, devices)
		},
		Blocks: inBlocks(bound, problem.Data),
	}, nil
}

// rowsOfBlock are the rows of a block: see BenchmarkHessian.
const rowsOfBlock = 8192

// inBlocks are the blocks of a problem's data: its features, [width, N], and y. nil for few rows.
func inBlocks(bound *bayes.BoundModel, data map[string]*tensors.Tensor) *density.Blocks {
	rows := data["y"].Shape().Dim(0)
	if rows < 2*rowsOfBlock {
		return nil
	}
	return density.NewBlocks(bound, rows, rowsOfBlock, func(from, count int) (map[string]*tensors.Tensor, error) {
		these := make([]int, rowsOfBlock)
		for i := range count {
			these[i] = from + i
		}
		own, err := rowsOf(data["y"], these)
		if err != nil {
			return nil, err
		}
		features, err := columnsOf(data["features"], these)
		of := map[string]*tensors.Tensor{"features": features, "y": own}
		if data["psi"] != nil {
			of["psi"] = data["psi"]
		}
		return of, err
	})
}
