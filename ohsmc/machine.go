package ohsmc

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
	. "github.com/gomlx/gomlx/core/graph"
)

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
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	return r, nil
}

// loop declares the run's steps.
func (r *training) loop() *fit.Loop[StepRecord] {
	l := &fit.Loop[StepRecord]{
		Format: checkpointFormat, Steps: r.steps, Begin: r.begin, Step: r.advance, Data: []string{"train_", "valid_"},
		Kept: r.keptShapes(), Scores: r.scores, ObserveEvery: r.batches.PerEpoch(), Result: r.result,
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
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if err := r.load(state, "train", r.Parts.Train); err != nil {
		return state, err
	}
	if err := r.draw(state); err != nil {
		return state, fmt.Errorf("ohsmc: initial particles: %w", err)
	}
	if r.validation == nil {
		return state, nil
	}
	if err := r.load(state, "valid", r.Parts.Validation); err != nil {
		return state, err
	}
	if err := run.BeginBest(state, r.validation.kept()); err != nil {
		return state, fmt.Errorf("ohsmc: initial particles: %w", err)
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

// at is the session as a Stepper sees it.
func (r *training) at(state *compute.State, made int) *Session {
	return &Session{Training: r.Training, Settings: r.Settings, State: state, Batches: r.batches, Step: made}
}

// advance makes a step.
func (r *training) advance(ctx context.Context, state *compute.State, made int) (StepRecord, error) {
	start := time.Now()
	record, err := r.stepper.Advance(ctx, r.at(state, made))
	record.Seconds = time.Since(start).Seconds()
	if err == nil && (math.IsInf(record.LogEvidence, -1) || math.IsNaN(record.LogEvidence)) {
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

// result is the result with the posterior of the best validation at the end of a run, and of the last step on its way.
func (r *training) result(at *fit.Trail[StepRecord]) (*fit.Result, error) {
	best := Validation(at.Selection.Best[0]).plus(r.LogScale())
	step, prefix := at.Step, ""
	if at.Status != "" && best.Step > 0 {
		step, prefix = best.Step, run.BestPrefix
	}
	posterior, err := r.posterior(at, step, prefix)
	if err != nil {
		return nil, err
	}
	plan, err := planOf(r.Bound, r.Training, r.Settings, r.BatchSize, false)
	if err != nil {
		return nil, err
	}
	d := &Details{Steps: at.Step, PerEpoch: r.batches.PerEpoch(), Best: best, Plan: plan}
	for _, t := range at.Records {
		d.Trace = append(d.Trace, t.plus(r.LogScale()))
	}
	for _, v := range at.Validated {
		d.Validated = append(d.Validated, Validation{v.Step, v.Scores[0]}.plus(r.LogScale()))
	}
	return &fit.Result{
		Posterior: posterior, Status: at.Status, Elapsed: at.Elapsed, Warnings: r.warnings(d, step, at.Status),
		Curves: curves(d.Trace, d.Validated), Details: []any{d},
	}, nil
}

// warnings are the doubts about the particles after a step.
func (r *training) warnings(d *Details, step int, status run.Status) []string {
	if step == 0 {
		return nil
	}
	var all []string
	rejected := 0
	for _, t := range d.Trace {
		if t.GradientRejected {
			rejected++
		}
	}
	if rejected > 0 {
		all = append(all, fmt.Sprintf("in %d of %d steps the gradient of psi was not finite, and psi stayed", rejected,
			d.Steps))
	}
	if r.Patience > 0 && r.Parts.Validation == nil {
		all = append(all, fmt.Sprintf("Training.Patience is %d, and there is no validation part, so that the training "+
			"was not stopped early", r.Patience))
	}
	if n := len(d.Validated); n > 0 && d.Best.Step == 0 {
		all = append(all, fmt.Sprintf("none of the %d validations has a finite NLPD, so that the posterior is that of the "+
			"last step: check the validation part for outliers", n))
	}
	if ess := d.Trace[step-1].ESS; ess < 2 {
		all = append(all, fmt.Sprintf("the posterior is carried by %.1f of %d particles (effective sample size): take "+
			"shorter moves (the kernel's Variance or the StepSize), more Particles or a smaller BatchSize, or draw from the "+
			"posterior by mcmc.Chains (fit.From)", ess, r.Particles))
	}
	if status == run.Completed {
		scores := make([]float64, len(d.Validated))
		for i, v := range d.Validated {
			scores[i] = v.NLPD
		}
		if text := run.Ending(scores, d.Steps, d.Steps/d.PerEpoch); text != "" {
			all = append(all, text)
		}
	}
	if a, ok := r.algorithm.(Warned); ok {
		all = append(all, a.Warnings(r.Training, r.Rows(), d.Trace[:step])...)
	}
	return all
}

// posterior is made of the particles after a step: the current ones, or with run.BestPrefix those of the best
// validation.
func (r *training) posterior(at *fit.Trail[StepRecord], step int, prefix string) (*bayes.Posterior, error) {
	var names []string
	for name := range r.keptShapes() {
		names = append(names, prefix+name)
	}
	host, err := at.Host(names...)
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	logWeights, err := compute.Float64s(host[prefix+weightsName])
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	draws := bayes.Draws{Phi: host[prefix+phiName], Psi: host[prefix+psiName], LogWeights: logWeights}
	if a, ok := r.algorithm.(Evidence); ok {
		draws.Evidence = a.Evidence(r.Training, r.Rows(), r.Seed, at.Records[:step])
	}
	approximation := ""
	if !draws.Evidence.Known() { // those of all rows, at one psi, have one
		approximation = "a distribution that depends most on the last mini-batches; mcmc.Chains (fit.From) draw from the " +
			"posterior"
	}
	return r.PosteriorOf(draws, bayes.Provenance{Status: string(at.Status), Approximation: approximation})
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
