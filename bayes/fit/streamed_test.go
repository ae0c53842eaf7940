package fit_test

import (
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/fbnn"
)

// A method that needs its rows in memory refuses a Source, and so does one beside a training part; what is wrong with
// the method's settings is said before a row is read.
func TestSourceRefused(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}}
	source := dataset.Simulated{N: 20, Features: 2}
	weighted := plane(20)
	weighted.Weights = make([]float64, 20)
	weighted.Weights[0] = 1
	swapped := plane(20)
	swapped.Features = []string{"b", "a"}
	for says, c := range map[string]struct {
		method fit.Method
		parts  dataset.Parts
	}{
		"mcmc: the training rows are in Parts.Source, and mcmc.Chains needs them in memory": {
			mcmc.Chains{}, dataset.Parts{Source: source},
		},
		"fbnn: Parts has training rows in memory beside Parts.Source": {
			fbnn.CES{}, dataset.Parts{Source: source, Train: plane(20)},
		},
		"the source has 3 features and 1 targets, and the data \"plane\" beside it 2 and 1": {
			baseline.MAP{}, dataset.Parts{Source: dataset.Simulated{N: 20, Features: 3}, Validation: plane(20)},
		},
		"in another order":       {baseline.MAP{}, dataset.Parts{Source: dataset.RowsOf(swapped), Validation: plane(20)}},
		"which a source has not": {baseline.MAP{}, dataset.Parts{Source: source, Validation: weighted}},
	} {
		_, err := fit.Fit(t.Context(), model, c.method, c.parts, run.Settings{})
		computetest.WantError(t, says, err, says)
	}
}

// Training rows of another hash than Parts.TrainHash are refused by both hashes, in memory and of a Source; those of
// this hash are taken.
func TestTrainHash(t *testing.T) {
	data := plane(30)
	source := dataset.RowsOf(data)
	found := computetest.Must(dataset.Examine(t.Context(), source, 0, nil))
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	method := baseline.MAP{Training: baseline.Training{Epochs: 1}}
	for _, c := range []struct {
		parts dataset.Parts
		hash  string
	}{{dataset.Parts{Train: data}, data.Hash()}, {dataset.Parts{Source: source}, found.Hash}} {
		for _, want := range []string{c.hash, "abc"} {
			c.parts.TrainHash = want
			_, err := fit.Fit(t.Context(), model, method, c.parts, run.Settings{Engine: computetest.Go(t)})
			refused := err != nil && strings.Contains(err.Error(), "have the hash "+c.hash+", and those of Parts.TrainHash abc")
			if refused != (want == "abc") || err != nil && !refused {
				t.Errorf("TrainHash %s, rows %s: %v", want, c.hash, err)
			}
		}
	}
}
