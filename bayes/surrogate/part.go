package surrogate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// subsetOf is the posterior of m of the N rows, the first of a permutation that depends on N alone, so that a larger
// part contains a smaller one.
func subsetOf(
	engine *compute.Engine, bound *bayes.BoundModel, data map[string]*tensors.Tensor, m, chains, devices int,
) (subset, error) {
	features, y := data["features"], data["y"]
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
	p := subset{rows: m, of: n, data: map[string]*tensors.Tensor{"features": x, "y": own}}
	plan := density.NewPlan(bound, y.DType(), density.Workload{Particles: chains, Rows: m, Devices: devices})
	batches := density.MiniBatch(density.Likelihood{Model: bound, Plan: plan}, n)
	p.target = func(data compute.Nodes) density.Target {
		return density.At(batches, nil, density.Batch{Features: data["features"], Y: data["y"]})
	}
	return p, nil
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
