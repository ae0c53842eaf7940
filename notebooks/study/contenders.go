package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"
	"gobnn/ohsmc"
)

// contender is a method of a comparison, with the settings that are tried on each split.
//
// The budget is the same for all: so many attempts, each of the same epochs of the same mini-batches, with validations at the same steps. An attempt is fitted
// on the training part; that whose posterior has the best NLPD on the validation part is scored on the test part, which nothing else sees. The first
// attempt is the paper's settings, or the package's own, the others move the one number that the method is most sensitive to.
type contender struct {
	name     string // as the paper calls it
	attempts []attempt
}

// attempt is one setting of a method. Its JSON is part of the key of what is kept.
type attempt struct {
	Method    any              // a baseline.Method or an ohsmc.Algorithm
	Particles int              `json:",omitempty"` // of an ohsmc.Algorithm
	Rate      float64          // Adam's
	Chains    *baseline.MAPHMC `json:",omitempty"` // exact draws that follow an ohsmc.Algorithm, at its psi; nil: none
}

// rates are attempts of one method at two learning rates.
func rates(a attempt) []attempt {
	var all []attempt
	for _, rate := range []float64{.01, .003} {
		a.Rate = rate
		all = append(all, a)
	}
	return all
}

// variants are attempts of several methods at the paper's learning rate.
func variants(particles int, methods ...any) []attempt {
	var all []attempt
	for _, m := range methods {
		all = append(all, attempt{Method: m, Particles: particles, Rate: .01})
	}
	return all
}

// leapfrog is the paper's HMC: 100 leapfrog steps of 0.01 (appendix C), by 4 chains of 100 draws after 50, where the paper has one of 1000 after 2000: ours begin
// at the mode, or at trained particles.
var leapfrog = baseline.MAPHMC{Kernel: mcmc.HMC{StepSize: .01, Steps: 100}, Chains: 4, Draws: 100, WarmUp: 50}

// contenders are the paper's methods, in its order, and then the rivals that it does not have. rows is the size of the training part.
func contenders(rows int) []contender {
	walk := func(variance float64) ohsmc.OpenHorizon {
		return ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: variance}}
	}
	perRow := 1 / float64(rows)
	return []contender{
		{"MAP-HMC", rates(attempt{Method: leapfrog})},
		{"OHSMC", variants(1000, walk(.01), walk(.003))},
		{"SGSMC-HMC", rates(attempt{
			Method:    ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: .2}, Moves: 1, Precondition: true},
			Particles: 100, Chains: &leapfrog,
		})},
		{"SWAG", variants(0, baseline.SWAG{Rate: .01}, baseline.SWAG{Rate: .001})},
		{"VB", variants(0, baseline.VI{ZeroMean: true, InitialStdDev: 1}, baseline.VI{InitialStdDev: .1})},
		{"MLE", rates(attempt{Method: baseline.MLE{}})},
		{"MAP", rates(attempt{Method: baseline.MAP{}})},
		{"deep ensemble", rates(attempt{Method: baseline.Ensemble{}})},
		{"MC dropout", variants(0, baseline.Dropout{Rate: .1}, baseline.Dropout{Rate: .05})},
		{"Laplace", rates(attempt{Method: baseline.Laplace{}})},
		{"SGLD", variants(0, baseline.SGLD{StepSize: .02 * perRow}, baseline.SGLD{StepSize: .2 * perRow})},
		{"SGHMC", variants(0, baseline.SGHMC{LearningRate: .02 * perRow}, baseline.SGHMC{LearningRate: .2 * perRow})},
	}
}

// contenderNames are the names of all contenders.
func contenderNames() []string {
	var names []string
	for _, c := range contenders(1) {
		names = append(names, c.name)
	}
	return names
}

// bench is where the contenders of one model meet: what is compiled serves all repetitions.
type bench struct {
	model     bayes.Model
	batch     int
	epochs    int
	unscaled  bool // the data as they are
	particles *ohsmc.Trainer
	rivals    *baseline.Trainer
	say       func(format string, args ...any)
	said      time.Time
}

func newBench(model bayes.Model, batch, epochs int, say func(format string, args ...any)) *bench {
	return &bench{model: model, batch: batch, epochs: epochs, say: say, said: time.Now(),
		particles: ohsmc.NewTrainer(model), rivals: baseline.NewTrainer(model)}
}

