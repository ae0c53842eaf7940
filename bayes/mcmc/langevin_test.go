package mcmc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// independentNormal has mean m and standard deviation s, [2].
func independentNormal(m, s []float64) density.Func {
	return func(phi *Node) *Node {
		return MulScalar(ReduceSum(Square(Div(Sub(phi, row(phi, m)), row(phi, s))), 1), -.5)
	}
}

// On a Gaussian of standard deviation s a Langevin step of size h with scale c is autoregressive, x' = (1 - r/2) x + h
// c z about the mean with r = (h c/s)^2: its stationary variance is s^2 / (1 - r/4), and successive draws have
// correlation 1 - r/2. SGLD with a constant step size has this bias, and no other.
func TestLangevinBias(t *testing.T) {
	m, s := []float64{1.5, -.7}, []float64{2, .5}
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			kernel Kernel
			h      float64
			scale  []float64
		}{
			{SGLD{StepSize: .64}, .8, nil},
			{SGLD{StepSize: 1.21}, 1.1, []float64{1.5, .4}},
		} {
			move := tunedMover(t, engine, dtype, c.kernel, 2, independentNormal(m, s), c.scale)
			r := rand.New(rand.NewPCG(5, 6))
			var start []float64
			sd, correlation := make([]float64, 2), make([]float64, 2)
			for k := range 2 {
				h := c.h
				if c.scale != nil {
					h *= c.scale[k]
				}
				rate := h * h / (s[k] * s[k])
				sd[k], correlation[k] = s[k]/math.Sqrt(1-rate/4), 1-rate/2
			}
			for range j {
				start = append(start, m[0]+sd[0]*r.NormFloat64(), m[1]+sd[1]*r.NormFloat64())
			}
			once, _, _ := move(start, 1)
			after, _, nonFinite := move(once, 10)
			for k := range 2 {
				what := fmt.Sprintf("%+v, scale %v, coordinate %d", c.kernel, c.scale, k)
				follows(t, what, column(after, 2, k), distuv.Normal{Mu: m[k], Sigma: sd[k]}.CDF)
				both := make([]float64, 0, 2*j)
				for i := range j {
					both = append(both, (start[2*i+k]-m[k])/sd[k], (once[2*i+k]-m[k])/sd[k])
				}
				expect(t, what+": variance", both, 2, func(x []float64) float64 { return x[1] * x[1] }, 1)
				expect(t, what+": correlation", both, 2, func(x []float64) float64 { return x[0] * x[1] }, correlation[k])
			}
			if nonFinite[0] != 0 {
				t.Errorf("%T: gradients were not finite", c.kernel)
			}
		}
	})
}

// A constant gradient of 1 instead of 0, with the same noise, moves SGLD by half the sum of its step sizes, a (b +
// t)^-c.
func TestSGLDSchedule(t *testing.T) {
	slope := func(g float64) density.Func {
		return func(phi *Node) *Node { return MulScalar(ReduceSum(phi, 1), g) }
	}
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			kernel  SGLD
			a, b, c float64
		}{
			{SGLD{StepSize: .3}, .3, 1, 0},
			{SGLD{StepSize: .3, Decay: .55}, .3, 1, .55},
			{SGLD{StepSize: 2, Offset: 10, Decay: 1}, 2, 10, 1},
		} {
			const moves = 12
			start := []float64{.5, -1, 2}
			var step uint32
			still := countedMover(t, engine, dtype, c.kernel, 1, slope(0), nil, &step)
			without, _, _ := still(start, moves)
			with, _, _ := mover(t, engine, dtype, c.kernel, 1, slope(1))(start, moves)
			want, variance := 0.0, 0.0
			for i := range moves {
				e := c.a * math.Pow(c.b+float64(i), -c.c)
				want += e / 2
				variance += e
			}
			for i := range start {
				if math.Abs(with[i]-without[i]-want) > 1e-5 {
					t.Errorf("%+v: the gradient moved particle %d by %v, want %v", c.kernel, i, with[i]-without[i], want)
				}
			}
			step = 100
			noise, _, _ := still(make([]float64, j), moves)
			follows(t, fmt.Sprintf("%+v: the noise", c.kernel), noise, distuv.Normal{Sigma: math.Sqrt(variance)}.CDF)
		}
	})
}

// On a standard normal target SGHMC is linear in (phi, v): v' = (1 - alpha) v - eta phi + e, phi' = phi + v' with e of
// variance 2 alpha eta. So from phi ~ N(0, 1.5^2) and v ~ N(0, eta) its covariance after n moves follows by
// the recursion, and tends to the target's as eta and alpha fall.
func TestSGHMC(t *testing.T) {
	normal := independentNormal([]float64{0}, []float64{1})
	distribution := func(k SGHMC, alpha float64, moves int) float64 {
		pp, pv, vv := 1.5*1.5, 0.0, k.LearningRate // covariances of phi and v
		for range moves {
			a, b, noise := 1-alpha, k.LearningRate, 2*alpha*k.LearningRate
			vv2 := a*a*vv - 2*a*b*pv + b*b*pp + noise
			pv2 := a*pv - b*pp
			pp, pv, vv = pp+2*pv2+vv2, pv2+vv2, vv2
		}
		return pp
	}
	if limit := distribution(SGHMC{LearningRate: 1e-4}, .02, 100_000); math.Abs(limit-1) > 1e-3 {
		t.Fatalf("the recursion tends to a variance of %v, want 1", limit)
	}
	onGo(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, c := range []struct {
			kernel SGHMC
			moves  []int
		}{
			{SGHMC{LearningRate: .3, Friction: .5}, []int{1, 4, 60}},
			{SGHMC{LearningRate: .2}, []int{7}}, // friction 0.1
			{SGHMC{LearningRate: .3, Friction: .05}, []int{6, 7, 8}},
		} {
			alpha := c.kernel.Friction
			if alpha == 0 {
				alpha = .1
			}
			r := rand.New(rand.NewPCG(7, 8))
			start := make([]float64, j)
			for i := range start {
				start[i] = 1.5 * r.NormFloat64()
			}
			move := mover(t, engine, dtype, c.kernel, 1, normal)
			for _, moves := range c.moves {
				phi, _, _ := move(start, moves)
				what := fmt.Sprintf("%+v after %d moves", c.kernel, moves)
				want := distribution(c.kernel, alpha, moves)
				follows(t, what, phi, distuv.Normal{Sigma: math.Sqrt(want)}.CDF)
				expect(t, what+": variance", phi, 1, func(x []float64) float64 { return x[0] * x[0] }, want)
			}
		}
	})
}
