package nn

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// The product and its gradients equal sums over numbers on either side of the length at which the forms change, in
// blocks of one particle and of several, for inputs of their own and a shared one; also where only one gradient is
// asked for, and where one argument is used twice. XLA, which compiles long, has one of each form.
func TestParticleProduct(t *testing.T) {
	const few = 6
	cases := []struct {
		particles, out, in, block int
		shared                    bool
		rows                      int // 0: 35
		xla                       bool
	}{
		{few, 1, 5, 1, false, 0, true}, {few, 5, 1, 1, false, 0, false}, {few, 7, 5, 1, true, 0, true},
		// from here on as sums
		{many - 1, 5, 5, 1, false, 0, false}, {many, 5, 5, 1, false, 0, true}, {many, 1, 5, 1, false, 0, false},
		{many, 5, 1, 1, false, 0, false},
		// the last is too large
		{many, shortSum + 1, 3, 1, false, 0, true}, {many, 3, shortSum + 1, 1, false, 0, false},
		{many, 16, 16, 1, false, 0, false},
		{few, 1, 5, 4, false, 0, true}, {few, 5, 1, 4, false, 0, false}, {few, shortSum, shortSum + 1, 4, false, 0, true},
		{few, 3, 65, 8, false, 0, false}, {few, 7, 5, 4, true, 0, false}, {few, shortSum + 1, 3, 8, true, 0, true},
		{1, 5, 3, 1, false, longBatch, true}, {1, 5, 3, 1, true, longBatch, false}, {1, 1, 3, 1, false, longBatch, false},
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-12
		if dtype == compute.Float32 {
			tolerance = 1e-5
		}
		for _, c := range cases {
			if engine.IsXLA() && !c.xla {
				continue
			}
			particles, inputs, rows := c.particles, c.particles, cmp.Or(c.rows, 35)
			if c.shared {
				inputs = 1
			}
			w, h, v := sines(particles*c.out*c.in, 1.3), sines(inputs*c.in*rows, .7), sines(particles*c.out*rows, 2.1)
			got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
				tensor := func(i int, dims ...int) *graph.Node { return graph.Reshape(graph.ConvertDType(a[i], dtype), dims...) }
				w, h, v := tensor(0, particles, c.out*c.in), tensor(1, inputs, c.in*rows), tensor(2, particles, c.out*rows)
				product := func(h *graph.Node) *graph.Node {
					blocked := Block(w, c.block)
					w := graph.Reshape(blocked, blocked.Shape().Dim(0), c.out, c.in, c.block)
					var x Value
					if c.shared {
						x = Value{graph.Reshape(h, c.in, rows), false}
					} else {
						blocked := Block(h, c.block)
						x = Value{graph.Reshape(blocked, blocked.Shape().Dim(0), c.in, rows, c.block), true}
					}
					y := particleProduct(w, x)
					return Unblock(graph.Reshape(y, y.Shape().Dim(0), c.out*rows, c.block), particles)
				}
				both := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, product(h))), w, h)
				ofW := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, product(h))), w)
				ofH := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, graph.Add(product(h),
					product(graph.Neg(graph.MulScalar(h, 2)))))), h)
				return []*graph.Node{product(h), both[0], both[1], ofW[0], ofH[0]}
			}, w, h, v)
			y, ofW, ofH := make([]float64, len(v)), make([]float64, len(w)), make([]float64, len(h))
			minus := make([]float64, len(h)) // of W h - 2 W h
			for j := range particles {
				for o := range c.out {
					for i := range c.in {
						for b := range rows {
							atW, atH, atY := (j*c.out+o)*c.in+i, (j%inputs*c.in+i)*rows+b, (j*c.out+o)*rows+b
							y[atY] += w[atW] * h[atH]
							ofW[atW] += v[atY] * h[atH]
							ofH[atH] += v[atY] * w[atW]
							minus[atH] -= v[atY] * w[atW]
						}
					}
				}
			}
			for k, want := range [][]float64{y, ofW, ofH, ofW, minus} {
				computetest.Near(t, fmt.Sprintf("%+v, output %d", c, k), got[k], want, tolerance)
			}
		}
	})
}

// A particle with NaN, also where the one that holds a value stored is taken from it, leaves the others as they are.
func TestHoldNaN(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
			x := graph.Reshape(graph.ConvertDType(a[0], dtype), 3, 1)
			return []*graph.Node{Unblock(Block(x, 4), 3)}
		}, []float64{math.NaN(), 2, -3})[0]
		if !math.IsNaN(got[0]) || got[1] != 2 || got[2] != -3 {
			t.Errorf("held %v", got)
		}
	})
}
