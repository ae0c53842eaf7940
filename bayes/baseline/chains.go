package baseline

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	runs "gobnn/bayes/run"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/tensors"
)

// MAPHMC is MAP for the shared parameters psi, then Hamiltonian Monte Carlo for the stochastic ones with psi fixed there (Sharma, Farquhar, Nalisnick and
// Rainforth 2023, section 6; the rival of Zhao et al. 2024): draws from the exact p(phi | y; psi), given all rows, at a psi that the posterior of phi has had
// no say in. Chains begin at the mode.
type MAPHMC struct {
	// Kernel leaves the posterior invariant; default mcmc.HMC{StepSize: 0.01, Steps: 100}, which is Zhao et al.'s.
	Kernel mcmc.Kernel
	Chains int // side by side; default 4
	Draws  int // of each chain; default 250. Zhao et al. take 1000 of one chain
	WarmUp int // transitions of each chain before the draws; default 250. Zhao et al. take 2000
}

// HMC is Hamiltonian Monte Carlo for all parameters of the network, given all rows: the reference that the others approximate, at many times the cost. Every
// parameter has the model's prior, whatever the Model's partition. Look at Result.Chains, and at package diag, before the draws are believed.
//
// Chains begin at draws from the prior, which shows where they do not come to the same; with many rows a draw is so far out that the warm-up needs thousands
// of transitions. FromMode begins all of them at the mode, of MAP training first, whose prior is on the parameters that the partition calls stochastic.
type HMC struct {
	Kernel mcmc.Kernel // leaves the posterior invariant, such as mcmc.HMC; default mcmc.NUTS{}
	Chains int         // side by side; default 4
	Draws  int         // of each chain; default 250
	WarmUp int         // transitions of each chain before the draws, which choose step size and scales; default 500

	FromMode bool `json:",omitempty"` // chains begin at the mode; default: at draws from the prior
}

var (
	_ Method = MAPHMC{}
	_ Method = HMC{}
)

// Name implements Method.
func (MAPHMC) Name() string { return "MAP-HMC" }

// Name implements Method.
func (HMC) Name() string { return "HMC" }

func (MAPHMC) source() string {
	return "MAP for the shared parameters, HMC for the stochastic ones (Sharma et al. 2023)"
}
func (HMC) source() string { return "Hamiltonian Monte Carlo for all parameters" }

func (m MAPHMC) describe() any {
	return describeChains("MAPHMC", m.Kernel, m.Chains, m.Draws, m.WarmUp)
}
func (m HMC) describe() any {
	described := describeChains("HMC", m.Kernel, m.Chains, m.Draws, m.WarmUp)
	described["from_mode"] = m.FromMode
	return described
}

func describeChains(name string, kernel mcmc.Kernel, chains, draws, warmUp int) map[string]any {
	return map[string]any{"type": name, "kernel": fmt.Sprintf("%T", kernel), "settings": kernel, "chains": chains, "draws": draws, "warm_up": warmUp}
}

func (m MAPHMC) prepared(bound *bayes.BoundModel, _ Settings, _ int) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = mcmc.HMC{StepSize: 0.01, Steps: 100}
	}
	defaultInt(&m.Chains, 4)
	defaultInt(&m.Draws, 250)
	defaultInt(&m.WarmUp, 250)
	return m, checkChains("MAPHMC", m.Kernel, bound.D, m.Chains, m.Draws, m.WarmUp)
}

func (m HMC) prepared(bound *bayes.BoundModel, _ Settings, _ int) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = mcmc.NUTS{}
	}
	defaultInt(&m.Chains, 4)
	defaultInt(&m.Draws, 250)
	defaultInt(&m.WarmUp, 500)
	return m, checkChains("HMC", m.Kernel, bound.D+bound.W, m.Chains, m.Draws, m.WarmUp)
}

func checkChains(owner string, kernel mcmc.Kernel, d, chains, draws, warmUp int) error {
	if err := limits.Check("baseline: "+owner,
		limits.Field("Chains", chains, chains >= 1, "at least 1"),
		limits.Field("Draws", draws, draws >= 1, "at least 1"),
		limits.Field("WarmUp", warmUp, warmUp >= 1, "at least 1"),
	); err != nil {
		return err
	}
	if !mcmc.LeavesInvariant(kernel) {
		return fmt.Errorf("baseline: %s.Kernel is %T, which leaves no posterior invariant, or does not say so (mcmc.Exact): take one that "+
			"accepts or rejects, such as mcmc.HMC", owner, kernel)
	}
	if err := mcmc.Check(kernel, d, true); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	return nil
}

func (m MAPHMC) fit(ctx context.Context, j *job) (*Result, error) {
	point, err := j.trainMode(ctx)
	if err != nil {
		return nil, err
	}
	phi, psi := split(j.bound, point.theta)
	problem, err := j.problem(j.bound, psi, m.Chains)
	if err != nil {
		return nil, err
	}
	problem.Start = j.startAt(phi, m.Chains)
	return j.sample(ctx, point.Result, j.bound, psi, problem, m.Kernel, mcmc.Settings{Chains: m.Chains, Draws: m.Draws, WarmUp: m.WarmUp})
}

