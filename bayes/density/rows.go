package density

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
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

// Some are `rows` consecutive rows of a batch from row `from` on, an int32 scalar, with their count in the given type.
// Rows past the end are padding.
func (b Batch) Some(from *graph.Node, rows int, dtype compute.DType) Batch {
	all := b.rows()
	number := Add(Iota(from.Graph(), shapes.Make(dtypes.Int32, rows, 1), 0), BroadcastToDims(from, rows, 1))
	number = MinScalar(number, float64(all-1))
	out := Batch{Y: Gather(b.Y, number)}
	if b.Features != nil {
		out.Features = Transpose(Gather(Transpose(b.Features, 0, 1), number), 0, 1)
	} else {
		out.X = Gather(b.X, number)
	}
	// Also where rows divides all: a caller may begin at any row.
	out.Count = ConvertDType(MinScalar(AddScalar(Neg(from), float64(all)), float64(rows)), dtype)
	return out
}

// TrainBatches gathers a batch, X and Y, from the entries "train_x" and "train_y" of a state by its rows, which are the
// first input; the others stay.
func TrainBatches() compute.Batches {
	return compute.Batches{Reads: []string{"train_x", "train_y"}, Make: func(
		s compute.Nodes, inputs []*graph.Node,
	) []*graph.Node {
		rows := graph.ExpandAxes(inputs[0], -1)
		return append([]*graph.Node{graph.Gather(s["train_x"], rows), graph.Gather(s["train_y"], rows)}, inputs[1:]...)
	}}
}
