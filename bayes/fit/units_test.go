package fit_test

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// twoTargets are the plane and another one, both times unit.
func twoTargets(unit float64) *dataset.Dataset {
	data := plane(90)
	data.Targets = []string{"y", "z"}
	both := make([]float64, 0, 180)
	for n, y := range data.Y {
		both = append(both, unit*y, unit*(30-8*data.X.At(n, 1)+y))
	}
	data.Y = both
	return data
}

// bests are the best validation scores of a result, by member; nil without any.
func bests(result *fit.Result) (all []float64) {
	if d := fit.Details[*particles.Details](result); d != nil {
		return []float64{d.Best.NLPD}
	}
	for _, b := range fit.Details[*train.Details](result).Best {
		all = append(all, b.NLPD)
	}
	return all
}

// The training losses and validation scores that a person reads are in the target's units, as metric.NLPD is. So they
// rise by log 1024 a target if its unit is a 1024th, a power of 2 by which no bit of the training changes. The best is
// the NLPD of the posterior on the validation part, if the posterior is the state that was validated.
func TestScoresInTargetUnits(t *testing.T) {
	same := map[string]float64{ // the method: by how much its posterior's NLPD may differ from the best
		"baseline: MLE": 1e-5, "baseline: MAP": 1e-5, "baseline: deep ensemble": 1e-5,
		"baseline: VI": .05, "baseline: MC dropout": .1, // by other draws
		"ohsmc: open horizon": 1e-5, "ohsmc: guided": 1e-5, "ohsmc: guided, Langevin": 1e-5, "ohsmc: guided, HMC": 1e-5,
		"ohsmc: SMC, sub-datasets": 1e-5,
	}
	const unit = 1024
	shift := 2 * math.Log(unit)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	for _, m := range every() {
		if !m.trains {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			var results [2]*fit.Result
			var predictions [2]bayes.Prediction
			var parts [2]dataset.Parts
			var shown [2][]float64 // the scores of the last Progress
			for i, unit := range []float64{1, unit} {
				var err error
				if parts[i], err = twoTargets(unit).Split(dataset.Fractions{Train: .5, Validation: .2, Test: .3}, 1); err != nil {
					t.Fatal(err)
				}
				s := run.Settings{Seed: 3, Engine: computetest.Go(t), Progress: func(now run.Progress) {
					if now.Step < now.Steps {
						return // how often it is called depends on the machine
					}
					shown[i] = nil // of the last alone
					for _, name := range []string{fit.LossCurve, fit.ValidationCurve, fit.BestScore} {
						shown[i] = append(shown[i], now.Score(name))
					}
				}}
				if results[i], err = m.fit(t.Context(), model, parts[i], s); err != nil {
					t.Fatal(err)
				}
				p := results[i].Posterior
				if predictions[i], err = p.Predict(t.Context(), parts[i].Validation.X); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(predictions[0].Outputs, predictions[1].Outputs) {
				t.Fatal("the trainings differ: nothing can be compared")
			}
			compare := func(what string, small, large []float64) {
				t.Helper()
				if len(small) == 0 || len(small) != len(large) {
					t.Fatalf("%s: %d and %d numbers", what, len(small), len(large))
				}
				for i, v := range small {
					if d := large[i] - v - shift; !(math.Abs(d) < 1e-9) && !(math.IsNaN(v) && math.IsNaN(large[i])) {
						t.Fatalf("%s: %v, and %v in units of a %dth: it must be %v more", what, v, large[i], unit, shift)
					}
				}
			}
			first, second := results[0], results[1]
			for _, name := range []string{fit.LossCurve, fit.ValidationCurve} {
				compare(name, first.Curve(name).Values, second.Curve(name).Values)
			}
			compare("best", bests(first), bests(second))
			compare("progress", shown[0], shown[1])
			within, ok := same[m.name]
			if !ok {
				return
			}
			for i, prediction := range predictions {
				all := bests(results[i])
				for member, best := range all {
					if len(all) > 1 {
						prediction.Weights = make([]float64, prediction.Particles)
						prediction.Weights[member] = 1
					}
					nlpd, err := metric.NLPD(prediction, parts[i].Validation.Y)
					if err != nil {
						t.Fatal(err)
					}
					if d := nlpd.Value - best; !(math.Abs(d) <= within) {
						t.Errorf("member %d of %d: the best validation is %.6f, the posterior's NLPD there %.6f", member,
							len(all), best, nlpd.Value)
					}
				}
			}
			delete(same, m.name)
		})
	}
	if len(same) > 0 {
		t.Errorf("not seen: %v", same)
	}
}
