package nn

import (
	"fmt"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
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
	var parameters []Value
	for _, p := range l.Parameters() {
		parameters = append(parameters, params[p.Name])
	}
	count, training := params[realRows]
	return byChannel(h, l.Height, l.Width, l.Channels, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
		scale, shift, mean, variance := own[0], own[1], own[2], own[3]
		if training {
			g, pixels := x.Graph(), l.Height*l.Width
			row := graph.Div(graph.Iota(g, shapes.Make(dtypes.Int32, x.Shape().Dim(1)), 0), graph.Const(g, int32(pixels)))
			n := graph.MulScalar(count.Node, float64(pixels))
			isReal := graph.LessThan(graph.ConvertDType(row, x.DType()), count.Node)
			real := graph.Div(graph.ConvertDType(isReal, x.DType()), n)
			average := func(x *graph.Node) *graph.Node {
				return graph.ExpandAxes(graph.Einsum("jpf,p->jf", x, real), 1)
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
	if own := params[name]; own.PerParticle { // [J, 1, channels] to [J/c, channels, c]
		dims := own.Node.Shape().Dimensions
		running = graph.Transpose(graph.Reshape(running, dims[0], dims[2], dims[1]), 1, 2)
	} else {
		running = graph.Reshape(running, l.Channels)
	}
	params[name] = Value{running, params[name].PerParticle}
}

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
	return byChannel(h, l.Height, l.Width, l.Channels, []Value{scale, shift},
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
	return byChannel(h, l.Height, l.Width, l.Channels, parameters, func(x *graph.Node, own []*graph.Node) *graph.Node {
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
	h Value, height, width, channels int, parameters []Value, f func(x *graph.Node, own []*graph.Node) *graph.Node,
) Value {
	checkSize(h, height, width, channels)
	batch, block := rowsOf(h), 0
	if h.PerParticle {
		block = h.Node.Shape().Dim(-1)
	}
	own := make([]*graph.Node, len(parameters))
	for i, p := range parameters {
		numbers := p.Node
		if p.PerParticle {
			numbers, block = ownNumbers(p), p.Node.Shape().Dim(-1)
		}
		own[i] = graph.Reshape(numbers, -1, 1, channels)
	}
	x := graph.Reshape(toImages(h, height, width, channels), -1, batch*height*width, channels)
	z := f(x, own)
	z = graph.Reshape(z, -1, batch, height, width, channels)
	if block > 0 {
		return fromImages(z, batch, block)
	}
	return Value{graph.Transpose(graph.Reshape(z, batch, -1), 0, 1), false}
}
