package dataset

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Extras says what a data set has of each row beside its features and targets.
type Extras struct {
	Censored bool `json:"censored,omitempty"`
	Exposure bool `json:"exposure,omitempty"`
	Weights  bool `json:"weights,omitempty"`
}

// Columns is their number.
func (e Extras) Columns() (n int) {
	for _, has := range []bool{e.Censored, e.Exposure, e.Weights} {
		if has {
			n++
		}
	}
	return n
}

// With has what either has.
func (e Extras) With(other Extras) Extras {
	return Extras{e.Censored || other.Censored, e.Exposure || other.Exposure, e.Weights || other.Weights}
}

// Extras says which of Censored, Exposure and Weights the data set has.
func (d *Dataset) Extras() Extras {
	return Extras{d.Censored != nil, d.Exposure != nil, d.Weights != nil}
}

// Seen is the number of rows whose targets are not Censored.
func (d *Dataset) Seen() int {
	n := d.Rows()
	for _, censored := range d.Censored {
		if censored {
			n--
		}
	}
	return n
}

// Extra are the columns of e, one after another in the order of its fields, [N] each: Censored as 0 or 1, Exposure as
// its logarithm, Weights. Of what the data set does not have, no row is censored, and exposures and weights are 1.
func (d *Dataset) Extra(e Extras) (columns [][]float64) {
	n := d.Rows()
	if e.Censored {
		column := make([]float64, n)
		for i, censored := range d.Censored {
			if censored {
				column[i] = 1
			}
		}
		columns = append(columns, column)
	}
	if e.Exposure {
		column := make([]float64, n)
		for i, exposure := range d.Exposure {
			column[i] = math.Log(exposure)
		}
		columns = append(columns, column)
	}
	if e.Weights {
		columns = append(columns, orAll(d.Weights, n, 1))
	}
	return columns
}

// orAll are a copy of the values, or n times the same if there are none.
func orAll[T any](values []T, n int, other T) []T {
	if values == nil {
		return slices.Repeat([]T{other}, n)
	}
	return slices.Clone(values)
}

// joinedOr are the values of a and then of b; where one has none, of that so many others; nil if neither has any.
func joinedOr[T any](a, b []T, rowsOfA, rowsOfB int, other T) []T {
	if a == nil && b == nil {
		return nil
	}
	return append(orAll(a, rowsOfA, other), orAll(b, rowsOfB, other)...)
}

// validateExtras checks Weights, Exposure and Censored.
func (d *Dataset) validateExtras() error {
	n, _ := d.dims()
	if d.Weights != nil && len(d.Weights) != n || d.Exposure != nil && len(d.Exposure) != n ||
		d.Censored != nil && len(d.Censored) != n {
		return fmt.Errorf("there are %d rows, but Weights has %d values, Exposure %d and Censored %d: each has one for each "+
			"row, or is nil", n, len(d.Weights), len(d.Exposure), len(d.Censored))
	}
	for i, w := range d.Weights {
		if !(w >= 0) || w > maxMagnitude {
			return fmt.Errorf("the weight of %s is %v: it must be at least 0, and finite", d.rowName(i), w)
		}
	}
	for i, v := range d.Exposure {
		if !(v > 0) || v > maxMagnitude {
			return fmt.Errorf("the exposure of %s is %v: it must be above 0, and finite", d.rowName(i), v)
		}
	}
	if d.Task != Regression && (d.Exposure != nil || d.Censored != nil) {
		return fmt.Errorf("the task is %v, but Exposure or Censored is set, which are for numbers: set it to nil", d.Task)
	}
	if d.Censored != nil && len(d.Targets) > 1 {
		return fmt.Errorf("there are %d targets and Censored rows, which are for one: set Censored to nil", len(d.Targets))
	}
	return nil
}

// validateWeights is an error if a part's rows do not count at all.
func (d *Dataset) validateWeights() error {
	if d.Weights != nil && floats.Max(d.Weights) == 0 {
		return fmt.Errorf("dataset %s: all weights of its %d rows are 0, which leaves no data: at least one must be above 0",
			d.Name, d.Rows())
	}
	return nil
}
