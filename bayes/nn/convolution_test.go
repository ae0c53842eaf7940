package nn

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// sines are n numbers between -1 and 1.
func sines(n int, frequency float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Sin(frequency * float64(i+1))
	}
	return v
}

// own is x, [J*n], as a Value of each particle's own numbers in blocks of c, [J/c, dims..., c].
func own(x *graph.Node, particles, c int, dims ...int) Value {
	blocked := Block(graph.Reshape(x, particles, -1), c)
	shape := append(append([]int{blocked.Shape().Dim(0)}, dims...), c)
	return Value{graph.Reshape(blocked, shape...), true}
}

// particlesOf undoes own: [J*n], or the numbers that all particles share.
func particlesOf(v Value, particles int) *graph.Node {
	if !v.PerParticle {
		return graph.Reshape(v.Node, -1)
	}
	blocks, c := v.Node.Shape().Dim(0), v.Node.Shape().Dim(-1)
	return graph.Reshape(Unblock(graph.Reshape(v.Node, blocks, -1, c), particles), -1)
}

// A convolution and its gradients equal sums over pixels in Go, for images that are not square, with several channels,
// kernels of even and odd sides, as large as the image too, strides, both paddings, and weights, biases and images that
// are shared or of each particle's own, in blocks of one particle and of several.
func TestConvolution(t *testing.T) {
	const particles, batch = 6, 2
	shapes := []Convolution{
		{Number: 1, Image: Image{5, 4, 3}, Filters: 2, Kernel: 3},
		{Number: 1, Image: Image{4, 5, 2}, Filters: 3, Kernel: 2},
		{Number: 1, Image: Image{5, 4, 1}, Filters: 2, Kernel: 4, Valid: true},
		{Number: 1, Image: Image{3, 6, 2}, Filters: 1, Kernel: 2, Valid: true},
		{Number: 1, Image: Image{3, 2, 2}, Filters: 3, Kernel: 1},
		{Number: 1, Image: Image{7, 6, 2}, Filters: 3, Kernel: 3, Stride: 2},
		{Number: 1, Image: Image{5, 8, 1}, Filters: 2, Kernel: 2, Stride: 3, Valid: true},
		{Number: 1, Image: Image{4, 5, 3}, Filters: 2, Kernel: 1, Stride: 2},
	}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-12
		if dtype == compute.Float32 {
			tolerance = 1e-5
		}
		for i, l := range shapes {
			for _, form := range []struct {
				w, b, h bool // of each particle's own
				block   int
			}{
				{false, false, false, 1}, {true, true, false, 1}, {false, false, true, 1}, {true, true, true, 1},
				{false, true, false, 1}, {true, false, true, 1}, {true, true, true, 4}, {false, true, true, 4},
				{true, true, false, 4},
			} {
				if i > 1 && form.block > 1 {
					continue
				}
				// XLA compiles long: all own in both blocks, own weights of a shared image, and at three shapes shared weights,
				// for which it has an operation of its own, with both paddings, kernels of even and odd sides and one as large
				// as the image. Own weights are products of patches, which the Go backend cuts out by the same lines.
				all, shared := form.w && form.b && form.h, form.h && !form.b && !form.w
				if engine.IsXLA() && !(shared && i < 3) && !(i == 0 && form.w && form.b && (form.h || form.block == 1)) &&
					!(i == 1 && all && form.block == 1) {
					continue
				}
				name := fmt.Sprintf("%+v, %+v", l, form)
				count := func(own bool) int {
					if own {
						return particles
					}
					return 1
				}
				height, width := l.result().Height, l.result().Width
				in, area := l.Height*l.Width*l.Channels, l.Kernel*l.Kernel*l.Channels
				out := height * width * l.Filters
				outputs := count(form.w || form.b || form.h)
				w, b := sines(count(form.w)*l.Filters*area, 1.3), sines(count(form.b)*l.Filters, .4)
				h, v := sines(count(form.h)*in*batch, .7), sines(outputs*out*batch, 2.1)
				got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
					x := func(i int) *graph.Node { return graph.ConvertDType(a[i], dtype) }
					w, b, h, v := x(0), x(1), x(2), x(3)
					value := func(x *graph.Node, mine bool, dims ...int) Value {
						if mine {
							return own(x, particles, form.block, dims...)
						}
						return Value{graph.Reshape(x, dims...), false}
					}
					y := particlesOf(l.Apply(Params{
						"layer1/weights": value(w, form.w, l.Filters, l.Kernel, l.Kernel, l.Channels),
						"layer1/biases":  value(b, form.b, l.Filters),
					}, value(h, form.h, in, batch)), particles)
					outputs := append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(v, y)), w, b, h)...)
					if form.w {
						return outputs
					}
					// The two ways to a convolution with shared weights, of which the engine takes one.
					filters := graph.Reshape(w, l.Filters, l.Kernel, l.Kernel, l.Channels)
					images := graph.Reshape(h, -1, l.Height, l.Width, l.Channels)
					for _, z := range []*graph.Node{l.convolve(filters, images),
						l.ofPatches(graph.Reshape(w, 1, -1), images, images.Shape().Dim(0))} {
						z = graph.Reshape(z, -1)
						outputs = append(outputs, z)
						outputs = append(outputs, graph.Gradient(graph.ReduceAllSum(graph.Mul(z, graph.Sin(z))), w, h)...)
					}
					return outputs
				}, w, b, h, v)
				y, ofW, ofB, ofH := make([]float64, len(v)), make([]float64, len(w)), make([]float64, len(b)),
					make([]float64, len(h))
				before := 0
				if !l.Valid {
					before = (l.Kernel - 1) / 2
				}
				for at := range y { // y is [J, (row, column, filter), B]
					n, f := at%batch, at/batch%l.Filters
					column, row, j := at/batch/l.Filters%width, at/batch/l.Filters/width%height, at/batch/out
					atB := j*l.Filters*btoi(form.b) + f
					y[at] += b[atB]
					ofB[atB] += v[at]
					for dy := range l.Kernel {
						for dx := range l.Kernel {
							r, c := row*l.stride()+dy-before, column*l.stride()+dx-before
							if r < 0 || c < 0 || r >= l.Height || c >= l.Width {
								continue
							}
							for ch := range l.Channels {
								atW := ((j*btoi(form.w)*l.Filters+f)*l.Kernel+dy)*l.Kernel*l.Channels + dx*l.Channels + ch
								atH := (j*btoi(form.h)*in+(r*l.Width+c)*l.Channels+ch)*batch + n
								y[at] += w[atW] * h[atH]
								ofW[atW] += v[at] * h[atH]
								ofH[atH] += v[at] * w[atW]
							}
						}
					}
				}
				if !form.w {
					for k := range 3 {
						computetest.Near(t, fmt.Sprintf("%s, patches, output %d", name, k), got[7+k], got[4+k], tolerance)
					}
				}
				for k, want := range [][]float64{y, ofW, ofB, ofH} {
					computetest.Near(t, fmt.Sprintf("%s, output %d", name, k), got[k], want, tolerance)
				}
			}
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A pool and its gradient equal averages and maxima in Go, for images whose last rows and columns fill no square, that
// are shared or of each particle's own. Of equal pixels one alone takes the gradient of their maximum.
func TestPool(t *testing.T) {
	const particles, batch = 6, 2
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-12
		if dtype == compute.Float32 {
			tolerance = 1e-5
		}
		for i, p := range []Pool{
			{Image: Image{5, 7, 3}, Side: 2}, {Image: Image{6, 3, 2}, Side: 3},
			{Image: Image{5, 7, 3}, Side: 2, Max: true}, {Image: Image{3, 4, 2}},
			{Image: Image{2, 3, 2}, Max: true}, {Image: Image{6, 7, 1}, Side: 3, Max: true},
		} {
			for _, block := range []int{0, 1, 4} { // 0: a shared value
				if engine.IsXLA() && i != 2 && !(i == 1 && block == 4) {
					continue // compiles long: the maximum's forms, and one average
				}
				count := min(block, 1)*(particles-1) + 1
				height, width := p.result().Height, p.result().Width
				in, out := p.Height*p.Width*p.Channels, height*width*p.Channels
				v := sines(count*out*batch, 2.1)
				run := computetest.Compile(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
					h, v := graph.ConvertDType(a[0], dtype), graph.ConvertDType(a[1], dtype)
					x := Value{graph.Reshape(h, in*count, -1), false}
					if block > 0 {
						x = own(h, particles, block, in, batch)
					}
					y := particlesOf(p.Apply(nil, x), particles)
					return []*graph.Node{y, graph.Gradient(graph.ReduceAllSum(graph.Mul(v, y)), h)[0]}
				})
				for _, flat := range []bool{false, true} {
					name := fmt.Sprintf("%+v, block %d, flat %v", p, block, flat)
					h := sines(count*in*batch, .7)
					if flat {
						h = make([]float64, len(h))
					}
					got := run(h, v)
					y, ofH := make([]float64, len(v)), make([]float64, len(h))
					for at := range y { // y is [J, (row, column, channel), B]
						n, ch := at%batch, at/batch%p.Channels
						column, row, j := at/batch/p.Channels%width, at/batch/p.Channels/width%height, at/batch/out
						most, where := math.Inf(-1), -1
						rows, columns := p.sides()
						for dy := range rows {
							for dx := range columns {
								from := (j*in+((row*rows+dy)*p.Width+column*columns+dx)*p.Channels+ch)*batch + n
								if h[from] > most {
									most, where = h[from], from
								}
								if !p.Max {
									y[at] += h[from] / float64(rows*columns)
									ofH[from] += v[at] / float64(rows*columns)
								}
							}
						}
						if p.Max {
							y[at] = most
							ofH[where] += v[at]
						}
					}
					computetest.Near(t, name, got[0], y, tolerance)
					computetest.Near(t, name+", gradient", got[1], ofH, tolerance)
				}
			}
		}
	})
}
