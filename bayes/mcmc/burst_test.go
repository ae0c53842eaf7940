package mcmc

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/linalg"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// sampled samples, and gives the run too, of which the compiled moves can be looked at; oneByOne makes each move in a
// call of its own.
func sampled(
	ctx context.Context, t *testing.T, problem density.Problem, c Chains, s run.Settings, oneByOne bool,
) (*Details, *sampling) {
	t.Helper()
	var run *sampling
	method := looked{c, func(r *sampling, l *fit.Loop[struct{}]) {
		run = r
		begin := l.Begin
		l.Begin = func(ctx context.Context) (*compute.State, func(), error) {
			state, release, err := begin(ctx)
			if err == nil && oneByOne {
				m := *r.moves
				m.burst, m.lockStep = nil, nil
				r.moves = &m
			}
			return state, release, err
		}
	}}
	result, err := fit.Sample(ctx, problem, method, s)
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return fit.Details[*Details](result), run
}

// Draws and statistics of moves in bursts are those of moves one by one, as the Go backend makes them: for kernels of
// one and of several moves, with other inputs at each move, after a warm-up that tunes, and after a resume within what
// would be a transition of the warm-up.
func TestBurst(t *testing.T) {
	engine := computetest.XLA(t, "only XLA makes several moves in a call")
	noisy := density.Problem{Dim: 2, Inputs: func(move int) []any { return []any{float64(move % 7), []float64{1, 2}} },
		Target: func(_ compute.Nodes, inputs []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				shift := Add(inputs[1], BroadcastToDims(DivScalar(inputs[0], 10), 2))
				return MulScalar(ReduceSum(Square(Sub(phi, BroadcastToShape(ExpandAxes(shift, 0), phi.Shape()))), 1), -.5)
			})
		}}
	for _, c := range []struct {
		problem density.Problem
		kernel  Kernel
		thin    int
	}{
		{standard(), RandomWalkMetropolis{StepSize: 1}, 67}, {standard(), MALA{StepSize: .8}, 4},
		{standard(), HMC{Steps: 3, Jitter: .7}, 2}, {standard(), NUTS{StepSize: .5, MaxDepth: 2}, 1},
		{noisy, SGLD{StepSize: .3}, 4},
	} {
		t.Run(fmt.Sprintf("%T/thin=%d", c.kernel, c.thin), func(t *testing.T) {
			chains := Chains{Kernel: c.kernel, Chains: 3, Draws: 50, Thin: c.thin, WarmUp: 25}
			if !chains.tunes() {
				chains.WarmUp = NoWarmUp
			}
			s := run.Settings{Seed: 4, DType: compute.Float64, Engine: computetest.Go(t)}
			want, _ := sampled(t.Context(), t, c.problem, chains, s, false)
			s.Engine, s.Checkpoint = engine, filepath.Join(t.TempDir(), "run")
			problem := c.problem.Keyed("test", t.Name())
			got, r := sampled(t.Context(), t, problem, chains, s, false)
			if (r.lockStep != nil) != r.carrier.SeveralMoves() {
				t.Error("a transition of a warm-up is one call for kernels of several moves")
			}
			if r.burst == nil || r.burstMoves != 64 {
				t.Fatalf("bursts of %d moves, want 64", r.burstMoves)
			}
			same := func(got *Details) {
				t.Helper()
				computetest.Near(t, "draws", numbers(t, got), numbers(t, want), 1e-9)
				if got.Moves != want.Moves || got.WarmUpMoves != want.WarmUpMoves {
					t.Errorf("%d and %d moves, one by one %d and %d", got.WarmUpMoves, got.Moves, want.WarmUpMoves, want.Moves)
				}
				for chain, stats := range got.Stats {
					if w := want.Stats[chain]; stats.Transitions != w.Transitions || stats.Accepted != w.Accepted ||
						!reflect.DeepEqual(stats.Evaluations, w.Evaluations) {
						t.Errorf("chain %d: %+v, one by one %+v", chain, stats, w)
					}
				}
			}
			same(got)
			if chains.WarmUp == NoWarmUp {
				return // a burst can begin anywhere
			}
			s.Checkpoint = filepath.Join(t.TempDir(), "resumed")
			left := 14 // of the run's steps
			sampled(after{t.Context(), &left}, t, problem, chains, s, true)
			got, _ = sampled(t.Context(), t, problem, chains, s, false)
			same(got)
		})
	}
}

