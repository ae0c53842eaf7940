package mcmc

import (
	"context"
	"fmt"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
)

// BenchmarkMove is what a move costs beside the target: 20 chains of a Gaussian in ten dimensions. On two processors of
// a Sapphire Rapids a move of each kernel takes 6 to 7 microseconds; a transition of BlackJAX 1.7.1 (JAX 0.10.2) in a
// scan takes 14 of a random walk or MALA, and 19 of HMC with ten steps, which are ten moves here: XLA compiles its loop
// over the steps to one function.
func BenchmarkMove(b *testing.B) { computetest.Bench(b, benchmarkMove) }

func benchmarkMove(b *testing.B, _ *compute.Engine) {
	problem, _ := badlyScaled()
	for _, kernel := range computetest.Cases[Kernel](
		RandomWalkMetropolis{StepSize: .1}, MALA{StepSize: .1}, HMC{StepSize: .1},
	) {
		b.Run(fmt.Sprintf("%T", kernel), func(b *testing.B) {
			sampler := Sampler{Problem: problem, Kernel: kernel}
			r := sampler.newSampling(b, Settings{Chains: 20, Draws: 1 << 20, WarmUp: NoWarmUp})
			defer r.close()
			if err := r.Begin(context.Background()); err != nil {
				b.Fatal(err)
			}
			for range 10 {
				if err := r.draw(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := r.draw(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
