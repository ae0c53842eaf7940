package ohsmc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
)

// The environment of a process that BenchmarkFirstStep starts.
const (
	firstParticles = "GOBNN_TEST_FIRST_PARTICLES"
	firstValidated = "GOBNN_TEST_FIRST_VALIDATED"
)

// TestFirstStep is what BenchmarkFirstStep times as a process of its own: it trains boston's net up to the first step.
func TestFirstStep(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv(firstParticles))
	if err != nil {
		t.Skip("it serves BenchmarkFirstStep")
	}
	parts, err := dataset.MustLoad("boston").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(firstValidated) == "" {
		parts.Validation = nil
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.Layers(3),
	}
	enough := errors.New("one step is enough")
	training := particles.Training{Particles: count, BatchSize: 50, Epochs: 1, ValidateEvery: 1}
	_, err = fit.Fit(t.Context(), model, OpenHorizon{Training: training}, parts, run.Settings{
		ObserveEvery: 1, Observe: func(int, *bayes.Posterior) error { return enough },
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
}

// BenchmarkFirstStep is the time from the start of a program to the end of its first step, and of the validation after
// it: boston, a net 13-50-20-5-1 whose third layer is stochastic. Programs are compiled, or were kept on disk by an
// earlier process.
func BenchmarkFirstStep(b *testing.B) { computetest.Bench(b, benchmarkFirstStep) }

func benchmarkFirstStep(b *testing.B, _ *compute.Engine) {
	for _, particles := range computetest.Cases(1000, 10_000, 200_000) {
		for _, validated := range computetest.Cases("yes", "") {
			for _, kept := range computetest.Cases(true, false) {
				b.Run(fmt.Sprintf("J=%d/validated=%t/kept=%t", particles, validated != "", kept), func(b *testing.B) {
					folder := "off"
					if kept {
						folder = b.TempDir()
					}
					start := func() {
						command := exec.Command(os.Args[0], "-test.run=^TestFirstStep$")
						command.Env = append(os.Environ(), "GOBNN_EXECUTABLES="+folder,
							fmt.Sprint(firstParticles, "=", particles), firstValidated+"="+validated)
						if out, err := command.CombinedOutput(); err != nil {
							b.Fatalf("%v: %s", err, out)
						}
					}
					if kept {
						start()
					}
					for b.Loop() {
						start()
					}
				})
			}
		}
	}
}
