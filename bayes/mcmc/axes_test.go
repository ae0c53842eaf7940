package mcmc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// correlations is the covariance of D coordinates, with standard deviations from 0.1 to 10, of which the first half
// have correlations of 0.99 with one another.
func correlations(d int) *mat.SymDense {
	sd := func(i int) float64 { return math.Pow(10, 2*float64(i)/float64(d-1)-1) }
	s := mat.NewSymDense(d, nil)
	for i := range d {
		s.SetSym(i, i, sd(i)*sd(i))
		for k := range min(i, d/2) {
			if i < d/2 {
				s.SetSym(i, k, .99*sd(i)*sd(k))
			}
		}
	}
	return s
}

// gaussian is a density with this covariance.
func gaussian(covariance *mat.SymDense) density.Problem {
	var factor mat.Cholesky
	var inverse mat.SymDense
	if !factor.Factorize(covariance) || factor.InverseTo(&inverse) != nil {
		panic("no covariance")
	}
	d := covariance.SymmetricDim()
	precision := mat.DenseCopyOf(&inverse).RawMatrix().Data
	return density.Problem{Name: "correlated", Dim: d, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			p := Reshape(ConvertDType(Const(phi.Graph(), precision), phi.DType()), d, d)
			return MulScalar(ReduceSum(Mul(phi, Einsum("jd,dk->jk", phi, p)), 1), -.5)
		})
	}}
}

// factorOf is L of scales and axes, on the host: Tuning.Scaled multiplies by it.
func factorOf(scale []float64, axes []Axis) *mat.Dense {
	d := len(scale)
	l := mat.NewDense(d, d, nil)
	for i := range d {
		for k := range d {
			if i == k {
				l.Set(i, k, 1)
			}
			for _, a := range axes {
				l.Set(i, k, l.At(i, k)+(a.StdDev-1)*a.Direction[i]*a.Direction[k])
			}
		}
		floats.Scale(scale[i], l.RawRowView(i))
	}
	return l
}

// Of a Gaussian D + 5 points suffice for the whole covariance, wherever the chains are. Of fewer axes than D/2 those
// count that lead: the condition number of what is left is that without them, or with one too few, by far.
func TestMetric(t *testing.T) {
	const d, chains = 30, 2
	r := rand.New(rand.NewPCG(1, 2))
	target := correlations(d)
	draw := func(sigma *mat.SymDense, n int) (p points) {
		var factor mat.Cholesky
		var lower mat.TriDense
		if !factor.Factorize(sigma) {
			t.Fatal("no covariance")
		}
		factor.LTo(&lower)
		for i := range n {
			z, x, g := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
			for k := range d {
				z.SetVec(k, 3*r.NormFloat64()+10*float64(i%chains)) // not where the target is
			}
			x.MulVec(&lower, z)
			if err := factor.SolveVecTo(g, x); err != nil {
				t.Fatal(err)
			}
			g.ScaleVec(-1, g)
			p.phi, p.gradients = append(p.phi, x.RawVector().Data...), append(p.gradients, g.RawVector().Data...)
		}
		return p
	}
	scale, axes := draw(target, d+5).metric(chains, d, d)
	if len(axes) != d {
		t.Fatalf("%d axes, want %d", len(axes), d)
	}
	if err := checkTunedAxes(Tuned{Axes: axes}, d); err != nil {
		t.Error(err)
	}
	var found mat.Dense
	l := factorOf(scale, axes)
	found.Mul(l, l.T())
	for i := range d {
		for k := range d {
			unit := math.Sqrt(target.At(i, i) * target.At(k, k))
			if got, want := found.At(i, k), target.At(i, k); math.Abs(got-want) > .01*unit {
				t.Fatalf("covariance of %d and %d: %.4g, want %.4g", i, k, got, want)
			}
		}
	}

	// Three directions, wide and narrow, of coordinates whose scales are not 1.
	wide := mat.NewSymDense(d, nil)
	for i := range d {
		wide.SetSym(i, i, 1)
	}
	for i, variance := range []float64{400, 100, 1. / 300} {
		u := mat.NewVecDense(d, nil)
		for k := range d {
			u.SetVec(k, math.Cos(math.Pi*(float64(k)+.5)*float64(3*i+1)/d)*math.Sqrt(2./d)) // orthonormal
		}
		wide.SymRankOne(wide, variance-1, u)
	}
	for i := range d {
		for k := range i + 1 {
			wide.SetSym(i, k, wide.At(i, k)*math.Pow(3, math.Cos(float64(i))+math.Cos(float64(k))))
		}
	}
	condition := map[int]float64{}
	for _, k := range []int{0, 2, 3, 5} {
		scale, axes := draw(wide, 400).metric(chains, d, max(k, 1))
		axes = axes[:min(k, len(axes))]
		var inverse, left, out mat.Dense
		if err := inverse.Inverse(factorOf(scale, axes)); err != nil {
			t.Fatal(err)
		}
		left.Mul(&inverse, wide)
		out.Mul(&left, inverse.T())
		condition[k] = mat.Cond(&out, 2)
	}
	if t.Log(condition); condition[0] < 300 || condition[3] > 30 || condition[5] > condition[3]*1.2 ||
		condition[2] < 3*condition[3] {
		t.Errorf("condition numbers by axes: %v", condition)
	}
	for _, p := range []points{{}, {make([]float64, 3*d), make([]float64, 3*d)}, draw(target, 3)} {
		if scale, axes := p.metric(chains, d, 2); scale != nil || axes != nil {
			t.Errorf("%d numbers: scales %v", len(p.phi), scale)
		}
	}
}

