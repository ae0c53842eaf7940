package compute_test

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// Sums, their gradients and truth of rows equal loops over numbers, in rows short and long; a NaN or an infinity stays
// in its row.
func TestRows(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, n := range []int{1, 8, 9, 33, 1000} {
			const rows = 4
			x, sums, slopes, finite := make([]float64, rows*n), make([]float64, rows), make([]float64, rows*n),
				make([]float64, rows)
			for i := range x {
				x[i] = math.Sin(float64(3*i + 1))
			}
			x[n-1], x[2*n] = math.NaN(), math.Inf(1)
			for j := range rows {
				finite[j] = 1
				for i := range n {
					sums[j] += x[j*n+i]
					slopes[j*n+i] = float64(j + 1)
					if math.IsNaN(x[j*n+i]) || math.IsInf(x[j*n+i], 0) {
						finite[j] = 0
					}
				}
			}
			got := computetest.Run(t, engine, func(g *Graph, a []*Node) []*Node {
				x := Reshape(ConvertDType(a[0], dtype), rows, n)
				sums := compute.RowSums(x)
				weighted := ReduceAllSum(Mul(sums, ConvertDType(Const(g, []float64{1, 2, 3, 4}), dtype)))
				return []*Node{sums, Gradient(weighted, x)[0], ConvertDType(compute.RowsAll(IsFinite(x), dtype), dtype)}
			}, x)
			for _, j := range []int{1, 3} {
				computetest.Near(t, fmt.Sprintf("sum of row %d of %d numbers", j, n), got[0][j:j+1], sums[j:j+1], 1e-4)
			}
			if !math.IsNaN(got[0][0]) || !math.IsInf(got[0][2], 1) {
				t.Errorf("%d numbers: a row with NaN sums to %v, one with infinity to %v", n, got[0][0], got[0][2])
			}
			computetest.Near(t, "gradient", got[1], slopes, 0)
			computetest.Near(t, "finite", got[2], finite, 0)
		}
	})
}
