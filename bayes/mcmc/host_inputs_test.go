package mcmc

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// A standard normal whose gradient is worked out on the host, -phi, from where the chains stand, has the draws of one
// whose gradient is taken in the graph. An error of the host stops the run before the move, with the draws made so far,
// and the checkpoint goes on from there to the same bits.
func TestHostInputs(t *testing.T) {
	asked, failAt := 0, -1
	broken := errors.New("broken line")
	problem := density.Problem{
		Name: "asked", Dim: 2,
		Target: func(_ compute.Nodes, inputs []*Node) density.Target {
			return density.Func(func(phi *Node) *Node { return ReduceSum(Mul(phi, inputs[0]), 1) })
		},
		HostInputs: &density.HostInputs{
			Blank: []any{tensors.FromFlatDataAndDimensions(make([]float64, 6), 3, 2)},
			Inputs: func(_ context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
				asked++
				if move == failAt {
					return nil, broken
				}
				values, err := compute.Float64s(carried["phi"])
				for i, v := range values {
					values[i] = -v
				}
				if carried["safe"] == nil {
					t.Error("what the kernel carries is missing")
				}
				return []any{tensors.FromFlatDataAndDimensions(values, 3, 2)}, err
			},
		},
	}
	here := density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node { return MulScalar(ReduceSum(Square(phi), 1), -.5) })
	}}
	chains := Chains{Kernel: SGLD{StepSize: .25}, Chains: 3, Draws: 40, WarmUp: 5}
	s := run.Settings{Seed: 3, DType: compute.Float64, Engine: computetest.Go(t)}
	_, want := sample(t, here, chains, s)
	if _, got := sample(t, problem, chains, s); !slices.Equal(numbers(t, got), numbers(t, want)) || asked != 45 {
		t.Errorf("the draws differ, or %d questions are not one a move", asked)
	}
	failAt, s.Checkpoint = 20, filepath.Join(t.TempDir(), "chains")
	part, err := fit.Sample(t.Context(), problem, chains, s)
	if !errors.Is(err, broken) || part == nil || part.Status != run.Stopped ||
		fit.Details[*Details](part).Stats[0].Transitions != 15 || len(part.Draws.LogWeights) != 3*15 {
		t.Fatalf("stopped: %+v, error %v", part, err)
	}
	failAt = -1
	if _, got := sample(t, problem, chains, s); !slices.Equal(numbers(t, got), numbers(t, want)) {
		t.Error("the resumed draws differ")
	}
	problem.Inputs = func(int) []any { return nil }
	if _, err := fit.Sample(t.Context(), problem, chains, s); err == nil ||
		!strings.Contains(err.Error(), "HostInputs") {
		t.Errorf("both Inputs and HostInputs: error %v", err)
	}
}
