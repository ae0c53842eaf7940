package particles_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/mat"
)

// Moves so long that one particle has all the weight are a warning that names the cures; so is a step that leaves
// copies of one particle, though later ones spread; of many particles and noisy rows neither is said.
func TestFewParticlesWarning(t *testing.T) {
	few := []string{"carried by", "of 20 particles", "Variance", "mcmc.Chains"}
	lost := []string{"at step 2 all 20 particles became copies of one", "take more Particles", "BatchSize"}
	for _, c := range []struct {
		sd, variance float64
		particles    int
		says, not    []string
	}{
		{.3, 1e4, 20, few, nil}, {.3, 1e-4, 20, lost, few}, {3, 1e-4, 200, nil, slices.Concat(few, lost)},
	} {
		method := ohsmc.OpenHorizon{
			Training: particles.Training{Particles: c.particles, BatchSize: 30, Epochs: 3},
			Kernel:   mcmc.RandomWalk{Variance: c.variance},
		}
		result, err := tried(t.Context(), line(c.sd), method, dataset.Parts{Train: linear(60)},
			run.Settings{Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(result.Warnings, "; ")
		for i, words := range [][]string{c.says, c.not} {
			for _, want := range words {
				if strings.Contains(text, want) != (i == 0) {
					t.Errorf("%+v: warnings %q, with %q: want %v", c, text, want, i == 0)
				}
			}
		}
	}
}

func TestSeed(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		training := particles.Training{Particles: 20, BatchSize: 8, Epochs: 3, Threshold: .7}
		settings := run.Settings{Seed: 1, Engine: engine, DType: dtype}
		a, b := trained(t, training, settings), trained(t, training, settings)
		if !slices.Equal(numbers(t, a.Posterior), numbers(t, b.Posterior)) {
			t.Error("the same seed gives other bits")
		}
		settings.Seed = 2
		if slices.Equal(numbers(t, a.Posterior), numbers(t, trained(t, training, settings).Posterior)) {
			t.Error("another seed gives the same bits")
		}
	})
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
			result := trained(t, particles.Training{Particles: 10, BatchSize: 36, Epochs: 3, Chunk: chunk},
				run.Settings{Engine: engine, DType: dtype})
			got := numbers(t, result.Posterior)
			if want == nil {
				want = got
			}
			computetest.Near(t, fmt.Sprint("chunks of ", chunk), got, want, tolerance)
		}
	})
}

// Everything that a run says about itself.
func TestResult(t *testing.T) {
	p := parts(t)
	last := run.Progress{}
	result := trained(t, particles.Training{Particles: 100, BatchSize: 10, Epochs: 20, ValidateEvery: 1, Patience: 80},
		run.Settings{Progress: func(p run.Progress) { last = p }})
	if result.Status != run.Completed || result.Steps != 80 || result.PerEpoch != 4 || len(result.Trace) != 80 ||
		len(result.Validated) != 80 {
		t.Errorf("status %s, %d steps, %d an epoch, %d records, %d validations; want completed, 80, 4, 80, 80",
			result.Status, result.Steps, result.PerEpoch, len(result.Trace), len(result.Validated))
	}
	if last.Step != 80 || last.Steps != 80 || last.Score(fit.BestScore) != result.Best.NLPD {
		t.Errorf("last progress %+v", last)
	}
	best := result.Validated[0]
	for _, v := range result.Validated {
		if v.NLPD < best.NLPD {
			best = v
		}
	}
	if best != result.Best {
		t.Errorf("best validation %+v, but Best is %+v", best, result.Best)
	}
	prediction, err := result.Posterior.Predict(context.Background(), p.Validation.X)
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
	logScale := math.Log(result.Posterior.Target().StdDev[0]) // in the loss, but not in the evidence
	for i, r := range result.Trace {
		if r.Resamplings != 1 || r.ESS < 1 || r.ESS > 100.1 || r.UniqueAncestors < 1 || r.UniqueAncestors > 100 ||
			r.NonFinite != 0 || r.GradientRejected ||
			math.Abs(r.Loss-logScale+r.LogEvidence/float64([]int{10, 10, 10, 6}[i%4])) > 1e-9 || r.Seconds <= 0 {
			t.Fatalf("step %d: %+v", i+1, r)
		}
	}
	if provenance := result.Posterior.Provenance(); provenance.DataHash != p.Train.Hash() || provenance.Rows != 36 ||
		provenance.Versions["backend"] == "" || len(provenance.Settings) == 0 {
		t.Errorf("provenance %+v", provenance)
	}
}

