package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Loop declares the steps of a method that repeats one on a state of the device; R is a struct of numbers, the record
// of a step. Validation and early stopping, checkpoints, resume to the same bits, progress, Observe and Steps follow
// from it. A run reads the checkpoint before Begin, and checks that its state has the shapes that Begin gives.
type Loop[R any] struct {
	Format string // of the checkpoint, with its version, such as "gobnn.ohsmc/6"
	Stage  string // of Progress; may be empty
	Steps  int
	// Identity is what a checkpoint must agree in besides the job's.
	Identity []run.Part
	// Begin compiles, and gives the state before the first step, with the entries of run.BeginBest if there is validation,
	// and a function that gives back what it has compiled; both beside an error too, as far as there is any.
	Begin func(ctx context.Context) (state *compute.State, release func(), err error)
	// Step makes a step of the state, after which `made` are made.
	Step func(ctx context.Context, state *compute.State, made int) (R, error)
	// Merge, if set, is one record of two in a row; of the steps in both the later one has this share. A run of more than
	// 65 536 steps then has fewer records, each of 2, 4, 8 and so on steps: else its memory and its checkpoints, which
	// have all records, would grow with each step. nil: there is a record for each step.
	Merge func(before, after R, share float64) R
	// Done says whether a step, given its record, is the last though more of the Steps are left; nil: none is.
	Done func(last R) bool
	// Data are the prefixes of the state's entries that a checkpoint leaves out, such as "train_".
	Data []string
	// Kept are the shapes of the entries that Posterior reads. They are checked before Begin, so that a finished run needs
	// none.
	Kept map[string]shapes.Shape
	// Validation is how the state is validated; nil: it is not.
	Validation *Validation
	// Scores are those of the last record, for Progress.
	Scores func(last R) []run.Score
	// ObserveEvery is the default of the settings' field.
	ObserveEvery int
	// Result is made of where the run stands: at its end, when Trail.Status says how it ended, and on its way, with the
	// state as the last step left it, for Observe and Steps.
	Result func(at *Trail[R]) (*Result, error)
}

// Validation is the validation of a Loop.
type Validation struct {
	// Score scores each of the members, lower is better, and keeps the entries of Best of those that are better than
	// before (run.KeepBest), but for members whose value in open is 0.
	Score    func(state *compute.State, open []float64) ([]float64, error)
	Members  int      // that are scored, each for itself; default 1
	Best     []string // the entries that are kept as of the best validation, with run.BestPrefix
	Every    int      // steps from one validation to the next; the last step is validated too
	Patience int      // validations without a better one after which a member is done; 0: never
}

// Trail is where a Loop stands, and what it has recorded.
type Trail[R any] struct {
	Step      int // made
	Records   []R // one for each step, or for so many as Loop.Merge says
	Validated []Validated
	run.Selection
	run.Status
	Elapsed time.Duration // over all sessions, with what was compiled in each

	each    int // steps of a record, of the last so far perhaps fewer
	state   *compute.State
	adopted map[string]*tensors.Tensor // of a checkpoint, until there is a state
}

// mostRecords is the largest number of records where they can be merged, 7 MB of those of package particles.
const mostRecords = 1 << 16

// UpTo are the records of the steps up to one: the last may be of some later steps too, if records were merged.
func (t *Trail[R]) UpTo(step int) []R { return t.Records[:(step+t.each-1)/t.each] }

// Ends are the steps that the records end with, counted from 1.
func (t *Trail[R]) Ends() []int {
	ends := make([]int, len(t.Records))
	for i := range ends {
		ends[i] = min((i+1)*t.each, t.Step)
	}
	return ends
}

// Validated are the scores of a validation.
type Validated struct {
	Step   int       // counted from 1
	Scores []float64 // one for each member
}

// Host copies entries of the state, from the device or from a finished run's checkpoint.
func (t *Trail[R]) Host(names ...string) (map[string]*tensors.Tensor, error) {
	switch {
	case t.state != nil:
		return t.state.Host(names...)
	case t.adopted == nil:
		return nil, errors.New("there is no state yet")
	}
	return t.adopted, nil
}

// State is the state on the device, of a run that makes steps.
func (t *Trail[R]) State() *compute.State { return t.state }

// Machine is the loop's run, for steps one by one, where it stands, and a function that frees all in the end. Run makes
// all steps, with the job's checkpoint.
func (l *Loop[R]) Machine(j *Job) (m run.Machine, at *Trail[R], free func()) {
	of := l.machine(j)
	return of, of.Trail, of.close
}

