// Package run is the loop around an iterative algorithm: a run that can be cancelled, watched, kept in a file and gone
// on with, to the same bits. Every sampler and trainer of the library runs in it, so that all of them treat a context,
// a checkpoint and a full disk alike.
//
// It has three rooms:
//
//   - Run: makes the steps of a Machine, an algorithm with its state, until it is done, its context ends, or it cannot
//     go on. Loop makes them all; Steps gives them one by one to a range loop of your own.
//   - Progress and Status: where a run stands, and how it ended.
//   - Cache: compiled programs by what they were compiled for.
//
// # The order of things
//
// A run looks at its checkpoint first, before anything is compiled: Machine.Adopt takes the file over on the host. If
// that was a finished run nothing else happens, and the machine gives its result at once. Otherwise Machine.Begin
// prepares the first step of this session, and then come the steps. The file is written as the run begins, so that an
// unwritable folder shows now and not after hours, every Options.Every between steps, and at the end; it is whole or
// not there.
//
// # How a run ends
//
// Completed and StoppedEarly are the algorithm's own ends. Cancelled is the context's: it is no error, the state is
// that of the last whole step, and the file goes on from there. Stopped is what an error leaves behind that came from
// beside the algorithm, such as a disk too full for the checkpoint: the state of the last whole step is good and still
// in memory, so the package that runs the machine returns its result together with the error. After any other error the
// status is empty and there is no result.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
)

// Machine is an algorithm with its state, which a Run drives. Its methods are called by one goroutine.
type Machine interface {
	// Identity is what must agree for the run to go on from a file, in the order in which it is compared. It is asked
	// for only where there is a checkpoint.
	Identity() ([]Part, error)
	// Adopt takes over what Keep gave in an earlier session, on the host, without compiling anything. A file is not
	// trusted: it is an error if no such run can have kept this.
	Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error
	// Begin prepares the first step of a session: it compiles, and puts the state that was adopted, or else the initial
	// one, where the steps find it. It is not called where Adopt took over a finished run.
	Begin(ctx context.Context) error
	// Step makes one step. An error that wraps the context's ends the run as Cancelled, one of Stop as Stopped; after
	// both the state must be that of a whole step, this one or the one before. Any other error ends it without a
	// result.
	Step(ctx context.Context) error
	// Status is Completed or StoppedEarly once the algorithm is done, and empty before. It follows from the state.
	Status() Status
	// Keep is what Adopt needs: a head, which JSON can write, and tensors on the host. They are read before the next
	// call.
	Keep() (head any, kept map[string]*tensors.Tensor, err error)
	// Progress is where the run stands, but for the times, which the Run knows.
	Progress() Progress
}

// Part is one part of what identifies a run, under the name that a message gives it, such as the seed.
type Part struct{ Name, Value string }

// Options of a Run. Only Owner is needed.
type Options struct {
	Owner string // the package, which begins its errors, such as "mcmc"

	Checkpoint string        // file that holds the whole state; empty: none
	Format     string        // of the file, with its version, such as "gobnn.mcmc/3"; needed with a Checkpoint
	Every      time.Duration // between checkpoints; default 30 s
	Replace    bool          // begin anew where the file is of another run, of an older format or damaged

	// Progress, if set, is called after a step, at most ten times a second, and at the end.
	Progress func(Progress)
}

// Run is one run of a Machine.
type Run struct {
	machine Machine
	Options

	opened   bool // the checkpoint has been looked at
	adopted  bool // and was of this run
	prepared bool // Begin was called
	status   Status
	err      error

	before   time.Duration // of earlier sessions
	begun    time.Time     // this one; zero: none is under way
	saved    time.Time     // last checkpoint
	reported time.Time     // last call of Options.Progress
	pace     pace
}

// New is a run that has not begun.
func New(m Machine, o Options) *Run {
	if o.Every == 0 {
		o.Every = 30 * time.Second
	}
	return &Run{machine: m, Options: o}
}

// Status is how the run ended: empty before its end, and where an error left nothing to give a result of.
func (r *Run) Status() Status { return r.status }