// A kernel with scales and axes, L, goes on a target where it goes without on the target of z, phi = L z: a linear
// change of coordinates changes nothing.
func TestAxesChangeCoordinates(t *testing.T) {
	const d, particles, moves = 3, 4, 12
	scale := []float64{1.5, .4, 2}
	axes := []Axis{{[]float64{.6, .8, 0}, 3}, {[]float64{.8 * .6, -.6 * .6, .8}, .2}}
	l := factorOf(scale, axes)
	target := density.Func(func(phi *Node) *Node {
		x := SubScalar(phi, .3)
		quartic := MulScalar(ReduceSum(Square(Square(x)), 1), -.1)
		return Sub(quartic, MulScalar(Square(ReduceSum(x, 1)), .7))
	})
	node := func(g *Graph) *Node { return Reshape(Const(g, mat.DenseCopyOf(l).RawMatrix().Data), d, d) }
	inZ := density.Func(func(z *Node) *Node { return target.LogDensity(Einsum("jk,dk->jd", z, node(z.Graph()))) })
	for _, kernel := range []Kernel{
		RandomWalkMetropolis{StepSize: .5}, MALA{StepSize: .3}, HMC{StepSize: .2, Steps: 3}, NUTS{StepSize: .2, MaxDepth: 4},
		MicrocanonicalHMC{StepSize: .4, Steps: 2}, MCLMC{StepSize: .3}, ULA{StepSize: .1}, SGLD{StepSize: .02},
		SGHMC{LearningRate: .01},
	} {
		run := computetest.Compile(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
			walk := func(phi *Node, target density.Target, tuning Tuning) (*Node, *Node) {
				s := Start(kernel, random.New(g, 1), phi, target)
				var jump *Node
				for i := range moves {
					var info Info
					s, info = kernel.Move(random.New(g, 2).At(Const(g, uint32(i))), s, target, tuning)
					if jump = info.SquaredJump; jump == nil {
						jump = ZerosLike(Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1))
					}
				}
				return s.Phi, jump
			}
			directions := Const(g, [][]float64{axes[0].Direction, axes[1].Direction})
			tuning := Tuning{
				Scale: Const(g, scale), Axes: directions, Stretch: Const(g, []float64{axes[0].StdDev, axes[1].StdDev}),
			}
			phi, jump := walk(Einsum("jk,dk->jd", a[0], node(g)), target, tuning)
			z, jumpInZ := walk(a[0], inZ, Tuning{})
			return []*Node{phi, Einsum("jk,dk->jd", z, node(g)), jump, jumpInZ}
		})
		r := rand.New(rand.NewPCG(3, 4))
		begin := make([]float64, particles*d)
		for i := range begin {
			begin[i] = .3 * r.NormFloat64()
		}
		out := run(compute.Floats(compute.Float64, begin, particles, d))
		computetest.Near(t, fmt.Sprintf("%T: phi", kernel), out[0], out[1], 1e-9)
		computetest.Near(t, fmt.Sprintf("%T: jumps", kernel), out[2], out[3], 1e-9)
		var start mat.Dense
		start.Mul(mat.NewDense(particles, d, begin), l.T())
		if floats.Distance(out[0], start.RawMatrix().Data, 2) < .1 {
			t.Errorf("%T: nothing moved", kernel)
		}
	}
}

// Where coordinates are correlated the warm-up finds axes that make draws cheaper by far, and the draws are the
// target's.
func TestAxes(t *testing.T) {
	for _, c := range []struct {
		kernel  Kernel
		d, axes int
		better  float64
	}{{HMC{Steps: 5}, 10, 5, 4}, {MCLMC{}, 50, 25, 4}} {
		problem := gaussian(correlations(c.d))
		each := func(axes int) (perGradient float64, result *Result) {
			result, err := Sample(t.Context(), problem, c.kernel, Settings{
				Chains: 10, Draws: 200, WarmUp: 150, Axes: axes, Seed: 4, DType: compute.Float64, Engine: computetest.Go(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			chains, err := diag.New(result.Draws.Sample())
			if err != nil {
				t.Fatal(err)
			}
			least := math.Inf(1)
			for k := range c.d {
				ess, err := chains.ESS(k, diag.Bulk)
				if err != nil {
					t.Fatal(err)
				}
				least = min(least, ess)
			}
			return 1000 * least / float64(result.Gradients), result
		}
		without, _ := each(0)
		with, result := each(c.axes)
		t.Logf("%T, D = %d: %.3g effective draws for 1000 gradients with %d axes, %.3g without", c.kernel, c.d, with, c.axes,
			without)
		if len(result.Tuned.Axes) != c.axes || !(with > c.better*without) {
			t.Errorf("%T: %.3g with axes, %.3g without, want %v times as many", c.kernel, with, without, c.better)
		}
		for k := 0; k < c.d && c.kernel != (MCLMC{}); k += 3 { // which has a bias
			sd := math.Sqrt(correlations(c.d).At(k, k))
			checkMoments(t, result.Draws, 10, 200, []moment{{
				fmt.Sprintf("%T, coordinate %d", c.kernel, k), func(phi []float64) float64 { return phi[k] }, 0, sd,
			}})
		}
	}
}
