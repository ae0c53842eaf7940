package pbnn

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
)

// The draws do not depend on how many devices share the chains, nor on the engine, beyond rounding. Mini-batches have
// as many rows as there are chains, so that only the names of what is shared tell the two apart.
func TestDevices(t *testing.T) {
	sameOnDevices(t, Metropolis{Target: TargetExpected{}, BatchSize: 4, Batches: 4, StepSize: .2})
}

// sameOnDevices runs samplers on the Go backend and on two devices, which must give the same.
func sameOnDevices(t *testing.T, samplers ...Sampler) {
	engines := []*compute.Engine{computetest.Go(t), computetest.Several(t)} // one device, and two
	for _, sampler := range samplers {
		t.Run(strings.TrimPrefix(fmt.Sprintf("%T", sampler), "pbnn."), func(t *testing.T) {
			var want []float64
			for i, engine := range engines {
				s := Settings{Chains: 4, Draws: 5, WarmUp: 2, Seed: 7, DType: compute.Float64,
					Engine: engine, Devices: i + 1}
				r, err := fitLine(sampler, line(30), s)
				if err != nil {
					t.Fatal(err)
				}
				got := append(flat(t, r), r.Noise, r.Passes, r.RowsPerStep)
				for _, chain := range r.Chains.Stats {
					got = append(got, float64(chain.Accepted))
				}
				if want == nil {
					want = got
				}
				computetest.Near(t, fmt.Sprint(i+1, " devices"), got, want, 1e-9)
			}
		})
	}
}

func TestDevicesErrors(t *testing.T) {
	s := Settings{Chains: 6, Devices: 4, Engine: computetest.Several(t)}
	_, err := fitLine(Metropolis{Target: TargetFull{}, StepSize: .1}, line(30), s)
	if err == nil || !strings.Contains(err.Error(),
		"Settings.Devices is 4, Sampling.Chains 6: 4 devices cannot share 6 equally: take 4 or 8") {
		t.Errorf("chains that cannot be shared: error %v", err)
	}
}
