package nn

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// The product and its gradients equal sums over numbers on either side of the sizes at which the forms change; also where only one gradient is asked for, and
// where one argument is used twice.
func TestParticleProduct(t *testing.T) {
	const rows = 4
	wave := func(n int, frequency float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Sin(frequency * float64(i+1))
		}
		return v
	}
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-12
		if dtype == compute.Float32 {
			tolerance = 1e-5
		}
		for _, c := range []struct{ particles, out, in int }{
			{3, 1, 5}, {3, 5, 1}, {many - 1, 5, 5}, {many, 5, 5}, {many, 1, 5}, {many, 5, 1},
			{many, shortSum, shortSum}, {many, shortSum + 1, shortSum}, {many, shortSum, shortSum + 1}, {many, 70, shortSum}, // the last is too large
		} {
			particles := c.particles
			w, h, v := wave(particles*c.out*c.in, 1.3), wave(particles*c.in*rows, .7), wave(particles*c.out*rows, 2.1)
			got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
				tensor := func(i int, dims ...int) *graph.Node { return graph.Reshape(graph.ConvertDType(a[i], dtype), dims...) }
				w, h, v := tensor(0, particles, c.out, c.in), tensor(1, particles, c.in, rows), tensor(2, particles, c.out, rows)
				y := particleProduct(w, h)
				both := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, y)), w, h)
				ofW := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, particleProduct(w, h))), w)
				ofH := graph.Gradient(graph.ReduceAllSum(graph.Mul(v, graph.Add(particleProduct(w, h), particleProduct(w, graph.Neg(graph.MulScalar(h, 2)))))), h)
				return []*graph.Node{y, both[0], both[1], ofW[0], ofH[0]}
			}, w, h, v)
			y, ofW, ofH := make([]float64, len(v)), make([]float64, len(w)), make([]float64, len(h))
			minus := make([]float64, len(h)) // of W h - 2 W h
			for j := range particles {
				for o := range c.out {
					for i := range c.in {
						for b := range rows {
							atW, atH, atY := (j*c.out+o)*c.in+i, (j*c.in+i)*rows+b, (j*c.out+o)*rows+b
							y[atY] += w[atW] * h[atH]
							ofW[atW] += v[atY] * h[atH]
							ofH[atH] += v[atY] * w[atW]
							minus[atH] -= v[atY] * w[atW]
						}
					}
				}
			}
			for k, want := range [][]float64{y, ofW, ofH, ofW, minus} {
				computetest.Near(t, fmt.Sprintf("%d of %dx%d, output %d", particles, c.out, c.in, k), got[k], want, tolerance)
			}
		}
	})
}
