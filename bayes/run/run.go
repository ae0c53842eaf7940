// Package run is the loop around an iterative algorithm: a run that can be cancelled, watched, saved to a checkpoint
// and resumed, bit for bit. Every sampler and trainer of the library runs in it, so that all treat contexts,
// checkpoints and full disks alike.
//
// Its parts:
//
//   - Run: makes the steps of a Machine, an algorithm with its state, until it is done, its context ends, or an error
//     occurs. Watched calls a function after each.
//   - Progress and Status: where a run stands, and how it ended.
//   - Selection and KeepBest: the best validation so far, and when to stop early.
//
// # The order of calls
//
// A run reads its checkpoint first, before anything is compiled: Machine.Adopt restores the state on the host. If the
// run was finished nothing else happens, and the machine has its result at once. Otherwise Machine.Begin prepares the
// first step of this session, and then come the steps. The file is written as the run begins, so that an unwritable
// folder shows at once and not after hours, every Options.Every between steps, and at the end. It is replaced
// atomically. While a run makes steps no other can: it would end with ErrInUse, which names the file.
//
// A checkpoint is gone on with by as many threads as it was made with, since their number decides the last digits of
// sums on a CPU (see package compute); others are refused. A finished one is read with any.
//
// # How a run ends
//
// Completed and StoppedEarly: the algorithm ended. Cancelled: the context ended, which is not an error; the state is
// that of the last complete step, and the run can be resumed from there. Stopped: an error outside the algorithm, such
// as a full disk, ended the run; the package that runs the machine returns the result of the last complete step
// together with the error. After any other error the status is empty and there is no result.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
)

// Machine is an algorithm with its state, which a Run drives. Its methods are called by one goroutine.
type Machine interface {
	// Identity are the parts in which a run and its checkpoint must agree, in the order in which they are compared. It is
	// called once, before all else, and only if a checkpoint is set.
	Identity() ([]Part, error)
	// Adopt restores the state that Keep returned in an earlier session, on the host, without compiling. It must check the
	// state, and return an error if no such run can have kept it.
	Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error
	// Begin prepares the first step of a session: it compiles, and sets up the adopted state or, without one, the initial
	// state. It is not called if Adopt restored a finished run. An error that wraps the context's ends the run as
	// Cancelled, without a checkpoint; Begin is called again when the run is resumed.
	Begin(ctx context.Context) error
	// Step makes one step. An error that wraps the context's ends the run as Cancelled, one of Stop as Stopped; after
	// both the state must be as a whole step left it, this step or the one before. Any other error ends it without a
	// result.
	Step(ctx context.Context) error
	// Status is Completed or StoppedEarly once the algorithm is done, and empty before. It must follow from the state.
	Status() Status
	// Keep returns the state for Adopt: a head, which JSON can write, and tensors on the host. They are read before the
	// next call.
	Keep() (head any, kept map[string]*tensors.Tensor, err error)
	// Progress is the run's progress without the times, which the Run adds.
	Progress() Progress
}

// Part is one part of a run's identity, such as the seed, under its name in messages.
type Part struct{ Name, Value string }

// Options of a Run. Only Owner is needed.
type Options struct {
	Owner string // the package, with which errors begin, such as "mcmc"

	// Checkpoint is the file that holds the whole state; empty: none. A * in its name is replaced by a hash of what the
	// run is (its data, model, settings and seed), so that runs with other settings are kept beside it.
	Checkpoint string
	Format     string        // of the file, with its version, such as "gobnn.mcmc/3"; needed with a Checkpoint
	Every      time.Duration // between checkpoints
	Threads    int           // with which the run computes; 0: the bits do not depend on it
	Replace    bool          // begin anew if the file is of another run, of an older format or damaged

	// Progress, if set, is called after a step, at most ten times a second, and at the end.
	Progress func(Progress)
}

