package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/tensors"
)

// Job is one call of Fit for a method: the model with its checked data, and the Settings with their defaults filled in.
// A Method is implemented with the methods of Job.
type Job struct {
	*fit.Data
	Settings

	trainer   *Trainer
	method    Method
	described json.RawMessage // the method, as JSON
	earlier   time.Duration   // time of the earlier sessions of a resumed run
	untrained bool            // the method trains nothing
}

// joined is fit.New for this package.
func joined(model bayes.Model, parts dataset.Parts) (*fit.Data, error) {
	return fit.New("baseline", fit.AllByDefault(model), parts)
}

// The names of stages.
const (
	training   = "training"
	collecting = "collecting"
	sampling   = "sampling"
)

// PosteriorOf makes a posterior from the members of a learner, theta, flat [J, Q]; the status is the run's.
type PosteriorOf func(status run.Status, theta []float64) (*bayes.Posterior, error)

// Train is all that a method needs if it maximises an objective: it trains the learner with the job's Settings,
// validation and checkpoint, and makes the posterior of the result, and of intermediate values for Settings.Observe.
// Learners of the same Kind and size share checkpoint and compiled programs.
func (j *Job) Train(ctx context.Context, learner train.Learner, posterior PosteriorOf) (*Result, error) {
	trained, err := j.train(ctx, j.training(learner, posterior))
	if trained == nil {
		return nil, err
	}
	p, failed := posterior(trained.Status, trained.Theta)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return finish(trained, p), err
}

// stage is one training: the learner, how long it is trained, and where it starts.
type stage struct {
	train.Learner
	name      string // training or collecting
	epochs    int
	schedule  train.Schedule
	start     []float64 // theta, flat [J, Q]; nil: drawn by Initial
	repeat    int       // 0, or which of several trainings by the same learner: each has its own mini-batches
	validate  bool
	posterior PosteriorOf // for Settings.Observe; nil: not observed
}

// training is a stage with the settings' epochs and learning rate, and with validation if there is a validation part.
func (j *Job) training(l train.Learner, posterior PosteriorOf) stage {
	return stage{
		Learner: l, name: training, epochs: j.Epochs, schedule: j.Optimiser.Schedule, validate: j.Parts.Validation != nil,
		posterior: posterior,
	}
}

// train runs a stage. A result can come with an error, see train.Fit.
func (j *Job) train(ctx context.Context, s stage) (*train.Result, error) {
	task, settings := j.task(s)
	begun := time.Now()
	trained, err := j.trainer.training.Fit(ctx, task, settings)
	if trained != nil {
		j.resumed(trained.Elapsed, begun)
	}
	return trained, err
}

// resumed adds the time of a stage's earlier sessions: the time of all sessions, minus what has passed since the stage
// began in this one.
func (j *Job) resumed(all time.Duration, begun time.Time) { j.earlier += max(0, all-time.Since(begun)) }

// task is a stage as the arguments of train.Fit.
func (j *Job) task(s stage) (train.Task, train.Settings) {
	task := train.Task{
		Learner: s.Learner, Train: train.Of(j.Data, j.Parts.Train, j.DType), Start: s.start, LogScale: j.LogScale(),
	}
	data := j.Parts.Train.Hash()
	if s.validate {
		task.Validation = train.Of(j.Data, j.Parts.Validation, j.DType)
		data += ", validation " + j.Parts.Validation.Hash()
	}
	settings := j.ascent()
	settings.Stage, settings.Epochs, settings.Optimiser.Schedule = s.name, s.epochs, s.schedule
	if s.repeat > 0 {
		settings.Seed = rand.New(rand.NewPCG(j.Seed, uint64(s.repeat))).Uint64()
	}
	method := s.Kind()
	if s.name != training { // the training is the same for several methods
		method = fmt.Sprintf("%s after a training with %s", j.described, text(j.ascent().Record()))
		settings.Checkpoint = j.file(s.name)
	}
	task.Identity = []run.Part{
		{Name: "data", Value: data}, {Name: "model", Value: string(text(j.Bound.Model))}, {Name: "method", Value: method},
	}
	if j.Observe != nil && s.posterior != nil {
		settings.Observe = func(step int, theta []float64) error {
			now, err := s.posterior("", theta)
			if err != nil {
				return err
			}
			return j.Observe(step, now)
		}
	}
	return task, settings
}

