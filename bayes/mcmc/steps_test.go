package mcmc

import (
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// fit.SampleSteps makes the same moves as fit.Sample: as a whole, left and gone on with from its checkpoint by either,
// and looked at once it is finished. An error is yielded once.
func TestSteps(t *testing.T) {
	settings := Settings{Chains: 3, Draws: 20, WarmUp: 40, Seed: 2, Engine: computetest.Go(t)}
	kernel := HMC{Steps: 3}
	want, err := Sample(t.Context(), standard(), kernel, settings)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, got *Result) {
		t.Helper()
		for k := range 2 {
			for chain, draws := range got.Draws.Coordinate(k) {
				if !slices.Equal(draws, want.Draws.Coordinate(k)[chain]) {
					t.Fatalf("%s: chain %d is not Sample's", what, chain)
				}
			}
		}
		if got.Status != run.Completed || got.Moves != want.Moves {
			t.Errorf("%s: %s after %d moves, want %d", what, got.Status, got.Moves, want.Moves)
		}
	}
	steps := func() iter.Seq2[fit.Position, error] {
		chains, of := settings.apart(kernel)
		return fit.SampleSteps(t.Context(), standard(), chains, of)
	}
	soFar := func(now fit.Position) *Result {
		result, err := now.Now()
		if err != nil {
			t.Fatal(err)
		}
		return resultOf(result)
	}
	moves, last := 0, (*Result)(nil)
	for now, err := range steps() {
		if err != nil {
			t.Fatal(err)
		}
		if last = soFar(now); now.Result != nil {
			break
		}
		moves++
		if (now.Stage == "warm-up") != (moves < want.WarmUpMoves) || now.Stage == "warm-up" && last.Draws.PerChain > 0 {
			t.Fatalf("move %d of the %s, %d draws", moves, now.Stage, last.Draws.PerChain)
		}
	}
	if moves != want.Moves+want.WarmUpMoves {
		t.Errorf("%d moves were yielded, want %d", moves, want.Moves+want.WarmUpMoves)
	}
	same("Steps", last)

	settings.Checkpoint = filepath.Join(t.TempDir(), "chains")
	for now, err := range steps() {
		if err != nil {
			t.Fatal(err)
		}
		if soFar(now).Draws.PerChain == 7 {
			break
		}
	}
	resumed, err := Sample(t.Context(), standard(), kernel, settings)
	if err != nil {
		t.Fatal(err)
	}
	same("Sample after a loop that was left", resumed)
	looks := 0
	for now, err := range steps() {
		if err != nil {
			t.Fatal(err)
		}
		looks++
		same("a look at a finished run", soFar(now))
	}
	if looks != 1 {
		t.Errorf("a finished run was yielded %d times", looks)
	}
	settings.Chains = -1
	for now, err := range steps() {
		if now.Result != nil || !says(err, "Chains.Chains is -1") {
			t.Errorf("%v, error %v", now, err)
		}
		looks++
	}
	if looks != 2 {
		t.Errorf("an error was yielded %d times", looks-1)
	}
}
