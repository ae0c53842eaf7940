package fbnn

import (
	"context"

	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// Algorithm is a way to draws of a posterior that evaluates the network on all data as rarely as it can: CES, or one of
// your own. It is a value that holds settings. What is exported of its fields is what JSON writes into the provenance
// and compares when a run goes on from a checkpoint.
type Algorithm interface {
	// Title says what it is and where it comes from, for a posterior's provenance.
	Title() string
	// Prepare fills in defaults for a job, and returns an error that names a setting that is wrong.
	Prepare(job *Job) (Algorithm, error)
	// Sample runs the algorithm, as Prepare gave it. Its result has everything but the Posterior, which Fit makes of
	// Phi.
	Sample(ctx context.Context, job *Job) (*Result, error)
}

var _ Algorithm = CES{}

// Job is what an algorithm is run on: a model, every parameter of which is stochastic, its data, and the Settings with
// their defaults and their engine.
type Job struct {
	Settings
	Data *fit.Data
	// Problem is the posterior given all rows, whose Initial draws from the prior and whose Climb goes uphill from there.
	Problem mcmc.Problem

	algorithm Algorithm
}
