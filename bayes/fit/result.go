package fit

import (
	"time"

	"gobnn/bayes"
	"gobnn/bayes/run"
)

// Result is what a method has found.
type Result struct {
	Posterior *bayes.Posterior
	Status    run.Status    // how the run ended
	Elapsed   time.Duration // over all sessions of a resumed run
	Warnings  []string      // Doubts in sentences, which Fit and Sample add
	Doubts    Doubts        // reasons to doubt the posterior; empty if none was found
	Curves    []Curve       // such as the training loss of each step; none if nothing was trained

	// Draws are what Method.Run returns; Fit makes the Posterior of them.
	Draws bayes.Draws
	// Approximation says in words what the draws are of, if they are not of the posterior; see bayes.Provenance.
	Approximation string
	// Details are the method's own, a value for each type; see the function Details.
	Details []any
}

// Details are the details of one type that a method has added to its result, such as *particles.Details or
// *mcmc.Details; the zero value if it has added none.
func Details[T any](r *Result) T {
	if r != nil {
		for _, d := range r.Details {
			if of, ok := d.(T); ok {
				return of
			}
		}
	}
	var none T
	return none
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

// Curve is the curve with the name; it has no steps if there is none.
func (r *Result) Curve(name string) Curve {
	for _, c := range r.Curves {
		if c.Name == name {
			return c
		}
	}
	return Curve{Name: name}
}
