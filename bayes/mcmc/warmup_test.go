package mcmc

import (
	"fmt"
	"math"
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
	"gonum.org/v1/gonum/stat"
)

// badlyScaled is a Gaussian in ten dimensions whose standard deviations, sd, go from 0.1 to 30, with means of 1.
func badlyScaled() (problem density.Problem, sd []float64) {
	ones := make([]float64, 10)
	for k := range ones {
		ones[k] = 1
		sd = append(sd, .1*math.Pow(300, float64(k)/9))
	}
	return density.Problem{Name: "badly scaled", Dim: 10, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			return MulScalar(ReduceSum(Square(Div(Sub(phi, row(phi, ones)), row(phi, sd))), 1), -.5)
		})
	}}, sd
}

// The acceptance at which a warm-up aims is the user's, and the warning of divergences names it.
func TestAcceptance(t *testing.T) {
	chains, settings := Chains{Chains: 10, Draws: 100, WarmUp: 200}, run.Settings{Seed: 3, Engine: computetest.Go(t)}
	for _, kernel := range []Kernel{HMC{Steps: 5, Acceptance: .95}, NUTS{Acceptance: .95}} {
		_, result := sample(t, standard(), with(chains, kernel), settings)
		mean := 0.0
		for _, c := range result.Stats {
			mean += c.Acceptance / float64(len(result.Stats))
		}
		if math.Abs(mean-.95) > .03 {
			t.Errorf("%T: mean acceptance %.3f, want 0.95", kernel, mean)
		}
		result.Stats[0].Divergences = 7
		doubts := (&sampling{Chains: Chains{Kernel: kernel}}).doubts(result.Stats)
		if want := fmt.Sprintf("of 0.988 (%T.Acceptance) in place of 0.95", kernel); len(doubts) != 1 ||
			!strings.Contains(doubts[0].Text, want) {
			t.Errorf("warnings %q, want %q", doubts, want)
		}
	}
}

// A warm-up brings the acceptance to its target, finds the scales, and leaves the chains where the target is. The
// random walk finds the largest scales last.
func TestWarmUp(t *testing.T) {
	problem, sd := badlyScaled()
	engine, dtype := computetest.Go(t), compute.Float64
	steps, short := map[Tunable]float64{}, MCLMC{EnergyVariance: 2e-5}
	for _, kernel := range []Tunable{
		RandomWalkMetropolis{}, MALA{}, HMC{Steps: 5}, MCLMC{}, short,
	} {
		what := fmt.Sprintf("%T%+[1]v", kernel)
		_, result := sample(t, problem, Chains{Kernel: kernel, Chains: 20, Draws: 300, WarmUp: 600},
			run.Settings{Seed: 3, DType: dtype, Engine: engine})
		mean := 0.0
		for _, c := range result.Stats {
			if _, ok := kernel.(MCLMC); ok {
				c.Acceptance = c.Steadiness
			}
			mean += c.Acceptance / float64(len(result.Stats))
		}
		steps[kernel] = result.Tuned.StepSize
		if _, want := kernel.Tune(); math.Abs(mean-want) > .05 {
			t.Errorf("%s: mean acceptance or steadiness %.3f, want %.3f", what, mean, want)
		}
		for k, scale := range result.Tuned.Scale {
			if math.Abs(math.Log(scale/sd[k])) > .15 {
				t.Errorf("%s: coordinate %d has scale %.3g, want %.3g", what, k, scale, sd[k])
			}
			if kernel == (RandomWalkMetropolis{}) { // 300 draws of it are too few for the rest
				continue
			}
			// The chains are independent: their means and mean squares have a standard error.
			var means, squares []float64
			for _, chain := range result.Draws.Coordinate(k) {
				z := make([]float64, len(chain))
				for i, x := range chain {
					z[i] = ((x - 1) / sd[k]) * ((x - 1) / sd[k])
				}
				means, squares = append(means, (stat.Mean(chain, nil)-1)/sd[k]), append(squares, stat.Mean(z, nil))
			}
			same := func(x []float64) float64 { return x[0] }
			expect(t, fmt.Sprintf("%s, coordinate %d: mean", what, k), means, 1, same, 0)
			expect(t, fmt.Sprintf("%s, coordinate %d: variance", what, k), squares, 1, same, 1)
		}
	}
	if ratio := steps[MCLMC{}] / steps[short]; math.Abs(ratio-1.71) > .17 {
		t.Errorf("25 times the energy variance makes steps of MCLMC %.2f times as long, want the sixth root, 1.71", ratio)
	}
}

// The windows are Stan's: for 1000, 500 and 150 transitions they are those that its manual and source give.
func TestSlowWindows(t *testing.T) {
	for _, c := range []struct {
		n, begin int
		ends     []int
	}{
		{1000, 75, []int{100, 150, 250, 450, 950}},
		{500, 75, []int{100, 150, 250, 450}},
		{300, 75, []int{100, 150, 250}},
		{299, 75, []int{100, 249}},
		{150, 75, []int{100}},
		{149, 22, []int{135}},
		{100, 15, []int{90}},
		{20, 3, []int{18}},
		{19, 19, nil},
	} {
		if begin, ends := slowWindows(c.n); begin != c.begin || !slices.Equal(ends, c.ends) {
			t.Errorf("%d transitions: from %d, ends %v, want %d, %v", c.n, begin, ends, c.begin, c.ends)
		}
	}
}

