package density

import (
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/sampleuv"
)

// ChainStarts takes psi and the starting points of chains from a trained posterior: psi, [W], in the given type, nil if
// nothing is shared; and start, [J, D], for Problem.Start. The starting points are particles drawn by their
// weights without replacement; if there are fewer particles of positive weight than chains, drawing begins again with
// all of them.
func ChainStarts(
	trained *bayes.Posterior, dtype compute.DType, chains int, seed uint64,
) (psi, start *tensors.Tensor, err error) {
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
	by := sampleuv.NewWeighted(trained.LogWeights().Weights(), rand.NewPCG(seed, 0x5851f42d4c957f2d))
	var begin []float64
	for range chains {
		j, ok := by.Take()
		if !ok { // fewer particles of positive weight than chains: take all again
			by.ReweightAll(trained.LogWeights().Weights())
			j, _ = by.Take()
		}
		begin = append(begin, particles[j*d:(j+1)*d]...)
	}
	return psi, compute.Floats(dtype, begin, chains, d), nil
}
