package auto

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// Method is an ensemble with chains, see the package. Its details are a *Details, and a *train.Details of the last
// fold. Settings.Observe gets the posterior of the folds so far.
type Method struct {
	// Seconds is the budget, compilation included; default 60. Each fold has its share; the chains get what training
	// leaves of it, and are not begun where that would not do for a draw. Where the budget cuts training or chains, the
	// result depends on the machine's speed.
	Seconds float64

	plan plan
}

var (
	_ fit.Method = Method{}
	_ fit.Taker  = Method{}
)

// plan are the method's constants.
type plan struct {
	folds, members      int            // of all folds
	manyRows            int            // from here on one split
	passed              int            // rows that the first training passes at most, of tables of 3333 rows and more
	epochs              int            // at most; the rate falls along half a cosine
	warmUp, draws, thin int            // of each chain
	clock               *time.Duration // in place of the time, for tests
}

var usual = plan{
	folds: 5, members: 20, manyRows: 20_000, passed: 2_000_000, epochs: 600, warmUp: 500, draws: 50, thin: 20,
}

const (
	rate     = .01
	patience = 100 // validations, one an epoch
	enough   = .01 // nats a row that a round of the chains must gain for another

	// energyVariance is a twenty-fifth of what the authors of MCLMC have, for steps of .58 of theirs: on most tables that
	// chose the defaults the bias of longer steps costs more than they save.
	energyVariance = 2e-5

	forAllRows = 3 // folds' shares of the time that are left for the chains on all rows
)

var kernel = mcmc.MCLMC{EnergyVariance: energyVariance}

// Title implements fit.Method.
func (Method) Title() string { return "cross-validated ensemble with microcanonical chains" }

// Takes implements fit.Taker: every row trains some networks.
func (Method) Takes() fit.Takes { return fit.Takes{Validation: true} }

// MarshalJSON writes the setting and the constants, by which a checkpoint knows them.
func (m Method) MarshalJSON() ([]byte, error) {
	p := m.plan
	return json.Marshal(map[string]any{
		"seconds": m.Seconds, "folds": p.folds, "members": p.members, "many_rows": p.manyRows, "passed": p.passed,
		"epochs": p.epochs, "warm_up": p.warmUp, "draws": p.draws, "thin": p.thin,
		"energy_variance": energyVariance,
	})
}

// Prepare implements fit.Method.
func (m Method) Prepare(j *fit.Job) (fit.Method, error) {
	if err := limits.Fill("auto: Method",
		limits.Float("Seconds", &m.Seconds).Zero("60").Positive(),
	); err != nil {
		return nil, err
	}
	m.Seconds, m.plan = cmp.Or(m.Seconds, 60), cmp.Or(m.plan, usual)
	rows := allRows(j)
	if least := 2 * m.plan.folds; rows < least {
		return nil, fmt.Errorf("auto: there are %d rows to train on: cross-validation needs at least %d; take mcmc.Chains "+
			"with a small network, which needs no validation", rows, least)
	}
	return m, nil
}

// fold is one fold: its rows, and its parts of the mixture, nil if there are none.
type fold struct {
	parts    dataset.Parts
	networks *particles // trained by maximum likelihood
	shrunk   *particles // trained with the prior
	sampled  *particles // by the chains
	training *fit.Result
	cut      string        // where the budget ended the training, such as "epoch 3 of 20"
	doubts   fit.Doubts    // of its trainings and chains
	weights  []float64     // of the rows of the validation part; nil: all are alike
	last     []float64     // the last draw of each chain, [chains, D]
	thin     int           // the moves between two draws of these chains
	step     time.Duration // what a move of all of them took
}

