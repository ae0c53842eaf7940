package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/stat"
)

// bench fits the contenders of one model.
type bench struct {
	model   bayes.Model
	batch   int
	epochs  int
	observe bool            // scores the posterior, accuracy too, after each epoch
	batchly bool            // validates after each batch, not once an epoch
	timed   bool            // fits are timed: everything is compiled before one begins
	seconds float64         // time limit of a fit, instead of its epochs; 0: none
	attempt int             // the number of the contender's that is fitted
	warmed  map[string]bool // compiled attempts, as JSON
	say     func(format string, args ...any)
	said    time.Time
}

func newBench(model bayes.Model, batch, epochs int, say func(format string, args ...any)) *bench {
	return &bench{
		model: model, batch: batch, epochs: epochs, say: say, warmed: map[string]bool{},
	}
}

// fitted is the result of an attempt.
type fitted struct {
	posterior *bayes.Posterior
	seconds   float64     // of the fit, validations included
	epochs    float64     // made
	ess       float64     // mean effective sample size over the steps; NaN without one
	curve     []validated // nil if the posterior was not validated along the way; of SGHMC along its chains alone
}

// validated is the NLPD on the validation part at one time of a fit, and the accuracy if it is observed.
type validated struct{ epoch, seconds, nlpd, accuracy float64 }

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
		b.attempt = i
		f, err := b.fit(ctx, a, parts, seed, fmt.Sprintf("%s, %s: repetition %d, attempt %d of %d", parts.Train.Name, c.name,
			seed+1, i+1, len(c.attempts)))
		nlpd := math.Inf(-1) // of the only one, which is best
		if err == nil && len(c.attempts) > 1 {
			_, nlpd, err = validate(ctx, f.posterior, parts)
		}
		if diverges(err) {
			b.say("%s, %s: attempt %d of %d: %v", parts.Train.Name, c.name, i+1, len(c.attempts), err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if nlpd < lowest {
			best, lowest = f, nlpd
		}
	}
	return best, nil
}

// diverges says whether an error is the method's failure on these data, and no fault of the study.
func diverges(err error) bool {
	return errors.Is(err, baseline.ErrDiverged) || errors.Is(err, bayes.ErrZeroWeights) ||
		errors.Is(err, bayes.ErrNotFinite) || errors.Is(err, mcmc.ErrStuck)
}

// validate returns a posterior's prediction of the validation part, and its NLPD.
func validate(ctx context.Context, p *bayes.Posterior, parts dataset.Parts) (_ bayes.Prediction, _ float64, err error) {
	defer caught(&err)
	prediction := must(p.Predict(ctx, parts.Validation.X))
	nlpd, err := metric.NLPD(prediction, parts.Validation.Y)
	return prediction, nlpd.Value, err
}

