package particles_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// trained is a small network trained by OpenHorizon, on the Go backend unless the settings name an engine.
func trained(t testing.TB, training particles.Training, settings run.Settings) (*fit.Result, *particles.Details) {
	t.Helper()
	if settings.Engine == nil {
		settings.Engine = computetest.Go(t)
	}
	return fittest.Fit[*particles.Details](t, fittest.Small, ohsmc.OpenHorizon{Training: training},
		fittest.Parts(t, 60), settings)
}

// Moves so long that one particle has all the weight are a warning that names the cures; so is a step that leaves
// copies of one particle, though later ones spread; of many particles and noisy rows neither is.
func TestFewParticlesWarning(t *testing.T) {
	few := []string{"carried by", "of 20 particles", "Variance", "mcmc.Chains"}
	lost := []string{"at step 2 all 20 particles became copies of one", "take more Particles", "BatchSize"}
	for _, c := range []struct {
		sd, variance float64
		particles    int
		words, not   []string
	}{
		{.3, 1e4, 20, few, nil}, {.3, 1e-4, 20, lost, few}, {3, 1e-4, 200, nil, slices.Concat(few, lost)},
	} {
		method := ohsmc.OpenHorizon{
			Training: particles.Training{Particles: c.particles, BatchSize: 30, Epochs: 3},
			Kernel:   mcmc.RandomWalk{Variance: c.variance},
		}
		result, _ := fittest.Fit[*particles.Details](t, fittest.Line(c.sd), method,
			dataset.Parts{Train: fittest.Data(60)}, run.Settings{Engine: computetest.Go(t)})
		text := strings.Join(result.Warnings, "; ")
		for i, words := range [][]string{c.words, c.not} {
			for _, want := range words {
				if strings.Contains(text, want) != (i == 0) {
					t.Errorf("%+v: warnings %q, with %q: want %v", c, text, want, i == 0)
				}
			}
		}
	}
}

// The result does not depend on the chunks beyond rounding: three steps, so that rounding cannot pick other ancestors.
func TestChunks(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-10
		if dtype == compute.Float32 {
			tolerance = 2e-4
		}
		var want []float64
		for _, chunk := range []int{0, 4} {
			result, _ := trained(t, particles.Training{Particles: 10, BatchSize: 36, Epochs: 3, Chunk: chunk},
				run.Settings{Engine: engine, DType: dtype})
			got := fittest.Numbers(t, result.Posterior)
			if want == nil {
				want = got
			}
			computetest.Near(t, fmt.Sprint("chunks of ", chunk), got, want, tolerance)
		}
	})
}

// A result has the numbers of its steps, its validations and its data.
func TestResult(t *testing.T) {
	p := fittest.Parts(t, 60)
	last := run.Progress{}
	result, d := trained(t, particles.Training{Particles: 100, BatchSize: 10, Epochs: 20, ValidateEvery: 1, Patience: 80},
		run.Settings{Progress: func(p run.Progress) { last = p }})
	if result.Status != run.Completed || d.Steps != 80 || d.PerEpoch != 4 || len(d.Trace) != 80 || len(d.Validated) != 80 {
		t.Errorf("status %s, %d steps, %d records, %d validations; want completed, 80, 80, 80",
			result.Status, d.Steps, len(d.Trace), len(d.Validated))
	}
	if last.Step != 80 || last.Steps != 80 || last.Score(fit.BestScore) != d.Best.NLPD {
		t.Errorf("last progress %+v", last)
	}
	best := d.Validated[0]
	for _, v := range d.Validated {
		if v.NLPD < best.NLPD {
			best = v
		}
	}
	if best != d.Best {
		t.Errorf("best validation %+v, but Best is %+v", best, d.Best)
	}
	prediction, err := result.Posterior.Predict(t.Context(), p.Validation.X)
	if err != nil {
		t.Fatal(err)
	}
	nlpd, err := metric.NLPD(prediction, p.Validation.Y)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(nlpd.Value-best.NLPD) > 1e-4 {
		t.Errorf("the posterior has validation NLPD %.6f, the best was %.6f", nlpd.Value, best.NLPD)
	}
	logScale := math.Log(result.Posterior.Origin().Target.StdDev[0]) // in the loss, but not in the evidence
	for i, r := range d.Trace {
		if r.Resamplings != 1 || r.ESS < 1 || r.ESS > 100.1 || r.UniqueAncestors < 1 || r.UniqueAncestors > 100 ||
			r.NonFinite != 0 || r.GradientRejected ||
			math.Abs(r.Loss-logScale+r.LogEvidence/float64([]int{10, 10, 10, 6}[i%4])) > 1e-9 {
			t.Fatalf("step %d: %+v", i+1, r)
		}
	}
	if provenance := result.Posterior.Provenance(); provenance.DataHash != p.Train.Hash() || provenance.Rows != 36 ||
		provenance.Versions["backend"] == "" || len(provenance.Settings) == 0 {
		t.Errorf("provenance %+v", provenance)
	}
}

// A setting that is wrong is an error that names it and its value, and so is a step that leaves no particle.
func TestBadInput(t *testing.T) {
	wide := fittest.Small
	wide.Prior = bayes.Normal{StdDev: 1e38}
	rate := func(rate float64) particles.Training {
		return particles.Training{Optimiser: train.Adam{Schedule: train.Constant(rate)}}
	}
	for _, c := range []struct {
		model    bayes.Model
		training particles.Training
		words    []string
	}{
		{fittest.Small, particles.Training{Particles: 1}, []string{"Particles is 1", "at least 2"}},
		{fittest.Small, particles.Training{Particles: 1 << 60}, []string{"Particles", "in memory"}},
		{fittest.Small, particles.Training{BatchSize: 37}, []string{"particles: Training.BatchSize is 37", "36, the rows"}},
		{fittest.Small, rate(-.1), []string{"Schedule.Rate is -0.1"}},
		{fittest.Small, rate(math.NaN()), []string{"Schedule.Rate is NaN"}},
		{fittest.Small, particles.Training{Resampler: "roulette"}, []string{"roulette", "stratified"}},
		{fittest.Small, particles.Training{Threshold: 1.5}, []string{"Threshold is 1.5"}},
		{fittest.Small, particles.Training{Epochs: -1}, []string{"Epochs is -1"}},
		{fittest.Small, particles.Training{Epochs: math.MaxInt}, []string{"Epochs", "with 1 batches"}},
		{wide, particles.Training{Particles: 4}, []string{"step 1", "4 of 4", bayes.ErrZeroWeights.Error()}},
	} {
		_, err := fit.Fit(t.Context(), c.model, ohsmc.OpenHorizon{Training: c.training}, fittest.Parts(t, 60),
			run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, c.words[0], err, c.words...)
		if c.training.Particles == 4 && !errors.Is(err, bayes.ErrZeroWeights) {
			t.Error(err)
		}
	}
	// The particles are divided between devices, each of which evaluates its part at once.
	engine := computetest.Several(t)
	for words, training := range map[string]particles.Training{
		"Training.Chunk is 5: it must be 0 with Devices 4": {Particles: 12, Chunk: 5},
		"Settings.Devices is 4, Training.Particles 1001":   {Particles: 1001},
	} {
		_, err := fit.Fit(t.Context(), fittest.Small, ohsmc.OpenHorizon{Training: training}, fittest.Parts(t, 60),
			run.Settings{Engine: engine, Devices: 4})
		computetest.WantError(t, words, err, words)
	}
}