// Run implements fit.Method.
func (m Method) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	j, err := j.Named()
	if err != nil {
		return nil, err
	}
	if j.Replace { // what the files have counts, unless they are of another run
		kept := *j
		kept.Replace = false
		result, err := m.Run(ctx, &kept)
		if !errors.Is(err, run.ErrOtherRun) && !errors.Is(err, tensorfile.ErrDamaged) {
			return result, err
		}
	}
	parts, err := m.split(j)
	if err != nil {
		return nil, err
	}
	c := &course{Method: m, job: j, details: &Details{Folds: len(parts)}}
	c.ended = c.marked() && spent(onFold(j, parts[0], 0).Settings) > 0
	whole, err := c.fitFolds(ctx, parts)
	if len(c.folds) == 0 {
		return nil, err
	}
	var together *particles
	if whole {
		left := c.seconds() - c.elapsed(j)
		if c.ended {
			left = 0
		}
		if together, err = c.sampleAll(ctx, j, c.folds, left, c.details); err != nil && !ofFiles(err) {
			c.doubts.If(true, "not sampled", "the posterior given all rows was not sampled: %v", err)
			err = nil
		}
	}
	result, failed := c.result(ctx, together, err)
	if err == nil && ctx.Err() == nil {
		err = c.mark()
	}
	return result, errors.Join(err, failed)
}

// course is a fit on its way.
type course struct {
	Method
	job     *fit.Job
	folds   []*fold // that count
	details *Details
	doubts  fit.Doubts
	ended   bool // in an earlier session: it is read, and nothing is added
	took    times
}

// times are those that Details tells of: in training and in sampling, firstDraw and left.
type times [4]time.Duration

// mark leaves a file beside the checkpoints of a fit that has come to its end, with its times. What of the budget was
// left for a stage is not known to the millisecond when they are read again, and chains would go on from where it ended
// them.
func (c *course) mark() error {
	file := c.job.Within(endedStage).Checkpoint
	if file == "" || c.ended {
		return nil
	}
	d := c.details
	text, err := json.Marshal(times{d.training, d.sampling, d.firstDraw, d.left})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// marked says whether there is that file, which it removes where another run may have left it.
func (c *course) marked() bool {
	at := c.job.Within(endedStage)
	if at.Replace {
		_ = os.Remove(at.Checkpoint) // most often there is none
	}
	text, err := os.ReadFile(at.Checkpoint)
	_ = json.Unmarshal(text, &c.took) // an older version left it empty
	return at.Checkpoint != "" && err == nil
}

// fitFolds trains and samples the folds one after another. It says whether all count; where the budget or the context
// ends one of them before it has networks, those before it do. Errors are of files or of Observe, or leave no fold.
func (c *course) fitFolds(ctx context.Context, parts []dataset.Parts) (whole bool, err error) {
	for f, part := range parts {
		one, err := c.fold(ctx, onFold(c.job, part, f), part, c.share(parts, f), c.details)
		cut := one == nil || ctx.Err() != nil && one.training.Status == run.Cancelled
		switch {
		case cut && len(c.folds) > 0 && !ofFiles(err): // what was begun would count as much as what was done
			why := err
			if ctx.Err() != nil {
				why = errors.New("the fit was stopped in the training of the next")
			}
			c.doubts.If(true, "folds", "%d of %d folds count: %v", f, len(parts), why)
			return false, nil
		case one == nil:
			return false, err
		}
		c.folds = append(c.folds, one)
		c.details.weigh(c.folds)
		if ofFiles(err) {
			return false, err
		}
		c.doubts.If(err != nil, "not sampled", "fold %d was not sampled: %v", f+1, err)
		if err := c.observe(ctx, f+1); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, nil
		}
	}
	return true, nil
}

// share is the time of a fold, of those that are left and the chains on all rows; 0 if an earlier session has left it.
func (c *course) share(parts []dataset.Parts, f int) time.Duration {
	if c.passed(parts, f) {
		return 0
	}
	folds := len(parts) - f
	// Where the folds before have no draws there are none to go on from.
	if len(c.folds) == 0 || !c.details.useless && !math.IsNaN(c.details.Draws.Value) {
		folds += forAllRows
	}
	return (c.seconds() - c.elapsed(c.job)) / time.Duration(folds)
}

// passed says whether an earlier session has left a fold for what comes next, so that nothing is added to what it had:
// where chains went on, those of all rows would begin elsewhere.
func (c *course) passed(parts []dataset.Parts, f int) bool {
	if c.ended {
		return true
	}
	next := c.job.Within(allRowsStage)
	if f+1 < len(parts) {
		next = onFold(c.job, parts[f+1], f+1).Settings
	}
	return spent(next) > 0
}

