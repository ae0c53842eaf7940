package pbnn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// ErrShard says that a shard's model, or the order of its columns or classes, differs from the others', that two shards
// have the same rows, or that a shard's rows have changed during a run. Test for it with errors.Is.
var ErrShard = errors.New("pbnn: a shard does not fit")

// ShardSettings of FitShards and FitShardsFrom. The zero value of every field works.
type ShardSettings struct {
	// Sampling, Observe and ObserveEvery are as in Settings.
	Sampling     mcmc.Settings
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int

	Timeout time.Duration // of one question to one shard; default 30 s
	Retries int           // how often a shard that fails or is late is asked again in a step; default 2. -1: never
}

// FitShards is Fit for data that stay in their shards. Mini-batch i is a sample of BatchSize rows of every shard, and
// its loss difference is the sum over the shards
//
//	d_i = -log p(theta') + log p(theta) - sum_s (points/N) (N_s/n) sum_{its n of the N_s rows} l
//	l = log p(y | x, theta') - log p(y | x, theta)
//
// where points is N for TargetFull. It is an unbiased estimate as in Fit, and delta and sigma^2 follow from the d_i by
// eq. 24 and 25. With the proposal Langevin the gradient is a sum over the shards in the same way, with mini-batches of
// its own. All shards are asked at once, and their answers are added in the shards' order, so that the draws do not
// depend on which shard answers first. A random walk's step asks once, for the differences; Langevin's step asks twice:
// first for the gradients at the chains' positions, then for the gradients at the proposals, on the same rows, and for
// the differences. By default BatchSize is 100 divided by the number of shards, but at least 5, the default minimum of
// ServeSettings. The Estimate WithinBatches is not possible, since it needs single rows. All of the model must be
// stochastic: otherwise see FitShardsFrom. Chains begin at draws from the prior.
//
// A shard that fails or is late is asked again, after a pause that doubles each time; since its answer is a function of
// the question, nothing is counted twice. If it still fails, the run ends before that step: beside the error there is a
// result with the draws so far and the status run.Stopped, and a checkpoint resumes with that step. The run ends in the
// same way, at once and with ErrShard, if an answer is from other rows, by number or hash, than the shard described at
// the start. No shard is ever left out of a run, since the draws before and after would be from different posteriors. A
// shard with another model or number type, with features, targets or classes in another order (by the names that it
// describes; the error wraps dataset.ErrOrder too), or with a former shard's rows is refused before the first step,
// also with ErrShard.
//
// Proposals with non-finite numbers in an answer are rejected, as is right where the model overflows. Result.Warnings
// counts these numbers for each shard, and how many of them were finite in the answers of all other shards.
func FitShards(
	ctx context.Context, model bayes.Model, sampler Metropolis, shards []Shard, settings ShardSettings,
) (*Result, error) {
	f := &federation{ShardSettings: settings, shards: shards}
	return f.fit(ctx, sampler, func(first Description) (*fit.Data, error) {
		bound, err := fit.AllByDefault(model).Bind(first.Inputs, first.Outputs)
		if err == nil {
			err = nothingShared(bound, "NewShardFrom and FitShardsFrom")
		}
		if err != nil {
			return nil, err
		}
		return &fit.Data{
			Owner: "pbnn", Bound: bound, Features: dataset.NoScaler(bound.Inputs), Target: dataset.NoScaler(bound.Targets()),
		}, nil
	})
}

// FitShardsFrom is FitShards with the shared parameters and the standardisation of a trained posterior, which the
// shards must have too (NewShardFrom). Chains begin at the posterior's particles, drawn by their weights.
func FitShardsFrom(
	ctx context.Context, trained *bayes.Posterior, sampler Metropolis, shards []Shard, settings ShardSettings,
) (*Result, error) {
	if trained == nil {
		return nil, errors.New("pbnn: FitShardsFrom needs a trained posterior")
	}
	f := &federation{ShardSettings: settings, shards: shards}
	return f.fit(ctx, sampler, func(Description) (*fit.Data, error) { return fit.Held("pbnn", trained), nil })
}

