package mcmc

import (
	"math"
	"slices"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/tensors"
)

// moments are the number of points, and each coordinate's mean and sum of squared deviations from it, updated point by
// point (Welford 1962, which does not lose the deviations to rounding). All chains and transitions of a window of the
// warm-up count alike.
type moments struct {
	Count   float64   `json:"count"`
	Mean    []float64 `json:"mean,omitempty"`
	Squares []float64 `json:"squares,omitempty"`
}

func newMoments(dim int) moments {
	return moments{Mean: make([]float64, dim), Squares: make([]float64, dim)}
}

// add takes in the present point of each chain, phi, [J, D]. A chain with a coordinate that is not finite is left out.
func (m *moments) add(phi *tensors.Tensor) error {
	flat, err := compute.Float64s(phi)
	if err != nil {
		return err
	}
	for dim := len(m.Mean); len(flat) > 0; flat = flat[dim:] {
		if slices.ContainsFunc(flat[:dim], func(x float64) bool { return !finite(x) }) {
			continue
		}
		m.Count++
		for k, x := range flat[:dim] {
			deviation := x - m.Mean[k]
			m.Mean[k] += deviation / m.Count
			m.Squares[k] += deviation * (x - m.Mean[k])
		}
	}
	return nil
}

// scales returns the standard deviations, [D]. As in Stan the variances v of n points are shrunk to 1e-3, (n v + 5e-3)
// / (n + 5), since few points estimate them badly.
func (m *moments) scales() []float64 {
	out := make([]float64, len(m.Mean))
	for k, squares := range m.Squares {
		variance := squares / max(1, m.Count-1)
		out[k] = math.Sqrt((m.Count*variance + 5e-3) / (m.Count + 5))
	}
	return out
}
