package mcmc

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
)

// banana is a density in two dimensions with a curved ridge and no symmetry.
func banana() density.Func {
	return func(phi *Node) *Node {
		x, y := Slice(phi, AxisRange(), AxisElem(0)), Slice(phi, AxisRange(), AxisElem(1))
		ridge := Sub(y, AddScalar(MulScalar(Square(x), .5), .3))
		return Squeeze(MulScalar(Add(Square(SubScalar(x, .5)), MulScalar(Square(ridge), 4)), -.5), 1)
	}
}

// flow compiles leapfrog steps: from phi and momentum, [J, 2] flat, with a step size for each particle, to both and the
// energy.
func flow(
	t *testing.T, engine *compute.Engine, dtype compute.DType, scale []float64,
) func(phi, momentum, h []float64, steps int) (phi2, momentum2, energy []float64) {
	t.Helper()
	target := banana()
	energyOf := func(s State, momentum *Node) *Node { return Sub(Kinetic(momentum), s.LogDensity) }
	scaleNode := func(g *Graph) *Node { return ConvertDType(Const(g, scale), dtype) }
	step := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
		s := State{Phi: a[0]}
		s.LogDensity, s.Gradient = Evaluate(target, s.Phi)
		s, momentum := Leapfrog(target, s, a[1], a[2], Tuning{Scale: scaleNode(g)})
		return []*Node{s.Phi, momentum, energyOf(s, momentum)}
	})
	return func(phi, momentum, h []float64, steps int) ([]float64, []float64, []float64) {
		var energy []float64
		for range steps {
			out := step(
				compute.Floats(dtype, phi, len(h), 2), compute.Floats(dtype, momentum, len(h), 2), compute.Floats(dtype, h, len(h)),
			)
			phi, momentum, energy = out[0], out[1], out[2]
		}
		return phi, momentum, energy
	}
}

// Steps of -h undo steps of h, particle by particle; so do steps of h from the momentum turned round.
func TestLeapfrogReverses(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		run := flow(t, engine, dtype, []float64{1.5, .4})
		phi, momentum, h := []float64{.1, .2, -1, 1, 2, 2}, []float64{1, -.5, .3, .2, -1, 0}, []float64{.1, -.2, .05}
		there, momentumThere, _ := run(phi, momentum, h, 10)
		if floats.Distance(there, phi, 2) < .5 {
			t.Fatal("nothing moved")
		}
		turn := func(x []float64) []float64 { return floats.ScaleTo(make([]float64, len(x)), -1, x) }
		tolerance := 1e-4
		if dtype == compute.Float64 {
			tolerance = 1e-11
		}
		back, momentumBack, _ := run(there, momentumThere, turn(h), 10)
		computetest.Near(t, "phi by negative steps", back, phi, tolerance)
		computetest.Near(t, "momentum by negative steps", momentumBack, momentum, tolerance)
		back, momentumBack, _ = run(there, turn(momentumThere), h, 10)
		computetest.Near(t, "phi by the momentum turned round", back, phi, tolerance)
		computetest.Near(t, "momentum turned round", turn(momentumBack), momentum, tolerance)
	})
}

// The energy error over a given time falls as the square of the step size: a quarter for half the step.
func TestLeapfrogOrder(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		run := flow(t, engine, compute.Float64, []float64{1.5, .4})
		phi, momentum := []float64{.4, -.3}, []float64{.8, -.6}
		_, _, begin := run(phi, momentum, []float64{1e-9}, 1)
		change := func(steps int) float64 {
			_, _, energy := run(phi, momentum, []float64{1.6 / float64(steps)}, steps)
			return energy[0] - begin[0]
		}
		coarse, middle, fine := change(40), change(80), change(160)
		for _, ratio := range []float64{coarse / middle, middle / fine} {
			if math.Abs(ratio-4) > .1 {
				t.Errorf(
					"%s: energy errors %.3g, %.3g and %.3g for steps in ratio 4, 2 and 1: want 16, 4 and 1", engine.Name(), coarse,
					middle, fine,
				)
			}
		}
	}
}
