package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"gonum.org/v1/gonum/stat"
)

// bench fits the contenders of one model; compiled programs are kept for all repetitions.
type bench struct {
	model   bayes.Model
	batch   int
	epochs  int
	timed   bool    // fits are timed: everything is compiled before one begins
	seconds float64 // time limit of a fit, instead of its epochs; 0: none
	rivals  *baseline.Trainer
	whole   *baseline.Trainer // of the model with every parameter stochastic
	warmed  map[string]bool   // compiled attempts, as JSON
	say     func(format string, args ...any)
	said    time.Time
}

func newBench(model bayes.Model, batch, epochs int, say func(format string, args ...any)) *bench {
	whole := model
	whole.Stochastic = bayes.All()
	return &bench{model: model, batch: batch, epochs: epochs, say: say, said: time.Now(), warmed: map[string]bool{},
		rivals: baseline.NewTrainer(model), whole: baseline.NewTrainer(whole)}
}

func (b *bench) close() {
	b.rivals.Close()
	b.whole.Close()
}

// fitted is the result of an attempt.
type fitted struct {
	posterior *bayes.Posterior
	seconds   float64     // of the fit, validations included
	epochs    float64     // made
	ess       float64     // mean effective sample size over the steps; NaN without one
	curve     []validated // nil if the posterior was not validated along the way
}

// validated is the NLPD on the validation part at one time of a fit.
type validated struct{ epoch, seconds, nlpd float64 }

