package viz

import "fmt"

// predictedLevel is the probability of the intervals.
const predictedLevel = 0.9

// maxIntervals is the largest number of interval bars in one figure: with more rows only some have bars, chosen at even
// steps by target, and the others are faint points.
const maxIntervals = 300

// predictedVsTrue is the figure of predictions with their intervals from lower to upper, all equally long.
func predictedVsTrue(truth, predicted, lower, upper []float64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Predicted and true", "true target", "predicted target", 520, 520)
	if err != nil {
		return nil, err
	}
	rows, dropped, err := finiteRows(column{"truth", truth}, column{"predicted", predicted}, column{"lower", lower},
		column{"upper", upper})
	if err != nil {
		return nil, err
	}
	for i := range lower {
		if lower[i] > upper[i] {
			return nil, fmt.Errorf("viz: interval %d is from %v to %v: lower must not exceed upper", i, lower[i], upper[i])
		}
	}
	sortRows(rows)
	t, m, lo, hi := rows[0], rows[1], rows[2], rows[3]
	n := len(t)
	every := max(1, (n+maxIntervals-1)/maxIntervals)
	inside := &dots{radius: 2.4, fill: blue, edge: stroke(white, 0.5)}
	outside := &dots{shape: triangle, radius: 3, fill: vermillion, edge: stroke(white, 0.5)}
	insideBars := &line{style: stroke(tint(blue, 0.45), 1), upright: true}
	outsideBars := &line{style: stroke(tint(vermillion, 0.3), 1), upright: true}
	faintInside := &dots{radius: 1, fill: tint(skyBlue, 0.45)}
	faintOutside := &dots{shape: triangle, radius: 1.2, fill: tint(vermillion, 0.55)}
	covered, chosen := 0, 0
	var ends []float64 // of the bars
	for i := range t {
		points, bar, faint := outside, outsideBars, faintOutside
		if lo[i] <= t[i] && t[i] <= hi[i] {
			points, bar, faint = inside, insideBars, faintInside
			covered++
		}
		if i%every != 0 {
			faint.xs, faint.ys = append(faint.xs, t[i]), append(faint.ys, m[i])
			continue
		}
		chosen++
		points.xs, points.ys = append(points.xs, t[i]), append(points.ys, m[i])
		bar.add([]float64{t[i], t[i]}, []float64{lo[i], hi[i]})
		ends = append(ends, lo[i], hi[i])
	}

	// One range for both axes: the diagonal is at 45 degrees.
	both := spanOf(t, m, ends)
	a := newAxes(frame.XLabel, frame.YLabel, both.widen(0.03), both.widen(0.03))
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	if every > 1 {
		p.note(fmt.Sprintf("intervals of %d of the %d rows, the others faint", chosen, n))
	}
	corners := []float64{both.lo, both.hi}
	diagonal := newLine(corners, corners, stroke(black, 1.2, dashed...))
	a.add(faintInside, faintOutside, insideBars, outsideBars, inside, outside, diagonal)
	p.entry(fmt.Sprintf("inside the %s %% interval: %.1f %% of %d rows", number(100*predictedLevel),
		100*float64(covered)/float64(n), n), insideBars, inside)
	if covered < n {
		p.entry("outside", outsideBars, outside)
	}
	p.entry("predicted = true", diagonal)
	return newFigure(frame, p)
}
