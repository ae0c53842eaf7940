package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Loop declares the steps of a method that repeats one on a state of the device; R is a struct of numbers, a record.
// Validation and early stopping, checkpoints, resume to the same bits, progress, Observe and Now follow from it. A
// run reads its checkpoint before Begin. Of what the file holds only the shapes of the state's entries are checked: its
// digest says that it is as it was written, its Format by which version, and its identity for which job.
type Loop[R any] struct {
	Format string // of the checkpoint, with its version, such as "gobnn.ohsmc/6": another one when what is kept changes
	Steps  int    // 0: not known before the end, of which Done decides
	// Identity is what a checkpoint must agree in besides the job's.
	Identity []run.Part
	// Begin compiles, and gives the state before the first step, with the entries of run.BeginBest if there is validation,
	// and a function that gives back what it has compiled; both beside an error too, as far as there is any. The entries
	// of a checkpoint then replace those of the state.
	Begin func(ctx context.Context) (state *compute.State, release func(), err error)
	// Step makes a step of at.State(), or as many as at.Ahead(), and counts them, as at.Record does.
	Step func(ctx context.Context, at *Trail[R]) error
	// Done says whether the run has ended though Steps are left; nil: it has not.
	Done func(at *Trail[R]) bool
	// Data are the prefixes of the state's entries that a checkpoint leaves out, such as "train_".
	Data []string
	// Host keeps what the method has on the host besides the records; nil: nothing.
	Host Keeper
	// Validation is how the state is validated; nil: it is not.
	Validation *Validation
	// Progress gives the stage and the scores so far, and the step where that is not Trail.Step.
	Progress func(at *Trail[R]) run.Progress
	// ObserveEvery is the default of the settings' field.
	ObserveEvery int
	// Result is made of where the run stands: at its end, when Trail.Status says how it ended, and on its way, with the
	// state as the last step left it, for Observe and Now.
	Result func(at *Trail[R]) (*Result, error)
}

// Keeper is the part of a method's run that is on the host.
type Keeper interface {
	// Keep returns it for a checkpoint: a head, which JSON can write, and tensors.
	Keep() (head any, kept map[string]*tensors.Tensor, err error)
	// Adopt takes over what Keep returned in an earlier session, before anything is compiled.
	Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error
}

// Validation is the validation of a Loop.
type Validation struct {
	// Score scores each of the members, lower is better, and keeps the entries of Best of those that are better than
	// before (run.KeepBest), but for members whose value in open is 0. nil: Loop.Step validates each step, and calls
	// Trail.Validate.
	Score    func(state *compute.State, open []float64) ([]float64, error)
	Members  int // that are scored, each for itself; default 1
	Every    int // steps from one validation to the next; the last step is validated too
	Patience int // validations without a better one after which a member is done; 0: never
}

