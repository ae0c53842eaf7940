package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/sampleuv"
)

// Job is one call of Fit or Sample for a method: the settings of the run, with their defaults filled in, and the model
// and its data, checked against each other. For a call of Sample, Data has no model (Bound is nil) and no rows.
type Job struct {
	run.Settings
	*Data

	method    Method
	asGiven   Method // the method before it was prepared
	takes     Takes
	described json.RawMessage  // the method with its settings
	identity  json.RawMessage  // the same, or of a Stage's method, for checkpoints
	problem   *density.Problem // of Sample, or of a Stage
	trained   string           // identifies the draws of Data.Trained
	chosen    map[string]any
	outer     *Job // of a Stage; nil of a call
	stage     Stage
	inner     bool // a Stage that is not shown, or a part of one
	shares    bool // OnDevices was called
	*clock
}

// clock is the time of a call, which all of its stages share.
type clock struct {
	begun   time.Time
	earlier time.Duration // of the earlier sessions of a resumed run
}

func newJobOf(m Method) *Job {
	return &Job{method: m, takes: takes(m), chosen: map[string]any{}, clock: &clock{begun: time.Now()}}
}

// Elapsed is the time of the call so far, and of the earlier sessions of a run that it resumes.
func (c *clock) Elapsed() time.Duration { return c.earlier + time.Since(c.begun) }

// SampleAll makes every parameter of the model stochastic, those of its likelihood too, for a method that trains none.
// It is an error if the model shares weights or biases. Fit calls it for every method that takes a density.
func (j *Job) SampleAll() error {
	if j.Bound.W == 0 {
		return nil
	}
	var shared []string
	for _, slot := range j.Bound.Slots {
		if !slot.Stochastic && (slot.Kind == nn.Weights || slot.Kind == nn.Biases) {
			shared = append(shared, slot.Name)
		}
	}
	if len(shared) > 0 {
		return fmt.Errorf("%s: the model has shared parameters (%s), and this method trains none: leave out "+
			"Model.Stochastic, so that it samples all, or train them first, for instance with baseline.MAP, and continue "+
			"with fit.From", j.Owner, strings.Join(shared, ", "))
	}
	whole, err := j.Whole()
	if err != nil {
		return err
	}
	j.Data = whole
	return nil
}

// OnDevices is called by the Prepare of a method that shares its particles, or chains, among Settings.Devices devices:
// it is an error if they cannot have equally many. Fit and Sample refuse several devices to methods that do not call
// it. field names the setting that has their number.
func (j *Job) OnDevices(field string, particles int) error {
	j.shares = true
	if err := j.Engine.CheckDevices(j.Devices, particles); err != nil {
		return fmt.Errorf("%s: Settings.Devices is %d, %s %d: %w", j.Owner, j.Devices, field, particles, err)
	}
	return nil
}

// Density is the log-density to sample, as a problem: of a call of Sample or a Stage the one that it was given, and of
// Fit the posterior of phi given all rows, at the psi of Trained, whose chains begin at draws from the prior (see
// density.NewProblem). atOnce is about how many points are evaluated at once.
func (j *Job) Density(atOnce int) (density.Problem, error) {
	if j.problem != nil {
		return *j.problem, nil
	}
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return density.Problem{}, err
	}
	psi, err := j.Shared()
	if err != nil {
		return density.Problem{}, err
	}
	problem, err := density.NewProblem(j.Engine, j.Bound, x, y, psi, atOnce, j.Devices)
	if err != nil {
		return density.Problem{}, fmt.Errorf("%s: %w", j.Owner, err)
	}
	return problem, nil
}

// Starts are the points at which chains continue a trained posterior, [J, D]: its particles, drawn by their weights
// without replacement, and again from all of them if there are fewer of positive weight than chains; nil if there is
// none, or the Stage's problem has its own.
func (j *Job) Starts(chains int) (*tensors.Tensor, error) {
	if j.Data.Trained == nil || j.problem != nil && j.problem.Start != nil {
		return nil, nil
	}
	draws, err := j.Data.Trained.Draws()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Owner, err)
	}
	particles, err := compute.Float64s(draws.Phi)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Owner, err)
	}
	weights, d := j.Data.Trained.LogWeights().Weights(), j.Data.Trained.Bound().D
	by := sampleuv.NewWeighted(weights, rand.NewPCG(j.Seed, 0x5851f42d4c957f2d))
	var begin []float64
	for range chains {
		at, ok := by.Take()
		if !ok {
			by.ReweightAll(weights)
			at, _ = by.Take()
		}
		begin = append(begin, particles[at*d:(at+1)*d]...)
	}
	return compute.Floats(j.DType, begin, chains, d), nil
}

