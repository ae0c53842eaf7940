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
	StoppedEarly Status = "stopped early" // the algorithm ended it, since more steps would not help
	Cancelled    Status = "cancelled"     // by the context: the result is as after the last step
	Stopped      Status = "stopped"       // by an error outside the algorithm: the result is as after the last step
)

// Err is nil for Completed and StoppedEarly; of a cancelled run it wraps context.Canceled.
func (s Status) Err() error {
	switch s {
	case Completed, StoppedEarly:
		return nil
	case Cancelled:
		return fmt.Errorf("the run was cancelled before its end: %w", context.Canceled)
	case Stopped:
		return errors.New("the run was stopped by an error before its end")
	}
	return fmt.Errorf("the status is %q: the run gave no result", string(s))
}

// Progress is the progress of a run.
type Progress struct {
	Stage       string // such as "warm-up"; empty if the run has one stage only
	Step, Steps int    // steps made, and in all, of the stage; Steps is 0 where that is not known
	Elapsed     time.Duration
	Remaining   time.Duration // of the stage, at the speed so far; 0: not known yet, or none
	Scores      []Score       // numbers to watch, such as the effective sample size
	Status      Status        // how the run ended; empty while it goes on
}

// Score is a named number to watch.
type Score struct {
	Name  string
	Value float64
}

// Score is the score with the name; NaN if there is none.
func (p Progress) Score(name string) float64 {
	for _, s := range p.Scores {
		if s.Name == name {
			return s.Value
		}
	}
	return math.NaN()
}

// pace measures a stage's speed in this session, from the end of its first step, which may include compiling.
type pace struct {
	stage string
	step  int
	since time.Time
}

// remaining estimates the time for the rest of the stage.
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

// progress is the machine's progress, with the times added.
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
	p := r.progress()
	if end {
		p.Status = r.status
	}
	r.Options.Progress(p)
}
