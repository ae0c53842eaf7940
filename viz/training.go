package viz

import (
	"fmt"
	"image/color"
	"slices"

	"gobnn/bayes/fit"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series is a quantity along a run.
type Series struct {
	// Step of each value, ascending; nil: 1, 2, 3, ...
	Step  []float64
	Value []float64
}

// trainingCurves draws a training and a validation curve; one of them may be empty.
func trainingCurves(training, validation Series, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Training", "step", "training loss", 640, 440)
	if err != nil {
		return nil, err
	}
	if len(training.Value) == 0 && len(validation.Value) == 0 {
		return nil, fmt.Errorf("viz: training and validation are both empty: nothing to draw")
	}
	p := &panel{title: frame.Title}
	train, droppedTrain, err := training.rows("training")
	if err != nil {
		return nil, err
	}
	valid, droppedValid, err := validation.rows("validation")
	if err != nil {
		return nil, err
	}
	p.note(droppedNote(droppedTrain + droppedValid))
	steps := spanOf(train[0], valid[0])
	x := steps.widen(0.015)

	add := func(label string, rows [][]float64) *axes {
		y, cut := robustSpan(rows[1])
		a := newAxes("", label, x, y.widen(0.08)) // the mark of the best stands out of its curve
		p.axes = append(p.axes, a)
		if cut > 0 {
			p.note(fmt.Sprintf("%s: the %d greatest values are cut off", label, cut))
		}
		return a
	}
	if len(train[0]) > 0 {
		p.curve(add(frame.YLabel, train), frame.YLabel, train, blue, nil)
	}
	if len(valid[0]) > 0 {
		a, best := add("validation NLPD", valid), floats.MinIdx(valid[1])
		curve := newLine(valid[0], valid[1], stroke(vermillion, 1.6, dashed...))
		if len(valid[0]) > manySteps {
			curve.style = stroke(vermillion, 1.2) // dashes would break up a curve as dense as this
		}
		lowest := &dots{xs: valid[0][best : best+1], ys: valid[1][best : best+1], shape: draw.BoxGlyph{}, radius: 4,
			fill: black, halo: 1}
		a.add(curve, lowest)
		p.entry("validation NLPD [nats per row]", curve)
		p.entry(fmt.Sprintf("best: %s at %s %s", number(valid[1][best]), frame.XLabel, number(valid[0][best])), lowest)
	}
	p.axes[len(p.axes)-1].x.label = frame.XLabel
	return newFigure(frame, p)
}

// manySteps is the largest number of steps that are drawn one by one.
const manySteps = 400

// curve adds a line of the values of steps. Of many, which would cover another curve and each other, the line is faint,
// below their running mean over a fiftieth of them.
func (p *panel) curve(a *axes, label string, rows [][]float64, colour color.NRGBA, dashes []vg.Length) {
	xs, ys := rows[0], rows[1]
	if len(xs) > manySteps {
		window := max(5, len(xs)/50)
		a.add(newLine(xs, ys, stroke(tint(colour, .6), .7)))
		all := runningMean(ys, window)
		xs, ys = nil, nil
		for i := 0; i < len(all); i += max(1, window/10) {
			xs, ys = append(xs, rows[0][i]), append(ys, all[i])
		}
		if note := fmt.Sprintf("faint: each step; thick: running means of %d", window); !slices.Contains(p.notes, note) {
			p.note(note)
		}
	}
	curve := newLine(xs, ys, stroke(colour, 1.8, dashes...))
	if dashes != nil {
		curve.style.Width = 1.2
	}
	a.add(curve)
	p.entry(label, curve)
}

// TrainingCurvesOf shows how a run was trained: the training loss of each step, thin, with a running mean over a
// fiftieth of them, and below it the validation score, with its lowest value marked as the best. Other curves of a run
// are drawn by [Traces] with [SeriesOf].
func TrainingCurvesOf(result *fit.Result, frame Frame) (*Figure, error) {
	if result == nil {
		return nil, fmt.Errorf("viz: training curves of a result that is nil: check the error of the function that made it")
	}
	loss, validation := result.Curve(fit.LossCurve), result.Curve(fit.ValidationCurve)
	if len(loss.Steps) == 0 && len(validation.Steps) == 0 {
		return nil, fmt.Errorf("viz: training curves: the result has no training curves, but %d others: nothing in it was "+
			"trained", len(result.Curves))
	}
	return trainingCurves(SeriesOf(loss), SeriesOf(validation), frame)
}

// SeriesOf is a curve of a result as a Series.
func SeriesOf(c fit.Curve) Series {
	s := Series{Value: c.Values}
	for _, step := range c.Steps {
		s.Step = append(s.Step, float64(step))
	}
	return s
}

// points gives the finite steps and values; both empty for an empty series.
func (s Series) points(name string) (rows [][]float64, dropped int, err error) {
	if len(s.Value) == 0 && len(s.Step) == 0 {
		return [][]float64{nil, nil}, 0, nil
	}
	step := s.Step
	if step == nil {
		step = make([]float64, len(s.Value))
		for i := range step {
			step[i] = float64(i + 1)
		}
	}
	return finiteRows(column{name + ".Step", step}, column{name + ".Value", s.Value})
}

// rows is points whose steps must not fall.
func (s Series) rows(name string) (rows [][]float64, dropped int, err error) {
	if rows, dropped, err = s.points(name); err != nil {
		return nil, 0, err
	}
	for i := 1; i < len(rows[0]); i++ {
		if rows[0][i] < rows[0][i-1] {
			return nil, 0, fmt.Errorf("viz: %s.Step falls from %v to %v: steps must be ascending",
				name, rows[0][i-1], rows[0][i])
		}
	}
	return rows, dropped, nil
}

// runningMean is the centred running mean; near the ends its window has fewer values.
func runningMean(values []float64, window int) []float64 {
	sums := make([]float64, len(values)+1)
	for i, v := range values {
		sums[i+1] = sums[i] + v
	}
	out := make([]float64, len(values))
	for i := range values {
		lo, hi := max(0, i-window/2), min(len(values), i+(window+1)/2)
		out[i] = (sums[hi] - sums[lo]) / float64(hi-lo)
	}
	return out
}

// robustSpan is the range of a curve's values without outliers: if the greatest few (at most 5 %) would squeeze the
// rest into less than a fifth of the axis, the range ends above the rest, and cut is their number.
func robustSpan(curve []float64) (s span, cut int) {
	all := spanOf(curve)
	sorted := slices.Sorted(slices.Values(curve))
	s = span{sorted[0], sorted[int(0.95*float64(len(sorted)-1))]}
	s.hi += 0.15 * (s.hi - s.lo)
	if s.hi <= s.lo || all.hi-all.lo < 5*(s.hi-s.lo) {
		return all, 0
	}
	for _, v := range curve {
		if v > s.hi {
			cut++
		}
	}
	return s, cut
}
