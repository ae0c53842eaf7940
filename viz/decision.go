package viz

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"strings"

	"gonum.org/v1/plot"
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
	// Draws are the probabilities of class 1 of single particles at the lattice's points, [draws, len(Values)], in the
	// order of Field.Values: for each, a thin line is drawn where the probability is 1/2.
	Draws [][]float64
	// ProbabilityLabel of the colour bar; empty: "predicted probability of class 1".
	ProbabilityLabel string
	// Symbol of the probability, or of another quantity from 0 to 1, in the legend; empty: "p".
	Symbol string
}

// maxClasses is how many classes have a shape and a colour of their own.
const maxClasses = 5

// DecisionMap shows a classifier of two features: the predicted probability of class 1, in [0, 1], as colours with
// level lines, and the data.
func DecisionMap(probability Field, opt DecisionOptions) (*Figure, error) {
	label := opt.ProbabilityLabel
	if label == "" {
		label = "predicted probability of class 1"
	}
	frame, err := opt.fill("Predictive probability", "feature 1", "feature 2", 640, 480)
	if err != nil {
		return nil, err
	}
	symbol := cmp.Or(opt.Symbol, "p")
	levels := append([]float64(nil), opt.Levels...)
	if levels == nil {
		levels = []float64{0.1, 0.25, 0.5, 0.75, 0.9}
	}
	sort.Float64s(levels)
	for _, l := range levels {
		if !(l > 0 && l < 1) {
			return nil, fmt.Errorf("viz: Levels has %v: a level of probability must be within (0, 1)", l)
		}
	}
	dropped, err := probability.check("probability")
	if err != nil {
		return nil, err
	}
	for i, v := range probability.Values {
		if finite(v) && (v < -1e-6 || v > 1+1e-6) {
			return nil, fmt.Errorf("viz: probability.Values[%d] = %v: a probability must be within [0, 1] (a logit must go "+
				"through the sigmoid first)", i, v)
		}
	}
	var draws []polyline
	for k, values := range opt.Draws {
		draw := Field{X: probability.X, Y: probability.Y, Values: values}
		bad, err := draw.check(fmt.Sprintf("Draws[%d]", k))
		if err != nil {
			return nil, err
		}
		dropped += bad
		draws = append(draws, draw.contour(.5)...)
	}
	points, more, err := classPoints(opt)
	if err != nil {
		return nil, err
	}
	table, err := divergingTable()
	if err != nil {
		return nil, fmt.Errorf("viz: colour table: %w", err)
	}

	f := probability
	a := newAxes(frame.XLabel, frame.YLabel, span{f.X[0], f.X[len(f.X)-1]}, span{f.Y[0], f.Y[len(f.Y)-1]})
	bar := &colourBar{label: label, values: span{0, 1}, table: table}
	p := &panel{title: frame.Title, axes: []*axes{a}, bar: bar}
	p.note(droppedNote(dropped + more))
	outside := 0
	for _, d := range points {
		for i := range d.xs {
			if d.xs[i] < f.X[0] || d.xs[i] > f.X[len(f.X)-1] || d.ys[i] < f.Y[0] || d.ys[i] > f.Y[len(f.Y)-1] {
				outside++
			}
		}
	}
	if outside > 0 {
		p.note(fmt.Sprintf("points outside the map: %d, not drawn", outside))
	}
	a.add(&heat{field: f, values: bar.values, table: table})

	// Levels equally far from 1/2 share a style: the colours say which is which.
	var distances []float64
	members := map[float64][]string{}
	told := numbers(levels...)
	for i, l := range levels {
		d := math.Round(math.Abs(l-0.5)*1e6) / 1e6
		if members[d] == nil {
			distances = append(distances, d)
		}
		members[d] = append(members[d], told[i])
	}
	sort.Float64s(distances)
	styles := []barLevel{{style: stroke(black, 1.7)}, {style: stroke(black, 1.0, dashed...)},
		{style: stroke(black, 1.0, dotted...)}, {style: stroke(black, 1.0, dashDot...)}}
	style := func(l float64) barLevel {
		k := sort.SearchFloat64s(distances, math.Abs(l-0.5)-1e-6)
		if distances[0] > 1e-6 {
			k++ // the thick line is for 1/2 alone
		}
		s := styles[min(k, len(styles)-1)]
		s.value = l
		return s
	}
	single := &paths{lines: draws, style: stroke(withAlpha(black, .45), .7)}
	if len(opt.Draws) > 0 {
		a.add(single)
	}
	for _, l := range levels {
		s := style(l)
		a.add(&paths{lines: f.contour(l), style: s.style})
		bar.levels = append(bar.levels, s)
	}
	a.framed()
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
	for _, d := range distances {
		p.entry(symbol+" = "+strings.Join(members[d], ", "), plot.Thumbnailer(&paths{style: style(0.5 + d).style}))
	}
	if len(opt.Draws) > 0 {
		p.entry(symbol+" = 0.5 of single particles", plot.Thumbnailer(single))
	}
	return newFigure(frame, p)
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
