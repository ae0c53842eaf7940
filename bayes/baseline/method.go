package baseline

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// Training has the settings that the methods of this package share, and embed: what is trained by gradient ascent, for
// how long and how. The zero value of every field works.
type Training = train.Training

// inBlocks is for methods that read a Source, so many rows at a time.
var inBlocks = fit.Takes{RowsAtOnce: 1 << 16}

// Takes implements fit.Taker.
func (MLE) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (MAP) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (Ensemble) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (SAE) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (Dropout) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (SWAG) Takes() fit.Takes { return inBlocks }

// Takes implements fit.Taker.
func (VI) Takes() fit.Takes { return inBlocks }

// ErrDiverged says that no member had a finite gradient, or that chains left the region of finite density. The methods
// wrap it.
var ErrDiverged = train.ErrDiverged

// posteriorOf makes a posterior of theta, the members of a learner, flat [J, Q]; the status is the run's.
type posteriorOf func(status run.Status, theta []float64) (*bayes.Posterior, error)

// maximise is all that a method needs if it maximises an objective: it trains a learner on the job's rows, validates it
// on those of the validation part, and makes the posterior of the result.
func maximise(
	ctx context.Context, j *fit.Job, t Training, learner train.Learner, posterior posteriorOf,
) (*fit.Result, error) {
	return train.Run(ctx, j, t, train.Task{
		Learner: learner, Train: train.OfTraining(j), Validation: train.Of(j, j.Parts.Validation),
		Posterior: posterior,
	})
}

// drawsOf are particles of equal weight, flat [J, D], with the shared parameters psi, [W].
func drawsOf(j *fit.Job, phi, psi []float64) bayes.Draws {
	count := len(phi) / j.Bound.D
	draws := bayes.Draws{
		Phi: compute.Floats(j.DType, phi, count, j.Bound.D), LogWeights: bayes.EqualLogWeights(count),
	}
	if j.Bound.W > 0 {
		draws.Psi = compute.Floats(j.DType, psi, j.Bound.W)
	}
	return draws
}

// mode is a maximum of the posterior density over all parameters, as MAP finds it, at which a second part begins.
type mode struct {
	phi     []float64 // [D], the stochastic parameters
	psi     []float64 // [W], the shared ones
	trained *train.Details
	status  run.Status
}

// modeOf runs MAP, once for all methods with the same checkpoint. A cancelled training is an error, since the next part
// would begin at a point that is no mode.
func modeOf(ctx context.Context, j *fit.Job, t Training) (*mode, error) {
	result, err := j.RunFirst(ctx, MAP{t})
	if err != nil {
		return nil, err
	}
	m := &mode{trained: fit.Details[*train.Details](result), status: result.Status}
	if ended := m.status.Err(); ended != nil {
		return nil, fmt.Errorf("baseline: cancelled after %d steps of the training that the method begins with: %w",
			m.trained.Steps, errors.Join(context.Cause(ctx), ended))
	}
	m.phi, m.psi = split(j.Bound, m.trained.Theta)
	return m, nil
}

// miniBatch is the target of particles whose log-posterior is estimated from the training's batches.
func miniBatch(j *fit.Job, t Training, l density.Likelihood) density.Posterior {
	if batches := t.SourceBatches(j); batches != nil {
		return density.EqualBatches(l, j.Rows(), batches.PerEpoch())
	}
	return density.MiniBatch(l, j.Rows())
}

// likelihood is that of a model, with a plan for the work.
func likelihood(j *fit.Job, bound *bayes.BoundModel, work density.Workload) density.Likelihood {
	return density.Likelihood{Model: bound, Plan: density.NewPlan(bound, j.DType, work)}
}
