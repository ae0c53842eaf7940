package pmcnet

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
)

// Sample runs an algorithm, such as PMC or annealed.Annealed, on a log-density, given as a problem of package mcmc
// whose Initial draws from the prior. Annealed needs a target with separate prior and likelihood (smc.Factored), such
// as an smc.Posterior; for other targets take PMC. The means of PMC begin at Problem.Start, [M, D], if it is set, else
// at draws of Problem.Initial. The result's draws are Phi and LogWeights; it has no Posterior, which needs a model.
//
// The evidence is the integral of the target's density. It is the evidence of a model if prior and likelihood both have
// their normalising constants.
//
// A cancelled context is no error once there are draws. The result has the status run.Cancelled, with the draws of the
// last complete iteration of PMC, or the particles of Annealed's first SMC. Before that, the error wraps the context's.
// The error wraps bayes.ErrZeroWeights if no draw has any weight.
func Sample(ctx context.Context, problem density.Problem, algorithm Algorithm, settings Settings) (*Result, error) {
	sampler := Sampler{Problem: problem}
	defer sampler.Close()
	return sampler.Sample(ctx, algorithm, settings)
}

// Sampler samples one problem repeatedly, with different algorithms, seeds and settings, and different Problem.Data and
// Problem.Start of the same names and shapes. It compiles only once for algorithms and settings of the same kind. Close
// it at the end.
type Sampler struct {
	Problem density.Problem

	kept compute.Cache[any, closer] // programs, by a key whose type is their algorithm's
}

type closer interface{ Close() }

// Close frees the compiled programs.
func (s *Sampler) Close() { s.kept.Close() }

// Take gives what an algorithm compiles for a job, made by build unless an earlier run of the same sampler or trainer
// has made it for the same key, and a function that gives it back. The key holds all that the programs depend on beside
// the problem; its type is the algorithm's own.
func Take[V closer](j *Job, key any, build func() (V, error)) (value V, giveBack func(), err error) {
	kept, giveBack, err := j.sampler.kept.Take(key, func() (closer, error) { return build() })
	if err != nil {
		return value, nil, err
	}
	return kept.(V), giveBack, nil
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
		return nil, errors.New("pmcnet: there is no algorithm: give pmcnet.PMC{}, the paper's, or annealed.Annealed{}, for " +
			"networks")
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

func checkProblem(p density.Problem) error {
	return limits.Check("pmcnet: Problem",
		limits.Field("Dim", p.Dim, p.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", p.Target != nil, "a function that builds the log-density"),
		limits.Field("Initial", "nil", p.Initial != nil || p.Start != nil, "a function that draws from the prior"),
		limits.Field("Inputs", "set", p.Inputs == nil && p.HostInputs == nil,
			"nil, as HostInputs: the target must be the same throughout"),
	)
}
