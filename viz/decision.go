package viz

import (
	"cmp"
	"fmt"

	"gonum.org/v1/plot/vg/draw"
)

// DecisionOptions are the options of [DecisionMap].
type DecisionOptions struct {
	Frame
	// Boundary leaves the lines at the probabilities 0.1, 0.25, 0.75 and 0.9 out, and that at 0.5 alone.
	Boundary bool
	// PointsX, PointsY and Classes are data points and their classes, 0 to 4.
	PointsX, PointsY []float64
	Classes          []int
	// ClassNames of class 0, 1, ... for the legend; nil: "class 0", ...
	ClassNames []string
	// ProbabilityLabel of the colour bar, of a probability or another quantity from 0 to 1; empty: "predicted probability
	// of class 1".
	ProbabilityLabel string

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
	levels := probabilityLevels
	if opt.Boundary {
		levels = levels[:1]
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
	bar.levels = levels
	a.framed = true
	var contours []*line
	for _, l := range levels {
		contour := &line{style: l.style}
		for _, value := range l.values {
			contour.pieces = append(contour.pieces, f.contour(value)...)
		}
		a.add(contour)
		contours = append(contours, contour)
	}

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
	for i, l := range levels {
		p.entry(l.label, contours[i])
	}
	if len(opt.draws) > 0 {
		p.entry("level 0.5 of single particles", single)
	}
	return newFigure(frame, p)
}

// barLevels are level lines of one style, which the colours tell apart.
type barLevels struct {
	values []float64
	label  string
	style  draw.LineStyle
}

// probabilityLevels are a map's level lines, from 1/2 outwards.
var probabilityLevels = []barLevels{
	{[]float64{.5}, "level 0.5", stroke(black, 1.7)},
	{[]float64{.25, .75}, "levels 0.25, 0.75", stroke(black, 1, dashed...)},
	{[]float64{.1, .9}, "levels 0.1, 0.9", stroke(black, 1, dotted...)},
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
	for _, look := range []dots{{shape: circle, fill: rgb(0x08457E)}, {shape: triangle, fill: rgb(0xA83F00)},
		{shape: square, fill: green}, {shape: diamond, fill: purple}, {shape: circle, fill: black}} {
		look.radius, look.edge = 3, stroke(white, 0.8)
		classes = append(classes, &look)
	}
	for i, c := range rows[2] {
		d := classes[int(c)]
		d.xs, d.ys = append(d.xs, rows[0][i]), append(d.ys, rows[1][i])
	}
	return classes, dropped, nil
}
