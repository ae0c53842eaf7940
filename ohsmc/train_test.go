package ohsmc

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
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// small is a partial network that trains in a moment.
var small = bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}, Activation: nn.GELU}, Likelihood: bayes.Gaussian{},
	Stochastic: bayes.Layers(2)}

func parts(t testing.TB) dataset.Parts {
	t.Helper()
	p, err := linear(60).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shared compiles once what several tests train.
var shared = small

// trained trains small, on the Go backend unless the settings name an engine: for what no engine can change.
func trained(t testing.TB, settings Settings) *Result {
	t.Helper()
	if settings.Engine == nil {
		settings.Engine = computetest.Go(t)
	}
	result, err := Fit(context.Background(), shared, nil, parts(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

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
		algorithm := OpenHorizon{Kernel: mcmc.RandomWalk{Variance: c.variance}}
		settings := Settings{Particles: c.particles, BatchSize: 30, Epochs: 3, Engine: computetest.Go(t)}
		result, err := Fit(t.Context(), bayesianLine(c.sd), algorithm, dataset.Parts{Train: linear(60)}, settings)
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

// numbers are all parameters and log-weights of a posterior.
func numbers(t testing.TB, p *bayes.Posterior) []float64 {
	t.Helper()
	var all []float64
	for _, slot := range p.Bound().Slots {
		v, _, err := p.Parameter(slot.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	for j := range p.Particles() {
		all = append(all, p.LogWeights().At(j))
	}
	return all
}

func TestSeed(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		settings := Settings{Particles: 20, BatchSize: 8, Epochs: 3, Seed: 1, Engine: engine, DType: dtype, Threshold: .7}
		a := trained(t, settings)
		b, err := Fit(context.Background(), small, nil, parts(t), settings) // compiled anew
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(numbers(t, a.Posterior), numbers(t, b.Posterior)) {
			t.Error("the same seed gives other bits")
		}
		settings.Seed = 2
		if slices.Equal(numbers(t, a.Posterior), numbers(t, trained(t, settings).Posterior)) {
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
			result := trained(t, Settings{Particles: 10, BatchSize: 36, Epochs: 3, Chunk: chunk, Engine: engine, DType: dtype})
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
	result, err := Fit(context.Background(), small, nil, p, Settings{Particles: 100, BatchSize: 10, Epochs: 20,
		Engine: computetest.Go(t), Progress: func(p run.Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
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

// With a threshold, particles keep their weights until the effective sample size is low enough.
func TestThreshold(t *testing.T) {
	result := trained(t, Settings{Particles: 50, BatchSize: 4, Epochs: 3, Threshold: .5})
	previous := 50.0
	some := false
	for i, r := range result.Trace {
		if (r.Resamplings == 1) != (previous <= 25) {
			t.Errorf("step %d: %d resamplings, but the effective sample size was %.1f of 50", i+1, r.Resamplings, previous)
		}
		if r.Resamplings == 0 && r.UniqueAncestors != 50 {
			t.Errorf("step %d: not resampled, but %v unique ancestors", i+1, r.UniqueAncestors)
		}
		some = some || r.Resamplings == 1
		previous = r.ESS
	}
	if !some {
		t.Error("never resampled")
	}
}

func TestEarlyStop(t *testing.T) {
	result := trained(t, Settings{Particles: 50, BatchSize: 36, Epochs: 2000, Patience: 5,
		Optimiser: train.Adam{Schedule: train.Constant(.1)}})
	if result.Status != run.StoppedEarly || result.Steps != result.Best.Step+5 {
		t.Errorf("status %s after step %d, best at %d; want stopped early, five after the best", result.Status,
			result.Steps, result.Best.Step)
	}
}

// Without a validation part the last state is returned.
func TestNoValidation(t *testing.T) {
	p := parts(t)
	p.Validation = nil
	result, err := Fit(context.Background(), small, nil, p, Settings{Particles: 10, BatchSize: 36, Epochs: 2,
		Engine: computetest.Go(t)})
	if err != nil || result.Best.Step != 0 || len(result.Validated) != 0 || result.Posterior.Particles() != 10 {
		t.Errorf("result %+v, error %v", result, err)
	}
}

// A run that is cancelled, and goes on from its checkpoint in another Fit, ends with the bits of one that was not,
// in every tensor and record.
func TestResume(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		settings := Settings{Particles: 20, BatchSize: 8, Epochs: 10, Seed: 4, Engine: engine, DType: dtype, Threshold: .7}
		whole := trained(t, settings)

		settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
		ctx, cancel := context.WithCancel(context.Background())
		settings.Progress = func(p run.Progress) {
			if p.Step >= 1 {
				cancel()
			}
		}
		first, err := Fit(ctx, shared, nil, parts(t), settings)
		if err != nil {
			t.Fatal(err)
		}
		if first.Status != run.Cancelled || first.Steps < 1 || first.Steps >= whole.Steps || len(first.Trace) != first.Steps {
			t.Fatalf("cancelled: status %s, %d steps, %d records", first.Status, first.Steps, len(first.Trace))
		}
		settings.Progress = nil
		second := trained(t, settings)
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
		third := trained(t, settings) // it is complete: nothing is done again
		if third.Steps != whole.Steps || third.Status != run.Completed || !slices.Equal(numbers(t, third.Posterior),
			numbers(t, whole.Posterior)) {
			t.Errorf("a complete checkpoint: status %s, %d steps", third.Status, third.Steps)
		}
	})
}

// A checkpoint that was written in the middle by time, as before a kill, resumes to the same bits too.
func TestResumeAfterKill(t *testing.T) {
	settings := Settings{Particles: 20, BatchSize: 8, Epochs: 4, Seed: 4}
	whole := trained(t, settings)
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
	trained(t, settings)
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
	if resumed := trained(t, settings); !slices.Equal(numbers(t, resumed.Posterior), numbers(t, whole.Posterior)) {
		t.Error("a run resumed from the middle ends with other particles")
	}
}

// Resuming with another model, other data, another seed or other settings is refused and says which.
func TestResumeMismatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.safetensors")
	base := Settings{Particles: 10, BatchSize: 36, Epochs: 1, Checkpoint: file, Engine: computetest.Go(t)}
	trained(t, base)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	otherModel := small
	otherModel.Stochastic = bayes.Layers(1)
	otherData := parts(t)
	otherData.Train.Y[3] += 1
	otherSeed, otherSettings := base, base
	otherAlgorithm := OpenHorizon{Kernel: mcmc.RandomWalk{Variance: .5}}
	otherSeed.Seed = 9
	otherSettings.Particles = 12
	for _, c := range []struct {
		what      string
		model     bayes.Model
		algorithm fit.Method
		parts     dataset.Parts
		settings  Settings
	}{
		{"model", otherModel, nil, parts(t), base}, {"data", small, nil, otherData, base},
		{"seed", small, nil, parts(t), otherSeed}, {"settings", small, nil, parts(t), otherSettings},
		{"settings", small, otherAlgorithm, parts(t), base},
	} {
		_, err := Fit(context.Background(), c.model, c.algorithm, c.parts, c.settings)
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
	if _, err := Fit(context.Background(), small, nil, parts(t), base); !errors.Is(err, tensorfile.ErrDamaged) {
		t.Errorf("a truncated checkpoint: error %v", err)
	}
	for _, settings := range []Settings{base, otherSeed} { // over a truncated file, and over another run
		settings.Replace = true
		if result := trained(t, settings); result.Steps == 0 || result.Status != run.Completed {
			t.Errorf("Replace with seed %d: %d steps, %s", settings.Seed, result.Steps, result.Status)
		}
	}
}

// SIGINT, through signal.NotifyContext as a program would have it, ends a run with what is there.
func TestInterrupt(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sent := false
	result, err := Fit(ctx, small, nil, parts(t), Settings{Particles: 10, BatchSize: 4, Epochs: 1_000_000,
		Engine: computetest.Go(t), Progress: func(run.Progress) {
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
	result, err := Fit(ctx, small, nil, parts(t), Settings{Particles: 10, Engine: computetest.Go(t)})
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
		name      string
		model     bayes.Model
		parts     dataset.Parts
		settings  Settings
		want      []string // in the error
		is        error
		algorithm fit.Method
	}{
		{"no data", small, dataset.Parts{}, Settings{}, []string{"no training part"}, nil, nil},
		{"NaN feature", small, nanFeature, Settings{}, []string{"row 3", `"b"`, "NaN"}, nil, nil},
		{"Inf target", small, infTarget, Settings{}, []string{"row 2", `"y"`, "-Inf"}, nil, nil},
		{"shapes", small, shapes, Settings{}, []string{"36", "30"}, nil, nil},
		{"features of the validation part", small, features, Settings{}, []string{"[36, 2]", "[12, 3]"}, nil, nil},
		{"classes under a Gaussian", small, classes, Settings{}, []string{"Gaussian", "regression",
			"binary classification"}, nil, nil},
		{"a class absent", small, absent, Settings{}, []string{`"maybe"`, "36 rows"}, dataset.ErrMissingClass, nil},
		{"one class only", small, oneClass, Settings{}, []string{"36 rows", "one class"}, dataset.ErrMissingClass, nil},
		{"one particle", small, parts(t), Settings{Particles: 1}, []string{"Particles is 1", "at least 2"}, nil, nil},
		{"particles beyond memory", small, parts(t), Settings{Particles: 1 << 60}, []string{"Particles", "in memory"}, nil,
			nil},
		{"large batch", small, parts(t), Settings{BatchSize: 37}, []string{"BatchSize is 37", "36, the rows"}, nil, nil},
		{"unknown layer", model(func(m *bayes.Model) { m.Stochastic = bayes.Layers(7) }), parts(t), Settings{},
			[]string{"layer 7"}, nil, nil},
		{"learning rate", small, parts(t), Settings{Optimiser: train.Adam{Schedule: train.Constant(-.1)}},
			[]string{"learning rate is -0.1"}, nil, nil},
		{"NaN learning rate", small, parts(t), Settings{Optimiser: train.Adam{Schedule: train.Constant(math.NaN())}},
			[]string{"learning rate is NaN"}, nil, nil},
		{"noise", model(func(m *bayes.Model) { m.Likelihood = bayes.Gaussian{StdDev: -1} }), parts(t), Settings{},
			[]string{"StdDev is -1"}, nil, nil},
		{"prior", model(func(m *bayes.Model) { m.Prior = bayes.Normal{PerLayer: map[int]float64{2: 0}} }), parts(t),
			Settings{}, []string{"layer 2", "0"}, nil, nil},
		{"kernel", small, parts(t), Settings{}, []string{"RandomWalk.Variance is -1"}, nil,
			OpenHorizon{Kernel: mcmc.RandomWalk{Variance: -1}}},
		{"Metropolis", small, parts(t), Settings{}, []string{"RandomWalkMetropolis", "accept"}, nil,
			OpenHorizon{Kernel: mcmc.RandomWalkMetropolis{}}},
		{"OU under Laplace", model(func(m *bayes.Model) { m.Prior = bayes.Laplace{} }), parts(t), Settings{},
			[]string{"Laplace"}, nil, OpenHorizon{Kernel: mcmc.OrnsteinUhlenbeck{}}},
		{"resampler", small, parts(t), Settings{Resampler: "roulette"}, []string{"roulette", "stratified"}, nil, nil},
		{"threshold", small, parts(t), Settings{Threshold: 1.5}, []string{"Threshold is 1.5"}, nil, nil},
		{"epochs", small, parts(t), Settings{Epochs: -1}, []string{"Epochs is -1"}, nil, nil},
		{"endless epochs", small, parts(t), Settings{Epochs: math.MaxInt}, []string{"Epochs", "with 1 batches"}, nil, nil},
		{"endless steps", small, parts(t), Settings{}, []string{"Poisson.Rate is 1e+12"}, nil,
			OpenHorizon{Poisson: &Poisson{Rate: 1e12}}},
		{"unwritable folder", small, parts(t), Settings{Particles: 4, Checkpoint: "train_test.go/run.safetensors"},
			[]string{"train_test.go/run.safetensors"}, nil, nil},
		{"no weight left", model(func(m *bayes.Model) { m.Prior = bayes.Normal{StdDev: 1e38} }), parts(t),
			Settings{Particles: 4}, []string{"step 1", "4 of 4"}, bayes.ErrZeroWeights, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.settings.Engine = computetest.Go(t)
			_, err := Fit(context.Background(), c.model, c.algorithm, c.parts, c.settings)
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
}

// The three tasks train end to end on real data; a few epochs must beat guessing by the class frequencies, or the mean.
// The examples train on XLA.
func TestTasks(t *testing.T) {
	cancer, err := dataset.Load("breast_cancer")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data       *dataset.Dataset
		likelihood bayes.Likelihood
		guess      float64 // NLPD of guessing, of a standardised target
	}{
		{dataset.Yacht(), bayes.Gaussian{}, 1.4}, {cancer, bayes.Bernoulli{}, .66}, {dataset.Wine(),
			bayes.Categorical{}, 1.08},
	} {
		if testing.Short() && c.data.Name != "yacht" {
			continue
		}
		parts, err := c.data.Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		model := bayes.Model{Network: nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU}, Likelihood: c.likelihood,
			Stochastic: bayes.Layers(2)}
		result, err := Fit(context.Background(), model, nil, parts,
			Settings{Particles: 50, BatchSize: 20, Epochs: 10, ValidateEvery: 10, Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		best := result.Best.NLPD
		if c.data.Task == dataset.Regression {
			best -= math.Log(result.Posterior.Target().StdDev[0])
		}
		if best > .75*c.guess && c.guess < 1.3 || best > 1.1 {
			t.Errorf("%s: validation NLPD %.3f, guessing has %.2f", c.data.Name, best, c.guess)
		}
	}
}