// Moments over several additions are those of all rows, without rows that are not finite; variances shrink to 1e-3 with
// the weight of five draws.
func TestMoments(t *testing.T) {
	m := newMoments(2)
	for _, rows := range [][][]float64{{{1e6 + 1, 2}, {1e6 + 2, -1}}, {{1e6 + 4, 7}, {math.NaN(), 5}, {3, math.Inf(1)}}} {
		if err := m.add(tensors.FromValue(rows)); err != nil {
			t.Fatal(err)
		}
	}
	for k, column := range [][]float64{{1, 2, 4}, {2, -1, 7}} {
		want := math.Sqrt((3*stat.Variance(column, nil) + 5*1e-3) / 8)
		if got := m.scales()[k]; math.Abs(got-want) > 1e-9 {
			t.Errorf("coordinate %d: scale %v, want %v", k, got, want)
		}
	}
}

// A step size that is set is kept, as are scales; a warm-up that begins with step size and scales of another run finds
// the same.
func TestWarmUpKeepsWhatIsSet(t *testing.T) {
	engine := computetest.Go(t)
	problem, sd := badlyScaled()
	for _, c := range []struct {
		Chains
		step   float64
		scaled bool
	}{
		{Chains{Kernel: RandomWalkMetropolis{StepSize: .25}, WarmUp: 30}, .25, false},
		{Chains{Kernel: RandomWalkMetropolis{StepSize: .25}, WarmUp: NoWarmUp, Tuned: Tuned{StepSize: .5, Scale: sd}},
			.5, true},
		{Chains{Kernel: MALA{}, WarmUp: NoWarmUp, Tuned: Tuned{StepSize: .05}}, .05, false},
		{Chains{Kernel: SGLD{StepSize: 1e-4}, WarmUp: 30}, 0, false},
	} {
		c.Chains.Chains, c.Draws = 20, 10
		_, result := sample(t, problem, c.Chains, run.Settings{Engine: engine})
		if result.Tuned.StepSize != c.step || (result.Tuned.Scale != nil) != c.scaled ||
			result.WarmUpMoves != max(0, c.WarmUp) {
			t.Errorf("%+v: tuned %+v after %d moves, want %v and scales: %v", c.Chains, result.Tuned, result.WarmUpMoves,
				c.step, c.scaled)
		}
	}
	_, result := sample(t, problem, Chains{Kernel: MALA{}, Chains: 20, Draws: 10, WarmUp: 100, FixedScale: true},
		run.Settings{Engine: engine})
	if result.Tuned.Scale != nil || !(result.Tuned.StepSize < .3) {
		t.Errorf("scales of 1: tuned %+v", result.Tuned)
	}
}

// What no step size suits is an error that says so: a flat target, and one that is finite only where the chains begin.
func TestNoStepSize(t *testing.T) {
	engine := computetest.Go(t)
	for _, c := range []struct {
		density density.Func
		says    string
	}{
		{func(phi *Node) *Node { return MulScalar(ReduceSum(phi, 1), 0) }, "improper"},
		{func(phi *Node) *Node {
			zero := ZerosLike(phi)
			return ReduceSum(Where(Equal(phi, zero), zero, Div(zero, zero)), 1)
		}, "NaN"},
	} {
		problem := density.Problem{
			Dim: 2, Target: func(compute.Nodes, []*Node) density.Target { return c.density }, Initial: zeros,
		}
		_, err := fit.Sample(t.Context(), problem, Chains{Kernel: RandomWalkMetropolis{}}, run.Settings{Engine: engine})
		if !says(err, "no step size works") || !says(err, c.says) {
			t.Errorf("error %v, want one that no step size works, that says %q", err, c.says)
		}
	}
}

// Steps to where the target is NaN, minus or plus infinity count as rejected: the warm-up brings the acceptance of all
// proposals, these among them, to its target, so that the step size does not grow without end, as where a kernel hides
// them from its tuner.
func TestWarmUpNonFinite(t *testing.T) {
	problem := density.Problem{
		Name: "a box", Dim: 2, Initial: zeros, Target: func(compute.Nodes, []*Node) density.Target {
			return density.Func(func(phi *Node) *Node {
				density := MulScalar(ReduceSum(Square(phi), 1), -.1)
				x, y := Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1), Squeeze(Slice(phi, AxisRange(), AxisElem(1)), 1)
				one := OnesLike(x)
				density = Where(GreaterThan(x, one), fillAs(x, math.NaN()), density)
				density = Where(LessThan(x, Neg(one)), fillAs(x, math.Inf(-1)), density)
				return Where(GreaterThan(Abs(y), one), fillAs(x, math.Inf(1)), density)
			})
		},
	}
	for _, kernel := range []Tunable{
		RandomWalkMetropolis{}, MALA{}, HMC{Steps: 3}, NUTS{MaxDepth: 5}, MCLMC{},
	} {
		_, result := sample(t, problem, Chains{Kernel: kernel, Chains: 20, Draws: 100, WarmUp: 150},
			run.Settings{Seed: 5, DType: compute.Float64, Engine: computetest.Go(t)})
		mean, nonFinite := 0., 0
		for _, c := range result.Stats {
			if (kernel == MCLMC{}) {
				c.Acceptance = c.Steadiness
			}
			mean += c.Acceptance / float64(len(result.Stats))
			nonFinite += c.NonFinite
		}
		step := result.Tuned.StepSize * slices.Max(result.Tuned.Scale)
		if _, want := kernel.Tune(); math.Abs(mean-want) > .1 || !(step < 3) || nonFinite < 100 {
			t.Errorf("%T: mean acceptance or steadiness %.3f, want %.3f; step %.3g, %d steps were not finite", kernel, mean,
				want, step, nonFinite)
		}
	}
}
