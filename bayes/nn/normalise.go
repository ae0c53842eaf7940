package nn

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// FilterResponse normalises each channel of each image by its mean square over the pixels, nu^2: a channel x becomes
// scale x / sqrt(nu^2 + 1e-6) + shift (Singh and Krishnan 2020, equations 1 and 2); Threshold is its activation. Scale
// and shift are [Channels], each shared or per particle. Unlike batch normalisation it knows no other row, so that the
// likelihood stays a product over rows.
type FilterResponse struct {
	Number int // of the layer, counted from 1: its parameters are "layer1/scale" and "layer1/shift"
	Image      // of its input, and of its result
}

// Threshold is the thresholded linear unit, max(x, threshold), with a learnt threshold for each channel, [Channels],
// that starts at 0 (Singh and Krishnan 2020, equation 4).
type Threshold struct {
	Number int // of the layer, counted from 1: its parameter is "layer1/threshold"
	Image
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
func (l FilterResponse) Stored(bool) int { return 2 * l.size() }

// Stored implements Sized.
func (l Threshold) Stored(bool) int { return l.size() }

// Apply maps [H*W*channels, B] to the same shape, or [J/c, ., B, c] likewise; a shared input becomes per particle if a
// parameter is. With the channel r x, r = 1/sqrt(nu^2 + 1e-6), and the gradient v with respect to scale r x, that with
// respect to x is scale r (v - r x mean(v r x)), and that with respect to the scale the sum of v r x: both need the
// means over pixels, which are evaluated once.
func (l FilterResponse) Apply(params Params, h Value) Value {
	scale, shift := params[parameterName(l.Number, "scale")], params[parameterName(l.Number, "shift")]
	pixels := l.Height * l.Width
	images := func(x *graph.Node) *graph.Node { return graph.Reshape(x, x.Shape().Dim(0), -1, pixels, l.Channels) }
	mean := func(x *graph.Node) *graph.Node { // over pixels
		sum := sumOfPixels(graph.Reshape(x, -1, pixels, l.Channels))
		return graph.MulScalar(graph.Reshape(sum, x.Shape().Dim(0), -1, 1, l.Channels), 1/float64(pixels))
	}
	return byChannel(h, l.Image, []Value{scale, shift},
		func(x *graph.Node, own []*graph.Node) *graph.Node {
			scale := own[0]
			r := graph.Reciprocal(graph.Sqrt(graph.AddScalar(mean(graph.Square(images(x))), 1e-6)))
			channel := graph.Mul(images(x), r)
			along := func(v *graph.Node) *graph.Node { return mean(graph.Mul(images(v), channel)) }
			scaled := withGradient(func(_, scale *graph.Node) *graph.Node {
				return graph.Mul(graph.StopGradient(graph.Reshape(channel, x.Shape().Dimensions...)), scale)
			}, x, scale,
				func(v *graph.Node) *graph.Node {
					across := graph.Mul(r, graph.Sub(images(v), graph.Mul(channel, along(v))))
					return sumOver(graph.Mul(graph.Reshape(across, v.Shape().Dimensions...), scale), x)
				},
				func(v *graph.Node) *graph.Node {
					sum := graph.MulScalar(graph.ReduceSum(along(v), 1), float64(pixels))
					return sumOver(sum, scale)
				})
			return withBiases(scaled, shift)
		})
}

// Apply maps values to values of the same shape, as FilterResponse does.
func (l Threshold) Apply(params Params, h Value) Value {
	parameters := []Value{params[parameterName(l.Number, "threshold")]}
	return byChannel(h, l.Image, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
		threshold := own[0]
		var once *graph.Node
		hold := func(v *graph.Node) *graph.Node { // else what gives it is evaluated in both gradients
			if once == nil {
				once = compute.MaterialiseBeside(v, threshold)
			}
			return once
		}
		above := func(v *graph.Node) *graph.Node {
			all := v.Shape().Dimensions
			return graph.GreaterThan(graph.BroadcastToDims(x, all...), graph.BroadcastToDims(threshold, all...))
		}
		return withGradient(graph.Max, x, threshold,
			func(v *graph.Node) *graph.Node {
				v = hold(v)
				return sumOver(graph.Where(above(v), v, graph.ZerosLike(v)), x)
			},
			func(v *graph.Node) *graph.Node {
				v = hold(v)
				return sumOver(sumOfPixels(graph.Where(above(v), graph.ZerosLike(v), v)), threshold)
			})
	})
}

// sumOver is the sum over particles of x, [J, ...], if like, [1, ...], is shared.
func sumOver(x, like *graph.Node) *graph.Node {
	if like.Shape().Dim(0) < x.Shape().Dim(0) {
		return graph.ReduceAndKeep(x, graph.ReduceSum, 0)
	}
	return x
}

// byChannel applies f to images as [1 or J, B*pixels, channels] and parameters as [1 or J, 1, channels], which f may
// broadcast. Within, images lie in memory as convolutions take and give them.
func byChannel(
	h Value, i Image, parameters []Value, f func(x *graph.Node, own []*graph.Node) *graph.Node,
) Value {
	x, batch, block := toImages(h, i), rowsOf(h), 0
	if h.PerParticle {
		block = h.Node.Shape().Dim(-1)
	}
	own := make([]*graph.Node, len(parameters))
	for k, p := range parameters {
		numbers := p.Node
		if p.PerParticle {
			numbers, block = ownNumbers(p), p.Node.Shape().Dim(-1)
		}
		own[k] = graph.Reshape(numbers, -1, 1, i.Channels)
	}
	z := f(graph.Reshape(x, -1, batch*i.Height*i.Width, i.Channels), own)
	z = graph.Reshape(z, -1, batch, i.Height, i.Width, i.Channels)
	if block > 0 {
		return fromImages(z, batch, block)
	}
	return Value{graph.Transpose(graph.Reshape(z, batch, -1), 0, 1), false}
}
