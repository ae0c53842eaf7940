package nn

import "github.com/gomlx/gomlx/core/graph"

// FilterResponse normalises each channel of each image by its mean square over the pixels, nu^2: a channel x becomes
// scale x / sqrt(nu^2 + 1e-6) + shift (Singh and Krishnan 2020, equations 1 and 2); Threshold is its activation. Scale
// and shift are [Channels], each shared or per particle. Unlike batch normalisation it knows no other row, so that the
// likelihood stays a product over rows.
type FilterResponse struct {
	Number                  int // of the layer, counted from 1: its parameters are "layer1/scale" and "layer1/shift"
	Height, Width, Channels int // of its input, and of its result
}

// Threshold is the thresholded linear unit, max(x, threshold), with a learnt threshold for each channel, [Channels],
// that starts at 0 (Singh and Krishnan 2020, equation 4).
type Threshold struct {
	Number                  int // of the layer, counted from 1: its parameter is "layer1/threshold"
	Height, Width, Channels int
}

var (
	_ Sized = FilterResponse{}
	_ Sized = Threshold{}
)

// Parameters returns the scale, a weight that starts at 1, and the shift, a bias that starts at 0.
func (l FilterResponse) Parameters() []Parameter {
	return []Parameter{
		channelParameter(l.Number, "scale", Weights, l.Channels, Ones),
		channelParameter(l.Number, "shift", Biases, l.Channels, Zeros),
	}
}

// Parameters returns the threshold, a bias.
func (l Threshold) Parameters() []Parameter {
	return []Parameter{channelParameter(l.Number, "threshold", Biases, l.Channels, Zeros)}
}

func channelParameter(layer int, name, kind Kind, channels int, init Initialiser) Parameter {
	return Parameter{Name: parameterName(layer, name), Layer: layer, Kind: kind, Shape: []int{channels}, FanIn: 1,
		FanOut: channels, Init: init}
}

// Stored implements Sized: the normalised images and the result.
func (l FilterResponse) Stored(bool) int { return 2 * l.Height * l.Width * l.Channels }

// Stored implements Sized.
func (l Threshold) Stored(bool) int { return l.Height * l.Width * l.Channels }

// Apply maps [H*W*channels, B] to the same shape, or [J/c, ., B, c] likewise; a shared input becomes per particle if a
// parameter is.
func (l FilterResponse) Apply(params Params, h Value) Value {
	const pixels = 1
	scale, shift := params[parameterName(l.Number, "scale")], params[parameterName(l.Number, "shift")]
	parameters := []Value{scale, shift}
	checkSize(h, l.Height, l.Width, l.Channels)
	return byChannel(h, l.Height*l.Width, l.Channels, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
		square := graph.MulScalar(graph.ReduceSum(graph.Square(x), pixels), 1/float64(l.Height*l.Width))
		x = graph.Mul(x, graph.ExpandAxes(graph.Reciprocal(graph.Sqrt(graph.AddScalar(square, 1e-6))), pixels))
		return graph.Add(graph.Mul(x, own[0]), own[1])
	})
}

// Apply maps values to values of the same shape, as FilterResponse does.
func (l Threshold) Apply(params Params, h Value) Value {
	parameters := []Value{params[parameterName(l.Number, "threshold")]}
	checkSize(h, l.Height, l.Width, l.Channels)
	return byChannel(h, l.Height*l.Width, l.Channels, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
		return graph.Max(x, own[0])
	})
}

// byChannel applies f to images as [J/c or 1, pixels, channels, B, c or 1] and parameters as [J/c or 1, 1, channels, 1,
// c or 1].
func byChannel(
	h Value, pixels, channels int, parameters []Value, f func(x *graph.Node, own []*graph.Node) *graph.Node,
) Value {
	full := h.Full()
	blocks, rows, c := full.Shape().Dim(0), full.Shape().Dim(2), full.Shape().Dim(3)
	perParticle := h.PerParticle
	own := make([]*graph.Node, len(parameters))
	for i, p := range parameters {
		own[i] = graph.ExpandAxes(p.Full(), 1)
		perParticle = perParticle || p.PerParticle
	}
	x := f(graph.Reshape(full, blocks, pixels, channels, rows, c), own)
	if perParticle {
		return Value{graph.Reshape(x, x.Shape().Dim(0), -1, rows, x.Shape().Dim(4)), true}
	}
	return Value{graph.Reshape(x, -1, rows), false}
}
