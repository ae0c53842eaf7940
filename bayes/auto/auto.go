package auto

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// Method is the default method, see the package. Its details are a *Details, and a *train.Details of the last fold.
// Settings.Observe gets the posterior of the folds so far.
type Method struct {
	// Seconds is the budget, compilation included; default 60. Each fold has its share; the chains get what training
	// leaves of it, and are not begun where that would not do for a draw. Where the budget cuts training or chains, the
	// result depends on the machine's speed.
	Seconds float64

	plan plan
}

func init() { fit.SetDefault(Method{}) }

var (
	_ fit.Method         = Method{}
	_ fit.UsesValidation = Method{}
)

// plan are the method's constants.
type plan struct {
	folds, members      int // of all folds
	manyRows            int // from here on one split
	passed              int // rows that the first training passes at most, of tables of 3333 rows and more
	epochs              int // at most; the rate falls along half a cosine
	warmUp, draws, thin int // of each chain
}

var usual = plan{
	folds: 5, members: 20, manyRows: 20_000, passed: 2_000_000, epochs: 600, warmUp: 500, draws: 50, thin: 20,
}

const (
	rate     = .01
	patience = 100 // validations, one an epoch
	enough   = .01 // nats a row that a round of the chains must gain for another

	// energyVariance makes steps of .58 of those of the authors of MCLMC, who have 5e-4. On the tables that chose the
	// defaults, in 60 s, NLPD fell by .07, .05 and .02 nats on epa with three seeds, and by .00 to .02 on cars,
	// deliveries, hpc, diabetes and nhefs. On meats the longer steps' draws were worse than the networks by 1.0 to 1.3
	// nats on the rows left out, and had no weight; the shorter ones' gained .14 and .04 there, and .56, -.33 and .12 on
	// the 43 test rows. 1e-4 lost .01 to .04 on epa, 4e-6 .04. Steps that are longer still were worse on epa and cars,
	// and as long ones first and short ones after they gained .004 on deliveries and lost .06 on epa. Where chains are
	// still on their way, as on airfoil, short steps cost some .02 nats.
	energyVariance = 2e-5

	forAllRows = 3 // folds' shares of the time that are left for the chains on all rows
)

var kernel = mcmc.MCLMC{EnergyVariance: energyVariance}

// Title implements fit.Method.
func (Method) Title() string { return "cross-validated ensemble with microcanonical chains" }

// UsesValidation implements fit.UsesValidation: every row trains some networks.
func (Method) UsesValidation() {}

// MarshalJSON writes the setting and the constants, by which a checkpoint knows them.
func (m Method) MarshalJSON() ([]byte, error) {
	p := m.plan
	return json.Marshal(map[string]any{
		"seconds": m.Seconds, "folds": p.folds, "members": p.members, "many_rows": p.manyRows, "passed": p.passed,
		"epochs": p.epochs, "warm_up": p.warmUp, "draws": p.draws, "thin": p.thin, "energy_variance": energyVariance,
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

// fold is one fold: its rows, and the posteriors of the networks and of the chains, nil if there are none.
type fold struct {
	parts             dataset.Parts
	networks, sampled *bayes.Posterior
	training          *fit.Result
	weights           []float64 // of the rows of the validation part; nil: all are alike
	byNetworks        []float64 // log-density of each of them
	bySampled         []float64
	last              []float64     // the last draw of each chain, [chains, D]
	thin              int           // the moves between two draws of these chains
	step              time.Duration // what a move of all of them took
}

// Run implements fit.Method.
func (m Method) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	parts, err := m.split(j)
	if err != nil {
		return nil, err
	}
	details := &Details{Folds: len(parts)}
	var all []*fold
	var warnings []string
	finish := func(together *bayes.Posterior) (*fit.Result, error) {
		status := run.Completed
		if ctx.Err() != nil {
			status = run.Cancelled
		}
		result, err := m.result(j, all, together, details, status)
		if err != nil {
			return nil, err
		}
		result.Warnings = slices.Concat(warnings, result.Warnings)
		return result, nil
	}
	stopped := func(err error) (*fit.Result, error) {
		result, failed := finish(nil)
		return result, errors.Join(err, failed)
	}
	for f, part := range parts {
		left := len(parts) - f
		if f == 0 || !math.IsNaN(details.Draws.Value) { // else there will be no draws to go on from
			left += forAllRows
		}
		share := (m.seconds() - j.Elapsed()) / time.Duration(left)
		one, err := m.fold(ctx, onFold(j, part, f), part, share, details)
		cut := one == nil || ctx.Err() != nil && one.training.Status == run.Cancelled
		switch {
		case cut && len(all) > 0 && !ofFiles(err): // what was begun would count as much as what was done
			warnings = append(warnings, fmt.Sprintf("%d of %d folds count: %v", f, len(parts),
				cmp.Or(err, context.Cause(ctx))))
			return finish(nil)
		case one == nil && len(all) == 0:
			return nil, err
		case one == nil:
			return stopped(err)
		}
		if ofFiles(err) {
			all = append(all, one)
			details.weigh(all)
			return stopped(err)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("fold %d was not sampled: %v", f+1, err))
		}
		all = append(all, one)
		details.weigh(all)
		if j.Observe != nil {
			result, err := finish(nil)
			if err != nil {
				return nil, err
			}
			if err := j.Observe(f+1, result.Posterior); err != nil {
				result.Status = run.Stopped
				return result, err
			}
		}
		if ctx.Err() != nil {
			return finish(nil)
		}
	}
	together, err := m.sampleAll(ctx, j, all, details)
	if ofFiles(err) {
		return stopped(err)
	}
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("the posterior given all rows was not sampled: %v", err))
	}
	details.AllRows = together != nil
	return finish(together)
}

