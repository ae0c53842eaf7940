package fit_test

import (
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Methods for dense layers alone refuse a stochastic convolution, and say what helps.
func TestRefuseConvolution(t *testing.T) {
	model := bayes.Model{
		Network: nn.CNN{Height: 1, Width: 2, Convolutions: []nn.Conv{{Filters: 3, Kernel: 1}}}, Stochastic: bayes.All(),
		Likelihood: bayes.Gaussian{StdDev: sd},
	}
	for _, m := range []fit.Method{baseline.Dropout{}, baseline.Laplace{Structure: baseline.KroneckerPrecision}} {
		_, err := fit.Fit(t.Context(), model, m, dataset.Parts{Train: plane(20)}, run.Settings{Engine: computetest.Go(t)})
		for _, says := range []string{`"layer1/weights"`, "make it shared"} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%T: error %v does not say %q", m, err, says)
			}
		}
	}
}
