package ohsmc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// training is a run.Machine: the compiled algorithm, its state on the device, and its records on the host. Programs and
// state exist from Begin on.
type training struct {
	*fit.Job
	*programs
	Training  // of this run: those of programs may have another learning rate
	algorithm Algorithm
	session   *run.Run
	state     *compute.State
	adopted   map[string]*tensors.Tensor // tensors of a checkpoint, until Begin
	giveBack  func()                     // gives the programs back to the engine

	batches     dataset.Batches
	step, steps int
	trace       []StepRecord // of the standardised target, as in the checkpoint; so are validated and selection's
	validated   []Validation
	selection   run.Selection // of one member: all particles and psi
}

// newTraining is a training before its first step.
func newTraining(j *fit.Job, t Training, a Algorithm) (*training, error) {
	r := &training{Job: j, Training: t, algorithm: a, selection: run.NewSelection(1, t.Patience)}
	var err error
	if r.batches, r.steps, err = horizon(a, t, j.Rows(), j.Seed); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	return r, nil
}

// close frees the state and gives back the programs.
func (r *training) close() {
	if r.state != nil {
		r.state.Close()
	}
	if r.giveBack != nil {
		r.giveBack()
	}
}

// Begin implements run.Machine: it compiles the programs unless they are compiled, and puts the data and the
// checkpoint's or the initial state on the device.
func (r *training) Begin(context.Context) error {
	var err error
	if r.programs, r.giveBack, err = compute.Keep(r.Engine, r.key(), func() (*programs, error) {
		return newPrograms(r)
	}); err != nil {
		return err
	}
	sharding := compute.Sharding{
		Devices: r.Devices, Particles: append([]string{phiName, run.BestPrefix + phiName}, r.stepper.Sharded()...),
	}
	if r.state, err = compute.NewShardedState(r.Engine, sharding); err != nil {
		return fmt.Errorf("ohsmc: %w", err)
	}
	if err := r.load("train", r.Parts.Train); err != nil {
		return err
	}
	if err := r.draw(); err != nil {
		return fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	if r.validation != nil {
		if err := r.load("valid", r.Parts.Validation); err != nil {
			return err
		}
		if err := r.validation.begin(r.state); err != nil {
			return fmt.Errorf("ohsmc: initial particles: %w", err)
		}
	}
	if err := r.resume(); err != nil {
		return err
	}
	if r.validation != nil && r.step < r.steps {
		r.validation.program.Prepare(r.state) // beside the first step, which compiles too
	}
	return nil
}

// load puts a part, standardised, into the state.
func (r *training) load(name string, part *dataset.Dataset) error {
	x, y, err := r.Tensors(r.DType, part)
	if err != nil {
		return err
	}
	r.state.Set(name+"_x", x)
	r.state.Set(name+"_y", y)
	return nil
}

// draw makes the initial state: phi from the prior, psi from its initialisers, equal weights, moments 0, and the
// algorithm's own entries.
func (r *training) draw() error {
	for _, initial := range r.initial {
		if _, err := initial.Run(r.state, random.KeyOf(r.Seed).Words()); err != nil {
			return err
		}
	}
	if w := r.Bound.W; w > 0 {
		r.state.Set(meanName, compute.Floats(r.DType, make([]float64, w), w))
		r.state.Set(squareName, compute.Floats(r.DType, make([]float64, w), w))
	}
	return r.stepper.Begin(r.now())
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
	err := add("ohsmc first particles", p.core.Particles*p.core.Bound.D, []string{phiName, weightsName}, particles)
	if err != nil || p.core.Bound.W == 0 {
		return err
	}
	return add("ohsmc first psi", p.core.Bound.W, []string{psiName},
		func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			psi := p.core.Bound.InitShared(random.FromKey(inputs[0]).Named("shared"), p.core.DType, inputs[0].Graph())
			return compute.Nodes{psiName: psi}, nothing(psi)
		})
}

// now is the session as a Stepper sees it.
func (r *training) now() *Session {
	return &Session{Training: r.Training, Settings: r.Settings, State: r.state, Batches: r.batches, Step: r.step}
}

// Step implements run.Machine: a step and, when they are due, a validation and a call of Observe.
func (r *training) Step(ctx context.Context) error {
	start := time.Now()
	record, err := r.stepper.Advance(ctx, r.now())
	if err != nil {
		return fmt.Errorf("ohsmc: step %d: %w", r.step+1, err)
	}
	record.Seconds = time.Since(start).Seconds()
	r.step++
	r.trace = append(r.trace, record)
	if math.IsInf(record.LogEvidence, -1) || math.IsNaN(record.LogEvidence) {
		return fmt.Errorf("ohsmc: step %d of %d: %w: %d of %d particles have a log-likelihood that is not finite; check "+
			"the data for outliers, use a smaller learning rate or a smaller step of the kernel",
			r.step, r.steps, bayes.ErrZeroWeights, record.NonFinite, r.Particles)
	}
	if r.validation != nil && r.validates(r.step) {
		nlpd, err := r.validation.score(r.state)
		if err != nil {
			return fmt.Errorf("ohsmc: validation after step %d: %w", r.step, err)
		}
		r.rank(Validation{Step: r.step, NLPD: nlpd})
	}
	return r.observe()
}

