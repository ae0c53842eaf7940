package bayes

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Prior is the prior distribution of the stochastic parameters. Normal and Laplace are independent and centred at 0,
// with a scale per layer. A prior of your own may be correlated. Its LogDensity and Sample must accept any number of
// coordinates.
//
// The density must be normalised, and positive on the whole real line. Bind refuses a density with bounded support,
// such as a uniform or a half-normal. Kernels that accept or reject would stay within the bounds, but the moves of
// ohsmc.OpenHorizon, the normal distributions of baseline.VI and baseline.Laplace and the steps of SGLD would not. Take
// a Normal of the same scale, or a layer of your own that uses a bounded function of its parameter, such as tanh or
// softplus, and give that parameter a prior on all numbers.
type Prior interface {
	// Scale of the parameter's elements, such as a standard deviation: see the prior's type.
	Scale(p nn.Parameter) float64
	// LogDensity is log p(phi), [J], of phi [J, D], whose coordinates have the given scales, [D].
	LogDensity(phi *graph.Node, scales []float64) *graph.Node
	// Sample draws [J, D] coordinates with the given scales, [D].
	Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node
	// Check returns an error that names a setting that is wrong.
	Check() error
}

// JointPrior is a Prior under which the elements of a parameter depend on each other, such as through a precision that
// they share. Its LogJoint and SampleJoint, which know the parameters' places, replace LogDensity and Sample.
type JointPrior interface {
	Prior
	// LogJoint is log p(phi), [J], of phi, [J, D]. slots are the places in phi of its parameters.
	LogJoint(phi *graph.Node, slots []Slot) *graph.Node
	// SampleJoint draws phi, [J, D], in the order of the slots.
	SampleJoint(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node
}

// Normal is N(0, StdDev^2), with another standard deviation in the layers that PerLayer names: from 1 on, or 0 for a
// stochastic noise of the likelihood. Bind refuses a layer that the network does not have, as for all priors here.
type Normal struct {
	StdDev   float64         `json:"std_dev"`             // default 1
	PerLayer map[int]float64 `json:"per_layer,omitempty"` // layer -> standard deviation
	// ByWidth multiplies StdDev by sqrt(2/inputs), the inputs being a layer's, so that its outputs have the size of its
	// inputs whatever the width (He and others 2015). Methods that train networks first may widen such a prior.
	ByWidth bool `json:"by_width,omitempty"`
}

// Laplace is the prior with density exp(-|x|/b) / (2 b), with another scale b in the layers that PerLayer names. (The
// Laplace approximation of a posterior is baseline.Laplace.)
type Laplace struct {
	B        float64         `json:"b"`                   // the scale; default 1
	PerLayer map[int]float64 `json:"per_layer,omitempty"` // layer -> scale
}

// Scale implements Prior: the standard deviation.
func (n Normal) Scale(p nn.Parameter) float64 {
	if n.ByWidth && p.Layer > 0 {
		n.StdDev = orDefault(n.StdDev, 1) * math.Sqrt(2/float64(p.FanIn))
	}
	return layerScale(n.StdDev, n.PerLayer, p)
}

// Scale implements Prior: the mean absolute value.
func (l Laplace) Scale(p nn.Parameter) float64 { return layerScale(l.B, l.PerLayer, p) }

func (n Normal) scales() (string, map[int]float64)  { return "Normal", n.PerLayer }
func (l Laplace) scales() (string, map[int]float64) { return "Laplace", l.PerLayer }

func layerScale(all float64, perLayer map[int]float64, p nn.Parameter) float64 {
	if s, ok := perLayer[p.Layer]; ok {
		return s
	}
	if all == 0 {
		return 1
	}
	return all
}

// Check implements Prior.
func (n Normal) Check() error { return checkScales("Normal.StdDev", n.StdDev, n.PerLayer) }

// Check implements Prior.
func (l Laplace) Check() error { return checkScales("Laplace.B", l.B, l.PerLayer) }

func checkScales(name string, all float64, perLayer map[int]float64) error {
	if all < 0 || math.IsNaN(all) || math.IsInf(all, 0) {
		return fmt.Errorf("bayes: %s is %v: it must be positive (0 means 1)", name, all)
	}
	for layer, s := range perLayer {
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("bayes: %s of layer %d is %v: it must be positive", name, layer, s)
		}
	}
	return nil
}

// LogDensity implements Prior.
func (n Normal) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
	z := graph.Div(phi, rowOf(phi, scales))
	constant := 0.5 * float64(len(scales)) * math.Log(2*math.Pi)
	for _, s := range scales {
		constant += math.Log(s)
	}
	return graph.SubScalar(graph.MulScalar(compute.RowSums(graph.Square(z)), -0.5), constant)
}

// LogDensity implements Prior.
func (l Laplace) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
	z := graph.Div(phi, rowOf(phi, scales))
	constant := 0.0
	for _, s := range scales {
		constant += math.Log(2 * s)
	}
	return graph.SubScalar(graph.Neg(compute.RowSums(graph.Abs(z))), constant)
}

// Sample implements Prior.
func (n Normal) Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node {
	z := rng.Normal(dtype, particles, len(scales))
	return graph.Mul(z, rowOf(z, scales))
}

// Sample implements Prior, by inversion: -sign(v) log(1 - 2|v|) for v uniform on (-1/2, 1/2).
func (l Laplace) Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node {
	v := graph.SubScalar(rng.Uniform(dtype, particles, len(scales)), 0.5)
	z := graph.Neg(graph.Mul(graph.Sign(v), graph.Log1p(graph.MulScalar(graph.Abs(v), -2))))
	return graph.Mul(z, rowOf(z, scales))
}

// rowOf is a constant row [1, D] of like's type.
func rowOf(like *graph.Node, values []float64) *graph.Node {
	return graph.ConvertDType(graph.Const(like.Graph(), [][]float64{values}), like.DType())
}

var (
	_ Prior = Normal{}
	_ Prior = Laplace{}
)
