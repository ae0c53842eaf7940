package viz_test

import (
	"testing"

	"gobnn/viz"
)

func BenchmarkPNG(b *testing.B) {
	for _, s := range gallery() {
		fig, err := s.make()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := fig.PNG(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMillionPoints makes and draws a band of 10^6 noisy points. As a single path it took half a minute.
func BenchmarkMillionPoints(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	noise, x, sd := make([]float64, n), make([]float64, n), make([]float64, n)
	rng := source()
	for i := range n {
		x[i], noise[i], sd[i] = float64(i), rng.NormFloat64(), rng.Float64()
	}
	for b.Loop() {
		fig, err := viz.PredictiveBand(x, noise, sd, viz.BandOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := fig.PNG(); err != nil {
			b.Fatal(err)
		}
	}
}