// validates says whether a validation follows a step, counted from 1, if there is a validation part.
func (r *training) validates(step int) bool { return step%r.ValidateEvery == 0 || step == r.steps }

// rank records a validation, and whether it is the best.
func (r *training) rank(v Validation) {
	r.validated = append(r.validated, v)
	r.selection.Add(v.Step, []float64{v.NLPD})
}

// best is the best validation so far, in the target's units; Step 0 before the first.
func (r *training) best() Validation { return Validation(r.selection.Best[0]).plus(r.LogScale()) }

// observe calls Settings.Observe when it is due.
func (r *training) observe() error {
	every := cmp.Or(r.ObserveEvery, r.batches.PerEpoch())
	if r.Observe == nil || r.step%every != 0 {
		return nil
	}
	now, err := r.posterior(r.step, "")
	if err != nil {
		return err
	}
	if err := r.Observe(r.step, now); err != nil {
		return run.Stop(fmt.Errorf("ohsmc: Settings.Observe after step %d: %w", r.step, err))
	}
	return nil
}

// Status implements run.Machine: run.Completed after the last step, run.StoppedEarly when Patience has run out.
func (r *training) Status() run.Status {
	switch {
	case r.selection.Open() == nil:
		return run.StoppedEarly
	case r.step == r.steps:
		return run.Completed
	}
	return ""
}

// Progress implements run.Machine.
func (r *training) Progress() run.Progress {
	p := run.Progress{Step: r.step, Steps: r.steps}
	score := func(name string, value float64) {
		if !math.IsNaN(value) {
			p.Scores = append(p.Scores, run.Score{Name: name, Value: value})
		}
	}
	if n := len(r.trace); n > 0 {
		score(fit.LossCurve, r.trace[n-1].plus(r.LogScale()).Loss)
		score(fit.ESSCurve, r.trace[n-1].ESS)
	}
	if n := len(r.validated); n > 0 {
		score(fit.ValidationCurve, r.validated[n-1].plus(r.LogScale()).NLPD)
		score(fit.BestScore, r.best().NLPD)
	}
	return p
}

// result makes the posterior of the best validation, or of the last step.
func (r *training) result() (*fit.Result, error) {
	if r.best().Step > 0 {
		return r.resultOf(r.best().Step, run.BestPrefix)
	}
	return r.resultOf(r.step, "")
}

// Now is the result with the particles after the last step, whatever their validation, for fit.Steps.
func (r *training) Now() (*fit.Result, error) { return r.resultOf(r.step, "") }

// resultOf is the result with the particles after a step, see posterior.
func (r *training) resultOf(step int, prefix string) (*fit.Result, error) {
	posterior, err := r.posterior(step, prefix)
	if err != nil {
		return nil, err
	}
	plan, err := planOf(r.Bound, r.Training, r.Settings, r.BatchSize, false)
	if err != nil {
		return nil, err
	}
	trace, validated := slices.Clone(r.trace), slices.Clone(r.validated) // a run goes on with its own
	for i, t := range trace {
		trace[i] = t.plus(r.LogScale())
	}
	for i, v := range validated {
		validated[i] = v.plus(r.LogScale())
	}
	return &fit.Result{
		Posterior: posterior, Status: r.session.Status(), Elapsed: r.Elapsed(), Warnings: r.warnings(),
		Curves: curves(trace, validated),
		Details: []any{&Details{
			Steps: r.step, PerEpoch: r.batches.PerEpoch(), Best: r.best(), Plan: plan, Trace: trace, Validated: validated,
		}},
	}, nil
}

// warnings returns messages for the user about what may make the posterior doubtful.
func (r *training) warnings() []string {
	if r.step == 0 {
		return nil
	}
	var all []string
	rejected := 0
	for _, t := range r.trace {
		if t.GradientRejected {
			rejected++
		}
	}
	if rejected > 0 {
		all = append(all, fmt.Sprintf("in %d of %d steps the gradient of psi was not finite, and psi stayed", rejected,
			r.step))
	}
	if r.Patience > 0 && r.Parts.Validation == nil {
		all = append(all, fmt.Sprintf("Training.Patience is %d, and there is no validation part, so that the training "+
			"was not stopped early", r.Patience))
	}
	at := r.step
	switch n := len(r.validated); {
	case r.best().Step > 0:
		at = r.best().Step
	case n > 0:
		all = append(all, fmt.Sprintf("none of the %d validations has a finite NLPD, so that the posterior is that of the "+
			"last step: check the validation part for outliers", n))
	}
	if ess := r.trace[at-1].ESS; ess < 2 {
		all = append(all, fmt.Sprintf("the posterior is carried by %.1f of %d particles (effective sample size): take "+
			"shorter moves (the kernel's Variance or the StepSize), more Particles or a smaller BatchSize, or draw from the "+
			"posterior by ohsmc.Sample", ess, r.Particles))
	}
	if r.session.Status() == run.Completed {
		scores := make([]float64, len(r.validated))
		for i, v := range r.validated {
			scores[i] = v.NLPD
		}
		if text := run.Ending(scores, r.step, r.step/r.batches.PerEpoch()); text != "" {
			all = append(all, text)
		}
	}
	if a, ok := r.algorithm.(Warned); ok {
		all = append(all, a.Warnings(r.Training, r.Rows(), r.trace[:at])...)
	}
	return all
}

