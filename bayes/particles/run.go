package particles

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"

	. "github.com/gomlx/gomlx/core/graph"
)

// This file has a run in the order in which a fit passes through it: its settings, its programs, its first state, and
// its steps.

// Prepared fills in what is zero and checks the rest, for a job. The threshold and the resampler are the defaults of
// the algorithm.
func (t Training) Prepared(j *fit.Job, threshold float64, resampler smc.Resampler) (Training, error) {
	rows := j.Rows()
	if err := limits.Fill("particles: Training",
		limits.Int("Particles", &t.Particles, 1000).From(2),
		limits.Int("BatchSize", &t.BatchSize, min(50, rows)).Between(1, rows).Because("the rows of the training part"),
		limits.Int("Epochs", &t.Epochs, 200).From(1),
		limits.Int("ValidateEvery", &t.ValidateEvery).Zero("once an epoch").From(1),
		limits.Int("Patience", &t.Patience).Zero("that of 20 epochs").From(1),
		limits.Float("Threshold", &t.Threshold, threshold).Above(0).To(1),
		limits.Choice("Resampler", &t.Resampler, resampler, smc.Multinomial, smc.Stratified),
		limits.Int("Chunk", &t.Chunk).From(0),
		limits.Field("Chunk", t.Chunk, j.Devices == 1 || t.Chunk == 0,
			fmt.Sprintf("0 with Devices %d, since each device evaluates its particles at once", j.Devices)),
	); err != nil {
		return t, err
	}
	perEpoch := (rows + t.BatchSize - 1) / t.BatchSize
	t.ValidateEvery = cmp.Or(t.ValidateEvery, perEpoch)
	t.Patience = cmp.Or(t.Patience, 20*max(1, perEpoch/t.ValidateEvery))
	if err := limits.Check("particles: Training",
		limits.Field("Epochs", t.Epochs, t.Epochs <= mostSteps/perEpoch,
			fmt.Sprintf("at most %d with %d batches an epoch", mostSteps/perEpoch, perEpoch)),
		limits.Numbers("Particles", t.Particles, t.Particles, j.Bound.D),
	); err != nil {
		return t, err
	}
	if err := t.Optimiser.Check(); err != nil {
		return t, fmt.Errorf("particles: %w", err)
	}
	return t, j.OnDevices("Training.Particles", t.Particles)
}

// Run repeats an algorithm's step for a job, with the settings that Prepared has filled in. The result's posterior is
// the one of the best validation, or of the last step; its details are *Details. If all weights become 0, the error
// wraps bayes.ErrZeroWeights and names the step.
func Run(ctx context.Context, j *fit.Job, t Training, a Algorithm) (*fit.Result, error) {
	r := &training{Job: j, Training: t, algorithm: a}
	var err error
	if r.batches, err = dataset.NewBatches(j.Rows(), t.BatchSize, j.Seed); err != nil {
		return nil, fmt.Errorf("particles: %w", err)
	}
	return r.loop().Run(ctx, j)
}

// training is a run of an algorithm: its compiled programs, which exist from begin on, and what they are run with.
type training struct {
	*fit.Job
	*programs
	Training  // of this run: those of programs may have another learning rate
	algorithm Algorithm
	batches   *dataset.Batches
}

// mostSteps is the largest number of steps: their random numbers are told apart by 32 bits, and each has a record.
const mostSteps = math.MaxInt32

// loop declares the run's steps.
func (r *training) loop() *fit.Loop[StepRecord] {
	l := &fit.Loop[StepRecord]{
		Format: checkpointFormat, Steps: r.Epochs * r.batches.PerEpoch(), Begin: r.begin, Data: []string{"train_", "valid_"},
		Step:     r.advance,
		Progress: r.progress, ObserveEvery: r.batches.PerEpoch(), Result: r.result,
	}
	if r.Parts.Validation != nil {
		l.Validation = &fit.Validation{Every: r.ValidateEvery, Patience: r.Patience}
		if r.ValidateEvery > 1 {
			l.Validation.Score = func(state *compute.State, _ []float64) ([]float64, error) { return r.validation.Run(state) }
		}
	}
	return l
}

const checkpointFormat = "gobnn.ohsmc/10"

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

// programs are the compiled programs of one kind of run.
type programs struct {
	core       Core
	stepper    Stepper
	initial    []*compute.Program // draw phi, and psi
	validation *compute.Program   // nil without a validation part
}

// key names what the programs of a run depend on.
func (r *training) key() string {
	t := r.Training // without what is an input of the programs, or decides when they run
	t.Epochs, t.ValidateEvery, t.Patience, t.Optimiser.Schedule = 0, min(t.ValidateEvery, 2), 0, train.Schedule{}
	validated := 0
	if part := r.Parts.Validation; part != nil {
		validated = part.Rows()
	}
	return compute.KeyOf("particles", r.Bound.ProgramKey(), r.Rows(), validated, t, r.Devices,
		r.DType, fmt.Sprintf("%T", r.algorithm), settingsOf(r.algorithm))
}

