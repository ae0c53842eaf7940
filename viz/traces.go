package viz

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// Trace is one curve of [Traces].
type Trace struct {
	Name string // for the legend
	Series
	// Error is half the length of an error bar at each point, such as two standard errors; 0: none. Points with bars have
	// marks, and those of several traces at the same steps stand a little beside each other. Nil: a curve without marks.
	Error []float64
	// Style is the number of the colour and the line pattern, 1 to 8, for one that a method keeps in several figures; 0:
	// the trace's place among the others.
	Style int
}

// TraceOptions are the options of [Traces].
type TraceOptions struct {
	Frame
	// Truth is drawn as a horizontal line if TruthName, its name in the legend, is not empty.
	Truth     float64
	TruthName string
	// Outlines allows steps that decrease: a trace is then the line through its points in the given order, such as the
	// outline of a region.
	Outlines bool
	// LogX and LogY make an axis logarithmic: all of its values must be above 0. An error bar that reaches 0 ends at the
	// frame.
	LogX, LogY bool
	// Most is the end of the y axis where values are higher; these are left out, with an arrow in their place. 0: the axis
	// holds all values.
	Most float64
}

// Traces compares a quantity along several runs: a curve for each, at most eight.
func Traces(traces []Trace, opt TraceOptions) (*Figure, error) {
	frame, err := opt.fill("Traces", "step", "value", 640, 420)
	if err != nil {
		return nil, err
	}
	if len(traces) == 0 || len(traces) > len(traceStyles) {
		return nil, fmt.Errorf("viz: %d traces: from 1 to %d can be told apart", len(traces), len(traceStyles))
	}
	styles, err := stylesOf(traces)
	if err != nil {
		return nil, err
	}
	p := &panel{title: frame.Title}
	drawn := make([][][]float64, len(traces)) // the rows of each trace
	var x, y [][]float64                      // what the axes must hold
	dropped := 0
	for i, t := range traces {
		rows, bad, err := t.rows(opt)
		if err != nil {
			return nil, err
		}
		drawn[i] = rows
		dropped += bad
		x, y = append(x, rows[0]), append(y, rows[1])
		if t.Error != nil {
			for k, half := range rows[2] {
				y = append(y, []float64{rows[1][k] + half})
				if low := rows[1][k] - half; !opt.LogY || low > 0 {
					y = append(y, []float64{low})
				}
			}
		}
	}
	p.note(droppedNote(dropped))
	across := widened(x, .015, opt.LogX)
	if places := asides(traces, x, across, opt.LogX); places != nil {
		for i := range traces {
			drawn[i][0] = places[i]
		}
		across = widened(places, .03, opt.LogX) // the points have a width
	}
	whole := !slices.ContainsFunc(slices.Concat(x...), func(v float64) bool { return v != math.Round(v) })
	var marks []mark
	for i := range traces {
		all := traces[i].marks(drawn[i], traceStyles[styles[i]], traceMarks[styles[i]])
		var thumbnails []plot.Thumbnailer
		for _, m := range all {
			thumbnails = append(thumbnails, m)
		}
		p.entry(traces[i].Name, thumbnails...)
		marks = append(marks, all...)
	}
	if opt.TruthName != "" {
		if !finite(opt.Truth) || opt.LogY && opt.Truth <= 0 {
			return nil, fmt.Errorf("viz: Truth = %v: it must be finite, and above 0 with LogY", opt.Truth)
		}
		y = append(y, []float64{opt.Truth})
		truth := level(opt.Truth, across, stroke(black, 1))
		marks = append(marks, truth)
		p.entry(opt.TruthName, truth)
	}
	highest, err := opt.cut(y)
	if err != nil {
		return nil, err
	}
	a := newAxes(frame.XLabel, frame.YLabel, across, widened(y, .05, opt.LogY))
	switch {
	case opt.LogX:
		logarithmic(&a.plot.X)
	case whole:
		a.plot.X.Tick.Marker = wholeTicks{}
	}
	if opt.LogY {
		logarithmic(&a.plot.Y)
	}
	a.add(gridLines{})
	for _, m := range marks {
		a.add(m)
	}
	if highest > 0 {
		for i, rows := range drawn {
			a.add(&peaks{xs: rows[0], ys: rows[1], colour: traceStyles[styles[i]].Color})
		}
		p.note(peaksNote(highest))
	}
	p.axes = []*axes{a}
	return newFigure(frame, p)
}

// traceStyles are the colours and patterns of traces, in order, and traceMarks the shapes of their points with error
// bars.
var (
	traceStyles = []draw.LineStyle{stroke(blue, 1.8), stroke(vermillion, 1.6, dashed...), stroke(green, 1.8, dotted...),
		stroke(orange, 1.6, dashDot...), stroke(purple, 1.6), stroke(skyBlue, 1.6, dashed...), stroke(grey, 2.2),
		stroke(black, 1.6, dotted...)}
	traceMarks = []shape{circle, triangle, square, diamond, circle, triangle, square, diamond}
)

// stylesOf returns the index of each trace's style in traceStyles. It is an error if two are the same.
func stylesOf(traces []Trace) ([]int, error) {
	styles, owners := make([]int, len(traces)), map[int]string{}
	for i, t := range traces {
		if t.Style < 0 || t.Style > len(traceStyles) {
			return nil, fmt.Errorf("viz: trace %q: Style = %d: it must be within 1 and %d (0: the trace's place)", t.Name,
				t.Style, len(traceStyles))
		}
		if styles[i] = t.Style - 1; t.Style == 0 {
			styles[i] = i
		}
		if owner, taken := owners[styles[i]]; taken {
			return nil, fmt.Errorf("viz: traces %q and %q both have Style %d: they could not be told apart", owner, t.Name,
				styles[i]+1)
		}
		owners[styles[i]] = t.Name
	}
	return styles, nil
}

