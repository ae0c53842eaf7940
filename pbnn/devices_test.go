package pbnn

import (
	"fmt"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
)

// The draws do not depend on how many devices share the chains, nor on the engine, beyond rounding. Mini-batches have
// as many rows as there are chains, so that only the names of what is shared distinguish the two.
func TestDevices(t *testing.T) {
	sameOnDevices(t, Metropolis{Target: TargetExpected{}, BatchSize: 4, Batches: 4, StepSize: .2})
	s := short(t)
	s.Devices, s.Engine = 4, computetest.Several(t)
	six := Metropolis{Sampling: Sampling{Chains: 6}, StepSize: .1}
	_, err := fit.Fit(t.Context(), line, six, dataset.Parts{Train: fittest.Data(30)}, s)
	computetest.WantError(t, "six chains on four devices", err,
		"Settings.Devices is 4, Sampling.Chains 6: 4 devices cannot share 6 equally: take 4 or 8")
}

// sameOnDevices runs samplers on the Go backend and on two devices, which must give the same.
func sameOnDevices(t *testing.T, samplers ...Sampler) {
	for _, sampler := range samplers {
		method, s := with(Sampling{Chains: 4, Draws: 5, WarmUp: 2}, sampler), short(t)
		all := func() []float64 {
			r := fitted(t, line, method, fittest.Data(30), s)
			numbers := append(fittest.Numbers(t, r.Posterior), r.Noise, r.Passes, r.RowsPerStep)
			for _, chain := range r.chains.Stats {
				numbers = append(numbers, float64(chain.Accepted))
			}
			return numbers
		}
		want := all()
		s.Engine, s.Devices = computetest.Several(t), 2
		computetest.Near(t, fmt.Sprintf("%T on 2 devices", sampler), all(), want, 1e-9)
	}
}