// fit is FitShards and FitShardsFrom; model gives the fit.Data for the first shard's description.
func (f *federation) fit(
	ctx context.Context, sampler Metropolis, model func(first Description) (*fit.Data, error),
) (*Result, error) {
	if err := limits.Check("pbnn: ShardSettings",
		limits.Field("Timeout", f.Timeout, f.Timeout >= 0, "positive (0: 30 s)"),
		limits.Field("Retries", f.Retries, f.Retries >= -1, "at least 1 (0: 2, -1: none)"),
	); err != nil {
		return nil, err
	}
	f.Timeout = cmp.Or(f.Timeout, 30*time.Second)
	f.Retries = max(0, cmp.Or(f.Retries, 2))
	d, smallest, err := f.meet(ctx, model)
	if err != nil {
		return nil, err
	}
	if f.sampler, err = f.check(sampler, d.rows, smallest); err != nil {
		return nil, err
	}
	r := &sampling{Data: d, sampler: f.sampler, perMove: float64(len(f.shards))}
	if err := r.observe(f.Observe, f.ObserveEvery); err != nil {
		return nil, err
	}
	var kernel mcmc.Kernel = remote{f.sampler.kernel()}
	if f.sampler.Proposal == Langevin {
		kernel = remoteLangevin{f.sampler.kernel()}
		r.perMove /= 2 // a step takes two moves
	}
	result, err := r.sample(ctx, f.problem(d), kernel, smallest) // BatchSize is out of the smallest's rows
	if result == nil {
		for _, warning := range f.warnings() {
			err = fmt.Errorf("%w; %s", err, warning)
		}
		return nil, err
	}
	result.Warnings = append(result.Warnings, f.warnings()...)
	return result, err
}

// federation is a run over shards.
type federation struct {
	ShardSettings
	shards  []Shard
	rows    []int // N_s
	hashes  []string
	names   []*dataset.Dataset // the different lists of names that were met, each without rows
	model   string
	sampler Metropolis

	mu        sync.Mutex // guards the fields below
	nonFinite []nonFinite
}

// nonFinite counts the non-finite numbers in the answers of one shard.
type nonFinite struct{ answers, numbers, alone int }

// count looks through the shards' answers to one question.
func (f *federation) count(answers []Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := make([]int, len(answers[0].Values)) // of how many shards number k is not finite
	each := func(see func(shard, k int)) {
		for i, answer := range answers {
			for k, v := range answer.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					see(i, k)
				}
			}
		}
	}
	each(func(_, k int) { shared[k]++ })
	last := -1
	each(func(i, k int) {
		c := &f.nonFinite[i]
		if c.numbers++; i != last {
			c.answers++
		}
		if last = i; shared[k] == 1 && len(answers) > 1 {
			c.alone++
		}
	})
}

// warnings are the counts in words, of the shards that have any.
func (f *federation) warnings() []string {
	var said []string
	for i, c := range f.nonFinite {
		if c.numbers > 0 {
			said = append(said, fmt.Sprintf("shard %d of %d: %d answers have %d numbers that are NaN or infinite, "+
				"%d of them where no other shard's are: proposals there were rejected",
				i, len(f.shards), c.answers, c.numbers, c.alone))
		}
	}
	return said
}

