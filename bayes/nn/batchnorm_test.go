package nn

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// A batch normalisation equals sums over rows and pixels in Go, and its gradients the differences of these: with the
// statistics of the real rows of a mini-batch, which its running statistics then go a tenth of the way to, and with the
// running ones; shared and of each particle's own.
func TestBatchNorm(t *testing.T) {
	const particles, batch, height, width, channels = 3, 4, 2, 3, 2
	const pixels, in = height * width, height * width * channels
	layer := BatchNorm{Number: 1, Height: height, Width: width, Channels: channels}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, form := range []struct {
			own   bool // of each particle
			block int
			count int // of real rows in training; 0: no training
		}{{false, 1, 3}, {false, 1, 0}, {true, 1, 4}, {true, 2, 3}, {true, 2, 0}} {
			if engine.IsXLA() && form.block == 1 && form.count != 3 { // which compiles long
				continue
			}
			every := 1
			if form.own {
				every = particles
			}
			inputs := [][]float64{
				sines(every*channels, 1.3), sines(every*channels, .4), sines(every*channels, 2.9), sines(every*channels, .9),
				sines(every*in*batch, .7), sines(every*in*batch, 2.1),
			}
			for i, v := range inputs[3] {
				inputs[3][i] = v*v + .1 // a variance
			}
			got := computetest.Run(t, engine, func(g *graph.Graph, a []*graph.Node) []*graph.Node {
				value := func(i int, dims ...int) Value {
					x := graph.ConvertDType(a[i], dtype)
					if form.own {
						return own(x, particles, form.block, dims...)
					}
					return Value{graph.Reshape(x, dims...), false}
				}
				params := Params{}
				for i, p := range layer.Parameters() {
					params[p.Name] = value(i, channels)
				}
				if form.count > 0 {
					params = params.Training(graph.Scalar(g, dtype, float64(form.count)))
				}
				flat := particlesOf(layer.Apply(params, value(4, in, batch)), particles)
				weighted := graph.ReduceAllSum(graph.Mul(flat, graph.ConvertDType(a[5], dtype)))
				outputs := []*graph.Node{flat, particlesOf(params["layer1/mean"], particles),
					particlesOf(params["layer1/variance"], particles)}
				return append(outputs, graph.Gradient(weighted, a[:5]...)...)
			}, inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5])

			want := func(inputs [][]float64) (y, mean, variance []float64) {
				y = make([]float64, every*in*batch)
				for at := range every * channels {
					j, c := at/channels, at%channels
					place := func(p, n int) int { return (j*in+p*channels+c)*batch + n }
					m, v := inputs[2][at], inputs[3][at]
					mean, variance = append(mean, m), append(variance, v)
					if form.count > 0 {
						values := float64(form.count * pixels)
						m, v = 0, 0
						for p := range pixels {
							for n := range form.count {
								m += inputs[4][place(p, n)] / values
							}
						}
						for p := range pixels {
							for n := range form.count {
								v += math.Pow(inputs[4][place(p, n)]-m, 2) / values
							}
						}
						mean[at], variance[at] = .9*mean[at]+.1*m, .9*variance[at]+.1*v*values/(values-1)
					}
					for p := range pixels {
						for n := range batch {
							i := place(p, n)
							y[i] = inputs[0][at]*(inputs[4][i]-m)/math.Sqrt(v+1e-5) + inputs[1][at]
						}
					}
				}
				return y, mean, variance
			}
			name, tolerance := fmt.Sprintf("%+v", form), 1e-7
			if dtype == compute.Float32 {
				tolerance = 1e-4
			}
			y, mean, variance := want(inputs)
			computetest.Near(t, name, got[0], y, tolerance)
			computetest.Near(t, name+", mean", got[1], mean, tolerance)
			computetest.Near(t, name+", variance", got[2], variance, tolerance)
			for k := range 5 {
				gradient := make([]float64, len(inputs[k]))
				for i, v := range inputs[k] {
					const h = 1e-6
					for _, sign := range []float64{1, -1} {
						inputs[k][i] = v + sign*h
						moved, _, _ := want(inputs)
						for m, y := range moved {
							gradient[i] += sign * inputs[5][m] * y / (2 * h)
						}
					}
					inputs[k][i] = v
				}
				computetest.Near(t, fmt.Sprintf("%s, gradient %d", name, k), got[3+k], gradient, tolerance)
			}
		}
	})
}

// A subsample takes each second pixel of each second row, and its gradient goes back there alone; a convolution without
// biases is one with biases of 0.
func TestSubsampleAndNoBiases(t *testing.T) {
	const particles, batch, height, width, channels, filters = 2, 2, 3, 4, 2, 3
	const in = height * width * channels
	layer := subsample{Height: height, Width: width, Channels: channels, Filters: filters, Stride: 2}
	with := Convolution{Number: 1, Height: height, Width: width, Channels: channels, Filters: filters, Kernel: 3,
		Stride: 2}
	without := with
	without.NoBiases = true
	if n := len(without.Parameters()); n != 1 {
		t.Errorf("%d parameters without biases", n)
	}
	const out = 2 * 2 * filters
	for _, block := range []int{0, 1, 2} { // 0: shared
		every := max(1, particles*min(block, 1))
		x, weights := sines(every*in*batch, .7), sines(every*out*batch, 2.1)
		got := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, a []*graph.Node) []*graph.Node {
			value := func(x *graph.Node, dims ...int) Value {
				if block > 0 {
					return own(x, particles, block, dims...)
				}
				return Value{graph.Reshape(x, dims...), false}
			}
			h := value(a[0], in, batch)
			flat := particlesOf(layer.Apply(nil, h), particles)
			gradient := graph.Gradient(graph.ReduceAllSum(graph.Mul(flat, a[1])), a[0])[0]
			kernels := Value{graph.Reshape(a[2], filters, 3, 3, channels), false}
			zero := Value{graph.ZerosLike(graph.Slice(a[2], graph.AxisRange(0, filters))), false}
			biased := with.Apply(Params{"layer1/weights": kernels, "layer1/biases": zero}, h)
			unbiased := without.Apply(Params{"layer1/weights": kernels}, h)
			return []*graph.Node{flat, gradient, particlesOf(biased, particles), particlesOf(unbiased, particles)}
		}, x, weights, sines(filters*9*channels, .3))
		want, gradient := make([]float64, len(weights)), make([]float64, len(x))
		for j := range every {
			for row := range 2 {
				for column := range 2 {
					for c := range channels {
						for n := range batch {
							to := (j*out+(row*2+column)*filters+c)*batch + n
							from := (j*in+(2*row*width+2*column)*channels+c)*batch + n
							want[to], gradient[from] = x[from], weights[to]
						}
					}
				}
			}
		}
		name := fmt.Sprintf("blocks of %d", block)
		computetest.Near(t, name, got[0], want, 0)
		computetest.Near(t, name+", gradient", got[1], gradient, 0)
		computetest.Near(t, name+", without biases", got[3], got[2], 0)
	}
}
