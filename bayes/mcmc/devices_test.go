package mcmc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
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
// same. A run on several goes on to the same bits.
func TestDevices(t *testing.T) {
	engine := computetest.Several(t)
	for _, c := range []struct {
		kernel          Kernel
		warmUp, devices int
	}{{HMC{Steps: 3, Jitter: .7}, 30, 4}, {NUTS{StepSize: .5, MaxDepth: 2}, NoWarmUp, 2}} {
		t.Run(fmt.Sprintf("%T", c.kernel), func(t *testing.T) {
			chains := Chains{Kernel: c.kernel, Chains: 4, Draws: 6, WarmUp: c.warmUp}
			settings := run.Settings{Seed: 7, DType: compute.Float64, Engine: computetest.Go(t)}
			problem := square().Keyed("test", t.Name())
			draw := func(ctx context.Context) []float64 {
				result, err := fit.Sample(ctx, problem, chains, settings)
				if err != nil {
					t.Fatal(err)
				}
				d := fit.Details[*Details](result)
				return append(numbers(t, d), d.Tuned.StepSize)
			}
			want := draw(t.Context())
			settings.Engine, settings.Devices = engine, c.devices
			got := draw(t.Context())
			computetest.Near(t, "draws", got, want, 1e-9)

			settings.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := fit.Sample(run.Watched(ctx, func(p run.Progress, _ run.Machine) {
				if p.Stage == "draws" && p.Step > 4 {
					cancel()
				}
			}), problem, chains, settings); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if resumed := draw(t.Context()); !slices.Equal(resumed, got) {
				t.Error("a resumed run ends elsewhere")
			}
			settings.Devices = 1
			if _, err := fit.Sample(t.Context(), problem, chains, settings); !says(err, "by its settings") {
				t.Errorf("a checkpoint of several devices on one: error %v", err)
			}
		})
	}
}
