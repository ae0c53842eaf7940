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
}

// check says what is missing.
func (t Target) check() error {
	switch {
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
	add := func(t Target, k kind, rows int) {
		l.blocks = append(l.blocks, block{Target: t, from: l.j, to: l.j + rows, kind: k})
		l.j += rows
	}
	for _, t := range targets {
		if t.Data > 0 {
			add(t, twinStart, 2*particles)
		} else {
			add(t, exactStart, particles)
		}
		if t.Start != nil {
			add(t, farStart, particles)
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

// target is the target of all blocks; data is [J, layout.data].
func (l layout) target(data *Node) density.Target {
	return density.Func(func(phi *Node) *Node {
		var parts []*Node
		for _, b := range l.blocks {
			var given *Node
			if b.Data > 0 {
				given = Slice(data, AxisRange(b.from, b.to), AxisRange(0, b.Data))
			}
			parts = append(parts, b.LogDensity(Slice(phi, AxisRange(b.from, b.to)), given))
		}
		return Concatenate(parts, 0)
	})
}
