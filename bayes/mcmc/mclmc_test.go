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

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// The energy error of a step falls as the third power of its size, as that of an integrator of second order does, and a
// step back leads back.
func TestIsokinetic(t *testing.T) {
	const particles, d = 200, 3
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() []float64 {
		x := make([]float64, particles*d)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	quartic := density.Func(func(phi *Node) *Node {
		return Neg(Add(MulScalar(ReduceSum(Square(Square(phi)), 1), .25), MulScalar(ReduceSum(phi, 1), .3)))
	})
	step := computetest.Compile(t, computetest.Go(t), func(_ *Graph, a []*Node) []*Node {
		s := State{Phi: a[0]}
		s.LogDensity, s.Gradient = Evaluate(quartic, s.Phi)
		u := unitRows(a[1])
		end, v, there := isokinetic(quartic, s, u, a[2], Tuning{})
		back, w, andBack := isokinetic(quartic, end, Neg(v), a[2], Tuning{})
		return []*Node{there, back.Phi, Add(w, u), Add(there, andBack)}
	})
	phi, u := draw(), draw()
	size := func(h float64) float64 {
		out := step(compute.Floats(compute.Float64, phi, particles, d), compute.Floats(compute.Float64, u, particles, d), h)
		computetest.Near(t, "the way back", out[1], phi, 1e-12)
		computetest.Near(t, "the velocity back", out[2], make([]float64, len(phi)), 1e-12)
		computetest.Near(t, "the energy back", out[3], make([]float64, particles), 1e-12)
		sum := 0.
		for _, e := range out[0] {
			sum += e * e
		}
		return math.Sqrt(sum / particles)
	}
	if ratio := size(.01) / size(.005); !(ratio > 7 && ratio < 9) {
		t.Errorf("a step of twice the size has %.2f times the energy error, want 8", ratio)
	}
}

// Where the density is flat a particle flies on, and in D coordinates turns as a random walk on the sphere: after each
// step of size h the cosine to its direction before is (1 + n a) / |(1 + n a, n b)|, with n as MCLMC says, a standard
// normal and b^2 chi-squared with D - 1 degrees of freedom. In many coordinates it is exp(-h/L) in the mean. Over 1000
// particles zMax standard errors are below .01 (a false alarm in 50 000 changes of the random numbers), and half of
// h/L changes the mean by .06 or more.
func TestMCLMCForgets(t *testing.T) {
	const d, particles = 30, 1000
	flat := density.Func(func(phi *Node) *Node { return MulScalar(ReduceSum(phi, 1), 0) })
	length := math.Sqrt(d)
	for _, h := range []float64{.8, 3} {
		var step uint32
		move := countedMover(t, computetest.Go(t), compute.Float64, MCLMC{StepSize: h}, d, flat, nil, &step)
		places := [4][]float64{make([]float64, particles*d)} // after so many steps, with the same random numbers
		for n := 1; n < len(places); n++ {
			step = 0
			places[n], _, _ = move(places[0], n)
		}
		r := rand.New(rand.NewPCG(7, 8))
		n := math.Sqrt(math.Expm1(2*h/length) / d)
		var cosines []float64
		want := 0.
		for i := range particles {
			for s := 2; s < len(places); s++ {
				cosine := 0.
				for k := i * d; k < (i+1)*d; k++ {
					cosine += (places[s][k] - places[s-1][k]) * (places[s-1][k] - places[s-2][k]) / (h * h)
				}
				cosines = append(cosines, cosine)
			}
			for range 100 {
				a, b := 1+n*r.NormFloat64(), n*math.Sqrt(distuv.ChiSquared{K: d - 1, Src: r}.Rand())
				want += a / math.Hypot(a, b) / (100 * particles)
			}
		}
		expect(t, fmt.Sprintf("h = %v: the cosine of a turn", h), cosines, 1, func(x []float64) float64 { return x[0] }, want)
		if limit := math.Exp(-h / length); math.Abs(want-limit) > .02 {
			t.Errorf("h = %v: a turn's cosine should be %v in the mean, near %v", h, want, limit)
		}
	}
}

// Beyond 1 the target is NaN: no particle gets there, each step that would is counted, and a step at which all of them
// do is no steady one.
func TestMCLMCNonFinite(t *testing.T) {
	wall := density.Func(func(phi *Node) *Node {
		normal := MulScalar(ReduceSum(Square(phi), 1), -.5)
		first := Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1)
		return Where(GreaterThan(first, ConstAs(first, 1.)), Sqrt(Neg(OnesLike(first))), normal)
	})
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		phi, _, nonFinite := mover(t, engine, dtype, MCLMC{StepSize: .5}, 2, wall)(make([]float64, 2*500), 30)
		counted := 0.
		for i, n := range nonFinite {
			counted += n
			if !(phi[2*i] <= 1) || math.IsNaN(phi[2*i+1]) {
				t.Fatalf("particle %d is at %v", i, phi[2*i:2*i+2])
			}
		}
		if counted < 100 {
			t.Errorf("%v steps are counted: this tests little", counted)
		}
		out := computetest.Run(t, engine, func(g *Graph, a []*Node) []*Node {
			kernel := MCLMC{StepSize: 1e6}
			s := Start(kernel, random.New(g, 1), a[0], wall)
			next, info := kernel.Move(random.New(g, 2), s, wall, Tuning{})
			return []*Node{info.Steadiness, next.Phi}
		}, compute.Floats(dtype, []float64{.5, 0, -.5, .2}, 2, 2))
		for i, steadiness := range out[0] {
			if steadiness != 0 {
				t.Errorf("particle %d went to %v in a step of 1e6, of steadiness %v", i, out[1][2*i:2*i+2], steadiness)
			}
		}
	})
}
