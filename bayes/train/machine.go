package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// machine is a training run in progress: the programs, the state on the device, and the records on the host.
type machine struct {
	Task
	Settings
	engine         *compute.Engine
	trainer        *Trainer
	members, width int
	batches        dataset.Batches
	perEpoch       int

	adopted  map[string]*tensors.Tensor // of an earlier session, until Begin
	programs *programs                  // nil before Begin
	giveBack func()
	state    *compute.State // nil before Begin

	step, steps int
	trace       []StepRecord // without Task.LogScale, as in the checkpoint; so are validated and Selection's
	validated   []Validation
	run.Selection
}

var _ run.Machine = (*machine)(nil)

func (t *Trainer) newMachine(task Task, settings Settings) (*machine, error) {
	settings, err := settings.WithDefaults(task.Train.Count)
	if err != nil {
		return nil, err
	}
	m := &machine{Task: task, Settings: settings, trainer: t}
	m.members, m.width = task.Size()
	if n := len(task.Start); n > 0 && n != m.members*m.width {
		return nil, fmt.Errorf("%s: Task.Start has %d numbers: %d members of %d each are to be trained",
			m.Owner, n, m.members, m.width)
	}
	batches, err := dataset.NewEpochBatches(task.Train.Count, m.BatchSize, m.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Owner, err)
	}
	m.batches, m.perEpoch, m.steps = batches, batches.PerEpoch(), m.Epochs*batches.PerEpoch()
	m.Selection = run.NewSelection(m.members, m.Patience)
	m.engine, err = settings.Engine.Or()
	return m, err
}

// close frees the run's state.
func (m *machine) close() {
	if m.state != nil {
		m.state.Close()
	}
	if m.giveBack != nil {
		m.giveBack()
	}
}

// validates says whether there are validation rows.
func (m *machine) validates() bool { return m.Validation.Count > 0 }

// Identity implements run.Machine.
func (m *machine) Identity() ([]run.Part, error) {
	settings, err := json.Marshal(m.Record())
	parts := slices.Clone(m.Task.Identity)
	if m.Start != nil {
		start, err := run.Digest(compute.Floats(compute.Float64, m.Start, len(m.Start)))
		if err != nil {
			return nil, fmt.Errorf("Task.Start: %w", err)
		}
		parts = append(parts, run.Part{Name: "start", Value: start})
	}
	return append(parts,
		run.Part{Name: "seed", Value: fmt.Sprint(m.Seed)},
		run.Part{Name: "settings", Value: string(settings)},
		run.Part{Name: "backend", Value: m.engine.Name()},
	), err
}

// head is the part of a checkpoint that is not tensors.
type head struct {
	Step      int `json:"step"`
	Validated int `json:"validated"`
}

// Keep implements run.Machine.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.host()
	if err != nil {
		return nil, nil, err
	}
	var trace, validated []float64
	for _, t := range m.trace {
		trace = append(trace, t.Loss, float64(t.Rejected))
	}
	for _, v := range m.validated {
		validated = append(append(validated, float64(v.Step)), v.NLPD...)
	}
	kept["trace"], kept["validated"] = run.Table(trace, 2), run.Table(validated, 1+m.members)
	return head{m.step, len(m.validated)}, kept, nil
}

// Adopt implements run.Machine.
func (m *machine) Adopt(text json.RawMessage, kept map[string]*tensors.Tensor) error {
	var h head
	if err := run.Decode(text, &h); err != nil {
		return err
	}
	if h.Step < 0 || h.Step > m.steps {
		return fmt.Errorf("it has made %d of %d steps", h.Step, m.steps)
	}
	m.adopted = map[string]*tensors.Tensor{}
	for name, shape := range m.carried() {
		t, err := run.Tensor(kept, name, shape)
		if err != nil {
			return err
		}
		m.adopted[name] = t
	}
	trace, err := run.Rows(kept, "trace", h.Step, 2)
	if err != nil {
		return err
	}
	for _, v := range trace {
		m.trace = append(m.trace, StepRecord{Loss: v[0], Rejected: int(v[1])})
	}
	validated, err := run.Rows(kept, "validated", h.Validated, 1+m.members)
	if err != nil {
		return err
	}
	for _, v := range validated {
		m.validated = append(m.validated, Validation{Step: int(v[0]), NLPD: v[1:]})
		m.Add(int(v[0]), v[1:])
	}
	m.step = 0
	due := 0
	for m.step < h.Step {
		if m.step++; m.validationDue() {
			due++
		}
	}
	if due != h.Validated {
		return fmt.Errorf("it has made %d validations in %d steps: there must be %d", h.Validated, h.Step, due)
	}
	return nil
}

