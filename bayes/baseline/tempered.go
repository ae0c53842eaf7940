package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
)

// SMC is an SMC sampler for all parameters of the network, given all rows, from the prior to the posterior through
// tempered likelihoods (Del Moral, Doucet and Jasra 2006; package smc). Every parameter has the model's prior, whatever
// Model.Stochastic is, and none is fitted to the data. The posterior's evidence is therefore the model's. It is a
// density of the standardised target, unless Model.Scaling keeps the target as it is.
//
// Nothing is trained: Epochs, BatchSize and the validation part are not used. A cancelled run has particles of a
// tempered distribution, and so no posterior; with a checkpoint it can be resumed.
type SMC struct {
	Kernel mcmc.Kernel // leaves the posterior invariant; default smc.DefaultKernel()
	// Sampling are the settings of package smc; default 1000 particles and 5 moves at each temperature.
	Sampling smc.Settings
}

var _ Method = SMC{}

// Name implements Method.
func (SMC) Name() string { return "SMC" }

// Source implements Method.
func (SMC) Source() string {
	return "tempered sequential Monte Carlo for all parameters (Del Moral, Doucet and Jasra 2006)"
}

// MarshalJSON writes what decides the draws.
func (m SMC) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", m.Kernel), "settings": m.Kernel, "sampling": m.Sampling.Record(),
	})
}

// Prepare implements Method.
func (m SMC) Prepare(j *Job) (Method, error) {
	if m.Kernel == nil {
		m.Kernel = smc.DefaultKernel()
	}
	var err error
	if m.Sampling, err = m.Sampling.Within("baseline: SMC", j.outer()); err != nil {
		return nil, err
	}
	return m, checkExact("SMC", m.Kernel, j.Bound.D+j.Bound.W)
}

// outer returns the job's settings that apply to its sampler.
func (j *Job) outer() smc.Settings {
	return smc.Settings{
		Seed: j.Seed, DType: j.DType, Engine: j.Engine, Progress: j.Progress,
		Checkpoint: j.file(sampling), CheckpointEvery: j.CheckpointEvery, Replace: j.Replace,
	}
}

// temperedKind identifies what a compiled SMC sampler depends on besides its sizes.
type temperedKind struct {
	chainsKind
	kernel             string
	particles, devices int
}

// Fit implements Method.
func (m SMC) Fit(ctx context.Context, j *Job) (*Result, error) {
	j.untrained = true
	whole, err := j.Whole()
	if err != nil {
		return nil, err
	}
	problem, err := j.allRows(whole, nil, m.Sampling.Particles/max(1, m.Sampling.WasteFree), m.Sampling.Devices)
	if err != nil {
		return nil, err
	}
	kind := temperedKind{
		j.kindOf(whole), compute.CacheKey(m.Kernel), m.Sampling.Particles / max(1, m.Sampling.WasteFree),
		m.Sampling.Devices,
	}
	sampler, giveBack, err := j.trainer.tempered.Take(kind, func() (*smc.Sampler, error) {
		return &smc.Sampler{Kernel: m.Kernel}, nil
	})
	if err != nil {
		return nil, err
	}
	defer giveBack()
	sampler.Problem = problem
	begun := time.Now()
	drawn, err := sampler.Sample(ctx, m.Sampling)
	if err != nil {
		err = fmt.Errorf("baseline: %w", err)
	}
	if drawn == nil {
		return nil, err
	}
	j.resumed(drawn.Elapsed, begun)
	if drawn.Status != run.Completed {
		where := "before the first temperature"
		if n := len(drawn.Trace); n > 0 {
			where = fmt.Sprintf("at %s tempering's place %.4g", m.Sampling.Tempering, drawn.Trace[n-1].Place)
		}
		return nil, errors.Join(err, cancelled(ctx, drawn.Status, where+", on the way to the posterior"))
	}
	result := &Result{SMC: drawn}
	result.Status, result.Warnings = drawn.Status, drawn.Warnings
	evidence := bayes.Evidence{Value: drawn.LogEvidence, StdErr: drawn.LogEvidenceStdErr}
	return j.withDraws(result, whole, drawn.Phi, evidence, err)
}

// withDraws adds to a result the posterior of draws of all parameters, [J, D], all of the same weight. An error that
// came with them is joined with its own.
func (j *Job) withDraws(
	result *Result, whole *fit.Data, phi *tensors.Tensor, evidence bayes.Evidence, err error,
) (*Result, error) {
	flat, failed := compute.Float64s(phi)
	if failed != nil {
		return nil, errors.Join(err, fmt.Errorf("baseline: %w", failed))
	}
	result.Posterior, failed = j.posterior(whole, result.Status, Particles{Phi: flat, Evidence: evidence})
	return result, errors.Join(err, failed)
}
