package nn

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// BatchNorm normalises each channel by its mean m and variance v over all pixels of all rows: a channel x becomes
//
//	scale (x - m) / sqrt(v + 1e-5) + shift
//
// (Ioffe and Szegedy 2015, algorithm 1 and section 3.2). After a Dense layer of n outputs it is of images of 1 x 1 with
// n channels. Scale and shift are [Channels].
//
// In training m and v are those of the mini-batch's real rows (Params.Training). Everywhere else, as in a prediction,
// they are running statistics, two more parameters [Channels] that no gradient trains: after each mini-batch of
// training they go a tenth of the way to its mean and, as algorithm 2 has it, to its unbiased variance.
//
// By the mini-batch's statistics a row's density depends on the other rows. In layers before the first stochastic one
// all particles have that in common. Behind it the likelihood would be no product over rows, and bayes.Model.Bind
// refuses a BatchNorm: take FilterResponse.
type BatchNorm struct {
	Number                  int // of the layer, counted from 1: its parameters are "layer1/scale", "layer1/shift", ...
	Height, Width, Channels int // of its input, and of its result
}

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
	_ Sized = BatchNorm{}
	_ Sized = FilterResponse{}
	_ Sized = Threshold{}
)

// Parameters returns the scale, a weight that starts at 1, the shift, a bias that starts at 0, and the running
// statistics, the mean, which starts at 0, and the variance, which starts at 1.
func (l BatchNorm) Parameters() []Parameter {
	return []Parameter{
		channelParameter(l.Number, "scale", Weights, l.Channels, Ones),
		channelParameter(l.Number, "shift", Biases, l.Channels, Zeros),
		channelParameter(l.Number, "mean", Statistics, l.Channels, Zeros),
		channelParameter(l.Number, "variance", Statistics, l.Channels, Ones),
	}
}

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
func (l BatchNorm) Stored(bool) int { return 2 * l.Height * l.Width * l.Channels }

// Stored implements Sized: the normalised images and the result.
func (l FilterResponse) Stored(bool) int { return 2 * l.Height * l.Width * l.Channels }

// Stored implements Sized.
func (l Threshold) Stored(bool) int { return l.Height * l.Width * l.Channels }

// Apply maps [H*W*channels, B] to the same shape, or [J/c, ., B, c] likewise; a shared input becomes per particle if a
// parameter is. Then the statistics of a mini-batch are of each particle's own.
func (l BatchNorm) Apply(params Params, h Value) Value {
	const pixels, rows = 1, 3
	var parameters []Value
	for _, p := range l.Parameters() {
		parameters = append(parameters, params[p.Name])
	}
	count, training := params[realRows]
	return byChannel(h, l.Height*l.Width, l.Channels, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
		scale, shift, mean, variance := own[0], own[1], own[2], own[3]
		if training {
			batch := shapes.Make(x.DType(), 1, 1, 1, x.Shape().Dim(rows), 1)
			real := graph.ConvertDType(graph.LessThan(graph.Iota(x.Graph(), batch, rows), count.Node), x.DType())
			n := graph.MulScalar(count.Node, float64(l.Height*l.Width))
			average := func(x *graph.Node) *graph.Node {
				return graph.Div(graph.ReduceAndKeep(graph.Mul(x, real), graph.ReduceSum, pixels, rows), n)
			}
			mean = average(x)
			variance = average(graph.Square(graph.Sub(x, mean)))
			l.move(params, "mean", own[2], mean)
			l.move(params, "variance", own[3], graph.Mul(variance, graph.Div(n, graph.AddScalar(n, -1))))
		}
		factor := graph.Mul(scale, graph.Reciprocal(graph.Sqrt(graph.AddScalar(variance, 1e-5))))
		return graph.Add(graph.Mul(graph.Sub(x, mean), factor), shift)
	})
}

// move takes a running statistic a tenth of the way to the mini-batch's.
func (l BatchNorm) move(params Params, kind Kind, running, ofBatch *graph.Node) {
	name := parameterName(l.Number, kind)
	running = graph.Add(running, graph.MulScalar(graph.Sub(ofBatch, running), .1))
	if was := params[name].Node.Shape(); running.Shape().Size() != was.Size() {
		panic(fmt.Errorf("nn: particles share the statistics of BatchNorm %d, and have inputs of their own", l.Number))
	}
	params[name] = Value{graph.Reshape(running, params[name].Node.Shape().Dimensions...), params[name].PerParticle}
}

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
