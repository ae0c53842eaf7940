package mcmc

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// square is a normal in four dimensions, as many as there are chains, so that only the names of what is shared tell the
// two apart.
func square() density.Problem {
	return density.Problem{
		Name: "correlated", Dim: 4,
		Data: map[string]*tensors.Tensor{
			"precision": tensors.FromValue([][]float64{{2, .3, 0, -.1}, {.3, 1, .2, 0}, {0, .2, .5, 0}, {-.1, 0, 0, 3}}),
		},
		Target: func(data compute.Nodes, _ []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				return MulScalar(ReduceSum(Mul(phi, Dot(phi, data["precision"]).Product()), 1), -.5)
			})
		},
	}
}

// The draws do not depend on how many devices share the chains, beyond rounding: those of the Go backend's one are the
// same. Each device holds its chains, and a run on several goes on to the same bits.
func TestDevices(t *testing.T) {
	engine := computetest.Several(t)
	for _, c := range []struct {
		kernel          Kernel
		warmUp, devices int
	}{{HMC{Steps: 3, Jitter: .7}, 30, 4}, {NUTS{StepSize: .5, MaxDepth: 2}, NoWarmUp, 2}} {
		t.Run(fmt.Sprintf("%T", c.kernel), func(t *testing.T) {
			sampler := Sampler{Problem: square(), Kernel: c.kernel}
			settings := Settings{Chains: 4, Draws: 6, WarmUp: c.warmUp, Seed: 7, DType: compute.Float64}
			draw := func(ctx context.Context) (*Result, []float64) {
				result, err := sampler.Sample(ctx, settings)
				if err != nil {
					t.Fatal(err)
				}
				var got []float64
				for chain := range result.Draws.Chains {
					for i := range result.Draws.PerChain {
						got = append(got, result.Draws.At(chain, i)...)
					}
				}
				return result, append(got, result.Tuned.StepSize)
			}
			settings.Engine = computetest.Go(t)
			_, want := draw(context.Background())
			settings.Engine, settings.Devices = engine, c.devices
			result, got := draw(context.Background())
			computetest.Near(t, "draws", got, want, 1e-9)
			settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
			left := result.WarmUpMoves + 4
			if first, _ := draw(after{context.Background(), &left}); first.Status != run.Cancelled {
				t.Errorf("the interrupted run is %s", first.Status)
			}
			if _, resumed := draw(context.Background()); !slices.Equal(resumed, got) {
				t.Error("a resumed run ends elsewhere")
			}
			settings.Devices = 1
			if _, err := sampler.Sample(context.Background(), settings); !says(err, "other settings") {
				t.Errorf("a checkpoint of several devices on one: error %v", err)
			}
			settings.Devices, settings.Checkpoint = c.devices, ""
			r := sampler.newSampling(t, settings)
			defer r.close()
			if err := r.Begin(context.Background()); err != nil {
				t.Fatal(err)
			}
			for _, name := range r.state.Names() {
				shards, err := r.state.Shards(name)
				if err != nil {
					t.Fatal(err)
				}
				want := 4
				if slices.Contains(r.carrier.Names(), name) {
					want = 4 / c.devices
				}
				for device, shard := range shards {
					if shard.Shape().Dim(0) != want {
						t.Errorf("device %d holds %q of shape %s, want %d rows", device, name, shard.Shape(), want)
					}
				}
			}
		})
	}
}

func TestDevicesErrors(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		have := engine.Devices()
		for _, c := range []struct {
			settings Settings
			want     string
		}{
			{Settings{Devices: -1}, "Settings.Devices is -1: it must be at least 1"},
			{
				Settings{Devices: have + 1, Chains: have + 1},
				fmt.Sprintf(
					"Settings.Devices is %d, Chains.Chains %d: %d devices, but the engine %s has %d", have+1, have+1, have+1,
					engine.Name(), have,
				),
			},
		} {
			c.settings.Engine = engine
			if _, err := Sample(context.Background(), standard(), HMC{StepSize: 1}, c.settings); !says(err, c.want) {
				t.Errorf("%s, %d devices: error %v, want %q", engine.Name(), c.settings.Devices, err, c.want)
			}
		}
	}
	_, err := Sample(
		context.Background(), standard(), HMC{StepSize: 1}, Settings{Chains: 6, Devices: 4, Engine: computetest.Several(t)},
	)
	if !says(err, "Settings.Devices is 4, Chains.Chains 6: 4 devices cannot share 6 equally: take 4 or 8") {
		t.Errorf("chains that cannot be shared: error %v", err)
	}
}