// fit runs one attempt. A cancelled context is an error here, as half a training is no repetition.
func (b *bench) fit(
	ctx context.Context, a attempt, parts dataset.Parts, seed uint64, what string,
) (f *fitted, err error) {
	defer caught(&err)
	if b.timed {
		failOn(b.warm(ctx, a, parts))
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.seconds > 0 {
		within, cancel = context.WithTimeout(ctx, time.Duration(b.seconds*float64(time.Second)))
		defer cancel()
	}
	start := time.Now()
	f, err = b.train(within, a, parts, seed, what, nil)
	if err == nil {
		f.seconds = max(f.seconds, time.Since(start).Seconds())
		if a.Chains != nil && ctx.Err() == nil {
			err = b.sample(ctx, f, a, parts.Train, seed)
		}
	}
	failOn(ended(ctx, err))
	for i := range f.curve { // validations are equally many steps apart
		f.curve[i].seconds = f.seconds * f.curve[i].epoch / f.epochs
	}
	return f, nil
}

// warm compiles an attempt's programs by running a fit up to its first validation.
func (b *bench) warm(ctx context.Context, a attempt, parts dataset.Parts) error {
	kind := fmt.Sprintf("%#v %s", a.Method, must(json.Marshal(a)))
	if b.warmed[kind] {
		return nil
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	_, err := b.train(within, a, parts, 0, fmt.Sprintf("%s: compiling %T", parts.Train.Name, a.Method), stop)
	if ctx.Err() != nil {
		return fmt.Errorf("cancelled: %w", context.Cause(ctx))
	}
	if err != nil && !errors.Is(err, context.Canceled) && !diverges(err) {
		return err
	}
	b.warmed[kind] = true
	return nil
}

// train is the fit of an attempt's method. begun, if not nil, is called after the first validation.
func (b *bench) train(
	ctx context.Context, a attempt, parts dataset.Parts, seed uint64, what string, begun func(),
) (f *fitted, err error) {
	defer caught(&err)
	perEpoch := (parts.Train.Rows() + b.batch - 1) / b.batch
	every := perEpoch
	if b.batchly {
		every = 1
	}
	optimiser := train.Adam{Schedule: train.Constant(a.Rate)}
	if a.Optimiser != nil {
		optimiser = *a.Optimiser
	}
	validations := func(nlpd float64) {
		if begun != nil && !math.IsNaN(nlpd) {
			begun()
		}
	}
	epochs, method := b.epochs, a.Method
	if a.Within {
		var chains mcmc.Chains
		epochs, chains = halves(b.epochs, perEpoch)
		method = withSettings(method, chains)
	}
	method = withSettings(method,
		particles.Training{
			Particles: a.Particles, Epochs: b.epochs, BatchSize: b.batch, Optimiser: optimiser, ValidateEvery: every,
			Patience: b.epochs * perEpoch, // to the end
		},
		baseline.Training{Epochs: epochs, BatchSize: b.batch, Optimiser: optimiser, ValidateEvery: every})
	model := b.model
	if a.Whole {
		model.Stochastic = bayes.All()
	}
	settings := run.Settings{Seed: seed, Progress: func(p run.Progress) {
		validations(p.Score(fit.ValidationCurve))
		if begun == nil {
			b.tell("%s, %s", what, stepOf(p))
		}
	}}
	seen := observations{ctx: ctx, parts: parts, accuracy: b.observe}
	if folder := scratch(ctx); folder != "" && b.seconds == 0 && begun == nil {
		failOn(os.MkdirAll(folder, 0o755))
		settings.Checkpoint = filepath.Join(folder, "*.fit")
		seen.file = filepath.Join(folder, fmt.Sprintf("observed-%d.json", b.attempt))
	}
	_, draws := a.Method.(baseline.SGHMC) // it does not validate: its draws so far are scored after each
	if draws || b.observe {
		settings.Observe = seen.add
		if !draws {
			settings.ObserveEvery = perEpoch
		}
		failOn(seen.read())
	}
	result := must(fit.Fit(ctx, model, method, parts, settings))
	f = &fitted{posterior: result.Posterior, ess: math.NaN(), seconds: result.Elapsed.Seconds()} // of all sessions
	epoch := func(step int) float64 { return float64(step) / float64(perEpoch) }
	if d := fit.Details[*train.Details](result); d != nil {
		f.epochs = epoch(d.Steps)
		for _, v := range d.Validated {
			f.curve = append(f.curve, validated{epoch: epoch(v.Step), nlpd: stat.Mean(v.Scores, nil)})
		}
		if chain := fit.Details[*mcmc.Details](result); chain != nil { // it goes on after the training
			f.curve = nil
			for i, o := range seen.All {
				moves := chain.WarmUpMoves + chain.Moves*(i+1)/len(seen.All)
				f.curve = append(f.curve, validated{epoch: epoch(d.Steps + moves), nlpd: o.NLPD, accuracy: o.Accuracy})
			}
			f.epochs = epoch(d.Steps + chain.WarmUpMoves + chain.Moves)
		}
	}
	if d := fit.Details[*particles.Details](result); d != nil {
		f.epochs = epoch(d.Steps)
		for _, v := range d.Validated {
			f.curve = append(f.curve, validated{epoch: epoch(v.Step), nlpd: v.NLPD})
		}
		var ess []float64
		for _, r := range d.Trace {
			ess = append(ess, r.ESS)
		}
		f.ess = stat.Mean(ess, nil)
	}
	for i := range f.curve {
		for _, o := range seen.All {
			if !draws && epoch(o.Step) == f.curve[i].epoch {
				f.curve[i].accuracy = o.Accuracy
			}
		}
	}
	return f, nil
}

// halves divide epochs into those of a training and chains on mini-batches, whose draws, at most ten, are spread over
// the second half of their moves. There are one epoch of training and two moves at least.
func halves(epochs, perEpoch int) (training int, chains mcmc.Chains) {
	training = max(1, epochs/2)
	moves := max(2, (epochs-training)*perEpoch)
	chains.Draws = min(10, moves-moves/2)
	chains.Thin = (moves - moves/2) / chains.Draws
	chains.WarmUp = moves - chains.Draws*chains.Thin
	return training, chains
}

// observations are the scores of the posteriors along a fit, in a file, so that those before an interruption stay.
type observations struct {
	ctx      context.Context
	parts    dataset.Parts
	accuracy bool   // of a classification
	file     string // empty: none
	All      []observed
}

// observed is a posterior's scores on the validation part after a step.
type observed struct {
	Step           int
	NLPD, Accuracy float64
}

// read reads the observations before an interruption.
func (o *observations) read() error {
	text, err := os.ReadFile(o.file)
	if errors.Is(err, os.ErrNotExist) || o.file == "" {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o.All)
	}
	if err != nil {
		return fmt.Errorf("study: what is left of an interrupted fit: %w", err)
	}
	return nil
}

// add scores a posterior. A step that was observed before the interruption is observed again where the checkpoint is
// older.
func (o *observations) add(step int, now *bayes.Posterior) (err error) {
	defer caught(&err)
	prediction, nlpd, err := validate(o.ctx, now, o.parts)
	failOn(err)
	one := observed{Step: step, NLPD: nlpd}
	if o.accuracy {
		one.Accuracy = must(metric.Accuracy(prediction, o.parts.Validation.Y)).Value
	}
	o.All = append(slices.DeleteFunc(o.All, func(other observed) bool { return other.Step >= step }), one)
	if o.file == "" {
		return nil
	}
	return renameio.WriteFile(o.file, must(json.Marshal(o.All)), 0o644)
}

// sample replaces a trained posterior by exact draws at its psi.
func (b *bench) sample(ctx context.Context, f *fitted, a attempt, train *dataset.Dataset, seed uint64) error {
	begun := time.Now()
	result, err := fit.Fit(ctx, bayes.Model{}, fit.From{Trained: f.posterior, Method: *a.Chains},
		dataset.Parts{Train: train}, run.Settings{Seed: seed})
	if err != nil {
		return err
	}
	f.posterior, f.curve = result.Posterior, nil
	f.seconds += time.Since(begun).Seconds()
	return nil
}

// tell reports a fit's progress, at first and then every ten seconds.
func (b *bench) tell(format string, args ...any) {
	if time.Since(b.said) > 10*time.Second {
		b.said = time.Now()
		b.say(format, args...)
	}
}

// stepOf is a training's progress in words. Before the first validation there is no best one.
func stepOf(p run.Progress) string {
	text := strings.TrimPrefix(fmt.Sprintf("%s, step %d of %d", p.Stage, p.Step, p.Steps), ", ")
	if best := p.Score(fit.BestScore); !math.IsNaN(best) {
		text += fmt.Sprintf(", best validation NLPD %.4f", best)
	}
	return text
}

// withSettings sets those of the settings that the method embeds, such as its kind of training.
func withSettings[M any](method M, settings ...any) M {
	v := reflect.New(reflect.TypeOf(method)).Elem()
	v.Set(reflect.ValueOf(method))
	for _, s := range settings {
		of := reflect.TypeOf(s)
		if f, has := v.Type().FieldByName(of.Name()); has && f.Type == of {
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(s))
		}
	}
	return v.Interface().(M)
}
