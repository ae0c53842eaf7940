package pmcnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// Fit runs an algorithm, such as PMC or annealed.Annealed, on the posterior of all parameters of a network given the
// training part. Every parameter has the model's prior, whatever Model.Stochastic is. Features, and the target of a
// regression, are standardised by the training part's means and standard deviations unless Model.Scaling says
// otherwise; the posterior keeps these and predicts in raw units. The evidence is a density of the standardised target.
// The validation part is used only by the training that finds the starting point of a PMC (see PMC.Start), as in
// baseline.Fit.
//
// A cancelled context is no error once there are draws: the result has those of the last complete iteration of PMC, or
// the particles of Annealed's first SMC, with the status run.Cancelled. Before that, the error wraps the context's. If
// an error outside the algorithm has stopped the run, such as a full disk, the result is returned with the error, with
// the status run.Stopped and no evidence. Errors wrap dataset.ErrMissingClass, bayes.ErrZeroWeights or
// baseline.ErrDiverged where these apply.
func Fit(
	ctx context.Context, model bayes.Model, algorithm Algorithm, parts dataset.Parts, settings Settings,
) (*Result, error) {
	trainer := NewTrainer(model)
	defer trainer.Close()
	return trainer.Fit(ctx, algorithm, parts, settings)
}

// Trainer fits one model repeatedly, on different splits, with different algorithms and seeds, and compiles only once
// for data of the same size and algorithms of the same kind. It may be used by several goroutines, one run at a time.
type Trainer struct {
	model    bayes.Model
	mu       sync.Mutex
	starts   *baseline.Trainer // of the model with every parameter stochastic; nil before its first use
	samplers compute.Cache[samplerKind, *Sampler]
}

// samplerKind identifies a Sampler's problem, apart from the values of its data.
type samplerKind struct {
	engine                *compute.Engine
	dtype                 compute.DType
	rows, inputs, outputs int
	draws                 int // that are evaluated at once
	devices               int
}

// NewTrainer is a trainer of the model. Close it at the end.
func NewTrainer(model bayes.Model) *Trainer { return &Trainer{model: model} }

// Close frees the compiled programs.
func (t *Trainer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starts != nil {
		t.starts.Close()
		t.starts = nil
	}
	t.samplers.Close()
}

// Fit is the function Fit with the trainer's model.
func (t *Trainer) Fit(
	ctx context.Context, algorithm Algorithm, parts dataset.Parts, settings Settings,
) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	job, giveBack, err := t.job(parts, settings)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	result, err := job.run(ctx, algorithm)
	if result == nil {
		return nil, err
	}
	var failed error
	if result.Posterior, failed = job.Posterior(result); failed != nil {
		return nil, errors.Join(err, failed)
	}
	return result, err
}

// job is a run of the trainer's model on data, with settings that are checked; giveBack ends it.
func (t *Trainer) job(parts dataset.Parts, settings Settings) (job *Job, giveBack func(), err error) {
	if settings, err = settings.withDefaults(); err != nil {
		return nil, nil, err
	}
	data, err := fit.New("pmcnet", fit.AllByDefault(t.model), parts)
	if err != nil {
		return nil, nil, err
	}
	if data, err = data.Whole(); err != nil {
		return nil, nil, err
	}
	if settings.Engine, err = settings.Engine.Or(); err != nil {
		return nil, nil, err
	}
	x, y, err := data.Tensors(settings.DType, parts.Train)
	if err != nil {
		return nil, nil, err
	}
	const draws = 5000 // about the number evaluated at once: it decides the chunks
	job = &Job{Settings: settings, Data: data, trainer: t}
	if job.Problem, err = density.NewProblem(settings.Engine, data.Bound, x, y, nil, draws, settings.Devices); err != nil {
		return nil, nil, fmt.Errorf("pmcnet: %w", err)
	}
	key := samplerKind{settings.Engine, settings.DType, data.Rows(), data.Bound.Inputs, data.Bound.Outputs, draws,
		settings.Devices}
	sampler, giveBack, err := t.samplers.Take(key, func() (*Sampler, error) { return &Sampler{}, nil })
	if err != nil {
		return nil, nil, err
	}
	job.sampler = sampler
	return job, giveBack, nil
}

// Posterior joins a result's draws with the model and the data, for a job of Fit.
func (j *Job) Posterior(r *Result) (*bayes.Posterior, error) {
	algorithm, err := json.Marshal(map[string]any{"algorithm": j.algorithm, "dtype": j.DType.String()})
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %T cannot be written as JSON: %w", j.algorithm, err)
	}
	logWeights := make([]float64, r.LogWeights.Len())
	for i := range logWeights {
		logWeights[i] = r.LogWeights.At(i)
	}
	diagnostics := map[string]float64{khatDiagnostic: r.KHat, essDiagnostic: r.ESS}
	if n := len(r.Trace); n > 0 {
		last := r.Trace[n-1]
		diagnostics[distinctDiagnostic], diagnostics[exponentDiagnostic] = last.Distinct, last.Exponent
	}
	return j.Data.Posterior(bayes.Draws{
		Phi: r.Phi, LogWeights: logWeights, Evidence: r.Evidence, Diagnostics: diagnostics,
	}, bayes.Provenance{
		Algorithm: "pmcnet: " + j.algorithm.Title(), Status: string(r.Status), Seed: j.Seed, Settings: algorithm,
		Approximation: r.Approximation,
	}, j.Engine)
}

// Identified adds to what must agree with a checkpoint the model and its data, for a job of Fit.
func (j *Job) Identified(parts []run.Part) ([]run.Part, error) {
	if j.Checkpoint != "" {
		if err := run.CheckWritten(j.algorithm); err != nil {
			return nil, err
		}
	}
	if j.Data == nil {
		return parts, nil
	}
	model, err := json.Marshal(j.Data.Bound.Model)
	if err != nil {
		return nil, fmt.Errorf("the model cannot be written as JSON: %w", err)
	}
	rows := j.Data.Parts.Train.Hash()
	if part := j.Data.Parts.Validation; part != nil { // it decides where a training ends
		rows += ", validation " + part.Hash()
	}
	return append(parts, run.Part{Name: "model", Value: string(model)}, run.Part{Name: "rows", Value: rows}), nil
}

// maximum finds the maximum of the likelihood over all parameters, [1, D], by Adam.
func (j *Job) maximum(ctx context.Context, a PMC) (*tensors.Tensor, error) {
	settings := baseline.Settings{
		BatchSize: a.BatchSize, Seed: j.Seed, DType: j.DType, Engine: j.Engine, CheckpointEvery: j.CheckpointEvery,
		Replace: j.Replace, Progress: j.Progress,
	}
	if j.Checkpoint != "" {
		settings.Checkpoint = j.Checkpoint + ".start"
	}
	if j.trainer.starts == nil {
		j.trainer.starts = baseline.NewTrainer(j.Data.Bound.Model)
	}
	result, err := j.trainer.starts.Fit(ctx, baseline.MLE{}, j.Data.Parts, settings)
	if err == nil {
		err = result.Status.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("pmcnet: finding the %s to begin at: %w", a.Start, err)
	}
	draws, err := result.Posterior.Draws()
	if err != nil {
		return nil, err
	}
	return draws.Phi, nil
}
