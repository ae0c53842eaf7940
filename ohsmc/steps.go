package ohsmc

import (
	"context"
	"iter"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/run"
)

// Position is the state of a training after a step, as Steps yields it. It is valid until the next step.
type Position struct {
	run.Progress
	training *training
}

// Record is the record of the last step; its zero value before the first.
func (p *Position) Record() StepRecord {
	if n := len(p.training.trace); n > 0 {
		return p.training.trace[n-1].plus(p.training.data.LogScale())
	}
	return StepRecord{}
}

// Psi are the shared parameters after the step, [W], in the order of the model's slots; nil if nothing is shared.
func (p *Position) Psi() ([]float64, error) {
	if p.training.data.Bound.W == 0 {
		return nil, nil
	}
	host, err := p.training.host("")
	if err != nil {
		return nil, err
	}
	return compute.Float64s(host[psiName])
}

// Posterior is the posterior of the particles after the step, whatever their validation.
func (p *Position) Posterior() (*bayes.Posterior, error) {
	return p.training.posterior(p.training.step, "")
}

// Result is what Fit would return if the training ended here: the posterior of the best validation, or of this step
// without a validation part. Its Status is empty before the end.
func (p *Position) Result() (*Result, error) { return p.training.result() }

// Steps is Fit for a range loop of your own: it yields after each step. Leaving the loop ends the training as a
// cancelled context does: the checkpoint is written, if one is set, and Fit or Steps with the same settings resume from
// it, with a result that is bit for bit that of an uninterrupted run. Errors are those of Fit. They are yielded last,
// with a Position if there is a result besides the error, and otherwise with nil.
func Steps(
	ctx context.Context, model bayes.Model, algorithm Algorithm, parts dataset.Parts, settings Settings,
) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		trainer := NewTrainer(model)
		defer trainer.Close()
		trainer.Steps(ctx, algorithm, parts, settings)(yield)
	}
}

// Steps is the function Steps with the trainer's model. The trainer is busy until the loop is left.
func (t *Trainer) Steps(
	ctx context.Context, algorithm Algorithm, parts dataset.Parts, settings Settings,
) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		r, err := t.begin(algorithm, parts, settings)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.close()
		run.StepsAs(ctx, r.session, func(p run.Progress) *Position { return &Position{p, r} })(yield)
	}
}
