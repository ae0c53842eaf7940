package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
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

// dense is G kron A of a block in the order of a layer's weights, row by row, and its biases, where they are
// stochastic.
func denseOf(f kroneckerFactor) (coordinates []int, product *mat.Dense) {
	var p mat.Dense
	p.Kronecker(f.Outputs, f.Inputs)
	inputs := f.In
	if f.Biases >= 0 {
		inputs--
	}
	for k := range f.Out * f.In {
		o, i := k/f.In, k%f.In
		if i < inputs {
			coordinates = append(coordinates, f.Weights+o*inputs+i)
		} else {
			coordinates = append(coordinates, f.Biases+o)
		}
	}
	return coordinates, &p
}

// Of one row the product of the factors is the layer's block of the full Gauss-Newton matrix, which TestPrecision holds
// to differences of predictions; A is the mean over rows, and G the sum, of those of each. 150 rows, three of them 50
// times, are more than are evaluated at once.
func TestKroneckerFactors(t *testing.T) {
	engine := goEngine(t)
	for _, c := range []struct {
		name       string
		data       *dataset.Dataset
		likelihood bayes.Likelihood
		stochastic bayes.Partition
	}{
		{"Gaussian, noise learnt, middle layer", line(150), bayes.Gaussian{StdDev: .5, Learn: true}, bayes.Layers(2)},
		{"Bernoulli, weights here, biases there", classes(150, 2), bayes.Bernoulli{}, bayes.Weights(1).And(bayes.Biases(2))},
		{"Categorical, all", classes(150, 3), bayes.Categorical{}, bayes.All()},
		{"Ordinal, all", classes(150, 3), bayes.Ordinal{}, bayes.All()},
		{"heteroscedastic, all", line(150), bayes.Heteroscedastic{StdDev: .5}, bayes.All()},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := bayes.Model{
				Network: nn.MLP{Hidden: []int{4, 3}, Activation: nn.Tanh}, Likelihood: c.likelihood,
				Prior: bayes.Normal{PerLayer: map[int]float64{2: .5, 3: 2}}, Stochastic: c.stochastic,
			}
			j, _ := jobOf(t, model, Laplace{Structure: KroneckerPrecision}, dataset.Parts{Train: c.data},
				Settings{Engine: engine, DType: compute.Float64})
			phi, psi := wavy(j.Bound.D, 2), wavy(j.Bound.W, 3)
			on := func(data *dataset.Dataset) []kroneckerFactor {
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
			sums := make([]kroneckerFactor, len(all))
			for i, f := range all {
				sums[i] = f
				sums[i].Inputs, sums[i].Outputs = mat.NewSymDense(f.In, nil), mat.NewSymDense(f.Out, nil)
			}
			d := j.Bound.D
			for _, row := range of {
				one := on(someRows(c.data, 1, row))
				flat, err := Laplace{Structure: fullPrecision}.precision(t.Context(), j, phi, psi)
				if err != nil {
					t.Fatal(err)
				}
				blocks := 0
				for i, f := range one {
					sums[i].Inputs.AddSym(sums[i].Inputs, f.Inputs)
					sums[i].Outputs.AddSym(sums[i].Outputs, f.Outputs)
					coordinates, product := denseOf(f)
					blocks += len(coordinates)
					var got, want []float64
					for a, at := range coordinates {
						for b, to := range coordinates {
							v := product.At(a, b)
							if a == b {
								v += f.Precision
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
				sums[i].Inputs.ScaleSym(1./3, sums[i].Inputs)
				sums[i].Outputs.ScaleSym(50, sums[i].Outputs)
				computetest.Near(t, "A of all rows", entries(f.Inputs), entries(sums[i].Inputs), 1e-10)
				computetest.Near(t, "G of all rows", entries(f.Outputs), entries(sums[i].Outputs), 1e-10)
			}
		})
	}
}

// entries are all of a symmetric matrix's, row by row.
func entries(m mat.Symmetric) []float64 { return mat.DenseCopyOf(m).RawMatrix().Data }

// Draws have the covariance (G kron A + I/s^2)^-1, in two blocks that are independent: every entry within 5 standard
// errors.
func TestKroneckerSampler(t *testing.T) {
	factors := []kroneckerFactor{
		{Out: 3, In: 3, Weights: 4, Biases: 1, Precision: 2,
			Inputs:  mat.NewSymDense(3, []float64{2, .5, -.3, .5, 1, .2, -.3, .2, .8}),
			Outputs: mat.NewSymDense(3, []float64{5, 3, -1, 3, 4, .5, -1, .5, 2})},
		{Out: 1, In: 1, Weights: -1, Biases: 0, Precision: .5, Inputs: mat.NewSymDense(1, []float64{1}),
			Outputs: mat.NewSymDense(1, []float64{3})},
	}
	covariance := mat.NewSymDense(10, nil)
	for _, f := range factors {
		coordinates, product := denseOf(f)
		for i := range coordinates {
			product.Set(i, i, product.At(i, i)+f.Precision)
		}
		var inverse mat.Dense
		if err := inverse.Inverse(product); err != nil {
			t.Fatal(err)
		}
		for a, at := range coordinates {
			for b, to := range coordinates {
				covariance.SetSym(at, to, inverse.At(a, b))
			}
		}
	}
	draw, err := kroneckerSampler(factors)
	if err != nil {
		t.Fatal(err)
	}
	mode, rng := wavy(10, 2), rand.New(rand.NewPCG(3, 4))
	var draws [][]float64
	for range 20_000 {
		draws = append(draws, draw(mode, rng))
	}
	checkGaussian(t, draws, mode, covariance)
}

// One layer, one output and a Gaussian likelihood: the factors' product is the precision itself, and the draws those of
// the exact posterior of weights and bias.
func TestKroneckerIsExact(t *testing.T) {
	data := line(rows)
	design := mat.NewDense(rows, 3, nil)
	for n := range rows {
		design.SetRow(n, []float64{data.X.At(n, 0), data.X.At(n, 1), 1})
	}
	var precision mat.SymDense
	precision.SymOuterK(1/(sd*sd), design.T())
	for i := range 3 {
		precision.SetSym(i, i, precision.At(i, i)+1/(tau*tau))
	}
	right, mean := mat.NewVecDense(3, nil), mat.NewVecDense(3, nil)
	right.MulVec(design.T(), mat.NewVecDense(rows, data.Y))
	right.ScaleVec(1/(sd*sd), right)
	if err := mean.SolveVec(&precision, right); err != nil {
		t.Fatal(err)
	}
	var inverse mat.Dense
	if err := inverse.Inverse(&precision); err != nil {
		t.Fatal(err)
	}
	covariance := mat.NewSymDense(3, nil)
	for i := range 3 {
		for k := range i + 1 {
			covariance.SetSym(i, k, inverse.At(i, k))
		}
	}
	model := lineModel
	model.Stochastic = bayes.All()
	result := fitted(t, model, Laplace{Structure: KroneckerPrecision, Samples: 4000}, dataset.Parts{Train: data},
		converging(goEngine(t), compute.Float64))
	w, b := parameters(t, result.Posterior)
	var draws [][]float64
	for i := range b {
		draws = append(draws, []float64{w[2*i], w[2*i+1], b[i]})
	}
	checkGaussian(t, draws, mean.RawVector().Data, covariance)
}

// checkGaussian holds draws to the moments of a Gaussian, each within 5 standard errors: the covariance of n pairs has
// variance (c^2 + v_1 v_2)/n.
func checkGaussian(t *testing.T, draws [][]float64, mean []float64, covariance mat.Symmetric) {
	t.Helper()
	n := float64(len(draws))
	columns := make([][]float64, len(mean))
	for _, d := range draws {
		for i, v := range d {
			columns[i] = append(columns[i], v)
		}
	}
	for i := range mean {
		m, v := stat.Mean(columns[i], nil), covariance.At(i, i)
		if z := (m - mean[i]) * math.Sqrt(n/v); z*z > 25 {
			t.Errorf("mean of coordinate %d is %.5f, want %.5f (z = %.1f)", i, m, mean[i], z)
		}
		for k := range i + 1 {
			c, exact := stat.Covariance(columns[i], columns[k], nil), covariance.At(i, k)
			if z := (c - exact) / math.Sqrt((exact*exact+v*covariance.At(k, k))/n); z*z > 25 {
				t.Errorf("covariance of coordinates %d and %d is %.6f, want %.6f (z = %.1f)", i, k, c, exact, z)
			}
		}
	}
}
