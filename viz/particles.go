package viz

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ParticleOptions are the options of [ParticleScatter].
type ParticleOptions struct {
	Frame
	// Weights of the particles, not negative, in any scale; nil: equal. The area of a particle grows with its weight.
	Weights []float64
	// LogDensity is the log of the density on a lattice, but for a constant. Without values no density is drawn.
	LogDensity Field
	// Masses of the highest-density regions to outline, each within (0, 1); nil: 0.5, 0.9, 0.99. They are shares of the
	// mass on the lattice.
	Masses []float64
}

// ParticleScatter shows two coordinates of weighted particles, over the density that they should represent.
func ParticleScatter(x, y []float64, opt ParticleOptions) (*Figure, error) {
	frame, err := opt.fill("Particles", "coordinate 1", "coordinate 2", 600, 500)
	if err != nil {
		return nil, err
	}
	weights := opt.Weights
	if weights == nil {
		weights = make([]float64, len(x))
		for i := range weights {
			weights[i] = 1
		}
	}
	rows, dropped, err := finiteRows(column{"x", x}, column{"y", y}, column{"Weights", weights})
	if err != nil {
		return nil, err
	}
	for _, w := range rows[2] {
		if w < 0 {
			return nil, fmt.Errorf("viz: Weights has %v: a weight must not be negative (a log-weight must be exponentiated "+
				"first)", w)
		}
	}
	heaviest := slices.Max(rows[2])
	if heaviest == 0 {
		return nil, fmt.Errorf("viz: all %d Weights are 0: nothing to draw", len(rows[2]))
	}
	for i := range rows[2] {
		rows[2][i] /= heaviest
	}
	p := &panel{title: frame.Title}
	xRange, yRange := spanOf(rows[0]).widen(0.05), spanOf(rows[1]).widen(0.05)
	var density *heat
	var levels []massLevel
	if f := opt.LogDensity; f.Values != nil {
		var more int
		if density, levels, more, err = layers(opt); err != nil {
			return nil, err
		}
		dropped += more
		xRange, yRange = span{f.X[0], f.X[len(f.X)-1]}, span{f.Y[0], f.Y[len(f.Y)-1]}
	}
	a := newAxes(frame.XLabel, frame.YLabel, xRange, yRange)
	p.axes = []*axes{a}
	p.note(droppedNote(dropped))

	particles, merged := particleDots(rows, xRange, yRange)
	outside := countOutside([]*dots{{xs: rows[0], ys: rows[1]}}, xRange, yRange)
	if outside > 0 {
		p.note(fmt.Sprintf("outside the lattice of the density: %d of %d particles", outside, len(rows[0])))
	}
	count := fmt.Sprintf("%d particles", len(rows[0]))
	if opt.Weights != nil {
		sum := floats.Sum(rows[2])
		count += fmt.Sprintf(", ESS %s", number(sum*sum/floats.Dot(rows[2], rows[2])))
	}
	p.note(count)
	label := "particles"
	if merged {
		label += " (merged, area: weight)"
	} else if opt.Weights != nil {
		label += " (area: weight)"
	}
	icon := &dots{radius: 2.8, fill: particles.fill, edge: particles.edge}
	if density == nil {
		a.add(particles)
		p.entry(label, icon)
		return newFigure(frame, p)
	}
	a.add(density)
	for _, l := range levels { // below the particles, which they would hide where the density is narrow
		a.add(l.line)
	}
	a.add(particles)
	a.framed = true
	p.entry(label, icon)
	p.entry("density", density)
	for _, l := range levels {
		p.entry(number(100*l.mass)+" % of the mass", l.line)
	}
	return newFigure(frame, p)
}

// maxDots is the largest number of particles that are drawn one by one. More are merged in the cells of a grid of
// cloudCells by cloudCells.
const (
	maxDots    = 3000
	cloudCells = 110
)

// fewDots is the largest number of dots that hide nothing. More dots are smaller, so that the density below is seen.
// They are of one colour whatever their number, so that the panels of a grid have one legend.
const fewDots = 150

