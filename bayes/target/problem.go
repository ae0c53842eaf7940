package target

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Problem is the posterior p(phi | y; psi) of a model given all rows, at fixed psi, for chains to sample: x is [N, d] and y [N], standardised, psi is
// [W], nil if nothing is shared, all of one type, which must be the chains'. Chains begin at draws from the prior. devices is
// how many share the chains, as in mcmc.Settings (0: one): each then evaluates its own at once.
func Problem(bound *bayes.Bound, x, y, psi *tensors.Tensor, chains, devices int) (mcmc.Problem, error) {
	if shape := x.Shape(); shape.Rank() != 2 || shape.Dim(1) != bound.Inputs || y.Shape().Rank() != 1 || y.Shape().Dim(0) != shape.Dim(0) {
		return mcmc.Problem{}, fmt.Errorf("target: x has shape %s and y %s: they must be [N, %d] and [N]", x.Shape(), y.Shape(), bound.Inputs)
	}
	if bound.W > 0 && (psi == nil || psi.Size() != bound.W) {
		return mcmc.Problem{}, fmt.Errorf("target: the model has %d shared numbers: psi must hold them", bound.W)
	}
	plan, err := NewPlan(bound, x.DType(), Work{Particles: chains, Rows: x.Shape().Dim(0), Devices: devices})
	if err != nil {
		return mcmc.Problem{}, err
	}
	full := Full{Likelihood{Model: bound, Plan: plan}}
	data := map[string]*tensors.Tensor{"x": x, "y": y}
	if bound.W > 0 {
		data["psi"] = psi
	}
	return mcmc.Problem{
		Name: "posterior of a network given all rows", Dim: bound.D, Data: data,
		Target: func(data compute.Nodes, _ []*graph.Node) mcmc.Target {
			return At(full, data["psi"], Batch{X: data["x"], Y: data["y"]})
		},
		Initial: func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
			return bound.SamplePrior(rng, dtype, chains)
		},
	}, nil
}