func (m HMC) fit(ctx context.Context, j *job) (*Result, error) {
	model := j.bound.Model
	var all []string
	for _, slot := range j.bound.Slots {
		all = append(all, slot.Name)
	}
	model.Stochastic = bayes.Names(all...)
	whole, err := model.Bind(j.bound.Inputs, j.bound.Outputs)
	if err != nil {
		return nil, err
	}
	problem, err := j.problem(whole, nil, m.Chains)
	if err != nil {
		return nil, err
	}
	before := &Result{}
	if m.FromMode {
		point, err := j.trainMode(ctx)
		if err != nil {
			return nil, err
		}
		before, problem.Start = point.Result, j.startAt(point.theta, m.Chains) // in the order of the slots, as phi of the whole network is
	}
	return j.sample(ctx, before, whole, nil, problem, m.Kernel, mcmc.Settings{Chains: m.Chains, Draws: m.Draws, WarmUp: m.WarmUp})
}

// problem is the posterior of phi given all rows, at psi, flat [W].
func (j *job) problem(bound *bayes.BoundModel, psi []float64, chains int) (mcmc.Problem, error) {
	x, y, err := j.data.Tensors(j.DType, j.parts.Train)
	if err != nil {
		return mcmc.Problem{}, err
	}
	var shared *tensors.Tensor
	if bound.W > 0 {
		shared = compute.Floats(j.DType, psi, bound.W)
	}
	problem, err := target.Problem(j.engine, bound, x, y, shared, chains, 1)
	if err != nil {
		return mcmc.Problem{}, fmt.Errorf("baseline: %w", err)
	}
	return problem, nil
}

// startAt begins every chain at phi, [D].
func (j *job) startAt(phi []float64, chains int) *tensors.Tensor {
	var start []float64
	for range chains {
		start = append(start, phi...)
	}
	return compute.Floats(j.DType, start, chains, len(phi))
}

// sampler is one that has compiled the chains of this kind before, or a new one.
func (j *job) sampler(bound *bayes.BoundModel, problem mcmc.Problem, kernel mcmc.Kernel) *mcmc.Sampler {
	kind := fmt.Sprintf("%s, %d rows in batches of %d, %d features, %d outputs", text(bound.Model), j.parts.Train.Rows(), j.BatchSize, bound.Inputs, bound.Outputs)
	return j.trainer.samplers.For(kind, problem, kernel)
}

// sample runs chains after a training, or after nothing, and makes their draws, chain after chain, the posterior's particles.
func (j *job) sample(ctx context.Context, before *Result, bound *bayes.BoundModel, psi []float64, problem mcmc.Problem, kernel mcmc.Kernel, s mcmc.Settings) (*Result, error) {
	s.Seed, s.DType, s.Engine, s.CheckpointEvery, s.Replace = j.Seed, j.DType, j.engine, j.CheckpointEvery, j.Replace
	if j.Checkpoint != "" {
		s.Checkpoint = j.Checkpoint + "." + sampling
	}
	if j.Progress != nil {
		s.Progress = func(p runs.Progress) {
			j.Progress(Progress{Stage: p.Stage, Step: p.Step, Steps: p.Steps, Loss: nan, Validation: nan, Best: nan, Elapsed: p.Elapsed})
		}
	}
	chains, err := j.sampler(bound, problem, kernel).Sample(ctx, s)
	if errors.Is(err, mcmc.ErrStuck) {
		return nil, fmt.Errorf("%w: %w", ErrDiverged, err)
	}
	if chains == nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	if chains.Draws.PerChain == 0 {
		return nil, fmt.Errorf("baseline: ended before all chains had a draw: %w", errors.Join(err, context.Cause(ctx)))
	}
	stopped := err
	lost := 0
	for _, c := range chains.Chains {
		if 10*c.NonFinite > c.Transitions { // beyond what floating point holds, and back, again and again
			lost++
		}
	}
	if lost > 0 {
		return nil, fmt.Errorf("%w: %d of %d chains of %T come where the density or its gradient is not finite in more than a tenth of their moves: take a smaller step size than in %+v", ErrDiverged, lost, len(chains.Chains), kernel, kernel)
	}
	phi, err := compute.Float64s(chains.Draws.Tensor())
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	result := *before
	result.Chains = chains
	if result.Status == "" || chains.Status != mcmc.Completed {
		result.Status = Status(chains.Status)
	}
	if stopped != nil {
		stopped = fmt.Errorf("baseline: %w", stopped)
	}
	result.Posterior, err = j.posterior(bound, result.Status, particles{phi: phi, psi: psi, chains: len(chains.Chains)})
	return &result, errors.Join(stopped, err)
}
