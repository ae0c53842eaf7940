package mcmc

import (
	"errors"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// Neal's funnel (2003, section 8): at the neck a fixed step diverges, which is counted, and the chains go on. Where
// every trajectory diverges there is no posterior.
func TestNUTSDivergences(t *testing.T) {
	const d = 5
	funnel := density.Problem{Name: "funnel", Dim: d, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			v := Squeeze(Slice(phi, AxisRange(), AxisRange(0, 1)), 1)
			x := ReduceSum(Square(Slice(phi, AxisRange(), AxisRange(1))), 1)
			return MulScalar(Add(Add(DivScalar(Square(v), 9), Mul(x, Exp(Neg(v)))), MulScalar(v, d-1)), -.5)
		})
	}}
	chains, s := Chains{Chains: 10, Draws: 200, WarmUp: NoWarmUp}, run.Settings{Engine: computetest.Go(t)}
	_, result := sample(t, funnel, with(chains, NUTS{StepSize: .6, MaxDepth: 6}), s)
	divergences, moved := 0, 0
	for _, c := range result.Stats {
		divergences += c.Divergences
		moved += c.Accepted
	}
	if all := chains.Chains * chains.Draws; divergences < 5 || divergences > all/4 || moved < all/2 {
		t.Errorf("of %d transitions %d diverged and %d moved", all, divergences, moved)
	}
	_, err := fit.Sample(t.Context(), funnel, with(chains, NUTS{StepSize: 1e4, MaxDepth: 6}), s)
	if !errors.Is(err, ErrStuck) {
		t.Errorf("a step size of 10 000: error %v is not ErrStuck", err)
	}
}
