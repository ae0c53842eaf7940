package pmcnet

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
)

// Sample runs an algorithm on a log-density, given as a problem of package mcmc whose Initial draws from the prior. nil
// stands for Annealed{}, which needs a target with separate prior and likelihood (smc.Factored), such as an
// smc.Posterior; for other targets take PMC. The means of PMC begin at Problem.Start, [M, D], if it is set, else at
// draws of Problem.Initial. The result's draws are Phi and LogWeights; it has no Posterior, which needs a model.
//
// The evidence is the integral of the target's density. It is that of a model if prior and likelihood both have their
// normalising constants.
//
// A cancelled context is no error once there are draws: the result has those of the last complete iteration of PMC, or
// the particles of Annealed's first SMC, with the status run.Cancelled. Before that, the error wraps the context's. The
// error wraps bayes.ErrZeroWeights if no draw has any weight, and smc.ErrStalled if Annealed's first SMC stalls; then the
// result has the particles at the power of the likelihood that was reached, the status run.Stopped and no evidence.
func Sample(ctx context.Context, problem mcmc.Problem, algorithm Algorithm, settings Settings) (*Result, error) {
	sampler := Sampler{Problem: problem}
	defer sampler.Close()
	return sampler.Sample(ctx, algorithm, settings)
}

// Sampler samples one problem repeatedly, with different algorithms, seeds and settings, and different Problem.Data and
// Problem.Start of the same names and shapes. It compiles only once for algorithms and settings of the same kind. Close
// it at the end.
type Sampler struct {
	Problem mcmc.Problem

	compiled  compute.Cache[kind, *programs]               // of PMC
	annealed  compute.Cache[annealedKind, *smc.Sampler]    // of Annealed
	bridges   compute.Cache[bridgeKind, *smc.Sampler]      // likewise
	densities compute.Cache[densityKind, *compute.Program] // likewise
}

// Close frees the compiled programs.
func (s *Sampler) Close() {
	s.compiled.Close()
	s.annealed.Close()
	s.bridges.Close()
	s.densities.Close()
}

// Sample is the function Sample with the sampler's problem.
func (s *Sampler) Sample(ctx context.Context, algorithm Algorithm, settings Settings) (*Result, error) {
	job, err := s.job(settings)
	if err != nil {
		return nil, err
	}
	return job.run(ctx, algorithm)
}

// job is a run on the sampler's problem, with settings that are checked.
func (s *Sampler) job(settings Settings) (*Job, error) {
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	if settings.Observe != nil {
		return nil, errors.New("pmcnet: Settings.Observe is set: Sample has no posterior to show; use Fit, or Progress")
	}
	return &Job{Settings: settings, Problem: s.Problem, sampler: s}, nil
}

// prepare checks the problem, and gives the algorithm with its defaults for it.
func (j *Job) prepare(algorithm Algorithm) (Algorithm, error) {
	if err := checkProblem(j.Problem); err != nil {
		return nil, err
	}
	if algorithm == nil {
		algorithm = Annealed{}
	}
	var err error
	if j.Engine, err = j.Engine.Or(); err != nil {
		return nil, err
	}
	if algorithm, err = algorithm.Prepare(j); err != nil {
		return nil, err
	}
	j.algorithm = algorithm
	return algorithm, nil
}

// run prepares an algorithm and runs it.
func (j *Job) run(ctx context.Context, algorithm Algorithm) (*Result, error) {
	algorithm, err := j.prepare(algorithm)
	if err != nil {
		return nil, err
	}
	result, err := algorithm.Sample(ctx, j)
	if result == nil {
		if err == nil {
			err = fmt.Errorf("pmcnet: %T gives neither a result nor an error", algorithm)
		}
		return nil, err
	}
	result.Algorithm = algorithm
	return result, err
}

func checkProblem(p mcmc.Problem) error {
	return limits.Check("pmcnet: Problem",
		limits.Field("Dim", p.Dim, p.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", p.Target != nil, "a function that builds the log-density"),
		limits.Field("Initial", "nil", p.Initial != nil || p.Start != nil, "a function that draws from the prior"),
		limits.Field("Inputs", "set", p.Inputs == nil && p.HostInputs == nil,
			"nil, as HostInputs: the target must be the same throughout"),
	)
}
