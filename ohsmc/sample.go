package ohsmc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// Sample draws from the exact posterior p(phi | y; psi) given all rows of the data (in raw units), with psi fixed at
// the trained one. Use it where the particles of training are not good enough: they depend on the last batches
// (OpenHorizon, Guided), or on one batch alone (SMC). With mcmc.HMC and a psi trained by SMC it is the paper's
// SGSMC-HMC (Zhao et al. 2024). The kernel must leave the posterior invariant; there are 4 chains by default.
//
// Chains begin at trained particles, drawn by their weights. The particles of the result are the draws of all chains,
// chain after chain, with equal weights. Result.Warnings say if the chains disagree on predictions (diag.Mixing); check
// Result.Chains and the other diagnostics of package diag before using them.
//
// Status and error are as from mcmc.Sample, but if some chain has no draw there is neither a posterior nor a result.
func Sample(
	ctx context.Context, trained *bayes.Posterior, kernel mcmc.Kernel, data *dataset.Dataset, settings mcmc.Settings,
) (*fit.Result, error) {
	joined, err := fit.Of("ohsmc", trained, data)
	if err != nil {
		return nil, err
	}
	if kernel == nil {
		return nil, errors.New("ohsmc: Sample has no kernel: take mcmc.NUTS{}, or mcmc.HMC{Steps: 10}")
	}
	if !mcmc.LeavesInvariant(kernel) {
		return nil, fmt.Errorf("ohsmc: the kernel is %T, which does not leave the posterior invariant, or does not say so "+
			"(mcmc.Exact), but these draws are to be exact: take one that accepts or rejects, such as mcmc.NUTS{}; mcmc.Sample "+
			"takes any", kernel)
	}
	settings.DType = cmp.Or(settings.DType, compute.Float32)
	settings.Chains = cmp.Or(settings.Chains, 4)
	settings.Engine = cmp.Or(settings.Engine, trained.Engine())
	problem, err := fixedPsi(joined, settings)
	if err != nil {
		return nil, err
	}
	if _, err := json.Marshal(kernel); err != nil {
		return nil, fmt.Errorf("ohsmc: the settings of %T cannot be written as JSON: %w", kernel, err)
	}
	chains, stopped := mcmc.Sample(ctx, problem, kernel, settings)
	if fault := chains.Unusable(ctx, stopped); fault != nil {
		return nil, fmt.Errorf("ohsmc: %w", fault)
	}
	if stopped != nil {
		stopped = fmt.Errorf("ohsmc: %w", stopped)
	}
	result, err := ofChains(joined, kernel, chains, problem, settings)
	if err == nil {
		result.Warnings = append(result.Warnings, diag.Mixing(ctx, result.Posterior, data)...)
	}
	return result, errors.Join(stopped, err)
}

// ofChains makes a result of chains at fixed psi.
func ofChains(
	data *fit.Data, kernel mcmc.Kernel, chains *mcmc.Result, problem density.Problem, settings mcmc.Settings,
) (*fit.Result, error) {
	phi := chains.Draws.Tensor()
	draws := bayes.Draws{
		Phi: phi, LogWeights: bayes.EqualLogWeights(phi.Shape().Dim(0)), Chains: settings.Chains,
	}
	if data.Bound.W > 0 {
		draws.Psi = problem.Data[psiName]
	}
	record, err := json.Marshal(map[string]any{
		"kernel": kernel, "chains": settings.Chains, "draws": chains.Draws.PerChain, "tuned": chains.Tuned,
	})
	if err != nil {
		return nil, fmt.Errorf("ohsmc: the kernel's settings: %w", err)
	}
	posterior, err := data.Posterior(draws, bayes.Provenance{
		Algorithm: fmt.Sprintf("ohsmc: %T at fixed psi", kernel), Status: string(chains.Status), Seed: settings.Seed,
		Settings: record,
	}, settings.Engine)
	if err != nil {
		return nil, err
	}
	result := &fit.Result{
		Posterior: posterior, Status: chains.Status, Elapsed: chains.Elapsed, Details: []any{chains},
	}
	result.Warnings = append(result.Warnings, chains.Warnings...)
	return result, nil
}

// fixedPsi is the posterior at the trained psi, whose chains begin at the trained particles.
func fixedPsi(data *fit.Data, settings mcmc.Settings) (density.Problem, error) {
	x, y, err := data.Tensors(settings.DType, data.Parts.Train)
	if err != nil {
		return density.Problem{}, err
	}
	psi, start, err := density.ChainStarts(data.Trained, settings.DType, settings.Chains, settings.Seed)
	if err != nil {
		return density.Problem{}, fmt.Errorf("ohsmc: %w", err)
	}
	problem, err := density.NewProblem(settings.Engine, data.Bound, x, y, psi, settings.Chains, settings.Devices)
	if err != nil {
		return density.Problem{}, fmt.Errorf("ohsmc: %w", err)
	}
	problem.Start = start
	return problem, nil
}
