package fbnn

import (
	"context"
	"time"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
)

// Algorithm draws from the posterior of all weights of a network: CES, Chain, Prior, or one of your own. It is a value
// that holds settings. Its exported fields are written as JSON into the provenance, and compared when a run resumes
// from a checkpoint.
type Algorithm interface {
	// Title says what it is and where it comes from, for a posterior's provenance.
	Title() string
	// Prepare fills in defaults for a job, and returns an error that names a setting that is wrong.
	Prepare(job *Job) (Algorithm, error)
	// Sample runs the algorithm that Prepare returned. Its result has everything but the Posterior, which Fit makes from
	// Phi.
	Sample(ctx context.Context, job *Job) (*Result, error)
}

var _ Algorithm = CES{}

// Job is the input of an algorithm: a model, all of whose parameters are stochastic, its data, and the Settings with
// their defaults and their engine filled in.
type Job struct {
	Settings
	Data *fit.Data
	// Problem is the posterior given all rows. Its Initial draws from the prior, and its Climb moves uphill from there.
	Problem density.Problem
	blocks  *density.Blocks // of all rows, if they are from a source; then Problem is estimated from mini-batches

	algorithm Algorithm
	chosen    map[string]float64 // what the run has chosen, for the provenance, such as the Beta of CES.Sampling
	begun     time.Time          // begin of this session
	earlier   time.Duration      // time of the stages in earlier sessions of a resumed run
}

// choose keeps what the run has chosen for the provenance, in which the algorithm has what the user has set.
func (j *Job) choose(what string, value float64) {
	if j.chosen == nil {
		j.chosen = map[string]float64{}
	}
	j.chosen[what] = value
}

// resumed adds the time of a stage's earlier sessions: the time of all sessions, minus what has passed since the stage
// began in this one.
func (j *Job) resumed(all time.Duration, begun time.Time) { j.earlier += max(0, all-time.Since(begun)) }

// elapsed is the time of all sessions, of all steps and of what lies between them.
func (j *Job) elapsed() time.Duration { return j.earlier + time.Since(j.begun) }
