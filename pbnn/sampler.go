package pbnn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Sampler is a way to sample one of the targets: Metropolis, Barker, Confidence, Unadjusted or AllRows.
type Sampler interface {
	// Law is the target.
	Sampled() Target
	// RowsPerMove is how many rows' log-likelihoods a chain evaluates in a move, each place and each gradient counted as one evaluation, for data of N rows. A transition of Barker's and of Confidence takes
	// several moves, and so does a trajectory.
	RowsPerMove(rows int) int
	// prepared fills in what is zero and checks the rest.
	prepared(rows int) (Sampler, error)
	// problem is what mcmc.Sample takes.
	problem(d *prepared) (mcmc.Problem, mcmc.Kernel, error)
}

// Metropolis accepts or rejects by loss differences on mini-batches: Algorithm 1 with a random walk, section 6.2 with Langevin's proposal, and, with the rule Naive, what both are
// there to mend. All chains look at the same mini-batches (see miniBatches).
type Metropolis struct {
	Target    FromMiniBatches `json:"-"`          // TargetFull{} or TargetExpected{}: must be set
	BatchSize int             `json:"batch_size"` // n; default 100, or all rows if there are fewer
	Batches   int             `json:"batches"`    // M; default 10
	Proposal  Proposal        `json:"proposal"`   // default RandomWalk
	Estimate  Estimate        `json:"estimate"`   // default MeanOfBatches
	Rule      Rule            `json:"rule"`       // default Corrected
	StepSize  float64         `json:"step_size"`  // h = sqrt(2 eta), the standard deviation of the proposal's noise; 0: a warm-up chooses

	// Noise asks for a sigma^2 of at most so much: Sample then raises Batches, and after that BatchSize, until trial runs show it, and fixes them before the first draw
	// (see Adapted). Default 0: they stay as they are.
	Noise        float64 `json:"noise"`
	MaxBatches   int     `json:"max_batches"`    // that Noise may raise Batches to; default 10 times Batches
	MaxBatchSize int     `json:"max_batch_size"` // that Noise may raise BatchSize to; default: BatchSize, which stays
}

// Unadjusted takes every step of a Langevin diffusion whose gradient is that of a mini-batch (section 6.3, eq. 9 and 33): mcmc.SGLD, mcmc.ULA or mcmc.SGHMC. It samples
// its target only in the limit of small steps.
type Unadjusted struct {
	Target    FromMiniBatches `json:"-"`          // must be set
	BatchSize int             `json:"batch_size"` // n; default 100, or all rows if there are fewer
	Kernel    mcmc.Kernel     `json:"kernel"`     // with the paper's eta, mcmc.SGLD{StepSize: 2 eta}; must be set
}

// AllRows runs any kernel of package mcmc on all rows: mcmc.RandomWalkMetropolis and mcmc.MALA are the paper's BNN (eq. 11 and 26), mcmc.ULA its unadjusted Langevin
// (eq. 32), and with TargetTempered they sample the "Safe Bayes" posterior.
type AllRows struct {
	Target FromAllRows `json:"-"`      // TargetFullData{} or TargetTempered{}: must be set
	Kernel mcmc.Kernel `json:"kernel"` // must be set
}

var (
	_ Sampler = Metropolis{}
	_ Sampler = Unadjusted{}
	_ Sampler = AllRows{}
)

// Law implements Sampler.
func (m Metropolis) Sampled() Target { return m.Target }

// Law implements Sampler.
func (u Unadjusted) Sampled() Target { return u.Target }

// Law implements Sampler.
func (a AllRows) Sampled() Target { return a.Target }

// RowsPerMove implements Sampler: both places' losses, and for Langevin both places' gradients.
func (m Metropolis) RowsPerMove(int) int {
	if m.Proposal == Langevin {
		return 4 * m.Batches * m.BatchSize
	}
	return 2 * m.Batches * m.BatchSize
}

// RowsPerMove implements Sampler.
func (u Unadjusted) RowsPerMove(int) int { return u.BatchSize }

// RowsPerMove implements Sampler: what a kernel of one evaluation takes, such as MALA; a trajectory takes one for each step.
func (a AllRows) RowsPerMove(rows int) int { return rows }

