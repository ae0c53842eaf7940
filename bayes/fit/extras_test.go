package fit_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/auto"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/conformal"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
)

// A row of weight 2 is two rows, and one of weight 0 is none: to Laplace's mode and curvature, of every structure.
func TestWeightsAreRepetitions(t *testing.T) {
	weights := []float64{1, 2, 0, 1, 3, 1, 2, 1}
	few := drawn(len(weights), 1, drawNormal)
	var rows []int
	for i, w := range weights {
		rows = append(rows, slices.Repeat([]int{i}, int(w))...)
	}
	repeated := computetest.Must(few.Subset(rows))
	few.Weights = weights
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}}
	for _, structure := range []baseline.Structure{"full", baseline.KroneckerPrecision} {
		var draws [2][]float64
		for k, d := range []*dataset.Dataset{repeated, few} {
			result, err := fit.Fit(t.Context(), model, baseline.Laplace{Structure: structure, Samples: 5,
				Training: baseline.Training{Epochs: 2000, BatchSize: d.Rows()}}, dataset.Parts{Train: d},
				run.Settings{Seed: 2, Engine: computetest.Go(t), DType: compute.Float64})
			if err != nil {
				t.Fatal(err)
			}
			of := computetest.Must(result.Posterior.Draws())
			if draws[k], err = compute.Float64s(of.Phi); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range draws[1] {
			if math.Abs(v-draws[0][i]) > 1e-3 {
				t.Errorf("structure %v: number %d of the draws is %v by weights, %v by repetitions", structure, i, v, draws[0][i])
				break
			}
		}
	}
}

// Weighted rows, counts with exposures and censored targets go through the default method and others, and come out
// better than the prior; weighted rows have no LOO.
func TestExtrasThroughMethods(t *testing.T) {
	times := drawn(120, 1, drawNormal)
	counts := drawn(120, 1, drawPoisson)
	for i := range times.Y {
		times.Censored = append(times.Censored, times.Y[i] > .8)
		times.Y[i] = min(times.Y[i], .8)
		counts.Exposure = append(counts.Exposure, 1+float64(i%4))
		counts.Y[i] *= counts.Exposure[i]
		times.Weights = append(times.Weights, .5+float64(i%3))
	}
	engine := computetest.Go(t)
	for _, d := range []*dataset.Dataset{times, counts} {
		parts := computetest.Must(d.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1))
		model := computetest.Must(bayes.ModelFor(d))
		model.Network = nn.MLP{Hidden: []int{3}, Activation: nn.Tanh}
		model.Stochastic = bayes.All()
		prior := computetest.Must(metric.Of(t.Context(), priorOf(t, engine, model, parts), parts.Test))
		methods := append(few(), method{name: "default", Method: auto.Method{Seconds: 1}})
		for _, m := range methods {
			result, err := m.fit(t.Context(), model, parts, run.Settings{Seed: 3, Engine: engine})
			if err != nil {
				t.Errorf("%s: %v", m.name, err)
				continue
			}
			scores := computetest.Must(metric.Of(t.Context(), result.Posterior, parts.Test))
			t.Logf("%T, %s: NLPD %.3f, the prior's %.3f", model.Likelihood, m.name, scores[0].Value, prior[0].Value)
			if !(scores[0].Value < prior[0].Value-.05) {
				t.Errorf("%T, %s: NLPD %.3f is not better than the prior's %.3f", model.Likelihood, m.name, scores[0].Value,
					prior[0].Value)
			}
			_, err = diag.NewLOOForPosterior(t.Context(), result.Posterior, parts.Train)
			if m.name != "default" && (d.Weights != nil) != (err != nil && strings.Contains(err.Error(), "Weights")) {
				t.Errorf("%s: LOO: %v", m.name, err)
			}
		}
	}
}