// Err is the error that Loop returns.
func (r *Run) Err() error { return r.err }

// Elapsed is the time of all sessions, compilation included.
func (r *Run) Elapsed() time.Duration {
	if r.begun.IsZero() {
		return r.before
	}
	return r.before + time.Since(r.begun)
}

// Loop makes steps until the run ends. The context's end is no error. Where there is an error, Status says whether
// there is a state beside it: Stopped (or Completed, where only the last checkpoint failed), or empty.
func (r *Run) Loop(ctx context.Context) error {
	r.steps(ctx, func() bool { return true })
	return r.err
}

// Steps is Loop as an iterator: it yields after each step, and where the run ends with an error once more, with that.
// Who leaves the loop before its end ends the run as a cancelled context does, after the checkpoint is written; ranging
// over Steps again goes on.
func (r *Run) Steps(ctx context.Context) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		left := false
		r.steps(ctx, func() bool {
			left = !yield(r.progress(), nil)
			return !left
		})
		if r.err != nil && !left {
			yield(r.progress(), r.err)
		}
	}
}

// steps makes steps until the run ends or after says that no more are wanted.
func (r *Run) steps(ctx context.Context, after func() bool) {
	r.begun, r.saved, r.status, r.err = time.Now(), time.Now(), "", nil
	defer func() { r.before, r.begun = r.Elapsed(), time.Time{} }()
	finished, err := r.open(ctx)
	if err != nil {
		r.status, r.err = "", err
		return
	}
	if finished {
		r.begun = time.Time{} // a look at a result takes no time of the run's
		r.report(true)
		return
	}
	for r.status == "" {
		if ctx.Err() != nil {
			r.status = Cancelled
			break
		}
		if !r.step(ctx) {
			break
		}
		r.report(false)
		if !after() && r.status == "" {
			r.status = Cancelled
		}
	}
	if r.status == "" {
		return // an error that leaves no state
	}
	r.report(true)
	if r.err == nil || r.status != Stopped {
		r.err = errors.Join(r.err, r.save())
	}
}

// open looks at the checkpoint, and begins the session if it is not of a finished run.
func (r *Run) open(ctx context.Context) (finished bool, err error) {
	if !r.opened {
		if r.adopted, err = r.resume(); err != nil {
			return false, err
		}
		r.opened = true
	}
	if r.status = r.machine.Status(); r.status != "" && (r.adopted || r.prepared) {
		return true, nil
	}
	if r.prepared {
		return false, nil
	}
	if err := r.machine.Begin(ctx); err != nil {
		return false, err
	}
	if r.prepared = true; r.adopted {
		return false, nil
	}
	return false, r.save() // an unwritable folder shows now, not after hours
}

// step makes one step and writes the checkpoint where it is due; false: the step did not count.
func (r *Run) step(ctx context.Context) bool {
	if err := r.machine.Step(ctx); err != nil {
		r.fail(ctx, err)
		return false
	}
	r.status = r.machine.Status()
	if r.status == "" && r.Checkpoint != "" && time.Since(r.saved) >= r.Every {
		if err := r.save(); err != nil {
			r.status, r.err = Stopped, err
		}
	}
	return true
}

// fail ends the run with an error of a step.
func (r *Run) fail(ctx context.Context, err error) {
	stop := (*stopped)(nil)
	whole := errors.As(err, &stop) // the state is
	switch cancelled := ctx.Err(); {
	case cancelled != nil && (whole || errors.Is(err, cancelled) || errors.Is(err, context.Cause(ctx))):
		r.status = Cancelled
	case whole:
		r.status, r.err = Stopped, errors.Join(err, r.save())
	default:
		r.err = err
	}
}

// stopped is an error of Stop.
type stopped struct{ error }

func (s *stopped) Unwrap() error { return s.error }

// Stop marks an error of Machine.Step after which the state is that of a whole step, such as that of a service that
// gave no answer: the run ends with the status Stopped and a result.
func Stop(err error) error { return &stopped{err} }