// Shared is the psi, [W], at which phi is sampled; nil if nothing is shared.
func (j *Job) Shared() (*tensors.Tensor, error) {
	if j.stage.Psi != nil || j.Data.Trained == nil {
		return j.stage.Psi, nil
	}
	draws, err := j.Data.Trained.Draws()
	if err != nil || draws.Psi == nil {
		return nil, err
	}
	values, err := compute.Float64s(draws.Psi)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Owner, err)
	}
	return compute.Floats(j.DType, values, len(values)), nil
}

// Stage is a part of a method that another method does, such as the chains after a training.
type Stage struct {
	Name    string          // its checkpoint has the name appended, and its progress begins with it
	Method  Method          // which takes a density
	Problem density.Problem // what it samples
	Psi     *tensors.Tensor // [W], the shared parameters of the draws' posterior; nil if there are none
	Seed    uint64          // added to the job's
	// Approximation says in words what the problem is, if it is not the job's posterior; see bayes.Provenance.
	Approximation string
	// LikelihoodPower is the problem's power of the likelihood, if it is not 1; see bayes.Provenance.
	LikelihoodPower float64
	// Inner says that the draws are not those of the job's posterior: they are not shown to Observe.
	Inner bool
}

// RunStage prepares and runs a stage, with the job's settings. The result's Posterior is the job's, with these draws;
// nil for an inner stage.
func (j *Job) RunStage(ctx context.Context, s Stage) (*Result, error) {
	stage := *j
	stage.outer, stage.stage, stage.problem, stage.inner = j, s, &s.Problem, j.inner || s.Inner
	stage.Settings = j.Within(s.Name)
	stage.Seed += s.Seed
	if stage.inner {
		stage.Observe = nil
	}
	prepared, err := s.Method.Prepare(&stage)
	if err != nil {
		return nil, err
	}
	if stage.identity, err = described(prepared); err != nil {
		return nil, err
	}
	result, err := prepared.Run(ctx, &stage)
	if result == nil || stage.inner {
		return result, err
	}
	return result, errors.Join(err, stage.complete(result))
}

// Within are the settings of a part of the run: its checkpoint has the name appended, if there is one, and its progress
// begins with it.
func (j *Job) Within(name string) run.Settings {
	part := j.Settings
	if j.Checkpoint != "" && name != "" {
		part.Checkpoint = j.Checkpoint + "." + name
	}
	if report := j.Settings.Progress; report != nil {
		part.Progress = func(p run.Progress) {
			p.Stage, p.Status = strings.Trim(name+": "+p.Stage, ": "), "" // its end is not the run's
			report(p)
		}
	}
	return part
}

// Part is the job as a part of the run of this name, see Within.
func (j *Job) Part(name string) *Job {
	part := *j
	part.Settings = j.Within(name)
	return &part
}

// Named is the job with a hash of what it is in place of a * in its checkpoint's name, for a method that looks at the
// files of its stages itself.
func (j *Job) Named() (*Job, error) {
	if j.Checkpoint == "" {
		return j, nil
	}
	parts, err := j.mustAgree()
	named := *j
	named.Checkpoint = run.Named(j.Checkpoint, parts)
	return &named, err
}

// RunFirst prepares and runs another method on the job's model and data, as what this one begins with, such as the
// training before chains. Its checkpoint is that of the other method run by itself, under the job's name: methods that
// begin alike share it.
func (j *Job) RunFirst(ctx context.Context, m Method) (*Result, error) {
	first := j.Part("")
	prepared, err := m.Prepare(first)
	if err != nil {
		return nil, err
	}
	if err := first.describe(prepared); err != nil {
		return nil, err
	}
	result, err := prepared.Run(ctx, first)
	if result == nil {
		return nil, err
	}
	return result, errors.Join(err, first.complete(result))
}

// Choose adds to the provenance what a run has chosen, such as an adapted step size, where the settings have what the
// user has set.
func (j *Job) Choose(what string, value any) { j.chosen[what] = value }

