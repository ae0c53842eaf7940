package surrogate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// smallNetwork is 3-5-1 with ReLU, whose hidden layer is stochastic: D = 20, weights [out, in] before biases. The last
// layer, psi, is known: without it a unit's weights could grow as its own output weight falls, and the posterior would
// be no Gaussian for any number of rows.
type smallNetwork struct{ x, y, psi []float64 }

const (
	smallRows, smallInputs, smallHidden = 400, 3, 5
	smallNoise                          = .3
)

func newSmallNetwork() (n smallNetwork, truth []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range smallHidden * smallInputs {
		truth = append(truth, rng.NormFloat64())
	}
	for range smallHidden {
		truth = append(truth, rng.NormFloat64()/5) // no unit is off for all rows
	}
	n.psi = []float64{1, -1, 1.5, -1.2, .8, .3}
	for range smallRows * smallInputs {
		n.x = append(n.x, rng.NormFloat64())
	}
	for row := range smallRows {
		f, _ := n.at(truth, row)
		n.y = append(n.y, f+smallNoise*rng.NormFloat64())
	}
	return n, truth
}

// at is the network's output of a row and its gradient in theta.
func (n smallNetwork) at(theta []float64, row int) (f float64, gradient []float64) {
	x := n.x[row*smallInputs:][:smallInputs]
	gradient = make([]float64, len(theta))
	f = n.psi[smallHidden]
	for o := range smallHidden {
		z := theta[smallHidden*smallInputs+o]
		for i, v := range x {
			z += theta[o*smallInputs+i] * v
		}
		if z <= 0 {
			continue
		}
		f += n.psi[o] * z
		gradient[smallHidden*smallInputs+o] = n.psi[o]
		for i, v := range x {
			gradient[o*smallInputs+i] = n.psi[o] * v
		}
	}
	return f, gradient
}

// curvature is J' J / s^2 + I, the Hessian of Gauss and Newton.
func (n smallNetwork) curvature(theta []float64) *mat.Dense {
	d := len(theta)
	j := mat.NewDense(smallRows, d, nil)
	for row := range smallRows {
		_, gradient := n.at(theta, row)
		j.SetRow(row, gradient)
	}
	h := mat.NewDense(d, d, nil)
	h.Mul(j.T(), j)
	h.Scale(1/(smallNoise*smallNoise), h)
	for i := range d {
		h.Set(i, i, h.At(i, i)+1)
	}
	return h
}

func (n smallNetwork) problem(t *testing.T, engine *compute.Engine, likelihood bayes.Likelihood) Problem {
	t.Helper()
	bound, err := bayes.Model{
		Network: nn.MLP{Hidden: []int{smallHidden}, Activation: nn.ReLU}, Likelihood: likelihood,
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(1),
	}.Bind(smallInputs, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, err := NewProblem(engine, bound, compute.Floats(compute.Float32, n.x, smallRows, smallInputs),
		compute.Floats(compute.Float32, n.y, smallRows), compute.Floats(compute.Float32, n.psi, len(n.psi)), 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

// With ReLU the gradient has no derivative: the whitening is of the Hessian of Gauss and Newton, W' (J' J / s^2 + I) W
// = I with the Jacobian J written out here, says so, and chains in its coordinates are accepted. A likelihood without
// second derivatives and without that Hessian is refused.
func TestGaussNewtonWhitening(t *testing.T) {
	engine := computetest.Engines(t)[0]
	n, truth := newSmallNetwork()
	problem := n.problem(t, engine, bayes.Gaussian{StdDev: smallNoise})
	mode, err := findMode(t.Context(), problem, truth, engine)
	if err != nil {
		t.Fatal(err)
	}
	w, err := whiteningOf(t.Context(), problem, mode, engine)
	if err != nil {
		t.Fatal(err)
	}
	if !w.gaussNewton || len(w.notes) != 1 || !strings.Contains(w.notes[0], "no derivative at the mode") {
		t.Errorf("Gauss and Newton: %v, notes %q", w.gaussNewton, w.notes)
	}
	d := len(mode)
	toZ, want := mat.NewDense(d, d, w.ToZ), n.curvature(w.Mode) // L, H = L L'
	var got mat.Dense
	got.Mul(toZ, toZ.T())
	for i := range d {
		for k := range d { // the mode of a few rows is where the units of some of them bend
			size := math.Sqrt(want.At(i, i) * want.At(k, k))
			if off := math.Abs(got.At(i, k)-want.At(i, k)) / size; off > .05 {
				t.Errorf("H[%d, %d] is %v, want %v", i, k, got.At(i, k), want.At(i, k))
			}
		}
	}
	on, err := w.near(problem.Problem, 4, compute.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := mcmc.Sample(t.Context(), on, SplitHMC{}, mcmc.Settings{Draws: 100, WarmUp: 50, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Stats[0].Acceptance; a < .5 {
		t.Errorf("acceptance %.3g in the coordinates of Gauss and Newton", a)
	}
	bare := problemOf(2, density.Func(func(phi *Node) *Node { return Neg(ReduceSum(Abs(phi), 1)) }))
	_, err = whiteningOf(t.Context(), bare, []float64{0, 1e-6}, engine)
	if err == nil || !strings.Contains(err.Error(), "none of Gauss and Newton") {
		t.Errorf("without that Hessian: %v", err)
	}
}
