package pbnn

import (
	"cmp"
	"fmt"

	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Sampler is a way to sample a target: Metropolis, Barker, Confidence, Unadjusted, AllRows, or one of your own. It is a
// struct of settings; its fields are kept, as JSON, in the posterior's provenance.
type Sampler interface {
	// Sampled is the target.
	Sampled() Target
	// Prepare fills in what is zero and checks the rest, for data of N rows.
	Prepare(rows int) (Sampler, error)
	// RowsPerMove returns the number of row evaluations that a chain makes in a move, for data of N rows. A row counts
	// once for its log-likelihood at one theta, and once more for its gradient. A transition of Barker, of Confidence
	// or of a kernel with trajectories takes several moves.
	RowsPerMove(rows int) int
	// Problem gives the arguments of mcmc.Sample: a problem made by Data.MiniBatches or Data.AllRows, and the kernel
	// that samples it. It is called on the sampler that Prepare returned.
	Problem(data *Data) (density.Problem, mcmc.Kernel, error)
}

// Metropolis accepts or rejects by loss differences on mini-batches, with a penalty for their noise: Algorithm 1 of the
// paper with the proposal RandomWalk, section 6.2 with Langevin. The rule Naive leaves the penalty out, which is
// biased. All chains use the same mini-batches. The package comment says how large M and n should be.
type Metropolis struct {
	Target    FromMiniBatches `json:"-"`          // TargetFull{} or TargetExpected{}: must be set
	BatchSize int             `json:"batch_size"` // n; default 100, or all rows if there are fewer
	Batches   int             `json:"batches"`    // M; default 10
	Proposal  Proposal        `json:"proposal"`   // default RandomWalk
	Estimate  Estimate        `json:"estimate"`   // default MeanOfBatches
	Rule      Rule            `json:"rule"`       // default Corrected
	// StepSize is h = sqrt(2 eta), the standard deviation of the proposal's noise; 0: a warm-up chooses.
	StepSize float64 `json:"step_size"`

	// Noise is the largest acceptable sigma^2. Before the first draw Fit raises Batches, and after that BatchSize, until
	// the mean sigma^2 of a trial run is at most Noise, or the limits below are reached (see Result.Adapted). All draws
	// are made with the same Batches and BatchSize. Default 0: they are not raised.
	Noise        float64 `json:"noise"`
	MaxBatches   int     `json:"max_batches"`    // limit for Noise; default 10 times Batches
	MaxBatchSize int     `json:"max_batch_size"` // limit for Noise; default BatchSize: it is not raised
}

// Unadjusted makes steps of a Langevin diffusion with the gradient of a mini-batch, and accepts all of them (section
// 6.3, eq. 9 and 33): mcmc.SGLD, mcmc.ULA or mcmc.SGHMC. It samples its target only in the limit of small steps.
type Unadjusted struct {
	Target    FromMiniBatches `json:"-"`          // TargetFull{} or TargetExpected{}: must be set
	BatchSize int             `json:"batch_size"` // n; default 100, or all rows if there are fewer
	Kernel    mcmc.Kernel     `json:"kernel"`     // with the paper's eta, mcmc.SGLD{StepSize: 2 eta}; must be set
}

// AllRows runs any kernel of package mcmc on all rows: mcmc.RandomWalkMetropolis and mcmc.MALA are the paper's BNN
// (eq. 11 and 26), mcmc.ULA its unadjusted Langevin (eq. 32), and with TargetTempered they sample the "Safe Bayes"
// posterior.
type AllRows struct {
	Target FromAllRows `json:"-"`      // TargetFullData{} or TargetTempered{}: must be set
	Kernel mcmc.Kernel `json:"kernel"` // must be set
}

var (
	_ Sampler = Metropolis{}
	_ Sampler = Unadjusted{}
	_ Sampler = AllRows{}
)

// Sampled implements Sampler.
func (m Metropolis) Sampled() Target { return m.Target }

// Sampled implements Sampler.
func (u Unadjusted) Sampled() Target { return u.Target }

// Sampled implements Sampler.
func (a AllRows) Sampled() Target { return a.Target }

// RowsPerMove implements Sampler: the losses at theta and theta', and for Langevin the gradients at both.
func (m Metropolis) RowsPerMove(int) int {
	if m.Proposal == Langevin {
		return 4 * m.Batches * m.BatchSize
	}
	return 2 * m.Batches * m.BatchSize
}

// RowsPerMove implements Sampler.
func (u Unadjusted) RowsPerMove(int) int { return u.BatchSize }

// RowsPerMove implements Sampler: N, for a kernel with one evaluation a move, such as MALA; a trajectory has one a
// step.
func (a AllRows) RowsPerMove(rows int) int { return rows }

// Prepare implements Sampler.
func (m Metropolis) Prepare(rows int) (Sampler, error) {
	m, err := m.withDefaults("Metropolis", rows)
	if err != nil {
		return nil, err
	}
	return m, m.Estimate.check(m.Batches, m.BatchSize)
}

// withDefaults fills in the settings and checks all but the Estimate; owner is the type that errors name.
func (m Metropolis) withDefaults(owner string, rows int) (Metropolis, error) {
	m.BatchSize = cmp.Or(m.BatchSize, min(100, rows))
	m.Batches = cmp.Or(m.Batches, 10)
	m.Proposal = cmp.Or(m.Proposal, RandomWalk)
	m.Estimate = cmp.Or(m.Estimate, MeanOfBatches)
	m.Rule = cmp.Or(m.Rule, Corrected)
	m.MaxBatches = cmp.Or(m.MaxBatches, 10*m.Batches)
	m.MaxBatchSize = cmp.Or(m.MaxBatchSize, m.BatchSize)
	if m.Target == nil {
		return m, noTarget(owner, "TargetFull{} or TargetExpected{}")
	}
	if err := limits.Check("pbnn: "+owner,
		batchSize(m.BatchSize, 1, rows),
		limits.Field("Batches", m.Batches, m.Batches >= 1, "at least 1"),
		limits.Field("Noise", m.Noise, m.Noise >= 0, "0 (Batches and BatchSize stay) or more"),
		limits.Field("MaxBatches", m.MaxBatches, m.MaxBatches >= m.Batches,
			fmt.Sprintf("at least Batches, %d", m.Batches)),
		limits.Field("MaxBatchSize", m.MaxBatchSize, m.MaxBatchSize >= m.BatchSize && m.MaxBatchSize <= rows,
			fmt.Sprintf("from BatchSize, %d, to the %d rows of the data", m.BatchSize, rows)),
	); err != nil {
		return m, err
	}
	m.Target = m.Target.ForBatchSize(m.BatchSize)
	return m, m.kernel().Check(0)
}

// penalised is the Metropolis that a sampler is, or that one of another package embeds.
func penalised(s Sampler) (m Metropolis, ok bool) {
	as, ok := s.(interface{ penalty() Metropolis })
	if !ok {
		return m, false
	}
	return as.penalty(), true
}

func (m Metropolis) penalty() Metropolis { return m }

func (m Metropolis) kernel() kernel { return kernel{m.Proposal, m.Estimate, m.Rule, m.StepSize} }

// Prepare implements Sampler.
func (u Unadjusted) Prepare(rows int) (Sampler, error) {
	u.BatchSize = cmp.Or(u.BatchSize, min(100, rows))
	if u.Target == nil {
		return nil, noTarget("Unadjusted", "TargetFull{} or TargetExpected{}")
	}
	if err := limits.Check("pbnn: Unadjusted", batchSize(u.BatchSize, 1, rows)); err != nil {
		return nil, err
	}
	if u.Kernel == nil || u.Kernel.Carries() != mcmc.CarriesNothing {
		return nil, fmt.Errorf("pbnn: Unadjusted.Kernel is %T: it must take every step of a noisy gradient, such as "+
			"mcmc.SGLD{StepSize: 0.001} or mcmc.ULA{StepSize: 0.01}", u.Kernel)
	}
	if err := checkUsesTarget("Unadjusted", u.Kernel, "mcmc.SGLD{StepSize: 0.001}"); err != nil {
		return nil, err
	}
	u.Target = u.Target.ForBatchSize(u.BatchSize)
	return u, nil
}

// Prepare implements Sampler.
func (a AllRows) Prepare(int) (Sampler, error) {
	if a.Target == nil {
		return nil, noTarget("AllRows", "TargetFullData{} or TargetTempered{}")
	}
	if a.Kernel == nil {
		return nil, fmt.Errorf("pbnn: AllRows.Kernel is not set: take one of package mcmc, such as " +
			"mcmc.RandomWalkMetropolis{} or mcmc.MALA{}")
	}
	return a, checkUsesTarget("AllRows", a.Kernel, "mcmc.RandomWalkMetropolis{}")
}

// Problem implements Sampler.
func (m Metropolis) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.MiniBatches(m.Target, m.BatchSize, m.Batches)
	return problem, m.kernel(), err
}

// Problem implements Sampler.
func (u Unadjusted) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.MiniBatches(u.Target, u.BatchSize, 1)
	return problem, u.Kernel, err
}

// Problem implements Sampler.
func (a AllRows) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.AllRows(a.Target)
	return problem, a.Kernel, err
}

// batchSize is the limit of a BatchSize n, for data of N rows.
func batchSize(n, least, rows int) limits.Limit {
	want := fmt.Sprintf("from %d to the %d rows of the data", least, rows)
	if rows < least {
		want = fmt.Sprintf("at least %d, and the data have %d row: take more data, or AllRows", least, rows)
	}
	return limits.Field("BatchSize", n, n >= least && n <= rows, want)
}

func noTarget(owner, which string) error {
	return fmt.Errorf("pbnn: %s.Target is not set: it must be %s", owner, which)
}

// checkUsesTarget is an error for a kernel that does not evaluate its target, and so never sees the data.
func checkUsesTarget(sampler string, kernel mcmc.Kernel, take string) error {
	if kernel.UsesTarget() {
		return nil
	}
	return fmt.Errorf("pbnn: %s.Kernel is %T, which does not ask its target, and so never sees the data: take one that "+
		"evaluates its target, such as %s", sampler, kernel, take)
}