func TestEarlyStop(t *testing.T) {
	result := trained(t, particles.Training{
		Particles: 50, BatchSize: 36, Epochs: 2000, Patience: 5, Optimiser: train.Adam{Schedule: train.Constant(.1)},
	}, run.Settings{})
	if result.Status != run.StoppedEarly || result.Steps != result.Best.Step+5 {
		t.Errorf("status %s after step %d, best at %d; want stopped early, five after the best", result.Status,
			result.Steps, result.Best.Step)
	}
}

// Without a validation part the last state is returned.
func TestNoValidation(t *testing.T) {
	p := parts(t)
	p.Validation = nil
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 10, BatchSize: 36, Epochs: 2}}
	result, err := tried(t.Context(), small, method, p, run.Settings{Engine: computetest.Go(t)})
	if err != nil || result.Best.Step != 0 || len(result.Validated) != 0 || result.Posterior.Particles() != 10 {
		t.Errorf("result %+v, error %v", result, err)
	}
}

// A run that is cancelled, and goes on from its checkpoint in another Fit, ends with the bits of one that was not,
// in every tensor and record.
func TestResume(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		training := particles.Training{Particles: 20, BatchSize: 8, Epochs: 10, Threshold: .7, ValidateEvery: 1}
		settings := run.Settings{Seed: 4, Engine: engine, DType: dtype}
		whole := trained(t, training, settings)

		settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		ctx, cancel := context.WithCancel(context.Background())
		settings.Progress = func(p run.Progress) {
			if p.Step >= 1 {
				cancel()
			}
		}
		first, err := tried(ctx, small, ohsmc.OpenHorizon{Training: training}, parts(t), settings)
		if err != nil {
			t.Fatal(err)
		}
		if first.Status != run.Cancelled || first.Steps < 1 || first.Steps >= whole.Steps || len(first.Trace) != first.Steps {
			t.Fatalf("cancelled: status %s, %d steps, %d records", first.Status, first.Steps, len(first.Trace))
		}
		settings.Progress = nil
		second := trained(t, training, settings)
		if !slices.Equal(numbers(t, whole.Posterior), numbers(t, second.Posterior)) {
			t.Error("the resumed run ends with other particles")
		}
		for i := range whole.Trace {
			whole.Trace[i].Seconds, second.Trace[i].Seconds = 0, 0
		}
		if fmt.Sprint(whole.Trace) != fmt.Sprint(second.Trace) || !slices.Equal(whole.Validated,
			second.Validated) || whole.Best != second.Best {
			t.Error("the resumed run has other records")
		}
		third := trained(t, training, settings) // it is complete: nothing is done again
		if third.Steps != whole.Steps || third.Status != run.Completed || !slices.Equal(numbers(t, third.Posterior),
			numbers(t, whole.Posterior)) {
			t.Errorf("a complete checkpoint: status %s, %d steps", third.Status, third.Steps)
		}
	})
}

