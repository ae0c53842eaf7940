package fbnn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// Fit runs an algorithm on the posterior of all parameters of a network given the training part; nil stands for CES{}.
// All parameters are stochastic and have the model's prior, whatever Model.Stochastic is. Features, and the target of a
// regression, are standardised by the training part's means and standard deviations unless Model.Scaling says
// otherwise. The posterior keeps these and predicts in raw units.
//
// A cancelled context is no error if there are draws: the result has those that all chains have made, with the status
// run.Cancelled. If there are none yet, the error wraps the context's; with Settings.Checkpoint the same call resumes.
// If something outside of the algorithm has stopped the run, such as a full disk, the result of the draws so far is
// returned together with the error. Errors wrap mcmc.ErrStuck if chains do not move, ErrPairs if there is nothing to
// learn from the pairs, ErrEmulator if the emulator is of no use, or dataset.ErrMissingClass.
func Fit(
	ctx context.Context, model bayes.Model, algorithm Algorithm, parts dataset.Parts, settings Settings,
) (*Result, error) {
	job, err := newJob(model, parts, settings)
	if err != nil {
		return nil, err
	}
	return job.fit(ctx, algorithm)
}

// fit runs an algorithm on the job.
func (job *Job) fit(ctx context.Context, algorithm Algorithm) (_ *Result, err error) {
	if algorithm == nil {
		algorithm = CES{}
	}
	if job.algorithm, err = prepared(algorithm, job); err != nil {
		return nil, err
	}
	result, err := job.algorithm.Sample(ctx, job)
	if result == nil || result.Phi == nil {
		if err == nil {
			err = fmt.Errorf("fbnn: %T.Sample gives neither draws, Result.Phi, nor an error", algorithm)
		}
		return nil, err
	}
	result.Algorithm = job.algorithm
	if result.Elapsed == 0 { // an algorithm of a user's own may have measured it
		result.Elapsed = job.elapsed()
	}
	var failed error
	if result.Posterior, failed = job.posterior(result.Phi, result.Chains, string(result.Status),
		result.Approximation); failed != nil {
		return nil, errors.Join(err, failed)
	}
	if train := job.Data.Parts.Train; train != nil {
		result.Warnings = append(result.Warnings, diag.Mixing(ctx, result.Posterior, train)...)
	}
	return result, err
}

// prepared is the algorithm with its settings filled in for the job.
func prepared(algorithm Algorithm, job *Job) (Algorithm, error) {
	ready, err := algorithm.Prepare(job)
	if err == nil && ready == nil {
		err = fmt.Errorf("fbnn: %T.Prepare gives no algorithm", algorithm)
	}
	return ready, err
}

// newJob joins a model, all of whose parameters become stochastic, with its data.
func newJob(model bayes.Model, parts dataset.Parts, settings Settings) (*Job, error) {
	begun := time.Now()
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	data, err := fit.New("fbnn", fit.AllByDefault(model), parts)
	if err != nil {
		return nil, err
	}
	if data, err = data.Whole(); err != nil {
		return nil, err
	}
	if settings.Engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	x, y, err := data.Tensors(settings.DType, parts.Train)
	if err != nil {
		return nil, err
	}
	job := &Job{Settings: settings, Data: data, begun: begun}
	if job.Problem, err = density.NewProblem(settings.Engine, data.Bound, x, y, nil, atOnce, 1); err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	return job, nil
}

// posterior is the posterior with draws phi, [J, D], of the given number of chains; approximation is
// bayes.Provenance's.
func (j *Job) posterior(
	phi *tensors.Tensor, chains int, status, approximation string,
) (*bayes.Posterior, error) {
	settings := map[string]any{"algorithm": j.algorithm, "dtype": j.DType.String()}
	if len(j.chosen) > 0 {
		settings["chosen"] = j.chosen
	}
	algorithm, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %T cannot be written as JSON: %w", j.algorithm, err)
	}
	return j.Data.Posterior(bayes.Draws{
		Phi: phi, LogWeights: bayes.EqualLogWeights(phi.Shape().Dim(0)), Chains: chains,
	}, bayes.Provenance{
		Algorithm: "fbnn: " + j.algorithm.Title(), Status: status, Seed: j.Seed, Settings: algorithm,
		Approximation: approximation,
	}, j.Engine)
}

// name is the problem's name, with everything else that must agree with a checkpoint.
func (j *Job) name() (string, error) {
	if j.Checkpoint != "" {
		if err := run.CheckWritten(j.algorithm); err != nil {
			return "", fmt.Errorf("fbnn: checkpoint: %w", err)
		}
	}
	model, err := json.Marshal(j.Data.Bound.Model)
	if err != nil {
		return "", fmt.Errorf("fbnn: the model cannot be written as JSON: %w", err)
	}
	algorithm, err := json.Marshal(j.algorithm)
	if err != nil {
		return "", fmt.Errorf("fbnn: %T cannot be written as JSON: %w", j.algorithm, err)
	}
	return fmt.Sprintf("fbnn; model: %s; rows: %s; algorithm: %s", model, j.Data.Hash(), algorithm), nil
}
