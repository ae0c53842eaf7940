package density_test

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

func (n smallNetwork) problem(t *testing.T, engine *compute.Engine, likelihood bayes.Likelihood) mcmc.Problem {
	t.Helper()
	bound, err := bayes.Model{
		Network: nn.MLP{Hidden: []int{smallHidden}, Activation: nn.ReLU}, Likelihood: likelihood,
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(1),
	}.Bind(smallInputs, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, err := density.NewProblem(engine, bound, compute.Floats(compute.Float32, n.x, smallRows, smallInputs),
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
	mode, err := mcmc.FindMode(t.Context(), problem, mcmc.ModeSettings{Start: truth, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	w, err := mcmc.NewWhitening(t.Context(), problem, mode, mcmc.WhiteningSettings{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	if !w.GaussNewton || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "no derivative at the mode") {
		t.Errorf("Gauss and Newton: %v, notes %q", w.GaussNewton, w.Notes)
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
	on, err := w.On(problem, 4, compute.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := mcmc.Sample(t.Context(), on, mcmc.SplitHMC{}, mcmc.Settings{Draws: 100, WarmUp: 50, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Stats[0].Acceptance; a < .5 {
		t.Errorf("acceptance %.3g in the coordinates of Gauss and Newton", a)
	}
	for want, of := range map[string]struct {
		target mcmc.Density
		asked  bool
	}{
		"none of Gauss and Newton": {target: func(phi *Node) *Node { return Neg(ReduceSum(Abs(phi), 1)) }},
		"no such Hessian": {
			asked: true, target: func(phi *Node) *Node { return Neg(ReduceSum(Square(phi), 1)) },
		},
	} {
		bare := mcmc.Problem{Dim: 2, Target: func(compute.Nodes, []*Node) mcmc.Target { return of.target }}
		_, err := mcmc.NewWhitening(t.Context(), bare, []float64{0, 1e-6},
			mcmc.WhiteningSettings{Engine: engine, GaussNewton: of.asked})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A layer without hidden ones has the posterior N(mean, (X'X/s^2 + I/2^2)^-1), and its Kronecker factors are exact: a
// quarter turn in their coordinates is always accepted. With a hidden layer it is not, but a shorter one mostly is.
// Without layers, with a parameter that is of none, or with another prior, they are refused.
func TestKroneckerWhitening(t *testing.T) {
	engine := computetest.Go(t)
	n, _ := newSmallNetwork()
	problem := func(prior bayes.Prior, hidden ...int) mcmc.Problem {
		bound, err := bayes.Model{Network: nn.MLP{Hidden: hidden, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: 2},
			Prior: prior, Stochastic: bayes.All()}.Bind(smallInputs, 1)
		if err != nil {
			t.Fatal(err)
		}
		const few = 20
		p, err := density.NewProblem(engine, bound, compute.Floats(compute.Float64, n.x[:few*smallInputs], few, smallInputs),
			compute.Floats(compute.Float64, n.y[:few], few), nil, 4, 1)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	acceptance := func(p mcmc.Problem, s mcmc.WhiteningSettings, step float64) float64 {
		s.Engine = engine
		mode, err := mcmc.FindMode(t.Context(), p, mcmc.ModeSettings{Engine: engine, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		w, err := mcmc.NewWhitening(t.Context(), p, mode, s)
		if err != nil {
			t.Fatal(err)
		}
		on, err := w.On(p, 4, compute.Float64, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := mcmc.Sample(t.Context(), on, mcmc.SplitHMC{StepSize: step, Steps: 1},
			mcmc.Settings{Draws: 200, WarmUp: 20, Engine: engine, DType: compute.Float64})
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.
		for _, c := range r.Stats {
			mean += c.Acceptance / 4
		}
		return mean
	}
	kronecker := mcmc.WhiteningSettings{Structure: mcmc.Kronecker}
	if a := acceptance(problem(bayes.Normal{StdDev: 1.5}), kronecker, math.Pi/2); a < .99999 {
		t.Errorf("one layer: acceptance %v of a quarter turn", a)
	}
	deep := problem(bayes.Normal{StdDev: .5}, 3)
	if a := acceptance(deep, kronecker, .5); a < .6 {
		t.Errorf("a hidden layer: acceptance %v", a)
	}
	none := deep
	none.Kronecker = nil
	noisy, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 2, Learn: true},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All().And(bayes.Names("noise/log_scale"))}.Bind(smallInputs, 1)
	if err != nil {
		t.Fatal(err)
	}
	ownNoise, err := density.NewProblem(engine, noisy, compute.Floats(compute.Float64, n.x[:30], 10, smallInputs),
		compute.Floats(compute.Float64, n.y[:10], 10), nil, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]mcmc.Problem{
		"no layers to have factors of":   none,
		`"noise/log_scale" is stochasti`: ownNoise,
		"precision of a bayes.Normal":    problem(bayes.Laplace{B: 1}),
	} {
		kronecker.Engine = engine
		_, err := mcmc.NewWhitening(t.Context(), p, make([]float64, p.Dim), kronecker)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