// Run is one run of a Machine.
type Run struct {
	machine Machine
	Options

	identity []Part // the machine's, once it was asked
	opened   bool   // the checkpoint has been read
	adopted  bool   // and was of this run
	prepared bool   // Begin was called
	unlock   func() // gives the checkpoint back, see lock; nil: it is not locked
	status   Status
	err      error

	before   time.Duration // time of earlier sessions
	begun    time.Time     // begin of this session; zero: none is running
	saved    time.Time     // last checkpoint
	reported time.Time     // last call of Options.Progress
	pace     pace
}

// New is a run that has not begun.
func New(m Machine, o Options) *Run { return &Run{machine: m, Options: o} }

// Status is how the run ended: empty before its end, and after an error without a result.
func (r *Run) Status() Status { return r.status }

// Elapsed is the time of all sessions, compilation included.
func (r *Run) Elapsed() time.Duration {
	if r.begun.IsZero() {
		return r.before
	}
	return r.before + time.Since(r.begun)
}

// Loop makes steps until the run ends. The end of the context is not an error. After an error Status says whether there
// is a result: Stopped (or Completed, if only the last checkpoint failed), or empty.
func (r *Run) Loop(ctx context.Context) error {
	r.steps(ctx)
	return r.err
}

// steps is Loop, which leaves its error in r.err.
func (r *Run) steps(ctx context.Context) {
	r.begun, r.saved, r.status, r.err = time.Now(), time.Now(), "", nil
	defer func() { r.before, r.begun = r.Elapsed(), time.Time{} }()
	defer func() {
		if r.unlock != nil {
			r.unlock()
			r.unlock = nil
		}
	}()
	finished, err := r.open(ctx)
	if err != nil {
		if r.status, r.err = "", err; r.cancelled(ctx, err) {
			r.status, r.err = Cancelled, nil
		}
		return
	}
	if finished {
		r.begun = time.Time{} // reading a finished run takes no time of the run's
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
		if watch, ok := ctx.Value(watchKey{}).(func(Progress, Machine)); ok {
			watch(r.progress(), r.machine)
		}
	}
	if r.status == "" {
		return // an error without a state
	}
	r.report(true)
	if r.err == nil || r.status != Stopped {
		r.err = errors.Join(r.err, r.save())
	}
}

// open reads the checkpoint, and begins the session unless it is of a finished run.
func (r *Run) open(ctx context.Context) (finished bool, err error) {
	if !r.opened {
		if err := r.name(); err != nil {
			return false, err
		}
	}
	inUse := r.lock()
	if !r.opened {
		if r.adopted, err = r.resume(); err != nil {
			return false, err
		}
	}
	if r.status = r.machine.Status(); r.status != "" && (r.adopted || r.prepared) {
		r.opened = true
		return true, nil // a finished run is only read, by as many as want
	}
	if inUse != nil { // what was read, or was not there yet, is out of date
		return false, inUse
	}
	r.opened = true
	if r.adopted && !r.prepared && ctx.Err() != nil { // no step will be made, and so nothing is compiled
		r.status = Cancelled
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
	return false, r.save() // so that an unwritable folder shows now, not after hours
}

// step makes one step and writes the checkpoint when it is due; false: the step failed.
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
	whole := errors.As(err, &stop) // the state is as a whole step left it
	switch {
	case ctx.Err() != nil && whole || r.cancelled(ctx, err):
		r.status = Cancelled
	case whole:
		r.status, r.err = Stopped, errors.Join(err, r.save())
	default:
		r.err = err
	}
}

// cancelled says whether the context has ended and err wraps its error.
func (r *Run) cancelled(ctx context.Context, err error) bool {
	ended := ctx.Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(ctx)))
}

// stopped is an error marked by Stop.
type stopped struct{ error }

func (s *stopped) Unwrap() error { return s.error }

// Stop marks an error of Machine.Step that leaves the state as a whole step left it, such as a service that did not
// answer. The run ends with the status Stopped and a result.
func Stop(err error) error { return &stopped{err} }