// file is the checkpoint of a stage that follows the training; empty: none.
func (j *Job) file(stage string) string {
	if j.Checkpoint == "" {
		return ""
	}
	return j.Checkpoint + "." + stage
}

// Mode is a maximum of the posterior density over all parameters, as MAP finds it, at which a second stage begins.
type Mode struct {
	Phi []float64 // [D], the stochastic parameters
	Psi []float64 // [W], the shared ones; nil if there are none

	theta   []float64 // both, in the order of the slots
	trained *train.Result
}

// Mode trains MAP with the job's Settings, once for all methods with the same checkpoint. A cancelled training is an
// error, since the next stage would begin at a point that is no mode.
func (j *Job) Mode(ctx context.Context) (*Mode, error) {
	points, err := j.newPoints(1, true)
	if err != nil {
		return nil, err
	}
	trained, err := j.train(ctx, j.training(points, j.posteriorOfPoint))
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("after %d steps of the training that %s begins with", trained.Steps, j.method.Name())
	if err := cancelled(ctx, trained.Status, what); err != nil {
		return nil, err
	}
	m := &Mode{theta: trained.Theta, trained: trained}
	m.Phi, m.Psi = split(j.Bound, m.theta)
	return m, nil
}

// Result makes the Result of a method that computed its posterior from the mode.
func (m *Mode) Result(posterior *bayes.Posterior) *Result { return finish(m.trained, posterior) }

// Particles are draws of equal weight, on the host.
type Particles struct {
	Phi    []float64 // flat [J, D]
	Psi    []float64 // [W]; nil if nothing is shared
	Chains int       // number of chains, which lie one after another; 0: none
	// Evidence is an estimate of log p(y); its zero value means unknown.
	Evidence bayes.Evidence
	// LinearisedAt, [D], is where the network is linearised, see bayes.Draws; nil if it is not.
	LinearisedAt []float64
	// Approximation describes the distribution of the particles if it is not the posterior, see bayes.Provenance.
	Approximation string
}

// Posterior makes a posterior of particles, with its provenance; the status is the run's.
func (j *Job) Posterior(status run.Status, p Particles) (*bayes.Posterior, error) {
	return j.posterior(j.Data, status, p)
}

// posterior is Posterior for data whose model may have another partition.
func (j *Job) posterior(data *fit.Data, status run.Status, p Particles) (*bayes.Posterior, error) {
	bound := data.Bound
	if len(p.Phi) == 0 || len(p.Phi)%bound.D != 0 {
		return nil, fmt.Errorf("baseline: %T gives %d numbers for particles of %d each", j.method, len(p.Phi), bound.D)
	}
	count := len(p.Phi) / bound.D
	draws := bayes.Draws{
		Phi: compute.Floats(j.DType, p.Phi, count, bound.D), LogWeights: bayes.EqualLogWeights(count), Chains: p.Chains,
		Evidence: p.Evidence,
	}
	if bound.W > 0 {
		draws.Psi = compute.Floats(j.DType, p.Psi, len(p.Psi))
	}
	if p.LinearisedAt != nil {
		draws.LinearisedAt = compute.Floats(j.DType, p.LinearisedAt, len(p.LinearisedAt))
	}
	settings := map[string]any{"method": j.described, "dtype": j.DType.String()}
	if !j.untrained {
		settings["training"] = j.ascent().Record()
	}
	return data.Posterior(draws, bayes.Provenance{
		Algorithm: "baseline: " + j.method.Source(), Status: string(status), Seed: j.Seed, Settings: text(settings),
		Approximation: p.Approximation,
	}, j.Engine)
}