func (m Metropolis) prepared(rows int) (Sampler, error) {
	m.BatchSize = cmp.Or(m.BatchSize, min(100, rows))
	m.Batches = cmp.Or(m.Batches, 10)
	m.Proposal = cmp.Or(m.Proposal, RandomWalk)
	m.Estimate = cmp.Or(m.Estimate, MeanOfBatches)
	m.Rule = cmp.Or(m.Rule, Corrected)
	m.MaxBatches = cmp.Or(m.MaxBatches, 10*m.Batches)
	m.MaxBatchSize = cmp.Or(m.MaxBatchSize, m.BatchSize)
	if m.Target == nil {
		return nil, noTarget("Metropolis", "TargetFull{} or TargetExpected{}")
	}
	if err := limits.Check("pbnn: Metropolis",
		limits.Field("BatchSize", m.BatchSize, m.BatchSize >= 1 && m.BatchSize <= rows, fmt.Sprintf("from 1 to the %d rows of the data", rows)),
		limits.Field("Batches", m.Batches, m.Batches >= 1, "at least 1"),
		limits.Field("Noise", m.Noise, m.Noise >= 0, "0 (Batches and BatchSize stay) or more"),
		limits.Field("MaxBatches", m.MaxBatches, m.MaxBatches >= m.Batches, fmt.Sprintf("at least Batches, %d", m.Batches)),
		limits.Field("MaxBatchSize", m.MaxBatchSize, m.MaxBatchSize >= m.BatchSize && m.MaxBatchSize <= rows, fmt.Sprintf("from BatchSize, %d, to the %d rows of the data", m.BatchSize, rows)),
	); err != nil {
		return nil, err
	}
	if err := m.Estimate.check(m.Batches, m.BatchSize); err != nil {
		return nil, err
	}
	m.Target = m.Target.fixed(m.BatchSize)
	if err := m.kernel().Check(0); err != nil {
		return nil, err
	}
	return m, m.Target.check(rows)
}

func (m Metropolis) kernel() kernel { return kernel{m.Proposal, m.Estimate, m.Rule, m.StepSize} }

func (u Unadjusted) prepared(rows int) (Sampler, error) {
	u.BatchSize = cmp.Or(u.BatchSize, min(100, rows))
	if u.Target == nil {
		return nil, noTarget("Unadjusted", "TargetFull{} or TargetExpected{}")
	}
	if err := limits.Check("pbnn: Unadjusted", limits.Field("BatchSize", u.BatchSize, u.BatchSize >= 1 && u.BatchSize <= rows, fmt.Sprintf("from 1 to the %d rows of the data", rows))); err != nil {
		return nil, err
	}
	if u.Kernel == nil || u.Kernel.Carries() != mcmc.CarriesNothing {
		return nil, fmt.Errorf("pbnn: Unadjusted.Kernel is %T: it must take every step of a noisy gradient, such as mcmc.SGLD{StepSize: 0.001} or mcmc.ULA{StepSize: 0.01}", u.Kernel)
	}
	if err := asksTarget("Unadjusted", u.Kernel, "mcmc.SGLD{StepSize: 0.001}"); err != nil {
		return nil, err
	}
	if _, ok := u.Kernel.(kernel); ok {
		return nil, fmt.Errorf("pbnn: Unadjusted.Kernel accepts and rejects: take Metropolis")
	}
	u.Target = u.Target.fixed(u.BatchSize)
	return u, u.Target.check(rows)
}

func (a AllRows) prepared(rows int) (Sampler, error) {
	if a.Target == nil {
		return nil, noTarget("AllRows", "TargetFullData{} or TargetTempered{}")
	}
	if a.Kernel == nil {
		return nil, fmt.Errorf("pbnn: AllRows.Kernel is not set: take one of package mcmc, such as mcmc.RandomWalkMetropolis{} or mcmc.MALA{}")
	}
	if err := asksTarget("AllRows", a.Kernel, "mcmc.RandomWalkMetropolis{}"); err != nil {
		return nil, err
	}
	return a, a.Target.check(rows)
}

// asksTarget is an error for a kernel that never sees the data.
func asksTarget(sampler string, kernel mcmc.Kernel, take string) error {
	if kernel.UsesTarget() {
		return nil
	}
	return fmt.Errorf("pbnn: %s.Kernel is %T, which does not ask its target, and so never sees the data: take one that does, such as %s",
		sampler, kernel, take)
}

