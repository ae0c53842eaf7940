package nn

import (
	"cmp"
	"fmt"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// A layer of images takes and gives Values as every layer does: the width is height x width x channels, in this order,
// so that the channels of a pixel are neighbours and rows of pixels follow each other. Inside, images are [N, height,
// width, channels], as XLA's convolutions want them, with N = B of a shared value, and J*B, particle by particle, of
// the others. XLA chooses how activations lie in memory, so that the transposes between two layers copy nothing.

// Convolution slides Filters kernels over images: a pixel of the result is the sum over the kernel's rows, columns and
// channels of weight times pixel, plus the filter's bias (a cross-correlation, as in all neural networks; LeCun and
// others 1989). Weights are [filters, kernel, kernel, channels], biases [filters], each shared or per particle.
//
// Zeros surround the image, (k-1)/2 rows before it and k/2 after it for a kernel of k rows: the result has as many
// pixels as the image, or one in each square of Stride x Stride. Valid keeps the kernel inside the image instead: the
// result is smaller by k-1 rows and columns.
//
// Shared weights are a convolution of XLA's over the images of all particles. Weights of each particle's own multiply
// patches, one for each pixel of the result, which take kernel x kernel times the memory of the images. So do shared
// weights on a GPU, where matrix products of float32 are exact and convolutions are not.
type Convolution struct {
	Number  int // of the layer, counted from 1: its parameters are "layer1/weights" and "layer1/biases"
	Image       // of its input
	Filters int // channels of its output
	Kernel  int // side of the kernels, in pixels
	Stride  int // pixels from one place of a kernel to the next; default 1
	Valid   bool
	Init    Initialiser // of the weights; biases start at 0
}

var (
	_ Sized = Convolution{}
	_ Sized = Pool{}
)

// Parameters returns the weights and the biases. The fan-in is the number of products in a sum,
// kernel x kernel x channels, the fan-out kernel x kernel x filters.
func (l Convolution) Parameters() []Parameter {
	area := l.Kernel * l.Kernel
	parameter := func(kind Kind, init Initialiser, shape ...int) Parameter {
		return Parameter{Name: parameterName(l.Number, kind), Layer: l.Number, Kind: kind, Shape: shape,
			FanIn: area * l.Channels, FanOut: area * l.Filters, Init: init}
	}
	return []Parameter{parameter(Weights, l.Init, l.Filters, l.Kernel, l.Kernel, l.Channels),
		parameter(Biases, Zeros, l.Filters)}
}

// padding returns the number of zero pixels before and after each row and column.
func (l Convolution) padding() (before, after int) {
	if l.Valid {
		return 0, 0
	}
	return (l.Kernel - 1) / 2, l.Kernel / 2
}

// result is the size of the result.
func (l Convolution) result() Image {
	before, after := l.padding()
	places := func(pixels int) int { return (pixels+before+after-l.Kernel)/l.stride() + 1 }
	return Image{places(l.Height), places(l.Width), l.Filters}
}

func (l Convolution) stride() int { return cmp.Or(l.Stride, 1) }

// Stored implements Sized: the result, and the patches that weights of each particle's own multiply.
func (l Convolution) Stored(own bool) int {
	to := l.result()
	stored := to.size()
	if own {
		stored += to.Height * to.Width * l.Kernel * l.Kernel * l.Channels
	}
	return stored
}

// Apply maps [H*W*channels, B] to [H'*W'*filters, B], or [J/c, ., B, c] likewise; a shared input becomes per particle
// if a parameter is.
func (l Convolution) Apply(params Params, h Value) Value {
	if err := l.check(); err != nil {
		panic(err)
	}
	w, b := params[parameterName(l.Number, Weights)], params[parameterName(l.Number, Biases)]
	x, to, batch := toImages(h, l.Image), l.result(), rowsOf(h)
	var z *graph.Node // [1 or J, B, H', W', filters]
	switch {
	case w.PerParticle:
		z = l.ofPatches(ownNumbers(w), x, batch)
	case exactly(x):
		z = l.convolve(w.Node, x)
	default:
		z = l.ofPatches(graph.Reshape(w.Node, 1, -1), x, x.Shape().Dim(0))
	}
	z = withBiases(graph.Reshape(z, -1, batch*to.Height*to.Width, l.Filters), b)
	z = graph.Reshape(z, -1, batch, to.Height, to.Width, l.Filters)
	for _, own := range []Value{w, b, h} {
		if own.PerParticle {
			return fromImages(z, batch, own.Node.Shape().Dim(-1))
		}
	}
	return Value{graph.Transpose(graph.Reshape(z, batch, -1), 0, 1), false}
}

func (l Convolution) check() error {
	switch {
	case l.Filters < 1 || l.Kernel < 1 || l.Stride < 0:
		return fmt.Errorf("nn: convolution %d has %d filters, a kernel of side %d and a stride of %d: they must be at least "+
			"1, or 0 for the default stride of 1", l.Number, l.Filters, l.Kernel, l.Stride)
	case l.Valid && l.Kernel > min(l.Height, l.Width):
		return fmt.Errorf("nn: convolution %d has a kernel of %d x %d pixels, larger than its images of %d x %d: take a "+
			"smaller Kernel, or fewer poolings before it", l.Number, l.Kernel, l.Kernel, l.Height, l.Width)
	}
	return nil
}

// withBiases adds biases to z, [1 or J, pixels, filters]. The gradient with respect to z is evaluated once and stored.
// XLA would evaluate it again, with the derivatives of the activation and of the pooling after it, in the gradient with
// respect to the biases and in that with respect to the weights. Its sum over pixels is a product with ones, which is
// vectorised.
func withBiases(z *graph.Node, b Value) *graph.Node {
	biases := b.Node
	if b.PerParticle {
		biases = ownNumbers(b)
	}
	biases = graph.Reshape(biases, -1, 1, z.Shape().Dim(2)) // [1 or J, 1, filters]
	var once *graph.Node
	hold := func(v *graph.Node) *graph.Node {
		if once == nil {
			once = compute.MaterialiseBeside(v, biases)
		}
		return once
	}
	return withGradient(graph.Add, z, biases,
		func(v *graph.Node) *graph.Node {
			if v = hold(v); z.Shape().Dim(0) < v.Shape().Dim(0) {
				return graph.ReduceAndKeep(v, graph.ReduceSum, 0)
			}
			return v
		},
		func(v *graph.Node) *graph.Node {
			v = hold(v)
			if biases.Shape().Dim(0) < v.Shape().Dim(0) { // shared
				v = graph.Reshape(v, 1, -1, v.Shape().Dim(2))
			}
			return sumOfPixels(v)
		})
}

// sumOfPixels is the sum of x, [J, pixels, filters], over pixels, [J, 1, filters], as a product with ones.
func sumOfPixels(x *graph.Node) *graph.Node {
	ones := x.Shape().Clone()
	ones.Dimensions = ones.Dimensions[:2]
	return graph.ExpandAxes(graph.Einsum("jp,jpf->jf", graph.Ones(x.Graph(), ones), x), 1)
}

// convolve is a convolution with shared weights, w [filters, kernel, kernel, channels], of images x [N, H, W,
// channels]: [N, H', W', filters].
func (l Convolution) convolve(w, x *graph.Node) *graph.Node {
	before, after := l.padding()
	side := l.Kernel - 1
	return withGradient(
		func(w, x *graph.Node) *graph.Node {
			return correlate(x, graph.TransposeAllAxes(w, 1, 2, 3, 0), before, after, l.stride())
		}, w, x,
		func(v *graph.Node) *graph.Node { // the images' channels are correlated with v, summed over images
			spread := graph.TransposeAllAxes(l.spread(v), 1, 2, 0, 3)
			ofW := correlate(graph.TransposeAllAxes(x, 3, 1, 2, 0), spread, before, after, 1)
			return graph.TransposeAllAxes(ofW, 3, 1, 2, 0)
		},
		func(v *graph.Node) *graph.Node { // v is correlated with the reversed kernels
			reversed := graph.Reverse(graph.TransposeAllAxes(w, 1, 2, 0, 3), 0, 1)
			return correlate(l.spread(v), reversed, side-before, side-after, 1)
		})
}

// spread puts a result's pixels, [N, H', W', filters], where they would be with Stride 1, and zeros between them.
func (l Convolution) spread(v *graph.Node) *graph.Node {
	if l.stride() == 1 {
		return v
	}
	whole := l
	whole.Stride = 1
	places, pixels := l.result(), whole.result()
	axis := func(places, pixels int) graph.PadAxis {
		return graph.PadAxis{Interior: l.Stride - 1, End: pixels - 1 - (places-1)*l.Stride}
	}
	return graph.Pad(v, graph.ScalarZero(v.Graph(), v.DType()), graph.PadAxis{}, axis(places.Height, pixels.Height),
		axis(places.Width, pixels.Width), graph.PadAxis{})
}

// correlate is XLA's convolution of x, [N, H, W, in], with kernels w, [k, l, in, out], with a stride and the given
// numbers of zeros before and after each row and column: [N, H', W', out]. The gradients of GoMLX's Convolve are not
// used. They have other orders of the axes, for which XLA on a CPU has no fast form within a loop, as over chunks of
// particles: there they took 25 to 70 times as long. And for kernels with even sides that with respect to the images is
// wrong.
func correlate(x, w *graph.Node, before, after, stride int) *graph.Node {
	const images, rows, columns, channels = 0, 1, 2, 3
	return graph.Convolve(x, w).AxesConfig(graph.ConvolveAxesConfig{
		InputBatch: images, InputSpatial: []int{rows, columns}, InputChannels: channels,
		KernelSpatial: []int{0, 1}, KernelInputChannels: 2, KernelOutputChannels: 3,
		OutputBatch: images, OutputSpatial: []int{rows, columns}, OutputChannels: channels,
	}).Strides(stride).PaddingPerDim([][2]int{{before, after}, {before, after}}).Done()
}

// exactly says whether XLA's convolutions of a backend are computed in x's type. On NVIDIA's GPUs those of float32 have
// the three digits of TensorFloat-32, which go-xla cannot turn off as it can for matrix products.
func exactly(x *graph.Node) bool {
	backend := x.Graph().Backend()
	return backend.Name() != "xla" || compute.OnCPU(backend)
}

// ofPatches convolves with each particle's own weights, w [J, filters*kernel*kernel*channels]. x has the images of each
// particle, [J*images, H, W, channels], or images that all share, [images, H, W, channels]. The result is [J,
// images*H'*W', filters].
func (l Convolution) ofPatches(w, x *graph.Node, images int) *graph.Node {
	before, after := l.padding()
	to := l.result()
	zero := graph.ScalarZero(x.Graph(), x.DType())
	edge := graph.PadAxis{Start: before, End: after}
	x = graph.Pad(x, zero, graph.PadAxis{}, edge, edge, graph.PadAxis{})
	places := func(from, count int) graph.SliceAxisSpec {
		return graph.AxisRange(from, from+(count-1)*l.stride()+1).Stride(l.stride())
	}
	var pixels []*graph.Node // of every patch, in the order of the weights
	for row := range l.Kernel {
		for column := range l.Kernel {
			pixels = append(pixels, graph.Slice(x, graph.AxisRange(), places(row, to.Height), places(column, to.Width),
				graph.AxisRange()))
		}
	}
	particles, terms := w.Shape().Dim(0), l.Kernel*l.Kernel*l.Channels
	patches := graph.Reshape(graph.Concatenate(pixels, -1), -1, images*to.Height*to.Width, terms)
	patches = graph.BroadcastToDims(patches, particles, images*to.Height*to.Width, terms)
	return graph.Einsum("jri,joi->jro", patches, graph.Reshape(w, particles, l.Filters, terms))
}

// Pool divides images into squares of Side x Side pixels, and takes the average of each, or the largest number, channel
// by channel. Rows and columns that do not fill a square, at the bottom and on the right, are left out. With Side 0 the
// whole image becomes one pixel.
type Pool struct {
	Image // of its input
	Side  int
	Max   bool // the largest number
}

// Parameters of a pool: none.
func (p Pool) Parameters() []Parameter { return nil }

// result is the size of the result.
func (p Pool) result() Image {
	rows, columns := p.sides()
	return Image{p.Height / rows, p.Width / columns, p.Channels}
}

// sides are those of what becomes one pixel.
func (p Pool) sides() (rows, columns int) { return cmp.Or(p.Side, p.Height), cmp.Or(p.Side, p.Width) }

// Stored implements Sized.
func (p Pool) Stored(bool) int { return p.result().size() }

func (p Pool) check() error {
	if p.Side < 0 || p.Side > min(p.Height, p.Width) {
		return fmt.Errorf("nn: a pool of squares of side %d in images of %d x %d pixels: it must fit into them, or be 0 for "+
			"the whole image; take fewer poolings before it", p.Side, p.Height, p.Width)
	}
	return nil
}

// Apply maps [H*W*channels, B] to [H/side * W/side * channels, B], or [J/c, ., B, c] likewise.
func (p Pool) Apply(_ Params, h Value) Value {
	if err := p.check(); err != nil {
		panic(err)
	}
	to := p.result()
	rowsOfOne, columnsOfOne := p.sides()
	x := toImages(h, p.Image)
	x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, to.Height*rowsOfOne),
		graph.AxisRange(0, to.Width*columnsOfOne), graph.AxisRange())
	const rows, columns = 2, 4 // of a square
	x = graph.Reshape(x, -1, to.Height, rowsOfOne, to.Width, columnsOfOne, p.Channels)
	if p.Max {
		x = largest(largest(x, columns), rows)
	} else {
		// The gradient with respect to the squares is stored as it is, square by square: in the shape of what consumes
		// it, its places would be computed by divisions, number by number.
		x = graph.IdentityWithCustomGradient(x, func(x, v *graph.Node) *graph.Node { return compute.Materialise(v, x) })
		x = graph.MulScalar(graph.ReduceSum(x, rows, columns), 1/float64(rowsOfOne*columnsOfOne))
	}
	batch := rowsOf(h)
	if h.PerParticle {
		return fromImages(x, batch, h.Node.Shape().Dim(-1))
	}
	return Value{graph.Transpose(graph.Reshape(x, batch, -1), 0, 1), false}
}