// carried returns the shapes of the device's state that a checkpoint keeps, by entry.
func (m *machine) carried() map[string]shapes.Shape {
	theta := shapes.Make(m.DType, m.members, m.width)
	all := map[string]shapes.Shape{"theta": theta, "mean": theta, "square": theta}
	if m.validates() {
		all[run.BestPrefix+"theta"], all[run.BestEntry] = theta, shapes.Make(compute.Float64, m.members)
	}
	if c, ok := m.Learner.(Collector); ok {
		for name, t := range c.Collected(m.DType) {
			all[name] = t.Shape()
		}
	}
	return all
}

// Begin implements run.Machine: it compiles the programs unless they are compiled, and fills the state.
func (m *machine) Begin(context.Context) error {
	optimiser := m.Optimiser
	optimiser.Schedule = Schedule{}
	_, collecting := m.Learner.(Collector)
	key := programKey{
		engine: m.engine, dtype: m.DType, rows: m.Train.Count, validation: m.Validation.Count, batchSize: m.BatchSize,
		members: m.members, width: m.width, optimiser: optimiser, kind: m.Kind(), validates: m.validates(),
		collecting: collecting,
	}
	compiled := func() (*programs, error) { return newPrograms(key, m.Learner) }
	var err error
	m.programs, m.giveBack, err = m.trainer.programs.Take(key, compiled)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Owner, err)
	}
	m.state = compute.NewState(m.engine)
	if err := m.fill(); err != nil {
		return fmt.Errorf("%s: initial state: %w", m.Owner, err)
	}
	return nil
}

// fill puts the data into the state, and the adopted entries or, without any, the starting values.
func (m *machine) fill() error {
	for name, rows := range map[string]Rows{"train": m.Train, "valid": m.Validation} {
		if rows.Count == 0 {
			continue
		}
		x, y, err := rows.Tensors()
		if err != nil {
			return err
		}
		m.state.Set(name+"_x", x)
		m.state.Set(name+"_y", y)
	}
	if m.adopted != nil {
		for name, t := range m.adopted {
			m.state.Set(name, t)
		}
		m.adopted = nil
		return nil
	}
	if _, err := m.programs.initial.Run(m.state, random.KeyOf(m.Seed).Named("initial").Words()); err != nil {
		return err
	}
	if m.Start != nil {
		m.state.Set("theta", compute.Floats(m.DType, m.Start, m.members, m.width))
	}
	if c, ok := m.Learner.(Collector); ok {
		for name, t := range c.Collected(m.DType) {
			m.state.Set(name, t)
		}
	}
	if !m.validates() {
		return nil
	}
	return run.BeginBest(m.state, []string{"theta"}, m.members)
}

// Step implements run.Machine: a step and, when they are due, a collection, a validation and a call of Observe.
func (m *machine) Step(context.Context) error {
	if err := m.ascend(); err != nil {
		return err
	}
	if m.programs.gather != nil && m.step%m.perEpoch == 0 {
		if _, err := m.programs.gather.Run(m.state, float64(m.step/m.perEpoch)); err != nil {
			return fmt.Errorf("%s: collecting after step %d: %w", m.Owner, m.step, err)
		}
	}
	if m.validationDue() {
		if err := m.validate(); err != nil {
			return fmt.Errorf("%s: validation after step %d: %w", m.Owner, m.step, err)
		}
	}
	return m.observe()
}

