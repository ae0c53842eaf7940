package mcmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// quartic is exp(-sum of phi^4) in three dimensions: a step that suits its middle is never accepted far out, where it
// falls by thousands.
func quartic() density.Problem {
	return density.Problem{Name: "quartic", Dim: 3, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node { return Neg(ReduceSum(Square(Square(phi)), 1)) })
	}}
}

// farOut is where chains begin: all in the middle but for one, whose coordinates are 30.
func farOut(chains, far int) *tensors.Tensor {
	start := make([]float64, 3*chains)
	for i := range start {
		start[i] = .1 * float64(i%5)
	}
	for k := range 3 {
		start[3*far+k] = 30
	}
	return compute.Floats(compute.Float64, start, chains, 3)
}

// A chain that begins where the density is steep comes to the others by steps of its own, and does not make theirs
// small: in the end all have one step size, the acceptance that is wanted, and moments of one distribution, whose mean
// square is Gamma(3/4)/Gamma(1/4).
func TestWarmUpOfOneChainFarOut(t *testing.T) {
	engine := computetest.Go(t)
	for _, kernel := range []Tunable{RandomWalkMetropolis{}, MALA{}, HMC{Steps: 5}} {
		problem := quartic()
		problem.Start = farOut(8, 3)
		r, result := sample(t, problem, Chains{Kernel: kernel, Chains: 8, Draws: 1000, WarmUp: 500},
			run.Settings{Seed: 3, Engine: engine, DType: compute.Float64})
		if w := fmt.Sprint(r.Warnings); strings.Contains(w, "stood still") {
			t.Errorf("%T: %s", kernel, w)
		}
		_, want := kernel.Tune()
		for chain, c := range result.Stats {
			if math.Abs(c.Acceptance-want) > .1 {
				t.Errorf("%T: chain %d has acceptance %.3f, want %.3f", kernel, chain, c.Acceptance, want)
			}
		}
		var squares []float64
		for _, chain := range result.Draws.Coordinate(1) {
			sum := 0.0
			for _, x := range chain {
				sum += x * x
			}
			squares = append(squares, sum/float64(len(chain)))
		}
		mean, deviation := stat.MeanStdDev(squares, nil)
		exact := math.Gamma(.75) / math.Gamma(.25)
		if math.Abs(mean-exact) > 5.4*deviation/math.Sqrt(8) { // Student's t of 7 degrees: one in 1000
			t.Errorf("%T: mean square %.4f +- %.4f, exactly %.4f", kernel, mean, deviation/math.Sqrt(8), exact)
		}
	}
}

// Chains that do not move are named in a warning, and others are not; where the kernel does not say whether it moves
// there is none.
func TestChainsThatStandStill(t *testing.T) {
	engine := computetest.Go(t)
	for _, c := range []struct {
		kernel Kernel
		start  *tensors.Tensor
		draws  int
		says   string
	}{
		{RandomWalkMetropolis{StepSize: .5}, farOut(4, 2), 200, ""}, // .5 comes down, if slowly
		{HMC{StepSize: .3, Steps: 5}, farOut(4, 2), 200, "1 of 4 chains (2) stood still"},
		{HMC{StepSize: .3, Steps: 5}, farOut(4, 2), 15, ""}, // too few to tell
		{HMC{StepSize: .3, Steps: 5}, farOut(4, 2), 20, "1 of 4 chains (2) stood still"},
		{HMC{StepSize: .1, Steps: 5}, compute.Floats(compute.Float64, make([]float64, 12), 4, 3), 200, ""},
		{SGLD{StepSize: 1e-4}, compute.Floats(compute.Float64, make([]float64, 12), 4, 3), 200, ""},
	} {
		problem := quartic()
		problem.Start = c.start
		r, result := sample(t, problem, Chains{Kernel: c.kernel, Chains: 4, Draws: c.draws, WarmUp: NoWarmUp},
			run.Settings{Seed: 3, Engine: engine, DType: compute.Float64})
		w := fmt.Sprint(r.Warnings)
		if !strings.Contains(w, c.says) || strings.Contains(w, "stood still") != (c.says != "") {
			t.Errorf("%+v, %d draws: warnings %q, want one that says %q", c.kernel, c.draws, r.Warnings, c.says)
		}
		for chain, s := range result.Stats {
			if s.Standstill > s.Transitions-s.Accepted {
				t.Errorf("%+v: chain %d stood still %d times, but accepted %d of %d", c.kernel, chain, s.Standstill, s.Accepted,
					s.Transitions)
			}
		}
	}
}