func (b *bench) close() {
	b.particles.Close()
	b.rivals.Close()
}

// best fits all attempts of a contender and gives the posterior with the best NLPD on the validation part. An attempt that diverges is out; where all do,
// there is no posterior.
func (b *bench) best(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (*bayes.Posterior, error) {
	var best *bayes.Posterior
	lowest := math.Inf(1)
	for i, a := range c.attempts {
		posterior, err := b.fit(ctx, a, parts, seed, fmt.Sprintf("%s, %s: repetition %d, attempt %d of %d", parts.Train.Name, c.name, seed+1, i+1, len(c.attempts)))
		if errors.Is(err, baseline.ErrDiverged) || errors.Is(err, smc.ErrZeroWeights) {
			b.say("%s, %s: attempt %d of %d: %v", parts.Train.Name, c.name, i+1, len(c.attempts), err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(c.attempts) == 1 {
			return posterior, nil
		}
		prediction, err := posterior.Predict(ctx, parts.Validation.X)
		if err != nil {
			return nil, err
		}
		nlpd, err := metric.NLPD(prediction, parts.Validation.Y)
		if err != nil {
			return nil, err
		}
		if nlpd.Value < lowest {
			best, lowest = posterior, nlpd.Value
		}
	}
	return best, nil
}

// scores are those of a contender on the test part, in standardised units, and what calibration keeps; an infinite NLPD where every attempt diverged.
func (b *bench) scores(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (map[string]float64, error) {
	posterior, err := b.best(ctx, c, parts, seed)
	if err != nil {
		return nil, err
	}
	if posterior == nil {
		return map[string]float64{"NLPD": math.Inf(1)}, nil
	}
	prediction, err := posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		return nil, err
	}
	table, err := metric.Scores(prediction.Standardised(), prediction.StandardiseTarget(parts.Test.Y))
	if err != nil {
		return nil, err
	}
	values, err := calibrationOf(prediction, parts.Test.Y)
	if err != nil {
		return nil, err
	}
	for _, s := range table {
		values[s.Name] = s.Value
	}
	return values, nil
}

// fit runs one attempt. A cancelled context is an error here: half a training is no repetition.
func (b *bench) fit(ctx context.Context, a attempt, parts dataset.Parts, seed uint64, what string) (posterior *bayes.Posterior, err error) {
	every := (parts.Train.Rows() + b.batch - 1) / b.batch // once an epoch
	optimiser := optim.Adam{Schedule: optim.Constant(a.Rate)}
	switch method := a.Method.(type) {
	case baseline.Method:
		var result *baseline.Result
		result, err = b.rivals.Fit(ctx, method, parts, baseline.Settings{
			Epochs: b.epochs, BatchSize: b.batch, Seed: seed, Optimiser: optimiser, ValidateEvery: every, Unscaled: b.unscaled,
			Progress: func(p baseline.Progress) { b.tell("%s, %s, step %d of %d", what, p.Stage, p.Step, p.Steps) },
		})
		if err == nil {
			posterior = result.Posterior
		}
	case ohsmc.Algorithm:
		var result *ohsmc.Result
		result, err = b.particles.Train(ctx, parts, ohsmc.Settings{
			Algorithm: method, Particles: a.Particles, Epochs: b.epochs, BatchSize: b.batch, Seed: seed, Optimiser: optimiser, ValidateEvery: every, Unscaled: b.unscaled,
			Progress: func(p ohsmc.Progress) {
				b.tell("%s, step %d of %d, best validation NLPD %.4f", what, p.Step, p.Steps, p.Best)
			},
		})
		if err == nil {
			posterior = result.Posterior
		}
		if err == nil && a.Chains != nil && ctx.Err() == nil {
			posterior, _, err = b.particles.Sample(ctx, posterior, parts.Train, a.Chains.Kernel, mcmc.Settings{
				Chains: a.Chains.Chains, Draws: a.Chains.Draws, WarmUp: a.Chains.WarmUp, Seed: seed,
			})
		}
	default:
		return nil, fmt.Errorf("study: %T is neither a baseline.Method nor an ohsmc.Algorithm", method)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	return posterior, err
}

// tell says where a fit stands, every ten seconds.
func (b *bench) tell(format string, args ...any) {
	if time.Since(b.said) > 10*time.Second {
		b.said = time.Now()
		b.say(format, args...)
	}
}
