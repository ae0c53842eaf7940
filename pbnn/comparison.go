package pbnn

import (
	"context"
	"fmt"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Unadjusted makes steps of a Langevin diffusion with the gradient of a mini-batch, and accepts all of them (section
// 6.3, eq. 9 and 33): mcmc.SGLD or mcmc.SGHMC. It samples its target only in the limit of small steps.
type Unadjusted struct {
	Sampling
	Target    FromMiniBatches `json:"target,omitempty"` // default TargetFull{}
	BatchSize int             `json:"batch_size"`       // n; default 100, or all rows if there are fewer
	Kernel    mcmc.Kernel     `json:"kernel"`           // with the paper's eta, mcmc.SGLD{StepSize: 2 eta}; must be set
}

// AllRows runs any kernel of package mcmc on all rows: mcmc.RandomWalkMetropolis and mcmc.MALA are the paper's BNN
// (eq. 11 and 26), mcmc.SGLD its unadjusted Langevin (eq. 32), and with TargetTempered they sample the "Safe Bayes"
// posterior.
type AllRows struct {
	Sampling
	Target Target      `json:"target,omitempty"` // default TargetFullData{}
	Kernel mcmc.Kernel `json:"kernel"`           // must be set
}

var (
	_ Sampler = Unadjusted{}
	_ Sampler = AllRows{}
)

// Title implements fit.Method.
func (u Unadjusted) Title() string { return title(u, u.Target) }

// Title implements fit.Method.
func (a AllRows) Title() string { return title(a, a.Target) }

// Prepare implements fit.Method.
func (u Unadjusted) Prepare(j *fit.Job) (fit.Method, error) {
	if u.Target == nil {
		u.Target = TargetFull{}
	}
	if err := limits.Fill("pbnn: Unadjusted", batchSize(&u.BatchSize, j.Rows())); err != nil {
		return nil, err
	}
	if u.Kernel == nil || u.Kernel.Traits().Carries != mcmc.CarriesNothing {
		return nil, fmt.Errorf("pbnn: Unadjusted.Kernel is %T: it must take every step of a noisy gradient, such as "+
			"mcmc.SGLD{StepSize: 0.001}", u.Kernel)
	}
	u.Target = u.Target.ForBatchSize(u.BatchSize)
	var err error
	u.Sampling, err = u.Sampling.Prepared(j, u.Target)
	return u, err
}

// Prepare implements fit.Method.
func (a AllRows) Prepare(j *fit.Job) (fit.Method, error) {
	if a.Target == nil {
		a.Target = TargetFullData{}
	}
	if a.Kernel == nil {
		return nil, fmt.Errorf("pbnn: AllRows.Kernel is not set: take one of package mcmc, such as " +
			"mcmc.RandomWalkMetropolis{} or mcmc.MALA{}")
	}
	var err error
	a.Sampling, err = a.Sampling.Prepared(j, a.Target)
	return a, err
}

// Run implements fit.Method.
func (u Unadjusted) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, u, u.Target)
}

// Run implements fit.Method.
func (a AllRows) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, a, a.Target)
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
