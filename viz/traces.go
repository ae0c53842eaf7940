package viz

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg/draw"
)

// Trace is one curve of [Traces].
type Trace struct {
	Name string // for the legend
	Series
	// Style is the number of the colour and the line pattern, 1 to 8, for one that a method keeps in several figures; 0:
	// the trace's place among the others.
	Style int
	// Lower and Upper are the edges of a band about the curve, which is shaded in its colour, such as an interval: one of
	// each for every value; nil: none.
	Lower, Upper []float64
	// NoLine draws the values as points. Of a trace with Lower and Upper it draws the band alone, in the shades of
	// PredictiveBand: up to three such bands, the widest first, which is the palest.
	NoLine bool
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
	// XNames stand at the steps 1, 2, ... of the x axis, in place of numbers; nil: none.
	XNames []string
	// LogX and LogY make an axis logarithmic: all steps, or values, must be above 0.
	LogX, LogY bool
	// Points marks each value, too, for traces of a few.
	Points bool
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
	var x, y []float64 // what the axes must hold
	var bands, lines []mark
	dropped, shade := 0, 0
	for i, t := range traces {
		rows, bad, err := t.rows(opt)
		if err != nil {
			return nil, err
		}
		dropped += bad
		x, y = append(x, rows[0]...), append(y, rows[1]...)
		style := traceStyles[styles[i]]
		band, err := t.band(rows, style.Color, opt)
		if err != nil {
			return nil, err
		}
		if band != nil {
			bands, y = append(bands, band), slices.Concat(y, band.lower, band.upper)
		}
		p.entry(t.Name)
		entry := &p.legend[i]
		if !t.NoLine {
			curve := newLine(rows[0], rows[1], style)
			lines, entry.marks = append(lines, curve), append(entry.marks, curve)
		} else if band != nil {
			if shade == len(bandShades) {
				return nil, fmt.Errorf("viz: trace %q is one of more than %d bands with NoLine", t.Name, len(bandShades))
			}
			band.fill = tint(skyBlue, bandShades[shade])
			entry.marks = append(entry.marks, band)
			shade++
		}
		if !t.NoLine && opt.Points || t.NoLine && band == nil {
			points := &dots{xs: rows[0], ys: rows[1], radius: 3, fill: style.Color}
			if t.NoLine { // whose pattern would tell them apart
				points.shape = traceShapes[styles[i]]
			}
			lines, entry.marks = append(lines, points), append(entry.marks, points)
		}
	}
	p.note(droppedNote(dropped))
	across := spanOf(x).widen(.015)
	if opt.LogX {
		across = spanOf(x).widenLog(.015)
	}
	if opt.TruthName != "" {
		if !finite(opt.Truth) || opt.LogY && opt.Truth <= 0 {
			return nil, fmt.Errorf("viz: Truth = %v: it must be finite, and above 0 with LogY", opt.Truth)
		}
		y = append(y, opt.Truth)
		truth := level(opt.Truth, across, stroke(black, 1))
		lines = append(lines, truth)
		p.entry(opt.TruthName, truth)
	}
	a := newAxes(frame.XLabel, frame.YLabel, across, opt.upright(y))
	a.x.whole = !slices.ContainsFunc(x, func(v float64) bool { return v != math.Round(v) })
	a.x.log, a.y.log = opt.LogX, opt.LogY
	for i, name := range opt.XNames {
		a.x.names = append(a.x.names, tick{float64(i + 1), cutName(name, frame)})
	}
	a.add(append(bands, lines...)...)
	p.axes = []*axes{a}
	return newFigure(frame, p)
}

// traceStyles are the colours and patterns of traces, in order.
var traceStyles = []draw.LineStyle{stroke(blue, 1.8), stroke(vermillion, 1.6, dashed...), stroke(green, 1.8, dotted...),
	stroke(orange, 1.6, dashDot...), stroke(purple, 1.6), stroke(skyBlue, 1.6, dashed...), stroke(grey, 2.2),
	stroke(black, 1.6, dotted...)}

// traceShapes are the shapes of traces' points without a line, in order.
var traceShapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{},
	draw.RingGlyph{}, draw.TriangleGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}}

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

// upright is the y axis of values.
func (o TraceOptions) upright(values []float64) span {
	s := span{slices.Min(values), slices.Max(values)}
	if !o.LogY {
		return s.open().widen(.05)
	}
	s = span{max(s.lo, 1e-300), max(s.hi, 1e-300)} // below, logarithms lose their digits
	if s.hi <= s.lo*(1+1e-9) {
		s = span{s.lo / 2, s.hi * 2}
	}
	return s.widenLog(.05)
}

// rows returns the finite points, [steps, values].
func (t Trace) rows(opt TraceOptions) (rows [][]float64, dropped int, err error) {
	if len(t.Value) == 0 {
		return nil, 0, fmt.Errorf("viz: trace %q is empty: nothing to draw", t.Name)
	}
	of := t.Series.rows
	if opt.Outlines {
		of = t.points
	}
	if rows, dropped, err = of(t.Name); err != nil {
		return nil, 0, err
	}
	for i, log := range []bool{opt.LogX, opt.LogY} {
		for _, v := range rows[i] {
			if log && v <= 0 {
				return nil, 0, fmt.Errorf("viz: trace %q has %v, which %s cannot show: a logarithmic axis takes values above 0",
					t.Name, v, []string{"LogX", "LogY"}[i])
			}
		}
	}
	return rows, dropped, nil
}

// band is the trace's; nil if it has none.
func (t Trace) band(rows [][]float64, colour color.Color, opt TraceOptions) (*area, error) {
	if t.Lower == nil && t.Upper == nil {
		return nil, nil
	}
	if opt.Outlines {
		return nil, fmt.Errorf("viz: trace %q has Lower and Upper, which a curve with Outlines cannot have", t.Name)
	}
	for _, edge := range []column{{"Lower", t.Lower}, {"Upper", t.Upper}} {
		if len(edge.values) != len(rows[0]) {
			return nil, fmt.Errorf("viz: trace %q has %d values of %s: it must have one for each of its %d finite values",
				t.Name, len(edge.values), edge.name, len(rows[0]))
		}
		for _, v := range edge.values {
			if !finite(v) || opt.LogY && v <= 0 {
				return nil, fmt.Errorf("viz: trace %q has %v in %s: it must be finite, and above 0 with LogY", t.Name, v,
					edge.name)
			}
		}
	}
	return &area{xs: rows[0], lower: t.Lower, upper: t.Upper, fill: withAlpha(colour.(color.NRGBA), .16)}, nil
}