// complete makes the posterior of a result's draws, unless the method has.
func (j *Job) complete(r *Result) error {
	if r.Posterior != nil {
		return nil
	}
	if r.Draws.Phi == nil {
		return fmt.Errorf("fit: the result of %T.Run has neither Draws nor a Posterior", j.method)
	}
	if j.Bound == nil {
		return nil
	}
	p, err := j.PosteriorOf(r.Draws, bayes.Provenance{Status: string(r.Status), Approximation: r.Approximation})
	if err != nil {
		return fmt.Errorf("fit: the draws of %T: %w", j.method, err)
	}
	r.Posterior = p
	return nil
}

// PosteriorOf is the posterior of draws, for Settings.Observe and for a result. Of the provenance the caller gives the
// status, empty before the end, and what else the job does not know: Approximation and LikelihoodPower.
func (j *Job) PosteriorOf(draws bayes.Draws, from bayes.Provenance) (*bayes.Posterior, error) {
	if draws.Psi == nil && j.Bound.W > 0 {
		var err error
		if draws.Psi, err = j.Shared(); err != nil {
			return nil, err
		}
	}
	settings := map[string]any{"method": j.described, "dtype": j.DType.String()}
	if len(j.chosen) > 0 {
		settings["chosen"] = j.chosen
	}
	written, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("%s: what %T has chosen: %w", j.Owner, j.method, err)
	}
	from.Algorithm, from.Seed, from.Settings = j.Owner+": "+j.method.Title(), j.Seed, written
	for of := j; of.outer != nil; of = of.outer {
		from.Approximation, from.Seed = cmp.Or(of.stage.Approximation, from.Approximation), of.outer.Seed
		from.LikelihoodPower = cmp.Or(of.stage.LikelihoodPower, from.LikelihoodPower)
	}
	return j.Posterior(draws, from, j.Engine)
}

// mustAgree returns the parts in which a run of the job and its checkpoint must agree: the data and the model, or the
// problem of Sample; seed, method and backend. A Stage adds its method and its problem.
func (j *Job) mustAgree() (parts []run.Part, err error) {
	if j.outer != nil {
		return j.ofStage()
	}
	if j.problem != nil {
		parts, err = j.problem.Identity()
	} else {
		parts, err = j.ofData()
	}
	if err != nil {
		return nil, err
	}
	if j.trained != "" {
		parts = append(parts, run.Part{Name: "trained posterior", Value: j.trained})
	}
	settings, err := json.Marshal(map[string]any{
		"method": j.identity, "dtype": j.DType.String(), "devices": j.Devices,
	})
	if err != nil {
		return nil, err
	}
	return append(parts,
		run.Part{Name: "seed", Value: fmt.Sprint(j.Seed)},
		run.Part{Name: "settings", Value: string(settings)},
		run.Part{Name: "backend", Value: j.Engine.Name()},
	), nil
}

// ofStage identifies a stage of the outer job.
func (j *Job) ofStage() ([]run.Part, error) {
	parts, err := j.outer.mustAgree()
	if err != nil {
		return nil, err
	}
	problem, err := j.problem.Identity()
	if err != nil {
		return nil, err
	}
	own := append(problem, run.Part{Name: "method", Value: string(j.identity)})
	for _, part := range own {
		parts = append(parts, run.Part{Name: j.stage.Name + "'s " + part.Name, Value: part.Value})
	}
	return parts, nil
}

// ofData identifies the model and the rows of its parts; those of validation decide where a training ends.
func (j *Job) ofData() ([]run.Part, error) {
	model, err := json.Marshal(j.Bound.Model)
	if err != nil {
		return nil, fmt.Errorf("the model cannot be written as JSON: %w", err)
	}
	rows := j.rowsHash()
	if part := j.Parts.Validation; part != nil {
		rows += ", validation " + part.Hash()
	}
	return []run.Part{{Name: "data", Value: rows}, {Name: "model", Value: string(model)}}, nil
}

// Inner says that the job is an inner Stage, whose draws have no posterior.
func (j *Job) Inner() bool { return j.inner || j.Bound == nil }

// OwnDensity says that the job is a call of Sample itself, whose draws are its result.
func (j *Job) OwnDensity() bool { return j.Bound == nil && !j.inner }

// Dim is D, the number of coordinates that the job samples.
func (j *Job) Dim() int {
	if j.problem != nil {
		return j.problem.Dim
	}
	return j.Bound.D
}

// described is a method with its settings, as JSON, by which a checkpoint knows it.
func described(m Method) (json.RawMessage, error) {
	written, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", m), "settings": m})
	if err != nil {
		return nil, fmt.Errorf("fit: the settings of %T cannot be written as JSON, by which a checkpoint knows them: %w", m,
			err)
	}
	return written, nil
}