// cut lowers what is above Most, of the values that the axis must hold, and gives the highest of it; 0: nothing is.
func (o TraceOptions) cut(values [][]float64) (highest float64, err error) {
	if o.Most == 0 {
		return 0, nil
	}
	least := math.Inf(1)
	for _, column := range values {
		least = min(least, slices.Min(column))
	}
	if !finite(o.Most) || o.Most <= least {
		return 0, fmt.Errorf("viz: Most = %v: the axis must end above the lowest value, %v (0: at the highest)", o.Most,
			least)
	}
	for k, column := range values {
		if top := slices.Max(column); top > o.Most {
			highest = max(highest, top)
			values[k] = slices.Clone(column)
			for i, v := range column {
				values[k][i] = min(v, o.Most)
			}
		}
	}
	return highest, nil
}

// Error bars nearer to each other than tooNear would cover each other: they stand besideBy apart. Both are shares of
// the axis, so that the axis can be made to hold what is moved.
const (
	tooNear  = .01
	besideBy = .0125
)

// asides returns the places of each trace's marks along the axis, moved so that error bars do not cover each other; nil
// if no trace has error bars. Traces with no step near a step of another stay where they are.
func asides(traces []Trace, x [][]float64, across span, log bool) [][]float64 {
	if !slices.ContainsFunc(traces, func(t Trace) bool { return t.Error != nil }) {
		return nil
	}
	place := func(v float64) float64 { return (v - across.lo) / (across.hi - across.lo) }
	if log {
		place = func(v float64) float64 { return math.Log(v/across.lo) / math.Log(across.hi/across.lo) }
	}
	places := make([][]float64, len(traces)) // in order, of traces with error bars
	group := make([]int, len(traces))        // traces with steps near each other have one number
	for i, t := range traces {
		group[i] = i
		if t.Error == nil {
			continue
		}
		for _, v := range x[i] {
			places[i] = append(places[i], place(v))
		}
		slices.Sort(places[i])
		for j := range i {
			if from, to := group[i], group[j]; from != to && meet(places[i], places[j]) {
				for k := range i + 1 {
					if group[k] == from {
						group[k] = to
					}
				}
			}
		}
	}
	moved := make([][]float64, len(traces))
	for i := range traces {
		size, before := 0, 0
		for k := range traces {
			if group[k] == group[i] {
				size++
				if k < i {
					before++
				}
			}
		}
		by := float64(2*before-size+1) / 2 * besideBy
		for _, v := range x[i] {
			if log {
				v *= math.Exp(by * math.Log(across.hi/across.lo))
			} else {
				v += by * (across.hi - across.lo)
			}
			moved[i] = append(moved[i], v)
		}
	}
	return moved
}

// meet says whether a place of a is near to one of b; both are in order.
func meet(a, b []float64) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case math.Abs(a[i]-b[j]) < tooNear:
			return true
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// widened is the range of all values with room at both ends.
func widened(values [][]float64, fraction float64, log bool) span {
	if !log {
		return spanOf(values...).widen(fraction)
	}
	all := slices.Concat(values...)
	s := span{slices.Min(all), slices.Max(all)}
	if s.hi <= s.lo*(1+1e-9) {
		s = span{max(s.lo/2, math.SmallestNonzeroFloat64), s.hi * 2}
	}
	return s.widenLog(fraction)
}

// rows returns the finite points, [steps, values], with halves of error bars where there are some.
func (t Trace) rows(opt TraceOptions) (rows [][]float64, dropped int, err error) {
	if len(t.Value) == 0 {
		return nil, 0, fmt.Errorf("viz: trace %q is empty: nothing to draw", t.Name)
	}
	var more []column
	if t.Error != nil {
		more = []column{{t.Name + ".Error", t.Error}}
	}
	of := t.Series.rows
	if opt.Outlines {
		of = t.points
	}
	if rows, dropped, err = of(t.Name, more...); err != nil {
		return nil, 0, err
	}
	for k, e := range t.Error {
		if e < 0 {
			return nil, 0, fmt.Errorf("viz: trace %q: Error[%d] = %v: it must not be negative", t.Name, k, e)
		}
	}
	for k, axis := range []struct {
		name string
		log  bool
	}{{"LogX", opt.LogX}, {"LogY", opt.LogY}} {
		for _, v := range rows[k] {
			if axis.log && v <= 0 {
				return nil, 0, fmt.Errorf("viz: trace %q has %v, which %s cannot show: a logarithmic axis takes values above 0",
					t.Name, v, axis.name)
			}
		}
	}
	return rows, dropped, nil
}

// marks returns the marks of a trace: the line and, with error bars, the bars and points.
func (t Trace) marks(rows [][]float64, style draw.LineStyle, form shape) []mark {
	curve := &line{xs: rows[0], ys: rows[1], style: style}
	if t.Error == nil {
		return []mark{curve}
	}
	bars := &intervals{xs: rows[0], style: stroke(style.Color, 1.2)}
	for k, v := range rows[1] {
		bars.lower, bars.upper = append(bars.lower, v-rows[2][k]), append(bars.upper, v+rows[2][k])
	}
	points := &dots{xs: rows[0], ys: rows[1], shape: form, radius: 2.8, fill: style.Color, edge: stroke(white, .6)}
	return []mark{curve, bars, points}
}
