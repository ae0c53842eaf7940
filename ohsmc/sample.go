package ohsmc

import (
	"context"
	"encoding/json"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"
)

// Sample draws from the exact posterior p(phi | y; psi) given all rows of the data, in raw units, with psi fixed at the trained one: SGSMC-HMC of Zhao
// et al. 2024 where the kernel is mcmc.HMC and psi is SMC's. It repairs what training leaves open: OpenHorizon's and Guided's particles remember the last
// batches, SMC's know a sub-dataset only. Chains begin at the trained particles, drawn by their weights. The result's particles are all chains' draws,
// chain after chain, with equal weights; look at the mcmc.Result, and at package diag, before they are believed.
func Sample(ctx context.Context, trained *bayes.Posterior, data *dataset.Dataset, kernel mcmc.Kernel, settings mcmc.Settings) (*bayes.Posterior, *mcmc.Result, error) {
	trainer := NewTrainer(trained.Model())
	defer trainer.Close()
	return trainer.Sample(ctx, trained, data, kernel, settings)
}

// Sample is the function Sample for posteriors of the trainer's model: chains of one kernel, on data of one size, are compiled only once.
func (t *Trainer) Sample(ctx context.Context, trained *bayes.Posterior, data *dataset.Dataset, kernel mcmc.Kernel, settings mcmc.Settings) (*bayes.Posterior, *mcmc.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	joined, err := fit.Of("ohsmc", trained, data)
	if err != nil {
		return nil, nil, err
	}
	if kernel != nil && !mcmc.LeavesInvariant(kernel) {
		return nil, nil, fmt.Errorf("ohsmc: the kernel is %T, which does not leave the posterior invariant, or does not say so (mcmc.Exact), "+
			"but these draws are to be exact: take one that accepts or rejects, such as mcmc.NUTS{}; mcmc.Sample takes any", kernel)
	}
	if settings.DType == 0 {
		settings.DType = compute.Float32
	}
	if settings.Chains == 0 {
		settings.Chains = 4
	}
	if settings.Engine == nil {
		settings.Engine = trained.Engine()
	}
	problem, err := fixedPsi(joined, settings)
	if err != nil {
		return nil, nil, err
	}
	sampler, err := t.sampler(joined.Bound, problem, kernel, data.Rows())
	if err != nil {
		return nil, nil, err
	}
	result, err := sampler.Sample(ctx, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("ohsmc: %w", err)
	}
	if result.Draws.PerChain == 0 {
		return nil, result, fmt.Errorf("ohsmc: cancelled before all chains had a draw: %w", context.Cause(ctx))
	}
	phi := result.Draws.Tensor()
	draws := bayes.Draws{Phi: phi, LogWeights: bayes.EqualLogWeights(phi.Shape().Dim(0)), Chains: settings.Chains}
	if joined.Bound.W > 0 {
		draws.Psi = problem.Data["psi"]
	}
	record, err := json.Marshal(map[string]any{
		"kernel": kernel, "chains": settings.Chains, "draws": result.Draws.PerChain, "tuned": result.Tuned,
	})
	if err != nil {
		return nil, result, fmt.Errorf("ohsmc: the kernel's settings: %w", err)
	}
	posterior, err := joined.Posterior(draws, bayes.Provenance{
		Algorithm: fmt.Sprintf("ohsmc: %T at fixed psi", kernel), Status: string(result.Status), Seed: settings.Seed, Settings: record,
	}, settings.Engine)
	return posterior, result, err
}

// fixedPsi is the posterior at the trained psi, whose chains begin at the trained particles.
func fixedPsi(data *fit.Data, settings mcmc.Settings) (mcmc.Problem, error) {
	x, y, err := data.Tensors(settings.DType, data.Parts.Train)
	if err != nil {
		return mcmc.Problem{}, err
	}
	psi, start, err := target.ChainStarts(data.Trained, settings.DType, settings.Chains, settings.Seed)
	if err != nil {
		return mcmc.Problem{}, fmt.Errorf("ohsmc: %w", err)
	}
	problem, err := target.Problem(settings.Engine, data.Bound, x, y, psi, settings.Chains, settings.Devices)
	if err != nil {
		return mcmc.Problem{}, fmt.Errorf("ohsmc: %w", err)
	}
	problem.Start = start
	return problem, nil
}

// sampler is one that has compiled the chains of this kind before, or a new one.
func (t *Trainer) sampler(bound *bayes.BoundModel, problem mcmc.Problem, kernel mcmc.Kernel, rows int) (*mcmc.Sampler, error) {
	model, err := json.Marshal(bound.Model)
	if err != nil {
		return nil, fmt.Errorf("ohsmc: the model: %w", err)
	}
	return t.samplers.For(fmt.Sprintf("%s, %d rows, %d features, %d outputs", model, rows, bound.Inputs, bound.Outputs), problem, kernel), nil
}