// meet asks all shards for their descriptions and refuses those that differ. smallest is the smallest shard's number of
// rows.
func (f *federation) meet(
	ctx context.Context, model func(first Description) (*fit.Data, error),
) (d *Data, smallest int, err error) {
	if len(f.shards) == 0 {
		return nil, 0, errors.New("pbnn: there is no shard")
	}
	var want Description
	for i, shard := range f.shards {
		have, err := again(ctx, f, i, func(ctx context.Context) (Description, error) { return shard.Describe(ctx) })
		if err != nil {
			return nil, 0, err
		}
		if i == 0 {
			if d, err = f.data(model, have); err != nil {
				return nil, 0, err
			}
			want = Description{Inputs: d.Bound.Inputs, Outputs: d.Bound.Outputs, DType: d.Sampling.DType.String()}
			if want.Model, want.Shared, err = d.describe(); err != nil {
				return nil, 0, err
			}
			smallest = have.Rows
		}
		want.Rows, want.Hash = have.Rows, have.Hash
		want.Features, want.Targets, want.Classes = have.Features, have.Targets, have.Classes // see checkNames
		if !reflect.DeepEqual(have, want) || have.Rows < 1 {
			return nil, 0, fmt.Errorf("%w: shard %d has %+v, wanted is %+v: give all shards the same model, "+
				"shared parameters and type", ErrShard, i, have, want)
		}
		if err := f.checkNames(d, i, have); err != nil {
			return nil, 0, err
		}
		if twin := slices.Index(f.hashes, have.Hash); twin >= 0 && have.Hash != "" {
			return nil, 0, fmt.Errorf("%w: shards %d and %d have the same %d rows (hash %q), which would count twice: "+
				"each row may be held by one shard only: leave out one of the two", ErrShard, twin, i, have.Rows, have.Hash)
		}
		f.rows, f.hashes = append(f.rows, have.Rows), append(f.hashes, have.Hash)
		d.rows += have.Rows
		smallest = min(smallest, have.Rows)
	}
	f.nonFinite = make([]nonFinite, len(f.shards))
	f.model = want.Model
	if want.Shared != "" {
		f.model += fmt.Sprintf(" with the shared parameters %s", want.Shared)
	}
	return d, smallest, nil
}

// checkNames is an error if a feature, target or class of shard i stands at another place than in a shard before, or in
// the trained posterior, or if the model cannot have its names. It keeps the first names of each kind.
func (f *federation) checkNames(d *Data, i int, have Description) error {
	if i == 0 && d.Trained != nil {
		o := d.Trained.Origin()
		f.names = []*dataset.Dataset{
			{Name: "the trained posterior", Features: o.FeatureNames, Targets: o.TargetNames, Classes: o.Classes},
		}
	}
	names := &dataset.Dataset{
		Name: fmt.Sprintf("shard %d", i), Features: have.Features, Targets: have.Targets, Classes: have.Classes,
	}
	for _, other := range f.names {
		targets := other.Targets
		if len(have.Targets) == 0 { // SameOrder would take it for one target called ""
			targets = nil
		}
		if err := names.SameOrder(other.Features, targets, other.Classes); err != nil {
			return fmt.Errorf("%w: shard %d beside %s, whose order is called the model's: %w", ErrShard, i, other.Name, err)
		}
		if slices.Equal(names.Features, other.Features) && slices.Equal(names.Targets, other.Targets) &&
			slices.Equal(names.Classes, other.Classes) {
			return nil
		}
	}
	f.names = append(f.names, names)
	var origin bayes.Origin
	for _, list := range []struct {
		of        []string
		to, first *[]string
	}{
		{have.Features, &origin.FeatureNames, &d.names.FeatureNames},
		{have.Targets, &origin.TargetNames, &d.names.TargetNames}, {have.Classes, &origin.Classes, &d.names.Classes},
	} {
		if len(list.of) == 0 {
			continue
		}
		if *list.to = list.of; *list.first == nil {
			*list.first = list.of
		}
	}
	// Making a posterior of one particle checks the names before the run, not after it.
	draws := bayes.Draws{
		Phi: compute.Floats(d.Sampling.DType, make([]float64, d.Bound.D), 1, d.Bound.D), Psi: d.psi,
		LogWeights: bayes.EqualLogWeights(1),
	}
	if _, err := bayes.NewPosterior(d.Bound, draws, origin); err != nil {
		return fmt.Errorf("%w: the names that shard %d describes: %w", ErrShard, i, err)
	}
	return nil
}

// data are the model, the settings with defaults filled in, and the chains' starting points.
func (f *federation) data(model func(Description) (*fit.Data, error), first Description) (*Data, error) {
	met, err := model(first)
	if err != nil {
		return nil, err
	}
	d := &Data{Data: met, Sampling: f.Sampling}
	if err := d.fillIn(); err != nil {
		return nil, err
	}
	f.Sampling = d.Sampling
	if d.Trained == nil {
		return d, nil
	}
	return d, d.begin()
}

