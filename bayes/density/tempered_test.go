package density

import (
	"fmt"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// The two ways from the prior to a network's posterior hold what they say, by loops over numbers: the likelihood's
// power multiplies it, the first n rows are those rows alone, a block of rows past the end counts those that are there.
// The gradients are those of the densities, by finite differences, and the particles may be others than the plan was
// made for.
func TestWhole(t *testing.T) {
	engine := computetest.Go(t)
	for _, m := range models {
		if m.name != "middle layer" && m.name != "all" {
			continue // shared layers before the stochastic one, and none
		}
		for _, count := range []int{particles, 11} {
			t.Run(fmt.Sprint(m.name, "/", count), func(t *testing.T) {
				s := newScene(t, m.model, m.outputs)
				full := Full{s.likelihood(16)}
				const power, first, from, block = .3, 4, 5, 3 // of 7 rows: the block has 2, and so has one of all 7
				values := func(features bool) [][]float64 {
					return computetest.Run(t, engine, func(g *Graph, args []*Node) []*Node {
						phi, psi, batch := args[0], args[1], Batch{X: args[2], Y: args[3]}
						if s.bound.W == 0 {
							psi = nil
						}
						if features {
							batch = Batch{Features: full.Features(psi, batch, batch.Y.DType()), Y: batch.Y}
						}
						w := full.At(psi, batch)
						scalar := func(v float64) *Node { return Scalar(g, compute.Float64, v) }
						tempered, firsts := w.Tempered(scalar(power)), w.FirstRows(scalar(first))
						start := Scalar(g, args[4].DType(), from)
						value, gradient := tempered.Gradient(phi)
						ofRows, rowsGradient := firsts.Gradient(phi)
						const h = 1e-6
						column := func(x *Node) *Node { return Reshape(Slice(x, AxisRange(), AxisElem(1)), count) }
						move := Concatenate([]*Node{
							ZerosLike(Slice(phi, AxisRange(), AxisElem(0))), OnesLike(Slice(phi, AxisRange(), AxisElem(0))),
							ZerosLike(Slice(phi, AxisRange(), AxisRange(2))),
						}, 1)
						up, down := Add(phi, MulScalar(move, h)), Sub(phi, MulScalar(move, h))
						slope := func(f func(*Node) *Node) *Node { return DivScalar(Sub(f(up), f(down)), 2*h) }
						return []*Node{
							w.LogPrior(phi), w.LogLikelihood(phi), tempered.LogDensity(phi), firsts.LogDensity(phi),
							w.LogLikelihoodOf(phi, start, block), w.LogLikelihoodOf(phi, start, rows),
							w.Batch(start, rows).LogDensity(phi),
							value, ofRows, column(gradient), slope(tempered.LogDensity), column(rowsGradient), slope(firsts.LogDensity),
						}
					}, s.phiRows[:count], s.psi, s.xRows, s.y, int32(0))
				}
				for _, features := range []bool{false, true} {
					out := values(features)
					for j := range count {
						sum := func(from, to int) (total float64) {
							for n := from; n < to; n++ {
								total += s.plainLogLikelihood(j, n)
							}
							return total
						}
						want := []float64{sum(0, rows), out[0][j] + power*sum(0, rows), out[0][j] + sum(0, first), sum(from, rows)}
						want = append(want, sum(from, rows), out[0][j]+sum(from, rows)) // one batch has the power 1
						got := []float64{out[1][j], out[2][j], out[3][j], out[4][j], out[5][j], out[6][j]}
						computetest.Near(t, fmt.Sprint("particle ", j), got, want, 1e-9)
					}
					computetest.Near(t, "density with gradient", append(out[7], out[8]...), append(out[2], out[3]...), 1e-12)
					computetest.Near(t, "gradient", append(out[9], out[11]...), append(out[10], out[12]...), 1e-6)
				}
			})
		}
	}
}
