package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot/vg/draw"
)

// DecisionOptions are the options of [DecisionMap].
type DecisionOptions struct {
	Frame
	// Levels of probability to draw lines at, each within (0, 1); nil: 0.1, 0.25, 0.5, 0.75, 0.9.
	Levels []float64
	// PointsX, PointsY and Classes are data points and their classes, 0 to 4.
	PointsX, PointsY []float64
	Classes          []int
	// ClassNames of class 0, 1, ... for the legend; nil: "class 0", ...
	ClassNames []string
	// ProbabilityLabel of the colour bar; empty: "predicted probability of class 1".
	ProbabilityLabel string
	// Symbol of the probability, or of another quantity from 0 to 1, in the legend; empty: "p".
	Symbol string

	draws [][]float64 // the probabilities of single particles at the lattice's points: [draws, len(Values)]
}

// maxClasses is the number of classes with their own shape and colour.
const maxClasses = 5

// DecisionMap shows a classifier of two features: the predicted probability of class 1, in [0, 1], as colours with
// level lines, and the data.
func DecisionMap(probability Field, opt DecisionOptions) (*Figure, error) {
	frame, err := opt.fill("Predictive probability", "feature 1", "feature 2", 640, 480)
	if err != nil {
		return nil, err
	}
	levels, groups, err := levelsOf(opt.Levels)
	if err != nil {
		return nil, err
	}
	dropped, err := checkProbability(probability)
	if err != nil {
		return nil, err
	}
	draws, bad, err := boundaries(probability, opt.draws)
	if err != nil {
		return nil, err
	}
	points, more, err := classPoints(opt)
	if err != nil {
		return nil, err
	}

	f := probability
	x, y := span{f.X[0], f.X[len(f.X)-1]}, span{f.Y[0], f.Y[len(f.Y)-1]}
	a := newAxes(frame.XLabel, frame.YLabel, x, y)
	label := cmp.Or(opt.ProbabilityLabel, "predicted probability of class 1")
	bar := &colourBar{label: label, values: span{0, 1}, table: divergingColours}
	p := &panel{title: frame.Title, axes: []*axes{a}, bar: bar}
	p.note(droppedNote(dropped + bad + more))
	if outside := countOutside(points, x, y); outside > 0 {
		p.note(fmt.Sprintf("points outside the map: %d, not drawn", outside))
	}
	a.add(&heat{field: f, values: bar.values, table: divergingColours})
	single := &line{pieces: draws, style: stroke(withAlpha(black, .45), .7)}
	if len(opt.draws) > 0 {
		a.add(single)
	}
	for _, l := range levels {
		a.add(&line{pieces: f.contour(l.value), style: l.style})
	}
	bar.levels = levels
	a.framed = true

	for class, d := range points {
		if len(d.xs) == 0 {
			continue
		}
		a.add(d)
		name := fmt.Sprintf("class %d", class)
		if class < len(opt.ClassNames) {
			name = opt.ClassNames[class]
		}
		p.entry(name, d)
	}
	symbol := cmp.Or(opt.Symbol, "p")
	for _, g := range groups {
		p.entry(symbol+" = "+strings.Join(g.values, ", "), &line{style: g.style})
	}
	if len(opt.draws) > 0 {
		p.entry(symbol+" = 0.5 of single particles", single)
	}
	return newFigure(frame, p)
}

// levelGroup holds the levels at one distance from 1/2, in ascending order, as the legend names them. They share a
// style; the colours tell them apart.
type levelGroup struct {
	values []string
	style  draw.LineStyle
}

