package fit

import (
	"time"

	"gobnn/bayes"
	"gobnn/bayes/run"
)

// Result is the common part of all samplers' results: the Result of each package embeds it and adds its own records.
type Result struct {
	Posterior *bayes.Posterior
	Status    run.Status    // how the run ended
	Elapsed   time.Duration // over all sessions of a resumed run
	Warnings  []string      // reasons to doubt the posterior; empty if none was found
	Curves    []Curve       // such as the training loss of each step; none if nothing was trained
}

// Curve is a quantity along a run.
type Curve struct {
	Name   string // such as LossCurve; unique in a result
	Steps  []int  // of the values, counted from 1, ascending
	Values []float64
}

// The names of curves in the results of several packages. Losses and NLPDs are of the target in its own units, as
// metric.NLPD is, also where the model was trained on a standardised one.
const (
	LossCurve       = "training loss"         // of each step: the training objective per row, on its batch
	ValidationCurve = "validation NLPD"       // of each validation
	BestScore       = "best validation NLPD"  // the lowest so far: a score of Progress, not a curve
	ESSCurve        = "effective sample size" // of each step, after weighing
)

// NewCurve is the curve with one value for each record of a run; record i belongs to step i+1.
func NewCurve[Record any](name string, records []Record, value func(Record) float64) Curve {
	c := Curve{Name: name}
	for i, r := range records {
		c.Steps, c.Values = append(c.Steps, i+1), append(c.Values, value(r))
	}
	return c
}

// Fitted is the result of any package's Fit, for functions that take all of them.
type Fitted interface {
	// Common is the common part of the result.
	Common() *Result
}

// Common implements Fitted, for all types that embed a Result.
func (r *Result) Common() *Result { return r }

// Curve is the curve with the name; it has no steps if there is none.
func (r *Result) Curve(name string) Curve {
	for _, c := range r.Curves {
		if c.Name == name {
			return c
		}
	}
	return Curve{Name: name}
}