// observe shows the posterior of so many folds.
func (c *course) observe(ctx context.Context, folds int) error {
	if c.job.Observe == nil {
		return nil
	}
	result, err := c.result(ctx, nil, nil)
	if err != nil {
		return err
	}
	return c.job.Observe(folds, result.Posterior)
}

// ofFiles says whether an error is of a checkpoint or the disk, and not of an algorithm on these data.
func ofFiles(err error) bool {
	var path *fs.PathError
	return errors.Is(err, run.ErrOtherRun) || errors.Is(err, run.ErrInUse) || errors.Is(err, tensorfile.ErrDamaged) ||
		errors.As(err, &path)
}

// within is the context of a stage with these settings that may take so long over all sessions. One that has had nearly
// all of it does not go on, so that a run that is resumed, or read again, finds what it had found.
func within(ctx context.Context, stage run.Settings, share time.Duration) (context.Context, context.CancelFunc) {
	left := share - spent(stage)
	if left < share/10 {
		left = 0
	}
	return context.WithTimeout(ctx, left)
}

// spent is the time that a stage has taken in earlier sessions; 0 if it was not begun.
func spent(stage run.Settings) time.Duration {
	if stage.Replace { // the checkpoint may be another run's
		return 0
	}
	return run.Spent(stage.Checkpoint)
}

// patiently is the context of the first training, which ends between two steps: at the limit, or later where
// compilation took much of it, and not before an epoch is made. Where that would take longer than the budget, or than
// the first step if that was longer, once more, it ends within the epoch, so that there is always something.
func (m Method) patiently(
	ctx context.Context, j *fit.Job, limit time.Duration, details *Details,
) (context.Context, context.CancelFunc) {
	begun, before := m.elapsed(j), spent(j.Settings)
	epoch, _ := epochSteps(j.Rows())
	ctx, cancel := context.WithCancelCause(ctx)
	var end, most time.Duration
	watched := run.Watched(ctx, func(p run.Progress, _ run.Machine) {
		now := m.elapsed(j) + before
		if most == 0 {
			most = 2 * max(now, m.seconds())
		}
		if end == 0 && p.Step >= epoch { // all is compiled, the validation too
			details.compiled, end = now-begun, begun+limit
			if details.Folds > 1 {
				end = max(end, now+(m.seconds()-now)/time.Duration(details.Folds+forAllRows))
			}
		}
		if end > 0 && now >= end || end == 0 && now >= most {
			cancel(context.DeadlineExceeded)
		}
	})
	return watched, func() { cancel(nil) }
}

// elapsed is the time of the call so far, or that of a test's clock.
func (m Method) elapsed(j *fit.Job) time.Duration {
	if m.plan.clock != nil {
		return *m.plan.clock
	}
	return j.Elapsed()
}

func (m Method) seconds() time.Duration { return time.Duration(m.Seconds * float64(time.Second)) }

// allRows are the rows of the training and the validation part.
func allRows(j *fit.Job) int {
	rows := j.Parts.Train.Rows()
	if v := j.Parts.Validation; v != nil {
		rows += v.Rows()
	}
	return rows
}

// split are the folds, or the one split of many rows.
func (m Method) split(j *fit.Job) ([]dataset.Parts, error) {
	rows := allRows(j)
	if rows < m.plan.manyRows {
		all, err := j.Parts.Joined()
		if err != nil {
			return nil, err
		}
		parts, err := j.Parts.Folds(min(m.plan.folds, all.Blocks()), j.Seed)
		if err != nil {
			return nil, err
		}
		// A fold has no rows to leave out where each is the only one of its class, and cannot leave out a group with all of
		// a class.
		parts = slices.DeleteFunc(parts, func(p dataset.Parts) bool {
			return p.Validation == nil || errors.Is(p.Validate(), dataset.ErrMissingClass)
		})
		if len(parts) == 0 {
			return nil, fmt.Errorf("auto: each class of the %d rows is in one row or group alone, so that none can be left out "+
				"to judge the others: join classes, or give more rows", rows)
		}
		for f, part := range parts {
			if err := part.Validate(); err != nil {
				return nil, fmt.Errorf("auto: fold %d: %w", f+1, err)
			}
		}
		return parts, level(parts)
	}
	if j.Parts.Validation != nil {
		return []dataset.Parts{j.Parts}, nil
	}
	parts, err := j.Parts.Train.SplitDistinct(dataset.Fractions{Train: .9, Validation: .1}, j.Seed)
	if err == nil {
		err = parts.Validate()
	}
	return []dataset.Parts{parts}, err
}

