package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Fit is pbnn.Fit for data that stay in their shards. All shards are asked at once, and their answers are added in the
// shards' order, so that the draws do not depend on which shard answers first. A random walk's step asks once, for the
// differences; Langevin's step asks twice: first for the gradients at the chains' positions, then for the gradients at
// the proposals, on the same rows, and for the differences. BatchSize is the number of rows of each shard in a
// mini-batch; its default is 100 divided by the number of shards, but at least 5, the default minimum of Limits. All of
// the model must be stochastic: otherwise see FitFrom. Chains begin at draws from the prior.
//
// A shard that fails, or gives no answer in 30 seconds, is asked twice more, after a pause that doubles. If it still
// fails, the run ends before that step: beside the error there is a result with the draws so far and the status
// run.Stopped, and a checkpoint resumes with that step. The run ends in the same way, at once and with ErrShard, if an
// answer is from other rows, by number or hash, than the shard described at the start. A shard with another model or
// number type, with features, targets or classes in another order (by the names that it describes; the error wraps
// dataset.ErrOrder too), or with a former shard's rows is refused before the first step, also with ErrShard.
//
// Proposals with non-finite numbers in an answer are rejected, as is right where the model overflows. Result.Warnings
// counts these numbers for each shard.
func Fit(
	ctx context.Context, model bayes.Model, sampler pbnn.Metropolis, shards []Shard, settings pbnn.Settings,
) (*pbnn.Result, error) {
	return fitOver(ctx, sampler, shards, settings, func(first Description) (*fit.Data, error) {
		bound, err := fit.AllByDefault(model).Bind(first.Inputs, first.Outputs)
		if err == nil {
			err = nothingShared(bound)
		}
		if err != nil {
			return nil, err
		}
		return &fit.Data{
			Owner: "shards", Bound: bound,
			Features: dataset.NoScaler(bound.Inputs), Target: dataset.NoScaler(bound.Targets()),
		}, nil
	})
}

// FitFrom is Fit with the shared parameters and the standardisation of a trained posterior, which the shards must have
// too (NewFrom). Chains begin at the posterior's particles, drawn by their weights.
func FitFrom(
	ctx context.Context, trained *bayes.Posterior, sampler pbnn.Metropolis, shards []Shard, settings pbnn.Settings,
) (*pbnn.Result, error) {
	if trained == nil {
		return nil, errors.New("shards: FitFrom needs a trained posterior")
	}
	return fitOver(ctx, sampler, shards, settings, func(Description) (*fit.Data, error) {
		return fit.Held("shards", trained), nil
	})
}

// nothingShared is an error for a model with shared parameters, which must be trained first.
func nothingShared(bound *bayes.BoundModel) error {
	if bound.W == 0 {
		return nil
	}
	return fmt.Errorf("shards: the model has %d shared numbers, which this sampler does not train: sample them too, by "+
		"Model.Stochastic = bayes.All(), or train them first, for instance with baseline.MAP, and take NewFrom and FitFrom",
		bound.W)
}

// fitOver is Fit and FitFrom; model gives the fit.Data for the first shard's description.
func fitOver(
	ctx context.Context, sampler pbnn.Metropolis, shards []Shard, settings pbnn.Settings,
	model func(first Description) (*fit.Data, error),
) (*pbnn.Result, error) {
	f := &federation{shards: shards, nonFinite: make([]atomic.Int64, len(shards))}
	s := &settings.Sampling
	s.DType = cmp.Or(s.DType, compute.Float32)
	data, err := f.meet(ctx, s.DType, model)
	if err != nil {
		return nil, err
	}
	names, err := f.origin(data)
	if err != nil {
		return nil, err
	}
	result, err := pbnn.FitHeld(ctx, pbnn.Held{Data: data, Rows: f.all(), Names: names}, metropolis{sampler, f}, settings)
	if warning := f.warning(); result == nil && warning != "" {
		err = fmt.Errorf("%w; %s", err, warning)
	} else if warning != "" {
		result.Warnings = append(result.Warnings, warning)
	}
	if result != nil {
		result.Sampler = result.Sampler.(metropolis).Metropolis
	}
	return result, err
}

