package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// BarOptions are the options of [Bars].
type BarOptions struct {
	Frame
	// Marks are numbers to compare with, one for each bar, such as published ones; NaN: none. MarkName is their name in
	// the legend.
	Marks    []float64
	MarkName string
	// Most is the end of the axis; longer bars are cut off, with an arrow before their number. Default: the longest bar or
	// mark.
	Most float64
	// Log makes the axis logarithmic, from below the least bar or mark: all must be above 0, and there is no Most. A
	// length then says nothing: compare ends.
	Log bool
}

// Bars compares a number of several methods, one horizontal bar each, from the top, with its name beside it and its
// value at its end. Values that are not finite have no bar and say so.
func Bars(names []string, values []float64, opt BarOptions) (*Figure, error) {
	frame, err := opt.fill("Comparison", "value", "", 520, max(240, 90+24*len(names)))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 || len(names) != len(values) {
		return nil, fmt.Errorf("viz: %d names of %d values: each bar has one of both", len(names), len(values))
	}
	if opt.Marks != nil && len(opt.Marks) != len(values) {
		return nil, fmt.Errorf("viz: %d Marks of %d bars", len(opt.Marks), len(values))
	}
	if !finite(opt.Most) || opt.Most < 0 {
		return nil, fmt.Errorf("viz: Most = %v: the axis ends at a finite number above 0 (0: at the longest bar or mark)",
			opt.Most)
	}
	least, most := 0., opt.Most
	if opt.Log {
		least = math.Inf(1)
	}
	for _, v := range slices.Concat(values, opt.Marks) {
		if opt.Log && (v <= 0 || opt.Most != 0) {
			return nil, fmt.Errorf("viz: a bar or mark of %v with Log, and Most = %v: numbers must be above 0, and Most unset",
				v, opt.Most)
		}
		if finite(v) {
			least = math.Min(least, v)
			if opt.Most == 0 {
				most = math.Max(most, v)
			}
		}
	}
	if !(most > least || opt.Log && most == least) {
		return nil, fmt.Errorf("viz: no bar of %d has a length: nothing to draw", len(values))
	}
	p := &panel{title: frame.Title}
	room, from := .35*(most-least), 0. // room for the numbers
	if opt.Log {
		from = least / math.Pow(most/least, .06) / 1.1
		room, least = most*(math.Pow(most/from, .28)-1), from
	}
	a := newAxes(frame.XLabel, frame.YLabel, span{least, most + room}, span{-.6, float64(len(names)) - .4})
	a.x.log = opt.Log
	lengths, marks := &bars{fill: tint(blue, .35)}, &bars{edge: stroke(vermillion, 2)}
	a.add(lengths, marks)
	for i, name := range names {
		at := float64(len(names) - 1 - i)
		a.y.names = append(a.y.names, tick{at, cutName(name, frame)})
		text, end := "not finite", from
		if v := values[i]; finite(v) {
			end = math.Min(v, most)
			lengths.add(math.Min(from, end), math.Max(from, end), at-.36, at+.36)
			text = number(v)
			if v > most { // the bar is cut
				text = "→ " + text
			}
		}
		beside := math.Max(from, end)
		if opt.Marks != nil && finite(opt.Marks[i]) && opt.Marks[i] > most {
			text += fmt.Sprintf(" (%s → %s)", cmp.Or(opt.MarkName, "mark"), number(opt.Marks[i]))
		} else if opt.Marks != nil && finite(opt.Marks[i]) {
			m := opt.Marks[i]
			if far := a.x.norm(m) - a.x.norm(beside); far >= 0 && far < .25 { // the number stands beyond the mark
				beside = m
			}
			marks.add(m, m, at-.44, at+.44)
		}
		a.add(&textMark{x: beside, y: at, text: text, beside: true})
	}
	if opt.MarkName != "" {
		p.entry(frame.XLabel, lengths)
		p.entry(opt.MarkName, &line{style: marks.edge})
	}
	p.axes = []*axes{a}
	return newFigure(frame, p)
}
