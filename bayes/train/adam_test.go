package train

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// ascend agrees with Kingma and Ba's algorithm 1, and with weight decay with Loshchilov and Hutter's algorithm 2,
// written as a loop over numbers that descends -f, for 10 steps on a quadratic f with a scale and an optimum for each
// coordinate.
func TestAscend(t *testing.T) {
	scale, optimum, start := []float64{1, 100, .01, 3}, []float64{2, -1, 0, .5}, []float64{0, 0, -3, .5}
	for _, c := range []struct {
		name               string
		adam               Adam
		rate, beta2, decay float64 // what the settings mean
		schedule           func(step int) float64
	}{
		{"defaults", Adam{}, .01, .999, 0, func(int) float64 { return 1 }},
		{"own settings", Adam{Schedule: Constant(.3), Beta2: .9}, .3, .9, 0, func(int) float64 { return 1 }},
		{"AdamW", Adam{Schedule: Exponential(.1, .5, 3), WeightDecay: .2}, .1, .999, .2, func(step int) float64 {
			return math.Pow(.5, float64(step)/3)
		}},
		{"annealed", Adam{Schedule: Cosine(.1, 8)}, .1, .999, 0, func(step int) float64 {
			return []float64{1, .96193976626, .85355339059, .69134171618, .5, .30865828382, .14644660941, .03806023374, 0,
				0}[step]
		}},
	} {
		if err := c.adam.Check(); err != nil {
			t.Fatal(err)
		}
		computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
			run := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
				for i := range a {
					a[i] = ConvertDType(a[i], dtype)
				}
				as := func(v []float64) *Node { return ConvertDType(Const(g, v), dtype) }
				gradient := Mul(as(scale), Sub(as(optimum), a[0])) // of f = -scale (psi - optimum)^2 / 2
				psi, m, _ := c.adam.AscendFinite(nil, a[0], gradient, Moments{a[1], a[2]}, a[3], a[4])
				return []*Node{psi, m.Mean, m.Square}
			})
			n := len(start)
			state := [][]float64{start, make([]float64, n), make([]float64, n)}
			theta, m, v := append([]float64{}, start...), make([]float64, n), make([]float64, n)
			for step := 1; step <= 10; step++ {
				state = run(state[0], state[1], state[2], float64(step), c.adam.Schedule.At(step-1))
				alpha := c.rate * c.schedule(step-1)
				for i := range theta {
					g := scale[i] * (theta[i] - optimum[i]) // of -f
					m[i] = .9*m[i] + (1-.9)*g
					v[i] = c.beta2*v[i] + (1-c.beta2)*g*g
					mHat, vHat := m[i]/(1-math.Pow(.9, float64(step))), v[i]/(1-math.Pow(c.beta2, float64(step)))
					theta[i] -= alpha * (mHat/(math.Sqrt(vHat)+1e-8) + c.decay*theta[i])
				}
				tolerance := 1e-12
				if dtype == compute.Float32 {
					tolerance = 2e-5 // 1 - 0.999^step loses four of seven digits
				}
				computetest.Near(t, c.name+": psi", state[0], theta, tolerance)
				for i := range m {
					m[i] = -m[i] // the graph's moments are of the gradient of f
				}
				computetest.Near(t, c.name+": mean", state[1], m, tolerance)
				computetest.Near(t, c.name+": square", state[2], v, tolerance)
				for i := range m {
					m[i] = -m[i]
				}
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		schedule Schedule
		step     int
		want     float64
	}{
		{Schedule{}, 1000, .01},
		{Constant(.5), 7, .5},
		{Exponential(.8, .5, 10), 0, .8},
		{Exponential(.8, .5, 10), 5, .8 * math.Sqrt(.5)},
		{Exponential(.8, .5, 10), 30, .1},
		{Schedule{Rate: .8, Decay: .5}, 2, .2}, // Every defaults to 1
		{Schedule{Decay: .5, Every: 1}, 1, .005},
	} {
		if got := c.schedule.At(c.step); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%+v at step %d is %v, want %v", c.schedule, c.step, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for words, adam := range map[string]Adam{
		"Optimiser.Schedule.Rate is -0.1":   {Schedule: Constant(-.1)},
		"Optimiser.Schedule.Rate is +Inf":   {Schedule: Constant(math.Inf(1))},
		"Optimiser.Schedule.Decay is NaN":   {Schedule: Exponential(.1, math.NaN(), 1)},
		"Optimiser.Schedule.Every is -3":    {Schedule: Exponential(.1, .5, -3)},
		"Optimiser.Schedule.Annealed is -8": {Schedule: Cosine(.1, -8)},
		"Optimiser.Beta2 is 1.5":            {Beta2: 1.5},
		"Optimiser.WeightDecay is NaN":      {WeightDecay: math.NaN()},
	} {
		computetest.WantError(t, words, adam.Check(), words)
	}
}

// A row whose gradient, or the place that it would move to, is not finite stays with its moments, and so does one that
// is not usable; the others move, at the first step by the rate along the gradient's sign.
func TestAscendFinite(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		const steps = 1
		psi := []float64{1, 2, 3, 4, 5, 6, 7, 8}
		gradient := []float64{1, -1, math.NaN(), 1, 1, math.Inf(1), 2, 2}
		got := computetest.Run(t, engine, func(g *Graph, args []*Node) []*Node {
			rows := func(i int) *Node { return Reshape(ConvertDType(args[i], dtype), 4, 2) }
			zero := ZerosLike(rows(0))
			one := ConstAs(zero, 1.0)
			usable := GreaterThan(Const(g, []float64{1, 1, 1, 0}), Const(g, []float64{0, 0, 0, 0}))
			next, m, moved := Adam{}.AscendFinite(usable, rows(0), rows(1), Moments{zero, zero}, MulScalar(one, steps),
				MulScalar(one, .5))
			one64 := func(x *Node) *Node { return ConvertDType(x, compute.Float64) }
			return []*Node{one64(next), one64(m.Mean), one64(m.Square), one64(moved)}
		}, psi, gradient)
		if !slices.Equal(got[3], []float64{1, 0, 0, 0}) {
			t.Errorf("moved %v, want the first alone", got[3])
		}
		computetest.Near(t, "the first", got[0][:2], []float64{1.5, 1.5}, 1e-5)
		if !slices.Equal(got[0][2:], psi[2:]) {
			t.Errorf("came to %v, want the start", got[0])
		}
		for i := 2; i < 8; i++ {
			if got[1][i] != 0 || got[2][i] != 0 {
				t.Errorf("the moments of a row that stays are %v and %v", got[1], got[2])
				break
			}
		}
	})
}
