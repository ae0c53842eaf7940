package bayes_test

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
)

// likelihoods are all that the library has, with counts or other targets, for one or several of them.
var likelihoods = []struct {
	likelihood bayes.Likelihood
	sizes      []int
}{
	{bayes.Gaussian{StdDev: .7}, []int{1, 3}},
	{bayes.Gaussian{StdDev: .7, Learn: true}, []int{1, 3}},
	{bayes.Heteroscedastic{}, []int{1, 2}},
	{bayes.HeteroscedasticT{}, []int{1, 2}},
	{bayes.Poisson{}, []int{1, 2}},
	{bayes.NegativeBinomial{}, []int{1, 2}},
	{bayes.Bernoulli{}, []int{1}},
	{bayes.Categorical{}, []int{2, 4}},
	{bayes.Ordinal{}, []int{2, 3, 5}},
}

// targetsFor are rows of targets that a likelihood takes: for counts also 0, and large ones.
func targetsFor(l bayes.Likelihood, rows, size int) []float64 {
	y := wave(rows*size, 3.3)
	switch {
	case l.Task() == dataset.Classification:
		y = y[:rows]
		for i := range y {
			y[i] = float64(i % size)
		}
	case l.Task() == dataset.BinaryClassification:
		for i := range y {
			y[i] = float64(i % 2)
		}
	case bayes.IsCounted(l):
		some := []float64{0, 1, 2, 15, 16, 17, 300, 20000}
		for i := range y {
			y[i] = some[i%len(some)]
		}
	}
	return y
}

// The density in the graph, which trains and samples, is that on the host, which predicts and scores: for each particle
// and row, with parameters shared, stochastic, or in part. So it is with weights, exposures and censored targets; the
// mixture's density of a row is weighted, not each particle's.
func TestLikelihoodsAgree(t *testing.T) {
	const particles, rows = 5, 8
	x := mat.NewDense(rows, features, wave(rows*features, .37))
	weights, exposure, censored := make([]float64, rows), make([]float64, rows), make([]bool, rows)
	for i := range rows {
		weights[i], exposure[i], censored[i] = .5*float64(i), .3+float64(i), i%3 == 1
	}
	for _, c := range likelihoods {
		for _, size := range c.sizes {
			bare := &dataset.Dataset{X: x, Y: targetsFor(c.likelihood, rows, size)}
			extras := *bare
			extras.Weights = weights
			if bayes.IsCounted(c.likelihood) {
				extras.Exposure = exposure
			}
			if _, ok := c.likelihood.(bayes.Survivor); ok && size == 1 {
				extras.Censored = censored
			}
			partitions := []bayes.Partition{bayes.Layers(2), bayes.All()}
			for _, own := range c.likelihood.Parameters(size) {
				partitions = append(partitions, bayes.All().And(bayes.Names(own.Name)), bayes.Names(own.Name))
			}
			for i, partition := range partitions {
				model := bayes.Model{Network: mlp, Likelihood: c.likelihood, Stochastic: partition}
				p := newPosterior(t, model, size, particles, compute.Float64)
				for _, d := range []*dataset.Dataset{bare, &extras} {
					if d == bare || i < 2 {
						name := fmt.Sprintf("%+v of %T, %d outputs, %v, %+v", c.likelihood, c.likelihood, size, partition, d.Extras())
						likelihoodAgrees(t, name, p, d)
					}
				}
			}
		}
	}
}

