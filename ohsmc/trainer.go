package ohsmc

import (
	"context"
	"fmt"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/optim"
)

// Fit runs an algorithm on the training part; nil stands for OpenHorizon{}. Features, and the target of a regression,
// are standardised by the training part's means and standard deviations unless Model.Scaling says otherwise. The
// posterior keeps these and predicts in raw units.
//
// A cancelled context is no error: the result is that of the steps so far, with the status run.Cancelled. If Observe
// fails, or a checkpoint cannot be written, as on a full disk, the result of the steps so far is returned together with
// the error, with the status run.Stopped (run.Completed, if only the last checkpoint failed). With other errors there
// is no result. If all weights become 0, the error wraps bayes.ErrZeroWeights and names the step.
func Fit(
	ctx context.Context, model bayes.Model, algorithm Algorithm, parts dataset.Parts, settings Settings,
) (*Result, error) {
	trainer := NewTrainer(model)
	defer trainer.Close()
	return trainer.Fit(ctx, algorithm, parts, settings)
}

// Trainer trains one model repeatedly, on different splits or with different seeds and learning rates, and compiles
// only once for data and settings of the same size and kind. It may be used by several goroutines, one run at a time.
type Trainer struct {
	model    bayes.Model
	mu       sync.Mutex
	programs compute.Cache[kind, *programs]
	samplers mcmc.Samplers
}

// NewTrainer is a trainer of the model. Close it at the end.
func NewTrainer(model bayes.Model) *Trainer { return &Trainer{model: model} }

// Close frees the compiled programs.
func (t *Trainer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.programs.Close()
	t.samplers.Close()
}

// Fit is the function Fit with the trainer's model.
func (t *Trainer) Fit(
	ctx context.Context, algorithm Algorithm, parts dataset.Parts, settings Settings,
) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.begin(algorithm, parts, settings)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.session.Loop(ctx); r.session.Status() == "" {
		return nil, err
	}
	return r.result()
}

// begin checks everything that needs no graph.
func (t *Trainer) begin(algorithm Algorithm, parts dataset.Parts, settings Settings) (*training, error) {
	data, err := fit.New("ohsmc", t.model, parts)
	if err != nil {
		return nil, err
	}
	return t.newTraining(algorithm, data, settings)
}

// kind identifies what programs depend on besides the model.
type kind struct {
	engine               *compute.Engine
	rows, validationRows int
	inputs, outputs      int
	particles, batchSize int
	chunk, devices       int
	dtype                compute.DType
	threshold            float64
	resampler            string
	optimiser            optim.Adam // without its Schedule, which is an input
	algorithm, goSyntax  string     // as JSON, and with fields that JSON does not see
}

// programs are the compiled programs of one kind of run.
type programs struct {
	Core
	stepper    Stepper
	initial    []*compute.Program // draw phi, and psi
	validation *validation        // nil without a validation part
}

// Close frees the programs.
func (p *programs) Close() {
	for _, program := range p.initial {
		program.Close()
	}
	if p.stepper != nil {
		p.stepper.Close()
	}
	if p.validation != nil {
		p.validation.program.Close()
	}
}

// compiled prepares the programs of a training, or takes those of an earlier one of the same kind.
func (t *Trainer) compiled(r *training) (p *programs, giveBack func(), err error) {
	algorithm, err := describe(r.algorithm)
	if err != nil {
		return nil, nil, err
	}
	k := kind{
		engine: r.Engine, rows: r.data.Rows(), inputs: r.data.Bound.Inputs, outputs: r.data.Bound.Outputs,
		particles: r.Particles, batchSize: r.BatchSize, chunk: r.Chunk, devices: r.Devices, dtype: r.DType,
		threshold: r.Threshold, resampler: string(r.Resampler), optimiser: r.Optimiser,
		algorithm: string(algorithm), goSyntax: compute.KeyOf(r.algorithm),
	}
	k.optimiser.Schedule = optim.Schedule{}
	if part := r.data.Parts.Validation; part != nil {
		k.validationRows = part.Rows()
	}
	return t.programs.Take(k, func() (*programs, error) { return newPrograms(r.algorithm, r.data.Bound, r.Settings, k) })
}

func newPrograms(algorithm Algorithm, bound *bayes.BoundModel, settings Settings, k kind) (*programs, error) {
	plan, err := planOf(bound, settings, settings.BatchSize, false)
	if err != nil {
		return nil, err
	}
	p := &programs{Core: Core{
		Settings: settings, Bound: bound,
		Target: density.MiniBatch{Likelihood: density.Likelihood{Model: bound, Plan: plan}, Rows: k.rows},
	}}
	if err = p.newInitial(); err == nil {
		p.stepper, err = algorithm.Compile(&p.Core)
	}
	if err == nil && p.stepper == nil {
		err = fmt.Errorf("ohsmc: Compile of %T gives no Stepper", algorithm)
	}
	if err == nil && k.validationRows > 0 {
		p.validation, err = newValidation(&p.Core, k.validationRows)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// planOf is the plan of chunks for particles that are evaluated on so many rows at once.
func planOf(bound *bayes.BoundModel, s Settings, rows int, forward bool) (compute.Plan, error) {
	work := density.Workload{Particles: s.Particles, Rows: rows, Forward: forward, Devices: s.Devices, Chunk: s.Chunk}
	return density.NewPlan(bound, s.DType, work)
}
