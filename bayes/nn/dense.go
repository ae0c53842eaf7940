package nn

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// Dense is the affine layer W h + b, with W [out, in] and b [out], each shared or per particle.
type Dense struct {
	Number  int // of the layer, counted from 1: its parameters are "layer1/weights" and "layer1/biases"
	In, Out int
	Init    Initialiser // of the weights; biases start at 0
}

var _ Layer = Dense{}

// parameterName is the name of a parameter of a layer that is counted.
func parameterName(layer int, kind Kind) string { return fmt.Sprintf("layer%d/%s", layer, kind) }

func (d Dense) name(kind Kind) string { return parameterName(d.Number, kind) }

// Parameters returns the weights and the biases.
func (d Dense) Parameters() []Parameter {
	parameter := func(kind Kind, init Initialiser, shape ...int) Parameter {
		return Parameter{Name: d.name(kind), Layer: d.Number, Kind: kind, Shape: shape, FanIn: d.In, FanOut: d.Out,
			Init: init}
	}
	return []Parameter{
		parameter(Weights, d.Init, d.Out, d.In),
		parameter(Biases, Zeros, d.Out),
	}
}

// Apply maps [in, B] to [out, B], or [J/c, in, B, c] to [J/c, out, B, c]; a shared input becomes per particle if a
// parameter is.
func (d Dense) Apply(params Params, h Value) Value {
	w, b := params[d.name(Weights)], params[d.name(Biases)]
	z := d.product(w, h)
	if w.PerParticle && b.PerParticle && z.Node.Shape().Dim(-1) > 1 {
		return Value{holdGradient(addToRows(z.Node, b.Node), w.Node), true}
	}
	return addBiases(z, b)
}

func (d Dense) product(w, h Value) Value {
	switch {
	case !w.PerParticle && !h.PerParticle:
		return Value{graph.Einsum("oi,ib->ob", w.Node, h.Node), false}
	case w.PerParticle:
		return Value{particleProduct(w.Node, h), true}
	case d.Out == 1: // a weighted sum of rows, which XLA fuses with its surroundings
		column := graph.Reshape(w.Node, 1, d.In, 1, 1)
		return Value{graph.ExpandAxes(graph.ReduceSum(graph.Mul(h.Node, column), 1), 1), true}
	default:
		blocks, batch, c := h.Node.Shape().Dim(0), h.Node.Shape().Dim(2), h.Node.Shape().Dim(3)
		product := graph.Einsum("oi,jib->job", w.Node, graph.Reshape(h.Node, blocks, d.In, batch*c))
		return Value{graph.Reshape(product, blocks, d.Out, batch, c), true}
	}
}

func addBiases(z, b Value) Value {
	biases := b.Node // [out] or [J/c, out, c]
	if b.PerParticle {
		biases = graph.ExpandAxes(biases, 2)
	} else {
		biases = graph.ExpandAxes(biases, -1)
	}
	switch {
	case z.PerParticle && !b.PerParticle:
		biases = graph.ExpandAxes(biases, 0, -1)
	case !z.PerParticle && b.PerParticle:
		z = Value{graph.ExpandAxes(z.Node, 0, -1), true}
	}
	return Value{graph.Add(z.Node, biases), z.PerParticle}
}

// MLP is a multilayer perceptron: Dense layers of the Hidden widths, each followed by the activation, and a last Dense
// layer to the output. Layers count from 1; the output layer is number len(Hidden)+1.
type MLP struct {
	Hidden     []int       `json:"hidden"`         // may be empty: a linear model
	Activation Activation  `json:"activation"`     // default ReLU
	Init       Initialiser `json:"init,omitempty"` // of the weights; default LecunNormal
}

var _ Network = MLP{}

// Layers implements Network.
func (m MLP) Layers(inputs, outputs int) ([]Layer, error) {
	if err := m.Activation.check(); err != nil {
		return nil, err
	}
	if err := m.Init.check(); err != nil {
		return nil, err
	}
	if inputs < 1 || outputs < 1 {
		return nil, fmt.Errorf("nn: an MLP from %d inputs to %d outputs: both must be at least 1", inputs, outputs)
	}
	var layers []Layer
	in := inputs
	for i, width := range m.Hidden {
		if width < 1 {
			return nil, fmt.Errorf("nn: hidden layer %d has width %d: it must be at least 1", i+1, width)
		}
		layers = append(layers, Dense{Number: i + 1, In: in, Out: width, Init: m.Init}, m.Activation)
		in = width
	}
	return append(layers, Dense{Number: len(m.Hidden) + 1, In: in, Out: outputs, Init: m.Init}), nil
}
