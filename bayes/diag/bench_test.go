package diag

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkSummary diagnoses 20 million draws, of 100 chains of 1000 draws of 200 parameters, at three rates of mixing:
// beyond 64 lags a Fourier transform is needed. The metric is seconds for all parameters.
func BenchmarkSummary(b *testing.B) {
	parameters := 200
	if testing.Short() {
		parameters = 2
	}
	for _, c := range []struct {
		name string
		rho  float64
	}{{"independent", 0}, {"AR(1), 0.9", 0.9}, {"AR(1), 0.99", 0.99}} {
		b.Run(c.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			s := Sample{Values: make([]float64, 100*1000*parameters), Chains: 100, Draws: 1000, Parameters: parameters}
			for i := range s.Values {
				s.Values[i] = rng.NormFloat64()
				if before := i - s.Parameters; before >= 0 && i/s.Parameters%s.Draws > 0 {
					s.Values[i] += c.rho * s.Values[before]
				}
			}
			for b.Loop() {
				if _, err := OfSample(s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(s.Values)), "ns/draw")
		})
	}
}
