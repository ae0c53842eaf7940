package bayes

import (
	"time"

	"gobnn/bayes/run"
)

// Result is what all samplers and trainers return: the Result of each package embeds it, beside the records of its own.
type Result struct {
	Posterior *Posterior
	Status    run.Status    // how the run ended
	Elapsed   time.Duration // over all sessions
	Warnings  []string      // in words, what makes the posterior doubtful; empty if nothing does
	Curves    []Curve       // along the run, such as the training loss of each step; none if nothing was trained
}

// Curve is a number along a run.
type Curve struct {
	Name   string // what it is, such as LossCurve; no two of a result have the same
	Steps  []int  // that the values belong to, counted from 1, ascending
	Values []float64
}

// The names of curves that several packages have.
const (
	LossCurve       = "training loss"         // of each step, on its batch, per row: what training lowers
	ValidationCurve = "validation NLPD"       // of each validation
	ESSCurve        = "effective sample size" // of each step, after weighing
)

// NewCurve is a curve with a value for each of the records of a run, which belong to the steps 1, 2, 3, ...
func NewCurve[Record any](name string, records []Record, value func(Record) float64) Curve {
	c := Curve{Name: name}
	for i, r := range records {
		c.Steps, c.Values = append(c.Steps, i+1), append(c.Values, value(r))
	}
	return c
}

// Fitted is the result of any package's Fit: what works with all of them takes it.
type Fitted interface {
	// Common is what all results have.
	Common() *Result
}

// Common implements Fitted, for all that embed a Result.
func (r *Result) Common() *Result { return r }

// Curve is the curve of a name; without steps if the run has none.
func (r *Result) Curve(name string) Curve {
	for _, c := range r.Curves {
		if c.Name == name {
			return c
		}
	}
	return Curve{Name: name}
}
