package bayes_test

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Densities and draws of a Normal are those of its distributions, with another scale in one layer.
func TestNormal(t *testing.T) {
	at := []float64{-31, -4, -1.3, -.2, -1e-3, .05, .7, 2, 2.9, 60}
	bound := computetest.Must(bayes.Model{
		Network: mlp, Likelihood: bayes.Gaussian{}, Prior: bayes.Normal{StdDev: 2, PerLayer: map[int]float64{2: .5}},
		Stochastic: bayes.Names("layer1/biases", "layer2/biases"),
	}.Bind(2, 1))
	// phi is 4 biases of layer 1, of scale 2, and 3 of layer 2, of scale .5: all but one stay where they are.
	const fixed = .4
	wide, narrow := distuv.Normal{Sigma: 2}, distuv.Normal{Sigma: .5}
	var phi, want []float64
	for _, x := range at {
		phi = append(phi, fixed, x, fixed, fixed, fixed, fixed, x)
		want = append(want, 3*wide.LogProb(fixed)+2*narrow.LogProb(fixed)+wide.LogProb(x)+narrow.LogProb(x))
	}
	for dtype, tolerance := range map[compute.DType]float64{compute.Float64: 1e-8, compute.Float32: 1e-4} {
		results := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, args []*graph.Node) []*graph.Node {
			return []*graph.Node{bound.LogPrior(args[0]), bound.SamplePrior(random.New(g, 5), dtype, 2000)}
		}, compute.Floats(dtype, phi, len(at), 7))
		computetest.Near(t, "log-density", results[0], want, tolerance)
		for column, of := range map[int]distuv.Normal{1: wide, 6: narrow} {
			var draws []float64
			for j := range 2000 {
				draws = append(draws, results[1][j*7+column])
			}
			if p := computetest.Kolmogorov(draws, of.CDF); p < 1e-4 {
				t.Errorf("draws of scale %v are not of the distribution, p %.2g", of.Sigma, p)
			}
		}
	}
}

// LearntPrecision's density is that of Student's t of all weights, or biases, of a layer, or of the logarithm of a
// precision of the noise; its draws have the marginal distributions, and weights of a layer share their precision.
func TestLearntPrecision(t *testing.T) {
	const b, particles, hidden = 1., 20000, 3
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{hidden}}, Likelihood: bayes.Gaussian{Learn: true},
		Prior:      bayes.LearntPrecision{ByWidth: true},
		Stochastic: bayes.All().And(bayes.Names("noise/log_scale")),
	}
	bound, err := model.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{hidden * 2, hidden, hidden, 1, 1} // weights and biases of two layers, noise
	rates := []float64{b, b, b / hidden, b, b}
	phi := wave(2*bound.D, 1.9)
	var want []float64
	for j := range 2 {
		x, density := phi[j*bound.D:(j+1)*bound.D], 0.
		for g, n := range sizes[:4] {
			// By quadrature over u = log lambda, whose integrand is 0 at both ends.
			var terms []float64
			for u := -40.; u < 20; u += .01 {
				of := math.Log(rates[g]) + u - rates[g]*math.Exp(u)
				for _, v := range x[:n] {
					of += distuv.Normal{Sigma: math.Exp(-u / 2)}.LogProb(v)
				}
				terms = append(terms, of)
			}
			density, x = density+floats.LogSumExp(terms)+math.Log(.01), x[n:]
		}
		// of t, where 2 exp(-2t) is |d lambda / dt|
		density += distuv.Exponential{Rate: b}.LogProb(math.Exp(-2*x[0])) + math.Log(2) - 2*x[0]
		want = append(want, density)
	}
	results := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, args []*graph.Node) []*graph.Node {
		return []*graph.Node{bound.LogPrior(args[0]), bound.SamplePrior(random.New(g, 5), compute.Float64, particles)}
	}, compute.Floats(compute.Float64, phi, 2, bound.D))
	computetest.Near(t, "log-density", results[0], want, 1e-9)

	columns := make([][]float64, bound.D)
	for i, v := range results[1] {
		columns[i%bound.D] = append(columns[i%bound.D], v)
	}
	at := 0
	for g, n := range sizes[:4] {
		student := distuv.StudentsT{Sigma: math.Sqrt(rates[g]), Nu: 2} // of each weight alone
		if p := computetest.Kolmogorov(columns[at], student.CDF); p < 1e-4 {
			t.Errorf("draws of group %d are not of their distribution, p %.2g", g, p)
		}
		if n > 1 { // the ratio of two with one precision is a Cauchy's
			ratio := slices.Clone(columns[at])
			floats.Div(ratio, columns[at+1])
			if p := computetest.Kolmogorov(ratio, distuv.StudentsT{Sigma: 1, Nu: 1}.CDF); p < 1e-4 {
				t.Errorf("two weights of group %d have not one precision, p %.2g", g, p)
			}
		}
		at += n
	}
	var precisions []float64
	for _, v := range columns[at] {
		precisions = append(precisions, math.Exp(-2*v))
	}
	if p := computetest.Kolmogorov(precisions, distuv.Exponential{Rate: b}.CDF); p < 1e-4 {
		t.Errorf("precisions of the noise are not of their distribution, p %.2g", p)
	}
	cuts, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Ordinal{}, Prior: bayes.LearntPrecision{},
		Stochastic: bayes.Names("noise/cuts")}.Bind(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{.5, -2, 1} // no noise, but three numbers of one precision; Gamma(5/2) = 3 sqrt(pi)/4
	shared := math.Log(b*.75*math.Sqrt(math.Pi)) - 1.5*math.Log(2*math.Pi) - 2.5*math.Log(b+floats.Dot(x, x)/2)
	results = computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, args []*graph.Node) []*graph.Node {
		return []*graph.Node{cuts.LogPrior(args[0])}
	}, compute.Floats(compute.Float64, x, 1, 3))
	computetest.Near(t, "log-density of cut points", results[0], []float64{shared}, 1e-12)
}