// level leaves out rows of the training parts that have some more than others, such as one, so that all folds share the
// compiled programs; none where that would be more than a tenth. It is never the only row of a class.
func level(folds []dataset.Parts) (err error) {
	least := folds[0].Train.Rows()
	for _, f := range folds {
		least = min(least, f.Train.Rows())
	}
	for i, f := range folds {
		n := f.Train.Rows()
		if n == least || n-least > n/10 {
			continue
		}
		rows := make([]int, n)
		count := map[float64]int{}
		for r := range rows {
			rows[r] = r
			count[f.Train.Y[r*len(f.Train.Y)/n]]++
		}
		for r := n - 1; r >= 0 && len(rows) > least; r-- {
			if y := f.Train.Y[r*len(f.Train.Y)/n]; f.Train.Task == dataset.Regression || count[y] > 1 {
				rows = slices.Delete(rows, r, r+1)
				count[y]--
			}
		}
		if folds[i].Train, err = f.Train.Subset(rows); err != nil {
			return err
		}
	}
	return nil
}

// onFold is the job with a fold's rows, and the scalers of the whole.
func onFold(j *fit.Job, parts dataset.Parts, f int) *fit.Job {
	one, data := j.Part(fmt.Sprintf("fold %d", f+1)), *j.Data
	data.Parts = parts
	one.Data = &data
	one.Seed = seedFor(j.Seed, fmt.Sprintf("fold %d", f+1))
	one.Observe = nil
	return one
}

// seedFor is the seed of a purpose, such as a fold, whose random numbers no other purpose has, nor another seed's.
func seedFor(seed uint64, purpose string) uint64 {
	words := random.KeyOf(seed).Named(purpose).Words()
	return uint64(words[0]) | uint64(words[1])<<32
}