// ofFiles says whether an error is of a checkpoint or the disk, and not of an algorithm on these data.
func ofFiles(err error) bool {
	var path *fs.PathError
	return errors.Is(err, run.ErrOtherRun) || errors.Is(err, run.ErrInUse) || errors.As(err, &path)
}

// within is the context of a stage with these settings that may take so long over all sessions. One that has had nearly
// all of it does not go on, so that a run that is resumed, or read again, finds what it had found.
func within(ctx context.Context, stage run.Settings, share time.Duration) (context.Context, context.CancelFunc) {
	left := share
	if !stage.Replace { // else the checkpoint may be another run's
		left -= run.Spent(stage.Checkpoint)
	}
	if left < share/10 {
		left = 0
	}
	return context.WithTimeout(ctx, left)
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
		parts, err := j.Parts.FoldsDistinct(min(m.plan.folds, all.Blocks()), j.Seed)
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
	one.Seed += uint64(f)
	one.Observe = nil
	return one
}

// fold trains and samples one fold within its share of the time. Where the networks are trained and the chains fail it
// returns both the fold and the error.
func (m Method) fold(
	ctx context.Context, j *fit.Job, parts dataset.Parts, share time.Duration, details *Details,
) (*fold, error) {
	one := &fold{parts: parts, weights: parts.Validation.Weights}
	begun := j.Elapsed()
	// Over all sessions.
	since := func(then time.Duration) time.Duration { return j.Elapsed() - then }
	if details.Scored == 0 { // the first fold compiles for all
		share += (m.seconds() - j.Elapsed()) / 4
	}
	trained, end := within(ctx, j.Settings, share)
	defer end()
	passes := m.passes(j.Rows())
	if _, err := one.train(trained, j, m.ensemble(j, details, passes)); err != nil {
		return nil, err
	}
	d := fit.Details[*train.Details](one.training)
	if err := ctx.Err(); len(d.Validated) == 0 && err != nil {
		return nil, fmt.Errorf("auto: stopped after %d steps of the training of fold %d of %d, before its first epoch "+
			"ended: there is nothing yet: %w", d.Steps, details.Scored+1, details.Folds, context.Cause(ctx))
	} else if len(d.Validated) == 0 {
		return nil, fmt.Errorf("auto: the budget of %v s ended after %d steps of the training of fold %d of %d, before its "+
			"first epoch did: take more Method.Seconds, or a smaller network: %w", m.Seconds, d.Steps, details.Scored+1,
			details.Folds, context.DeadlineExceeded)
	}
	spent := since(begun)
	if details.Folds == 1 && 2*spent < share { // of many rows left out, by which it can be told
		part := j.Part("with the prior")
		again, end := within(ctx, part.Settings, share-spent)
		defer end()
		var err error
		details.byPrior = true
		if details.byPrior, err = one.train(again, part, m.ensemble(j, details, passes)); ofFiles(err) {
			return one, err
		} // else the prior is none that a point can be trained with, or the budget ended
	}
	details.Scored++
	trainedIn := since(begun)
	// A step of MCLMC takes two gradients of all rows. As measured, one takes a fifth to a third of an epoch's time.
	step := details.step
	if step == 0 {
		step = spent * time.Duration(d.PerEpoch) / time.Duration(max(1, d.Steps)) / 3 * 2
	}
	details.FirstDraw = step * time.Duration(m.plan.warmUp+m.plan.thin)
	if left := share - trainedIn; details.FirstDraw > left {
		if details.Folds == 1 { // nothing comes after it
			left = m.seconds() - j.Elapsed()
		}
		var err error
		if longer := m.longer(passes, spent, left); one.training.Status == run.Completed && longer > passes {
			part := j.Part(fmt.Sprintf("%d passes", longer))
			again, end := within(ctx, part.Settings, left)
			defer end()
			_, err = one.train(again, part, m.ensemble(j, details, longer))
		}
		details.Training += since(begun)
		return one, err
	}
	details.Training += trainedIn
	sampling := j.Elapsed()
	defer func() { details.Sampling += since(sampling) }()
	if details.model == nil {
		var err error
		if details.model, err = chainsModel(j, one.networks); err != nil {
			return one, err
		}
	}
	err := one.sample(ctx, j, m.plan, *details.model, func() time.Duration { return share - since(begun) })
	details.step = cmp.Or(one.step, details.step)
	return one, err
}

