package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// This file is the curvature of a network's likelihood in its parameters: the generalised Gauss-Newton matrix sum_n
// J_n' L_n J_n, for the Laplace approximation.

// checkCurvature is an error for likelihoods whose curvature in the output is not known.
func checkCurvature(likelihood bayes.Likelihood) error {
	if _, ok := likelihood.(bayes.Categorical); ok {
		return nil
	}
	if _, ok := likelihood.(bayes.Informative); ok {
		return nil
	}
	return fmt.Errorf("the curvature of %T is not known, which is of bayes.Categorical and of every bayes.Informative, "+
		"such as bayes.Gaussian", likelihood)
}

// blockRows is the number of rows whose Jacobians are evaluated at once.
const blockRows = 128

// curvedRows are the rows, standardised, and the network whose curvature is evaluated there.
type curvedRows struct {
	engine *compute.Engine
	bound  *bayes.BoundModel
	x      *tensors.Tensor // [N, d]
	y      *tensors.Tensor // [N], or [N, K] for K targets
}

// sum is the sum over the rows, in blocks of them, of the vector that build makes of a block's first count rows, at
// phi, [D], and psi, [W]. Its entries are "x", [N, d], "y", "phi", [1, D], and "psi", [W], of y's type.
func (r curvedRows) sum(
	ctx context.Context, phi, psi []float64, build func(s compute.Nodes, rows, count *graph.Node) *graph.Node,
) ([]float64, error) {
	rows, dtype := r.x.Shape().Dim(0), r.y.DType()
	size := min(rows, blockRows)
	state := compute.NewState(r.engine)
	defer state.Close()
	x, err := r.x.LocalClone() // the state owns what it holds
	if err != nil {
		return nil, err
	}
	state.Set("x", x)
	state.Set("phi", compute.Floats(dtype, phi, 1, r.bound.D))
	y, err := r.y.LocalClone()
	if err != nil {
		return nil, err
	}
	state.Set("y", y)
	reads := []string{"x", "phi", "y"}
	if r.bound.W > 0 {
		state.Set("psi", compute.Floats(dtype, psi, r.bound.W))
		reads = append(reads, "psi")
	}
	step := func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		return nil, build(s, inputs[0], inputs[1])
	}
	program, err := compute.NewProgram(r.engine, "curvature", reads, nil, step)
	if err != nil {
		return nil, err
	}
	defer program.Close()

	var sum []float64
	for from := 0; from < rows; from += size {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cancelled before the curvature of all %d rows was there: %w",
				rows, context.Cause(ctx))
		}
		block := make([]int32, size)
		count := min(size, rows-from)
		for i := range count {
			block[i] = int32(from + i)
		}
		outcome, err := program.Run(state, block, float64(count))
		if err != nil {
			return nil, fmt.Errorf("curvature of rows %d to %d: %w", from, from+count, err)
		}
		if sum == nil {
			sum = make([]float64, len(outcome))
		}
		floats.Add(sum, outcome)
	}
	return sum, nil
}

// gradient is the gradient of the log-likelihood of all rows with respect to phi, [D].
func (r curvedRows) gradient(ctx context.Context, phi, psi []float64) ([]float64, error) {
	return r.sum(ctx, phi, psi, func(s compute.Nodes, rows, count *Node) *Node {
		y := Gather(s["y"], ExpandAxes(rows, -1))
		x := bayes.Numbers(Gather(s["x"], ExpandAxes(rows, -1)), y.DType())
		params := r.bound.Unpack(nn.Block(s["phi"], 1), s["psi"], nil)
		density := r.bound.LogDensity(params, r.bound.Suffix(params, r.bound.Prefix(params, x)), y) // [1, B, 1]
		real := Reshape(realRows(rows, count, y.DType()), 1, -1, 1)
		return Reshape(Gradient(ReduceAllSum(Mul(density, real)), s["phi"])[0], r.bound.D)
	})
}

// realRows is 1 for each of the first count rows, 0 for the others, [B].
func realRows(rows, count *Node, dtype compute.DType) *Node {
	return ConvertDType(LessThan(Iota(rows.Graph(), rows.Shape(), 0), ConvertDType(count, rows.DType())), dtype)
}

// countedRows is how often each of a block's rows counts, [B]: its weight, 0 beyond the first count rows.
func countedRows(bound *bayes.BoundModel, s compute.Nodes, rows, count *Node) *Node {
	real := realRows(rows, count, s["y"].DType())
	if weights := bound.RowWeights(Gather(s["y"], ExpandAxes(rows, -1))); weights != nil {
		return Mul(real, weights)
	}
	return real
}

// factorsOf returns functions v_c of each row, [B]. The outer products of their gradients add up to J_n' L_n J_n.
func factorsOf(bound *bayes.BoundModel, outputs *Node, params nn.Params) (all []*Node) {
	column := func(x *Node, c int) *Node { return Reshape(Slice(x, AxisRange(), AxisElem(c)), x.Shape().Dim(0)) }
	weights, mean := outputs, ZerosLike(column(outputs, 0))
	if likelihood, ok := bound.Model.Likelihood.(bayes.Informative); ok { // L is diagonal
		information := likelihood.Information(params, nn.Value{Node: Transpose(outputs, 0, 1)}) // [1, width, B, 1]
		weights = Transpose(Reshape(information, outputs.Shape().Dim(1), outputs.Shape().Dim(0)), 0, 1)
	} else { // Categorical: L = diag p - p p' = sum_c p_c (e_c - p)(e_c - p)'
		weights = Softmax(outputs, 1)
		mean = ReduceSum(Mul(StopGradient(weights), outputs), 1)
	}
	weights = Sqrt(StopGradient(weights))
	for c := range outputs.Shape().Dim(1) {
		all = append(all, Mul(column(weights, c), Sub(column(outputs, c), mean)))
	}
	return all
}
