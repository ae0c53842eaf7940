package viz

import (
	"cmp"
	"fmt"

	"gonum.org/v1/plot/vg/draw"
)

// DecisionOptions are the options of [DecisionMap].
type DecisionOptions struct {
	Frame
	// PointsX, PointsY and Classes are data points and their classes, 0 to 2.
	PointsX, PointsY []float64
	Classes          []int
	// ClassNames of class 0, 1, ... for the legend; nil: "class 0", ...
	ClassNames []string
	// ProbabilityLabel of the colour bar, of a probability or another quantity from 0 to 1; empty: "predicted probability
	// of class 1".
	ProbabilityLabel string

	draws [][]float64 // the probabilities of single particles at the lattice's points: [draws, len(Values)]
}

// className is a class's name in the legend.
func (o DecisionOptions) className(class int) string {
	if class < len(o.ClassNames) {
		return o.ClassNames[class]
	}
	return fmt.Sprintf("class %d", class)
}

// DecisionMap shows a classifier of two features: the predicted probability of class 1, in [0, 1], as colours with the
// line where it is 1/2, and the data.
func DecisionMap(probability Field, opt DecisionOptions) (*Figure, error) {
	frame, err := opt.fill("Predictive probability", "feature 1", "feature 2", 640, 480)
	if err != nil {
		return nil, err
	}
	const rounding = 1e-6
	if err := probability.check("probability", -rounding, 1+rounding); err != nil {
		return nil, err
	}
	single := &line{style: stroke(withAlpha(black, .45), .7)}
	for k, values := range opt.draws {
		f := Field{X: probability.X, Y: probability.Y, Values: values}
		if err := f.check(fmt.Sprintf("particle %d", k), -rounding, 1+rounding); err != nil {
			return nil, err
		}
		single.pieces = append(single.pieces, f.contour(.5)...)
	}
	points, dropped, err := classPoints(opt)
	if err != nil {
		return nil, err
	}

	x, y := probability.extent()
	a := newAxes(frame.XLabel, frame.YLabel, x, y)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.bar = cmp.Or(opt.ProbabilityLabel, "predicted probability of class 1")
	p.note(droppedNote(dropped))
	if outside := countOutside(points, x, y); outside > 0 {
		p.note(fmt.Sprintf("points outside the map: %d, not drawn", outside))
	}
	half := &line{pieces: probability.contour(.5), style: stroke(black, 1.7)}
	a.add(&heat{field: probability, table: divergingColours}, single, half)
	for class, d := range points {
		if len(d.xs) > 0 {
			a.add(d)
			p.entry(opt.className(class), d)
		}
	}
	p.entry("level 0.5", half)
	if len(opt.draws) > 0 {
		p.entry("level 0.5 of single particles", single)
	}
	return newFigure(frame, p)
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
	classes = []*dots{{fill: rgb(0x08457E)}, {shape: draw.PyramidGlyph{}, fill: rgb(0xA83F00)},
		{shape: draw.BoxGlyph{}, fill: green}}
	class := make([]float64, len(opt.Classes))
	for i, c := range opt.Classes {
		if c < 0 || c >= len(classes) {
			return nil, 0, fmt.Errorf("viz: Classes[%d] = %d: a class must be within 0 and %d", i, c, len(classes)-1)
		}
		class[i] = float64(c)
	}
	rows, dropped, err := finiteRows(column{"PointsX", opt.PointsX}, column{"PointsY", opt.PointsY},
		column{"Classes", class})
	if err != nil {
		return nil, 0, err
	}
	for _, d := range classes {
		d.radius, d.halo = 3, .8
	}
	for i, c := range rows[2] {
		d := classes[int(c)]
		d.xs, d.ys = append(d.xs, rows[0][i]), append(d.ys, rows[1][i])
	}
	return classes, dropped, nil
}
