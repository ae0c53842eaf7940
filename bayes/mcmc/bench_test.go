package mcmc

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
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
			method := looked{Chains{Kernel: kernel, Chains: 20, Draws: 1 << 20, WarmUp: NoWarmUp}, nil}
			method.at = func(_ *sampling, l *fit.Loop[struct{}]) {
				move := l.Step
				l.Step = func(ctx context.Context, at *trail) error {
					var failed error
					for range 10 {
						failed = errors.Join(failed, move(ctx, at))
					}
					for b.Loop() {
						failed = errors.Join(failed, move(ctx, at))
					}
					return errors.Join(failed, errEnough)
				}
			}
			if _, err := fit.Sample(b.Context(), problem, method, run.Settings{}); err.Error() != errEnough.Error() {
				b.Fatal(err)
			}
		})
	}
}
