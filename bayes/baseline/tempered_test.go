package baseline

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/stat"
)

// On the linear model, all of whose parameters have the prior whatever the partition, the evidence and the posterior
// are known. Twenty runs with seeds of their own: the mean log evidence is within 5 standard errors of the exact one,
// and so are the means of the parameters, taken from the spread of the runs (Student's t with 19 degrees of freedom: a
// false alarm of 8e-5 for each of the four numbers); and the standard error that a run states is that of the spread, to
// which 20 runs tell a factor of 2 with a false alarm of 1e-4.
func TestSMCIsExact(t *testing.T) {
	data := line(rows)
	linear := check.Linear{Y: data.Y, NoiseStdDev: sd, PriorStdDev: []float64{tau, tau, tau}}
	for n := range data.Y {
		linear.X = append(linear.X, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
	}
	mean, _, evidence := linear.Posterior()
	trainer := NewTrainer(lineModel)
	defer trainer.Close()
	var found [4][]float64 // log evidence, and the parameters' means
	stated := 0.
	for seed := range uint64(20) {
		method := SMC{Kernel: mcmc.HMC{Steps: 5}, Sampling: smc.Settings{Particles: 400, Moves: 3}}
		result, err := trainer.Fit(t.Context(), method, dataset.Parts{Train: data},
			Settings{Engine: goEngine(t), DType: compute.Float64, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		p := result.Posterior
		if p.Bound().W != 0 || p.Particles() != 400 || result.SMC == nil || result.Steps != 0 {
			t.Fatalf("%d particles share %d numbers after %d steps", p.Particles(), p.Bound().W, result.Steps)
		}
		w, b := parameters(t, p)
		found[0] = append(found[0], p.Evidence().Value)
		stated += p.Evidence().StdErr * p.Evidence().StdErr / 20
		for i, draws := range [][]float64{column(w, 2, 0), column(w, 2, 1), b} {
			found[i+1] = append(found[i+1], stat.Mean(draws, nil))
		}
	}
	for i, want := range append([]float64{evidence}, mean...) {
		m, s := stat.MeanStdDev(found[i], nil)
		if z := (m - want) / (s / math.Sqrt(20)); math.Abs(z) > 5 {
			t.Errorf("number %d: %.4f, exact %.4f, %.1f standard errors off", i, m, want, z)
		}
	}
	_, s := stat.MeanStdDev(found[0], nil)
	t.Logf("log evidence %.3f, exact %.3f, sd %.3f, stated %.3f", stat.Mean(found[0], nil), evidence, s,
		math.Sqrt(stated))
	if ratio := math.Sqrt(stated) / s; ratio < .5 || ratio > 2 || s > .2 {
		t.Errorf("the stated standard error is %.2f times the spread, %.3f", ratio, s)
	}
	if n := trainer.tempered.Made(); n != 1 {
		t.Errorf("%d samplers were compiled, want 1", n)
	}
}

// A run that is cancelled has no posterior, and says where it stood; from its checkpoint it goes on to the bits of one
// that was not, and a finished one does nothing again.
func TestTemperedResume(t *testing.T) {
	t.Run("SMC", func(t *testing.T) { resumes(t, SMC{Sampling: smc.Settings{Particles: 40, Moves: 2}}, "place") })
}

func resumes(t *testing.T, method Method, where string) {
	parts := dataset.Parts{Train: line(rows)}
	settings := Settings{Seed: 4, Engine: goEngine(t)}
	whole := fitted(t, small, method, parts, settings)
	settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	settings.Progress = func(p run.Progress) {
		if p.Step >= 1 {
			cancel()
		}
	}
	first, err := Fit(ctx, small, method, parts, settings)
	if first != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), where) {
		t.Fatalf("cancelled: %v, %v", first, err)
	}
	calls := 0
	for range 2 {
		calls, settings.Progress = 0, func(run.Progress) { calls++ }
		second := fitted(t, small, method, parts, settings)
		if !slices.Equal(numbers(t, second.Posterior), numbers(t, whole.Posterior)) ||
			second.Posterior.Evidence() != whole.Posterior.Evidence() {
			t.Error("the resumed run ends with other particles")
		}
		sessions := second.SMC.Elapsed
		if second.Elapsed < sessions {
			t.Errorf("it took %v, of which the sampler took %v over all sessions", second.Elapsed, sessions)
		}
	}
	if calls > 1 {
		t.Errorf("a finished run made %d more steps", calls)
	}
	settings.Seed = 5
	if _, err := Fit(t.Context(), small, method, parts, settings); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("another seed: %v", err)
	}
	sampled := whole.SMC.LogEvidence
	computetest.Near(t, "evidence", []float64{whole.Posterior.Evidence().Value}, []float64{sampled}, 0)
}
