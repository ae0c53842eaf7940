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
