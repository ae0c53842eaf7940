package density

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// RowTensors returns the tensors from which BatchOf gathers rows, by their names: "y"; "psi" if it is not nil; and the
// rows' inputs, "x", [N, d], or where layers come before the first stochastic one their output, "features", [N, width],
// which is computed here once, not in each move.
func RowTensors(
	engine *compute.Engine, bound *bayes.BoundModel, x, y, psi *tensors.Tensor,
) (map[string]*tensors.Tensor, error) {
	data := map[string]*tensors.Tensor{"y": y}
	if psi != nil {
		data["psi"] = psi
	}
	if !bound.HasPrefix() {
		data["x"] = x
		return data, nil
	}
	columns, err := Features(engine, bound, y.DType(), x, psi)
	if err != nil {
		return nil, err
	}
	transpose := func(x *graph.Node) *graph.Node { return graph.Transpose(x, 0, 1) }
	if data["features"], err = graph.CallOnce(engine.Backend(), transpose, columns); err != nil {
		return nil, fmt.Errorf("density: features of the shared layers: %w", err)
	}
	return data, nil
}

// BatchOf is the batch of the rows with the given numbers, int32 [B, 1], of RowTensors; of all rows if numbers is nil.
func BatchOf(data compute.Nodes, numbers *graph.Node) Batch {
	of := func(x *graph.Node) *graph.Node {
		if x == nil || numbers == nil {
			return x
		}
		return graph.Gather(x, numbers)
	}
	batch := Batch{X: of(data["x"]), Y: of(data["y"])}
	if features := of(data["features"]); features != nil {
		batch.Features = graph.Transpose(features, 0, 1)
	}
	return batch
}
