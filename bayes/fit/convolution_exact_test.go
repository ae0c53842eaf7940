package fit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// tinyCNN is a convolutional network with two numbers that the data tell of: its posterior is known by quadrature.
type tinyCNN struct {
	network    nn.Network
	stochastic bayes.Partition
	idle       int // numbers of phi behind these two of which the data tell nothing
	psi        []float64
	pixels     int
	output     func(a, b float64, x []float64) float64 // written out, for the two numbers and a picture
}

const (
	pictures     = 5
	pictureNoise = .3
)

func (c tinyCNN) bayesian() bayes.Model {
	return bayes.Model{Network: c.network, Likelihood: bayes.Gaussian{StdDev: pictureNoise}, Stochastic: c.stochastic,
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}}
}

// data are noise, and what the network gives for it at the numbers 1 and -.6, with noise.
func (c tinyCNN) data() *dataset.Dataset {
	rng := rand.New(rand.NewPCG(3, 4))
	x := mat.NewDense(pictures, c.pixels, nil)
	d := &dataset.Dataset{Name: "pictures", Target: "y", X: x}
	for pixel := range c.pixels {
		d.Features = append(d.Features, fmt.Sprint("pixel ", pixel))
	}
	for n := range pictures {
		for pixel := range c.pixels {
			x.Set(n, pixel, rng.NormFloat64())
		}
		d.Y = append(d.Y, c.output(1, -.6, x.RawRowView(n))+pictureNoise*rng.NormFloat64())
	}
	return d
}

// oneKernel slides a kernel over a row of pixels. Of its 2 x 2 weights the second row meets zeros alone.
type oneKernel struct{}

func init() { bayes.Register(oneKernel{}) }

// Layers implements nn.Network.
func (oneKernel) Layers(inputs, _ int) ([]nn.Layer, error) {
	image := nn.Image{Height: 1, Width: inputs, Channels: 1}
	return []nn.Layer{
		withoutBiases{nn.Convolution{Number: 1, Image: image, Filters: 1, Kernel: 2}}, nn.Tanh, nn.Pool{Image: image},
	}, nil
}

// ownKernel has the kernel as each particle's own.
func ownKernel() tinyCNN {
	const width = 4
	return tinyCNN{
		network: oneKernel{}, stochastic: bayes.All(), idle: 2, pixels: width,
		output: func(a, b float64, x []float64) float64 {
			sum := math.Tanh(a * x[width-1])
			for i := range width - 1 {
				sum += math.Tanh(a*x[i] + b*x[i+1])
			}
			return sum / width
		},
	}
}

// withoutBiases is a convolution whose biases are 0.
type withoutBiases struct{ nn.Convolution }

// Parameters implements nn.Layer.
func (l withoutBiases) Parameters() []nn.Parameter { return l.Convolution.Parameters()[:1] }

// Apply implements nn.Layer.
func (l withoutBiases) Apply(params nn.Params, h nn.Value) nn.Value {
	zeros := graph.Zeros(h.Node.Graph(), shapes.Make(h.Node.DType(), l.Filters))
	return l.Convolution.Apply(nn.Params{"layer1/weights": params["layer1/weights"], "layer1/biases": {Node: zeros}}, h)
}

// twoConvolutions are two, the second with a stride, and a dense layer.
type twoConvolutions struct{}

const height, width, filters, places = 3, 4, 2, 2 // places of the second's kernel, in both directions

// Layers implements nn.Network.
func (twoConvolutions) Layers(int, int) ([]nn.Layer, error) {
	image := nn.Image{Height: height, Width: width, Channels: 1}
	result := nn.Image{Height: height, Width: width, Channels: filters}
	return []nn.Layer{
		nn.Convolution{Number: 1, Image: image, Filters: filters, Kernel: 2}, nn.Tanh,
		nn.Convolution{Number: 2, Image: result, Filters: 1, Kernel: 3, Stride: 2},
		nn.Tanh, nn.Dense{Number: 3, In: places * places, Out: 1},
	}, nil
}

// sharedKernels have two biases of the first convolution as each particle's own.
func sharedKernels() tinyCNN {
	c := tinyCNN{network: twoConvolutions{}, stochastic: bayes.Names("layer1/biases"), pixels: height * width}
	const first, second, last = filters * 2 * 2, 3 * 3 * filters, places * places
	for i := range first + second + 1 + last + 1 {
		c.psi = append(c.psi, .8*math.Sin(1.9*float64(i+1)))
	}
	u, v, w := c.psi[:first], c.psi[first:first+second+1], c.psi[first+second+1:]
	c.output = func(a, b float64, x []float64) float64 {
		var hidden [height][width][filters]float64
		for r := range height {
			for s := range width {
				for f, sum := range []float64{a, b} {
					for dr := range min(2, height-r) { // zeros below and on the right
						for ds := range min(2, width-s) {
							sum += u[(f*2+dr)*2+ds] * x[(r+dr)*width+s+ds]
						}
					}
					hidden[r][s][f] = math.Tanh(sum)
				}
			}
		}
		out := w[last]
		for i := range places {
			for k := range places {
				sum := v[second]
				for dr := range 3 { // zeros on all sides
					for ds := range 3 {
						if r, s := 2*i+dr-1, 2*k+ds-1; r >= 0 && r < height && s >= 0 && s < width {
							for f := range filters {
								sum += v[(dr*3+ds)*filters+f] * hidden[r][s][f]
							}
						}
					}
				}
				out += w[i*places+k] * math.Tanh(sum)
			}
		}
		return out
	}
	return c
}