// train trains the fold's networks, which take the place of those that it has, if any, if the left out rows have more
// density by them, and says so.
func (o *fold) train(ctx context.Context, j *fit.Job, networks baseline.Ensemble) (better bool, err error) {
	result, err := j.RunFirst(ctx, networks)
	if err != nil {
		return false, err
	}
	density, err := densities(result.Posterior, o.parts.Validation)
	if err != nil {
		return false, err
	}
	if o.networks != nil && !(mean(density, o.weights).Value > mean(o.byNetworks, o.weights).Value) {
		return false, nil
	}
	o.training, o.networks, o.byNetworks = result, result.Posterior, density
	return true, nil
}

// longer is the number of passes, as many times the given one, which took so long, as the time that is left bears.
func (m Method) longer(passes int, spent, left time.Duration) int {
	longer := passes
	for 2*longer <= m.plan.epochs && time.Duration(2*longer/passes)*spent < left {
		longer *= 2
	}
	return longer
}

// passes is the number of epochs of the first training, of so many rows.
func (m Method) passes(rows int) int { return min(m.plan.epochs, max(20, m.plan.passed/rows)) }

// ensemble are the networks of a fold.
func (m Method) ensemble(j *fit.Job, details *Details, passes int) baseline.Ensemble {
	rows := j.Rows()
	batch := min(rows, max(50, rows/100))
	steps := passes * ((rows + batch - 1) / batch)
	return baseline.Ensemble{
		Members: max(2, m.plan.members/details.Folds), Likelihood: !details.byPrior, Training: train.Training{
			Epochs: passes, BatchSize: batch, Patience: patience,
			Optimiser: train.Adam{Schedule: train.Cosine(rate, steps)},
		},
	}
}

