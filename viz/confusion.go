package viz

import (
	"fmt"
	"strconv"
)

// Confusion shows a confusion matrix: counts, [C, C], with a row for each true class, from the top, and a column for
// each predicted class. The colour of a cell is its share of the true class, the number is the count. classes are the
// names, [C]; nil takes numbers from 0.
func Confusion(counts [][]float64, classes []string, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Confusion", "predicted class", "true class", 360, 360)
	if err != nil {
		return nil, err
	}
	c := len(counts)
	if c < 2 {
		return nil, fmt.Errorf("viz: a confusion matrix of %d classes: there must be at least 2", c)
	}
	if classes != nil && len(classes) != c {
		return nil, fmt.Errorf("viz: a confusion matrix of %d classes with %d names", c, len(classes))
	}
	a := newAxes(frame.XLabel, frame.YLabel, span{-.5, float64(c) - .5}, span{-.5, float64(c) - .5})
	for i := range c {
		name := strconv.Itoa(i)
		if classes != nil {
			name = cutName(classes[i], frame)
		}
		a.x.names = append(a.x.names, tick{float64(i), name})
		a.y.names = append(a.y.names, tick{float64(c - 1 - i), name})
	}
	total := 0.
	for i, row := range counts {
		if len(row) != c {
			return nil, fmt.Errorf("viz: counts[%d] has %d columns, of %d classes", i, len(row), c)
		}
		sum := 0.
		for k, v := range row {
			if !finite(v) || v < 0 {
				return nil, fmt.Errorf("viz: counts[%d][%d] = %v: a count must be finite and not negative", i, k, v)
			}
			sum += v
		}
		total += sum
		for k, v := range row {
			share := 0.
			if sum > 0 {
				share = v / sum
			}
			x, y := float64(k), float64(c-1-i)
			cell := &bars{fill: sequentialColours.at(share)}
			cell.add(x-.5, x+.5, y-.5, y+.5)
			a.add(cell, &textMark{x: x, y: y, text: strconv.FormatFloat(v, 'f', -1, 64), light: share >= .75})
		}
	}
	if total == 0 {
		return nil, fmt.Errorf("viz: all counts of %d classes are 0: nothing to draw", c)
	}
	return newFigure(frame, &panel{title: frame.Title, axes: []*axes{a}})
}
