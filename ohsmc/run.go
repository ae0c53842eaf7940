package ohsmc

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/tensors"
)

// Trainer trains one model again and again, on other splits or with other seeds, and compiles only once for data and settings of the
// same size and kind. It may be used by several goroutines, one run at a time.
type Trainer struct {
	model    bayes.Model
	mu       sync.Mutex
	programs map[string]*programs // by what they were compiled for
	samplers mcmc.Samplers
}

// programs are what is compiled for one kind of run.
type programs struct {
	core
	stepper    stepper
	initial    *compute.Program
	validation *compute.Program // nil without a validation part
}

// NewTrainer is a trainer of the model. Close it at the end.
func NewTrainer(model bayes.Model) *Trainer {
	return &Trainer{model: model, programs: map[string]*programs{}}
}

// Close frees what was compiled.
func (t *Trainer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.programs {
		p.initial.Close()
		p.stepper.close()
		if p.validation != nil {
			p.validation.Close()
		}
	}
	clear(t.programs)
	t.samplers.Close()
}

// Train is the function Train with the trainer's model.
func (t *Trainer) Train(ctx context.Context, parts dataset.Parts, settings Settings) (*Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.newRun(parts, settings)
	if err != nil {
		return nil, err
	}
	defer r.state.Close()
	if err := r.restore(); err != nil {
		return nil, err
	}
	if err := r.loop(ctx); err != nil {
		return nil, err
	}
	return r.result()
}

// run is a training in progress: the compiled algorithm, its state on the device, and its records on the host.
type run struct {
	*programs
	Settings // of this run: those of programs may have another seed
	engine   *compute.Engine
	state    *compute.State
	batches  dataset.Batches

	data *fit.Data

	step, steps int
	trace       []StepRecord
	validated   []Validation
	best        Validation
	sinceBest   int // validations since the best
	status      Status
	begun       time.Time
	before      time.Duration // of earlier sessions
	saved       time.Time     // last checkpoint
	reported    time.Time
}

// newRun checks everything, compiles what is not compiled yet, puts the data on the device and draws the initial state.
func (t *Trainer) newRun(parts dataset.Parts, settings Settings) (*run, error) {
	data, err := fit.New("ohsmc", t.model, parts)
	if err != nil {
		return nil, err
	}
	bound := data.Bound
	if settings, err = settings.withDefaults(bound, parts.Train.Rows()); err != nil {
		return nil, err
	}
	r := &run{
		Settings: settings,
		data:     data,
		best:     Validation{NLPD: nan},
		begun:    time.Now(),
		saved:    time.Now(),
	}
	if r.batches, r.steps, err = settings.Algorithm.horizon(settings, parts.Train.Rows()); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if r.engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if err := r.engine.CheckDevices(settings.Devices, settings.Particles); err != nil {
		return nil, fmt.Errorf("ohsmc: Settings.Devices is %d, Settings.Particles %d: %w", settings.Devices, settings.Particles, err)
	}
	if r.programs, err = t.compiled(r.engine, bound, parts, settings); err != nil {
		return nil, err
	}
	sharded := append([]string{"phi", "best_phi"}, r.stepper.sharded()...)
	if r.state, err = compute.NewShardedState(r.engine, compute.Sharding{Devices: settings.Devices, Particles: sharded}); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if err := r.fill(parts); err != nil {
		r.state.Close()
		return nil, err
	}
	return r, nil
}

// compiled prepares the programs, or finds those of an earlier run of the same kind.
func (t *Trainer) compiled(engine *compute.Engine, bound *bayes.BoundModel, parts dataset.Parts, settings Settings) (*programs, error) {
	validationRows := 0
	if parts.Validation != nil {
		validationRows = parts.Validation.Rows()
	}
	key := fmt.Sprint(engine, parts.Train.Rows(), validationRows, bound.Inputs, bound.Outputs, string(settings.record()))
	if p, ok := t.programs[key]; ok {
		return p, nil
	}
	p := &programs{core: core{Settings: settings, bound: bound}}
	plan := func(rows int, forward bool) (target.Likelihood, error) {
		work := target.Workload{Particles: settings.Particles, Rows: rows, Forward: forward, Devices: settings.Devices, Chunk: settings.Chunk}
		plan, err := target.NewPlan(bound, settings.DType, work)
		return target.Likelihood{Model: bound, Plan: plan}, err
	}
	likelihood, err := plan(settings.BatchSize, false)
	if err != nil {
		return nil, err
	}
	p.target = target.MiniBatch{Likelihood: likelihood, Rows: parts.Train.Rows()}
	numbers := settings.Particles*bound.D + bound.W
	if p.initial, err = compute.NewInitial(engine, "ohsmc initial state", numbers, p.kept(), p.initialStep); err != nil {
		return nil, err
	}
	if p.stepper, err = settings.Algorithm.build(&p.core, engine); err != nil {
		return nil, err
	}
	if parts.Validation != nil {
		if p.validate, err = plan(validationRows, true); err != nil {
			return nil, err
		}
		best := []string{"best_nlpd"}
		for _, name := range p.kept() {
			best = append(best, "best_"+name)
		}
		reads := append(append(p.kept(), best...), "valid_x", "valid_y")
		if p.validation, err = compute.NewProgram(engine, "ohsmc validation", reads, best, p.validateStep); err != nil {
			return nil, err
		}
	}
	t.programs[key] = p
	return p, nil
}

