package ohsmc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
)

// BenchmarkEqualSeconds trains the net of Table 8 (third layer stochastic, 100 particles) on yacht and energy with
// each proposal for the same time, three splits each, and reports the effective sample size per second, the steps per
// second, and the test NLPD of the best validation, in standardised units. Validation is every tenth step and counts
// as time, as it does for a user. Run it once: -benchtime 1x.
func BenchmarkEqualSeconds(b *testing.B) { computetest.Bench(b, benchmarkEqualSeconds) }

func benchmarkEqualSeconds(b *testing.B, _ *compute.Engine) {
	splits, seconds := 3, 5.
	if testing.Short() {
		splits, seconds = 1, 1
	}
	for _, data := range computetest.Cases(dataset.Yacht(), dataset.Energy()) {
		batch := map[string]int{"yacht": 20, "energy": 50}[data.Name]
		for _, c := range computetest.Cases([]struct {
			name      string
			algorithm fit.Method
		}{
			{"open horizon", OpenHorizon{}},
			{"random walk", Guided{Proposal: RandomWalk{}}},
			{"Langevin, paper's form", Guided{Proposal: Langevin{PaperForm: true}}},
			{"Langevin", Guided{Proposal: Langevin{}}},
			{"Langevin, adapted", Guided{Proposal: Langevin{}, Adapt: .574}},
			{"HMC, adapted", Guided{Proposal: HMC{Steps: 3}, Adapt: .65}},
			{"random walk, all rows", Guided{Proposal: RandomWalk{}, AllRows: true}},
			{"Langevin, paper's form, all rows", Guided{Proposal: Langevin{PaperForm: true}, AllRows: true}},
			{"Langevin, all rows", Guided{Proposal: Langevin{}, AllRows: true}},
			{"Langevin, adapted, all rows", Guided{Proposal: Langevin{}, Adapt: .574, AllRows: true}},
			{"HMC, adapted, all rows", Guided{Proposal: HMC{Steps: 3}, Adapt: .65, AllRows: true}},
		}...) {
			b.Run(fmt.Sprintf("%s/%s", data.Name, c.name), func(b *testing.B) {
				trainer := bayes.Model{Network: nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
					Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.Layers(3)}
				for b.Loop() {
					var nlpd, rmse, ess, steps float64
					for split := range splits {
						parts, err := data.Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, uint64(split))
						if err != nil {
							b.Fatal(err)
						}
						settings := Settings{Particles: 100, BatchSize: batch, Seed: uint64(split), ValidateEvery: 10}
						train := func(epochs int, limit time.Duration) *Result {
							ctx, cancel := context.WithTimeout(context.Background(), limit)
							defer cancel()
							settings.Epochs = epochs
							result, err := Fit(ctx, trainer, c.algorithm, parts, settings)
							if err != nil {
								b.Fatal(err)
							}
							return result
						}
						if split == 0 {
							train(2, time.Hour) // compiles
						}
						result := train(1<<24, time.Duration(seconds*float64(time.Second)))
						prediction, err := result.Posterior.Predict(context.Background(), parts.Test.X)
						if err != nil {
							b.Fatal(err)
						}
						y := prediction.StandardiseTarget(parts.Test.Y)
						for _, score := range []struct {
							value *float64
							of    func(bayes.Prediction, []float64) (metric.Estimate, error)
						}{{&nlpd, metric.NLPD}, {&rmse, metric.RMSE}} {
							e, err := score.of(prediction.Standardised(), y)
							if err != nil {
								b.Fatal(err)
							}
							*score.value += e.Value / float64(splits)
						}
						for _, r := range result.Trace {
							ess += r.ESS / float64(splits) / seconds
						}
						steps += float64(result.Steps) / float64(splits) / seconds
					}
					b.ReportMetric(ess, "ESS/s")
					b.ReportMetric(steps, "steps/s")
					b.ReportMetric(nlpd, "NLPD")
					b.ReportMetric(rmse, "RMSE")
				}
			})
		}
	}
}