// settingsOf returns the fields of an algorithm without its Training.
func settingsOf(a Algorithm) (fields []any) {
	v := reflect.Indirect(reflect.ValueOf(a))
	if v.Kind() != reflect.Struct {
		return []any{a}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Type != reflect.TypeFor[Training]() {
			fields = append(fields, f.Name, v.Field(i))
		}
	}
	return fields
}

func newPrograms(r *training) (*programs, error) {
	plan := planOf(r.Bound, r.Training, r.Settings, r.BatchSize, false)
	p := &programs{core: Core{
		Training: r.Training, Settings: r.Settings, Bound: r.Bound,
		Target: density.MiniBatch(density.Likelihood{Model: r.Bound, Plan: plan}, r.Rows()),
	}}
	part := r.Parts.Validation
	if part != nil {
		p.core.validate = p.core.validation(part.Rows())
	}
	err := p.newInitial()
	if err == nil {
		p.stepper, err = r.algorithm.Compile(&p.core)
	}
	if err == nil && p.stepper == nil {
		err = fmt.Errorf("particles: Compile of %T gives no Stepper", r.algorithm)
	}
	if err == nil && part != nil {
		best := run.BestEntries(p.core.kept()...)
		reads := append(append(p.core.kept(), best...), "valid_x", "valid_y")
		p.validation, err = compute.NewProgram(r.Engine, "particles validation", reads, best, p.core.validate)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// newInitial prepares the programs that draw phi from the prior, with equal weights, and psi from its initialisers, by
// the seed. There are two programs because compute.NewInitial chooses the backend by how many numbers are drawn, which
// may be few for psi and many for phi.
func (p *programs) newInitial() error {
	add := func(name string, numbers int, makes []string, step compute.Step) error {
		program, err := compute.NewInitial(p.core.Engine, name, numbers, makes, step)
		if err == nil {
			p.initial = append(p.initial, program)
		}
		return err
	}
	nothing := func(like *Node) *Node { return ConstAs(like, []float64{0}) }
	particles := func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		phi := p.core.Bound.SamplePrior(random.FromKey(inputs[0]).Named("prior"), p.core.DType, p.core.Particles)
		return compute.Nodes{phiName: phi, weightsName: p.core.EqualWeights(phi)}, nothing(phi)
	}
	err := add("first particles", p.core.Particles*p.core.Bound.D, []string{phiName, weightsName}, particles)
	if err != nil || p.core.Bound.W == 0 {
		return err
	}
	return add("first psi", p.core.Bound.W, []string{psiName},
		func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			psi := p.core.Bound.InitShared(random.FromKey(inputs[0]).Named("shared"), p.core.DType, inputs[0].Graph())
			return compute.Nodes{psiName: psi}, nothing(psi)
		})
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
		p.validation.Close()
	}
}

// planOf is the plan of chunks for particles that are evaluated on the given number of rows at once.
func planOf(bound *bayes.BoundModel, t Training, s run.Settings, rows int, forward bool) compute.Plan {
	work := density.Workload{Particles: t.Particles, Rows: rows, Forward: forward, Devices: s.Devices, Chunk: t.Chunk}
	return density.NewPlan(bound, s.DType, work)
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
	if err := run.BeginBest(state, r.core.kept()); err != nil {
		return state, fmt.Errorf("particles: initial particles: %w", err)
	}
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
	return &Session{Training: r.Training, Settings: r.Settings, State: state, Batches: r.batches, Step: made, Ahead: 1}
}

// advance makes the steps of a call, and their validations where each step has one.
func (r *training) advance(ctx context.Context, trail *fit.Trail[StepRecord]) error {
	session := r.at(trail.State(), trail.Step)
	each := r.Parts.Validation != nil && r.ValidateEvery == 1
	if !each || r.core.validates {
		session.Ahead = trail.Ahead()
	}
	records, err := r.stepper.Advance(ctx, session)
	if err != nil {
		return trail.Record(StepRecord{}, err)
	}
	for i, record := range records {
		if math.IsInf(record.LogEvidence, -1) {
			err = fmt.Errorf("%w: %d of %d particles have a log-likelihood that is not finite; check the data for outliers, "+
				"use a smaller learning rate or a smaller step of the kernel", bayes.ErrZeroWeights, record.NonFinite,
				r.Particles)
		}
		if err := trail.Record(record, err); err != nil {
			return err
		}
		switch {
		case each && r.core.validates:
			trail.Validate(session.scores[i])
		case each:
			score, err := r.validation.Run(trail.State())
			if err != nil {
				return fmt.Errorf("%s: validation after step %d: %w", r.Owner, trail.Step, err)
			}
			trail.Validate(score...)
		}
	}
	return nil
}