// best is the posterior of choose.
func (b *bench) best(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (*bayes.Posterior, error) {
	f, err := b.choose(ctx, c, parts, seed)
	if f == nil {
		return nil, err
	}
	return f.posterior, err
}

// choose fits all attempts of a contender and returns the one whose posterior has the best NLPD on the validation part;
// nil if all diverge.
func (b *bench) choose(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (*fitted, error) {
	var best *fitted
	lowest := math.Inf(1)
	for i, a := range c.attempts {
		f, err := b.fit(ctx, a, parts, seed, fmt.Sprintf("%s, %s: repetition %d, attempt %d of %d", parts.Train.Name, c.name,
			seed+1, i+1, len(c.attempts)))
		if errors.Is(err, baseline.ErrDiverged) || errors.Is(err, bayes.ErrZeroWeights) {
			b.say("%s, %s: attempt %d of %d: %v", parts.Train.Name, c.name, i+1, len(c.attempts), err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(c.attempts) == 1 {
			return f, nil
		}
		prediction, err := f.posterior.Predict(ctx, parts.Validation.X)
		if err != nil {
			return nil, err
		}
		nlpd, err := metric.NLPD(prediction, parts.Validation.Y)
		if err != nil {
			return nil, err
		}
		if nlpd.Value < lowest {
			best, lowest = f, nlpd.Value
		}
	}
	return best, nil
}

// fit runs one attempt. A cancelled context is an error here, as half a training is no repetition. If the fit has a
// time limit and chains follow it, each gets half of the time.
func (b *bench) fit(ctx context.Context, a attempt, parts dataset.Parts, seed uint64, what string) (*fitted, error) {
	if b.timed {
		if err := b.warm(ctx, a, parts); err != nil {
			return nil, err
		}
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.seconds > 0 {
		share := 1.
		if a.Chains != nil {
			share = .5
		}
		within, cancel = context.WithTimeout(ctx, time.Duration(share*b.seconds*float64(time.Second)))
		defer cancel()
	}
	start := time.Now()
	f, err := b.train(within, a, parts, seed, what, nil)
	if err == nil {
		f.seconds = time.Since(start).Seconds()
		if a.Chains != nil && ctx.Err() == nil {
			err = b.sample(ctx, f, a, parts.Train, seed)
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	for i := range f.curve { // validations are equally many steps apart
		f.curve[i].seconds = f.seconds * f.curve[i].epoch / f.epochs
	}
	return f, nil
}

// warm compiles an attempt's programs by running a fit up to its first validation.
func (b *bench) warm(ctx context.Context, a attempt, parts dataset.Parts) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("study: settings of %T: %w", a.Method, err)
	}
	kind := fmt.Sprintf("%#v %s", a.Method, text)
	if b.warmed[kind] {
		return nil
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	_, err = b.train(within, a, parts, 0, fmt.Sprintf("%s: compiling %T", parts.Train.Name, a.Method), stop)
	if ctx.Err() != nil {
		return fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, baseline.ErrDiverged) &&
		!errors.Is(err, bayes.ErrZeroWeights) {
		return err
	}
	b.warmed[kind] = true
	return nil
}

// train is the fit of an attempt's method. begun, if not nil, is called after the first validation.
func (b *bench) train(
	ctx context.Context, a attempt, parts dataset.Parts, seed uint64, what string, begun func(),
) (*fitted, error) {
	every := (parts.Train.Rows() + b.batch - 1) / b.batch // once an epoch
	optimiser := train.Adam{Schedule: train.Constant(a.Rate)}
	validations := func(nlpd float64) {
		if begun != nil && !math.IsNaN(nlpd) {
			begun()
		}
	}
	switch method := a.Method.(type) {
	case baseline.Method:
		trainer := b.rivals
		if a.Whole {
			trainer = b.whole
		}
		result, err := trainer.Fit(ctx, method, parts, baseline.Settings{
			Epochs: b.epochs, BatchSize: b.batch, Seed: seed, Optimiser: optimiser, ValidateEvery: every,
			Progress: func(p run.Progress) {
				validations(p.Score(fit.ValidationCurve))
				b.tell("%s, %s, step %d of %d", what, p.Stage, p.Step, p.Steps)
			},
		})
		if err != nil {
			return nil, err
		}
		f := &fitted{posterior: result.Posterior, epochs: float64(result.Steps) / float64(every), ess: math.NaN()}
		if result.Chains == nil {
			for _, v := range result.Validated {
				f.curve = append(f.curve, validated{epoch: float64(v.Step) / float64(every), nlpd: stat.Mean(v.NLPD, nil)})
			}
		}
		return f, nil
	case fit.Method:
		training := ohsmc.Training{
			Particles: a.Particles, Epochs: b.epochs, BatchSize: b.batch, Optimiser: optimiser, ValidateEvery: every,
		}
		result, err := fit.Fit(ctx, b.model, trained(method, training), parts, run.Settings{Seed: seed,
			Progress: func(p run.Progress) {
				validations(p.Score(fit.ValidationCurve))
				b.tell("%s, %s", what, stepOf(p))
			},
		})
		if err != nil {
			return nil, err
		}
		details := fit.Details[*ohsmc.Details](result)
		f := &fitted{posterior: result.Posterior, epochs: float64(details.Steps) / float64(every)}
		for _, v := range details.Validated {
			f.curve = append(f.curve, validated{epoch: float64(v.Step) / float64(every), nlpd: v.NLPD})
		}
		var ess []float64
		for _, r := range details.Trace {
			ess = append(ess, r.ESS)
		}
		f.ess = stat.Mean(ess, nil)
		return f, nil
	default:
		return nil, fmt.Errorf("study: %T is neither a baseline.Method nor an algorithm of ohsmc", method)
	}
}

// sample replaces a trained posterior by exact draws at its psi. With a time limit the chains run for half of
// bench.seconds, counted from when their step is compiled; if the warm-up takes longer, the trained posterior stays.
func (b *bench) sample(ctx context.Context, f *fitted, a attempt, train *dataset.Dataset, seed uint64) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	of := a.Chains.Sampling
	chains := mcmc.Chains{Kernel: a.Chains.Kernel, Chains: of.Chains, Draws: of.Draws, WarmUp: of.WarmUp}
	if b.seconds > 0 {
		chains.Draws = max(chains.Draws, maxDraws)
	}
	compiling := time.Now()
	begun := compiling
	progress := func(run.Progress) {
		if begun == compiling {
			begun = time.Now()
		}
		if b.seconds > 0 && time.Since(begun).Seconds() >= b.seconds/2 {
			stop()
		}
	}
	result, err := fit.Fit(within, bayes.Model{}, fit.From{Trained: f.posterior, Method: chains},
		dataset.Parts{Train: train}, run.Settings{Seed: seed, Progress: progress})
	f.seconds += time.Since(begun).Seconds()
	f.curve = nil
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		b.say("%s: the chains of %T had no draw in %.1f s: the trained particles stay", train.Name, a.Chains.Kernel,
			b.seconds/2)
		return nil
	}
	if err == nil {
		f.posterior = result.Posterior
	}
	return err
}

// maxDraws is the most draws of each chain within its time.
const maxDraws = 500

// tell reports a fit's progress every ten seconds.
func (b *bench) tell(format string, args ...any) {
	if time.Since(b.said) > 10*time.Second {
		b.said = time.Now()
		b.say(format, args...)
	}
}

// stepOf is a training's progress in words. Before the first validation there is no best one.
func stepOf(p run.Progress) string {
	text := fmt.Sprintf("step %d of %d", p.Step, p.Steps)
	if best := p.Score(fit.BestScore); !math.IsNaN(best) {
		text += fmt.Sprintf(", best validation NLPD %.4f", best)
	}
	return text
}

// trained is an algorithm of package ohsmc with these settings.
func trained(method fit.Method, training ohsmc.Training) fit.Method {
	switch m := method.(type) {
	case ohsmc.OpenHorizon:
		m.Training = training
		return m
	case ohsmc.Guided:
		m.Training = training
		return m
	case ohsmc.SMC:
		m.Training = training
		return m
	}
	return method
}
