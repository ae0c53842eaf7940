package bayes

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Prior is the prior distribution of the stochastic parameters. A Normal is independent and centred at 0, with a scale
// per layer; a LearntPrecision, or a prior of your own, may be correlated.
//
// The density must be normalised, and positive on the whole real line. Bind refuses a density with bounded support,
// such as a uniform or a half-normal. Kernels that accept or reject would stay within the bounds, but the moves of
// ohsmc.OpenHorizon, the normal distributions of baseline.VI and baseline.Laplace and the steps of SGLD would not. Take
// a Normal of the same scale, or a layer of your own that uses a bounded function of its parameter, such as tanh or
// softplus, and give that parameter a prior on all numbers.
type Prior interface {
	// Scale of the parameter's elements, such as a standard deviation: see the prior's type.
	Scale(p nn.Parameter) float64
	// LogDensity is log p(phi), [J], of phi, [J, D]. slots are the places in phi of its parameters, in their order; any
	// number of them, and parts of a parameter, must be accepted. Scales gives the scale of each coordinate.
	LogDensity(phi *graph.Node, slots []Slot) *graph.Node
	// Sample draws phi, [J, D], in the order of the slots.
	Sample(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node
	// Check returns an error that names a setting that is wrong.
	Check() error
}

// Scales are a prior's scales of the coordinates of the slots, one after another.
func Scales(prior Prior, slots []Slot) []float64 {
	var scales []float64
	for _, slot := range slots {
		scales = append(scales, slices.Repeat([]float64{prior.Scale(slot.Parameter)}, slot.Size())...)
	}
	return scales
}

// Normal is N(0, StdDev^2), with another standard deviation in the layers that PerLayer names: from 1 on, or 0 for a
// stochastic noise of the likelihood. Bind refuses a layer that the network does not have.
type Normal struct {
	StdDev   float64         `json:"std_dev"`             // default 1
	PerLayer map[int]float64 `json:"per_layer,omitempty"` // layer -> standard deviation
	// ByWidth multiplies StdDev by sqrt(2/inputs), the inputs being a layer's, so that its outputs have the size of its
	// inputs whatever the width (He and others 2015). Methods that train networks first may widen such a prior.
	ByWidth bool `json:"by_width,omitempty"`
}

var _ Prior = Normal{}

// Scale implements Prior: the standard deviation.
func (n Normal) Scale(p nn.Parameter) float64 {
	if s, ok := n.PerLayer[p.Layer]; ok {
		return s
	}
	stdDev := cmp.Or(n.StdDev, 1)
	if n.ByWidth && p.Layer > 0 {
		stdDev *= math.Sqrt(2 / float64(p.FanIn))
	}
	return stdDev
}

// Check implements Prior.
func (n Normal) Check() error {
	for layer, s := range n.PerLayer {
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("bayes: Normal.StdDev of layer %d is %v: it must be positive", layer, s)
		}
	}
	return checkPositive("Normal.StdDev", n.StdDev)
}

// LogDensity implements Prior.
func (n Normal) LogDensity(phi *graph.Node, slots []Slot) *graph.Node {
	scales := Scales(n, slots)
	z := graph.Div(phi, rowOf(phi, scales))
	constant := 0.5 * float64(len(scales)) * math.Log(2*math.Pi)
	for _, s := range scales {
		constant += math.Log(s)
	}
	return graph.SubScalar(graph.MulScalar(compute.RowSums(graph.Square(z)), -0.5), constant)
}

// Sample implements Prior.
func (n Normal) Sample(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node {
	scales := Scales(n, slots)
	z := rng.Normal(dtype, particles, len(scales))
	return graph.Mul(z, rowOf(z, scales))
}

// rowOf is a constant row [1, D] of like's type.
func rowOf(like *graph.Node, values []float64) *graph.Node {
	return graph.ConvertDType(graph.Const(like.Graph(), [][]float64{values}), like.DType())
}
