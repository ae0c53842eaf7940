package viz

import "fmt"

// ESSOptions are the options of [ESSCurve].
type ESSOptions struct {
	Frame
	// UniqueAncestors at each step: how many particles of the step before have offspring; nil: not drawn.
	UniqueAncestors []float64
	// Particles is the number J, drawn as a line; 0: not drawn.
	Particles int
}

// ESSCurve shows the effective sample size (1 / sum of squared normalised weights, between 1 and J) of a particle
// sampler against the step, and how many ancestors are left. Many steps are faint, below their running means.
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
	if len(unique[0]) > 0 {
		p.curve(a, "unique ancestors", unique, orange, dashed)
	}
	p.curve(a, "ESS", rows, blue, nil)
	if opt.Particles > 0 {
		all := level(float64(opt.Particles), x, stroke(grey, 1.2, dotted...))
		a.add(all)
		p.entry(fmt.Sprintf("J = %d", opt.Particles), all)
	}
	return newFigure(frame, p)
}