// Run makes the steps, and gives the Result. After an error that is none of the algorithm's it comes with the error.
func (l *Loop[R]) Run(ctx context.Context, j *Job) (*Result, error) {
	m := l.machine(j)
	defer m.close()
	err := j.Loop(ctx, m.session)
	if m.Trail.Status = m.session.Status(); m.Trail.Status == "" {
		return nil, err
	}
	m.Elapsed = m.session.Elapsed()
	result, failed := l.Result(m.Trail)
	if failed != nil && m.Trail.Status == run.Cancelled {
		failed = fmt.Errorf("%w: %w", context.Cause(ctx), failed)
	}
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return result, err
}

// Session is a run of a machine with the job's checkpoint, for Loop. The format names the checkpoint's, with its
// version.
func (j *Job) Session(m run.Machine, format string) *run.Run {
	j.threads.Here = j.Engine.Threads()
	return run.New(m, run.Options{
		Owner: j.Owner, Checkpoint: j.Checkpoint, Format: format, Every: j.CheckpointEvery, Replace: j.Replace,
		Progress: j.Settings.Progress, Threads: &j.threads,
	})
}

// Loop makes the steps of a session. After an error its Status says whether there is a result, as for run.Run.Loop.
func (j *Job) Loop(ctx context.Context, session *run.Run) error {
	begun := time.Now()
	err := session.Loop(ctx)
	j.earlier += max(0, session.Elapsed()-time.Since(begun))
	return err
}

// loop is a run.Machine that makes the steps of a Loop.
type loop[R any] struct {
	*Loop[R]
	*Trail[R]
	job     *Job
	session *run.Run
	release func() // what Begin has compiled; nil before
}

func (l *Loop[R]) machine(j *Job) *loop[R] {
	m := &loop[R]{Loop: l, job: j, Trail: &Trail[R]{Selection: run.NewSelection(1, 0), each: 1}}
	if v := l.Validation; v != nil {
		m.Selection = run.NewSelection(max(1, v.Members), v.Patience)
	}
	m.session = j.Session(m, l.Format)
	return m
}

func (m *loop[R]) close() {
	if m.state != nil {
		m.state.Close()
	}
	if m.release != nil {
		m.release()
	}
}

// Identity implements run.Machine.
func (m *loop[R]) Identity() ([]run.Part, error) {
	parts, err := m.job.Identity()
	return append(parts, m.Loop.Identity...), err
}

// Begin implements run.Machine.
func (m *loop[R]) Begin(ctx context.Context) error {
	var err error
	if m.state, m.release, err = m.Loop.Begin(ctx); err != nil {
		if m.state != nil { // half filled: what a checkpoint has still stands
			m.state.Close()
			m.state = nil
		}
		return err
	}
	if m.adopted == nil {
		return nil
	}
	for _, name := range m.own() {
		initial, err := m.state.Host(name)
		if err != nil {
			return fmt.Errorf("%s: %w", m.job.Owner, err)
		}
		t, err := run.Tensor(m.adopted, name, initial[name].Shape())
		if err != nil {
			return fmt.Errorf("%s: resuming from %s (delete the file to start anew): %w", m.job.Owner, m.job.Checkpoint, err)
		}
		m.state.Set(name, t)
	}
	m.adopted = nil
	return nil
}

// own returns the names of the state's entries without the data.
func (m *loop[R]) own() []string { return m.state.NamesWithout(m.Data...) }

// Step implements run.Machine: a step and, when they are due, a validation and a call of Observe.
func (m *loop[R]) Step(ctx context.Context) error {
	record, err := m.Loop.Step(ctx, m.state, m.Trail.Step)
	if err != nil {
		return fmt.Errorf("%s: step %d of %d: %w", m.job.Owner, m.Trail.Step+1, m.Steps, err)
	}
	m.keep(record)
	m.Trail.Step++
	if m.validates(m.Trail.Step) {
		scores, err := m.Validation.Score(m.state, m.Open())
		if err != nil {
			return fmt.Errorf("%s: validation after step %d: %w", m.job.Owner, m.Trail.Step, err)
		}
		m.rank(Validated{m.Trail.Step, scores})
	}
	return m.observe()
}

// keep adds the record of a step: to the last one, if that has fewer steps than the others. Where there is no room for
// a new one, two in a row become one.
func (m *loop[R]) keep(record R) {
	n := m.Trail.Step % m.each // steps that the last record has so far; 0: it has all
	if n == 0 && m.Merge != nil && len(m.Records) == mostRecords {
		for i := range mostRecords / 2 {
			m.Records[i] = m.Merge(m.Records[2*i], m.Records[2*i+1], .5)
		}
		m.Records, m.each = m.Records[:mostRecords/2], 2*m.each
	}
	if n == 0 {
		m.Records = append(m.Records, record)
		return
	}
	last := &m.Records[len(m.Records)-1]
	*last = m.Merge(*last, record, 1/float64(n+1))
}

