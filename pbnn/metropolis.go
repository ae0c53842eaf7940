package pbnn

import (
	"context"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Metropolis accepts or rejects by loss differences on mini-batches, with a penalty for their noise: Algorithm 1 of the
// paper with a random walk, section 6.2 with Langevin. The rule Naive leaves the penalty out, which is
// biased. All chains use the same mini-batches. The package comment says how large M and n should be.
type Metropolis struct {
	Sampling
	Target    FromMiniBatches `json:"target,omitempty"` // default TargetFull{}
	BatchSize int             `json:"batch_size"`       // n; default 100, or all rows if there are fewer
	Batches   int             `json:"batches"`          // M; default 10
	Proposal  Proposal        `json:"proposal"`         // default "random walk"
	Estimate  Estimate        `json:"estimate"`         // default MeanOfBatches
	Rule      Rule            `json:"rule"`             // default Corrected
	// StepSize is h = sqrt(2 eta), the standard deviation of the proposal's noise; 0: a warm-up chooses.
	StepSize float64 `json:"step_size"`

	// Noise is the largest acceptable sigma^2. Before the first draw Run raises Batches, and after that BatchSize, until
	// the mean sigma^2 of a trial run is at most Noise, or the limits below are reached (see Details.Adapted). All draws
	// are made with the same Batches and BatchSize. Default 0: they are not raised.
	Noise        float64 `json:"noise"`
	MaxBatches   int     `json:"max_batches"`    // limit for Noise; default 10 times Batches
	MaxBatchSize int     `json:"max_batch_size"` // limit for Noise; default BatchSize: it is not raised
}

var _ Sampler = Metropolis{}

// Title implements fit.Method.
func (m Metropolis) Title() string { return title(m, m.Target) }

// Prepare implements fit.Method.
func (m Metropolis) Prepare(j *fit.Job) (fit.Method, error) {
	if m.Target == nil {
		m.Target = TargetFull{}
	}
	rows := j.Rows()
	if err := limits.Fill("pbnn: Metropolis",
		batchSize(&m.BatchSize, rows),
		limits.Int("Batches", &m.Batches, 10).From(1),
		limits.Choice("Proposal", &m.Proposal, randomWalk, randomWalk, Langevin),
		limits.Choice("Estimate", &m.Estimate, MeanOfBatches, MeanOfBatches, OneBatch, WithinBatches),
		limits.Choice("Rule", &m.Rule, Corrected, Rules()...),
		stepSize(&m.StepSize),
		limits.Float("Noise", &m.Noise).Zero("Batches and BatchSize stay").Positive(),
	); err != nil {
		return nil, err
	}
	if err := limits.Fill("pbnn: Metropolis",
		limits.Int("MaxBatches", &m.MaxBatches, 10*m.Batches).From(m.Batches).Because("Batches"),
		limits.Int("MaxBatchSize", &m.MaxBatchSize, m.BatchSize).Between(m.BatchSize, rows).
			Because("BatchSize and the rows of the data"),
	); err != nil {
		return nil, err
	}
	m.Target = m.Target.ForBatchSize(m.BatchSize)
	var err error
	if m.Sampling, err = m.Sampling.Prepared(j, m.Target); err != nil {
		return nil, err
	}
	return m, m.Estimate.check(m.Batches, m.BatchSize)
}

// Run implements fit.Method.
func (m Metropolis) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, m, m.Target)
}

// Problem implements Sampler.
func (m Metropolis) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.MiniBatches(m.Target, m.BatchSize, m.Batches)
	return problem, m.Kernel(), err
}

// Kernel is the kernel of Algorithm 1. Package shards takes the tuning of its step size.
func (m Metropolis) Kernel() mcmc.Tunable { return kernel{m.Proposal, m.Estimate, m.Rule, m.StepSize} }

// batchSize is the row of a BatchSize n, for data of N rows.
func batchSize(n *int, rows int) limits.Row {
	return limits.Int("BatchSize", n, min(100, rows)).Between(1, rows).Because("the rows of the data")
}

// stepSize is the row of a StepSize h.
func stepSize(h *float64) limits.Row {
	return limits.Float("StepSize", h).Zero("a warm-up chooses").Positive()
}
