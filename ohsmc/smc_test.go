package ohsmc

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/stat"
)

// On a conjugate regression, SMC over all rows gives the exact posterior and the exact evidence, whatever the kernel: over independent passes (psi is
// empty, so that steps are independent) the mean of exp(log evidence - exact) is 1, and the weighted means and variances are the posterior's, by
// Student's t. With |t| < 5 at 29 degrees of freedom or more a false alarm has probability 3e-5 for each of the some 150 comparisons; the seeds are fixed.
func TestSMCIsExact(t *testing.T) {
	const sd = .5
	data := linear(12)
	exact := posteriorOf(t, data, sd)
	for _, c := range []struct {
		name      string
		algorithm SMC
		resampler smc.Resampler
		particles int
	}{
		{"random walk", SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: .4}, Moves: 3}, smc.Multinomial, 200},
		{"preconditioned random walk", SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1.2}, Moves: 2, Precondition: true}, smc.Systematic, 200},
		{"Crank-Nicolson", SMC{Kernel: mcmc.PreconditionedCrankNicolson{Beta: .5}, Moves: 2}, smc.Stratified, 200},
		{"MALA", SMC{Kernel: mcmc.MALA{StepSize: .8}, Moves: 1, Precondition: true}, smc.Residual, 200},
		{"HMC", SMC{Kernel: mcmc.HMC{StepSize: .5, Steps: 3}, Moves: 1, Precondition: true}, smc.Multinomial, 200},
		{"NUTS", SMC{Kernel: mcmc.NUTS{StepSize: .6, MaxDepth: 3}, Moves: 1, Precondition: true}, smc.Multinomial, 100},
	} {
		if testing.Short() && c.name != "random walk" && c.name != "HMC" {
			continue // one of each path, for the slow runs
		}
		t.Run(c.name, func(t *testing.T) {
			computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
				passes := 60
				if c.name == "NUTS" {
					passes = 30
				}
				trainer := NewTrainer(bayesianLine(sd))
				defer trainer.Close()
				r, err := trainer.newRun(dataset.Parts{Train: data}, Settings{
					Particles: c.particles, BatchSize: 12, Epochs: passes, Seed: 3, Algorithm: c.algorithm, Resampler: c.resampler, Engine: engine, DType: dtype,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer r.state.Close()
				var off [7][]float64
				for range passes {
					if err := r.advance(context.Background()); err != nil {
						t.Fatal(err)
					}
					mean, variance := moments(t, r)
					for d := range 3 {
						v := exact.covariance.At(d, d)
						off[d] = append(off[d], (mean[d]-exact.mean.AtVec(d))/math.Sqrt(v))
						// The weighted variance of dependent particles is a little too small: by that of the mean.
						off[3+d] = append(off[3+d], (variance[d]+math.Pow(mean[d]-exact.mean.AtVec(d), 2))/v-1)
					}
					last := r.trace[len(r.trace)-1]
					off[6] = append(off[6], math.Exp(last.LogEvidence-exact.logEvidence)-1)
					if last.Acceptance < .1 || last.Acceptance > 1 || last.Resamplings == 0 {
						t.Fatalf("this tests little: %+v", last)
					}
				}
				for i, values := range off {
					mean, deviation := stat.MeanStdDev(values, nil)
					if student := mean / (deviation / math.Sqrt(float64(passes))); math.Abs(student) > 5 || deviation > .6 {
						t.Errorf("%s is off by %.4f, with a standard deviation of %.4f over %d passes: t = %.1f",
							[]string{"mean 0", "mean 1", "mean 2", "variance 0", "variance 1", "variance 2", "evidence"}[i], mean, deviation, passes, student)
					}
				}
			})
		})
	}
}

// The standard error that a single run states covers the analytic log evidence: of 100 runs with multinomial resampling about 68 within one and 95
// within two. The shares are binomial; 52 and 85 of 100 are below their 0.1 % quantiles, 83 is above that of one standard error.
func TestEvidenceCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("100 runs take 10 s and more")
	}
	data := linear(30)
	exact := posteriorOf(t, data, 1)
	result, err := Train(t.Context(), bayesianLine(1), dataset.Parts{Train: data}, Settings{
		Particles: 500, BatchSize: 30, Epochs: 100, Seed: 1, Algorithm: SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: 1}, Moves: 3, Precondition: true}, Resampler: smc.Multinomial,
	})
	if err != nil {
		t.Fatal(err)
	}
	one, two := 0, 0
	for _, r := range result.Trace {
		z := math.Abs(r.LogEvidence-exact.logEvidence) / r.LogEvidenceStdErr
		if z < 1 {
			one++
		}
		if z < 2 {
			two++
		}
	}
	t.Logf("of 100 runs %d lie within one stated standard error of the analytic log evidence, %d within two", one, two)
	if one < 52 || one > 83 || two < 85 {
		t.Errorf("of 100 runs %d lie within one stated standard error of the analytic log evidence, %d within two", one, two)
	}
	if last := result.Trace[99].LogEvidence; result.LogEvidence != last {
		t.Errorf("Result.LogEvidence is %v, of the last pass %v", result.LogEvidence, last)
	}
}

// The Poisson estimator is unbiased for the evidence where particles do not move (a move would change the model), and says so when its constant is too
// small.
func TestPoissonIsUnbiased(t *testing.T) {
	data := linear(6)
	exact := posteriorOf(t, data, 3)
	trainer := NewTrainer(bayesianLine(3))
	defer trainer.Close()
	settings := Settings{
		Particles: 500, BatchSize: 3, Threshold: .5, Algorithm: OpenHorizon{Kernel: mcmc.RandomWalk{Variance: 1e-12}, Poisson: &Poisson{Rate: 47, LogConstant: 60}},
	}
	var ratios []float64
	for seed := range uint64(60) {
		settings.Seed = seed
		result, err := trainer.Train(t.Context(), dataset.Parts{Train: data}, settings)
		if err != nil {
			t.Fatal(err)
		}
		ratios = append(ratios, math.Exp(result.LogEvidence-exact.logEvidence))
	}
	mean, deviation := stat.MeanStdDev(ratios, nil)
	if student := (mean - 1) / (deviation / math.Sqrt(60)); math.Abs(student) > 4 || deviation > 3 {
		t.Errorf("the estimate over the evidence has mean %.3f and standard deviation %.3f: t = %.1f", mean, deviation, student)
	}
	t.Logf("the estimate over the evidence: mean %.3f, standard deviation %.3f", mean, deviation)

	settings.Algorithm = OpenHorizon{Poisson: &Poisson{Rate: 50, LogConstant: 3}}
	_, err := trainer.Train(t.Context(), dataset.Parts{Train: data}, settings)
	if err == nil || !strings.Contains(err.Error(), "LogConstant is 3, but this batch needs more than") {
		t.Error(err)
	}
}

func TestSMCSettings(t *testing.T) {
	for _, c := range []struct {
		algorithm SMC
		says      string
	}{
		{SMC{Kernel: mcmc.RandomWalk{}}, "leaves no posterior invariant"},
		{SMC{Kernel: mcmc.RandomWalkMetropolis{}}, "StepSize is 0"},
		{SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: -1}}, "-1"},
		{SMC{Kernel: mcmc.MALA{StepSize: math.NaN()}}, "NaN"},
		{SMC{Moves: -3}, "-3"},
	} {
		_, err := Train(t.Context(), bayesianLine(1), dataset.Parts{Train: linear(10)}, Settings{Algorithm: c.algorithm})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", fmt.Sprintf("%+v", c.algorithm), err)
		}
	}
}
