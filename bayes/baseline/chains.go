package baseline

import (
	"context"
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// MAPHMC is MAP for the shared parameters psi, then Hamiltonian Monte Carlo for the stochastic ones at that psi
// (Sharma, Farquhar, Nalisnick and Rainforth 2023, section 6; a comparison of Zhao et al. 2024). The draws are from the
// exact p(phi | y; psi), given all rows, but psi was chosen without averaging over phi. Chains begin at the mode.
type MAPHMC struct {
	// Kernel leaves the posterior invariant; default mcmc.HMC{StepSize: 0.01, Steps: 100}, which is Zhao et al.'s.
	Kernel mcmc.Kernel
	// Sampling are the chains' settings; default 4 chains of 250 draws after 250 transitions of warm-up. Zhao et al. take
	// 1000 draws of one chain after 2000.
	Sampling mcmc.Settings
}

// HMC is Hamiltonian Monte Carlo for all parameters of the network, given all rows: the reference that the others
// approximate, at many times the cost. Every parameter has the model's prior, whatever Model.Stochastic is. Check
// Result.Chains and the diagnostics of package diag before using the draws.
//
// Chains begin at draws from the prior and each climbs from there (density.Climb), so that diagnostics show if they do
// not converge to the same distribution. With FromMode all begin at the mode that MAP training finds first, whose prior
// is on the parameters that the partition calls stochastic.
type HMC struct {
	Kernel mcmc.Kernel // leaves the posterior invariant, such as mcmc.HMC; default mcmc.NUTS{}
	// Sampling are the chains' settings; default 4 chains of 250 draws after 500 transitions of warm-up, which choose step
	// size and scales.
	Sampling mcmc.Settings
	FromMode bool // chains begin at the mode; default: each climbs from its own draw from the prior
}

var (
	_ Method = MAPHMC{}
	_ Method = HMC{}
)

// Name implements Method.
func (MAPHMC) Name() string { return "MAP-HMC" }

// Name implements Method.
func (HMC) Name() string { return "HMC" }

// Source implements Method.
func (MAPHMC) Source() string {
	return "MAP for the shared parameters, HMC for the stochastic ones (Sharma et al. 2023)"
}

// Source implements Method.
func (HMC) Source() string { return "Hamiltonian Monte Carlo for all parameters" }

// MarshalJSON writes what decides the draws.
func (m MAPHMC) MarshalJSON() ([]byte, error) {
	return json.Marshal(describeChains(m.Kernel, m.Sampling))
}

// MarshalJSON writes what decides the draws.
func (m HMC) MarshalJSON() ([]byte, error) {
	described := describeChains(m.Kernel, m.Sampling)
	described["from_mode"] = m.FromMode
	return json.Marshal(described)
}

func describeChains(kernel mcmc.Kernel, s mcmc.Settings) map[string]any {
	return map[string]any{
		"kernel": fmt.Sprintf("%T", kernel), "settings": kernel, "chains": s.Chains, "draws": s.Draws, "thin": s.Thin,
		"warm_up": s.WarmUp, "fixed_scale": s.FixedScale, "tuned": s.Tuned,
	}
}

// Prepare implements Method.
func (m MAPHMC) Prepare(j *Job) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = mcmc.HMC{StepSize: 0.01, Steps: 100}
	}
	var err error
	if m.Sampling, err = withChains("MAPHMC", m.Sampling, mcmc.Settings{Chains: 4, Draws: 250, WarmUp: 250}); err != nil {
		return nil, err
	}
	return m, checkExact("MAPHMC", m.Kernel, j.Bound.D)
}

// Prepare implements Method.
func (m HMC) Prepare(j *Job) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = mcmc.NUTS{}
	}
	var err error
	if m.Sampling, err = withChains("HMC", m.Sampling, mcmc.Settings{Chains: 4, Draws: 250, WarmUp: 500}); err != nil {
		return nil, err
	}
	return m, checkExact("HMC", m.Kernel, j.Bound.D+j.Bound.W)
}

// checkExact is an error if a kernel does not leave a posterior of d dimensions invariant.
func checkExact(owner string, kernel mcmc.Kernel, d int) error {
	if !mcmc.LeavesInvariant(kernel) {
		return fmt.Errorf("baseline: %s.Kernel is %T, which leaves no posterior invariant, or does not say so "+
			"(mcmc.Exact): take "+
			"one that accepts or rejects, such as mcmc.HMC", owner, kernel)
	}
	if err := mcmc.Check(kernel, d, true); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	return nil
}

// Fit implements Method.
func (m MAPHMC) Fit(ctx context.Context, j *Job) (*Result, error) {
	mode, err := j.Mode(ctx)
	if err != nil {
		return nil, err
	}
	problem, err := j.allRows(j.Data, mode.Psi, m.Sampling.Chains, m.Sampling.Devices)
	if err != nil {
		return nil, err
	}
	problem.Start = j.startAt(mode.Phi, m.Sampling.Chains)
	return j.sample(ctx, mode.Result(nil), j.Data, mode.Psi, problem, m.Kernel, m.Sampling)
}

// Fit implements Method.
func (m HMC) Fit(ctx context.Context, j *Job) (*Result, error) {
	whole, err := j.Whole()
	if err != nil {
		return nil, err
	}
	problem, err := j.allRows(whole, nil, m.Sampling.Chains, m.Sampling.Devices)
	if err != nil {
		return nil, err
	}
	before := &Result{}
	j.untrained = !m.FromMode
	if m.FromMode {
		mode, err := j.Mode(ctx)
		if err != nil {
			return nil, err
		}
		before = mode.Result(nil)
		problem.Start = j.startAt(mode.theta, m.Sampling.Chains) // in the order of the slots, like phi of the whole network
	}
	return j.sample(ctx, before, whole, nil, problem, m.Kernel, m.Sampling)
}

// allRows is the posterior of phi given all rows, at psi, flat [W].
func (j *Job) allRows(data *fit.Data, psi []float64, chains, devices int) (density.Problem, error) {
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return density.Problem{}, err
	}
	var shared *tensors.Tensor
	if data.Bound.W > 0 {
		shared = compute.Floats(j.DType, psi, data.Bound.W)
	}
	problem, err := density.NewProblem(j.Engine, data.Bound, x, y, shared, chains, devices)
	if err != nil {
		return density.Problem{}, fmt.Errorf("baseline: %w", err)
	}
	return problem, nil
}
