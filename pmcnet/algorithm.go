package pmcnet

import (
	"context"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
)

// Algorithm is a method that gives weighted draws of a posterior and an estimate of its evidence: PMC,
// annealed.Annealed, or one of your own. It is a value that holds settings. Its exported fields, as JSON, are written
// into the provenance and compared when a run resumes from a checkpoint.
type Algorithm interface {
	// Title describes the algorithm and names its source, for a posterior's provenance.
	Title() string
	// Prepare returns the algorithm with its defaults for a job filled in, or an error that names a wrong setting.
	Prepare(job *Job) (Algorithm, error)
	// Sample runs the algorithm that Prepare returned. Its result has everything but the Posterior, which Fit makes from
	// Phi, LogWeights and Evidence.
	Sample(ctx context.Context, job *Job) (*Result, error)
}

var _ Algorithm = PMC{}

// Job is the input of an algorithm: a problem, and the Settings with their defaults and their engine filled in.
type Job struct {
	Settings
	Problem density.Problem
	// Data are the model, with every parameter stochastic, and its data, for Fit and Steps; nil for Sample.
	Data *fit.Data

	algorithm Algorithm
	sampler   *Sampler
	trainer   *Trainer // nil in Sample
}
