package surrogate

import (
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// A surrogate from a part that differs from the target by a polynomial of second order only, whatever that is, is the
// target itself up to a constant, and so are its gradients: only what is beyond the second order is taken from a part.
func TestSurrogateOfAllBeyondTheSecondOrder(t *testing.T) {
	const d, places = 3, 20
	engine := computetest.Go(t)
	x := func(phi *Node, i int) *Node { return Squeeze(Slice(phi, AxisRange(), AxisElem(i)), 1) }
	target := density.Func(func(phi *Node) *Node { // convex, with the mode away from 0
		quartic := ReduceSum(Square(Square(SubScalar(phi, .3))), 1)
		sum := Add(quartic, MulScalar(Square(Sub(x(phi, 0), x(phi, 1))), .7))
		return Neg(Add(sum, MulScalar(Square(AddScalar(Add(x(phi, 1), x(phi, 2)), -1.1)), .4)))
	})
	off := density.Func(func(phi *Node) *Node {
		more := AddScalar(MulScalar(x(phi, 0), 2), 5)
		return Add(target.LogDensity(phi), Add(more, MulScalar(Mul(x(phi, 1), Sub(x(phi, 2), x(phi, 0))), 1.5)))
	})
	problem := problemOf(d, target)
	w, err := whitenedFrom(t.Context(), problem, make([]float64, d), engine)
	if err != nil {
		t.Fatal(err)
	}
	part := subset{rows: 1, of: 10, target: func(compute.Nodes) density.Target { return off }}
	c, err := w.expand(t.Context(), engine, part)
	if err != nil {
		t.Fatal(err)
	}
	on := w.near(problem, c, 1, compute.Float64)
	r := rand.New(rand.NewPCG(4, 4))
	at := make([][]float64, places)
	for j := range at {
		for range d {
			at[j] = append(at[j], 2*r.NormFloat64())
		}
	}
	got := computetest.Run(t, engine, func(g *Graph, args []*Node) []*Node {
		data := compute.Nodes{}
		for name, tensor := range on.Data {
			data[name] = ConstTensor(g, tensor)
		}
		whole := on.Target(data, nil)
		want, slope := whole.Gradient(args[0])
		cheap := whole.(mcmc.Surrogated).Surrogate()
		value, gradient := cheap.Gradient(args[0])
		return []*Node{want, slope, value, gradient, cheap.LogDensity(args[0])}
	}, at)
	constant := got[2][0] - got[0][0]
	for j := range places {
		got[0][j] += constant
	}
	computetest.Near(t, "values", got[2], got[0], 1e-5)
	computetest.Near(t, "values alone", got[4], got[2], 1e-12)
	computetest.Near(t, "gradients", got[3], got[1], 1e-5)
}
