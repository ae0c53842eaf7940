package pbnn

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit/fittest"

	. "github.com/gomlx/gomlx/core/graph"
)

// Mini-batches of all rows leave no noise: each difference is that of the log-posterior, which the density evaluates
// without mini-batches, and the finite-population correction makes the variance 0.
func TestBatchesOfAllRowsAreExact(t *testing.T) {
	engine, data := computetest.Go(t), fittest.Data(12)
	bound := computetest.Must(line.Bind(2, 1))
	plan := density.NewPlan(bound, compute.Float64, density.Workload{Particles: 2, Rows: 36})
	x := make([]float64, 0, 24)
	for i := range 12 {
		x = append(x, data.X.At(i, 0), data.X.At(i, 1))
	}
	rows := computetest.Must(density.RowTensors(engine, bound, compute.Floats(compute.Float64, x, 12, 2),
		compute.Floats(compute.Float64, data.Y, 12), nil))
	out := computetest.Run(t, engine, func(g *Graph, at []*Node) []*Node {
		nodes := compute.Nodes{}
		for name, values := range rows {
			nodes[name] = ConstTensor(g, values)
		}
		b := miniBatches{likelihood: density.Likelihood{Model: bound, Plan: plan}, points: 12, rows: 12, size: 12, batches: 3,
			data: nodes}
		estimates, variance, _ := b.Differences(random.New(g, 1), at[0], at[1])
		want := Sub(b.LogDensity(at[1]), b.LogDensity(at[0]))
		return []*Node{Reshape(Sub(estimates, ExpandAxes(want, 1)), 6), variance}
	}, [][]float64{{.3, -1, .2}, {0, 0, 1}}, [][]float64{{.5, -.7, .1}, {2, -1, .3}})
	computetest.Near(t, "differences beside those of all rows", out[0], make([]float64, 6), 1e-9)
	computetest.Near(t, "variance", out[1], make([]float64, 2), 1e-9)
}