// metropolis is a pbnn.Metropolis over shards, as a pbnn.Sampler.
type metropolis struct {
	pbnn.Metropolis
	over *federation
}

// Prepare implements pbnn.Sampler as Metropolis does, and refuses settings that shards cannot serve.
func (m metropolis) Prepare(rows int) (pbnn.Sampler, error) {
	shards, smallest := len(m.over.shards), slices.Min(m.over.rows)
	m.BatchSize = cmp.Or(m.BatchSize, min(max(minBatchSize, 100/shards), smallest))
	if m.Target != nil {
		m.Target = m.Target.ForBatchSize(m.BatchSize * shards)
	}
	ready, err := m.Metropolis.Prepare(rows)
	if err != nil {
		return nil, err
	}
	m.Metropolis = ready.(pbnn.Metropolis)
	most := fmt.Sprintf("at most the %d rows of the smallest shard", smallest)
	return m, limits.Check("shards: Metropolis",
		limits.Field("BatchSize", m.BatchSize, m.BatchSize <= smallest, most),
		limits.Field("Estimate", m.Estimate, m.Estimate != pbnn.WithinBatches,
			"MeanOfBatches or OneBatch: shards give no rows"),
		limits.Field("Noise", m.Noise, m.Noise == 0, "0 over shards: set Batches"),
	)
}

// RowsPerMove implements pbnn.Sampler: the losses at theta and theta'. Langevin's step also has the gradients at both,
// and takes two moves.
func (m metropolis) RowsPerMove(int) int { return 2 * m.Batches * m.BatchSize * len(m.over.shards) }

// Problem implements pbnn.Sampler: the shards are asked for the inputs of each move.
func (m metropolis) Problem(d *pbnn.Data) (density.Problem, mcmc.Kernel, error) {
	f := m.over
	problem, own, err := m.Metropolis.Problem(d)
	if err != nil {
		return problem, nil, err
	}
	a := &asking{federation: f, Metropolis: m.Metropolis, seed: d.Sampling.Seed, chains: d.Sampling.Chains,
		perRow: m.Target.EffectivePoints(f.all()) / float64(f.all())}
	dims, dtype := [][]int{{a.chains, m.Batches}}, d.Sampling.DType
	step := kernel{own.(mcmc.Tunable), m.Estimate, m.Rule, m.StepSize}
	var over mcmc.Kernel = walk{step}
	if m.Proposal == pbnn.Langevin {
		dims = append(dims, []int{a.chains, d.Bound.D})
		over = langevin{step}
	}
	inputs := func(values ...[]float64) []any { // zeros for a nil
		var all []any
		for i, d := range dims {
			v := values[i]
			if v == nil {
				v = make([]float64, d[0]*d[1])
			}
			all = append(all, compute.Floats(dtype, v, d...))
		}
		return all
	}
	return density.Problem{
		Name: fmt.Sprintf("%s over shards of %d rows (%s), %d mini-batches of %d rows of each, of the model %s%s",
			m.Target, f.rows, f.hashes, m.Batches, m.BatchSize, f.model.Model, f.model.Shared),
		Dim: problem.Dim, Initial: problem.Initial, Start: problem.Start,
		BatchShare: float64(len(f.shards)) * problem.BatchShare,
		Target: func(_ compute.Nodes, inputs []*graph.Node) density.Target {
			t := answered{bound: d.Bound, answers: inputs[0]}
			if len(inputs) > 1 {
				t.gradient = inputs[1]
			}
			return t
		},
		HostInputs: &density.HostInputs{
			Blank: inputs(nil, nil),
			Inputs: func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
				differences, gradients, err := a.inputs(ctx, move, carried)
				if err != nil {
					return nil, err
				}
				return inputs(differences, gradients), nil
			},
		},
	}, over, nil
}

