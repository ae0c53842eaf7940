package baseline

import (
	"math"
	"slices"
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

// Laplace's precision is the prior's and the sum over rows of J'LJ, where the Jacobians J are differences of
// predictions of perturbed particles, taken here, and L the curvature of the likelihood by its formula: for each
// likelihood, for a network with a shared first layer, and with a shared noise. 150 rows are more than are evaluated at
// once.
func TestPrecision(t *testing.T) {
	for _, c := range []struct {
		name       string
		data       *dataset.Dataset
		likelihood bayes.Likelihood
		stochastic bayes.Partition
		structure  Structure
	}{
		{"Gaussian, middle layer", fittest.Data(150), bayes.Gaussian{StdDev: .5}, bayes.Layers(2), fullPrecision},
		{"Gaussian, noise learnt, first layer", fittest.Data(150), bayes.Gaussian{StdDev: .5, Learn: true}, bayes.Layers(1),
			fullPrecision},
		{"heteroscedastic, last layer", fittest.Data(150), bayes.Heteroscedastic{}, bayes.Layers(3), fullPrecision},
		{"heteroscedastic t, all", fittest.Data(150), bayes.HeteroscedasticT{}, bayes.All(), fullPrecision},
		{"Bernoulli, all", classes(150, 2), bayes.Bernoulli{}, bayes.All(), fullPrecision},
		{"Categorical, all", classes(150, 3), bayes.Categorical{}, bayes.All(), fullPrecision},
		{"Categorical, last layer", classes(150, 3), bayes.Categorical{}, bayes.All(), lastLayerPrecision},
		{"Ordinal, all", classes(150, 4), bayes.Ordinal{}, bayes.All(), fullPrecision},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := bayes.Model{
				Network: nn.MLP{Hidden: []int{4, 3}, Activation: nn.Tanh}, Likelihood: c.likelihood,
				Prior: bayes.Normal{PerLayer: map[int]float64{2: .5, 3: 2}}, Stochastic: c.stochastic,
			}
			j, m := fittest.Job(t, model, Laplace{Structure: c.structure}, dataset.Parts{Train: c.data},
				run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
			phi, psi := wavy(j.Bound.D, 2), wavy(j.Bound.W, 3)
			got, err := m.precision(t.Context(), computetest.Must(rowsOf(j)), phi, psi)
			if err != nil {
				t.Fatal(err)
			}

			// Particles a step to either side along each coordinate, and phi itself.
			const h = 1e-5
			d := j.Bound.D
			var phis []float64
			for k := range 2*d + 1 {
				moved := append([]float64(nil), phi...)
				if k < 2*d {
					moved[k/2] += h * float64(1-2*(k%2))
				}
				phis = append(phis, moved...)
			}
			p, err := j.PosteriorOf(drawsOf(j, phis, psi), bayes.Provenance{})
			if err != nil {
				t.Fatal(err)
			}
			prediction, err := p.Predict(t.Context(), c.data.X)
			if err != nil {
				t.Fatal(err)
			}
			outputs, n := prediction.Width, c.data.Rows()
			at := func(particle, row, output int) float64 {
				return prediction.Outputs[(particle*n+row)*outputs+output]
			}
			var own []float64
			for _, slot := range j.Bound.Slots {
				if slot.Kind == nn.Noise {
					own = append(own, psi[slot.Offset:slot.Offset+slot.Size()]...)
				}
			}
			want := mat.NewSymDense(d, nil)
			for k, s := range j.Bound.Scales() {
				want.SetSym(k, k, 1/(s*s))
			}
			for row := range n {
				jacobian := mat.NewDense(outputs, d, nil)
				f := make([]float64, outputs)
				for o := range outputs {
					f[o] = at(2*d, row, o)
					for k := range d {
						jacobian.Set(o, k, (at(2*k, row, o)-at(2*k+1, row, o))/(2*h))
					}
				}
				var term, left mat.Dense
				left.Mul(curvatureOf(c.likelihood, f, own), jacobian)
				term.Mul(jacobian.T(), &left)
				for a := range d {
					for b := range a + 1 {
						want.SetSym(a, b, want.At(a, b)+term.At(a, b))
					}
				}
			}
			var flat []float64
			for _, a := range m.free(j.Bound) {
				for _, b := range m.free(j.Bound) {
					flat = append(flat, want.At(a, b))
				}
			}
			computetest.Near(t, "precision", got, flat, 1e-6)
		})
	}
}

// curvatureOf is minus the expected second derivative of the log-likelihood in the outputs, [C, C]: of a number the
// covariance of the first derivatives, differences, by quadrature, and of ordered classes by their sum.
func curvatureOf(likelihood bayes.Likelihood, f, own []float64) mat.Matrix {
	switch likelihood.(type) {
	case bayes.Categorical:
	case bayes.Ordinal:
		const h = 1e-5
		above, below := likelihood.Predictive([]float64{f[0] + h}, own, 0), likelihood.Predictive([]float64{f[0] - h}, own, 0)
		law, variance := likelihood.Predictive(f, own, 0), 0.
		for class := range len(own) + 1 {
			y := float64(class)
			score := (above.LogProb(y) - below.LogProb(y)) / (2 * h)
			variance += math.Exp(law.LogProb(y)) * score * score
		}
		return mat.NewDense(1, 1, []float64{variance})
	case bayes.Bernoulli:
		p := 1 / (1 + math.Exp(-f[0]))
		return mat.NewDense(1, 1, []float64{p * (1 - p)})
	default:
		const h, step = 1e-5, .05
		law := likelihood.Predictive(f, own, 0)
		scale := law.Quantile(.75) - law.Quantile(.25)
		var beside [][2]bayes.Distribution
		for c := range f {
			var pair [2]bayes.Distribution
			for side := range pair {
				moved := slices.Clone(f)
				moved[c] += h * float64(1-2*side)
				pair[side] = likelihood.Predictive(moved, own, 0)
			}
			beside = append(beside, pair)
		}
		l := mat.NewDense(len(f), len(f), nil)
		score := make([]float64, len(f))
		for u := -12.; u <= 12; u += step {
			y := f[0] + scale*math.Sinh(u)
			for c, pair := range beside {
				score[c] = (pair[0].LogProb(y) - pair[1].LogProb(y)) / (2 * h)
			}
			weight := step * scale * math.Cosh(u) * math.Exp(law.LogProb(y))
			l.RankOne(l, weight, mat.NewVecDense(len(f), score), mat.NewVecDense(len(f), score))
		}
		return l
	}
	total := 0.0
	for _, v := range f {
		total += math.Exp(v)
	}
	l := mat.NewDense(len(f), len(f), nil)
	for a := range f {
		for b := range f {
			pa, pb := math.Exp(f[a])/total, math.Exp(f[b])/total
			l.Set(a, b, -pa*pb)
			if a == b {
				l.Set(a, b, pa*(1-pa))
			}
		}
	}
	return l
}