// check prepares the sampler as Metropolis.Prepare does, and refuses settings that shards cannot serve.
func (f *federation) check(m Metropolis, rows, smallest int) (Metropolis, error) {
	m.BatchSize = cmp.Or(m.BatchSize, min(max(minBatchSize, 100/len(f.shards)), smallest))
	if m.Target != nil {
		m.Target = m.Target.ForBatchSize(m.BatchSize * len(f.shards))
	}
	ready, err := prepared(m, rows)
	if err != nil {
		return m, err
	}
	m = ready.(Metropolis)
	most := fmt.Sprintf("at most the %d rows of the smallest shard", smallest)
	return m, limits.Check("pbnn: Metropolis",
		limits.Field("BatchSize", m.BatchSize, m.BatchSize <= smallest, most),
		limits.Field("Estimate", m.Estimate, m.Estimate != WithinBatches, "MeanOfBatches or OneBatch: shards give no rows"),
		limits.Field("Noise", m.Noise, m.Noise == 0, "0 over shards: set Batches"),
	)
}

func (f *federation) problem(d *Data) mcmc.Problem {
	perRow := f.sampler.Target.EffectivePoints(d.rows) / float64(d.rows)
	dims := [][]int{{f.Sampling.Chains, f.sampler.Batches}}
	if f.sampler.Proposal == Langevin {
		dims = append(dims, []int{f.Sampling.Chains, d.Bound.D})
	}
	return mcmc.Problem{
		Name: fmt.Sprintf("%s over shards of %d rows (%s), %d mini-batches of %d rows of each, of the model %s",
			f.sampler.Target, f.rows, f.hashes, f.sampler.Batches, f.sampler.BatchSize, f.model),
		Dim: d.Bound.D, Initial: d.Bound.SamplePrior, Start: d.start,
		BatchShare: float64(len(f.shards)*f.sampler.Batches*f.sampler.BatchSize) / float64(d.rows),
		Target: func(_ compute.Nodes, inputs []*graph.Node) mcmc.Target {
			t := shardTarget{bound: d.Bound, answers: inputs[0]}
			if len(inputs) > 1 {
				t.gradient = inputs[1]
			}
			return t
		},
		HostInputs: &mcmc.HostInputs{
			Blank: f.floats(dims, nil, nil),
			Inputs: func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
				values := map[string][]float64{}
				for name, t := range carried {
					var err error
					if values[name], err = compute.Float64s(t); err != nil {
						return nil, err
					}
				}
				differences, gradients, err := f.inputs(ctx, move, values, perRow)
				if err != nil {
					return nil, err
				}
				return f.floats(dims, differences, gradients), nil
			},
		},
	}
}

// floats are the inputs of a move: zeros for a nil.
func (f *federation) floats(dims [][]int, values ...[]float64) []any {
	var inputs []any
	for i, d := range dims {
		v := values[i]
		if v == nil {
			v = make([]float64, d[0]*d[1])
		}
		inputs = append(inputs, compute.Floats(f.Sampling.DType, v, d...))
	}
	return inputs
}

// inputs asks the shards for the inputs of a move: of Langevin's two the first needs the gradients at the chains'
// places, the second those at the proposals, on the same rows, and the differences. An input that is not needed is nil.
// A proposal with a number that is not finite is not asked about, as shards refuse it: the chain's own place stands for
// it, and what is answered for that chain is replaced by NaN, which rejects the proposal.
func (f *federation) inputs(
	ctx context.Context, move int, carried map[string][]float64, perRow float64,
) (differences, gradients []float64, err error) {
	q := Request{
		Seed: f.Sampling.Seed, Move: move, Batches: f.sampler.Batches, BatchSize: f.sampler.BatchSize,
		Chains: f.Sampling.Chains, From: carried["phi"],
	}
	if f.sampler.Proposal != Langevin {
		var lost []int
		q.To, lost = finite(carried["proposal"], q.From, q.Chains)
		differences, err = f.ask(ctx, Shard.Differences, q, q.Chains*q.Batches, perRow/float64(q.BatchSize))
		reject(differences, lost, q.Batches)
		return differences, nil, err
	}
	size, ofGradients := len(q.From), perRow/float64(q.Batches*q.BatchSize)
	if !slices.ContainsFunc(carried["proposed"], func(v float64) bool { return v != 0 }) {
		gradients, err = f.ask(ctx, Shard.Gradients, q, size, ofGradients)
		return nil, gradients, err
	}
	proposal, lost := finite(carried["proposal"], q.From, q.Chains)
	back := q // the gradients at the proposals
	back.Move, back.From = move-1, proposal
	q.To = proposal
	var all sync.WaitGroup
	var other error
	all.Go(func() { gradients, other = f.ask(ctx, Shard.Gradients, back, size, ofGradients) })
	differences, err = f.ask(ctx, Shard.Differences, q, q.Chains*q.Batches, perRow/float64(q.BatchSize))
	all.Wait()
	reject(differences, lost, q.Batches)
	reject(gradients, lost, size/q.Chains)
	return differences, gradients, errors.Join(err, other)
}

