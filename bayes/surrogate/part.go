package surrogate

import (
	"errors"
	"fmt"
	"iter"
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
	x, err := columnsOf(features, rows)
	if err != nil {
		return subset{}, err
	}
	own, err := rowsOf(y, rows)
	if err != nil {
		return subset{}, err
	}
	p := subset{rows: m, of: n, name: "order 2", data: map[string]*tensors.Tensor{"features": x, "y": own}}
	if psi != nil {
		p.data["psi"] = psi
	}
	plan, err := density.NewPlan(bound, y.DType(), density.Workload{Particles: chains, Rows: m, Devices: devices})
	if err != nil {
		return subset{}, err
	}
	batches := density.MiniBatch{Likelihood: density.Likelihood{Model: bound, Plan: plan}, Rows: n}
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

// rowsOf returns some rows of a tensor, [N] or [N, K].
func rowsOf(t *tensors.Tensor, rows []int) (*tensors.Tensor, error) {
	dims := slices.Clone(t.Shape().Dimensions)
	width := t.Size() / dims[0]
	dims[0] = len(rows)
	return picked(t, dims, func(yield func(from, to int) bool) {
		for _, row := range rows {
			if !yield(row*width, (row+1)*width) {
				return
			}
		}
	})
}

// columnsOf returns some columns of a tensor, [width, N].
func columnsOf(t *tensors.Tensor, columns []int) (*tensors.Tensor, error) {
	width, n := t.Shape().Dim(0), t.Shape().Dim(1)
	return picked(t, []int{width, len(columns)}, func(yield func(from, to int) bool) {
		for i := range width {
			for _, column := range columns {
				if !yield(i*n+column, i*n+column+1) {
					return
				}
			}
		}
	})
}

// picked is a tensor of the numbers in parts of another, one part after the other.
func picked(t *tensors.Tensor, dims []int, parts iter.Seq2[int, int]) (some *tensors.Tensor, err error) {
	wrong := t.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float32:
			some = tensors.FromFlatDataAndDimensions(concatenated(flat, parts), dims...)
		case []float64:
			some = tensors.FromFlatDataAndDimensions(concatenated(flat, parts), dims...)
		default:
			err = fmt.Errorf("surrogate: rows of %s where float32 or float64 was expected", t.DType())
		}
	})
	return some, errors.Join(wrong, err)
}

func concatenated[F float32 | float64](flat []F, parts iter.Seq2[int, int]) (some []F) {
	for from, to := range parts {
		some = append(some, flat[from:to]...)
	}
	return some
}
