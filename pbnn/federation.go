package pbnn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// ErrShard says that a shard does not fit the others or the model; test for it with errors.Is.
var ErrShard = errors.New("pbnn: a shard does not fit")

// ShardSettings of SampleShards. The zero value of every field works.
type ShardSettings struct {
	mcmc.Settings
	Timeout time.Duration // of one question to one shard; default 30 s
	Retries int           // how often a shard that fails or is late is asked again in a step; default 2. -1: never
}

// SampleShards is Sample with data that stay in their shards. Mini-batch i is a sample of BatchSize rows of every shard, its loss difference the sum of the shards'
//
//	d_i = -log p(theta') + log p(theta) - sum_s (points/N) (N_s/n) sum_{its n of the N_s rows} (log p(y | x, theta') - log p(y | x, theta))
//
// in which points is N for TargetFull: an unbiased estimate as before, and delta and sigma^2 follow from the d_i by eq. 24 and 25. A step asks all shards at once and adds what they
// answer in their order, so that the draws do not depend on who is first. The proposal must be RandomWalk, and the Estimate one that needs only the d_i.
//
// A shard that fails or is late is asked the same again; as its answer is a function of the question, nothing is counted twice. If it stays silent the step is not made: the result holds
// the draws before it, with the status mcmc.Stopped and the reason in Chains.Stopped; a checkpoint goes on with that step. A shard with another model or type is refused with ErrShard.
func SampleShards(ctx context.Context, model bayes.Model, shards []Shard, sampler Metropolis, settings ShardSettings) (*Result, error) {
	f := &federation{ShardSettings: settings, shards: shards}
	f.Timeout = cmp.Or(f.Timeout, 30*time.Second)
	f.Retries = max(0, cmp.Or(f.Retries, 2))
	f.Chains = cmp.Or(f.Chains, 4)
	f.DType = cmp.Or(f.DType, compute.Float32)
	d, smallest, err := f.meet(ctx, model)
	if err != nil {
		return nil, err
	}
	if f.sampler, err = f.check(sampler, d.rows, smallest); err != nil {
		return nil, err
	}
	chains, err := mcmc.Sample(ctx, f.problem(d), remote{f.sampler.kernel()}, f.Settings)
	if err != nil {
		return nil, explain(err, f.sampler, d.rows)
	}
	if chains.Draws.PerChain == 0 {
		return nil, fmt.Errorf("pbnn: ended before all chains had a draw: %w", errors.Join(chains.Stopped, context.Cause(ctx)))
	}
	return d.result(f.sampler, chains, nil)
}

// federation is a run over shards.
type federation struct {
	ShardSettings
	shards  []Shard
	rows    []int // N_s
	hashes  []string
	model   string
	sampler Metropolis
}

// meet asks all shards what they hold, and refuses what does not fit. smallest is the number of rows of the smallest.
func (f *federation) meet(ctx context.Context, model bayes.Model) (d *prepared, smallest int, err error) {
	if len(f.shards) == 0 {
		return nil, 0, errors.New("pbnn: there is no shard")
	}
	d = &prepared{settings: Settings{Settings: f.Settings}, scaler: dataset.TargetScaler{StdDev: 1}}
	if d.engine, err = f.Engine.Or(); err != nil {
		return nil, 0, err
	}
	want := Description{DType: f.DType.String()}
	for i, shard := range f.shards {
		have, err := again(ctx, f, i, func(ctx context.Context) (Description, error) { return shard.Describe(ctx) })
		if err != nil {
			return nil, 0, err
		}
		if i == 0 {
			want.Inputs, want.Outputs = have.Inputs, have.Outputs
			if d.bound, want.Model, err = bindAll(model, have.Inputs, have.Outputs); err != nil {
				return nil, 0, err
			}
			smallest = have.Rows
		}
		want.Rows, want.Hash = have.Rows, have.Hash
		if have != want || have.Rows < 1 {
			return nil, 0, fmt.Errorf("%w: shard %d has %+v, wanted is %+v", ErrShard, i, have, want)
		}
		f.rows, f.hashes = append(f.rows, have.Rows), append(f.hashes, have.Hash)
		d.rows += have.Rows
		smallest = min(smallest, have.Rows)
	}
	d.standard = dataset.NoScaler(d.bound.Inputs)
	f.model = want.Model
	return d, smallest, nil
}

// check is Metropolis' own, and what holds for shards.
func (f *federation) check(m Metropolis, rows, smallest int) (Metropolis, error) {
	m.BatchSize = cmp.Or(m.BatchSize, max(1, min(100/len(f.shards), smallest)))
	if m.Target != nil {
		m.Target = m.Target.fixed(m.BatchSize * len(f.shards))
	}
	checked, err := m.prepared(rows)
	if err != nil {
		return m, err
	}
	m = checked.(Metropolis)
	return m, limits.Check("pbnn: Metropolis",
		limits.Field("BatchSize", m.BatchSize, m.BatchSize <= smallest, fmt.Sprintf("at most the %d rows of the smallest shard", smallest)),
		limits.Field("Proposal", m.Proposal, m.Proposal == RandomWalk, "RandomWalk: shards give no gradients"),
		limits.Field("Estimate", m.Estimate, m.Estimate != WithinBatches, "MeanOfBatches or OneBatch: shards give no rows"),
		limits.Field("Noise", m.Noise, m.Noise == 0, "0 over shards: set Batches"),
	)
}