// particleDots makes the area of a dot proportional to the particle's weight, but not smaller than can be seen. The
// heaviest has a weight of 1.
func particleDots(rows [][]float64, x, y span) (d *dots, merged bool) {
	xs, ys, weights := rows[0], rows[1], rows[2]
	crowd := min(1, fewDots/float64(len(xs)))
	d = &dots{
		radius: 2.8, fill: withAlpha(vermillion, .5), edge: stroke(withAlpha(rgb(0x5A2700), .3), 0.5),
	}
	ofMean := 2.4 * math.Cbrt(crowd)
	heaviestRadius := vg.Length(min(6, ofMean/math.Sqrt(stat.Mean(weights, nil))))
	if merged = len(xs) > maxDots; merged {
		xs, ys, weights = mergeParticles(rows, x, y)
		heaviestRadius = 2.2                                               // about half a cell
		d.radius, d.edge.Width, d.fill = 1.8, 0, withAlpha(vermillion, .6) // they do not lie on each other
	}
	heaviest := slices.Max(weights)
	for i, w := range weights {
		if w > 0 {
			d.xs, d.ys = append(d.xs, xs[i]), append(d.ys, ys[i])
			d.radii = append(d.radii, max(0.5, heaviestRadius*vg.Length(math.Sqrt(w/heaviest))))
		}
	}
	return d, merged
}

// mergeParticles replaces the particles of each cell by one, at their weighted mean and with their total weight.
func mergeParticles(rows [][]float64, x, y span) (xs, ys, weights []float64) {
	cells := make(map[[2]int]int)
	for i, w := range rows[2] {
		across, up := axis{span: x}.norm(rows[0][i]), axis{span: y}.norm(rows[1][i])
		cell := [2]int{int(math.Floor(cloudCells * across)), int(math.Floor(cloudCells * up))}
		k, ok := cells[cell]
		if !ok {
			k = len(weights)
			cells[cell] = k
			xs, ys, weights = append(xs, rows[0][i]), append(ys, rows[1][i]), append(weights, 0)
		}
		if w > 0 {
			weights[k] += w
			xs[k] += w / weights[k] * (rows[0][i] - xs[k])
			ys[k] += w / weights[k] * (rows[1][i] - ys[k])
		}
	}
	return xs, ys, weights
}

// massLevel is the outline of the region that has a share of the mass.
type massLevel struct {
	mass float64
	line *line
}

// layers are the density's colours and level lines.
func layers(opt ParticleOptions) (colours *heat, levels []massLevel, dropped int, err error) {
	f := opt.LogDensity
	if dropped, err = f.check("LogDensity"); err != nil {
		return nil, nil, 0, err
	}
	masses := slices.Clone(opt.Masses)
	if masses == nil {
		masses = []float64{0.5, 0.9, 0.99}
	}
	slices.Sort(masses)
	for _, m := range masses {
		if !(m > 0 && m < 1) {
			return nil, nil, 0, fmt.Errorf("viz: Masses has %v: the mass of a region must be within (0, 1)", m)
		}
	}
	peak := math.Inf(-1)
	for _, v := range f.Values {
		if finite(v) {
			peak = math.Max(peak, v)
		}
	}
	f.Values = slices.Clone(f.Values)
	for i, v := range f.Values {
		switch {
		case math.IsInf(v, -1):
			f.Values[i] = 0 // a density of zero, not a missing value
			dropped--
		case !finite(v):
			f.Values[i] = math.NaN()
		default:
			f.Values[i] = math.Exp(v - peak)
		}
	}
	styles := []draw.LineStyle{stroke(black, .8), stroke(black, .7, dashed...), stroke(black, .7, dotted...),
		stroke(black, .7, dashDot...)}
	for k, height := range f.massHeights(masses) {
		outline := &line{pieces: f.contour(height), style: styles[min(k, len(styles)-1)]}
		levels = append(levels, massLevel{masses[k], outline})
	}
	return &heat{field: f, values: span{0, 1}, table: sequentialColours}, levels, dropped, nil
}

// massHeights gives for each mass the height of the highest-density region with this share of the field's mass, by the
// trapezoid rule.
func (f Field) massHeights(masses []float64) []float64 {
	weight := func(axis []float64, i int) float64 {
		return (axis[min(i+1, len(axis)-1)] - axis[max(i-1, 0)]) / 2
	}
	type node struct{ height, mass float64 }
	var nodes []node
	var total float64
	for j := range f.Y {
		for i := range f.X {
			if v := f.at(i, j); finite(v) {
				m := v * weight(f.X, i) * weight(f.Y, j)
				nodes = append(nodes, node{v, m})
				total += m
			}
		}
	}
	sort.SliceStable(nodes, func(a, b int) bool { return nodes[a].height > nodes[b].height })
	heights := make([]float64, len(masses))
	for k, mass := range masses {
		var held float64
		for _, n := range nodes {
			heights[k] = n.height
			if held += n.mass; held >= mass*total {
				break
			}
		}
	}
	return heights
}
