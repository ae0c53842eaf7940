package viz

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// column is one named slice of a figure's input, for messages.
type column struct {
	name   string
	values []float64
}

// largest is the greatest magnitude that is drawn; beyond it sums and squares of coordinates overflow.
const largest = 1e100

func finite(v float64) bool { return math.Abs(v) <= largest }

// checkLengths returns an error unless all columns are equally long and not empty.
func checkLengths(cols ...column) error {
	first := cols[0]
	if len(first.values) == 0 {
		return fmt.Errorf("viz: %s is empty: nothing to draw", first.name)
	}
	for _, c := range cols[1:] {
		if len(c.values) != len(first.values) {
			return fmt.Errorf("viz: %s has %d values, %s has %d: they must be equally many", first.name, len(first.values),
				c.name, len(c.values))
		}
	}
	return nil
}

// finiteRows copies the rows in which every column is finite, and counts the values that are not. A row is the columns'
// values at one index. It is an error if no row is left.
func finiteRows(cols ...column) (rows [][]float64, dropped int, err error) {
	if err := checkLengths(cols...); err != nil {
		return nil, 0, err
	}
	n := len(cols[0].values)
	rows = make([][]float64, len(cols))
	for k, c := range cols {
		bad, first := 0, -1
		for i, v := range c.values {
			if !finite(v) {
				if bad++; first < 0 {
					first = i
				}
			}
		}
		if bad == n {
			return nil, 0, fmt.Errorf("viz: %s: all %d values are non-finite or beyond ±%v, the first, %v, at index %d: "+
				"nothing to draw", c.name, n, largest, c.values[first], first)
		}
		dropped += bad
		rows[k] = make([]float64, 0, n)
	}
	for i := range n {
		ok := true
		for _, c := range cols {
			ok = ok && finite(c.values[i])
		}
		if !ok {
			continue
		}
		for k, c := range cols {
			rows[k] = append(rows[k], c.values[i])
		}
	}
	if len(rows[0]) == 0 {
		names := make([]string, len(cols))
		for k, c := range cols {
			names[k] = c.name
		}
		return nil, 0, fmt.Errorf("viz: no index from 0 to %d has finite values in all of %s: nothing to draw",
			n-1, strings.Join(names, ", "))
	}
	return rows, dropped, nil
}

// droppedNote is the line below the title that says how many values are not drawn.
func droppedNote(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 non-finite value left out"
	}
	return fmt.Sprintf("%d non-finite values left out", n)
}

// sortRows orders the rows by their first column, keeping the order of equal ones.
func sortRows(rows [][]float64) {
	order := make([]int, len(rows[0]))
	floats.ArgsortStable(slices.Clone(rows[0]), order)
	for k, r := range rows {
		sorted := make([]float64, len(r))
		for i, j := range order {
			sorted[i] = r[j]
		}
		rows[k] = sorted
	}
}

// span is a closed range of one axis.
type span struct{ lo, hi float64 }

// spanOf gives the range of all values.
func spanOf(columns ...[]float64) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, c := range columns {
		for _, v := range c {
			s.lo, s.hi = math.Min(s.lo, v), math.Max(s.hi, v)
		}
	}
	return s.open()
}

// open widens a range without extent, so that it can be an axis.
func (s span) open() span {
	const tiny = 1e-303 // a range of less cannot be divided into ticks or bins
	if middle := (s.lo + s.hi) / 2; s.hi-s.lo <= math.Max(1e-12*math.Abs(middle), tiny) {
		half := 0.05 * math.Abs(middle)
		if half <= tiny {
			half = 0.5
		}
		return span{middle - half, middle + half}
	}
	return s
}

// widen adds a fraction of the range at both ends, so that marks do not touch the frame.
func (s span) widen(fraction float64) span {
	d := fraction * (s.hi - s.lo)
	return span{s.lo - d, s.hi + d}
}

// widenLog is widen on a logarithmic axis.
func (s span) widenLog(fraction float64) span {
	factor := math.Exp(fraction * (math.Log(s.hi) - math.Log(s.lo)))
	return span{s.lo / factor, s.hi * factor}
}

// number writes v with four significant digits, for titles and legends, and below a million without a power of ten.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if size := math.Abs(v); size >= 1e4 && size < 1e6 { // such as a step, or a number of rows
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.ReplaceAll(text, "-", "−")
}
