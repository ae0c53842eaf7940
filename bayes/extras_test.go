package bayes_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// Weights, exposures and censored targets in the graph, which trains and samples, are what the host makes of them, for
// each particle and row; the mixture's density of a row is weighted, not each particle's.
func TestExtrasAgree(t *testing.T) {
	const particles, rows = 5, 8
	x := mat.NewDense(rows, features, wave(rows*features, .37))
	weights, exposure, censored := make([]float64, rows), make([]float64, rows), make([]bool, rows)
	for i := range rows {
		weights[i], exposure[i], censored[i] = .5*float64(i), .3+float64(i), i%3 == 1
	}
	for _, c := range likelihoods {
		for _, size := range c.sizes {
			d := &dataset.Dataset{X: x, Weights: weights, Y: targetsFor(c.likelihood, rows, size)}
			if bayes.IsCounted(c.likelihood) {
				d.Exposure = exposure
			}
			if _, ok := c.likelihood.(bayes.Survivor); ok && size == 1 {
				d.Censored = censored
			}
			for _, partition := range []bayes.Partition{bayes.Layers(2), bayes.All()} {
				name := fmt.Sprintf("%+v of %T, %d outputs, %v", c.likelihood, c.likelihood, size, partition)
				model := bayes.Model{Network: mlp, Likelihood: c.likelihood, Stochastic: partition}
				p := newPosterior(t, model, size, particles, compute.Float64).On(computetest.Go(t))
				prediction := computetest.Must(predict(t, p, x).WithExposure(d.Exposure))
				prediction.Censored = d.Censored
				prediction = prediction.Standardised()
				weighted := func(of bayes.Prediction) []float64 {
					density, err := of.LogDensity(d.Y)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					for i := range density {
						density[i] *= weights[i]
					}
					return density
				}
				var want []float64
				for j := range prediction.Particles {
					one := computetest.Must(prediction.Particle(j))
					want = append(want, weighted(one)...)
				}
				mixture := weighted(prediction)

				bound := computetest.Must(p.Bound().WithExtras(d.Extras()))
				targets := bound.Targets()
				var y []float64
				for i := range rows {
					y = append(y, d.Y[i*targets:(i+1)*targets]...)
					for _, column := range d.Extra(d.Extras()) {
						y = append(y, column[i])
					}
				}
				scaled := computetest.Must(p.Origin().Features.Apply(x))
				draws := computetest.Must(p.Draws())
				phi := computetest.Must(compute.Float64s(draws.Phi))
				args := []any{phi, scaled.RawMatrix().Data, y, draws.LogWeights}
				if draws.Psi != nil {
					psi := computetest.Must(compute.Float64s(draws.Psi))
					args = append(args, psi)
				}
				for dtype, tolerance := range map[compute.DType]float64{compute.Float64: 1e-10, compute.Float32: 3e-4} {
					l := density.Likelihood{Model: bound, Plan: compute.Plan{Particles: particles, Chunk: 2}}
					got := computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
						for i := range a {
							a[i] = graph.ConvertDType(a[i], dtype)
						}
						var psi *graph.Node
						if len(a) > 4 {
							psi = a[4]
						}
						own := graph.Reshape(a[0], particles, bound.D)
						batch := density.Batch{X: graph.Reshape(a[1], rows, features), Y: graph.Reshape(a[2], rows, len(y)/rows)}
						return []*graph.Node{l.Rows(own, psi, batch), l.LogPredictive(own, psi, a[3], batch)}
					}, args...)
					computetest.Near(t, fmt.Sprint(name, ", rows, ", dtype), got[0][:len(want)], want, tolerance)
					computetest.Near(t, fmt.Sprint(name, ", mixture, ", dtype), got[1], mixture, tolerance)
				}
			}
		}
	}
}

// The logarithm of a normal's tail, and its derivative -p(z)/P(Z > z), as far out as targets lie.
func TestLogSurvival(t *testing.T) {
	var z, want, slope []float64
	for _, v := range []float64{-30, -4, -1, 0, 1, 2, 2.999, 3.001, 3.5, 5, 10, 37, 60, 300} {
		z = append(z, v)
		d := bayes.Gaussian{}.Predictive([]float64{0}, nil, 0)
		log := bayes.LogSurvival(d, v)
		want, slope = append(want, log), append(slope, -math.Exp(d.LogProb(v)-log))
	}
	for dtype, tolerance := range map[compute.DType]float64{compute.Float64: 1e-10, compute.Float32: 2e-5} {
		bound, err := bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}.Bind(features, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
			y := graph.ConvertDType(graph.ExpandAxes(a[0], 0), dtype)
			zero := nn.Value{Node: graph.ZerosLike(y)}
			log := bound.Model.Likelihood.(bayes.Survivor).LogSurvival(nil, zero, y)
			slope := graph.Gradient(graph.ReduceAllSum(log), y)[0]
			return []*graph.Node{log, slope}
		}, z)
		for i := range z {
			for k, of := range [][]float64{want, slope} {
				if !(math.Abs(got[k][i]-of[i]) <= tolerance*math.Max(math.Abs(of[i]), 1)) {
					t.Errorf("%s: log P(Z > %v) and its slope: number %d is %v, want %v", dtype, z[i], k, got[k][i], of[i])
				}
			}
		}
	}
}

// A likelihood that cannot take exposures or censored targets says which can; exposures are checked.
func TestExtrasRefused(t *testing.T) {
	bound, err := bayes.Model{Network: mlp, Likelihood: bayes.StudentT{}, Stochastic: bayes.All()}.Bind(features, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, exposed := bound.WithExtras(dataset.Extras{Exposure: true})
	_, cut := bound.WithExtras(dataset.Extras{Censored: true})
	counts := bayes.Prediction{Likelihood: bayes.Poisson{}, Outputs: []float64{0, 1}, Particles: 1, Rows: 2, Width: 1,
		Weights: []float64{1}}
	_, few := counts.WithExposure([]float64{1})
	_, none := counts.WithExposure([]float64{1, 0})
	numbers := counts
	numbers.Likelihood = bayes.Gaussian{}
	_, number := numbers.WithExposure([]float64{1, 1})
	numbers.Censored = []bool{true}
	_, short := numbers.LogDensity([]float64{1, 1})
	for text, err := range map[string]error{
		"take bayes.Poisson": exposed, "take bayes.Gaussian": cut, "1 exposures": few, "exposure of row 1 is 0": none,
		"bayes.Gaussian": number, "Censored has 1 values": short,
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
}
