package pmcnet

import (
	"context"

	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Algorithm is a way to weighted draws of a posterior and to its evidence: Annealed, PMC, or one of your own. It is a
// value that holds settings. What is exported of its fields is what JSON writes into the provenance and compares when a
// run goes on from a checkpoint.
type Algorithm interface {
	// Title says what it is and where it comes from, for a posterior's provenance.
	Title() string
	// Prepare fills in defaults for a job, and returns an error that names a setting that is wrong.
	Prepare(job *Job) (Algorithm, error)
	// Sample runs the algorithm, as Prepare gave it. Its result has everything but the Posterior, which Fit makes of
	// Phi, LogWeights and Evidence.
	Sample(ctx context.Context, job *Job) (*Result, error)
}

var _ Algorithm = PMC{}

// Job is what an algorithm is run on: a problem, and the Settings with their defaults and their engine.
type Job struct {
	Settings
	Problem mcmc.Problem
	// Data are the model, every parameter of which is stochastic, and its data, where Fit asks; nil in Sample.
	Data *fit.Data

	algorithm Algorithm
	sampler   *Sampler
	trainer   *Trainer // nil in Sample
}

// byAlgorithmDefault is what nil means.
func byAlgorithmDefault() Algorithm { return Annealed{} }

// Title implements Algorithm.
func (a PMC) Title() string {
	name := "PMCnet"
	switch {
	case a.Light:
		name = "PMCnet-light"
	case a.GradientFree && a.Covariance == FixedCovariance:
		name = "DM-PMC"
	case a.GradientFree:
		name = "gradient-free PMCnet"
	case a.Covariance == FixedCovariance:
		name = "covariance-free PMCnet"
	}
	return name + ": adaptive importance sampling with deterministic-mixture weights (Algorithm 1)"
}

// Prepare implements Algorithm.
func (a PMC) Prepare(job *Job) (Algorithm, error) {
	if err := limits.Check("pmcnet: Settings", limits.Field("Devices", job.Devices, job.Devices == 1,
		"1 (0: the default) for PMC, which evaluates on one device; Annealed shares its particles among several"),
	); err != nil {
		return nil, err
	}
	return a.withDefaults(job.Problem.Dim, job.Data != nil)
}
