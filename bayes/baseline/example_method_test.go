package baseline_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Widened is a method of one's own: the mode with independent normal noise of one standard deviation around it.
type Widened struct {
	StdDev  float64 // default 0.1
	Samples int     // default 20
}

var _ baseline.Method = Widened{}

func (Widened) Name() string   { return "widened MAP" }
func (Widened) Source() string { return "a mode with noise of one standard deviation" }

func (m Widened) Prepare(*baseline.Job) (baseline.Method, error) {
	if m.StdDev == 0 {
		m.StdDev = .1
	}
	if m.Samples == 0 {
		m.Samples = 20
	}
	if !(m.StdDev > 0) || m.Samples < 0 {
		return nil, fmt.Errorf("Widened is %+v: both must be positive", m)
	}
	return m, nil
}

func (m Widened) Fit(ctx context.Context, j *baseline.Job) (*baseline.Result, error) {
	mode, err := j.Mode(ctx) // trained with the job's settings, validation and checkpoint
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(j.Seed, 1))
	particles := baseline.Particles{Psi: mode.Psi}
	for range m.Samples {
		for _, v := range mode.Phi {
			particles.Phi = append(particles.Phi, v+m.StdDev*rng.NormFloat64())
		}
	}
	posterior, err := j.Posterior(run.Completed, particles)
	if err != nil {
		return nil, err
	}
	return mode.Result(posterior), nil
}

// A method of one's own is fitted, kept and compared as the package's are.
func ExampleMethod() {
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{10}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .3},
		Stochastic: bayes.Layers(2),
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts := dataset.Parts{Train: dataset.Yacht()}
	for _, method := range []baseline.Method{baseline.MAP{}, Widened{}} {
		settings := baseline.Settings{Epochs: 2, Engine: engine}
		result, err := baseline.Fit(context.Background(), model, method, parts, settings)
		if err != nil {
			fmt.Println(err)
			return
		}
		posterior := result.Posterior
		fmt.Printf("%s: %s after %d steps, %d particles, %s\n", method.Name(), result.Status, result.Steps,
			posterior.Particles(), posterior.Provenance().Algorithm)
	}
	// Output:
	// MAP: completed after 14 steps, 1 particles, baseline: maximum a posteriori
	// widened MAP: completed after 14 steps, 20 particles, baseline: a mode with noise of one standard deviation
}