// What is not known of censored targets is refused; counts over exposures are compared with such alone, also by a
// posterior that was saved.
func TestExtrasAreKnown(t *testing.T) {
	counts, times := drawn(60, 1, drawPoisson), drawn(60, 1, drawNormal)
	for i := range counts.Y {
		counts.Exposure = append(counts.Exposure, 1+float64(i%3))
		times.Censored = append(times.Censored, i%4 == 0)
	}
	s := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	training := baseline.Training{Epochs: 20}
	of := func(l bayes.Likelihood, d *dataset.Dataset, m fit.Method) (*fit.Result, error) {
		model := bayes.Model{Network: nn.MLP{}, Likelihood: l, Stochastic: bayes.All()}
		return fit.Fit(t.Context(), model, m, dataset.Parts{Train: d}, s)
	}
	_, err := of(bayes.Gaussian{}, times, baseline.Laplace{Training: training})
	computetest.WantError(t, "Laplace", err, "it does not know the curvature")
	_, err = of(bayes.HeteroscedasticT{}, times, baseline.MAP{Training: training})
	computetest.WantError(t, "Student's t", err, "take bayes.Gaussian")

	lives := computetest.Must(of(bayes.Gaussian{}, times, few()[2].Method))
	p := computetest.Must(lives.Posterior.Predict(t.Context(), times.X))
	if p, err = p.OfRows(times); err != nil {
		t.Fatal(err)
	}
	_, err = conformal.Calibrate(conformal.Part{Prediction: p, Y: times.Y})
	computetest.WantError(t, "conformal", err, "censored")
	_, err = metric.ScoreDraws(p, times.Y, 0)
	computetest.WantError(t, "ScoreDraws", err, "censored")
	_, err = metric.RMSE(p, times.Y)
	computetest.WantError(t, "RMSE", err, "censored")
	computetest.Must(diag.NewLOOForPosterior(t.Context(), lives.Posterior, times))

	rates := computetest.Must(of(bayes.Poisson{}, counts, baseline.MAP{Training: training}))
	path := filepath.Join(t.TempDir(), "posterior")
	if err := rates.Posterior.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded := computetest.Must(bayes.Load(path))
	if _, err := metric.Of(t.Context(), loaded.On(s.Engine), counts); err != nil {
		t.Error(err)
	}
	plain := *counts
	plain.Exposure = nil
	_, err = metric.Of(t.Context(), loaded.On(s.Engine), &plain)
	computetest.WantError(t, "scores", err, "counts over exposures")
	over := computetest.Must(loaded.On(s.Engine).Predict(t.Context(), counts.X))
	_, err = metric.NLPD(over, counts.Y)
	computetest.WantError(t, "a prediction over 1", err, "OfRows")
	if over, err = over.OfRows(counts); err == nil {
		_, err = metric.NLPD(over, counts.Y)
	}
	if err != nil {
		t.Error(err)
	}
	_, err = fit.Fit(t.Context(), bayes.Model{}, fit.From{Trained: rates.Posterior, Method: mcmc.Chains{}},
		dataset.Parts{Train: &plain}, s)
	computetest.WantError(t, "to go on", err, "counts over exposures")
}

// Weights of the validation part choose as its weighted mean does, whatever their size.
func TestValidationWeights(t *testing.T) {
	d := drawn(60, 1, drawNormal)
	parts := computetest.Must(d.Split(dataset.Fractions{Train: .6, Validation: .4}, 1))
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 20, BatchSize: 12, Epochs: 3, ValidateEvery: 1},
		Kernel: mcmc.RandomWalk{Variance: 1e-3}}
	best := func() float64 {
		result, err := fit.Fit(t.Context(), model, method, parts, run.Settings{Seed: 4, Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		return fit.Details[*particles.Details](result).Best.NLPD
	}
	plain := best()
	parts.Validation.Weights = slices.Repeat([]float64{7}, parts.Validation.Rows())
	if weighted := best(); math.Abs(weighted-plain) > 1e-5 {
		t.Errorf("the best validation is %v with weights of 7, %v without", weighted, plain)
	}
	parts.Validation.Weights[0] = 7000
	if weighted := best(); math.Abs(weighted-plain) < 1e-3 {
		t.Errorf("the best validation is %v with a row of 1000 times the others' weight, %v without", weighted, plain)
	}
}
