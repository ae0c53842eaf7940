package ohsmc

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
)

// The result does not depend on how many devices share the particles, beyond rounding: it is that of the Go backend, so
// that this test also compares what XLA makes of each algorithm with what other tests find right; each device holds its
// part of the particles; and a run on several devices that was cancelled goes on to the same bits. There are as many
// particles as rows in a batch, so that only the names of what is shared tell the two apart.
func TestDevices(t *testing.T) {
	engine := computetest.Several(t)
	for _, c := range []struct {
		algorithm fit.Method
		devices   int
		threshold float64 // so that some step resamples
		shared    []string
	}{
		{OpenHorizon{}, 4, 1, []string{"phi", "best_phi"}},
		{Guided{Proposal: Langevin{}, Adapt: .574}, 2, .9, []string{"phi", "best_phi", "log_density"}},
		{SMC{Kernel: mcmc.HMC{StepSize: .1, Steps: 2}, Moves: 1, Precondition: true}, 2, .9, []string{
			"phi", "best_phi", moving + "phi", moving + "log_density", moving + "gradient", moving + "eve", moving +
				"unfinished",
			moving + "own/momentum", // and more of its own
		}},
	} {
		t.Run(fmt.Sprintf("%T", c.algorithm), func(t *testing.T) {
			if _, first := c.algorithm.(OpenHorizon); !first && testing.Short() {
				t.Skip("compiles long")
			}
			trainer := small
			settings := Settings{Particles: 8, BatchSize: 8, Epochs: 1, Seed: 3, Threshold: c.threshold,
				DType: compute.Float64, Engine: computetest.Go(t)}
			train := func(ctx context.Context) (*Result, []float64) {
				result, err := Fit(ctx, trainer, c.algorithm, parts(t), settings)
				if err != nil {
					t.Fatal(err)
				}
				return result, told64(t, result)
			}
			whole, want := train(context.Background())
			if !slices.ContainsFunc(whole.Trace, func(r particles.StepRecord) bool { return r.Resamplings > 0 }) {
				t.Error("nothing was resampled")
			}
			settings.Engine, settings.Devices = engine, c.devices
			_, got := train(context.Background())
			computetest.Near(t, fmt.Sprint(c.devices, " devices"), got, want, 1e-9)
			holds(t, trainer, c.algorithm, settings, c.shared)

			settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
			ctx, cancel := context.WithCancel(context.Background())
			settings.Progress = func(run.Progress) { cancel() }
			if first, _ := train(ctx); first.Status != run.Cancelled || first.Steps < 1 || first.Steps >= whole.Steps {
				t.Errorf("the interrupted run is %s after %d steps", first.Status, first.Steps)
			}
			settings.Progress = nil
			if _, resumed := train(context.Background()); !slices.Equal(resumed, got) {
				t.Error("the resumed run ends elsewhere")
			}
			settings.Devices = 1
			if _, err := Fit(context.Background(), trainer, c.algorithm, parts(t),
				settings); err == nil || !strings.Contains(err.Error(), "other settings") {
				t.Errorf("a checkpoint of several devices on one: error %v", err)
			}
		})
	}
}

// Chains at a trained psi do not depend on how many devices share them either.
func TestSampleDevices(t *testing.T) {
	engine := computetest.Several(t)
	pure := computetest.Go(t)
	trained, err := Fit(t.Context(), small, nil, parts(t),
		Settings{Particles: 8, BatchSize: 36, Epochs: 1, Engine: pure, DType: compute.Float64})
	if err != nil {
		t.Fatal(err)
	}
	var want []float64
	for i, engine := range []*compute.Engine{pure, engine} {
		devices := 1 + 3*i
		chains := mcmc.Chains{Kernel: mcmc.MALA{StepSize: .1}, Chains: 8, Draws: 5, WarmUp: mcmc.NoWarmUp}
		result, err := fit.Fit(t.Context(), bayes.Model{}, fit.From{Trained: trained.Posterior, Method: chains}, parts(t),
			run.Settings{DType: compute.Float64, Engine: engine, Devices: devices})
		if err != nil {
			t.Fatal(err)
		}
		got := numbers(t, result.Posterior)
		if want == nil {
			want = got
		}
		computetest.Near(t, fmt.Sprint(devices, " devices"), got, want, 1e-9)
	}
}

