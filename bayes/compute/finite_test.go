package compute_test

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// What is not finite counts as no density in Gate and Only, as nothing in Finite, and does not reach a log-sum-exp.
func TestNotFinite(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		inf, nan := math.Inf(1), math.NaN()
		out := computetest.Run(t, engine, func(_ *Graph, args []*Node) []*Node {
			x, dead := ConvertDType(args[0], dtype), ConvertDType(args[1], dtype)
			return []*Node{
				compute.Gate(x), compute.Only(GreaterThan(x, ZerosLike(x)), x), compute.Finite(x),
				compute.FiniteMax(compute.Gate(x)), compute.FiniteMax(compute.Gate(dead)),
				compute.LogSumExp(compute.Gate(x), 0), compute.LogSumExp(compute.Gate(dead), 0),
			}
		}, []float64{800, 801, nan, inf, -inf}, []float64{-inf, nan})
		computetest.Near(t, "Gate", out[0], []float64{800, 801, -inf, -inf, -inf}, 0)
		computetest.Near(t, "Only", out[1], []float64{800, 801, -inf, inf, -inf}, 0)
		computetest.Near(t, "Finite", out[2], []float64{800, 801, 0, 0, 0}, 0)
		computetest.Near(t, "FiniteMax", append(out[3], out[4]...), []float64{801, 0}, 0)
		computetest.Near(t, "LogSumExp", append(out[5], out[6]...), []float64{801 + math.Log1p(math.Exp(-1)), -inf}, 1e-4)
	})
}
