package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Status says how a run ended.
type Status string

// The ways to end.
const (
	Completed    Status = "completed"     // all steps are made
	StoppedEarly Status = "stopped early" // the algorithm saw that more steps do not help
	Cancelled    Status = "cancelled"     // by the context: the result is what was there
	Stopped      Status = "stopped"       // by an error that left the state whole: the result is what was there
)

// ErrStopped says that a run ended with the status Stopped.
var ErrStopped = errors.New("the run was stopped by an error before its end")

// Err is nil if the algorithm itself came to its end, Completed or StoppedEarly; otherwise it wraps context.Canceled
// or ErrStopped.
func (s Status) Err() error {
	switch s {
	case Completed, StoppedEarly:
		return nil
	case Cancelled:
		return fmt.Errorf("the run was cancelled before its end: %w", context.Canceled)
	case Stopped:
		return ErrStopped
	}
	return fmt.Errorf("the status is %q: the run gave no result", string(s))
}

// Progress is where a run stands.
type Progress struct {
	Stage       string // of a run that has several, such as "warm-up"; empty of one that has not
	Step, Steps int    // made, and to be made, of the stage
	Elapsed     time.Duration
	Remaining   time.Duration // of the stage, at the pace of this session; 0: not known yet, or none
	Scores      []Score       // numbers to watch, such as the effective sample size
}

// Score is a number to watch, under the name that it is shown with.
type Score struct {
	Name  string
	Value float64
}

// Score is a number by its name, NaN if there is none.
func (p Progress) Score(name string) float64 {
	for _, s := range p.Scores {
		if s.Name == name {
			return s.Value
		}
	}
	return math.NaN()
}

// pace is how fast a stage goes in this session, from the end of its first step, which may have had to compile.
type pace struct {
	stage string
	step  int
	since time.Time
}

// remaining is the time that the rest of the stage takes at this pace.
func (p *pace) remaining(at Progress, now time.Time) time.Duration {
	if p.since.IsZero() || p.stage != at.Stage || at.Step < p.step {
		*p = pace{at.Stage, at.Step, now}
	}
	made := at.Step - p.step
	if made == 0 || at.Steps <= at.Step {
		return 0
	}
	return time.Duration(float64(now.Sub(p.since)) / float64(made) * float64(at.Steps-at.Step))
}

// progress is the machine's, with the times.
func (r *Run) progress() Progress {
	p := r.machine.Progress()
	p.Elapsed, p.Remaining = r.Elapsed(), r.pace.remaining(p, time.Now())
	return p
}

// report calls Options.Progress, but not more than ten times a second.
func (r *Run) report(end bool) {
	if r.Options.Progress == nil || !end && time.Since(r.reported) < 100*time.Millisecond {
		return
	}
	r.reported = time.Now()
	r.Options.Progress(r.progress())
}