// posterior is made of the particles after a step: the current ones, or with run.BestPrefix those of the best
// validation.
func (r *training) posterior(step int, prefix string) (*bayes.Posterior, error) {
	host, err := r.host(prefix)
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	logWeights, err := compute.Float64s(host[prefix+weightsName])
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	draws := bayes.Draws{Phi: host[prefix+phiName], Psi: host[prefix+psiName], LogWeights: logWeights}
	if a, ok := r.algorithm.(Evidence); ok {
		draws.Evidence = a.Evidence(r.Training, r.Rows(), r.Seed, r.trace[:step])
	}
	approximation := ""
	if !draws.Evidence.Known() { // those of all rows, at one psi, have one
		approximation = "a distribution that depends most on the last mini-batches; ohsmc.Sample draws from the posterior"
	}
	return r.PosteriorOf(draws, bayes.Provenance{Status: string(r.session.Status()), Approximation: approximation})
}

// host copies the particles, their weights and psi to the host, from the device or from a finished run's checkpoint.
func (r *training) host(prefix string) (map[string]*tensors.Tensor, error) {
	var names []string
	for name := range r.keptShapes() {
		names = append(names, prefix+name)
	}
	if r.state != nil {
		return r.state.Host(names...)
	}
	if r.adopted == nil {
		return nil, errors.New("there is no state yet")
	}
	return r.adopted, nil
}

const checkpointFormat = "gobnn.ohsmc/6"

// position is the part of a checkpoint that is not tensors.
type position struct {
	Step int `json:"step"`
}

// The records' tensors in a checkpoint.
const (
	traceName     = "trace"
	validatedName = "validated"
)

// Keep implements run.Machine: the state of the device and the records of the host.
func (r *training) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := r.state.Host(r.own()...)
	if err != nil {
		return nil, nil, err
	}
	var trace, validated []float64
	for _, t := range r.trace {
		trace = append(trace, t.values()...)
	}
	for _, v := range r.validated {
		validated = append(validated, float64(v.Step), v.NLPD)
	}
	kept[traceName], kept[validatedName] = run.Table(trace, recordWidth), run.Table(validated, 2)
	return position{r.step}, kept, nil
}

// own returns the names of the tensors of the run's state, without its data.
func (r *training) own() []string { return r.state.NamesWithout("train_", "valid_") }

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

// Adopt implements run.Machine: it restores the records, and checks the tensors that a posterior is made of. The other
// tensors are checked when the run resumes.
func (r *training) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	if at.Step < 0 || at.Step > r.steps {
		return fmt.Errorf("it stands at step %d of %d", at.Step, r.steps)
	}
	prefixes := []string{""}
	validations := 0
	if r.Parts.Validation != nil {
		prefixes = append(prefixes, run.BestPrefix)
		for step := 1; step <= at.Step; step++ {
			if r.validates(step) {
				validations++
			}
		}
	}
	for _, prefix := range prefixes {
		for name, want := range r.keptShapes() {
			if _, err := run.Tensor(kept, prefix+name, want); err != nil {
				return err
			}
		}
	}
	if err := r.adoptRecords(at.Step, validations, kept); err != nil {
		return err
	}
	r.step, r.adopted = at.Step, kept
	return nil
}

// adoptRecords restores the trace and the validations; it returns an error if their numbers are not the expected ones.
func (r *training) adoptRecords(steps, validations int, kept map[string]*tensors.Tensor) error {
	trace, err := run.Rows(kept, traceName, steps, recordWidth)
	if err != nil {
		return err
	}
	for _, v := range trace {
		r.trace = append(r.trace, recordOf(v))
	}
	validated, err := run.Rows(kept, validatedName, validations, 2)
	if err != nil {
		return err
	}
	last := 0
	for _, v := range validated {
		step := int(v[0])
		if step <= last || step > steps || !r.validates(step) {
			return fmt.Errorf("it has a validation after step %v of %d, which follows step %d", v[0], steps, last)
		}
		r.rank(Validation{step, v[1]})
		last = step
	}
	return nil
}

// resume replaces the initial state by the checkpoint's, if there is one.
func (r *training) resume() error {
	if r.adopted == nil {
		return nil
	}
	for _, name := range r.own() {
		initial, err := r.state.Host(name)
		if err != nil {
			return fmt.Errorf("ohsmc: %w", err)
		}
		t, err := run.Tensor(r.adopted, name, initial[name].Shape())
		if err != nil {
			return fmt.Errorf("ohsmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
		}
		r.state.Set(name, t)
	}
	r.adopted = nil
	return nil
}