// finite are the proposals of J chains, flat [J, D], those with a number that is not finite replaced by the chain's
// place; lost are these chains.
func finite(proposals, places []float64, chains int) (asked []float64, lost []int) {
	asked = slices.Clone(proposals)
	d := len(proposals) / chains
	infinite := func(v float64) bool { return !(math.Abs(v) <= math.MaxFloat64) } // or NaN
	for j := range chains {
		if own := asked[j*d:][:d]; slices.ContainsFunc(own, infinite) {
			copy(own, places[j*d:])
			lost = append(lost, j)
		}
	}
	return asked, lost
}

// reject makes the answers for the lost chains, each numbers long, NaN.
func reject(answers []float64, lost []int, each int) {
	if answers == nil {
		return // an error
	}
	for _, j := range lost {
		for k := range each {
			answers[j*each+k] = math.NaN()
		}
	}
}

// ask puts a question to all shards at once and adds up their answers, of so many numbers, each shard's multiplied by
// its number of rows and scale.
func (f *federation) ask(
	ctx context.Context, method func(Shard, context.Context, Request) (Answer, error),
	q Request, numbers int, scale float64,
) ([]float64, error) {
	answers, errs := make([]Answer, len(f.shards)), make([]error, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		all.Go(func() {
			q := q
			q.Shard = i
			answers[i], errs[i] = again(ctx, f, i, func(ctx context.Context) (Answer, error) {
				answer, err := method(shard, ctx, q)
				if err != nil {
					return answer, err
				}
				return answer, f.accept(i, answer, numbers)
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f.count(answers)
	sums := make([]float64, numbers)
	for i, answer := range answers {
		for k, v := range answer.Values {
			sums[k] += scale * float64(f.rows[i]) * v
		}
	}
	return sums, nil
}

// accept is an error if an answer of shard i has not so many numbers, or is from other rows than the shard described.
func (f *federation) accept(i int, answer Answer, numbers int) error {
	if answer.Rows != f.rows[i] || answer.Hash != f.hashes[i] {
		return fmt.Errorf("%w: shard %d answers from %d rows (hash %q), but described %d rows (hash %q): begin anew with "+
			"the rows that it has, or give it back those that it had",
			ErrShard, i, answer.Rows, answer.Hash, f.rows[i], f.hashes[i])
	}
	if len(answer.Values) != numbers {
		return fmt.Errorf("it gives %d numbers, not %d", len(answer.Values), numbers)
	}
	return nil
}

// retryPause is the pause before a failed shard is asked again the first time.
const retryPause = 20 * time.Millisecond

// again asks shard i until it answers in time, at most Retries more times, and not after an error that would repeat.
func again[Reply any](
	ctx context.Context, f *federation, i int, once func(context.Context) (Reply, error),
) (reply Reply, err error) {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		inTime, cancel := context.WithTimeout(ctx, f.Timeout)
		reply, err = once(inTime)
		cancel()
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return reply, ctx.Err()
		}
		if attempt > f.Retries || errors.Is(err, ErrShard) || errors.Is(err, ErrRefused) {
			return reply, fmt.Errorf("pbnn: shard %d of %d failed at attempt %d: %w", i, len(f.shards), attempt, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return reply, ctx.Err()
		}
		pause *= 2
	}
}
