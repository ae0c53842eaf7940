package viz

import (
	"fmt"
	"math"

	"gobnn/bayes/metric"
)

// Reliability shows whether a classifier's confidence can be believed (Guo et al. 2017, "On Calibration of Modern
// Neural Networks", figure 1). For each bin of confidence it shows the accuracy as a bar, its gap to the mean
// confidence, and below it the number of rows in the bin. The expected calibration error in the title is the mean gap
// weighted by the counts. Empty bins are not drawn.
func Reliability(bins []metric.Bin, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Reliability", "confidence", "accuracy", 520, 560)
	if err != nil {
		return nil, err
	}
	accuracy := &bars{fill: tint(blue, 0.35)}
	top := &line{style: stroke(rgb(0x004A75), 2)} // the accuracy stays visible where the gap is inside the bar
	gap := &bars{fill: tint(vermillion, 0.6), edge: stroke(vermillion, 1)}
	counts := &bars{fill: tint(grey, 0.35)}
	total, ece, most := 0, 0.0, 0
	for i, b := range bins {
		if b.Count < 0 {
			return nil, fmt.Errorf("viz: bins[%d].Count = %d: a count must not be negative", i, b.Count)
		}
		if !(b.Lower >= 0 && b.Lower < b.Upper && b.Upper <= 1) {
			return nil, fmt.Errorf("viz: bins[%d] is from %v to %v: a bin is a range within [0, 1]", i, b.Lower, b.Upper)
		}
		if b.Count == 0 {
			continue
		}
		const rounding = 1e-9 // of a mean of ones
		if !(b.Accuracy >= 0 && b.Accuracy <= 1+rounding && b.Confidence >= 0 && b.Confidence <= 1+rounding) {
			return nil, fmt.Errorf("viz: bins[%d] has accuracy %v and confidence %v: both must be within [0, 1]",
				i, b.Accuracy, b.Confidence)
		}
		total += b.Count
		most = max(most, b.Count)
		ece += float64(b.Count) * math.Abs(b.Accuracy-b.Confidence)
		inset := 0.04 * (b.Upper - b.Lower)
		from, to := b.Lower+inset, b.Upper-inset
		accuracy.add(from, to, 0, b.Accuracy)
		top.add([]float64{from, to}, []float64{b.Accuracy, b.Accuracy})
		gap.add(from, to, b.Accuracy, b.Confidence)
		counts.add(from, to, 0, float64(b.Count))
	}
	if total == 0 {
		return nil, fmt.Errorf("viz: %d bins have no rows: nothing to draw", len(bins))
	}
	unit := span{0, 1}
	upper := newAxes("", frame.YLabel, unit, unit)
	upper.share = 3
	lower := newAxes(frame.XLabel, "rows", unit, span{0, 1.08 * float64(most)})
	p := &panel{title: fmt.Sprintf("%s, ECE = %.3f", frame.Title, ece/float64(total)), axes: []*axes{upper, lower}}
	p.note(fmt.Sprintf("%d rows", total))
	diagonal := newLine([]float64{0, 1}, []float64{0, 1}, stroke(black, 1.2, dashed...))
	upper.add(accuracy, gap, top, diagonal)
	lower.add(counts)
	p.entry("accuracy", accuracy, top)
	p.entry("gap to mean confidence", gap)
	p.entry("perfect calibration", diagonal)
	p.entry("rows", counts)
	return newFigure(frame, p)
}

// calibrationCurve draws the observed coverage at nominal levels, both within [0, 1], on n rows; 0: without the band.
func calibrationCurve(nominal, observed []float64, n int, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Calibration", "nominal level of the interval", "observed coverage", 520, 520)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("viz: calibration on %d rows: a number of rows must not be negative", n)
	}
	rows, dropped, err := finiteRows(column{"nominal", nominal}, column{"observed", observed})
	if err != nil {
		return nil, err
	}
	for k, name := range []string{"nominal", "observed"} {
		for _, v := range rows[k] {
			if v < 0 || v > 1 {
				return nil, fmt.Errorf("viz: %s has %v: a probability must be within [0, 1]", name, v)
			}
		}
	}
	sortRows(rows)
	unit := span{0, 1}
	a := newAxes(frame.XLabel, frame.YLabel, unit.widen(0.01), unit.widen(0.01))
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	diagonal := newLine([]float64{0, 1}, []float64{0, 1}, stroke(black, 1.2, dashed...))
	curve := newLine(rows[0], rows[1], stroke(blue, 1.8))
	if n > 0 {
		band := &area{fill: rgb(0xDDDDDD)}
		for i := range 201 {
			q := float64(i) / 200
			half := 1.96 * math.Sqrt(q*(1-q)/float64(n))
			band.xs = append(band.xs, q)
			band.lower, band.upper = append(band.lower, math.Max(0, q-half)), append(band.upper, math.Min(1, q+half))
		}
		a.add(band)
		p.entry(fmt.Sprintf("95 %% of calibrated models, %d rows", n), band)
	}
	a.add(diagonal, curve)
	points := &dots{xs: rows[0], ys: rows[1], radius: 3, fill: blue, halo: .7}
	a.add(points)
	p.entry("observed coverage", curve, points)
	p.entry("perfect calibration", diagonal)
	return newFigure(frame, p)
}
