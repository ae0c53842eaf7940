package mcmc

import (
	"math"
	"slices"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/tensors"
)

// moments are running means and sums of squared deviations of each coordinate over chains and draws (Welford 1962).
type moments struct {
	Count   float64   `json:"count"`
	Mean    []float64 `json:"mean,omitempty"`
	Squares []float64 `json:"squares,omitempty"`
}

func newMoments(dim int) moments {
	return moments{Mean: make([]float64, dim), Squares: make([]float64, dim)}
}

// add adds all chains' phi, [J, D], except chains with a coordinate that is not finite.
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

// scales are standard deviations, with variances shrunk to 1e-3 as in Stan, (n v + 5e-3) / (n + 5).
func (m *moments) scales() []float64 {
	out := make([]float64, len(m.Mean))
	for k, squares := range m.Squares {
		variance := squares / max(1, m.Count-1)
		out[k] = math.Sqrt((m.Count*variance + 5e-3) / (m.Count + 5))
	}
	return out
}
