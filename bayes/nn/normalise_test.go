package nn

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// A normalisation by filter responses and the thresholded unit equal sums over pixels in Go, and their gradients the
// differences of these, for parameters and images that are shared or of each particle's own.
func TestFilterResponse(t *testing.T) {
	const particles, batch, height, width, channels = 3, 2, 2, 3, 2
	const in = height * width * channels
	layer := FilterResponse{Number: 1, Image: Image{height, width, channels}}
	unit := Threshold{Number: 2, Image: Image{height, width, channels}}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, form := range []struct {
			scale, threshold, h bool // of each particle's own
			block               int
		}{{false, false, false, 1}, {true, false, false, 2}, {false, true, true, 1}, {true, true, true, 2}} {
			if engine.IsXLA() && form.block == 1 { // which compiles long
				continue
			}
			of := func(own bool) int {
				if own {
					return particles
				}
				return 1
			}
			every := of(form.scale || form.threshold || form.h)
			inputs := [][]float64{
				sines(of(form.scale)*channels, 1.3), sines(channels, .4), sines(of(form.threshold)*channels, .9),
				sines(of(form.h)*in*batch, .7), sines(every*in*batch, 2.1),
			}
			got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
				var x []*graph.Node
				for _, input := range a {
					x = append(x, graph.ConvertDType(input, dtype))
				}
				value := func(x *graph.Node, mine bool, dims ...int) Value {
					if mine {
						return own(x, particles, form.block, dims...)
					}
					return Value{graph.Reshape(x, dims...), false}
				}
				params := Params{
					"layer1/scale": value(x[0], form.scale, channels), "layer1/shift": value(x[1], false, channels),
					"layer2/threshold": value(x[2], form.threshold, channels),
				}
				y := unit.Apply(params, layer.Apply(params, value(x[3], form.h, in, batch)))
				flat := particlesOf(y, particles)
				return append([]*graph.Node{flat}, graph.Gradient(graph.ReduceAllSum(graph.Mul(flat, x[4])), x[:4]...)...)
			}, inputs[0], inputs[1], inputs[2], inputs[3], inputs[4])

			at := func(i, j int, own bool) int { return btoi(own)*j*channels + i }
			want := func(inputs [][]float64) []float64 {
				y := make([]float64, every*in*batch)
				for j := range every {
					for n := range batch {
						for c := range channels {
							pixel := func(j, p int) int { return (j*in+p*channels+c)*batch + n }
							square := 0.
							for p := range height * width {
								square += math.Pow(inputs[3][pixel(j*btoi(form.h), p)], 2) / (height * width)
							}
							for p := range height * width {
								z := inputs[3][pixel(j*btoi(form.h), p)] / math.Sqrt(square+1e-6)
								z = inputs[0][at(c, j, form.scale)]*z + inputs[1][c]
								y[pixel(j, p)] = math.Max(z, inputs[2][at(c, j, form.threshold)])
							}
						}
					}
				}
				return y
			}
			name, tolerance := fmt.Sprintf("%+v", form), 1e-7
			if dtype == compute.Float32 {
				tolerance = 1e-4
			}
			computetest.Near(t, name, got[0], want(inputs), tolerance)
			for k := range 4 {
				gradient := make([]float64, len(inputs[k]))
				for i, v := range inputs[k] {
					const h = 1e-6
					for _, sign := range []float64{1, -1} {
						inputs[k][i] = v + sign*h
						for m, y := range want(inputs) {
							gradient[i] += sign * inputs[4][m] * y / (2 * h)
						}
					}
					inputs[k][i] = v
				}
				computetest.Near(t, fmt.Sprintf("%s, gradient %d", name, k), got[1+k], gradient, tolerance)
			}
		}
	})
}
