package fit_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// NPROC alone decides the bits of XLA on a CPU, whatever processors there are, and a checkpoint that was begun with
// another number of threads is refused. The test runs itself with several of both.
func TestThreadsDecideBits(t *testing.T) {
	if checkpoint := os.Getenv("THREADS_TEST"); checkpoint != "" {
		fmt.Println(ofThreads(t, checkpoint))
		return
	}
	computetest.XLA(t, "the bits of the Go backend do not depend on threads")
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("there is no taskset here")
	}
	child := func(checkpoint, threads string, on ...string) string {
		command := append(on, os.Args[0], "-test.run=^TestThreadsDecideBits$")
		program := exec.CommandContext(t.Context(), command[0], command[1:]...)
		program.Env = append(os.Environ(), "NPROC="+threads, "THREADS_TEST="+checkpoint)
		out, err := program.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return line
	}
	folder := t.TempDir()
	begun := filepath.Join(folder, "begun")
	all := child(begun, "3")
	if one := child(filepath.Join(folder, "one"), "3", taskset, "-c", "0"); one != all {
		t.Errorf("three threads on one processor: %q, on all %q", one, all)
	}
	if other := child(begun, "2"); !strings.Contains(other, "computed with 3 threads, and this process has 2") {
		t.Errorf("with two threads it goes on: %q", other)
	}
}

// ofThreads is a digest of the first draws of chains, or the error.
func ofThreads(t *testing.T, checkpoint string) string {
	rng := rand.New(rand.NewPCG(1, 2))
	data := &dataset.Dataset{Name: "wave", Features: []string{"x"}, Target: "y", X: mat.NewDense(1500, 1, nil),
		Y: make([]float64, 1500)}
	for i := range data.Y {
		x := rng.NormFloat64()
		data.X.(*mat.Dense).Set(i, 0, x)
		data.Y[i] = math.Sin(x) + .1*rng.NormFloat64()
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{50}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .1}}
	chains := mcmc.Chains{Kernel: mcmc.MALA{StepSize: 1e-5}, Chains: 4, WarmUp: mcmc.NoWarmUp, Draws: 1000}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var first *bayes.Posterior // of the first draws; how many follow before the run ends is a matter of time
	settings := run.Settings{Seed: 3, Checkpoint: checkpoint, Engine: computetest.XLA(t, "its bits depend on threads"),
		ObserveEvery: 2, Observe: func(_ int, now *bayes.Posterior) error {
			cancel()
			first = cmp.Or(first, now)
			return nil
		}}
	result, err := fit.Fit(ctx, model, chains, dataset.Parts{Train: data}, settings)
	if errors.Is(err, run.ErrOtherRun) {
		return err.Error()
	}
	if err != nil || result.Status != run.Cancelled {
		t.Fatal(result.Status, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, particlesOf(t, &fit.Result{Posterior: first}))))
}