// square is an unnormalised log-density of two numbers, which is all but 0 outside of [-reach, reach]^2, with integrals
// by the midpoint rule.
type square struct {
	first []float64   // the distribution function of a, at the ends of the cells
	given [][]float64 // those of b, given the a in the middle of each cell
}

const (
	reach = 5.5
	cells = 160
)

func middle(cell int) float64 { return reach * (2*(float64(cell)+.5)/cells - 1) }

func newSquare(log func(a, b float64) float64) square {
	var q square
	sums := make([]float64, cells)
	for i := range sums {
		p := make([]float64, cells)
		for k := range p {
			p[k] = math.Exp(log(middle(i), middle(k)))
		}
		sums[i] = floats.Sum(p)
		q.given = append(q.given, cumulated(p))
	}
	q.first = cumulated(sums)
	return q
}

// second is the distribution function of b given a.
func (q square) second(a float64) []float64 {
	at := min(max((a/reach+1)/2*cells-.5, 0), cells-1-1e-9)
	i := int(at)
	out := make([]float64, cells+1)
	floats.AddScaled(out, 1-(at-float64(i)), q.given[i])
	floats.AddScaled(out, at-float64(i), q.given[i+1])
	return out
}

// cumulated is a distribution function at the ends of the cells, [cells+1].
func cumulated(p []float64) []float64 {
	out := append([]float64{0}, p...)
	floats.CumSum(out, out)
	floats.Scale(1/out[len(p)], out)
	return out
}

// below is a distribution function at x.
func below(distribution []float64, x float64) float64 {
	at := min(max((x/reach+1)/2*cells, 0), cells-1e-9)
	i := int(at)
	return distribution[i] + (at-float64(i))*(distribution[i+1]-distribution[i])
}

// quantile is the inverse of below.
func quantile(distribution []float64, u float64) float64 {
	i := min(max(sort.SearchFloat64s(distribution, u), 1), cells)
	at := float64(i-1) + (u-distribution[i-1])/(distribution[i]-distribution[i-1])
	return reach * (2*at/cells - 1)
}

// posterior is the exact one.
func (c tinyCNN) posterior(d *dataset.Dataset) square {
	var rows [][]float64
	for n := range pictures {
		rows = append(rows, mat.Row(nil, n, d.X))
	}
	return newSquare(func(a, b float64) float64 {
		sum := distuv.UnitNormal.LogProb(a) + distuv.UnitNormal.LogProb(b)
		for n, x := range rows {
			sum += distuv.Normal{Mu: c.output(a, b, x), Sigma: pictureNoise}.LogProb(d.Y[n])
		}
		return sum
	})
}

// Kernels leave the posteriors of convolutional networks, as the library evaluates them, invariant, and find them: the
// gradients are right too.
func TestConvolutionKernels(t *testing.T) {
	for name, c := range map[string]tinyCNN{"own kernel": ownKernel(), "shared kernels": sharedKernels()} {
		t.Run(name, func(t *testing.T) {
			bound := computetest.Must(c.bayesian().Bind(c.pixels, 1))
			d := c.data()
			exact := c.posterior(d)
			target := check.Target{
				Name: name, D: 2 + c.idle, Start: []float64{-.3, -1.5, 1, -1}[:2+c.idle],
				Draw: func(r *rand.Rand) (x, _ []float64) {
					a := quantile(exact.first, r.Float64())
					x = []float64{a, quantile(exact.second(a), r.Float64())}
					for range c.idle {
						x = append(x, r.NormFloat64())
					}
					return x, nil
				},
				Uniform: func(x, _ []float64) []float64 {
					u := []float64{below(exact.first, x[0]), below(exact.second(x[0]), x[1])}
					for _, v := range x[2:] {
						u = append(u, distuv.UnitNormal.CDF(v))
					}
					return u
				},
				LogDensity: func(phi, _ *graph.Node) *graph.Node {
					plan := density.NewPlan(bound, phi.DType(),
						density.Workload{Particles: phi.Shape().Dim(0), Rows: pictures})
					constant := func(values []float64, dims ...int) *graph.Node {
						if len(values) == 0 {
							return nil
						}
						return graph.Reshape(graph.ConvertDType(graph.Const(phi.Graph(), values), phi.DType()), dims...)
					}
					return density.At(density.Full(density.Likelihood{Model: bound, Plan: plan}),
						constant(c.psi, len(c.psi)), density.Batch{
							X: constant(mat.DenseCopyOf(d.X).RawMatrix().Data, pictures, c.pixels), Y: constant(d.Y, pictures),
						}).LogDensity(phi)
				},
			}
			for _, kernel := range []mcmc.Kernel{
				mcmc.HMC{StepSize: .3, Steps: 4, Jitter: .5}, mcmc.RandomWalkMetropolis{StepSize: .7},
			} {
				check.Kernel(t, kernel, check.Options{Targets: []check.Target{target}, Engine: computetest.Go(t),
					DType: compute.Float64, Particles: 300, Transitions: 25})
			}
		})
	}
}
