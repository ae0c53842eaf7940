package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg/draw"
)

// BandOptions are the options of [PredictiveBand].
type BandOptions struct {
	Frame
	// TrainX and TrainY are the training points.
	TrainX, TrainY []float64
	// TrainLabel is the points' name in the legend, such as "test rows"; empty: "training data".
	TrainLabel string
	// True is the function that made the data, if it is known; drawn over the range of x.
	True func(x float64) float64

	draws [][]float64 // functions of single particles at x: [draws, len(x)]
	seen  *span       // the range of the data; nil: of TrainX
	notes []string    // below the title

	within *span // what mean and bands are limited to, such as 0 to 1; nil: nothing
}

// PredictiveBand shows a regression of one feature: the predictive mean with 1, 2 and 3 standard deviations shaded from
// dark to light. x, mean and stdDev are equally long, in the units of the feature and the target; x need not be sorted.
// Where x goes beyond the range of the training points, the ground is grey. What is further from the training points
// than twice their range of y is cut, and a note says so: far from data a standard deviation may have any size.
func PredictiveBand(x, mean, stdDev []float64, opt BandOptions) (*Figure, error) {
	frame, err := opt.fill("Predictive mean and standard deviations", "x", "y", 640, 420)
	if err != nil {
		return nil, err
	}
	columns := []column{{"x", x}, {"mean", mean}, {"stdDev", stdDev}}
	for i, d := range opt.draws {
		columns = append(columns, column{fmt.Sprintf("particle %d", i), d})
	}
	for i, s := range stdDev {
		if s < 0 {
			return nil, fmt.Errorf("viz: stdDev[%d] = %v: a standard deviation must not be negative", i, s)
		}
	}
	rows, dropped, err := finiteRows(columns...)
	if err != nil {
		return nil, err
	}
	sortRows(rows)
	train := [][]float64{nil, nil}
	if len(opt.TrainX) > 0 || len(opt.TrainY) > 0 {
		var more int
		if train, more, err = finiteRows(column{"TrainX", opt.TrainX}, column{"TrainY", opt.TrainY}); err != nil {
			return nil, err
		}
		dropped += more
	}
	xs, means, sds, draws := rows[0], rows[1], rows[2], rows[3:]

	seen := opt.seen
	if seen == nil && len(train[0]) > 0 {
		seen = &span{slices.Min(train[0]), slices.Max(train[0])}
	}
	within, isCut := opt.within, false
	if within == nil {
		within = nearby(xs, means, train[1], seen)
	}
	var bands []*area // from the widest
	for k, pale := range bandShades {
		band := &area{xs: xs, fill: tint(skyBlue, pale)}
		for i, sd := range sds {
			half := float64(3-k) * sd
			band.lower, band.upper = append(band.lower, means[i]-half), append(band.upper, means[i]+half)
		}
		bands = append(bands, band)
		isCut = within.limit(band.lower) || isCut
		isCut = within.limit(band.upper) || isCut
	}
	for _, ys := range append(slices.Clone(draws), means) {
		isCut = within.limit(ys) || isCut
	}
	var truth *line
	if opt.True != nil {
		if truth, err = sample(opt.True, spanOf(xs), stroke(vermillion, 1.6, dashed...)); err != nil {
			return nil, err
		}
	}

	xRange := spanOf(xs, train[0])
	yColumns := append([][]float64{bands[0].lower, bands[0].upper, train[1]}, draws...)
	if truth != nil {
		yColumns = append(yColumns, truth.pieces[0].ys)
	}
	a := newAxes(frame.XLabel, frame.YLabel, xRange.widen(0.015), spanOf(yColumns...).widen(0.04))
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	if isCut && opt.within == nil {
		p.note("cut where it is further from the data than twice their range")
	}
	for _, note := range opt.notes {
		p.note(note)
	}
	ground := beyond(seen, spanOf(xs))
	a.add(ground, bands[0], bands[1], bands[2])
	single := &line{style: stroke(withAlpha(purple, 0.75), 0.8)}
	for _, d := range draws {
		single.add(xs, d)
	}
	a.add(single)
	mid := newLine(xs, means, stroke(blue, 2))
	a.add(mid)
	p.entry("mean", mid)
	for k := len(bands) - 1; k >= 0; k-- {
		p.entry(fmt.Sprintf("±%d sd", len(bands)-k), bands[k])
	}
	if len(draws) > 0 {
		p.entry("particles", single)
	}
	if truth != nil {
		a.add(truth)
		p.entry("true function", truth)
	}
	if len(train[0]) > 0 {
		points := &dots{xs: train[0], ys: train[1], radius: 2.6, fill: black, halo: .7, open: frame.Width < openBelow}
		a.add(points)
		if n := len(train[0]); n > mostDots {
			p.note(fmt.Sprintf("%d of the %d points are drawn", n/(1+(n-1)/mostDots), n))
		}
		p.entry(cmp.Or(opt.TrainLabel, "training data"), points)
	}
	if len(ground.x0) > 0 {
		p.entry("beyond the data", ground)
	}
	return newFigure(frame, p)
}

// bandShades are the parts of white in nested bands, from the widest.
var bandShades = []float64{.8, .58, .3}

// openBelow is the width of a figure, in CSS pixels, below which points are open.
const openBelow = 300

// nearby is the range of the training points and of the means among them, and twice as much on each side; nil if there
// are none, or all are alike.
func nearby(xs, means, trainY []float64, seen *span) *span {
	if len(trainY) == 0 || seen == nil {
		return nil
	}
	data := span{slices.Min(trainY), slices.Max(trainY)}
	for i, x := range xs {
		if x >= seen.lo && x <= seen.hi {
			data.lo, data.hi = min(data.lo, means[i]), max(data.hi, means[i])
		}
	}
	if data.lo == data.hi {
		return nil
	}
	return &span{data.lo - 2*(data.hi-data.lo), data.hi + 2*(data.hi-data.lo)}
}

// limit brings values into the range, and says whether one was beyond; nil leaves them as they are.
func (s *span) limit(values []float64) (beyond bool) {
	if s == nil {
		return false
	}
	for i, v := range values {
		values[i] = min(max(v, s.lo), s.hi)
		beyond = beyond || values[i] != v
	}
	return beyond
}

// beyond is the ground beside the data, of the parts of x below and above their range; none if it is not known.
func beyond(data *span, x span) *bars {
	b := &bars{fill: withAlpha(black, .08)} // the grid is seen through it
	if data == nil {
		return b
	}
	for _, side := range []span{{x.lo, min(data.lo, x.hi)}, {max(data.hi, x.lo), x.hi}} {
		if side.lo < side.hi {
			b.add(side.lo, side.hi, math.Inf(-1), math.Inf(1))
		}
	}
	return b
}

// sample evaluates a function at 400 points; it must be finite somewhere.
func sample(f func(float64) float64, x span, style draw.LineStyle) (*line, error) {
	xs, ys := floats.Span(make([]float64, 400), x.lo, x.hi), make([]float64, 400)
	for i := range xs {
		ys[i] = f(xs[i])
	}
	rows, _, err := finiteRows(column{"x", xs}, column{fmt.Sprintf("True on [%.4g, %.4g]", x.lo, x.hi), ys})
	if err != nil {
		return nil, err
	}
	return newLine(rows[0], rows[1], style), nil
}
