// Package surrogate samples posteriors near a mode by Hamiltonian Monte Carlo in whitened coordinates, if it pays on a
// cheap surrogate of the target. The draws are exact in both cases.
//
// [Sample] does all: it searches the mode, evaluates the Hessian there, which gives the coordinates (Whitening), runs a
// short pilot chain that finds the step and says whether a surrogate from a part of the rows pays, and then the chains
// of [SplitHMC]. [NewProblem] is the posterior of a network given all rows; a density of your own is a Problem without
// Part, which is sampled by its own gradient.
//
// # When to take it
//
// Where the posterior is near the Gaussian of its mode: thousands of rows, and at most some hundred parameters that the
// rows identify. There a gradient buys many times the effective draws of HMC or NUTS, whose step the narrowest
// direction limits. The more rows there are, the smaller the share of them is that a surrogate needs. In other cases
// take mcmc.NUTS.
//
// # How it fails
//
//   - No mode: the error wraps [ErrNoMode]. Let Problem.Start be nearer to one, or raise Settings.Iterations.
//   - The posterior is wider than the Gaussian of its mode, as with two hidden layers or few rows. The pilot then takes
//     no surrogate, with a warning, and steps that are accepted; expect no gain over NUTS.
//   - Chains stick where the surrogate is wrong: a warning that begins with "sticky" has the numbers. Take more rows
//     (Settings.Rows), or NoSurrogate.
//   - Chains do not change modes. Compare with package smc, or begin elsewhere.
//   - ReLU networks have no Hessian; the Gauss-Newton matrix replaces it, and a warning says so.
package surrogate

import (
	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/tensors"
)

// Problem is a density.Problem with what the mode, a Whitening and a surrogate are made of. Sampling evaluates neither.
type Problem struct {
	density.Problem
	// Part, if set, returns the target estimated from a part of the rows, as many as given and at most Rows, for
	// surrogates about a mode, [D]: see Part.
	Part func(rows int, mode []float64) (Part, error)
	// Blocks, if set, divides the rows into blocks, for the mode, the Hessian and the log-densities that a pilot compares.
	Blocks *density.Blocks
}

// NewProblem is density.NewProblem, the posterior given all rows, with what SplitHMC needs beside the target: a part of
// the rows for a surrogate and, for many rows, blocks of them for the mode and the Hessian.
func NewProblem(
	engine *compute.Engine, bound *bayes.BoundModel, x, y, psi *tensors.Tensor, chains, devices int,
) (Problem, error) {
	problem, err := density.NewProblem(engine, bound, x, y, psi, chains, devices)
	if err != nil {
		return Problem{}, err
	}
	return Problem{
		Problem: problem,
		Part: func(rows int, mode []float64) (Part, error) {
			return part(engine, bound, problem.Data, rows, mode, chains, devices)
		},
		Blocks: inBlocks(bound, problem.Data),
	}, nil
}

// rowsOfBlock is the number of rows of a block: see BenchmarkHessian.
const rowsOfBlock = 8192

// inBlocks divides a problem's data, its features, [width, N], and y, into blocks of rows; nil for few rows.
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