func (f *federation) problem(d *prepared) mcmc.Problem {
	points := f.sampler.Target.Points(d.rows)
	return mcmc.Problem{
		Name: fmt.Sprintf("%s over shards of %d rows (%s), %d mini-batches of %d rows of each, of the model %s", f.sampler.Target, f.rows, f.hashes, f.sampler.Batches, f.sampler.BatchSize, f.model),
		Dim:  d.bound.D, Initial: d.bound.SamplePrior,
		Target: func(_ compute.Nodes, inputs []*graph.Node) mcmc.Target {
			return answered{bound: d.bound, answers: inputs[0]}
		},
		Ask: &mcmc.Ask{
			Blank: []any{compute.Floats(f.DType, make([]float64, f.Chains*f.sampler.Batches), f.Chains, f.sampler.Batches)},
			Inputs: func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
				from, err := compute.Float64s(carried["phi"])
				if err != nil {
					return nil, err
				}
				to, err := compute.Float64s(carried["proposal"])
				if err != nil {
					return nil, err
				}
				sums, err := f.ask(ctx, Question{
					Seed: f.Seed, Move: move, Batches: f.sampler.Batches, BatchSize: f.sampler.BatchSize, Chains: f.Chains, From: from, To: to,
				}, points/float64(d.rows))
				if err != nil {
					return nil, err
				}
				return []any{compute.Floats(f.DType, sums, f.Chains, f.sampler.Batches)}, nil
			},
		},
	}
}

// ask puts a question to all shards at once and adds up their answers, scaled: [J, M].
func (f *federation) ask(ctx context.Context, q Question, perRow float64) ([]float64, error) {
	answers, errs := make([][]float64, len(f.shards)), make([]error, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		all.Go(func() {
			q := q
			q.Shard = i
			answers[i], errs[i] = again(ctx, f, i, func(ctx context.Context) ([]float64, error) {
				answer, err := shard.Differences(ctx, q)
				if err == nil && len(answer) != q.Chains*q.Batches {
					err = fmt.Errorf("it gives %d differences, not %d", len(answer), q.Chains*q.Batches)
				}
				return answer, err
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sums := make([]float64, q.Chains*q.Batches)
	for i, answer := range answers {
		scale := perRow * float64(f.rows[i]) / float64(q.BatchSize)
		for k, v := range answer {
			sums[k] += scale * v
		}
	}
	return sums, nil
}

// again asks shard i until it answers in time, but not more often than Retries says.
func again[Answer any](ctx context.Context, f *federation, i int, once func(context.Context) (Answer, error)) (answer Answer, err error) {
	for attempt := 0; ; attempt++ {
		inTime, cancel := context.WithTimeout(ctx, f.Timeout)
		answer, err = once(inTime)
		cancel()
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return answer, ctx.Err()
		}
		if attempt == f.Retries {
			return answer, fmt.Errorf("pbnn: shard %d of %d failed %d times, at last: %w", i, len(f.shards), attempt+1, err)
		}
	}
}

// remote is the kernel whose differences come from outside: it carries the proposal that they are of, judges it, and makes the next one.
type remote struct{ kernel }

var _ mcmc.Starter = remote{}

// Start implements mcmc.Starter.
func (k remote) Start(rng random.Stream, s mcmc.State) mcmc.State {
	tuning := mcmc.Tuning{}
	if k.StepSize == 0 { // the first step of a warm-up that seeks one is of no matter
		k.StepSize = 1
	}
	s.Own = map[string]*graph.Node{"proposal": k.walk(rng, s.Phi, tuning)}
	return s
}

// Move implements mcmc.Kernel.
func (k remote) Move(rng random.Stream, s mcmc.State, law mcmc.Target, tuning mcmc.Tuning) (mcmc.State, mcmc.Info) {
	proposal := s.Own["proposal"]
	noise := k.Estimate.of(law.(mcmc.Noisy).Differences(rng, s.Phi, proposal))
	next, info := k.judge(rng, s, proposal, graph.ZerosLike(noise.delta), noise)
	next.Own = map[string]*graph.Node{"proposal": k.walk(rng, next.Phi, tuning)}
	return next, info
}

// answered is a target of which the shards have said what there is to say, [J, M], but for the prior.
type answered struct {
	bound   *bayes.Bound
	answers *graph.Node
}

var _ mcmc.Noisy = answered{}

func (t answered) Differences(_ random.Stream, from, to *graph.Node) (estimates, variance *graph.Node, degrees float64) {
	prior := graph.Sub(t.bound.LogPrior(to), t.bound.LogPrior(from))
	return graph.Add(t.answers, graph.BroadcastToShape(graph.ExpandAxes(prior, 1), t.answers.Shape())), nil, 0
}

// Draw implements mcmc.Noisy: there is nothing to draw from.
func (t answered) Draw(random.Stream) mcmc.Target { return t }

// LogDensity implements mcmc.Target: it is not known here, and no kernel that runs over shards asks.
func (t answered) LogDensity(phi *graph.Node) *graph.Node {
	return graph.MulScalar(graph.OnesLike(t.bound.LogPrior(phi)), math.NaN())
}

// Gradient implements mcmc.Target, likewise.
func (t answered) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return t.LogDensity(phi), graph.MulScalar(graph.OnesLike(phi), math.NaN())
}