// fold trains and samples one fold within its share of the time. Where the networks are trained and the chains fail it
// returns both the fold and the error.
func (m Method) fold(
	ctx context.Context, j *fit.Job, parts dataset.Parts, share time.Duration, details *Details,
) (*fold, error) {
	one := &fold{parts: parts, weights: parts.Validation.Weights}
	begun := m.elapsed(j)
	// Over all sessions.
	since := func(then time.Duration) time.Duration { return m.elapsed(j) - then }
	if details.Scored == 0 && share > 0 { // the first fold compiles for all
		share += (m.seconds() - m.elapsed(j)) / 4
	}
	limit := share // of training, where there will be no draws
	if details.Folds == 1 && share > 0 {
		limit = m.seconds() - begun
	}
	passes := m.passes(j.Rows())
	if err := m.trainFirst(ctx, j, one, limit, passes, details); err != nil {
		return nil, err
	}
	took, d := since(begun), fit.Details[*train.Details](one.training)
	details.Scored++
	// What comes after a training that the context has ended would begin at networks that it has not: none of it is
	// begun, so that the run can go on from its files.
	stopped := func() bool {
		if ctx.Err() != nil {
			details.training += since(begun)
		}
		return ctx.Err() != nil
	}
	if stopped() {
		return one, nil
	}
	pure, steps := took, d.Steps // without compilation, and the first epoch
	if details.Scored == 1 && d.Steps > d.PerEpoch {
		pure, steps = max(0, took-details.compiled), d.Steps-d.PerEpoch
	}
	// A step of MCLMC takes two gradients of all rows. As measured, one takes a fifth to a third of an epoch's time.
	step := details.step
	if step == 0 {
		step = pure * time.Duration(d.PerEpoch) / time.Duration(max(1, steps)) / 3 * 2
	}
	details.firstDraw = step * time.Duration(m.plan.warmUp+m.plan.thin)
	if details.model == nil { // these chains are compiled first, which takes about as long as the training's did
		details.firstDraw += details.compiled
	}
	sampling := j.Within("sampling 1")
	draws := func() bool {
		return !details.useless && (details.firstDraw <= share-since(begun) || spent(sampling) > 0)
	}
	room := share
	if !draws() {
		room = limit
	}
	if part := j.Part("with the prior"); 2*took < room || spent(part.Settings) > 0 {
		part.Seed = seedFor(j.Seed, "with the prior")
		again, end := within(ctx, part.Settings, room-took)
		err := one.train(again, part, m.ensemble(j, details, passes, true))
		end()
		if ofFiles(err) {
			return one, err
		} // else the prior is none that a point can be trained with
		if stopped() {
			return one, nil
		}
	}
	if !draws() {
		left, likelihood := limit-since(begun), one.best() == one.networks
		var err error
		longer := m.longer(j, passes, pure, left)
		if one.training.Status == run.Completed && longer > passes {
			part := ofPasses(j, longer)
			again, end := within(ctx, part.Settings, left)
			defer end()
			err = one.train(again, part, m.ensemble(j, details, longer, !likelihood))
		}
		details.training += since(begun)
		return one, err
	}
	details.training += since(begun)
	from := m.elapsed(j)
	defer func() { details.sampling += since(from) }()
	if details.model == nil {
		var err error
		if details.model, err = chainsModel(j, one.best().Posterior); err != nil {
			return one, err
		}
	}
	err := one.sample(ctx, j, m.plan, *details.model, func() time.Duration { return share - since(begun) })
	details.step = cmp.Or(one.step, details.step)
	return one, err
}

