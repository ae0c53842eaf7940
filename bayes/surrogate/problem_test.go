package surrogate

import (
	"math"
	"strings"
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
	problem, err := NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, 1),
		compute.Floats(compute.Float64, y, n), nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if problem.Blocks == nil || problem.Blocks.Count != 3 {
		t.Fatalf("blocks: %+v", problem.Blocks)
	}
	whitening := func() *Whitening {
		w, err := whiteningOf(t.Context(), problem, []float64{.5, 1}, engine)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	inBlocks := whitening()
	problem.Blocks = nil
	whole := whitening()
	computetest.Near(t, "the mode", inBlocks.Mode, whole.Mode, 1e-9)
	computetest.Near(t, "the Hessian's factor", inBlocks.ToZ, whole.ToZ, 1e-4)
}

// Where all weights are 0 a network's posterior has a saddle: of two tanh units, two directions fall. The Hessian of
// Gauss and Newton has there the prior's 1 and, in the last bias, n/s^2 of the rows.
func TestGaussNewton(t *testing.T) {
	const n = 40
	engine := computetest.Go(t)
	bound, err := bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = (float64(i) - (n-1)/2.) / 10
	}
	line := compute.Floats(compute.Float64, x, n)
	problem, err := NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, 1), line, nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	find := func() *Whitening {
		w, err := whiteningOf(t.Context(), problem, make([]float64, 7), engine)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := find()
	if w.negative != 2 || !w.gaussNewton || len(w.notes) != 1 ||
		!strings.Contains(w.notes[0], "2 of 7 eigenvalues") || !strings.Contains(w.notes[0], "Gauss and Newton") {
		t.Errorf("%+v", w)
	}
	want := make([]float64, 49)
	for i := range 7 {
		want[8*i] = 1
	}
	want[48] = math.Sqrt(1 + n/.25)
	computetest.Near(t, "the factor of the Hessian", w.ToZ, want, 1e-5)
	problem.Part = nil
	if w := find(); w.negative != 2 || w.gaussNewton || !strings.Contains(w.notes[0], "absolute value") {
		t.Errorf("without parts: %+v", w)
	}
}
