package baseline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// MAPHMC is MAP for the shared parameters psi, then Hamiltonian Monte Carlo for the stochastic ones at that psi
// (Sharma, Farquhar, Nalisnick and Rainforth 2023, section 6; a comparison of Zhao et al. 2024). The draws are from the
// exact p(phi | y; psi), given all rows, but psi was chosen without averaging over phi. Chains begin at the mode, also
// where all parameters are stochastic. The result's details are those of mcmc.Chains and *train.Details.
type MAPHMC struct {
	Training
	// Chains are by default 4 chains of 250 draws after 250 transitions of warm-up, by mcmc.HMC{StepSize: 0.01, Steps:
	// 100}, which is Zhao et al.'s. They take 1000 draws of one chain after 2000. The kernel leaves the posterior
	// invariant.
	Chains mcmc.Chains
}

var _ fit.Method = MAPHMC{}

// Title implements fit.Method.
func (MAPHMC) Title() string {
	return "MAP for the shared parameters, HMC for the stochastic ones (Sharma et al. 2023)"
}

// MarshalJSON writes the settings of the chains and, if they are set, those of the training.
func (m MAPHMC) MarshalJSON() ([]byte, error) { return writeChains(m.Training, m.Chains) }

// writeChains is the JSON of chains after a training.
func writeChains(t Training, chains mcmc.Chains) ([]byte, error) {
	text, err := json.Marshal(chains)
	if err != nil || t == (Training{}) {
		return text, err
	}
	fields := map[string]any{"training": t}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Prepare implements fit.Method.
func (m MAPHMC) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if m.Training, err = preparedPoints(j, m.Training); err != nil {
		return nil, err
	}
	if m.Chains.Kernel == nil {
		m.Chains.Kernel = mcmc.HMC{StepSize: 0.01, Steps: 100}
	}
	if !m.Chains.Kernel.Traits().Exact {
		return nil, fmt.Errorf("baseline: MAPHMC.Chains.Kernel is %T, which leaves no posterior invariant, or does not "+
			"say so (mcmc.Traits): take one that accepts or rejects, such as mcmc.HMC", m.Chains.Kernel)
	}
	m.Chains.Draws, m.Chains.WarmUp = cmp.Or(m.Chains.Draws, 250), cmp.Or(m.Chains.WarmUp, 250)
	m.Chains, err = preparedChains(j, m.Chains)
	return m, err
}

// preparedChains fills in the other settings of chains, and checks all.
func preparedChains(j *fit.Job, chains mcmc.Chains) (mcmc.Chains, error) {
	prepared, err := chains.Prepare(j)
	if err != nil {
		return chains, err
	}
	return prepared.(mcmc.Chains), nil
}

// Run implements fit.Method.
func (m MAPHMC) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return chainsFrom(ctx, j, m.Training, m.Chains, func(x, y, psi *tensors.Tensor) (density.Problem, error) {
		return density.NewProblem(j.Engine, j.Bound, x, y, psi, m.Chains.Chains, j.Devices)
	})
}

// chainsFrom trains MAP, and then runs chains for the stochastic parameters from the mode. problem is what they sample,
// given all rows and psi, [W] or nil.
func chainsFrom(
	ctx context.Context, j *fit.Job, t Training, chains mcmc.Chains,
	problem func(x, y, psi *tensors.Tensor) (density.Problem, error),
) (*fit.Result, error) {
	mode, err := modeOf(ctx, j, t)
	if err != nil {
		return nil, err
	}
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return nil, err
	}
	stage := fit.Stage{Name: "sampling", Method: chains}
	if j.Bound.W > 0 {
		stage.Psi = compute.Floats(j.DType, mode.psi, j.Bound.W)
	}
	if stage.Problem, err = problem(x, y, stage.Psi); err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	start := slices.Repeat(mode.phi, chains.Chains)
	stage.Problem.Start = compute.Floats(j.DType, start, chains.Chains, j.Bound.D)
	result, err := j.RunStage(ctx, stage)
	switch {
	case errors.Is(err, mcmc.ErrStuck):
		return nil, fmt.Errorf("baseline: %w: %w", ErrDiverged, err)
	case result == nil:
		return nil, err
	}
	if err := lost(fit.Details[*mcmc.Details](result), chains.Kernel); err != nil {
		return nil, err
	}
	trained := mode.trained.Result(mode.status)
	result.Curves, result.Doubts = trained.Curves, append(trained.Doubts, result.Doubts...)
	result.Details = append(result.Details, mode.trained)
	return result, err
}

// lost returns an error if chains repeatedly reach places where the density or its gradient is not finite.
func lost(chains *mcmc.Details, kernel mcmc.Kernel) error {
	count := 0
	for _, c := range chains.Stats {
		if 10*c.NonFinite > c.Transitions {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("baseline: %w: in more than a tenth of their moves %d of %d chains of %T come where the density or "+
		"its gradient is not finite: take a smaller step size than in %+v", ErrDiverged, count, len(chains.Stats), kernel,
		kernel)
}
