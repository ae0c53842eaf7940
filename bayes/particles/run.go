package particles

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
)

// Run repeats an algorithm's step for a job, with the settings that Prepared has filled in. The result's posterior is
// the one of the best validation, or of the last step; its details are *Details. If all weights become 0, the error
// wraps bayes.ErrZeroWeights and names the step.
func Run(ctx context.Context, j *fit.Job, t Training, a Algorithm) (*fit.Result, error) {
	r, err := newTraining(j, t, a)
	if err != nil {
		return nil, err
	}
	return r.loop().Run(ctx, j)
}

// training is a run of an algorithm: its compiled programs, which exist from begin on, and what they are run with.
type training struct {
	*fit.Job
	*programs
	Training  // of this run: those of programs may have another learning rate
	algorithm Algorithm
	batches   dataset.Batches
	steps     int
}

// newTraining is a training before its first step.
func newTraining(j *fit.Job, t Training, a Algorithm) (*training, error) {
	r := &training{Job: j, Training: t, algorithm: a}
	var err error
	if r.batches, r.steps, err = horizon(a, t, j.Rows(), j.Seed); err != nil {
		return nil, fmt.Errorf("particles: %w", err)
	}
	return r, r.Bound.CheckBatches(r.batches)
}

// loop declares the run's steps.
func (r *training) loop() *fit.Loop[StepRecord] {
	l := &fit.Loop[StepRecord]{
		Format: checkpointFormat, Steps: r.steps, Begin: r.begin, Step: r.advance, Data: []string{"train_", "valid_"},
		Kept: r.keptShapes(), Scores: r.scores, ObserveEvery: r.batches.PerEpoch(), Result: r.result,
	}
	if r.estimates().Evidence == nil {
		l.Merge = StepRecord.merge
	}
	if r.Parts.Validation != nil {
		l.Validation = &fit.Validation{
			Score: func(state *compute.State, _ []float64) ([]float64, error) { return r.validation.program.Run(state) },
			Best:  slices.Sorted(maps.Keys(r.keptShapes())), Every: r.ValidateEvery, Patience: r.Patience,
		}
	}
	return l
}

// begin compiles the programs unless they are compiled, and puts the data and the initial state on the device.
func (r *training) begin(context.Context) (state *compute.State, release func(), err error) {
	if r.programs, release, err = compute.Keep(r.Engine, r.key(), func() (*programs, error) {
		return newPrograms(r)
	}); err != nil {
		return nil, nil, err
	}
	state, err = r.first()
	return state, release, err
}

// first puts the data and the initial state on the device.
func (r *training) first() (state *compute.State, err error) {
	sharding := compute.Sharding{
		Devices: r.Devices, Particles: append([]string{phiName, run.BestPrefix + phiName}, r.stepper.Sharded()...),
	}
	if state, err = compute.NewShardedState(r.Engine, sharding); err != nil {
		return nil, fmt.Errorf("particles: %w", err)
	}
	if err := r.load(state, "train", r.Parts.Train); err != nil {
		return state, err
	}
	if err := r.draw(state); err != nil {
		return state, fmt.Errorf("particles: initial particles: %w", err)
	}
	if r.validation == nil {
		return state, nil
	}
	if err := r.load(state, "valid", r.Parts.Validation); err != nil {
		return state, err
	}
	if err := run.BeginBest(state, r.validation.kept()); err != nil {
		return state, fmt.Errorf("particles: initial particles: %w", err)
	}
	r.validation.program.Prepare(state) // beside the first step, which compiles too
	return state, nil
}

// load puts a part, standardised, into the state.
func (r *training) load(state *compute.State, name string, part *dataset.Dataset) error {
	x, y, err := r.Tensors(r.DType, part)
	if err != nil {
		return err
	}
	state.Set(name+"_x", x)
	state.Set(name+"_y", y)
	return nil
}

// draw makes the initial state: phi from the prior, psi from its initialisers, equal weights, moments 0, and the
// algorithm's own entries.
func (r *training) draw(state *compute.State) error {
	for _, initial := range r.initial {
		if _, err := initial.Run(state, random.KeyOf(r.Seed).Words()); err != nil {
			return err
		}
	}
	if w := r.Bound.W; w > 0 {
		state.Set(meanName, compute.Floats(r.DType, make([]float64, w), w))
		state.Set(squareName, compute.Floats(r.DType, make([]float64, w), w))
	}
	return r.stepper.Begin(r.at(state, 0))
}

// at is the session as a Stepper sees it.
func (r *training) at(state *compute.State, made int) *Session {
	return &Session{Training: r.Training, Settings: r.Settings, State: state, Batches: r.batches, Step: made}
}

// advance makes a step.
func (r *training) advance(ctx context.Context, state *compute.State, made int) (StepRecord, error) {
	start := time.Now()
	record, err := r.stepper.Advance(ctx, r.at(state, made))
	record.Seconds = time.Since(start).Seconds()
	if err == nil && math.IsInf(record.LogEvidence, -1) {
		err = fmt.Errorf("%w: %d of %d particles have a log-likelihood that is not finite; check the data for outliers, "+
			"use a smaller learning rate or a smaller step of the kernel", bayes.ErrZeroWeights, record.NonFinite,
			r.Particles)
	}
	return record, err
}

// scores are a step's for Progress.
func (r *training) scores(last StepRecord) []run.Score {
	return []run.Score{
		{Name: fit.LossCurve, Value: last.plus(r.LogScale()).Loss}, {Name: fit.ESSCurve, Value: last.ESS},
	}
}

const checkpointFormat = "gobnn.ohsmc/7"

// keptShapes returns the shapes of the tensors that make a posterior, by name.
func (r *training) keptShapes() map[string]shapes.Shape {
	bound := r.Bound
	all := map[string]shapes.Shape{
		phiName: shapes.Make(r.DType, r.Particles, bound.D), weightsName: shapes.Make(r.DType, r.Particles),
	}
	if bound.W > 0 {
		all[psiName] = shapes.Make(r.DType, bound.W)
	}
	return all
}