// A climb brings chains from where they were drawn to the top, and out of where there is no density.
func TestClimb(t *testing.T) {
	engine := computetest.Go(t)
	problem := density.Problem{Name: "hill", Dim: 3, Climb: &density.Climb{},
		Initial: func(rng random.Stream, dtype compute.DType, chains int) *Node {
			phi := rng.Normal(dtype, chains, 3)
			return Add(phi, Mul(row(phi, []float64{0, 0, 400}), first(phi)))
		},
		Target: func(compute.Nodes, []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				z := Sub(phi, row(phi, []float64{2, 0, 1}))
				density := MulScalar(ReduceSum(Square(z), 1), -50)
				last := Squeeze(Slice(phi, AxisRange(), AxisElem(2)), 1)
				nowhere := Log(AddScalar(ZerosLike(density), -1))
				return Where(GreaterThan(last, ConstAs(last, 3)), nowhere, density)
			})
		},
	}
	begins := func() [][]float64 {
		_, result := sample(t, problem,
			Chains{Kernel: RandomWalkMetropolis{StepSize: 1e-9}, Chains: 5, Draws: 1, WarmUp: NoWarmUp},
			run.Settings{Seed: 3, Engine: engine, DType: compute.Float64})
		var all [][]float64
		for k := range 3 {
			var column []float64
			for _, chain := range result.Draws.Coordinate(k) {
				column = append(column, chain[0])
			}
			all = append(all, column)
		}
		return all
	}
	above := begins()
	p := problem
	p.Climb = nil
	if _, err := fit.Sample(t.Context(), p, Chains{Kernel: RandomWalkMetropolis{}},
		run.Settings{Engine: engine}); err == nil {
		t.Error("without a climb chain 0 begins where there is no density, and there is no error")
	}
	for chain := range 5 {
		if math.Abs(above[0][chain]-2) > .02 || math.Abs(above[2][chain]-1) > .02 {
			t.Errorf("chain %d begins at %.3f and %.3f, not at 2 and 1", chain, above[0][chain], above[2][chain])
		}
	}
	for bad, want := range map[*density.Climb]string{{Rate: -1}: "Rate is -1", {Rate: math.NaN()}: "Rate is NaN"} {
		p.Climb = bad
		if _, err := fit.Sample(t.Context(), p, Chains{Kernel: RandomWalkMetropolis{}},
			run.Settings{Engine: engine}); !says(err, want) {
			t.Errorf("%+v: error %v does not say %q", *bad, err, want)
		}
	}
}

// first is 1 in the row of the first chain, 0 in the others.
func first(phi *Node) *Node {
	return ConvertDType(Equal(Iota(phi.Graph(), phi.Shape(), 0), ZerosLike(phi)), phi.DType())
}

// A run that is cancelled while its chains climb has no draws, leaves nothing behind, and goes on to the same bits.
func TestCancelledClimb(t *testing.T) {
	problem := quartic()
	problem.Climb = &density.Climb{}
	chains, settings := Chains{Chains: 4, Draws: 20, WarmUp: 20}, run.Settings{Seed: 3, Engine: computetest.Go(t)}
	_, whole := sample(t, problem, with(chains, RandomWalkMetropolis{}), settings)
	settings.Checkpoint = filepath.Join(t.TempDir(), "chains")
	left := 100
	part, err := fit.Sample(after{t.Context(), &left}, problem, with(chains, RandomWalkMetropolis{}), settings)
	if part != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled in the climb: %+v, error %v", part, err)
	}
	if _, err := os.Stat(settings.Checkpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a checkpoint of a run that has not begun (%v)", err)
	}
	_, again := sample(t, problem, with(chains, RandomWalkMetropolis{}), settings)
	if !slices.Equal(numbers(t, again), numbers(t, whole)) {
		t.Error("the draws differ from those of an uninterrupted run")
	}
}
