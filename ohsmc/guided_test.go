package ohsmc

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Where psi is fixed and the batch is all rows, every proposal leaves the same target, the posterior: the weighted
// mean and variance of each coordinate agree with the exact ones, and the target's normalising constant does not
// change, over 12 independent runs: some 80 comparisons. Resampling is every few steps, so that weights are carried,
// but not so long that those of the random walk, and of the paper's form of Langevin, lose their variance (see
// RandomWalk).
func TestProposalsLeaveTheSameTarget(t *testing.T) {
	leaveTheSameTarget(t, func(engine *compute.Engine, name string, _ bool) bool {
		if testing.Short() { // one of each path, for the slow runs
			return name == "Langevin" || name == "HMC, adapted"
		}
		return !engine.IsXLA() // which takes its time to compile them: TestProposalsLong
	})
}

// leaveTheSameTarget takes the cases that are chosen by engine and name; compile is true for one of each proposal, with
// all that can be switched on.
func leaveTheSameTarget(t *testing.T, chosen func(engine *compute.Engine, name string, compile bool) bool) {
	t.Helper()
	const sd, runs = 3, 12
	data := fittest.Data(30)
	exact := posteriorOf(t, data, sd)
	for _, c := range []struct {
		name      string
		algorithm Guided
		chunk     int
		compile   bool // on XLA too: each proposal once
		limit     bounds
	}{
		{"random walk, chunks", Guided{Proposal: RandomWalk{}, StepSize: train.Exponential(.1, .9, 2)}, 300, false,
			bounds{"mean": .35, "variance": .4, "log constant": .22}},
		{"random walk, adapted", Guided{Proposal: RandomWalk{}, StepSize: train.Constant(.2), Adapt: .95}, 0, true,
			bounds{"mean": .22, "variance": .33, "log constant": .2}},
		{"Langevin, paper's form", Guided{Proposal: Langevin{PaperForm: true}, StepSize: train.Constant(.05)}, 0, true,
			bounds{"mean": .18, "variance": .3, "log constant": .06}},
		{"Langevin", Guided{Proposal: Langevin{}, StepSize: train.Constant(.25)}, 400, false,
			bounds{"mean": .09, "variance": .12, "log constant": .021}},
		{"Langevin, adapted", Guided{Proposal: Langevin{}, StepSize: train.Constant(.2), Adapt: .8}, 0, true,
			bounds{"mean": .18, "variance": .24, "log constant": .4}},
		{"HMC", Guided{Proposal: HMC{Steps: 3}, StepSize: train.Constant(.15)}, 250, false,
			bounds{"mean": .085, "variance": .1, "log constant": .008}},
		{"HMC, adapted", Guided{Proposal: HMC{Steps: 2}, Adapt: .9, StepSize: train.Constant(.2)}, 0, true,
			bounds{"mean": .1, "variance": .12, "log constant": .1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
				if !chosen(engine, c.name, c.compile) {
					t.Skip("another case, or the long run, has the proposal")
				}
				c.algorithm.Training = particles.Training{
					Particles: 500, BatchSize: 30, Epochs: 25, Threshold: .9, Chunk: c.chunk,
				}
				off := offsets{}
				var steps []float64
				for seed := range uint64(runs) {
					result, details := fitted(t, fittest.Line(sd), c.algorithm, dataset.Parts{Train: data},
						run.Settings{Seed: seed, Engine: engine, DType: dtype})
					ratios := 0.0
					for _, r := range details.Trace {
						ratios += r.LogEvidence
					}
					steps = append(steps, details.Trace[24].StepSize)
					off.addMoments(t, result.Posterior, exact)
					off.add("log constant", 0, ratios)
				}
				off.check(t, c.limit)
				if first := c.algorithm.StepSize.At(0); c.algorithm.Adapt > 0 && (floats.Min(steps) == first ||
					floats.Max(steps) > 5 || floats.Min(steps) < .01) {
					t.Errorf("adapted step sizes %.3g, begun at %g", steps, first)
				}
			})
		})
	}
}

