package smc_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// parted is tempered SMC in parts, each of which goes on from the checkpoint of the one before.
type parted struct {
	smc.Tempered
	ends  []int
	seeds []uint64
}

func (p parted) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := p.Tempered.Prepare(j)
	if err != nil {
		return nil, err
	}
	p.Tempered = prepared.(smc.Tempered)
	return p, nil
}

func (p parted) Run(ctx context.Context, j *fit.Job) (result *fit.Result, err error) {
	for i, end := range p.ends {
		if result, err = p.RunTo(ctx, j, end, p.seeds[i]); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// A run in parts of one seed has the bits of a whole run, for kernels that carry a gradient, a density, or chains, and
// with resampling at each power or not; with another seed for the second part it has others.
func TestRunTo(t *testing.T) {
	engine := computetest.Go(t)
	ladder := []float64{.01, .03, .2, 1}
	for i, method := range []smc.Tempered{
		{Kernel: mcmc.HMC{Steps: 3}, Particles: 20, Ladder: ladder},
		{Kernel: mcmc.RandomWalkMetropolis{}, Particles: 20, Ladder: ladder, Moves: 3},
		{Kernel: mcmc.MALA{}, Particles: 20, WasteFree: 4, Ladder: ladder},
	} {
		bits := func(method fit.Method) string {
			settings := run.Settings{Seed: 7, Engine: engine, DType: compute.Float64,
				Checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
			result, err := fit.Sample(t.Context(), linear(check.Line()), method, settings)
			if err != nil {
				t.Fatal(err)
			}
			phi, err := compute.Float64s(result.Draws.Phi)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(phi, result.Draws.LogWeights, result.Draws.Evidence.Value)
		}
		whole := bits(method)
		if got := bits(parted{method, []int{1, 3, 4, 0}, []uint64{7, 7, 7, 7}}); got != whole {
			t.Errorf("kernel %d: in parts it has other bits", i)
		}
		if got := bits(parted{method, []int{3, 0}, []uint64{7, 8}}); got == whole {
			t.Errorf("kernel %d: another seed changes nothing", i)
		}
	}
	_, err := fit.Sample(t.Context(), linear(check.Line()), parted{smc.Tempered{Ladder: ladder}, []int{5}, []uint64{7}},
		run.Settings{Engine: engine})
	if err == nil || !strings.Contains(err.Error(), "RunTo 5 powers of the Ladder's 4") {
		t.Errorf("error %v", err)
	}
}
