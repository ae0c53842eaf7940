package baseline

import (
	"math"
	"path/filepath"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// A linearised Laplace's predictive is Gaussian with the network's own output at the mode as its mean and J P^-1 J' as
// its variance, which is taken here from the precision and, for J, from particles a unit along each coordinate. The
// same draws, Sampled, predict otherwise. Both survive a file.
func TestLaplaceLinearised(t *testing.T) {
	data := line(30)
	model := bayes.Model{
		Network: nn.MLP{Hidden: []int{4, 3}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(2),
	}
	settings := Settings{Engine: goEngine(t), DType: compute.Float64, Epochs: 20, BatchSize: 10, Seed: 4}
	trainer := NewTrainer(model)
	defer trainer.Close()
	parts := dataset.Parts{Train: data}
	outputs := func(p *bayes.Posterior) []float64 {
		prediction, err := p.Predict(t.Context(), data.X)
		if err != nil {
			t.Fatal(err)
		}
		return prediction.Outputs
	}
	fitted := func(m Method) *bayes.Posterior {
		result, err := trainer.Fit(t.Context(), m, parts, settings)
		if err != nil {
			t.Fatal(err)
		}
		return result.Posterior
	}
	point := fitted(MAP{})
	const samples = 5000
	linear := fitted(Laplace{Samples: samples})
	if !linear.Linearised() {
		t.Fatal("Laplace is not linearised by default")
	}

	j, err := trainer.newJob(Laplace{}, parts, settings)
	if err != nil {
		t.Fatal(err)
	}
	d := j.Bound.D
	phi, psi := split(j.Bound, numbers(t, point))
	flat, err := j.method.(Laplace).precision(t.Context(), j, phi, psi)
	if err != nil {
		t.Fatal(err)
	}
	var covariance mat.Dense
	if err := covariance.Inverse(mat.NewDense(d, d, flat)); err != nil {
		t.Fatal(err)
	}
	var along []float64
	for k := range d {
		moved := append([]float64(nil), phi...)
		moved[k]++
		along = append(along, moved...)
	}
	units, err := j.Posterior(run.Completed, Particles{Phi: along, Psi: psi, LinearisedAt: phi})
	if err != nil {
		t.Fatal(err)
	}
	at, jacobian, got := outputs(point), outputs(units), outputs(linear)
	n := data.Rows()
	for row := range n {
		gradient := mat.NewVecDense(d, nil)
		for k := range d {
			gradient.SetVec(k, jacobian[k*n+row]-at[row])
		}
		variance := mat.Inner(gradient, &covariance, gradient)
		checkMoments(t, column(got, n, row), at[row], math.Sqrt(variance))
	}

	through := fitted(Laplace{Samples: samples, Sampled: true})
	computetest.Near(t, "the draws", numbers(t, through), numbers(t, linear), 0)
	apart := 0.0
	for row := range n {
		m, s := stat.MeanStdDev(column(outputs(through), n, row), nil)
		apart = max(apart, math.Abs(m-at[row])/(s/math.Sqrt(samples)))
	}
	if through.Linearised() || apart < 10 {
		t.Errorf("the mean of the draws through the network is within %.1f standard errors of the mode's output at "+
			"every row", apart)
	}

	path := filepath.Join(t.TempDir(), "laplace")
	if err := linear.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := bayes.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "loaded", outputs(loaded), got, 1e-12)
}
