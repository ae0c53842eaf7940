package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// someRows is the data set of some rows, repeated.
func someRows(d *dataset.Dataset, times int, rows ...int) *dataset.Dataset {
	some := *d
	some.X, some.Y = mat.NewDense(times*len(rows), d.Dims(), nil), nil
	for range times {
		for _, r := range rows {
			some.X.(*mat.Dense).SetRow(len(some.Y), d.X.(*mat.Dense).RawRowView(r))
			some.Y = append(some.Y, d.Y[r])
		}
	}
	return &some
}

// dense is G kron A of a block in the order of a layer's weights, row by row, and its biases.
func denseOf(b block) (coordinates []int, product *mat.Dense) {
	var p mat.Dense
	p.Kronecker(b.outputs, b.inputs)
	weights := b.in - 1
	for k := range b.out * b.in {
		if o, i := k/b.in, k%b.in; i < weights {
			coordinates = append(coordinates, b.from+o*weights+i)
		} else {
			coordinates = append(coordinates, b.from+b.out*weights+o)
		}
	}
	return coordinates, &p
}

// Of one row the product of the factors is the layer's block of the full Gauss-Newton matrix, which TestPrecision holds
// to differences of predictions; A is the mean over rows, and G the sum, of those of each. 150 rows, three of them 50
// times, are more than are evaluated at once.
func TestKroneckerFactors(t *testing.T) {
	for _, c := range []struct {
		name       string
		data       *dataset.Dataset
		likelihood bayes.Likelihood
		stochastic bayes.Partition
	}{
		{"Gaussian, noise learnt, middle layer", fittest.Data(150), bayes.Gaussian{StdDev: .5, Learn: true}, bayes.Layers(2)},
		{"Bernoulli, two layers", classes(150, 2), bayes.Bernoulli{}, bayes.Layers(1, 3)},
		{"Categorical, all", classes(150, 3), bayes.Categorical{}, bayes.All()},
		{"Ordinal, all", classes(150, 3), bayes.Ordinal{}, bayes.All()},
		{"heteroscedastic, all", fittest.Data(150), bayes.Heteroscedastic{}, bayes.All()},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := bayes.Model{
				Network: nn.MLP{Hidden: []int{4, 3}, Activation: nn.Tanh}, Likelihood: c.likelihood,
				Prior: bayes.Normal{PerLayer: map[int]float64{2: .5, 3: 2}}, Stochastic: c.stochastic,
			}
			j, _ := fittest.Job(t, model, Laplace{Structure: KroneckerPrecision}, dataset.Parts{Train: c.data},
				run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
			phi, psi := wavy(j.Bound.D, 2), wavy(j.Bound.W, 3)
			on := func(data *dataset.Dataset) []block {
				j.Parts.Train = data
				of, err := rowsOf(j)
				if err != nil {
					t.Fatal(err)
				}
				factors, err := of.kronecker(t.Context(), phi, psi)
				if err != nil {
					t.Fatal(err)
				}
				return factors
			}
			of := []int{0, 1, 4}
			all := on(someRows(c.data, 50, of...))
			sums := make([]block, len(all))
			for i, f := range all {
				sums[i] = f
				sums[i].inputs, sums[i].outputs = mat.NewSymDense(f.in, nil), mat.NewSymDense(f.out, nil)
			}
			d := j.Bound.D
			for _, row := range of {
				one := on(someRows(c.data, 1, row))
				flat, err := Laplace{Structure: fullPrecision}.precision(t.Context(), computetest.Must(rowsOf(j)), phi, psi)
				if err != nil {
					t.Fatal(err)
				}
				blocks := 0
				for i, f := range one {
					sums[i].inputs.AddSym(sums[i].inputs, f.inputs)
					sums[i].outputs.AddSym(sums[i].outputs, f.outputs)
					coordinates, product := denseOf(f)
					blocks += len(coordinates)
					var got, want []float64
					for a, at := range coordinates {
						for b, to := range coordinates {
							v := product.At(a, b)
							if a == b {
								v += f.precision
							}
							got, want = append(got, v), append(want, flat[at*d+to])
						}
					}
					computetest.Near(t, "block of one row", got, want, 1e-10)
				}
				if blocks != d {
					t.Errorf("blocks have %d coordinates together, want %d", blocks, d)
				}
			}
			for i, f := range all {
				sums[i].inputs.ScaleSym(1./3, sums[i].inputs)
				sums[i].outputs.ScaleSym(50, sums[i].outputs)
				computetest.Near(t, "A of all rows", entries(f.inputs), entries(sums[i].inputs), 1e-10)
				computetest.Near(t, "G of all rows", entries(f.outputs), entries(sums[i].outputs), 1e-10)
			}
		})
	}
}

