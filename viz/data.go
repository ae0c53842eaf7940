package viz

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
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
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return rows[0][order[a]] < rows[0][order[b]] })
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

// thinColumns is the number of columns that a line is thinned to: about the pixels of a figure's width. Of more than
// four points a column a line or an area is drawn in pieces of pieceColumns: the time to draw a path as pixels grows
// with the square of its segments in one row of pixels, and a noisy curve takes seconds as one path.
const thinColumns, pieceColumns = 800, 32

// pieces returns the points of a curve, of many thinned and in pieces. Each reaches a column into the next, so that no
// seam is seen between areas.
func pieces(p plane, xs, ys []float64) (all [][]vg.Point) {
	if len(xs) <= 4*thinColumns {
		return [][]vg.Point{p.points(xs, ys)}
	}
	column := func(i int) int { return int(thinColumns * p.x.norm(xs[i])) }
	for start := 0; start < len(xs); {
		end := start
		for end < len(xs) && column(end)/pieceColumns == column(start)/pieceColumns {
			end++
		}
		to := end
		for to < len(xs) && max(column(to)-column(end), column(end)-column(to)) <= 1 {
			to++
		}
		var piece []vg.Point
		for _, i := range thinLine(start, min(to+1, len(xs)), column, ys) {
			piece = append(piece, p.at(xs[i], ys[i]))
		}
		all = append(all, piece)
		start = end
	}
	return all
}

// thinLine keeps, of consecutive points in one pixel column, the first, the least, the greatest and the last: the line
// looks the same and has at most four points a column.
func thinLine(from, to int, column func(i int) int, ys []float64) (kept []int) {
	for start := from; start < to; {
		end, least, greatest := start, start, start
		for ; end < to && column(end) == column(start); end++ {
			if ys[end] < ys[least] {
				least = end
			}
			if ys[end] > ys[greatest] {
				greatest = end
			}
		}
		some := []int{start, min(least, greatest), max(least, greatest), end - 1}
		kept = append(kept, slices.Compact(some)...)
		start = end
	}
	return kept
}

// thinCells is the number of cells in each direction that points are thinned to: about the points (1/72 inch) of a
// figure's width.
const thinCells = 400

// thinPoints returns one point in each cell of a fine grid. The other points would be drawn on top of these.
func thinPoints(xs, ys []float64, p plane) (keptX, keptY []float64) {
	seen := make(map[[2]int]bool, len(xs))
	for i := range xs {
		cell := [2]int{int(thinCells * p.x.norm(xs[i])), int(thinCells * p.y.norm(ys[i]))}
		if !seen[cell] {
			seen[cell] = true
			keptX, keptY = append(keptX, xs[i]), append(keptY, ys[i])
		}
	}
	return keptX, keptY
}

// number writes v with four significant digits, for titles and legends, and below a million without a power of ten.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if size := math.Abs(v); size >= 1e4 && size < 1e6 { // such as a step, or a number of rows
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.ReplaceAll(text, "-", "−")
}
