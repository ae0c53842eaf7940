package density

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// Images of several pixels, in a loop over chunks of particles and a rest, have the log-likelihoods and gradients that
// they have all at once.
func TestConvolutionInChunks(t *testing.T) {
	network := nn.CNN{Height: 5, Width: 4, Hidden: []int{3}, Activation: nn.Tanh,
		Convolutions: []nn.Conv{{Filters: 3, Pool: 2, MaxPool: true}, {Filters: 2, Kernel: 2}}}
	const pixels = 20
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for i, stochastic := range []bayes.Partition{bayes.Layers(1), bayes.Layers(1, 2), bayes.Layers(3)} {
			if i > 0 && engine.IsXLA() {
				continue // compiles long
			}
			bound, err := bayes.Model{Network: network, Likelihood: bayes.Bernoulli{}, Stochastic: stochastic}.Bind(pixels, 1)
			if err != nil {
				t.Fatal(err)
			}
			evaluate := func(engine *compute.Engine, dtype compute.DType, chunk int) [][]float64 {
				plan := compute.NewPlan(particles, 1, chunk)
				l := Likelihood{Model: bound, Plan: plan}
				return computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
					for i := range a {
						a[i] = ConvertDType(a[i], dtype)
					}
					phi, psi, batch := Reshape(a[0], particles, bound.D), a[1], Batch{X: Reshape(a[2], rows, pixels), Y: a[3]}
					value, gradient := Full(l).Gradient(phi, psi, batch)
					if engine.IsXLA() { // compiles long
						return []*Node{value, gradient}
					}
					evidence := l.Reweight(phi, psi, a[4], batch, LikelihoodPotential)
					return []*Node{value, gradient, evidence.LogLikelihood, evidence.Gradient}
				}, waves(particles*bound.D, 1.7), waves(bound.W, 2.3), waves(rows*pixels, .9),
					[]float64{0, 1, 1, 0, 1, 0, 0}, bayes.EqualLogWeights(particles))
			}
			once, inChunks := evaluate(computetest.Go(t), compute.Float64, 0), evaluate(engine, dtype, 5)
			names := []string{"log-posterior", "gradient of phi", "log-likelihood", "gradient of psi"}
			for i, what := range names[:len(inChunks)] {
				computetest.Near(t, what, inChunks[i], once[i], tolerance(dtype))
			}
		}
	})
}