// entries are all of a symmetric matrix's, row by row.
func entries(m mat.Symmetric) []float64 { return mat.DenseCopyOf(m).RawMatrix().Data }

// Draws have the covariance (G kron A + I/s^2)^-1, in two blocks that are independent: every entry within 5 standard
// errors.
func TestKroneckerSampler(t *testing.T) {
	factors := []block{
		{out: 3, in: 3, from: 1, precision: 2,
			inputs:  mat.NewSymDense(3, []float64{2, .5, -.3, .5, 1, .2, -.3, .2, .8}),
			outputs: mat.NewSymDense(3, []float64{5, 3, -1, 3, 4, .5, -1, .5, 2})},
		{out: 1, in: 1, from: 0, precision: .5, inputs: mat.NewSymDense(1, []float64{1}),
			outputs: mat.NewSymDense(1, []float64{3})},
	}
	precision := mat.NewSymDense(10, nil)
	for _, f := range factors {
		coordinates, product := denseOf(f)
		for a, at := range coordinates {
			for b, to := range coordinates {
				precision.SetSym(at, to, product.At(a, b))
			}
			precision.SetSym(at, at, product.At(a, a)+f.precision)
		}
	}
	draw, err := kroneckerSampler(factors)
	if err != nil {
		t.Fatal(err)
	}
	mode, rng := wavy(10, 2), rand.New(rand.NewPCG(3, 4))
	var draws []float64
	for range 20_000 {
		draws = append(draws, draw(mode, rng)...)
	}
	checkGaussian(t, draws, mode, inverse(t, precision))
}

// Of a layer without hidden ones and K targets of different noise the factors are exact: A = [X 1]' [X 1] / N and G =
// N diag(1/s_k^2).
func TestKroneckerOfTargets(t *testing.T) {
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5, Learn: true},
		Prior: bayes.Normal{StdDev: 2}, Stochastic: bayes.All()}.Bind(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{1, 2, -1, .5, 0, 3, 2, -2}
	logScales := []float64{.3, -.7, 0} // psi
	of := curvedRows{engine: computetest.Go(t), bound: bound, x: compute.Floats(compute.Float64, x, 4, 2),
		y: compute.Floats(compute.Float64, make([]float64, 12), 4, 3)}
	factors, err := of.kronecker(t.Context(), make([]float64, bound.D), logScales)
	if err != nil {
		t.Fatal(err)
	}
	if len(factors) != 1 {
		t.Fatalf("%d factors, want 1", len(factors))
	}
	f := factors[0]
	outputs, inputs := mat.NewSymDense(3, nil), mat.NewSymDense(3, nil)
	for i, s := range logScales {
		outputs.SetSym(i, i, 4*math.Exp(-2*s)/.25)
	}
	for n := range 4 {
		inputs.SymRankOne(inputs, 1./4, mat.NewVecDense(3, []float64{x[2*n], x[2*n+1], 1}))
	}
	computetest.Near(t, "G", entries(f.outputs), entries(outputs), 1e-9)
	computetest.Near(t, "A", entries(f.inputs), entries(inputs), 1e-9)
	if f.precision != .25 {
		t.Errorf("the prior's precision is %v, want .25", f.precision)
	}
}