// sample runs a chain from each network, in rounds: each makes twice the steps of the one before, begun at its last
// draws, for as long as the left out rows gain by it and time is left. The best round is kept. Chains that the budget
// ends before they have a draw are no error.
func (o *fold) sample(
	ctx context.Context, j *fit.Job, of plan, model bayes.Model, left func() time.Duration,
) error {
	whole := *j
	var err error
	if whole.Data, err = j.With(model); err != nil {
		return err
	}
	draws, err := o.networks.Draws()
	if err != nil {
		return err
	}
	chains := o.networks.Particles()
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
		density, err := densities(result.Posterior, o.parts.Validation)
		if err != nil {
			return err
		}
		gained := math.Inf(1)
		if o.sampled != nil {
			gained = mean(density, o.weights).Value - mean(o.bySampled, o.weights).Value
		}
		made := fit.Details[*mcmc.Details](result)
		o.last, o.thin = nil, method.Thin
		o.step = made.Sampling / time.Duration(max(1, made.Moves))
		for chain := range chains {
			o.last = append(o.last, made.Draws.At(chain, made.Draws.PerChain-1)...)
		}
		if gained > 0 {
			o.sampled, o.bySampled = result.Posterior, density
		}
		if gained < enough || result.Status != run.Completed {
			return nil
		}
		problem.Start = compute.Floats(j.DType, o.last, chains, whole.Bound.D)
		method.Thin, method.WarmUp, method.Tuned = 2*method.Thin, mcmc.NoWarmUp, made.Tuned
	}
}

// sampleAll runs a chain on all rows from each last draw of the folds' chains. It is nil where draws have no weight,
// and where the budget leaves none.
func (m Method) sampleAll(ctx context.Context, j *fit.Job, all []*fold, details *Details) (*bayes.Posterior, error) {
	method := mcmc.Chains{Kernel: kernel, Draws: m.plan.draws, WarmUp: m.plan.warmUp}
	var start []float64
	for _, one := range all {
		start = append(start, one.last...)
		method.Thin = max(method.Thin, one.thin)
	}
	if details.Weight == 0 || len(start) == 0 {
		return nil, nil
	}
	begun := j.Elapsed()
	defer func() { details.Sampling += j.Elapsed() - begun }()
	const name = "sampling all rows"
	ctx, end := within(ctx, j.Within(name), m.seconds()-j.Elapsed())
	defer end()
	data, err := j.With(*details.model)
	if err != nil {
		return nil, err
	}
	if data.Parts.Train, err = j.Parts.Joined(); err != nil {
		return nil, err
	}
	data.Parts.Validation = nil
	whole := *j
	whole.Data = data
	method.Chains = len(start) / data.Bound.D
	problem, err := whole.Density(method.Chains)
	if err != nil {
		return nil, err
	}
	problem.Start = compute.Floats(j.DType, start, method.Chains, data.Bound.D)
	result, err := runChains(ctx, &whole, fit.Stage{Name: name, Problem: problem, Method: method})
	if result == nil {
		return nil, err
	}
	return result.Posterior, nil
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

// densities are log p(y_n | x_n), the predictive density of each row. They take little time, and a cancelled run needs
// them too.
func densities(p *bayes.Posterior, rows *dataset.Dataset) ([]float64, error) {
	prediction, err := p.Predict(context.Background(), rows.X)
	if err != nil {
		return nil, err
	}
	if prediction, err = prediction.OfRows(rows); err != nil {
		return nil, err
	}
	return prediction.LogDensity(rows.Y)
}

// result has the networks and the draws as particles, by their weights: the draws given all rows, or if these are nil
// each fold's.
func (m Method) result(
	j *fit.Job, all []*fold, together *bayes.Posterior, details *Details, status run.Status,
) (*fit.Result, error) {
	whole := *j
	var err error
	if whole.Data, err = j.Whole(); err == nil && details.model != nil {
		whole.Data, err = j.With(*details.model)
	}
	if err != nil {
		return nil, err
	}
	var phi, logWeights []float64
	add := func(p *bayes.Posterior, weight float64) error {
		if weight == 0 {
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
	last := all[len(all)-1]
	for _, one := range all {
		weight := details.Weight
		if one.sampled == nil && together == nil { // the fold has its networks alone
			weight = 0
		}
		err := add(one.networks, 1-weight)
		if together == nil {
			err = errors.Join(err, add(one.sampled, weight))
		}
		if err != nil {
			return nil, err
		}
	}
	if together != nil {
		if err := add(together, details.Weight*float64(len(all))); err != nil {
			return nil, err
		}
	}
	j.Choose("weight of the draws", details.Weight)
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
	result.Posterior, err = whole.PosteriorOf(drawn, bayes.Provenance{
		Status: string(result.Status), Approximation: approximation,
	})
	return result, err
}