// trainFirst trains a fold's networks by maximum likelihood, within the limit. Of the first fold there are always some,
// unless the context ends before an epoch has; another one without an epoch is an error.
func (m Method) trainFirst(
	ctx context.Context, j *fit.Job, one *fold, limit time.Duration, passes int, details *Details,
) error {
	first, before := details.Scored == 0, spent(j.Settings)
	networks := m.ensemble(j, details, passes, false)
	try := func(ctx context.Context, end context.CancelFunc) (*train.Details, error) {
		defer end()
		err := one.train(ctx, j, networks)
		return fit.Details[*train.Details](one.training), err
	}
	var d *train.Details
	var err error
	if !first || before > 0 && limit-before < limit/10 { // it does not go on, as far as it has come
		d, err = try(within(ctx, j.Settings, limit))
	}
	if first && err == nil && (d == nil || d.Steps == 0) {
		d, err = try(m.patiently(ctx, j, limit, details))
	}
	if err != nil {
		return err
	}
	switch fold := details.Scored + 1; {
	case len(d.Validated) > 0 || first && d.Steps > 0 && ctx.Err() == nil:
		if one.training.Status == run.Cancelled && ctx.Err() == nil {
			one.cut = fmt.Sprintf("epoch %d of %d", (d.Steps+d.PerEpoch-1)/d.PerEpoch, passes)
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("auto: stopped after %d steps of the training of fold %d of %d, before its first epoch ended: "+
			"there is nothing yet: %w", d.Steps, fold, details.Folds, context.Cause(ctx))
	}
	return fmt.Errorf("the budget of %v s left the others less than an epoch of training: take more seconds",
		m.Seconds)
}

// train trains networks, which take the place of those that the fold has of the kind, if any, if the left out rows have
// more density by them.
func (o *fold) train(ctx context.Context, j *fit.Job, networks baseline.Ensemble) error {
	result, err := j.RunFirst(ctx, networks)
	if err != nil {
		return err
	}
	o.doubts = append(o.doubts, result.Doubts...)
	trained, err := judged(result.Posterior, o.parts.Validation)
	if err != nil {
		return err
	}
	of := &o.networks
	if !networks.Likelihood {
		of = &o.shrunk
	}
	if *of == nil && o.training != nil { // the first with the prior, whose curves are not shown
		*of = trained
	} else if *of == nil || o.score(trained) > o.score(*of) {
		*of, o.training = trained, result
	}
	return nil
}

// score is the mean log-density of the left out rows.
func (o *fold) score(p *particles) float64 { return mean(p.density, o.weights).Value }

// best are the networks of either kind by which the left out rows have more density.
func (o *fold) best() *particles {
	if o.shrunk != nil && o.score(o.shrunk) > o.score(o.networks) {
		return o.shrunk
	}
	return o.networks
}

// longer is the number of passes, as many times the given one, which took so long, as the time that is left bears; or
// that of an earlier session.
func (m Method) longer(j *fit.Job, passes int, took, left time.Duration) int {
	longer := passes
	for n := 2 * passes; n <= m.plan.epochs; n *= 2 {
		if time.Duration(n/passes)*took < left || spent(ofPasses(j, n).Settings) > 0 {
			longer = n
		}
	}
	return longer
}

// ofPasses is the stage of a longer training.
func ofPasses(j *fit.Job, passes int) *fit.Job { return j.Part(fmt.Sprintf("%d passes", passes)) }

// passes is the number of epochs of the first training, of so many rows.
func (m Method) passes(rows int) int { return min(m.plan.epochs, max(20, m.plan.passed/rows)) }

// epochSteps is the number of mini-batches of an epoch, and their size.
func epochSteps(rows int) (steps, batch int) {
	batch = min(rows, max(50, rows/100))
	return (rows + batch - 1) / batch, batch
}

// ensemble are the networks of a fold, with the prior or by maximum likelihood.
func (m Method) ensemble(j *fit.Job, details *Details, passes int, prior bool) baseline.Ensemble {
	steps, batch := epochSteps(j.Rows())
	return baseline.Ensemble{
		Members: max(2, m.plan.members/details.Folds), Likelihood: !prior, Training: train.Training{
			Epochs: passes, BatchSize: batch, Patience: patience,
			Optimiser: train.Adam{Schedule: train.Cosine(rate, passes*steps)},
		},
	}
}

// sample runs a chain from each network of the better kind, in rounds: each makes twice the steps of the one before,
// begun at its last draws, for as long as the left out rows gain by it and time is left. The best round is kept. Chains
// that the budget ends before they have a draw are no error.
func (o *fold) sample(
	ctx context.Context, j *fit.Job, of plan, model bayes.Model, left func() time.Duration,
) error {
	whole := *j
	var err error
	if whole.Data, err = j.With(model); err != nil {
		return err
	}
	draws, err := o.best().Draws()
	if err != nil {
		return err
	}
	chains := o.best().Particles()
	problem, err := whole.Density(chains)
	if err != nil {
		return err
	}
	problem.Start = draws.Phi
	method := mcmc.Chains{Kernel: kernel, Chains: chains, Draws: of.draws, Thin: of.thin, WarmUp: of.warmUp}
	for round := 1; ; round++ {
		name := fmt.Sprintf("sampling %d", round)
		limited, end := within(ctx, j.Within(name), left())
		result, err := runChains(limited, &whole, fit.Stage{
			Name: name, Problem: problem, Seed: uint64(round), Method: method,
		})
		end()
		if result == nil {
			return err
		}
		drawn, err := judged(result.Posterior, o.parts.Validation)
		if err != nil {
			return err
		}
		gained := math.Inf(1)
		if o.sampled != nil {
			gained = o.score(drawn) - o.score(o.sampled)
		}
		made := fit.Details[*mcmc.Details](result)
		o.doubts = append(o.doubts, undone(made)...)
		o.last, o.thin = nil, method.Thin
		o.step = made.Sampling / time.Duration(max(1, made.Moves))
		for chain := range chains {
			o.last = append(o.last, made.Draws.At(chain, made.Draws.PerChain-1)...)
		}
		if gained > 0 {
			o.sampled = drawn
		}
		if gained < enough || result.Status != run.Completed {
			return nil
		}
		problem.Start = compute.Floats(j.DType, o.last, chains, whole.Bound.D)
		method.Thin, method.WarmUp, method.Tuned = 2*method.Thin, mcmc.NoWarmUp, made.Tuned
	}
}

// The names of stages.
const (
	allRowsStage = "sampling all rows"
	endedStage   = "ended"
)

// sampleAll runs a chain on all rows from each last draw of the folds' chains, and sets details.AllRows. It is nil
// where draws have no weight, and where the time that is left bears none.
func (m Method) sampleAll(
	ctx context.Context, j *fit.Job, all []*fold, left time.Duration, details *Details,
) (*particles, error) {
	method := mcmc.Chains{Kernel: kernel, Draws: m.plan.draws, WarmUp: m.plan.warmUp}
	var start []float64
	for _, one := range all {
		start = append(start, one.last...)
		method.Thin = max(method.Thin, one.thin)
	}
	if details.Weight == 0 || len(start) == 0 {
		return nil, nil
	}
	begun := m.elapsed(j)
	defer func() { details.sampling += m.elapsed(j) - begun }()
	data, err := j.With(*details.model)
	if err != nil {
		return nil, err
	}
	if data.Parts.Train, err = j.Parts.Joined(); err != nil {
		return nil, err
	}
	data.Parts.Validation = nil
	whole := *j
	whole.Data, whole.Seed = data, seedFor(j.Seed, allRowsStage)
	method.Chains = len(start) / data.Bound.D
	// These are more chains than a fold has, on more rows, and are compiled first.
	each := float64(method.Chains*whole.Rows()) / float64(all[0].networks.Particles()*all[0].parts.Train.Rows())
	first := details.compiled + time.Duration(each*float64(details.step)*float64(method.WarmUp+method.Thin))
	if first > left && spent(j.Within(allRowsStage)) == 0 {
		return nil, nil
	}
	ctx, end := within(ctx, j.Within(allRowsStage), left)
	defer end()
	problem, err := whole.Density(method.Chains)
	if err != nil {
		return nil, err
	}
	problem.Start = compute.Floats(j.DType, start, method.Chains, data.Bound.D)
	result, err := runChains(ctx, &whole, fit.Stage{Name: allRowsStage, Problem: problem, Method: method})
	if result == nil {
		return nil, err
	}
	made := fit.Details[*mcmc.Details](result)
	together := &particles{Posterior: result.Posterior}
	details.AllRows, err = shareOfAllRows(all, made.Draws.PerChain, together.Particles(), method.Draws)
	details.doubts = undone(made)
	return together, err
}

// shareOfAllRows is the share that so many draws given all rows, perChain of each chain, have among all draws. Where
// they are fewer than planned, and the rows left out lose density when each fold's chains have as few, they join the
// folds' draws by their number; else they replace them.
func shareOfAllRows(all []*fold, perChain, draws, planned int) (float64, error) {
	if perChain >= planned {
		return 1, nil
	}
	lost, others := 0., 0
	for _, one := range all {
		if one.sampled == nil {
			continue
		}
		prediction, err := predict(one.sampled.Posterior, one.parts.Validation)
		if err != nil {
			return 0, err
		}
		chain := one.sampled.Particles() / one.sampled.Chains()
		weights := make([]float64, one.sampled.Particles()) // of the first draws of each chain
		for i := range weights {
			if i%chain < perChain {
				weights[i] = 1 / float64(one.sampled.Chains()*min(chain, perChain))
			}
		}
		prediction.Weights = weights
		few, err := prediction.LogDensity(one.parts.Validation.Y)
		if err != nil {
			return 0, err
		}
		lost += (one.score(one.sampled) - mean(few, one.weights).Value) * float64(len(few))
		others += one.sampled.Particles()
	}
	if !(lost > 1) { // nat, as for the weight of the draws
		return 1, nil
	}
	return float64(draws) / float64(draws+others), nil
}

// runChains is RunStage, but nil without an error where the budget ends the chains before they have a draw, and nil
// with every error.
func runChains(ctx context.Context, j *fit.Job, s fit.Stage) (*fit.Result, error) {
	result, err := j.RunStage(ctx, s)
	switch {
	case result == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return result, nil
}

// result has the networks and the draws as particles, by their weights. Draws given all rows, nil if there are none,
// take their share (Details.AllRows) from the folds' draws. The error is what has ended the fit, if any.
func (c *course) result(ctx context.Context, together *particles, ended error) (*fit.Result, error) {
	j, all, details, status := c.job, c.folds, c.details, run.Completed
	details.Scored, details.left = len(all), 0
	switch {
	case ended != nil:
		status = run.Stopped
	case ctx.Err() != nil:
		status = run.Cancelled
	default:
		details.left = max(0, c.seconds()-c.elapsed(j))
	}
	if c.ended && c.took != (times{}) {
		details.training, details.sampling, details.firstDraw, details.left = c.took[0], c.took[1], c.took[2], c.took[3]
	}
	whole := *j
	var err error
	if whole.Data, err = j.Whole(); err == nil && details.model != nil {
		whole.Data, err = j.With(*details.model)
	}
	if err != nil {
		return nil, err
	}
	left, err := newLeft(whole.Bound, all, details)
	if err != nil {
		return nil, err
	}
	var phi, logWeights []float64
	add := func(p *particles, weight float64) error {
		if p == nil || weight == 0 {
			return nil
		}
		draws, err := p.Draws()
		if err != nil {
			return err
		}
		values, err := compute.Float64s(draws.Phi)
		if err != nil {
			return err
		}
		phi = append(phi, values...)
		each := math.Log(weight) - math.Log(float64(p.Particles()))
		logWeights = append(logWeights, slices.Repeat([]float64{each}, p.Particles())...)
		return nil
	}
	result := &fit.Result{Status: status, Details: []any{details}}
	last, replaced := all[len(all)-1], 0.
	if together != nil {
		replaced = details.AllRows
	}
	for _, one := range all {
		weights := details.weights(one)
		if together != nil && one.sampled == nil { // the draws given all rows are for this fold, too
			weights[0], weights[1] = weights[0]*(1-details.Weight), weights[1]*(1-details.Weight)
		}
		err := errors.Join(add(one.networks, weights[0]), add(one.shrunk, weights[1]),
			add(one.sampled, weights[2]*(1-replaced)))
		if err != nil {
			return nil, err
		}
	}
	if together != nil {
		if err := add(together, replaced*details.Weight*float64(len(all))); err != nil {
			return nil, err
		}
	}
	j.Choose("weight of the draws", details.Weight)
	j.Choose("weight of the prior among the networks", details.Prior)
	covered, rows := 0., 0
	details.Noise = 1
	if left != nil {
		if covered, rows, err = left.covered(); err != nil {
			return nil, err
		}
		left.widen(phi, whole.Bound.D)
		details.Noise = math.Exp(left.t)
		j.Choose("scale of the noise", details.Noise)
	}
	result.Doubts = append(c.doubts, c.doubtsOf(all, details, covered, rows)...)
	result.Curves = last.training.Curves
	result.Details = append(result.Details, last.training.Details...)
	drawn := bayes.Draws{Phi: compute.Floats(j.DType, phi, len(logWeights), whole.Bound.D), LogWeights: logWeights}
	approximation := "maxima from several starts"
	if details.Weight > 0 {
		approximation += ", and draws by an unadjusted kernel begun at each, weighed by validation"
	}
	if whole.Parts.Validation != nil { // whose rows were trained on, too
		data := *whole.Data
		if data.Parts.Train, err = j.Parts.Joined(); err != nil {
			return nil, err
		}
		data.Parts.Validation = nil
		whole.Data = &data
	}
	leftOut := details.leftOut(all)
	if left != nil {
		leftOut.Value -= left.gain
	}
	drawn.Diagnostics = map[string]float64{bayes.LeftOut: leftOut.Value, bayes.LeftOutErr: leftOut.SamplingStdErr}
	result.Posterior, err = whole.PosteriorOf(drawn, bayes.Provenance{
		Status: string(result.Status), Approximation: approximation,
	})
	return result, err
}
