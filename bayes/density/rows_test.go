package density

import (
	"fmt"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// The first rows of a batch are those alone, and some rows from one on are those that are there; a power multiplies the
// likelihood, and its gradient. By loops over numbers; the particles may be others than the plan was made for.
func TestSomeRows(t *testing.T) {
	const power, first, from, block = .3, 4, 5, 3 // of 7 rows: the block has 2
	for _, m := range models {
		if m.name != "middle layer" && m.name != "all" {
			continue // shared layers before the stochastic one, and none
		}
		for _, count := range []int{particles, 11} {
			s := newScene(t, m.model, m.outputs)
			full := Full(s.likelihood(16))
			for _, features := range []bool{false, true} {
				out := computetest.Run(t, computetest.Go(t), func(g *Graph, args []*Node) []*Node {
					phi, psi, batch := args[0], args[1], Batch{X: args[2], Y: args[3]}
					if s.bound.W == 0 {
						psi = nil
					}
					if features {
						batch = Batch{Features: full.Features(psi, batch, batch.Y.DType()), Y: batch.Y}
					}
					firsts := batch
					firsts.Count = Scalar(g, compute.Float64, first)
					start := Scalar(g, args[4].DType(), from)
					density, _ := At(full, psi, firsts).Gradient(phi)
					all := At(full, psi, batch).(ofAllRows)
					tempered, gradient := all.Tempered(Scalar(g, compute.Float64, power)).Gradient(phi)
					difference := Gradient(ReduceAllSum(Add(all.LogPrior(phi), MulScalar(all.LogLikelihood(phi), power))), phi)[0]
					return []*Node{
						s.bound.LogPrior(phi), density, At(full, psi, firsts).LogDensity(phi),
						full.LogLikelihood(phi, psi, batch.Some(start, block, compute.Float64)),
						full.LogLikelihood(phi, psi, batch.Some(start, rows, compute.Float64)),
						all.LogLikelihood(phi), tempered, gradient, difference,
					}
				}, s.phiRows[:count], s.psi, s.xRows, s.y, int32(0))
				for j := range count {
					sum := func(from, to int) (total float64) {
						for n := from; n < to; n++ {
							total += s.plainLogLikelihood(j, n)
						}
						return total
					}
					ofFirst := out[0][j] + sum(0, first)
					want := []float64{ofFirst, ofFirst, sum(from, rows), sum(from, rows), sum(0, rows), out[0][j] + power*sum(0, rows)}
					computetest.Near(t, fmt.Sprintf("%s, features %v, particle %d of %d", m.name, features, j, count),
						[]float64{out[1][j], out[2][j], out[3][j], out[4][j], out[5][j], out[6][j]}, want, 1e-9)
				}
				computetest.Near(t, "gradient", out[7], out[8], 1e-9)
			}
		}
	}
}