// A checkpoint that was written in the middle by time, as before a kill, resumes to the same bits too.
func TestResumeAfterKill(t *testing.T) {
	training, settings := particles.Training{Particles: 20, BatchSize: 8, Epochs: 4}, run.Settings{Seed: 4}
	whole := trained(t, training, settings)
	settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	settings.CheckpointEvery = time.Nanosecond
	var middle []byte
	settings.Progress = func(p run.Progress) {
		if middle == nil && p.Step >= 3 && p.Step < p.Steps {
			var err error
			if middle, err = os.ReadFile(settings.Checkpoint); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Progress comes ten times a second at most: slow the first steps down so that it is called in the middle.
	slow := settings.Progress
	settings.Progress = func(p run.Progress) { slow(p); time.Sleep(101 * time.Millisecond) }
	trained(t, training, settings)
	if middle == nil {
		t.Fatal("no checkpoint in the middle")
	}
	if err := os.WriteFile(settings.Checkpoint, middle, 0o644); err != nil {
		t.Fatal(err)
	}
	settings.Progress, settings.CheckpointEvery = nil, 0
	if err := os.WriteFile(settings.Checkpoint, middle, 0o644); err != nil {
		t.Fatal(err)
	}
	resumed := trained(t, training, settings)
	if !slices.Equal(numbers(t, resumed.Posterior), numbers(t, whole.Posterior)) {
		t.Error("a run resumed from the middle ends with other particles")
	}
}

// Resuming with another model, other data, another seed or other settings is refused and says which.
func TestResumeMismatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.safetensors")
	training := particles.Training{Particles: 10, BatchSize: 36, Epochs: 1}
	base := run.Settings{Checkpoint: file, Engine: computetest.Go(t)}
	trained(t, training, base)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	otherModel := small
	otherModel.Stochastic = bayes.Layers(1)
	otherData := parts(t)
	otherData.Train.Y[3] += 1
	otherSeed, more := base, training
	otherSeed.Seed, more.Particles = 9, 12
	method := ohsmc.OpenHorizon{Training: training}
	for _, c := range []struct {
		what     string
		model    bayes.Model
		method   fit.Method
		parts    dataset.Parts
		settings run.Settings
	}{
		{"model", otherModel, method, parts(t), base}, {"data", small, method, otherData, base},
		{"seed", small, method, parts(t), otherSeed},
		{"settings", small, ohsmc.OpenHorizon{Training: more}, parts(t), base},
		{"settings", small, ohsmc.OpenHorizon{Training: training, Kernel: mcmc.RandomWalk{Variance: .5}}, parts(t), base},
	} {
		_, err := fit.Fit(t.Context(), c.model, c.method, c.parts, c.settings)
		if err == nil || !strings.Contains(err.Error(), "other "+c.what) || !strings.Contains(err.Error(), file) {
			t.Errorf("another %s: error %v", c.what, err)
		}
		if after, _ := os.ReadFile(file); !slices.Equal(after, written) {
			t.Fatalf("another %s: the checkpoint was changed", c.what)
		}
	}
	if err := os.WriteFile(file, written[:len(written)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fit.Fit(t.Context(), small, method, parts(t), base); !errors.Is(err, tensorfile.ErrDamaged) {
		t.Errorf("a truncated checkpoint: error %v", err)
	}
	for _, settings := range []run.Settings{base, otherSeed} { // over a truncated file, and over another run
		settings.Replace = true
		if result := trained(t, training, settings); result.Steps == 0 || result.Status != run.Completed {
			t.Errorf("Replace with seed %d: %d steps, %s", settings.Seed, result.Steps, result.Status)
		}
	}
}

// SIGINT, through signal.NotifyContext as a program would have it, ends a run with what is there.
func TestInterrupt(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sent := false
	method := ohsmc.OpenHorizon{Training: particles.Training{
		Particles: 10, BatchSize: 4, Epochs: 1_000_000, Patience: 1_000_000,
	}}
	result, err := tried(ctx, small, method, parts(t), run.Settings{Engine: computetest.Go(t),
		Progress: func(run.Progress) {
			if !sent {
				sent = true
				if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
					t.Error(err)
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != run.Cancelled || result.Posterior.Particles() != 10 || len(result.Trace) != result.Steps ||
		result.Posterior.Provenance().Status != "cancelled" {
		t.Errorf("status %s, %d particles, %d of %d records", result.Status, result.Posterior.Particles(),
			len(result.Trace), result.Steps)
	}
}

// A context that is over before the first step leaves the prior's particles.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 10}}
	result, err := tried(ctx, small, method, parts(t), run.Settings{Engine: computetest.Go(t)})
	if err != nil || result.Status != run.Cancelled || result.Steps != 0 || result.Posterior.Particles() != 10 {
		t.Errorf("result %+v, error %v", result, err)
	}
}

// Every bad input is an error that names the value.
func TestBadInput(t *testing.T) {
	nanFeature, infTarget := parts(t), parts(t)
	nanFeature.Train.X.(*mat.Dense).Set(3, 1, math.NaN())
	infTarget.Validation.Y[2] = math.Inf(-1)
	shapes := parts(t)
	shapes.Train.Y = shapes.Train.Y[:30]
	features := parts(t)
	features.Validation.X = mat.NewDense(features.Validation.Rows(), 3, nil)
	features.Validation.Features = []string{"a", "b", "c"}
	classes := parts(t)
	classes.Train.Task, classes.Train.Classes = dataset.BinaryClassification, []string{"no", "yes"}
	for i := range classes.Train.Y {
		classes.Train.Y[i] = float64(i % 2)
	}
	absent, oneClass := parts(t), parts(t)
	for _, p := range []dataset.Parts{absent, oneClass} {
		p.Train.Task, p.Train.Classes = dataset.Classification, []string{"no", "maybe", "yes"}
		clear(p.Train.Y)
	}
	absent.Validation, oneClass.Validation, absent.Train.Y[0] = nil, nil, 2
	model := func(change func(*bayes.Model)) bayes.Model { m := small; change(&m); return m }
	for _, c := range []struct {
		name     string
		model    bayes.Model
		parts    dataset.Parts
		training particles.Training
		want     []string // in the error
		is       error
	}{
		{"no data", small, dataset.Parts{}, particles.Training{}, []string{"no training part"}, nil},
		{"NaN feature", small, nanFeature, particles.Training{}, []string{"row 3", `"b"`, "NaN"}, nil},
		{"Inf target", small, infTarget, particles.Training{}, []string{"row 2", `"y"`, "-Inf"}, nil},
		{"shapes", small, shapes, particles.Training{}, []string{"36", "30"}, nil},
		{"features of the validation part", small, features, particles.Training{}, []string{"[36, 2]", "[12, 3]"}, nil},
		{"classes under a Gaussian", small, classes, particles.Training{}, []string{"Gaussian", "regression",
			"binary classification"}, nil},
		{"a class absent", small, absent, particles.Training{}, []string{`"maybe"`, "36 rows"}, dataset.ErrMissingClass},
		{"one class only", small, oneClass, particles.Training{}, []string{"36 rows", "one class"}, dataset.ErrMissingClass},
		{"one particle", small, parts(t), particles.Training{Particles: 1}, []string{"Particles is 1", "at least 2"}, nil},
		{"particles beyond memory", small, parts(t), particles.Training{Particles: 1 << 60},
			[]string{"Particles", "in memory"}, nil},
		{"large batch", small, parts(t), particles.Training{BatchSize: 37},
			[]string{"particles: Training.BatchSize is 37", "36, the rows"}, nil},
		{"unknown layer", model(func(m *bayes.Model) { m.Stochastic = bayes.Layers(7) }), parts(t), particles.Training{},
			[]string{"layer 7"}, nil},
		{"learning rate", small, parts(t), particles.Training{Optimiser: train.Adam{Schedule: train.Constant(-.1)}},
			[]string{"learning rate is -0.1"}, nil},
		{"NaN learning rate", small, parts(t),
			particles.Training{Optimiser: train.Adam{Schedule: train.Constant(math.NaN())}},
			[]string{"learning rate is NaN"}, nil},
		{"noise", model(func(m *bayes.Model) { m.Likelihood = bayes.Gaussian{StdDev: -1} }), parts(t),
			particles.Training{}, []string{"StdDev is -1"}, nil},
		{"prior", model(func(m *bayes.Model) { m.Prior = bayes.Normal{PerLayer: map[int]float64{2: 0}} }), parts(t),
			particles.Training{}, []string{"layer 2", "0"}, nil},
		{"resampler", small, parts(t), particles.Training{Resampler: "roulette"}, []string{"roulette", "stratified"}, nil},
		{"threshold", small, parts(t), particles.Training{Threshold: 1.5}, []string{"Threshold is 1.5"}, nil},
		{"epochs", small, parts(t), particles.Training{Epochs: -1}, []string{"Epochs is -1"}, nil},
		{"endless epochs", small, parts(t), particles.Training{Epochs: math.MaxInt},
			[]string{"Epochs", "with 1 batches"}, nil},
		{"no weight left", model(func(m *bayes.Model) { m.Prior = bayes.Normal{StdDev: 1e38} }), parts(t),
			particles.Training{Particles: 4}, []string{"step 1", "4 of 4"}, bayes.ErrZeroWeights},
	} {
		t.Run(c.name, func(t *testing.T) {
			method := ohsmc.OpenHorizon{Training: c.training}
			_, err := fit.Fit(t.Context(), c.model, method, c.parts, run.Settings{Engine: computetest.Go(t)})
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %q", err, c.is)
			}
		})
	}
	const file = "run_test.go/run.safetensors"
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 4}}
	settings := run.Settings{Engine: computetest.Go(t), Checkpoint: file}
	if _, err := fit.Fit(t.Context(), small, method, parts(t), settings); err == nil ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("a folder that is none: error %v", err)
	}
}