// NewStepper compiles an algorithm whose step is one graph.
func NewStepper(c *Core, g Graphs) (Stepper, error) {
	s := &graphStepper{Core: c, Graphs: g, own: slices.Concat(g.PerParticle, g.Common)}
	if g.Step == nil || g.Start == nil && len(s.own) > 0 {
		return nil, fmt.Errorf("particles: Graphs needs a Step, and a Start where the state has entries of its own (%q)",
			s.own)
	}
	for _, name := range s.own {
		if slices.Contains([]string{phiName, weightsName, psiName, meanName, squareName, "train_x", "train_y"}, name) {
			return nil, fmt.Errorf("particles: Graphs names %q among the state's own entries, but every run has one of that "+
				"name", name)
		}
	}
	data := []string{"train_x", "train_y"}
	var err error
	if g.Start != nil {
		updates := append(c.kept(), s.own...)
		if s.start, err = compute.NewProgram(c.Engine, "particles start", append(c.kept(), data...), updates,
			s.startStep); err != nil {
			return nil, err
		}
	}
	carried := append(c.Entries(), s.own...)
	reads, step := slices.Clone(carried), compute.Step(s.compiledStep)
	if c.validate != nil && c.ValidateEvery == 1 {
		c.validates = true
		best := run.BestEntries(c.kept()...)
		carried, reads = append(carried, best...), append(append(reads, best...), "valid_x", "valid_y")
		step = s.validatedStep
	}
	s.step = compute.NewRepeated(c.Engine, "particles step", reads, carried, density.TrainBatches(), step)
	return s, nil
}

// graphStepper is a Stepper whose step is one program.
type graphStepper struct {
	*Core
	Graphs
	own   []string
	start *compute.Program // start is nil if there is no Start
	step  *compute.Repeated
}

// Begin implements Stepper.
func (g *graphStepper) Begin(s *Session) error {
	if g.start == nil {
		return nil
	}
	batch := s.Batches.At(0)
	key := random.KeyOf(s.Seed).Named("start")
	record, err := g.start.Run(s.State, batch.Rows, []float64{float64(batch.Count)}, key.Words())
	if err != nil {
		return err
	}
	if math.IsInf(record[0], -1) || math.IsNaN(record[0]) {
		return fmt.Errorf("%w: none of the %d particles from the prior has a finite log-likelihood of the first batch: "+
			"check the data for outliers", bayes.ErrZeroWeights, s.Particles)
	}
	return nil
}

// startStep is Start over the named state. Inputs: the batch's rows, how many of them are real, its key.
func (g *graphStepper) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := g.Gather(nodes, inputs[0], compute.Element(inputs[1], 0))
	next, logSum := g.Start(StateOf(nodes), batch, random.FromKey(inputs[2]))
	entries := next.Nodes()
	delete(entries, meanName)
	delete(entries, squareName)
	return checked(entries, nodes), Reshape(logSum, 1)
}

// Advance implements Stepper.
func (g *graphStepper) Advance(_ context.Context, s *Session) (records []StepRecord, err error) {
	values, err := g.step.Run(s.State, s.Ahead, func(i int) []any {
		at := s.Step + i
		batch := s.Batches.At(at)
		scalars := []float64{float64(at + 1), s.Optimiser.Schedule.At(at), float64(batch.Count)}
		if g.Inputs != nil {
			scalars = append(scalars, g.Inputs(at)...)
		}
		return []any{batch.Rows, scalars, random.KeyOf(s.Seed).At(uint32(at + 1)).Words()}
	})
	for _, v := range values {
		records = append(records, recordOf(v))
		s.scores = append(s.scores, v[recorded:]...)
	}
	return records, err
}

// validatedStep is compiledStep and a validation after it, whose score follows the record.
func (g *graphStepper) validatedStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	next, record := g.compiledStep(nodes, inputs)
	now := maps.Clone(nodes)
	maps.Copy(now, next)
	best, score := g.validate(now, nil)
	maps.Copy(next, best)
	return next, Concatenate([]*Node{record, score}, 0)
}

// compiledStep is Step over the named state. Inputs: the batch; the step's number, the learning rate, how many rows are
// real, and Graphs.Inputs; the step's key.
func (g *graphStepper) compiledStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	scalars, dtype := inputs[2], nodes[phiName].DType()
	as := func(i int) *Node { return ConvertDType(compute.Element(scalars, i), dtype) }
	now := Now{RNG: random.FromKey(inputs[3]), Number: as(0), Rate: as(1)}
	for i := 3; i < scalars.Shape().Size(); i++ {
		now.Inputs = append(now.Inputs, as(i))
	}
	batch := density.Batch{X: inputs[0], Y: inputs[1], Count: ConvertDType(as(2), inputs[1].DType())}
	next, info := g.Step(StateOf(nodes, g.own...), batch, now)
	entries := checked(next.Nodes(), nodes)
	return entries, info.record(nodes[phiName])
}

// checked returns the entries of the next state. It panics if one is nil or changes its shape.
func checked(next, before compute.Nodes) compute.Nodes {
	for name, node := range next {
		if node == nil {
			panic(fmt.Errorf("the step gives nil for the state's %q", name))
		}
		if was := before[name]; was != nil && !node.Shape().Equal(was.Shape()) {
			panic(fmt.Errorf("the state's %q is %s before the step and %s after it", name, was.Shape(), node.Shape()))
		}
	}
	return next
}

// Sharded implements Stepper.
func (g *graphStepper) Sharded() []string { return g.PerParticle }

// Close implements Stepper.
func (g *graphStepper) Close() {
	g.step.Close()
	if g.start != nil {
		g.start.Close()
	}
}
