package fit_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/fbnn"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/pmcnet/annealed"

	"gonum.org/v1/gonum/mat"
)

// written are a few rows.
func written() *dataset.Dataset {
	return &dataset.Dataset{Name: "line", X: mat.NewDense(12, 1, []float64{-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6}),
		Y: []float64{-5, -5, -4, -2, -2, -1, 1, 1, 3, 4, 4, 6}, Features: []string{"x"}, Target: "y"}
}

// unwritten is a kernel of a user's own with a setting that JSON leaves out.
type unwritten struct {
	mcmc.MALA
	scale float64
}

// A checkpoint cannot tell apart two kernels that differ in a setting which JSON leaves out: no run begins with one.
func TestUnwrittenSettings(t *testing.T) {
	engine := computetest.Go(t)
	kernel := unwritten{mcmc.MALA{StepSize: .1}, 2}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.All()}
	for name, method := range map[string]fit.Method{
		"mcmc": mcmc.Chains{Kernel: kernel, Draws: 20, WarmUp: mcmc.NoWarmUp},
		"smc":  smc.Tempered{Kernel: kernel, Particles: 50, Moves: 1},
		"baseline": baseline.MAPHMC{
			Training: baseline.Training{Epochs: 1}, Chains: mcmc.Chains{Kernel: kernel, Draws: 20, WarmUp: mcmc.NoWarmUp},
		},
		"ohsmc":  ohsmc.SMC{Training: particles.Training{Particles: 20, Epochs: 1}, Kernel: kernel},
		"pbnn":   pbnn.AllRows{Sampling: pbnn.Sampling{Draws: 20}, Kernel: kernel},
		"fbnn":   fbnn.Chain{Kernel: kernel, Draws: 20},
		"pmcnet": annealed.Annealed{SMC: smc.Tempered{Kernel: kernel, Particles: 100, Moves: 1}},
	} {
		begin := func(file string) error {
			_, err := fit.Fit(t.Context(), model, method, dataset.Parts{Train: written()},
				run.Settings{Engine: engine, Checkpoint: file})
			return err
		}
		folder := t.TempDir()
		err := begin(filepath.Join(folder, "run"))
		if err == nil || !strings.Contains(err.Error(), "unwritten.scale is not written as JSON") {
			t.Errorf("%s: error %v does not name the field", name, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%s: leaves %v, %v", name, left, err)
		}
		if err := begin(""); err != nil && strings.Contains(err.Error(), "written") {
			t.Errorf("%s, without a checkpoint: %v", name, err)
		}
	}
}

// A checkpoint of another model is refused, whichever part of it differs, by methods that compile the same program.
func TestCheckpointOfAnotherModel(t *testing.T) {
	engine := computetest.Go(t)
	first := bayes.Model{Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .3},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}
	for name, method := range map[string]fit.Method{
		"HMC":   mcmc.Chains{Kernel: mcmc.HMC{StepSize: .01}, Draws: 5, WarmUp: mcmc.NoWarmUp},
		"SMC":   smc.Tempered{Kernel: mcmc.HMC{StepSize: .05, Steps: 2}, Particles: 50, Moves: 1},
		"SGHMC": baseline.SGHMC{Training: baseline.Training{Epochs: 2}},
		"MAP":   baseline.MAP{Training: baseline.Training{Epochs: 2}},
	} {
		begin := func(m bayes.Model, file string) error {
			_, err := fit.Fit(t.Context(), m, method, dataset.Parts{Train: written()},
				run.Settings{Engine: engine, Checkpoint: file})
			return err
		}
		file := filepath.Join(t.TempDir(), "run")
		if err := begin(first, file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := begin(first, file); err != nil {
			t.Errorf("%s, the same again: %v", name, err)
		}
		for what, change := range map[string]func(m *bayes.Model){
			"likelihood": func(m *bayes.Model) { m.Likelihood = bayes.Gaussian{StdDev: 3} },
			"prior":      func(m *bayes.Model) { m.Prior = bayes.Normal{StdDev: .01} },
			"activation": func(m *bayes.Model) { m.Network = nn.MLP{Hidden: []int{2}, Activation: nn.ReLU} },
		} {
			m := first
			change(&m)
			if err := begin(m, file); !errors.Is(err, run.ErrOtherRun) {
				t.Errorf("%s with another %s: error %v, want one of another run", name, what, err)
			}
		}
	}
}
