package nn

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// Residual adds what its Layers make of their input to the input itself: h + F(h) (He, Zhang, Ren and Sun 2016,
// equation 1). Where F changes the width, Shortcut maps the input to the new one (equation 2).
type Residual struct {
	Layers   []Layer // F, in order
	Shortcut []Layer // nil: the input as it is
}

var _ Sized = Residual{}

// Parameters returns those of the Layers and then those of the Shortcut.
func (r Residual) Parameters() []Parameter {
	var all []Parameter
	for _, layer := range slices.Concat(r.Layers, r.Shortcut) {
		all = append(all, layer.Parameters()...)
	}
	return all
}

// Stored implements Sized.
func (r Residual) Stored(own bool) int {
	stored := 0
	for _, layer := range slices.Concat(r.Layers, r.Shortcut) {
		stored += StoredBy(layer, own)
	}
	return stored
}

// Apply maps [width, B] to [width', B], or [J/c, width, B, c] likewise; a shared input becomes per particle if a
// parameter is.
func (r Residual) Apply(params Params, h Value) Value {
	f, x := h, h
	for _, layer := range r.Layers {
		f = layer.Apply(params, f)
	}
	for _, layer := range r.Shortcut {
		x = layer.Apply(params, x)
	}
	if a, b := widthOf(f), widthOf(x); a != b { // a width of 1 would be broadcast
		panic(fmt.Errorf("nn: a Residual's layers give %d numbers, and its shortcut %d: they must be the same to be added: "+
			"set Shortcut to layers that map the input to the width that Layers end with", a, b))
	}
	if f.PerParticle == x.PerParticle {
		return Value{graph.Add(f.Node, x.Node), f.PerParticle}
	}
	return Value{graph.Add(f.Full(), x.Full()), true}
}

// subsample is the shortcut without parameters of a Residual that changes the width (He, Zhang, Ren and Sun 2016,
// section 4.2, option A): it takes each Stride-th pixel of each Stride-th row, the first ones included, and appends
// channels of zeros to theirs.
type subsample struct {
	Height, Width, Channels int // of its input
	Filters                 int // channels of its result, at least Channels
	Stride                  int
}

var _ Sized = subsample{}

// Parameters of a subsample: none.
func (s subsample) Parameters() []Parameter { return nil }

// Stored implements Sized.
func (s subsample) Stored(bool) int {
	return ((s.Height-1)/s.Stride + 1) * ((s.Width-1)/s.Stride + 1) * s.Filters
}

// Apply maps [H*W*channels, B] to [H'*W'*filters, B], or [J/c, ., B, c] likewise.
func (s subsample) Apply(_ Params, h Value) Value {
	full := h.Full()
	blocks, rows, c := full.Shape().Dim(0), full.Shape().Dim(2), full.Shape().Dim(3)
	x := graph.Reshape(full, blocks, s.Height, s.Width, s.Channels, rows, c)
	all, some := graph.AxisRange(), graph.AxisRange().Stride(s.Stride)
	x = graph.Slice(x, all, some, some, all, all, all)
	none := graph.PadAxis{}
	x = graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), none, none, none,
		graph.PadAxis{End: s.Filters - s.Channels}, none, none)
	if h.PerParticle {
		return Value{graph.Reshape(x, blocks, -1, rows, c), true}
	}
	return Value{graph.Reshape(x, -1, rows), false}
}

// StoredBy is how many numbers a layer stores for one row and one particle: see Sized.
func StoredBy(layer Layer, own bool) int {
	if sized, ok := layer.(Sized); ok {
		return sized.Stored(own)
	}
	stored := 0
	for _, p := range layer.Parameters() {
		stored += p.FanOut
	}
	return stored
}
