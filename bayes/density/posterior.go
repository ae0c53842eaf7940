package density

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// NewProblem is the posterior p(phi | y; psi) of a model given all rows, at fixed psi, as a problem for Markov chains.
// x is [N, d] and y [N], or [N, K] for K targets (and BoundModel.Extras), standardised; psi is [W], nil if nothing is
// shared. All have the same number type, which must be the chains'. Chains start at draws from the prior, from which
// they climb (Climb). devices is the number of devices that share the chains, as in run.Settings (0: one). The output
// of the layers before the first stochastic one is computed here once, on the engine (nil: the default), not in each
// move.
func NewProblem(
	engine *compute.Engine, bound *bayes.BoundModel, x, y, psi *tensors.Tensor, chains, devices int,
) (Problem, error) {
	plan := NewPlan(bound, y.DType(), Workload{Particles: chains, Rows: x.Shape().Dim(0), Devices: devices})
	features, err := Features(engine, bound, y.DType(), x, psi)
	if err != nil {
		return Problem{}, err
	}
	full := Full(Likelihood{Model: bound, Plan: plan})
	data := map[string]*tensors.Tensor{"features": features, "y": y}
	if bound.W > 0 {
		data["psi"] = psi
	}
	return Problem{
		Name: named(bound, "posterior given all rows"), Dim: bound.D, Data: data,
		Target: func(data compute.Nodes, _ []*graph.Node) Target {
			return At(full, data["psi"], Batch{Features: data["features"], Y: data["y"]})
		},
		Initial: func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
			return bound.SamplePrior(rng, dtype, chains)
		},
		Climb: &Climb{},
		Rows:  x.Shape().Dim(0),
	}.Keyed("all rows", bound.ProgramKey(), plan), nil
}

// digest tells sequences of mini-batches apart, by their size and the rows of the first two.
func digest(batches *dataset.Batches) string {
	sum := fnv.New32a()
	for step := range 2 {
		fmt.Fprint(sum, batches.At(step))
	}
	return fmt.Sprintf("of %d rows (%08x)", len(batches.At(0).Rows), sum.Sum32())
}

// named is the name of a problem, by which a checkpoint knows what is sampled beside the data: the whole model, whose
// parts decide the density. Of a part that is not written as JSON it has the fields.
func named(bound *bayes.BoundModel, what string) string {
	model, err := json.Marshal(bound.Model)
	if err != nil {
		model = fmt.Appendf(nil, "%+v", bound.Model)
	}
	return fmt.Sprintf("%s of a model with %d inputs and %d outputs, %s", what, bound.Inputs, bound.Outputs, model)
}

// NewBatchProblem is Problem for kernels that take noisy gradients: each move estimates the posterior from the next of
// the batches of the rows.
func NewBatchProblem(
	bound *bayes.BoundModel, x, y, psi *tensors.Tensor, batches *dataset.Batches, chains, devices int,
) Problem {
	rows := x.Shape().Dim(0)
	work := Workload{Particles: chains, Rows: len(batches.At(0).Rows), Devices: devices}
	plan := NewPlan(bound, y.DType(), work)
	posterior := MiniBatch(Likelihood{Model: bound, Plan: plan}, rows)
	data := map[string]*tensors.Tensor{"x": x, "y": y}
	if bound.W > 0 {
		data["psi"] = psi
	}
	return Problem{
		Name: named(bound, fmt.Sprintf("posterior from mini-batches %s", digest(batches))), Dim: bound.D, Data: data,
		Target: func(data compute.Nodes, inputs []*graph.Node) Target {
			rows := graph.ExpandAxes(inputs[0], -1)
			count := graph.ConvertDType(inputs[1], data["y"].DType())
			batch := Batch{X: graph.Gather(data["x"], rows), Y: graph.Gather(data["y"], rows), Count: count}
			return At(posterior, data["psi"], batch)
		},
		Inputs: func(move int) []any {
			batch := batches.At(move)
			return []any{batch.Rows, float64(batch.Count)}
		},
		Rows: rows, BatchShare: float64(work.Rows) / float64(rows),
	}.Keyed("mini-batches", bound.ProgramKey(), plan)
}

// Features is Batch.Features of all rows x, [N, d]: the output of the layers before the first stochastic one at psi,
// [width, N], in the given type.
func Features(
	engine *compute.Engine, bound *bayes.BoundModel, dtype compute.DType, x, psi *tensors.Tensor,
) (*tensors.Tensor, error) {
	engine, err := engine.Or()
	if err != nil {
		return nil, err
	}
	inputs := []any{x}
	if psi != nil {
		inputs = append(inputs, psi)
	}
	features, err := graph.CallOnce(engine.Backend(), func(inputs []*graph.Node) *graph.Node {
		var psi *graph.Node
		if len(inputs) > 1 {
			psi = inputs[1]
		}
		return Likelihood{Model: bound}.Features(psi, Batch{X: inputs[0]}, dtype)
	}, inputs...)
	if err != nil {
		return nil, fmt.Errorf("density: features of the layers before the first stochastic one: %w", err)
	}
	return features, nil
}