// miniBatch is the target of particles whose log-posterior is estimated from batches.
func (j *Job) miniBatch(bound *bayes.BoundModel, work density.Workload) (density.MiniBatch, error) {
	plan, err := density.NewPlan(bound, j.DType, work)
	if err != nil {
		return density.MiniBatch{}, fmt.Errorf("baseline: %w", err)
	}
	return density.MiniBatch{Likelihood: density.Likelihood{Model: bound, Plan: plan}, Rows: j.Rows()}, nil
}

// startAt begins every chain at phi, [D].
func (j *Job) startAt(phi []float64, chains int) *tensors.Tensor {
	var start []float64
	for range chains {
		start = append(start, phi...)
	}
	return compute.Floats(j.DType, start, chains, len(phi))
}

// chainsKind identifies what the compiled chains depend on besides their kernel and sizes.
type chainsKind struct {
	model                            string
	rows, batchSize, inputs, outputs int
}

func (j *Job) kindOf(data *fit.Data) chainsKind {
	return chainsKind{
		string(text(data.Bound.Model)), j.Rows(), j.BatchSize, data.Bound.Inputs, data.Bound.Outputs,
	}
}

// sample runs chains, after a training or without one, and makes a posterior of their draws, chain after chain. s is
// the method's Sampling.
func (j *Job) sample(
	ctx context.Context, before *Result, data *fit.Data, psi []float64, problem density.Problem, kernel mcmc.Kernel,
	s mcmc.Settings,
) (*Result, error) {
	s.Seed, s.DType, s.Engine, s.CheckpointEvery, s.Replace = j.Seed, j.DType, j.Engine, j.CheckpointEvery, j.Replace
	s.Checkpoint, s.Progress = j.file(sampling), j.Progress
	posterior := func(status run.Status, draws *mcmc.Draws) (*bayes.Posterior, error) {
		phi, err := compute.Float64s(draws.Tensor())
		if err != nil {
			return nil, fmt.Errorf("baseline: %w", err)
		}
		return j.posterior(data, status, Particles{
			Phi: phi, Psi: psi, Chains: draws.Chains, Approximation: mcmc.Approximation(kernel),
		})
	}
	if j.Observe != nil {
		s.Observe = func(draws int, now *mcmc.Draws) error {
			p, err := posterior("", now)
			if err != nil {
				return err
			}
			return j.Observe(draws, p)
		}
	}
	begun := time.Now()
	chains, err := mcmc.Sample(ctx, problem, kernel, s)
	if chains != nil {
		j.resumed(chains.Elapsed, begun)
	}
	if errors.Is(err, mcmc.ErrStuck) {
		return nil, fmt.Errorf("baseline: %w: %w", ErrDiverged, err)
	}
	if fault := chains.Unusable(ctx, err); fault != nil {
		return nil, fmt.Errorf("baseline: %w", fault)
	}
	if err != nil { // beside a result
		err = fmt.Errorf("baseline: %w", err)
	}
	if err := lost(chains, kernel); err != nil {
		return nil, err
	}
	before.Chains = chains
	if before.Status == "" || chains.Status != run.Completed {
		before.Status = chains.Status
	}
	var failed error
	before.Posterior, failed = posterior(before.Status, chains.Draws)
	return before, errors.Join(err, failed)
}

// lost returns an error if chains repeatedly reach places where the density or its gradient is not finite.
func lost(chains *mcmc.Result, kernel mcmc.Kernel) error {
	count := 0
	for _, c := range chains.Stats {
		if 10*c.NonFinite > c.Transitions {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("baseline: %w: in more than a tenth of their moves %d of %d chains of %T come where the density or "+
		"its gradient is not finite: take a smaller step size than in %+v", ErrDiverged, count, len(chains.Stats), kernel,
		kernel)
}
