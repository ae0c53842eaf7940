package surrogate

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// Many rows in memory are evaluated in blocks, the last of which is padded: with the same mode and Hessian.
func TestBlocksInMemory(t *testing.T) {
	const n = 2*8192 + 5
	engine := computetest.Go(t)
	bound, err := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(i * i))
		y[i] = 1 + x[i]/2 + math.Cos(float64(i*i*i))
	}
	problem := givenRows(t, engine, bound, compute.Floats(compute.Float64, x, n, 1), compute.Floats(compute.Float64, y, n))
	if problem.blocks == nil {
		t.Fatalf("blocks: %+v", problem.blocks)
	}
	find := func() *whitening {
		w, err := whitenedFrom(t.Context(), problem, []float64{.5, 1}, engine)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	inBlocks := find()
	problem.blocks = nil
	whole := find()
	computetest.Near(t, "the mode", inBlocks.mode, whole.mode, 1e-9)
	computetest.Near(t, "the Hessian's factor", inBlocks.toZ, whole.toZ, 1e-4)
}