// Each move of a burst has its own inputs though Inputs writes them all into the same memory; it is not asked beyond
// the run's last move; inputs of other shapes, or more of them, are an error; and large ones are few.
func TestBurstInputs(t *testing.T) {
	engine := computetest.XLA(t, "only XLA makes several moves in a call")
	row, most := make([]float64, 2), 0
	inputs := func(move int) []any {
		row[0], most = float64(move%5), max(most, move)
		return []any{row}
	}
	problem := density.Problem{Dim: 2, Inputs: func(move int) []any { return inputs(move) },
		Target: func(_ compute.Nodes, inputs []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				return MulScalar(ReduceSum(Square(Sub(phi, BroadcastToShape(ExpandAxes(inputs[0], 0), phi.Shape()))), 1), -.5)
			})
		}}
	chains := Chains{Kernel: SGLD{StepSize: .3}, Chains: 3, Draws: 50, Thin: 2, WarmUp: NoWarmUp}
	s := run.Settings{DType: compute.Float64, Engine: computetest.Go(t)}
	want, _ := sampled(t.Context(), t, problem, chains, s, false)
	most, s.Engine = 0, engine
	problem = problem.Keyed("test", t.Name())
	got, r := sampled(t.Context(), t, problem, chains, s, false)
	computetest.Near(t, "draws", numbers(t, got), numbers(t, want), 1e-9)
	if r.burst == nil || r.burstMoves != 64 || most != 99 {
		t.Errorf("bursts of %d; inputs were asked for moves up to %d, want bursts of 64 and 99", r.burstMoves, most)
	}
	for says, other := range map[string][]any{
		"gives [(Float64)[2] (Float64)[2]] for move 70": {row, row}, "gives [] for move 70": {},
		"gives [(Float64)[3]] for move 70: it must give as many of the same shapes as for move 0, [(Float64)[2]]": {
			make([]float64, 3)}, "input 0: it is nil": {nil},
	} {
		inputs = func(move int) []any {
			if move < 70 {
				return []any{row}
			}
			return other
		}
		if _, err := fit.Sample(t.Context(), problem, chains, s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	large := make([]float32, 1<<20)
	problem = problem.Keyed("test", t.Name(), "large")
	problem.Inputs = func(int) []any { return []any{row, large} }
	chains.Draws, chains.Thin = 2, 1
	_, r = sampled(t.Context(), t, problem, chains, s, false)
	if r.burst == nil || r.burstMoves != 15 {
		t.Errorf("with a million numbers for each move: bursts of %d, want 15, which have 2^24", r.burstMoves)
	}
}

func numbers(t *testing.T, r *Details) []float64 {
	t.Helper()
	v, err := compute.Float64s(r.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A target with a loop of its own is not unrolled within a burst: a call makes one move.
func TestBurstOfLoops(t *testing.T) {
	engine := computetest.XLA(t, "only XLA makes several moves in a call")
	looped := density.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			covariance := Const(phi.Graph(), [][][]float64{{{2, .5}, {.5, 1}}})
			factor := linalg.Cholesky(ConvertDType(covariance, phi.DType()))
			white := Einsum("rc,jc->jr", Reshape(factor.Inverse, 2, 2), phi)
			return MulScalar(ReduceSum(Square(white), 1), -.5)
		})
	}}
	chains := Chains{Kernel: RandomWalkMetropolis{StepSize: 1}, Chains: 3, Draws: 20, WarmUp: NoWarmUp}
	_, r := sampled(t.Context(), t, looped, chains, run.Settings{DType: compute.Float64, Engine: engine}, false)
	if r.burst != nil || r.Move != 20 {
		t.Errorf("bursts: %v, %d moves, want none and 20", r.burst != nil, r.Move)
	}
}