// told64 is all that a result says in numbers but for the time, with -1 for what there is not.
func told64(t *testing.T, result *Result) []float64 {
	all := numbers(t, result.Posterior)
	for _, r := range result.Trace {
		r.Seconds = 0
		values, err := compute.Float64s(run.Records([]particles.StepRecord{r}))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values...)
	}
	for _, v := range result.Validated {
		all = append(all, v.NLPD)
	}
	for i, v := range all {
		if math.IsNaN(v) {
			all[i] = -1
		}
	}
	return all
}

// holds checks after a step on several devices that each has its part of what is shared, and all of the rest.
func holds(t *testing.T, trainer bayes.Model, algorithm fit.Method, settings Settings, shared []string) {
	t.Helper()
	r, err := begun(trainer, algorithm, parts(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.Step(); err != nil {
		t.Fatal(err)
	}
	for _, name := range shared {
		if !slices.Contains(r.State.Names(), name) {
			t.Errorf("the state has no %q, only %q", name, r.State.Names())
		}
	}
	for _, name := range r.State.Names() {
		whole, err := r.State.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		want := whole[name].Shape().Clone()
		if slices.Contains(shared, name) || strings.HasPrefix(name, moving+"own/") {
			want.Dimensions[0] = settings.Particles / settings.Devices
		}
		shards, err := r.State.Shards(name)
		if err != nil {
			t.Fatal(err)
		}
		for device, shard := range shards {
			if !shard.Shape().Equal(want) {
				t.Errorf("device %d of %d holds %q of shape %s, want %s", device, len(shards), name, shard.Shape(), want)
			}
		}
	}
}

func TestDevicesErrors(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		have := engine.Devices()
		for _, c := range []struct {
			settings Settings
			says     []string
		}{
			{Settings{Devices: -1}, []string{"Settings.Devices is -1", "at least 1"}},
			{Settings{Devices: have + 1, Particles: have + 1}, []string{fmt.Sprintf("Settings.Devices is %d", have+1),
				fmt.Sprintf("has %d", have), engine.Name()}},
			{Settings{Devices: 2, Particles: 10, Chunk: 5}, []string{"Training.Chunk is 5", "0 with Devices 2"}},
		} {
			c.settings.Engine = engine
			_, err := Fit(context.Background(), small, nil, parts(t), c.settings)
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %+v: error %v does not say %q", engine.Name(), c.settings, err, want)
				}
			}
		}
	}
	_, err := Fit(context.Background(), small, nil, parts(t), Settings{Devices: 4, Particles: 1001,
		Engine: computetest.Several(t)})
	if err == nil || !strings.Contains(err.Error(), "Settings.Devices is 4, Training.Particles 1001") ||
		!strings.Contains(err.Error(), "take 1000 or 1004") {
		t.Errorf("particles that cannot be shared: error %v", err)
	}
}

// BenchmarkDevices is a step of OHSMC whose particles several devices share. With the net of BenchmarkStep there is
// little to share; if all three layers are stochastic, every particle's products are its own.
func BenchmarkDevices(b *testing.B) {
	computetest.BenchOn(b, computetest.Several(b), benchmarkDevices)
}

func benchmarkDevices(b *testing.B, engine *compute.Engine) {
	for _, c := range computetest.Cases([]struct {
		name       string
		stochastic bayes.Partition
		algorithm  fit.Method
	}{
		{"last layer", bayes.Layers(3), OpenHorizon{}},
		{"all layers", bayes.All(), OpenHorizon{}},
		{"all layers, Langevin", bayes.All(), Guided{Proposal: Langevin{}}},
	}...) {
		for _, devices := range computetest.Cases(2, 1, 4) {
			b.Run(fmt.Sprintf("%s/devices=%d", c.name, devices), func(b *testing.B) {
				r := benchmarkRunOf(b, c.algorithm, Settings{Devices: devices, Engine: engine}, []int{50, 20, 5}, c.stochastic,
					false)
				for b.Loop() {
					if err := r.Step(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