// fill puts the data and the initial state on the device: phi from the prior, psi from its initialisers, equal weights, moments 0.
func (r *run) fill(parts dataset.Parts) error {
	if err := r.load("train", parts.Train); err != nil {
		return err
	}
	if _, err := r.initial.Run(r.state, random.SeedWords(r.Seed)); err != nil {
		return fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	if w := r.bound.W; w > 0 {
		r.state.Set("mean", compute.Floats(r.DType, make([]float64, w), w))
		r.state.Set("square", compute.Floats(r.DType, make([]float64, w), w))
	}
	if err := r.stepper.begin(r); err != nil {
		return fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	if parts.Validation == nil {
		return nil
	}
	best, err := r.state.Host(r.kept()...)
	if err != nil {
		return fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	for name, t := range best {
		r.state.Set("best_"+name, t)
	}
	r.state.Set("best_nlpd", tensors.FromScalar(math.Inf(1)))
	return r.load("valid", parts.Validation)
}

// load puts a part, standardised, into the state.
func (r *run) load(name string, part *dataset.Dataset) error {
	x, y, err := r.data.Tensors(r.DType, part)
	if err != nil {
		return err
	}
	r.state.Set(name+"_x", x)
	r.state.Set(name+"_y", y)
	return nil
}

func (r *run) elapsed() time.Duration { return r.before + time.Since(r.begun) }

// report calls Progress, but not more than about ten times a second.
func (r *run) report(end bool) {
	if r.Progress == nil || !end && time.Since(r.reported) < 100*time.Millisecond {
		return
	}
	r.reported = time.Now()
	p := Progress{Step: r.step, Steps: r.steps, Epoch: r.step / r.batches.PerEpoch(), Validation: nan, Best: r.best.NLPD, LogEvidence: nan, ESS: nan, Elapsed: r.elapsed()}
	if n := len(r.trace); n > 0 {
		p.LogEvidence, p.ESS = -r.trace[n-1].Loss, r.trace[n-1].ESS
	}
	if n := len(r.validated); n > 0 {
		p.Validation = r.validated[n-1].NLPD
	}
	r.Progress(p)
}

// result makes the posterior of the best validation, or of the last step.
func (r *run) result() (*Result, error) {
	prefix := ""
	if r.best.Step > 0 {
		prefix = "best_"
	}
	posterior, err := r.posterior(prefix)
	if err != nil {
		return nil, err
	}
	return &Result{
		Posterior: posterior, Status: r.status, Steps: r.step, PerEpoch: r.batches.PerEpoch(), Trace: r.trace, Validated: r.validated, Best: r.best,
		LogEvidence: r.logEvidence(), Plan: r.target.Plan, Elapsed: r.elapsed(),
	}, nil
}

// posterior is the particles on the device, or with the prefix "best_" those of the best validation.
func (r *run) posterior(prefix string) (*bayes.Posterior, error) {
	var names []string
	for _, name := range r.kept() {
		names = append(names, prefix+name)
	}
	host, err := r.state.Host(names...)
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	logWeights, err := compute.Float64s(host[prefix+"log_weights"])
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	draws := bayes.Draws{Phi: host[prefix+"phi"], Psi: host[prefix+"psi"], LogWeights: logWeights}
	return r.data.Posterior(draws, bayes.Provenance{
		Algorithm: "ohsmc: " + r.Algorithm.title(), Status: string(r.status), Seed: r.Seed, Settings: r.Settings.record(),
	}, r.engine)
}

// logEvidence is Result's.
func (r *run) logEvidence() float64 {
	switch a := r.Algorithm.(type) {
	case OpenHorizon:
		if a.Poisson != nil && r.status == Completed {
			return a.Poisson.logEvidence(r.trace)
		}
	case SMC:
		if n := len(r.trace); n > 0 && r.BatchSize == r.data.Rows() {
			return r.trace[n-1].LogEvidence
		}
	}
	return nan
}
