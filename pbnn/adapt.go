package pbnn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Trial is a short run that measures the noise of M mini-batches of n rows.
type Trial struct {
	Batches, BatchSize int
	Noise              float64 // mean sigma^2 over all proposals of the trial's draws
	Acceptance         float64 // mean; 0 if nothing was accepted
}

// acceptableNoise is a sigma^2 with a small penalty: it lowers the mean acceptance by at most a factor exp(-1/2).
const acceptableNoise = 1.0

const trialDraws = 50 // of each chain

// adapt raises M, and then n when M is at its limit, until a trial has a sigma^2 of at most Noise or both are at their
// limits. The sigma^2 of the last trial says how far they must be raised. They are raised at most fourfold at once,
// since that sigma^2 is too large if noise has kept the chains from where the posterior has its mass. Adaptation ends
// before the first draw: to choose M by the differences that decide on a proposal would bias its acceptance. With a
// checkpoint each trial has a checkpoint file of its own, so that a resumed run repeats no trial.
func (d *Data) adapt(ctx context.Context, m Metropolis) (Metropolis, []Trial, error) {
	var trials []Trial
	for {
		trial, err := d.try(ctx, m, len(trials)+1)
		if err != nil {
			return m, trials, err
		}
		trials = append(trials, trial)
		if trial.Noise <= m.Noise {
			return m, trials, nil
		}
		batches, size := m.sizeFor(m.Noise, trial.Noise, d.Rows())
		switch {
		case m.Batches < m.MaxBatches && m.Estimate != OneBatch:
			m.Batches = min(m.MaxBatches, max(min(batches, 4*m.Batches), m.Batches+1))
		case m.BatchSize < m.MaxBatchSize:
			m.BatchSize = min(m.MaxBatchSize, max(min(size, 4*m.BatchSize), m.BatchSize+1))
		default:
			return m, trials, nil
		}
	}
}

// sizeFor gives the M at the same n, and the n at the same M, that bring sigma^2 from its present value to the wanted
// one: sigma^2 is proportional to 1/M (not exactly for OneBatch) and to 1/n - 1/N.
func (m Metropolis) sizeFor(wanted, now float64, rows int) (batches, size int) {
	batches = int(math.Ceil(float64(m.Batches) * math.Min(now/wanted, 1e9)))
	if m.Estimate == OneBatch {
		batches = m.Batches
	}
	n, all := float64(m.BatchSize), float64(rows)
	size = int(math.Ceil(1 / ((1/n-1/all)*wanted/now + 1/all)))
	return batches, min(size, rows)
}

// try runs a trial; trials are numbered from 1.
func (d *Data) try(ctx context.Context, m Metropolis, number int) (Trial, error) {
	trial := Trial{Batches: m.Batches, BatchSize: m.BatchSize}
	m.Draws, m.Thin = trialDraws, 1
	stage, err := d.stage(m)
	if err != nil {
		return trial, err
	}
	if stage.Problem.Start, err = d.Starts(m.Chains); err != nil {
		return trial, err
	}
	stage.Name, stage.Inner = fmt.Sprint("trial", number), true
	stage.Seed = (d.Seed ^ 0x747269616c) - d.Seed // "trial": not the draws' stream
	result, err := d.RunStage(ctx, stage)
	if stuck := (*mcmc.StuckError)(nil); errors.As(err, &stuck) && stuck.Noise > m.Noise {
		trial.Noise = stuck.Noise
		return trial, nil
	}
	if err != nil {
		return trial, fmt.Errorf("pbnn: trial with %d mini-batches of %d rows: %w", m.Batches, m.BatchSize, err)
	}
	if result.Status != run.Completed { // half a trial would choose another M than a whole one
		return trial, fmt.Errorf("pbnn: cancelled in a trial with %d mini-batches of %d rows: %w", m.Batches, m.BatchSize,
			context.Cause(ctx))
	}
	stats := fit.Details[*mcmc.Details](result).Stats
	for _, c := range stats {
		trial.Noise += c.Noise / float64(len(stats))
		trial.Acceptance += c.Acceptance / float64(len(stats))
	}
	return trial, nil
}
