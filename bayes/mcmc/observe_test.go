package mcmc

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/run"
)

// Observe sees the draws that the result begins with, each time that all chains have so many more; its error ends the
// run.
func TestObserve(t *testing.T) {
	s := Settings{
		Chains: 3, Draws: 25, Thin: 2, WarmUp: 5, Seed: 2, DType: compute.Float64, Engine: computetest.Go(t),
	}
	for _, c := range []struct {
		every int
		want  []int
	}{{10, []int{10, 20}}, {0, []int{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}}, {25, []int{25}}} {
		var seen []int
		var last *Draws
		s.ObserveEvery = c.every
		s.Observe = func(draws int, now *Draws) error {
			seen, last = append(seen, draws), now
			return nil
		}
		kernel := HMC{StepSize: .9, Steps: 3, Jitter: .7} // chains come to the ends of transitions by themselves
		result, err := Sample(context.Background(), standard(), kernel, s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, c.want) {
			t.Errorf("every %d: seen at %v draws, want %v", c.every, seen, c.want)
		}
		for chain := range 3 {
			at := last.PerChain - 1
			if last.PerChain != seen[len(seen)-1] || !slices.Equal(last.At(chain, at), result.Draws.At(chain, at)) {
				t.Errorf("every %d: chain %d: %d draws were shown, or others than the result's", c.every, chain, last.PerChain)
			}
		}
	}
	enough := errors.New("enough")
	s.Observe = func(int, *Draws) error { return enough }
	result, err := Sample(context.Background(), standard(), HMC{StepSize: .9, Steps: 3}, s)
	if !errors.Is(err, enough) || result == nil || result.Status != run.Stopped || result.Draws.PerChain != 25 {
		t.Errorf("result %+v and error %v, want that of Observe, and the draws before it", result, err)
	}
	s.ObserveEvery = -1
	if _, err := Sample(context.Background(), standard(), HMC{StepSize: .9}, s); !says(err, "ObserveEvery is -1") {
		t.Errorf("error %v", err)
	}
}
