package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Metropolis is pbnn.Metropolis for data that stay in their shards; fit.Fit is given no parts for it. All shards are
// asked at once, and their answers are added in the shards' order, so that the draws do not depend on which shard
// answers first. Proposals are a random walk's. BatchSize is the number of rows of each shard in a mini-batch; its
// default is 100 divided by the number of shards, but at least 5, the fewest that Serve answers for. Chains begin at
// draws from the prior.
//
// If a shard fails, or gives no answer in 30 seconds, the run ends before that step: beside the error there is a result
// with the draws so far and the status run.Stopped, and a checkpoint resumes with that step. The run ends in the same
// way if an answer is from other rows, by number or hash, than the shard described at the start. A shard with another
// model or number type, with features, targets or classes in another order (by the names that it describes), or with a
// former shard's rows is refused before the first step.
//
// Proposals with non-finite numbers in an answer are rejected, as is right where the model overflows: the chains'
// mcmc.ChainStats count them.
type Metropolis struct {
	pbnn.Metropolis
	Shards []Shard

	over *federation
}

var (
	_ pbnn.Sampler = Metropolis{}
	_ fit.Taker    = Metropolis{}
)

// Title implements fit.Method.
func (m Metropolis) Title() string { return m.Metropolis.Title() + ", over shards" }

// MarshalJSON writes the settings. The shards' rows are in the name of the problem, which identifies a run too.
func (m Metropolis) MarshalJSON() ([]byte, error) { return json.Marshal(m.Metropolis) }

// Takes implements fit.Taker: the rows of the shards, which are asked for their descriptions.
func (m Metropolis) Takes() fit.Takes {
	return fit.Takes{Elsewhere: func(ctx context.Context, model bayes.Model) (fit.Method, *fit.Data, error) {
		f, data, err := meet(ctx, m.Shards, model)
		m.over = f
		return m, data, err
	}}
}

// Prepare implements fit.Method: as pbnn.Metropolis, and it refuses shards that do not fit, and settings that shards
// cannot serve.
func (m Metropolis) Prepare(j *fit.Job) (fit.Method, error) {
	if err := m.over.check(j); err != nil {
		return nil, err
	}
	shards, smallest := len(m.Shards), slices.Min(m.over.rows)
	if err := limits.Fill("shards: Metropolis",
		limits.Int("BatchSize", &m.BatchSize, min(max(minBatchSize, 100/shards), smallest)).To(smallest).
			Because("the rows of the smallest shard"),
		limits.Field("Estimate", m.Estimate, m.Estimate != pbnn.WithinBatches,
			"MeanOfBatches or OneBatch: shards give no rows"),
		limits.Field("Noise", m.Noise, m.Noise == 0, "0 over shards: set Batches"),
		limits.Field("Proposal", m.Proposal, m.Proposal != pbnn.Langevin,
			"a random walk over shards, which give no gradients"),
	); err != nil {
		return nil, err
	}
	if m.Target == nil {
		m.Target = pbnn.TargetFull{}
	}
	m.Target = m.Target.ForBatchSize(m.BatchSize * shards)
	ready, err := m.Metropolis.Prepare(j)
	if err != nil {
		return nil, err
	}
	m.Metropolis = ready.(pbnn.Metropolis)
	return m, nil
}

// Run implements fit.Method.
func (m Metropolis) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return pbnn.Run(ctx, j, m, m.Target)
}

// Problem implements pbnn.Sampler: the shards are asked for the inputs of each move.
func (m Metropolis) Problem(d *pbnn.Data) (density.Problem, mcmc.Kernel, error) {
	rows := float64(d.Rows())
	a := &asking{
		federation: m.over, Metropolis: m.Metropolis, seed: d.Seed, chains: d.Chains,
		perRow: m.Target.EffectivePoints(d.Rows()) / rows,
	}
	input := func(differences []float64) []any {
		return []any{compute.Floats(d.DType, differences, a.chains, m.Batches)}
	}
	return density.Problem{
		Name: fmt.Sprintf("%s over shards of %d rows (%s), %d mini-batches of %d rows of each, of the model %s",
			m.Target, m.over.rows, m.over.hashes, m.Batches, m.BatchSize, m.over.model.Model),
		Dim: d.Bound.D, Initial: d.Bound.SamplePrior,
		BatchShare: float64(len(m.Shards)*m.BatchSize*m.Batches) / rows,
		Target: func(_ compute.Nodes, inputs []*graph.Node) density.Target {
			return answered{bound: d.Bound, answers: inputs[0]}
		},
		HostInputs: &density.HostInputs{
			Blank: input(make([]float64, a.chains*m.Batches)),
			Inputs: func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
				differences, err := a.differences(ctx, move, carried)
				if err != nil {
					return nil, err
				}
				return input(differences), nil
			},
		},
	}.Keyed("shards", d.Bound.ProgramKey()), walk{m.Metropolis.Kernel(), m.Estimate, m.Rule, m.StepSize}, nil
}