func (m *machine) ascend() error {
	batch, rate := m.batches.At(m.step), m.Optimiser.Schedule.At(m.step)
	numbers := []float64{float64(m.step + 1), rate, float64(batch.Count)}
	key := random.KeyOf(m.Seed).Named("step").At(uint32(m.step + 1))
	outcome, err := m.programs.step.Run(m.state, batch.Rows, numbers, key.Words())
	if err != nil {
		return fmt.Errorf("%s: step %d: %w", m.Owner, m.step+1, err)
	}
	m.step++
	record, finite := StepRecord{}, 0
	for i, value := range outcome[:m.members] {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			record.Loss -= value / float64(m.Train.Count)
			finite++
		}
		record.Rejected += int(outcome[m.members+i])
	}
	record.Loss /= float64(finite)
	m.trace = append(m.trace, record)
	if record.Rejected == m.members {
		return fmt.Errorf("%s: %w: step %d of %d: of %d members %d have a gradient that is not finite: take a smaller "+
			"learning "+
			"rate than %.3g, and check the data for outliers", m.Owner, ErrDiverged, m.step, m.steps,
			m.members, record.Rejected, rate)
	}
	return nil
}

// validationDue says whether a validation follows the last step.
func (m *machine) validationDue() bool {
	return m.validates() && (m.step%m.ValidateEvery == 0 || m.step == m.steps)
}

// validate scores the members on the validation rows and keeps those that are better than before.
func (m *machine) validate() error {
	scores, err := m.programs.validate.Run(m.state, m.Open(), random.KeyOf(m.Seed).Named("validation").Words())
	if err != nil {
		return err
	}
	m.validated = append(m.validated, Validation{Step: m.step, NLPD: scores})
	m.Add(m.step, scores)
	return nil
}

// observe calls Settings.Observe when it is due.
func (m *machine) observe() error {
	if m.Observe == nil || m.step%m.ObserveEvery != 0 {
		return nil
	}
	host, err := m.state.Host("theta")
	if err != nil {
		return fmt.Errorf("%s: %w", m.Owner, err)
	}
	theta, err := compute.Float64s(host["theta"])
	if err != nil {
		return fmt.Errorf("%s: %w", m.Owner, err)
	}
	if err := m.Observe(m.step, theta); err != nil {
		return run.Stop(fmt.Errorf("%s: Settings.Observe after step %d: %w", m.Owner, m.step, err))
	}
	return nil
}

// Status implements run.Machine.
func (m *machine) Status() run.Status {
	switch {
	case m.validated != nil && m.Open() == nil:
		return run.StoppedEarly
	case m.step == m.steps:
		return run.Completed
	}
	return ""
}

// Progress implements run.Machine.
func (m *machine) Progress() run.Progress {
	p := run.Progress{Stage: m.Stage, Step: m.step, Steps: m.steps}
	if n := len(m.trace); n > 0 {
		p.Scores = append(p.Scores, run.Score{Name: fit.LossCurve, Value: m.trace[n-1].Loss + m.LogScale})
	}
	if n := len(m.validated); n > 0 {
		p.Scores = append(p.Scores,
			run.Score{Name: fit.ValidationCurve, Value: stat.Mean(m.validated[n-1].NLPD, nil) + m.LogScale},
			run.Score{Name: fit.BestScore, Value: meanBest(m.Best) + m.LogScale})
	}
	return p
}

// host copies the state but for the data.
func (m *machine) host() (map[string]*tensors.Tensor, error) {
	if m.state == nil {
		return m.adopted, nil
	}
	return m.state.Host(m.state.NamesWithout("train_", "valid_")...)
}

func (m *machine) result() (*Result, error) {
	host, err := m.host()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Owner, err)
	}
	r := &Result{State: host, Steps: m.step, PerEpoch: m.perEpoch}
	for _, t := range m.trace {
		t.Loss += m.LogScale
		r.Trace = append(r.Trace, t)
	}
	for _, v := range m.validated {
		v.NLPD = slices.Clone(v.NLPD)
		floats.AddConst(m.LogScale, v.NLPD)
		r.Validated = append(r.Validated, v)
	}
	if r.Theta, err = compute.Float64s(host["theta"]); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Owner, err)
	}
	if !m.validates() {
		return r, nil
	}
	for _, b := range m.Best {
		b.NLPD += m.LogScale
		r.Best = append(r.Best, b)
	}
	best, err := compute.Float64s(host[run.BestPrefix+"theta"])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Owner, err)
	}
	for i, b := range m.Best {
		if b.Step > 0 { // otherwise the best is still where the training began
			copy(r.Theta[i*m.width:(i+1)*m.width], best[i*m.width:])
		}
	}
	return r, nil
}