// federation is the shards of a run.
type federation struct {
	shards    []Shard
	model     Description // of all of them
	rows      []int       // N_s
	hashes    []string
	names     []*dataset.Dataset // the shards' names, and a trained posterior's before them, without rows
	nonFinite []atomic.Int64     // numbers in each shard's answers that are NaN or infinite
}

// all is N, the number of rows of all shards.
func (f *federation) all() (n int) {
	for _, rows := range f.rows {
		n += rows
	}
	return n
}

// warning reports the count of numbers in the shards' answers that were not finite; empty if all were finite.
func (f *federation) warning() string {
	sum, each := int64(0), make([]int64, len(f.shards))
	for i := range f.nonFinite {
		each[i] = f.nonFinite[i].Load()
		sum += each[i]
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("the shards' answers have %d numbers that are NaN or infinite, by shard %d: proposals there were "+
		"rejected; if only some shards have them, their rows are to blame, and if all have, the model overflows", sum, each)
}

// meet asks all shards for their descriptions and refuses those that differ.
func (f *federation) meet(
	ctx context.Context, dtype compute.DType, model func(first Description) (*fit.Data, error),
) (data *fit.Data, err error) {
	if len(f.shards) == 0 {
		return nil, errors.New("shards: there is no shard")
	}
	for i, shard := range f.shards {
		have, err := again(ctx, f, i, func(ctx context.Context) (Description, error) { return shard.Describe(ctx) })
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if data, err = model(have); err != nil {
				return nil, err
			}
			if f.model, _, err = describe(data, dtype); err != nil {
				return nil, err
			}
			if data.Trained != nil {
				o := data.Trained.Origin()
				f.names = []*dataset.Dataset{
					{Name: "the trained posterior", Features: o.FeatureNames, Targets: o.TargetNames, Classes: o.Classes},
				}
			}
		}
		want := f.model
		want.Rows, want.Hash = have.Rows, have.Hash
		want.Features, want.Targets, want.Classes = have.Features, have.Targets, have.Classes // see compareNames
		if !reflect.DeepEqual(have, want) || have.Rows < 1 {
			return nil, fmt.Errorf("%w: shard %d has %+v, wanted is %+v: give all shards the same model, "+
				"shared parameters and type", ErrShard, i, have, want)
		}
		if err := f.compareNames(i, have); err != nil {
			return nil, err
		}
		if twin := slices.Index(f.hashes, have.Hash); twin >= 0 && have.Hash != "" {
			return nil, fmt.Errorf("%w: shards %d and %d have the same %d rows (hash %q), which would count twice: "+
				"each row may be held by one shard only: leave out one of the two", ErrShard, twin, i, have.Rows, have.Hash)
		}
		f.rows, f.hashes = append(f.rows, have.Rows), append(f.hashes, have.Hash)
	}
	return data, nil
}

// compareNames is an error if a feature, target or class of shard i stands at another place than in a shard before, or
// in the trained posterior.
func (f *federation) compareNames(i int, have Description) error {
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
	}
	f.names = append(f.names, names)
	return nil
}

// origin has the first names of each kind that a shard describes. It is an error if the model cannot have them; a
// trained posterior has its own.
func (f *federation) origin(data *fit.Data) (names bayes.Origin, err error) {
	if data.Trained != nil {
		return names, nil
	}
	for i := len(f.names) - 1; i >= 0; i-- {
		for to, from := range map[*[]string][]string{
			&names.FeatureNames: f.names[i].Features, &names.TargetNames: f.names[i].Targets, &names.Classes: f.names[i].Classes,
		} {
			if len(from) > 0 {
				*to = from
			}
		}
	}
	// Making a posterior of one particle checks the names before the run, not after it.
	draws := bayes.Draws{
		Phi:        compute.Floats(compute.Float32, make([]float64, data.Bound.D), 1, data.Bound.D),
		LogWeights: bayes.EqualLogWeights(1),
	}
	if _, err := bayes.NewPosterior(data.Bound, draws, names); err != nil {
		return names, fmt.Errorf("%w: the names that the shards describe: %w", ErrShard, err)
	}
	return names, nil
}
