package ohsmc

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
)

// several is XLA where it has four devices, as its CPU client does.
func several(t testing.TB) *compute.Engine {
	t.Helper()
	engine, err := compute.Default()
	if err != nil {
		t.Fatal(err)
	}
	if engine.Devices() < 4 {
		t.Skipf("the engine %s has %d devices, 4 are needed", engine, engine.Devices())
	}
	return engine
}

// The result does not depend on how many devices share the particles, beyond rounding. There are as many particles as rows in a batch, so that only the
// names of what is shared tell the two apart.
func TestDevices(t *testing.T) {
	engine := several(t)
	for _, c := range []struct {
		algorithm Algorithm
		threshold float64 // so that some step resamples
		epochs    int
	}{
		{OpenHorizon{}, 1, 1},
		{Guided{Proposal: Langevin{}, Adapt: .574, Precondition: true}, .9, 1},
		{SMC{Kernel: mcmc.HMC{StepSize: .1, Steps: 2}, Moves: 1, Precondition: true}, .9, 1},
	} {
		t.Run(fmt.Sprintf("%T", c.algorithm), func(t *testing.T) {
			var want []float64
			for _, devices := range []int{1, 2, 4} {
				if devices == 4 && testing.Short() {
					continue
				}
				trainer := NewTrainer(small)
				defer trainer.Close()
				settings := Settings{Particles: 8, BatchSize: 8, Epochs: c.epochs, Seed: 3, Algorithm: c.algorithm, Threshold: c.threshold, DType: compute.Float64, Engine: engine, Devices: devices}
				result, err := trainer.Train(context.Background(), parts(t), settings)
				if err != nil {
					t.Fatal(err)
				}
				got := numbers(t, result.Posterior)
				resampled := 0
				for _, r := range result.Trace {
					r.Seconds = 0
					resampled += r.Resamplings
					got = append(got, r.values()...)
				}
				for _, v := range result.Validated {
					got = append(got, v.NLPD)
				}
				if resampled == 0 {
					t.Error("nothing was resampled")
				}
				for i, v := range got { // what is not told of is NaN in all
					if v != v {
						got[i] = -1
					}
				}
				if want == nil {
					want = got
				}
				computetest.Near(t, fmt.Sprint(devices, " devices"), got, want, 1e-9)
			}
		})
	}
}

// Each device holds its part of the particles, and the whole of what they have in common.
func TestDevicesHold(t *testing.T) {
	engine := several(t)
	trainer := NewTrainer(small)
	defer trainer.Close()
	for _, algorithm := range []Algorithm{Guided{}, SMC{Kernel: mcmc.HMC{StepSize: .1}, Moves: 1}} {
		r, err := trainer.newRun(parts(t), Settings{Particles: 8, BatchSize: 2, Algorithm: algorithm, Engine: engine, Devices: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer r.state.Close()
		common := []string{"psi", "mean", "square", "log_step", "best_psi", "best_nlpd", movingScale, batchX, batchY, "train_x", "train_y", "valid_x", "valid_y"}
		for _, name := range r.state.Names() {
			whole, err := r.state.Host(name)
			if err != nil {
				t.Fatal(err)
			}
			want := whole[name].Shape().Clone()
			if !slices.Contains(common, name) { // then its first axis is the particles'
				want.Dimensions[0] /= 2
			}
			shards, err := r.state.Shards(name)
			if err != nil {
				t.Fatal(err)
			}
			for device, shard := range shards {
				if !shard.Shape().Equal(want) {
					t.Errorf("%T: device %d holds %q of shape %s, want %s", algorithm, device, name, shard.Shape(), want)
				}
			}
		}
	}
}

// A run on two devices that was cancelled goes on to the same bits; on another number of devices it is refused.
func TestDevicesResume(t *testing.T) {
	settings := Settings{Particles: 20, BatchSize: 8, Epochs: 2, Seed: 4, Engine: several(t), Devices: 2}
	trainer := NewTrainer(small)
	defer trainer.Close()
	whole, err := trainer.Train(context.Background(), parts(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	ctx, cancel := context.WithCancel(context.Background())
	settings.Progress = func(Progress) { cancel() }
	first, err := trainer.Train(ctx, parts(t), settings)
	if err != nil || first.Status != Cancelled || first.Steps < 1 || first.Steps >= whole.Steps {
		t.Fatalf("cancelled: %+v, %v", first, err)
	}
	settings.Progress = nil
	second, err := trainer.Train(context.Background(), parts(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	if second.Steps != whole.Steps || !slices.Equal(numbers(t, whole.Posterior), numbers(t, second.Posterior)) || !slices.Equal(whole.Validated, second.Validated) {
		t.Error("the resumed run ends elsewhere")
	}
	settings.Devices = 4
	if _, err := trainer.Train(context.Background(), parts(t), settings); err == nil || !strings.Contains(err.Error(), "another settings") {
		t.Errorf("on four devices: error %v", err)
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
			{Settings{Devices: have + 1, Particles: have + 1}, []string{fmt.Sprintf("Settings.Devices is %d", have+1), fmt.Sprintf("has %d", have), engine.Name()}},
			{Settings{Devices: 2, Particles: 10, Chunk: 5}, []string{"Settings.Chunk is 5", "0 with Devices 2"}},
		} {
			c.settings.Engine = engine
			_, err := Train(context.Background(), small, parts(t), c.settings)
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %+v: error %v does not say %q", engine.Name(), c.settings, err, want)
				}
			}
		}
	}
	_, err := Train(context.Background(), small, parts(t), Settings{Devices: 4, Particles: 1001, Engine: several(t)})
	if err == nil || !strings.Contains(err.Error(), "Settings.Devices is 4, Settings.Particles 1001") || !strings.Contains(err.Error(), "take 1000 or 1004") {
		t.Errorf("particles that cannot be shared: error %v", err)
	}
}

// BenchmarkDevices is a step of OHSMC whose particles several devices share. With the net of BenchmarkStep there is little to share; if all three layers
// are stochastic, every particle's products are its own.
func BenchmarkDevices(b *testing.B) {
	several(b)
	for _, c := range []struct {
		name       string
		stochastic bayes.Partition
		algorithm  Algorithm
	}{
		{"last layer", bayes.Layers(3), OpenHorizon{}},
		{"all layers", bayes.All(), OpenHorizon{}},
		{"all layers, Langevin", bayes.All(), Guided{Proposal: Langevin{}}},
	} {
		for _, devices := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("%s/devices=%d", c.name, devices), func(b *testing.B) {
				r := benchmarkRunOf(b, Settings{Devices: devices, Algorithm: c.algorithm}, c.stochastic, false)
				for b.Loop() {
					if err := r.advance(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
