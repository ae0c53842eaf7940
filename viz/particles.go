package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
)

// ParticleOptions are the options of [ParticleScatter].
type ParticleOptions struct {
	Frame
	// Weights of the particles, not negative, in any scale; nil: equal. The area of a particle grows with its weight.
	Weights []float64
	// LogDensity is the log of the density on a lattice, but for a constant; -Inf is a density of 0. Without values no
	// density is drawn.
	LogDensity Field
	// Masses of the highest-density regions to outline, each within (0, 1); nil: 0.5, 0.9, 0.99. They are shares of the
	// mass on the lattice.
	Masses []float64
	Label  string // what the points are; empty: particles
}

// ParticleScatter shows two coordinates of weighted particles, over the density that they should represent: the 3000
// heaviest of more.
func ParticleScatter(x, y []float64, opt ParticleOptions) (*Figure, error) {
	frame, err := opt.fill("Particles", "coordinate 1", "coordinate 2", 600, 500)
	if err != nil {
		return nil, err
	}
	what := cmp.Or(opt.Label, "particles")
	label, weights := what+" (area: weight)", opt.Weights
	if weights == nil {
		label, weights = what, slices.Repeat([]float64{1}, len(x))
	}
	rows, dropped, err := finiteRows(column{"x", x}, column{"y", y}, column{"Weights", weights})
	if err != nil {
		return nil, err
	}
	weights = rows[2]
	for _, w := range weights {
		if w < 0 {
			return nil, fmt.Errorf("viz: Weights has %v: a weight must not be negative (a log-weight must be exponentiated "+
				"first)", w)
		}
	}
	heaviest := slices.Max(weights)
	if heaviest == 0 {
		return nil, fmt.Errorf("viz: all %d Weights are 0: nothing to draw", len(weights))
	}
	floats.Scale(1/heaviest, weights)
	p := &panel{title: frame.Title}
	particles := particleDots(rows)
	xRange, yRange := spanOf(rows[0]).widen(0.05), spanOf(rows[1]).widen(0.05)
	var layers []legendEntry // below the particles, which lines would hide where the density is narrow
	if opt.LogDensity.Values != nil {
		if layers, err = opt.layers(); err != nil {
			return nil, err
		}
		xRange, yRange = opt.LogDensity.extent()
	}
	p.square = xRange == yRange
	a := newAxes(frame.XLabel, frame.YLabel, xRange, yRange)
	for _, l := range layers {
		a.add(l.marks...)
	}
	a.add(particles)
	p.axes = []*axes{a}
	p.note(droppedNote(dropped))
	if outside := countOutside([]*dots{{xs: rows[0], ys: rows[1]}}, xRange, yRange); outside > 0 {
		p.note(fmt.Sprintf("outside the lattice of the density: %d of %d %s", outside, len(weights), what))
	}
	count := fmt.Sprintf("%d %s", len(weights), what)
	if opt.Weights != nil {
		sum := floats.Sum(weights)
		count += fmt.Sprintf(", ESS %s", number(sum*sum/floats.Dot(weights, weights)))
	}
	if len(weights) > mostDots {
		count += fmt.Sprintf(", of which %d are drawn", mostDots)
	}
	p.note(count)
	p.entry(label, &dots{radius: 2.8, fill: particles.fill})
	p.legend = append(p.legend, layers...)
	return newFigure(frame, p)
}

// fewDots is the largest number of dots that hide nothing. More dots are smaller, so that the density below is seen.
// They are of one colour whatever their number, so that the panels of a grid have one legend.
const fewDots = 150

// particleDots makes the area of a dot proportional to the particle's weight, but not smaller than can be seen. The
// heaviest has a weight of 1.
func particleDots(rows [][]float64) *dots {
	n, weights := len(rows[0]), rows[2]
	var order []int // from the heaviest; of equal ones those at even steps come first
	step := 1 + (n-1)/mostDots
	for from := range step {
		for i := from; i < n; i += step {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return weights[order[a]] > weights[order[b]] })
	order = order[:min(n, mostDots)]
	crowd := min(1, fewDots/float64(len(order)))
	heaviest := min(6, 2.4*math.Cbrt(crowd)/math.Sqrt(stat.Mean(weights, nil)))
	d := &dots{fill: withAlpha(vermillion, .5)}
	for _, i := range order {
		if weights[i] > 0 {
			d.xs, d.ys = append(d.xs, rows[0][i]), append(d.ys, rows[1][i])
			d.radii = append(d.radii, vg.Length(max(.5, heaviest*math.Sqrt(weights[i]))))
		}
	}
	return d
}

// layers are the density in colours, of which the peak has the last, and the outlines of the regions with the masses.
func (o ParticleOptions) layers() (all []legendEntry, err error) {
	f := o.LogDensity
	if err := f.check("LogDensity", math.Inf(-1), largest); err != nil {
		return nil, err
	}
	peak := slices.Max(f.Values)
	f.Values = slices.Clone(f.Values)
	for i, v := range f.Values {
		f.Values[i] = math.Exp(v - peak)
	}
	all = []legendEntry{{"density", []mark{&heat{field: f, table: sequentialColours}}}}
	masses := slices.Sorted(slices.Values(o.Masses))
	if masses == nil {
		masses = []float64{.5, .9, .99}
	}
	for k, mass := range masses {
		if !(mass > 0 && mass < 1) {
			return nil, fmt.Errorf("viz: Masses has %v: the mass of a region must be within (0, 1)", mass)
		}
		style := stroke(withAlpha(black, max(.25, 1-.35*float64(k))), max(.6, 1.6-.4*vg.Length(k)))
		outline := &line{pieces: f.contour(f.massHeight(mass)), style: style}
		all = append(all, legendEntry{number(100*mass) + " % of the mass", []mark{outline}})
	}
	return all, nil
}

// massHeight gives the height of the highest-density region with this share of the field's mass.
func (f Field) massHeight(mass float64) float64 {
	descending := slices.Sorted(slices.Values(f.Values))
	slices.Reverse(descending)
	held := floats.CumSum(make([]float64, len(descending)), descending)
	at := sort.SearchFloat64s(held, mass*held[len(held)-1])
	return descending[min(at, len(held)-1)]
}
