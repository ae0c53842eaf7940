package fbnn

import (
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// The outputs of a linear network are linear in its weights, so that a linear emulator of the outputs gives the exact
// log-likelihood, whatever the likelihood makes of them: with noise that is a weight itself, several targets, classes,
// and more rows than are evaluated at once.
func TestLikelihoods(t *testing.T) {
	const regression, binary, classification = dataset.Regression, dataset.BinaryClassification, dataset.Classification
	for _, c := range []struct {
		name       string
		likelihood bayes.Likelihood
		task       dataset.Task
		rows       int
		targets    int // or classes
	}{
		{"several targets", bayes.Gaussian{StdDev: .5}, regression, 40, 2},
		{"learnt noise", bayes.Gaussian{Learn: true}, regression, 40, 2},
		{"two classes", bayes.Bernoulli{}, binary, 40, 2},
		{"three classes", bayes.Categorical{}, classification, 40, 3},
		{"three ordered classes", bayes.Ordinal{}, classification, 40, 3},
		{"blocks of rows", bayes.Gaussian{StdDev: 2}, regression, 700, 1},
		{"blocks of rows of classes", bayes.Bernoulli{}, binary, 700, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			outputsAtOnce(t, 50*300) // of 50 pairs: 300 rows
			rng := rand.New(rand.NewPCG(1, 2))
			data := &dataset.Dataset{
				Name: c.name, Task: c.task, X: mat.NewDense(c.rows, 2, nil), Features: []string{"a", "b"},
			}
			for i := range c.rows {
				data.X.(*mat.Dense).SetRow(i, []float64{rng.NormFloat64(), rng.NormFloat64()})
				if c.task != regression {
					data.Y = append(data.Y, float64(i%c.targets))
					continue
				}
				for k := range c.targets {
					data.Y = append(data.Y, data.X.At(i, 0)-float64(k)+rng.NormFloat64())
				}
			}
			for k := range c.targets {
				switch {
				case c.task != regression:
					data.Classes = append(data.Classes, string(rune('a'+k)))
				case c.targets > 1:
					data.Targets = append(data.Targets, string(rune('y'+k)))
				default:
					data.Target = "y"
				}
			}
			model := bayes.Model{
				Network: nn.MLP{}, Likelihood: c.likelihood, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
			}
			a := quick(CES{Uncorrected: true, Draws: 20})
			r := fitted(t, model, a, dataset.Parts{Train: data},
				run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
			held := r.HeldOut
			if !(1-held.R2 < 1e-9 && held.Gradient < 1e-6 && held.Phi < 1e-6*(1+r.Truth.Calibration) &&
				r.Truth.RMS < 1e-6*(1+r.Truth.Calibration)) {
				t.Errorf("errors %+v; at emulated states %+v", held, r.Truth)
			}
			if r.Truth.states != 20 { // all, where there are fewer than CES.Check
				t.Errorf("the truth was taken at %d of 20 draws", r.Truth.states)
			}
		})
	}
}