// validates says whether a validation follows a step, counted from 1.
func (m *loop[R]) validates(step int) bool {
	return m.Validation != nil && (step%m.Validation.Every == 0 || step == m.Steps)
}

// rank records a validation, and which members it finds better than before.
func (m *loop[R]) rank(v Validated) {
	m.Validated = append(m.Validated, v)
	m.Add(v.Step, v.Scores)
}

// observe calls Settings.Observe when it is due.
func (m *loop[R]) observe() error {
	every := cmp.Or(m.job.ObserveEvery, m.ObserveEvery)
	if m.job.Observe == nil || m.Trail.Step%every != 0 {
		return nil
	}
	now, err := m.Now()
	if err != nil {
		return err
	}
	if err := m.job.Observe(m.Trail.Step, now.Posterior); err != nil {
		return run.Stop(fmt.Errorf("%s: Settings.Observe after step %d: %w", m.job.Owner, m.Trail.Step, err))
	}
	return nil
}

// Now is the result so far.
func (m *loop[R]) Now() (*Result, error) {
	m.Elapsed = m.session.Elapsed()
	result, err := m.Loop.Result(m.Trail)
	if err != nil {
		return nil, err
	}
	return result, m.job.complete(result)
}

// Status implements run.Machine: run.Completed after the last step, run.StoppedEarly when Patience has run out.
func (m *loop[R]) Status() run.Status {
	switch {
	case m.Open() == nil:
		return run.StoppedEarly
	case m.Trail.Step == m.Steps:
		return run.Completed
	case m.Done != nil && len(m.Records) > 0 && m.Done(m.Records[len(m.Records)-1]):
		return run.Completed
	}
	return ""
}

// Progress implements run.Machine.
func (m *loop[R]) Progress() run.Progress {
	p := run.Progress{Stage: m.Stage, Step: m.Trail.Step, Steps: m.Steps}
	if n := len(m.Records); n > 0 {
		p.Scores = m.Scores(m.Records[n-1])
	}
	if n := len(m.Validated); n > 0 {
		best := 0.
		for _, b := range m.Best {
			best += b.NLPD / float64(len(m.Best))
		}
		scale := m.job.LogScale()
		p.Scores = append(p.Scores,
			run.Score{Name: ValidationCurve, Value: stat.Mean(m.Validated[n-1].Scores, nil) + scale},
			run.Score{Name: BestScore, Value: best + scale})
	}
	p.Scores = slices.DeleteFunc(p.Scores, func(s run.Score) bool { return math.IsNaN(s.Value) })
	return p
}

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
func (m *loop[R]) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.own()...)
	if err != nil {
		return nil, nil, err
	}
	var validated []float64
	for _, v := range m.Validated {
		validated = append(append(validated, float64(v.Step)), v.Scores...)
	}
	kept[traceName], kept[validatedName] = run.Records(m.Records), run.Table(validated, 1+len(m.Best))
	return position{m.Trail.Step}, kept, nil
}

// Adopt implements run.Machine: it restores the records, and checks the tensors that a result is made of.
func (m *loop[R]) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	if at.Step < 0 || at.Step > m.Steps {
		return fmt.Errorf("it stands at step %d of %d", at.Step, m.Steps)
	}
	for name, want := range m.Kept {
		if _, err := run.Tensor(kept, name, want); err != nil {
			return err
		}
		if m.Validation == nil || !slices.Contains(m.Validation.Best, name) {
			continue
		}
		if _, err := run.Tensor(kept, run.BestPrefix+name, want); err != nil {
			return err
		}
	}
	if err := m.adoptRecords(at.Step, kept); err != nil {
		return err
	}
	m.Trail.Step, m.adopted = at.Step, kept
	return nil
}

// adoptRecords restores the records and the validations; it is an error if their numbers are not the expected ones.
func (m *loop[R]) adoptRecords(steps int, kept map[string]*tensors.Tensor) (err error) {
	for m.Merge != nil && steps > m.each*mostRecords {
		m.each *= 2
	}
	if m.Records, err = run.ReadRecords[R](kept, traceName, (steps+m.each-1)/m.each); err != nil {
		return err
	}
	var due []int
	for step := 1; step <= steps; step++ {
		if m.validates(step) {
			due = append(due, step)
		}
	}
	validated, err := run.Rows(kept, validatedName, len(due), 1+len(m.Best))
	if err != nil {
		return err
	}
	for i, v := range validated {
		if int(v[0]) != due[i] {
			return fmt.Errorf("it has a validation after step %v of %d in place of step %d", v[0], steps, due[i])
		}
		m.rank(Validated{due[i], v[1:]})
	}
	return nil
}
