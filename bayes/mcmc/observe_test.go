package mcmc

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// onLine runs chains on the posterior of a line through four points.
func onLine(t *testing.T, chains Chains, s run.Settings) (*fit.Result, error) {
	t.Helper()
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All()}
	data := &dataset.Dataset{Name: "line", Task: dataset.Regression, X: mat.NewDense(4, 1, []float64{-1, -.2, .3, 1}),
		Y: []float64{-.7, .1, .2, .9}, Features: []string{"x"}, Target: "y"}
	return fit.Fit(t.Context(), model, chains, dataset.Parts{Train: data}, s)
}

// Observe sees the draws of each ObserveEvery, though checkpoints in the middle of bursts count several moves at once.
// One that ends the run there, and would again, does not cost the checkpoint.
func TestBurstObserve(t *testing.T) {
	chains := Chains{Kernel: RandomWalkMetropolis{StepSize: .5}, Chains: 3, Draws: 150, WarmUp: NoWarmUp}
	var seen, want []int
	s := run.Settings{
		Engine:     computetest.XLA(t, "only XLA makes several moves in a call"),
		Checkpoint: filepath.Join(t.TempDir(), "run"), CheckpointEvery: 1, ObserveEvery: 7,
		Observe: func(draws int, now *bayes.Posterior) error {
			if seen = append(seen, draws); now.Particles() != 3*draws {
				t.Errorf("%d draws of 3 chains, said to be %d of each", now.Particles(), draws)
			}
			return nil
		},
	}
	if _, err := onLine(t, chains, s); err != nil {
		t.Fatal(err)
	}
	for draws := 7; draws <= 150; draws += 7 {
		want = append(want, draws)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen at %v draws, want %v", seen, want)
	}
	full := errors.New("enough")
	chains.Draws = 50
	s.Checkpoint, s.CheckpointEvery, s.ObserveEvery = filepath.Join(t.TempDir(), "ended"), 0, 5
	s.Observe = func(int, *bayes.Posterior) error { return full }
	result, err := onLine(t, chains, s)
	if !errors.Is(err, full) || strings.Contains(err.Error(), "checkpoint") || result.Status != run.Stopped {
		t.Fatalf("%v, %+v", err, result)
	}
	s.Observe = nil
	result, err = onLine(t, chains, s)
	if d := fit.Details[*Details](result); err != nil || d.Draws.PerChain != 50 || d.Moves != 50 {
		t.Errorf("resumed: %v, %+v", err, result)
	}
}