// levelsOf returns the level lines, in ascending order, and their groups, from 1/2 outwards.
func levelsOf(values []float64) (levels []barLevel, groups []levelGroup, err error) {
	values = slices.Clone(values)
	if len(values) == 0 {
		values = []float64{0.1, 0.25, 0.5, 0.75, 0.9}
	}
	slices.Sort(values)
	for _, l := range values {
		if !(l > 0 && l < 1) {
			return nil, nil, fmt.Errorf("viz: Levels has %v: a level of probability must be within (0, 1)", l)
		}
	}
	var distances []float64
	members := map[float64][]string{}
	texts := numbers(values...)
	for i, l := range values {
		d := math.Round(math.Abs(l-0.5)*1e6) / 1e6
		if members[d] == nil {
			distances = append(distances, d)
		}
		members[d] = append(members[d], texts[i])
	}
	slices.Sort(distances)
	styles := []draw.LineStyle{
		stroke(black, 1.7), stroke(black, 1.0, dashed...), stroke(black, 1.0, dotted...), stroke(black, 1.0, dashDot...),
	}
	styleOf := func(l float64) draw.LineStyle {
		k := sort.SearchFloat64s(distances, math.Abs(l-0.5)-1e-6)
		if distances[0] > 1e-6 {
			k++ // the thick line is for 1/2 alone
		}
		return styles[min(k, len(styles)-1)]
	}
	for _, l := range values {
		levels = append(levels, barLevel{value: l, style: styleOf(l)})
	}
	for _, d := range distances {
		groups = append(groups, levelGroup{values: members[d], style: styleOf(0.5 + d)})
	}
	return levels, groups, nil
}

// checkProbability returns an error if the field has values that are no probabilities. dropped is the number of its
// values that are not finite.
func checkProbability(f Field) (dropped int, err error) {
	if dropped, err = f.check("probability"); err != nil {
		return 0, err
	}
	for i, v := range f.Values {
		if finite(v) && (v < -1e-6 || v > 1+1e-6) {
			return 0, fmt.Errorf("viz: probability.Values[%d] = %v: a probability must be within [0, 1] (a logit must go "+
				"through the sigmoid first)", i, v)
		}
	}
	return dropped, nil
}

// boundaries returns the lines where single particles' probabilities, [draws, len(lattice.Values)], are 1/2.
func boundaries(lattice Field, draws [][]float64) (lines []polyline, dropped int, err error) {
	for k, values := range draws {
		f := Field{X: lattice.X, Y: lattice.Y, Values: values}
		bad, err := f.check(fmt.Sprintf("particle %d", k))
		if err != nil {
			return nil, 0, err
		}
		dropped += bad
		lines = append(lines, f.contour(.5)...)
	}
	return lines, dropped, nil
}

// countOutside counts points outside of the rectangle.
func countOutside(points []*dots, x, y span) (n int) {
	for _, d := range points {
		for i := range d.xs {
			if d.xs[i] < x.lo || d.xs[i] > x.hi || d.ys[i] < y.lo || d.ys[i] > y.hi {
				n++
			}
		}
	}
	return n
}

// classPoints gives the marks of each class.
func classPoints(opt DecisionOptions) (classes []*dots, dropped int, err error) {
	if len(opt.PointsX) == 0 && len(opt.PointsY) == 0 && len(opt.Classes) == 0 {
		return nil, 0, nil
	}
	class := make([]float64, len(opt.Classes))
	for i, c := range opt.Classes {
		if c < 0 || c >= maxClasses {
			return nil, 0, fmt.Errorf("viz: Classes[%d] = %d: a class must be within 0 and %d", i, c, maxClasses-1)
		}
		class[i] = float64(c)
	}
	rows, dropped, err := finiteRows(column{"PointsX", opt.PointsX}, column{"PointsY", opt.PointsY},
		column{"Classes", class})
	if err != nil {
		return nil, 0, err
	}
	fills := [maxClasses]dots{
		{shape: circle, fill: rgb(0x08457E)},
		{shape: triangle, fill: rgb(0xA83F00)},
		{shape: square, fill: green},
		{shape: diamond, fill: purple},
		{shape: circle, fill: black},
	}
	classes = make([]*dots, maxClasses)
	for k := range classes {
		d := fills[k]
		d.radius, d.edge = 3, stroke(white, 0.8)
		for i, c := range rows[2] {
			if int(c) == k {
				d.xs, d.ys = append(d.xs, rows[0][i]), append(d.ys, rows[1][i])
			}
		}
		classes[k] = &d
	}
	return classes, dropped, nil
}
