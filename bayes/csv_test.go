package bayes_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// New rows that are read like the training part are predicted, and scored where the target is there; so are rows that
// are read by the names and means of a posterior that was saved. Without a target they are not trained on or scored.
func TestPredictCSV(t *testing.T) {
	ctx := context.Background()
	read := func(text string, opts dataset.CSVOptions) *dataset.Dataset {
		t.Helper()
		d := computetest.Must(dataset.ReadCSV(strings.NewReader(text), opts))
		return d
	}
	train := read("age,sex,ill\n20,f,yes\n60,m,no\n50,m,no\n30,m,yes\n",
		dataset.CSVOptions{Task: dataset.BinaryClassification, Categorical: []string{"sex"}})
	engine := computetest.Must(compute.Open(compute.GoBackend))
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Bernoulli{}, Stochastic: bayes.All()}
	method, settings := baseline.MAP{Training: baseline.Training{Epochs: 5}}, run.Settings{Engine: engine}
	result := computetest.Must(fit.Fit(ctx, model, method, dataset.Parts{Train: train}, settings))
	path := filepath.Join(t.TempDir(), "posterior.safetensors")
	computetest.NoError(t, result.Posterior.Save(path))
	loaded := computetest.Must(bayes.Load(path))
	loaded = loaded.On(engine)
	for of, like := range map[string]*dataset.Dataset{"rows": train, "names": loaded.Like()} {
		opts := dataset.CSVOptions{Like: like, Missing: dataset.MissingMean}
		rows := read("sex,age\nm,?\nf,25\n", opts)
		want := predict(t, result.Posterior, mat.NewDense(2, 3, []float64{40, 0, 1, 25, 1, 0}))
		if have := predict(t, loaded, rows.X); !slices.Equal(have.Outputs, want.Outputs) {
			t.Errorf("like %s, %v is predicted as %v, want %v", of, mat.Formatted(rows.X), have.Outputs, want.Outputs)
		}
		_, err := dataset.ReadCSV(strings.NewReader("sex,age\nm,25%\n"), opts)
		if err == nil || !strings.Contains(err.Error(), "in training the column had a number") {
			t.Errorf("like %s, a percentage: %v", of, err)
		}
		known := read("ill,sex,age\nno,m,?\nyes,f,25\n", opts)
		if scores, err := metric.Of(ctx, loaded, known); err != nil || len(scores) == 0 {
			t.Errorf("like %s: scores %v: %v", of, scores, err)
		}

		_, scored := metric.Of(ctx, loaded, rows)
		_, trained := fit.Fit(ctx, model, method, dataset.Parts{Train: rows}, settings)
		_, validated := fit.Fit(ctx, model, method, dataset.Parts{Train: train, Validation: rows}, settings)
		for what, err := range map[string]error{"scored": scored, "trained on": trained, "validated on": validated} {
			if err == nil || !strings.Contains(err.Error(), `target ["ill"] is not known`) {
				t.Errorf("like %s, without a target they are %s: %v", of, what, err)
			}
		}
	}

	alone := read("age,sex,ill\n20,f,yes\n60,f,no\n", dataset.CSVOptions{Task: dataset.BinaryClassification,
		Categorical: []string{"sex"}})
	if _, err := loaded.Predict(ctx, alone.X); err == nil || !strings.Contains(err.Error(), "CSVOptions.Like") {
		t.Errorf("a file that is read for itself and has fewer categories: %v", err)
	}
}