// Where psi, here the noise, is learnt, the particles after each step are those of the posterior at the psi that the
// step began with: the weights carry the change of the target from one psi to the next. After 12 steps that take the
// noise from 3 to below 1 the weighted means and variances agree with the exact posterior's at that psi, over 12
// independent runs as above, but not with those at the psi which the last step left, nor at the one before.
func TestGuidedFollowsLearntPsi(t *testing.T) {
	const sd, runs = 3, 12
	data := fittest.Data(30)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd, Learn: true}, Stochastic: bayes.All()}
	for _, c := range []struct {
		algorithm Guided
		particles int
		limit     bounds
	}{
		{Guided{Proposal: HMC{Steps: 2}, StepSize: train.Constant(.1), Adapt: .95}, 1000,
			bounds{"mean": .07, "variance": .11}},
		{Guided{Proposal: Langevin{}, StepSize: train.Constant(.1)}, 2000, bounds{"mean": .14, "variance": .1}},
	} {
		t.Run(fmt.Sprintf("%T", c.algorithm.Proposal), func(t *testing.T) {
			c.algorithm.Training = particles.Training{Particles: c.particles, BatchSize: 30, Epochs: 12, Threshold: .9,
				Optimiser: train.Adam{Schedule: train.Constant(.1)}}
			now, earlier, later := offsets{}, offsets{}, offsets{}
			for seed := range uint64(runs) {
				var noise []float64 // after each step
				result, _ := fitted(t, model, c.algorithm, dataset.Parts{Train: data}, run.Settings{
					Seed: seed, DType: compute.Float64, ObserveEvery: 1, Observe: func(_ int, p *bayes.Posterior) error {
						draws, err := p.Draws()
						if err != nil {
							return err
						}
						psi, err := compute.Float64s(draws.Psi)
						noise = append(noise, sd*math.Exp(psi[0]))
						return err
					},
				})
				if noise[11] > 1 {
					t.Errorf("seed %d: the noise is at %.2f only: this tests little", seed, noise[11])
				}
				earlier.addMoments(t, result.Posterior, posteriorOf(t, data, noise[9]))
				now.addMoments(t, result.Posterior, posteriorOf(t, data, noise[10]))
				later.addMoments(t, result.Posterior, posteriorOf(t, data, noise[11]))
			}
			now.check(t, c.limit)
			for name, wrong := range map[string]offsets{"after the last step": later, "before the last but one": earlier} {
				least := math.Inf(1)
				for _, variances := range wrong["variance"] {
					_, _, t := student(variances)
					least = min(least, math.Abs(t))
				}
				t.Logf("the variances miss those at the psi %s by |t| = %.1f and more", name, least)
				if least < 7 {
					t.Errorf("the psi %s would pass with |t| = %.1f: this tests little", name, least)
				}
			}
		})
	}
}

// A backward kernel that is the time-reversal keeps the weights nearly equal, where any other density is right too
// but spreads them: from equal weights, a step of the exact Langevin, or of HMC, leaves nearly all of the effective
// sample size, one of the paper's form or of a random walk of the same size does not. This is what a wrong sign of
// the gradient would change: the target would still be right.
func TestReversalKeepsWeights(t *testing.T) {
	left := map[string]float64{}
	for name, proposal := range map[string]Proposal{"exact": Langevin{}, "paper": Langevin{PaperForm: true},
		"walk": RandomWalk{}, "hmc": HMC{Steps: 4}} {
		_, details := fitted(t, fittest.Line(3), Guided{
			Training: particles.Training{Particles: 2000, BatchSize: 30, Epochs: 12, Threshold: 1},
			Proposal: proposal, StepSize: train.Constant(.2),
		}, dataset.Parts{Train: fittest.Data(30)}, run.Settings{})
		for _, r := range details.Trace[2:] {
			left[name] += r.ESS / 2000 / 10
		}
	}
	t.Logf("share of the effective sample size that a step leaves: %v", left)
	if left["exact"] < .995 || left["hmc"] < .99 || left["paper"] > .95 || left["walk"] > .95 {
		t.Errorf("a step leaves these shares of the effective sample size: %v", left)
	}
}

// The step size comes to where the moves would be accepted as often as asked.
func TestAdaptedStepSize(t *testing.T) {
	for _, c := range []struct {
		proposal Proposal
		accept   float64
	}{{RandomWalk{}, .4}, {Langevin{}, .7}, {HMC{Steps: 3}, .8}} {
		_, details := fitted(t, fittest.Line(.5), Guided{
			Training: particles.Training{Particles: 200, BatchSize: 30, Epochs: 150}, Proposal: c.proposal, Adapt: c.accept,
		}, dataset.Parts{Train: fittest.Data(30)}, run.Settings{})
		var late []float64
		for _, r := range details.Trace[100:] {
			late = append(late, r.Acceptance)
		}
		if mean := stat.Mean(late, nil); math.Abs(mean-c.accept) > .05 {
			t.Errorf("%T: mean acceptance %.3f over the last steps, asked %.3f (step size %.3g)", c.proposal, mean, c.accept,
				details.Trace[149].StepSize)
		}
	}
}

// Where no particle has a finite likelihood the run ends before its first step, and the error says so.
func TestGuidedWithoutLikelihood(t *testing.T) {
	model := fittest.Line(.5)
	model.Prior = bayes.Normal{StdDev: 1e25} // beyond float32, squared
	_, err := fit.Fit(t.Context(), model, Guided{
		Training: particles.Training{Particles: 200, BatchSize: 30, Epochs: 1}, Proposal: Langevin{},
	}, dataset.Parts{Train: fittest.Data(30)}, run.Settings{Engine: computetest.Go(t)})
	computetest.WantError(t, "particles at 1e25", err, "none of the 200 particles")
	if !errors.Is(err, bayes.ErrZeroWeights) {
		t.Error(err)
	}
}

// Where all trajectories diverge the run ends, with an adapted step size too.
func TestDivergentProposals(t *testing.T) {
	for _, adapt := range []float64{0, .65} {
		_, err := fit.Fit(t.Context(), fittest.Line(.5), Guided{
			Training: particles.Training{Particles: 100, BatchSize: 30, Epochs: 60},
			Proposal: HMC{Steps: 20}, StepSize: train.Constant(50), Adapt: adapt,
		}, dataset.Parts{Train: fittest.Data(30)}, run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, "step size 50", err, "step 1 of 60", "100 of 100")
		if !errors.Is(err, bayes.ErrZeroWeights) {
			t.Error(err)
		}
	}
}