// Trail is where a Loop stands, and what it has recorded.
type Trail[R any] struct {
	// Step is the number of steps made. A method whose steps take several calls of Loop.Step, or none, counts them here.
	Step      int
	Records   []R // one for each step, or as the method appends them
	Validated []Validated
	run.Selection
	run.Status

	of    *loop[R]
	state *compute.State
	// adopted has the tensors of a checkpoint, until there is a state.
	adopted map[string]*tensors.Tensor
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

// Elapsed is the time over all sessions, with what was compiled in each.
func (t *Trail[R]) Elapsed() time.Duration { return t.of.session.Elapsed() }

// Record counts a step with its record, or says of its error which step it is.
func (t *Trail[R]) Record(record R, err error) error {
	if err != nil {
		return fmt.Errorf("%s: step %d of %d: %w", t.of.job.Owner, t.Step+1, t.of.Steps, err)
	}
	t.Records = append(t.Records, record)
	t.Step++
	return nil
}

// Validate counts the validation of the last step that was recorded, where Loop.Step has made it.
func (t *Trail[R]) Validate(scores ...float64) {
	t.Validated = append(t.Validated, Validated{t.Step, scores})
	t.Add(t.Step, scores)
}

// Ahead is the number of steps, at least 1, after which the run looks at the state, or may end.
func (t *Trail[R]) Ahead() int {
	ahead := math.MaxInt
	due := func(every int) { ahead = min(ahead, every-t.Step%every) }
	if t.of.Steps > 0 {
		ahead = t.of.Steps - t.Step
	}
	if j := t.of.job; j.Observe != nil {
		due(cmp.Or(j.ObserveEvery, t.of.ObserveEvery))
	}
	switch v := t.of.Validation; {
	case v != nil && v.Score != nil:
		due(v.Every)
	case v != nil:
		ahead = min(ahead, t.Least())
	}
	return max(ahead, 1)
}

// Run makes the steps, and gives the Result. After an error that is none of the algorithm's it comes with the error.
func (l *Loop[R]) Run(ctx context.Context, j *Job) (*Result, error) {
	m := l.machine(j)
	defer m.close()
	begun := time.Now()
	err := m.session.Loop(ctx)
	j.earlier += max(0, m.session.Elapsed()-time.Since(begun))
	if m.Trail.Status = m.session.Status(); m.Trail.Status == "" {
		return nil, err
	}
	result, failed := l.Result(m.Trail)
	if failed != nil && m.Trail.Status == run.Cancelled {
		failed = fmt.Errorf("%w: %w", failed, context.Cause(ctx))
	}
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return result, err
}

// loop is a run.Machine that makes the steps of a Loop.
type loop[R any] struct {
	*Loop[R]
	*Trail[R]
	job      *Job
	session  *run.Run
	release  func() // what Begin has compiled; nil before
	observed int    // the step at which the session began, or Observe was last called
}

func (l *Loop[R]) machine(j *Job) *loop[R] {
	m := &loop[R]{Loop: l, job: j, Trail: &Trail[R]{Selection: run.NewSelection(1, 0)}}
	m.of = m
	if v := l.Validation; v != nil {
		m.Selection = run.NewSelection(max(1, v.Members), v.Patience)
	}
	m.session = run.New(m, run.Options{
		Owner: j.Owner, Checkpoint: j.Checkpoint, Format: l.Format, Every: j.CheckpointEvery, Replace: j.Replace,
		Progress: j.Settings.Progress, Threads: j.Engine.Threads(),
	})
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
	parts, err := m.job.mustAgree()
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
	m.observed = m.Trail.Step
	if m.adopted == nil {
		return nil
	}
	for _, name := range m.own() { // a user's own part may have changed, and no setting with it
		if err := m.state.Read(name, func(first *tensors.Tensor) error {
			_, err := run.Tensor(m.adopted, name, first.Shape())
			return err
		}); err != nil {
			return fmt.Errorf("%s: resuming from %s (delete the file to start anew): %w", m.job.Owner, m.job.Checkpoint, err)
		}
	}
	for name, t := range m.adopted {
		m.state.Set(name, t)
	}
	m.adopted = nil
	return nil
}

// own returns the names of the state's entries without the data.
func (m *loop[R]) own() []string {
	return slices.DeleteFunc(m.state.Names(), func(name string) bool {
		return slices.ContainsFunc(m.Data, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// Step implements run.Machine: a step and, when they are due, a validation and a call of Observe.
func (m *loop[R]) Step(ctx context.Context) error {
	if err := m.Loop.Step(ctx, m.Trail); err != nil {
		return err
	}
	if v := m.Validation; v != nil && v.Score != nil && (m.Trail.Step%v.Every == 0 || m.Trail.Step == m.Steps) {
		scores, err := v.Score(m.state, m.Open())
		if err != nil {
			return fmt.Errorf("%s: validation after step %d: %w", m.job.Owner, m.Trail.Step, err)
		}
		m.Validate(scores...)
	}
	return m.observe()
}

// observe calls Settings.Observe when it is due: more than once if a checkpoint has counted several steps at once.
func (m *loop[R]) observe() error {
	if m.job.Observe == nil {
		return nil
	}
	made, every := m.Trail.Step, cmp.Or(m.job.ObserveEvery, m.ObserveEvery)
	defer func() { m.Trail.Step = made }()
	for step := m.observed - m.observed%every + every; step <= made; step += every {
		m.observed, m.Trail.Step = step, step
		now, err := m.Now()
		if err != nil {
			return err
		}
		if err := m.job.Observe(step, now.Posterior); err != nil {
			return run.Stop(fmt.Errorf("%s: Settings.Observe after step %d: %w", m.job.Owner, step, err))
		}
	}
	return nil
}

// Now is the result so far.
func (m *loop[R]) Now() (*Result, error) {
	result, err := m.Loop.Result(m.Trail)
	if err != nil || m.job.Inner() || result.Draws.Phi == nil {
		return result, err
	}
	return result, m.job.complete(result)
}

// Status implements run.Machine: run.Completed after the last step, run.StoppedEarly when Patience has run out.
func (m *loop[R]) Status() run.Status {
	switch {
	case m.Open() == nil:
		return run.StoppedEarly
	case m.Steps > 0 && m.Trail.Step == m.Steps || m.Done != nil && m.Done(m.Trail):
		return run.Completed
	}
	return ""
}

// Progress implements run.Machine.
func (m *loop[R]) Progress() run.Progress {
	p := m.Loop.Progress(m.Trail)
	if p.Step == 0 && p.Steps == 0 {
		p.Step, p.Steps = m.Trail.Step, m.Steps
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
	Step      int             `json:"step"`
	Records   int             `json:"records"`   // rows of the trace
	Validated int             `json:"validated"` // rows of the validations
	Host      json.RawMessage `json:"host,omitempty"`
}

// The records' tensors in a checkpoint.
const (
	traceName     = "trace"
	validatedName = "validated"
)

// Keep implements run.Machine: the state of the device, the records and what Loop.Host keeps, which may count steps.
func (m *loop[R]) Keep() (any, map[string]*tensors.Tensor, error) {
	var own any
	var kept map[string]*tensors.Tensor
	var err error
	if m.Loop.Host != nil {
		if own, kept, err = m.Loop.Host.Keep(); err != nil {
			return nil, nil, err
		}
	}
	entries, err := m.state.Host(m.own()...)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(entries, kept)
	head := position{Step: m.Trail.Step, Records: len(m.Records), Validated: len(m.Validated)}
	if own != nil {
		if head.Host, err = json.Marshal(own); err != nil {
			return nil, nil, err
		}
	}
	var validated []float64
	for _, v := range m.Validated {
		validated = append(append(validated, float64(v.Step)), v.Scores...)
	}
	if head.Records > 0 {
		entries[traceName] = run.Records(m.Records)
	}
	if head.Validated > 0 {
		entries[validatedName] = run.Table(validated, 1+len(m.Best))
	}
	return head, entries, nil
}

// Adopt implements run.Machine: it restores what is on the host. The state's entries wait for Begin.
func (m *loop[R]) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) (err error) {
	var at position
	if err := json.Unmarshal(head, &at); err != nil {
		return err
	}
	m.adopted = kept
	if at.Records > 0 {
		if m.Records, err = run.ReadRecords[R](kept, traceName, at.Records); err != nil {
			return err
		}
	}
	if at.Validated > 0 {
		rows, err := run.Rows(kept, validatedName, at.Validated, 1+len(m.Best))
		if err != nil {
			return err
		}
		for _, v := range rows {
			m.Trail.Step = int(v[0])
			m.Validate(v[1:]...)
		}
	}
	m.Trail.Step = at.Step
	delete(kept, traceName)
	delete(kept, validatedName)
	if m.Loop.Host != nil {
		return m.Loop.Host.Adopt(at.Host, kept)
	}
	return nil
}
