package surrogate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// subsetOf is the posterior of m of the N rows, the first of a permutation that depends on N alone, so that a larger
// part contains a smaller one. For a Gaussian likelihood with known noise the targets of these rows are replaced by the
// predictions of the network at the mode (the surrogate "2n"), which removes the observation noise; for other
// likelihoods they are the rows' own (order 2).
func subsetOf(
	engine *compute.Engine, bound *bayes.BoundModel, data map[string]*tensors.Tensor, m int, mode []float64,
	chains, devices int,
) (subset, error) {
	features, y, psi := data["features"], data["y"], data["psi"]
	n := y.Shape().Dim(0)
	rows := rand.New(rand.NewPCG(uint64(n), 0x70617274)).Perm(n)[:m]
	slices.Sort(rows)
	x, err := some(engine, features, 1, rows)
	if err != nil {
		return subset{}, err
	}
	own, err := some(engine, y, 0, rows)
	if err != nil {
		return subset{}, err
	}
	p := subset{rows: m, of: n, name: "order 2", data: map[string]*tensors.Tensor{"features": x, "y": own}}
	if psi != nil {
		p.data["psi"] = psi
	}
	plan := density.NewPlan(bound, y.DType(), density.Workload{Particles: chains, Rows: m, Devices: devices})
	batches := density.MiniBatch(density.Likelihood{Model: bound, Plan: plan}, n)
	if g, ok := bound.Model.Likelihood.(bayes.Gaussian); ok && !g.Learn && bound.Extras == (dataset.Extras{}) {
		p.name = "2n"
		if p.data["y"], err = predicted(engine, bound, mode, psi, x, own); err != nil {
			return subset{}, err
		}
	}
	p.target = func(data compute.Nodes) density.Target {
		return density.At(batches, data["psi"], density.Batch{Features: data["features"], Y: data["y"]})
	}
	return p, nil
}

// predicted returns the network's outputs at one phi, in y's shape and type.
func predicted(
	engine *compute.Engine, bound *bayes.BoundModel, phi []float64, psi, features, y *tensors.Tensor,
) (*tensors.Tensor, error) {
	inputs := []any{compute.Floats(y.DType(), phi, 1, len(phi)), features}
	if psi != nil {
		inputs = append(inputs, psi)
	}
	outputs, err := graph.CallOnce(engine.Backend(), func(inputs []*graph.Node) *graph.Node {
		var psi *graph.Node
		if len(inputs) > 2 {
			psi = inputs[2]
		}
		params := bound.Unpack(nn.Block(inputs[0], 1), psi, nil)
		full := bound.Suffix(params, nn.Value{Node: inputs[1]}).Full() // [1, K, B, 1]
		k, b := full.Shape().Dim(1), full.Shape().Dim(2)
		return graph.Reshape(graph.Transpose(graph.Reshape(full, k, b), 0, 1), y.Shape().Dimensions...)
	}, inputs...)
	if err != nil {
		return nil, fmt.Errorf("surrogate: the network's outputs at the mode: %w", err)
	}
	return outputs, nil
}

// some returns slices of a tensor along an axis, 0 or 1: rows of y, [N] or [N, K], or columns of features, [width, N].
func some(engine *compute.Engine, t *tensors.Tensor, axis int, which []int) (*tensors.Tensor, error) {
	at := make([]int32, len(which))
	for i, slice := range which {
		at[i] = int32(slice)
	}
	taken, err := graph.CallOnce(engine.Backend(), func(all, at *graph.Node) *graph.Node {
		if axis == 1 {
			return graph.Transpose(graph.Gather(graph.Transpose(all, 0, 1), graph.ExpandAxes(at, 1)), 0, 1)
		}
		return graph.Gather(all, graph.ExpandAxes(at, 1))
	}, t, at)
	if err != nil {
		return nil, fmt.Errorf("surrogate: rows of the data: %w", err)
	}
	return taken, nil
}
