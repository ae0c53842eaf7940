package viz

import (
	"fmt"

	"gonum.org/v1/plot/vg/draw"
)

// ESSOptions are the options of [ESSCurve].
type ESSOptions struct {
	Frame
	// UniqueAncestors at each step: how many particles of the step before have offspring; nil: not drawn.
	UniqueAncestors []float64
	// Particles is the number J, drawn as a line; 0: not drawn.
	Particles int
}

// manySteps is the largest number of steps that are drawn one by one; more have a running mean.
const manySteps = 400

// ESSCurve shows the effective sample size (1 / sum of squared normalised weights, between 1 and J) of a particle
// sampler against the step, and how many ancestors are left. Of more than 400 steps it draws running means over a
// fiftieth of them, and the values of single steps faint below.
func ESSCurve(ess Series, opt ESSOptions) (*Figure, error) {
	frame, err := opt.fill("Effective sample size", "step", "particles", 640, 420)
	if err != nil {
		return nil, err
	}
	if opt.Particles < 0 {
		return nil, fmt.Errorf("viz: Particles = %d: the number of particles must not be negative", opt.Particles)
	}
	if len(ess.Value) == 0 {
		return nil, fmt.Errorf("viz: ess is empty: nothing to draw")
	}
	for _, c := range []column{{"ess.Value", ess.Value}, {"UniqueAncestors", opt.UniqueAncestors}} {
		for i, v := range c.values {
			if finite(v) && v < 0 {
				return nil, fmt.Errorf("viz: %s[%d] = %v: a number of particles must not be negative", c.name, i, v)
			}
		}
	}
	rows, dropped, err := ess.rows("ess")
	if err != nil {
		return nil, err
	}
	unique := [][]float64{nil, nil}
	if len(opt.UniqueAncestors) > 0 {
		if len(opt.UniqueAncestors) != len(ess.Value) {
			return nil, fmt.Errorf("viz: ess has %d values, UniqueAncestors has %d: they must be equally many",
				len(ess.Value), len(opt.UniqueAncestors))
		}
		var more int
		if unique, more, err = (Series{Step: ess.Step, Value: opt.UniqueAncestors}).rows("UniqueAncestors"); err != nil {
			return nil, err
		}
		dropped += more
	}
	limits := []float64{0, float64(opt.Particles)}
	x := spanOf(rows[0], unique[0]).widen(0.015)
	y := spanOf(rows[1], unique[1], limits)
	y.hi += 0.05 * (y.hi - y.lo)
	a := newAxes(frame.XLabel, frame.YLabel, x, y)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	show := func(label string, l *line) {
		a.add(l)
		p.entry(label, l)
	}
	if len(rows[0]) > manySteps {
		// Two curves that jump at each step cover each other: they are faint, below their running means.
		window := len(rows[0]) / 50
		p.note(fmt.Sprintf("faint: each step; thick: running means of %d", window))
		mean := func(rows [][]float64, style draw.LineStyle) *line {
			var xs, ys []float64
			all := runningMean(rows[1], window)
			for i := 0; i < len(all); i += max(1, window/10) {
				xs, ys = append(xs, rows[0][i]), append(ys, all[i])
			}
			return newLine(xs, ys, style)
		}
		a.add(newLine(rows[0], rows[1], stroke(tint(skyBlue, 0.35), 0.7)))
		if len(unique[0]) > 0 {
			a.add(newLine(unique[0], unique[1], stroke(tint(orange, 0.5), 0.5)))
			show("unique ancestors", mean(unique, stroke(orange, 1.9, dashed...)))
		}
		show("ESS", mean(rows, stroke(blue, 1.9)))
	} else {
		if len(unique[0]) > 0 {
			joined := newLine(unique[0], unique[1], stroke(tint(orange, 0.5), 0.7))
			points := &dots{xs: unique[0], ys: unique[1], shape: triangle, radius: 1.8, fill: orange}
			a.add(joined, points)
			p.entry("unique ancestors", joined, points)
		}
		show("ESS", newLine(rows[0], rows[1], stroke(blue, 1.6)))
	}
	if opt.Particles > 0 {
		show(fmt.Sprintf("J = %d", opt.Particles), level(float64(opt.Particles), x, stroke(grey, 1.2, dotted...)))
	}
	return newFigure(frame, p)
}
