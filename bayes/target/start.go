package target

import (
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/sampleuv"
)

// From is where chains go on from a trained posterior: psi, [W], in the given type, nil if nothing is shared, and what draws the beginnings of so many chains,
// mcmc.Problem.Initial: particles of the posterior, drawn by their weights, each at most once while there are others.
func From(trained *bayes.Posterior, dtype compute.DType, chains int, seed uint64) (psi *tensors.Tensor, initial func(random.Stream, compute.DType, int) *graph.Node, err error) {
	draws, err := trained.Draws()
	if err != nil {
		return nil, nil, err
	}
	particles, err := compute.Float64s(draws.Phi)
	if err != nil {
		return nil, nil, err
	}
	if draws.Psi != nil {
		values, err := compute.Float64s(draws.Psi)
		if err != nil {
			return nil, nil, err
		}
		psi = compute.Floats(dtype, values, len(values))
	}
	d := trained.Bound().D
	by := sampleuv.NewWeighted(trained.LogWeights.Weights(), rand.NewPCG(seed, 0x5851f42d4c957f2d))
	var start []float64
	for range chains {
		j, ok := by.Take()
		if !ok { // fewer particles with a weight than chains: begin again
			by.ReweightAll(trained.LogWeights.Weights())
			j, _ = by.Take()
		}
		start = append(start, particles[j*d:(j+1)*d]...)
	}
	return psi, func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
		return graph.ConstTensor(rng.Graph(), compute.Floats(dtype, start, chains, d))
	}, nil
}
