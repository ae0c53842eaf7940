package check

import (
	"fmt"
	"math/rand/v2"

	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Target is a distribution of which everything is known: how to draw it exactly, and how to turn what is drawn into
// uniforms. It may depend on data that differ from particle to particle: then Draw draws a parameter from the prior and
// data given the parameter, and LogDensity is that of the posterior. To test a model's own posterior, fill in a Target
// whose LogDensity is the model's: a factor N/n that is missing fails Rank and Invariant.
type Target struct {
	Name string
	D    int // coordinates of a particle
	Data int // numbers in a particle's data; 0: all particles have one distribution
	// Draw gives an exact draw, [D], and the data that go with it, [Data].
	Draw func(r *rand.Rand) (x, data []float64)
	// LogDensity is the unnormalised log-density of each particle, [J], for phi, [J, D], and data, [J, Data] (nil if
	// Data is 0). It may be -Inf or NaN where the density is 0.
	LogDensity func(phi, data *graph.Node) *graph.Node
	// Uniform is the transform of Rosenblatt (1952), [D]: the distribution function of each coordinate given those
	// before it, and the data. Of an exact draw it is D independent uniforms.
	Uniform func(x, data []float64) []float64
	// Start is a place well off the distribution's middle, [D], from which chains must reach it; nil: this is not
	// tested.
	Start []float64

	err error // what was wrong with what it was made of
}

// check says what is missing.
func (t Target) check() error {
	switch {
	case t.err != nil:
		return fmt.Errorf("check: target %q: %w", t.Name, t.err)
	case t.D < 1 || t.Data < 0:
		return fmt.Errorf("check: target %q has D = %d and Data = %d: D must be positive, and Data not negative",
			t.Name, t.D, t.Data)
	case t.Draw == nil || t.LogDensity == nil || t.Uniform == nil:
		return fmt.Errorf("check: target %q needs Draw, LogDensity and Uniform", t.Name)
	case t.Start != nil && len(t.Start) != t.D:
		return fmt.Errorf("check: target %q starts at %v, but has %d coordinates", t.Name, t.Start, t.D)
	}
	x, data := t.Draw(rand.New(rand.NewPCG(1, 1)))
	if len(x) != t.D || len(data) != t.Data {
		return fmt.Errorf("check: target %q draws %d coordinates and %d data: D is %d and Data %d",
			t.Name, len(x), len(data), t.D, t.Data)
	}
	if u := t.Uniform(x, data); len(u) != t.D {
		return fmt.Errorf("check: target %q gives %d uniforms for %d coordinates", t.Name, len(u), t.D)
	}
	return nil
}

// block is the rows of phi that belong to one target and begin in one way.
type block struct {
	Target
	of       int // the target's place among Options.Targets
	from, to int
	kind     kind
}

type kind int

const (
	exactStart kind = iota // exact draws
	farStart               // all at Target.Start
	// the exact draws of the first half of the rows again in the second: two chains from one start under one data set
	twinStart
)

// layout puts all targets side by side into one [J, D], so that one compiled move tests a kernel on all of them.
type layout struct {
	blocks     []block
	j, d, data int
}

func newLayout(targets []Target, particles int) layout {
	l := layout{d: targets[0].D}
	add := func(of int, k kind, rows int) {
		l.blocks = append(l.blocks, block{Target: targets[of], of: of, from: l.j, to: l.j + rows, kind: k})
		l.j += rows
	}
	for i, t := range targets {
		if t.Data > 0 {
			add(i, twinStart, 2*particles)
		} else {
			add(i, exactStart, particles)
		}
		if t.Start != nil {
			add(i, farStart, particles)
		}
		l.data = max(l.data, t.Data)
	}
	l.data = max(l.data, 1) // an input has no empty axis
	return l
}

// draw gives every particle its start, [J, D], and its data, [J, data]; all exact draws if fresh.
func (l layout) draw(r *rand.Rand, fresh bool) (phi, data []float64) {
	for _, b := range l.blocks {
		rows := b.to - b.from
		first := len(phi)
		for i := range rows {
			if b.kind == twinStart && i >= rows/2 && !fresh {
				twin := first/l.d + i - rows/2
				phi = append(phi, phi[twin*l.d:(twin+1)*l.d]...)
				data = append(data, data[twin*l.data:(twin+1)*l.data]...)
				continue
			}
			x, y := b.Draw(r)
			if b.kind == farStart && !fresh {
				x = b.Start
			}
			phi = append(phi, x...)
			data = append(append(data, y...), make([]float64, l.data-len(y))...)
		}
	}
	return phi, data
}

// composite is the target of all blocks; data is [J, layout.data].
type composite struct {
	layout
	given *Node
}

var _ density.Target = composite{}

// each evaluates every target once, on the rows of all its blocks, which lie side by side.
func (c composite) each(phi *Node, evaluate func(x, logDensity *Node)) {
	for i, b := range c.blocks {
		if i > 0 && b.of == c.blocks[i-1].of {
			continue
		}
		to := b.to
		for _, next := range c.blocks[i+1:] {
			if next.of == b.of {
				to = next.to
			}
		}
		x := Slice(phi, AxisRange(b.from, to))
		var data *Node
		if b.Data > 0 {
			data = Slice(c.given, AxisRange(b.from, to), AxisRange(0, b.Data))
		}
		evaluate(x, b.LogDensity(x, data))
	}
}

// LogDensity implements density.Target.
func (c composite) LogDensity(phi *graph.Node) *graph.Node {
	var parts []*Node
	c.each(phi, func(_, logDensity *Node) { parts = append(parts, logDensity) })
	return Concatenate(parts, 0)
}

// Gradient implements density.Target.
func (c composite) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	var values, gradients []*Node
	c.each(phi, func(x, value *Node) {
		values = append(values, value)
		gradients = append(gradients, Gradient(ReduceAllSum(value), x)[0])
	})
	return Concatenate(values, 0), Concatenate(gradients, 0)
}