// largest is the maximum over an axis, pair by pair. If numbers are equal, as in an image's empty background, only one
// of them gets the gradient. graph.ReduceMax would give it to each of them, and so multiply it by their number.
func largest(x *graph.Node, axis int) *graph.Node {
	at := func(i int) *graph.Node { return graph.Squeeze(sliceOf(x, axis, i, i+1), axis) }
	most := at(0)
	for i := 1; i < x.Shape().Dim(axis); i++ {
		most = graph.Max(most, at(i))
	}
	return most
}

// rowsOf is the number of rows B of a value.
func rowsOf(h Value) int {
	if h.PerParticle {
		return h.Node.Shape().Dim(2)
	}
	return h.Node.Shape().Dim(1)
}

// widthOf is the number of a value's numbers for a row.
func widthOf(h Value) int {
	if h.PerParticle {
		return h.Node.Shape().Dim(1)
	}
	return h.Node.Shape().Dim(0)
}

// toImages is a value as images, [N, height, width, channels]. It panics where a value does not hold images of the
// size: they would be cut into images of several rows, or joined from them.
func toImages(h Value, i Image) *graph.Node {
	if have := widthOf(h); min(i.Height, i.Width, i.Channels) < 1 || have != i.size() {
		panic(fmt.Errorf("nn: a layer for images of %d x %d pixels with %d channels is given %d numbers: set its Height, "+
			"Width and Channels to those of the layer before", i.Height, i.Width, i.Channels, have))
	}
	x := h.Node
	if h.PerParticle {
		x = graph.TransposeAllAxes(x, 0, 3, 2, 1) // [J/c, c, B, width]
	} else {
		x = graph.Transpose(x, 0, 1)
	}
	return graph.Reshape(x, -1, i.Height, i.Width, i.Channels)
}

// fromImages is the inverse of toImages for images of each particle's own, in blocks of c particles.
func fromImages(x *graph.Node, batch, c int) Value {
	particles := x.Shape().Size() / batch
	for _, dim := range x.Shape().Dimensions[max(0, x.Rank()-3):] {
		particles /= dim
	}
	return Value{graph.TransposeAllAxes(graph.Reshape(x, particles/c, c, batch, -1), 0, 3, 2, 1), true}
}

// ownNumbers returns a parameter's numbers for each particle, [J, size], of [J/c, ..., c].
func ownNumbers(p Value) *graph.Node {
	blocks, c := p.Node.Shape().Dim(0), p.Node.Shape().Dim(-1)
	x := graph.Reshape(p.Node, blocks, -1, c)
	return graph.Reshape(graph.Transpose(x, 1, 2), blocks*c, -1)
}