func (m Metropolis) problem(d *prepared) (mcmc.Problem, mcmc.Kernel, error) {
	problem, err := miniBatchProblem(d, m.Target, m.BatchSize, m.Batches)
	return problem, m.kernel(), err
}

func (u Unadjusted) problem(d *prepared) (mcmc.Problem, mcmc.Kernel, error) {
	problem, err := miniBatchProblem(d, u.Target, u.BatchSize, 1)
	return problem, u.Kernel, err
}

func (a AllRows) problem(d *prepared) (mcmc.Problem, mcmc.Kernel, error) {
	if d.columns == nil { // no rows are gathered
		var err error
		if d.columns, err = target.Features(d.engine, d.Bound, d.x, d.psi); err != nil {
			return mcmc.Problem{}, nil, fmt.Errorf("pbnn: %w", err)
		}
	}
	problem, likelihood, err := networkProblem(d, a.Target, d.rows, d.with("features", d.columns))
	if err != nil {
		return problem, nil, err
	}
	points := a.Target.EffectivePoints(d.rows)
	problem.Target = func(data compute.Nodes, _ []*graph.Node) mcmc.Target {
		return target.At(target.Tempered{Likelihood: likelihood, Points: points}, data["psi"], target.Batch{Features: data["features"], Y: data["y"]})
	}
	return problem, a.Kernel, nil
}

func miniBatchProblem(d *prepared, distribution FromMiniBatches, size, batches int) (mcmc.Problem, error) {
	problem, likelihood, err := networkProblem(d, distribution, size*batches, d.tensors())
	if err != nil {
		return problem, err
	}
	problem.Name += fmt.Sprintf(", %d mini-batches of %d rows", batches, size)
	rows, points := d.rows, distribution.EffectivePoints(d.rows)
	problem.Target = func(data compute.Nodes, _ []*graph.Node) mcmc.Target {
		return miniBatches{likelihood: likelihood, points: points, rows: rows, size: size, batches: batches, data: data}
	}
	return problem, nil
}

// networkProblem is a problem without its target, and the likelihood of all chains on so many rows at once.
func networkProblem(d *prepared, distribution Target, rows int, data map[string]*tensors.Tensor) (mcmc.Problem, target.Likelihood, error) {
	model, err := json.Marshal(d.Bound.Model)
	if err != nil {
		return mcmc.Problem{}, target.Likelihood{}, fmt.Errorf("pbnn: the model: %w", err)
	}
	plan, err := target.NewPlan(d.Bound, d.settings.DType, target.Workload{Particles: d.settings.Chains, Rows: rows, Devices: d.settings.Devices})
	if err != nil {
		return mcmc.Problem{}, target.Likelihood{}, fmt.Errorf("pbnn: %w", err)
	}
	return mcmc.Problem{
		Name: fmt.Sprintf("%s of the model %s", distribution, model), Dim: d.Bound.D, Data: data, Initial: d.Bound.SamplePrior, Start: d.start,
	}, target.Likelihood{Model: d.Bound, Plan: plan}, nil
}

// tensors are the data by rows, by their names in miniBatches.
func (d *prepared) tensors() map[string]*tensors.Tensor {
	if d.features != nil {
		return d.with("features", d.features)
	}
	return d.with("x", d.x)
}

// with are the data whose inputs have the given name.
func (d *prepared) with(name string, inputs *tensors.Tensor) map[string]*tensors.Tensor {
	data := map[string]*tensors.Tensor{name: inputs, "y": d.y}
	if d.psi != nil {
		data["psi"] = d.psi
	}
	return data
}

// batchOf is the rows with the given numbers, int32 [B, 1], or all if there are none.
func batchOf(data compute.Nodes, rows *graph.Node) target.Batch {
	of := func(x *graph.Node) *graph.Node {
		if x == nil || rows == nil {
			return x
		}
		return graph.Gather(x, rows)
	}
	batch := target.Batch{X: of(data["x"]), Y: of(data["y"])}
	if features := of(data["features"]); features != nil {
		batch.Features = graph.Transpose(features, 0, 1)
	}
	return batch
}

func noTarget(owner, which string) error {
	return fmt.Errorf("pbnn: %s.Target is not set: it must be %s", owner, which)
}
