package ohsmc

import (
	"context"
	"encoding/json"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
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
	if err := checkParts(dataset.Parts{Train: data}); err != nil {
		return nil, nil, err
	}
	if kernel != nil && !mcmc.LeavesInvariant(kernel) {
		return nil, nil, fmt.Errorf("ohsmc: the kernel is %T, which does not leave the posterior invariant, or does not say so (mcmc.Exact), "+
			"but these draws are to be exact: take one that accepts or rejects, such as mcmc.NUTS{}; mcmc.Sample takes any", kernel)
	}
	bound := trained.Bound()
	if data.Dims() != bound.Inputs || data.Outputs() != bound.Outputs || data.Task != bound.Model.Likelihood.Task() {
		return nil, nil, fmt.Errorf("ohsmc: the posterior is of a network with %d features and %d outputs for %v, but the data %q has %d and %d for %v",
			bound.Inputs, bound.Outputs, bound.Model.Likelihood.Task(), data.Name, data.Dims(), data.Outputs(), data.Task)
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
	problem, err := fixedPsi(trained, data, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("ohsmc: %w", err)
	}
	sampler, err := t.sampler(bound, problem, kernel, data.Rows())
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
	if bound.W > 0 {
		draws.Psi = problem.Data["psi"]
	}
	record, err := json.Marshal(map[string]any{
		"kernel": kernel, "chains": settings.Chains, "draws": result.Draws.PerChain, "tuned": result.Tuned,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("ohsmc: the kernel's settings: %w", err)
	}
	before, origin := trained.Provenance(), trained.Origin()
	origin.Provenance = bayes.Provenance{
		Algorithm: fmt.Sprintf("ohsmc: %T at fixed psi", kernel), Status: string(result.Status), Seed: settings.Seed, Settings: record,
		Data: data.Name, DataHash: data.Hash(), Rows: data.Rows(), Before: &before,
	}
	posterior, err := bayes.NewPosterior(bound, draws, origin)
	if err != nil {
		return nil, nil, fmt.Errorf("ohsmc: %w", err)
	}
	return posterior, result, nil
}

// fixedPsi is the posterior at the trained psi, whose chains begin at the trained particles.
func fixedPsi(trained *bayes.Posterior, data *dataset.Dataset, settings mcmc.Settings) (mcmc.Problem, error) {
	scaled, err := trained.Features().Apply(data.X)
	if err != nil {
		return mcmc.Problem{}, err
	}
	psi, start, err := target.ChainStarts(trained, settings.DType, settings.Chains, settings.Seed)
	if err != nil {
		return mcmc.Problem{}, err
	}
	bound := trained.Bound()
	x := compute.Floats(settings.DType, flat(scaled), data.Rows(), data.Dims())
	y := compute.Floats(settings.DType, trained.Target().Apply(data.Y), data.Rows())
	problem, err := target.Problem(settings.Engine, bound, x, y, psi, settings.Chains, settings.Devices)
	if err != nil {
		return mcmc.Problem{}, err
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