func likelihoodAgrees(t *testing.T, name string, p *bayes.Posterior, d *dataset.Dataset) {
	t.Helper()
	particles := p.Particles()
	rows, _ := d.X.Dims()
	prediction := computetest.Must(predict(t, p, d.X).OfRows(d)).Standardised()
	weighted := func(of bayes.Prediction) []float64 {
		density := computetest.Must(of.LogDensity(d.Y))
		for i, w := range d.Weights {
			density[i] *= w
		}
		return density
	}
	var want []float64
	for j := range prediction.Particles {
		want = append(want, weighted(computetest.Must(prediction.Particle(j)))...)
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
	draws := computetest.Must(p.Draws())
	args := []any{computetest.Must(compute.Float64s(draws.Phi)),
		computetest.Must(p.Origin().Features.Apply(d.X)).RawMatrix().Data, y, draws.LogWeights}
	if draws.Psi != nil {
		args = append(args, computetest.Must(compute.Float64s(draws.Psi)))
	}
	for dtype, tolerance := range map[compute.DType]float64{compute.Float64: 1e-11, compute.Float32: 2e-4} {
		if d.Weights != nil {
			tolerance = map[compute.DType]float64{compute.Float64: 1e-10, compute.Float32: 3e-4}[dtype]
		}
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

// A distribution's parts agree with one another: probabilities sum to 1, with the stated mean and variance; CDF and
// Survival are sums or integrals of the density, and the quantile is where the CDF reaches a level.
func TestDistributions(t *testing.T) {
	for _, c := range likelihoods {
		for _, size := range c.sizes {
			l := c.likelihood
			outputs := wave(l.Outputs(size), 1.1)
			own := make([]float64, 0)
			for _, p := range l.Parameters(size) {
				own = append(own, wave(p.Size(), .6)...)
			}
			targets := 1
			if l.Task() == dataset.Regression {
				targets = size
			}
			for k := range targets {
				d := l.Predictive(outputs, own, k)
				name := fmt.Sprintf("%+v of %T, output %d of %d", l, l, k, size)
				if l.Task() != dataset.Regression || bayes.IsCounted(l) {
					checkDiscrete(t, name, d)
				} else {
					checkContinuous(t, name, d)
				}
			}
		}
	}
}

func checkDiscrete(t *testing.T, name string, d bayes.Distribution) {
	t.Helper()
	sum, mean, square := 0.0, 0.0, 0.0
	for y := range 3000 {
		if below := d.CDF(float64(y) - .5); math.Abs(below-sum) > 1e-10 ||
			math.Abs(d.Survival(float64(y)-.5)-(1-sum)) > 1e-10 {
			t.Fatalf("%s: CDF below %d is %v and the survival %v, but the probabilities sum to %v",
				name, y, below, d.Survival(float64(y)-.5), sum)
		}
		p := math.Exp(d.LogProb(float64(y)))
		sum, mean, square = sum+p, mean+p*float64(y), square+p*float64(y)*float64(y)
		if p > 1e-6 && sum < 1-1e-6 {
			if q := d.Quantile(sum - p/2); q != float64(y) {
				t.Errorf("%s: the quantile at %v is %v, not %d", name, sum-p/2, q, y)
			}
		}
	}
	computetest.Near(t, name+": sum, mean and variance", []float64{1, d.Mean(), d.Variance()},
		[]float64{sum, mean, square - mean*mean}, 1e-9)
	if !math.IsInf(d.LogProb(-1), -1) || !math.IsInf(d.LogProb(1.5), -1) || d.CDF(-1) != 0 || d.Survival(-1) < 1-1e-15 {
		t.Errorf("%s: -1 or 1.5 has a probability", name)
	}
}

func checkContinuous(t *testing.T, name string, d bayes.Distribution) {
	t.Helper()
	density := func(y float64) float64 { return math.Exp(d.LogProb(y)) }
	for _, p := range []float64{.001, .1, .5, .8, .99} {
		q, from := d.Quantile(p), d.Quantile(1e-4)
		if p < 1e-3 || math.Abs(d.CDF(q)-p) > 1e-9 || math.Abs(d.Survival(q)-(1-p)) > 1e-9 {
			t.Errorf("%s: CDF(%v) is %v, the survival %v, at the quantile of %v", name, q, d.CDF(q), d.Survival(q), p)
		}
		if integral := quad.Fixed(density, from, q, 2000, nil, 0); math.Abs(integral-(p-1e-4)) > 1e-8 {
			t.Errorf("%s: the density's integral to the quantile of %v is %v", name, p, integral+1e-4)
		}
	}
	// Mean and variance by substituting y = quantile(p).
	mean := quad.Fixed(func(p float64) float64 { return d.Quantile(p) }, 0, 1, 4000, nil, 0)
	if math.Abs(mean-d.Mean()) > 1e-3 {
		t.Errorf("%s: mean %v, want %v", name, d.Mean(), mean)
	}
	if v := d.Variance(); !math.IsInf(v, 1) {
		variance := quad.Fixed(func(p float64) float64 { z := d.Quantile(p) - mean; return z * z }, 0, 1, 4000, nil, 0)
		if math.Abs(variance/v-1) > .1 { // heavy tails converge slowly
			t.Errorf("%s: variance %v, want %v", name, v, variance)
		}
	}
}

// Counts are refused where they are none, before training and in scores.
func TestSupport(t *testing.T) {
	p := bayes.Prediction{Likelihood: bayes.Poisson{}, Outputs: []float64{0, 1}, Particles: 1, Rows: 2, Width: 1,
		Weights: []float64{1}}
	for _, y := range []float64{-1, .5, math.NaN()} {
		if _, err := p.LogDensity([]float64{1, y}); err == nil {
			t.Errorf("a count of %v: no error", y)
		}
	}
	if lower, upper, err := p.Interval(.9); err != nil || lower[0] != 0 || upper[0] != 3 {
		t.Errorf("the interval of a Poisson(1) is %v to %v, %v; want 0 to 3", lower, upper, err)
	}
	data := &dataset.Dataset{X: mat.NewDense(2, 1, []float64{1, 5}), Y: []float64{3, 40}}
	if _, y := (bayes.Model{Likelihood: bayes.Poisson{}}).Scalers(data); y.Mean[0] != 0 || y.StdDev[0] != 1 {
		t.Errorf("counts are standardised by %v", y)
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
		got := computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
			y := graph.ConvertDType(graph.ExpandAxes(a[0], 0), dtype)
			zero := nn.Value{Node: graph.ZerosLike(y)}
			log := bayes.Gaussian{}.LogSurvival(nil, zero, y)
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
	bound, err := bayes.Model{Network: mlp, Likelihood: bayes.HeteroscedasticT{},
		Stochastic: bayes.All()}.Bind(features, 1)
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
		computetest.WantError(t, "extras", err, text)
	}
}
