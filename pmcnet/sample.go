package pmcnet

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// Sample runs an algorithm on a log-density: a problem as package mcmc's, whose Initial draws from the prior. nil is
// Annealed{}, which needs a target that knows prior and likelihood apart, such as an smc.Posterior; for others there
// is PMC. The result has no Posterior, which belongs to a model: its draws are Phi and LogWeights. Proposals of a PMC
// begin at Problem.Start, [M, D], where that is set, else at draws by Problem.Initial.
//
// The evidence is the integral of the target's density: that of a model where the target is prior times likelihood,
// each with its normalising constant.
//
// A cancelled context is no error: the result holds the draws of a PMC's last whole iteration, or the particles of
// Annealed, with the status run.Cancelled; but before there are any the error wraps the context's. If no draw has any
// weight, the error wraps smc.ErrZeroWeights. If Annealed's ladder stalls, the error wraps smc.ErrStalled, and the
// result holds the particles at the power that it got to, with the status run.Stopped and no evidence.
func Sample(ctx context.Context, problem mcmc.Problem, algorithm Algorithm, settings Settings) (*Result, error) {
	sampler := Sampler{Problem: problem}
	defer sampler.Close()
	return sampler.Sample(ctx, algorithm, settings)
}

// Sampler samples one problem again and again, with other algorithms, seeds and settings, and with other Problem.Data
// and Problem.Start of the same names and shapes, and compiles only once for algorithms and settings of one kind. Close
// it at the end.
type Sampler struct {
	Problem mcmc.Problem

	compiled  run.Cache[kind, *programs]               // of PMC
	annealed  run.Cache[annealedKind, *smc.Sampler]    // of Annealed
	bridges   run.Cache[bridgeKind, *smc.Sampler]      // likewise
	densities run.Cache[densityKind, *compute.Program] // likewise
}

// Close frees what was compiled.
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
		algorithm = byAlgorithmDefault()
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
