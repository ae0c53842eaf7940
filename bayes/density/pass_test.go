package density

import (
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// Whatever is evaluated in a loop over chunks, two at a time, with a smaller chunk at the end, or in a graph with all
// chunks where there are no loops, is what it is of all particles at once: rows, sums and gradients, of padded
// batches too.
func TestLoopOverChunks(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		m := models[1] // with shared layers on either side of the stochastic one
		s := newScene(t, m.model, m.outputs)
		twice := Potential{Gradient: true, standalone: true, Factor: func(e Evaluated) *Node {
			return Add(MulScalar(e.LogLikelihood, 2), MulScalar(ReduceSum(e.Gradient, 1), .01))
		}}
		evaluate := func(engine *compute.Engine, dtype compute.DType, plan compute.Plan) [][]float64 {
			return s.compile(t, engine, dtype, func(phi, psi, logWeights *Node, b Batch) []*Node {
				b.Count = ConstAs(b.Y, float64(rows-1))
				l := Likelihood{Model: s.bound, Plan: plan}
				w := l.Reweight(phi, psi, logWeights, b, twice)
				density, gradient := MiniBatch(l, 3*rows).Gradient(phi, psi, b)
				all := []*Node{density, gradient, w.LogLikelihood, w.LogWeights, w.LogSum, w.Gradient}
				if engine.IsXLA() { // compiles long: these are passes with fewer outputs
					return all
				}
				return append(all, l.LogLikelihood(phi, psi, b), l.LogPredictive(phi, psi, logWeights, b), l.Rows(phi, psi, b))
			})()
		}
		want := evaluate(computetest.Go(t), compute.Float64, compute.Plan{Particles: particles, Chunk: particles})
		got := evaluate(engine, dtype, compute.Plan{Particles: particles, Chunk: 7, Concurrent: 2})
		names := []string{
			"posterior", "its gradient", "log-likelihood, weighed", "weights", "their sum", "gradient", "log-likelihood",
			"predictive", "rows",
		}
		for i, what := range names[:len(got)] {
			computetest.Near(t, what, got[i], want[i], tolerance(dtype))
		}
	})
}

// Whatever is evaluated in parts of the rows, of which the last begins with rows of the one before, is what it is of
// all rows at once, in chunks of particles that are a loop and a rest, also the layers before the first stochastic one.
// The batch is padded. Weights are found of all rows at once.
func TestPartsOfRows(t *testing.T) {
	engine := computetest.XLA(t, "the Go backend cannot cut rows")
	m := models[1] // with shared layers on either side of the stochastic one
	s := newScene(t, m.model, m.outputs)
	evaluate := func(engine *compute.Engine, plan compute.Plan) [][]float64 {
		return s.compile(t, engine, compute.Float64, func(phi, psi, logWeights *Node, b Batch) []*Node {
			b.Count = ConstAs(b.Y, float64(rows-1))
			l := Likelihood{Model: s.bound, Plan: plan}
			density, gradient := MiniBatch(l, 3*rows).Gradient(phi, psi, b)
			w := l.Reweight(phi, psi, logWeights, b, LikelihoodPotential)
			return []*Node{density, gradient, w.LogWeights, w.Gradient, l.LogPredictive(phi, psi, logWeights, b),
				l.Rows(phi, psi, b), l.Features(psi, b, compute.Float64)}
		})()
	}
	want := evaluate(computetest.Go(t), compute.Plan{Particles: particles, Chunk: particles})
	defer func(bytes int64) { partBytes = bytes }(partBytes)
	partBytes = 600 // three parts for the prefix too
	got := evaluate(engine, compute.Plan{Particles: particles, Chunk: 16, Parts: 3})
	for i, what := range []string{
		"posterior", "its gradient", "weights", "gradient", "predictive", "rows", "features",
	} {
		computetest.Near(t, what, got[i], want[i], tolerance(compute.Float64))
	}
}
