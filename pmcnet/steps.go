package pmcnet

import (
	"context"
	"iter"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/run"
)

// Position is the progress of a PMC after an iteration, as Steps yields it. It is valid until the next iteration.
type Position struct {
	run.Progress
	IterationRecord // of this iteration; its zero value before the first
	machine         *machine
	session         *run.Run
}

// Result is what Fit, or Sample, would return if the run ended here. Before the end its Status is empty and its
// Evidence NaN.
func (p *Position) Result() (*Result, error) {
	m := p.machine
	result, err := m.result(p.session.Status())
	if err != nil {
		return nil, err
	}
	result.Algorithm, result.Elapsed = m.algorithm, p.session.Elapsed()
	if m.Data != nil {
		result.Posterior, err = m.Job.Posterior(result)
	}
	return result, err
}

// Steps is Fit with a PMC for a range loop of your own: it yields after each iteration. Leaving the loop ends the run
// as a cancelled context does, after the checkpoint is written, if one is set; Fit and Steps with the same settings
// resume from it, bit for bit. An error of Fit is yielded last, with a Position if there is a result beside it, and
// otherwise with nil. Annealed has no such iterations: see Settings.Progress, and smc.Steps.
func Steps(
	ctx context.Context, model bayes.Model, algorithm PMC, parts dataset.Parts, settings Settings,
) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		trainer := NewTrainer(model)
		defer trainer.Close()
		trainer.Steps(ctx, algorithm, parts, settings)(yield)
	}
}

// Steps is the function Steps with the trainer's model. The trainer is busy until the loop is left.
func (t *Trainer) Steps(
	ctx context.Context, algorithm PMC, parts dataset.Parts, settings Settings,
) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		job, giveBack, err := t.job(parts, settings)
		if err != nil {
			yield(nil, err)
			return
		}
		defer giveBack()
		job.steps(ctx, algorithm, yield)
	}
}

// Steps is Sample with a PMC for a range loop of your own, as the function Steps is Fit's.
func (s *Sampler) Steps(ctx context.Context, algorithm PMC, settings Settings) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		job, err := s.job(settings)
		if err != nil {
			yield(nil, err)
			return
		}
		job.steps(ctx, algorithm, yield)
	}
}

// steps runs a PMC, iteration by iteration.
func (j *Job) steps(ctx context.Context, algorithm PMC, yield func(*Position, error) bool) {
	prepared, err := j.prepare(algorithm)
	if err != nil {
		yield(nil, err)
		return
	}
	m, session := prepared.(PMC).begin(j)
	defer m.close()
	run.StepsAs(ctx, session, func(p run.Progress) *Position {
		at := &Position{Progress: p, machine: m, session: session}
		if n := len(m.Trace); n > 0 {
			at.IterationRecord = m.Trace[n-1]
		}
		return at
	})(yield)
}
