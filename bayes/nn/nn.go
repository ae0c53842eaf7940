// Package nn builds particle-batched neural networks: J copies of a network, evaluated on one batch at once in one
// graph.
//
// MLP is a multilayer perceptron, CNN a convolutional network for images and ResNet20 a deeper one, with Residual
// blocks that are normalised by FilterResponse. A network of your own is a list of Layers, of this package
// or your own (see the example of Layer).
//
// In a partial Bayesian network the stochastic parameters differ from particle to particle, and the others are shared.
// So every tensor in the network is a Value, which is either shared by all particles, [width, B], or has its own
// numbers for each particle. A value stays shared until it meets the first stochastic parameter: the layers before it
// are evaluated once, not J times.
//
// Values per particle are stored in blocks of c particles, [J/c, width, B, c] (see Block). With c = 1 the rows of the
// batch are in effect the last axis, and weights are [out, in]: the product of J stochastic matrices with a shared
// input is then one large product, [J*out, in] by [in, B], without any transposition. With c > 1 neighbouring particles
// fill the processor's SIMD vectors, whatever the widths and the batch: the products of each particle's own small
// matrices become vectorised loops over blocks instead of many tiny matrix products.
package nn

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Value is a tensor that is shared by all particles, [width, B], or has its own numbers for each particle, [J/c,
// width, B, c]. The same holds for parameters: a matrix is [out, in] or [J/c, out, in, c], a vector [out] or [J/c, out,
// c], and other shapes likewise.
type Value struct {
	Node        *graph.Node
	PerParticle bool
}

// Full reshapes the value to all four axes, [J/c, width, B, c], so that values and parameter vectors broadcast against
// each other. The particle axes J/c and c have size 1 if it is shared by all particles, and B has size 1 if it is a
// parameter vector.
func (v Value) Full() *graph.Node {
	switch {
	case v.Node.Rank() == 1: // a shared vector
		return graph.Reshape(v.Node, 1, v.Node.Shape().Dim(0), 1, 1)
	case v.Node.Rank() == 2: // a shared value
		return graph.ExpandAxes(v.Node, 0, -1)
	case v.Node.Rank() == 3: // each particle's vector
		return graph.ExpandAxes(v.Node, 2)
	}
	return v.Node
}

// Kind says what role a parameter plays in its layer.
type Kind string

// The kinds of parameters.
const (
	Weights Kind = "weights"
	Biases  Kind = "biases"
	Noise   Kind = "noise" // of the likelihood
)

// Parameter describes one tensor of a network's parameters.
type Parameter struct {
	Name   string // unique in its network, such as "layer3/weights"
	Layer  int    // counted from 1; 0 for parameters of the likelihood
	Kind   Kind   // which must be set
	Shape  []int  // of one particle's: [out, in] for the weights of Dense, [out] for biases
	FanIn  int
	FanOut int
	Init   Initialiser
	Values []float32 // that a shared parameter starts from, in place of Init's; nil: none
}

// Size is the count of numbers in one particle's tensor.
func (p Parameter) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Check returns an error that names what a layer of one's own left out, or misspelt: without a kind a parameter would
// be picked by no partition of all weights and biases, and by an unknown initialiser it would start at 0.
func (p Parameter) Check() error {
	if p.Name == "" {
		return fmt.Errorf("nn: a parameter of layer %d, of shape %v, has no Name: name it, such as \"layer%d/weights\"",
			p.Layer, p.Shape, p.Layer)
	}
	if p.Kind == "" {
		return fmt.Errorf("nn: parameter %q has no Kind: set it to nn.Weights or nn.Biases, by which partitions such as "+
			"bayes.All pick it", p.Name)
	}
	if err := p.Init.check(); err != nil {
		return fmt.Errorf("%w, as Init of parameter %q", err, p.Name)
	}
	return nil
}

// Params are parameters in a graph, by name.
type Params map[string]Value

// Nodes returns the parameters' nodes in the order of their names.
func (p Params) Nodes() []*graph.Node {
	var nodes []*graph.Node
	for _, name := range slices.Sorted(maps.Keys(p)) {
		nodes = append(nodes, p[name].Node)
	}
	return nodes
}

// With returns the parameters with other nodes, given in the order of Nodes, such as the nodes that stand for them
// within a loop.
func (p Params) With(nodes []*graph.Node) Params {
	with := Params{}
	for i, name := range slices.Sorted(maps.Keys(p)) {
		value := p[name]
		value.Node = nodes[i]
		with[name] = value
	}
	return with
}

// Layer is one stage of a network: it takes the value of the stage before.
type Layer interface {
	// Parameters of the layer, in the order of the flat layout; none for an activation.
	Parameters() []Parameter
	// Apply builds the layer's graph; it panics as GoMLX does.
	Apply(params Params, h Value) Value
}

// Sized is a Layer that says how many numbers it stores, from which a plan of the evaluation takes how many particles
// fit into memory at once. Of other layers it is taken to be the sum of their parameters' FanOut.
type Sized interface {
	Layer
	// Stored is about how many numbers Apply computes, and the gradient needs again, for one row of the batch and one
	// particle. own says that a parameter of the layer differs from particle to particle.
	Stored(own bool) int
}

// Network describes a network before the widths of its input and output are known.
type Network interface {
	// Layers builds the sequence of layers from inputs to outputs; an error names the setting that is wrong.
	Layers(inputs, outputs int) ([]Layer, error)
}

// Initialiser is the distribution that a shared parameter starts from.
type Initialiser string

// The initialisers. The zero value is LecunNormal for weights and Zeros for biases.
const (
	LecunNormal   Initialiser = "lecun_normal"   // N(0, 1/in); LeCun, Bottou, Orr and Müller 1998
	HeNormal      Initialiser = "he_normal"      // N(0, 2/in); He, Zhang, Ren and Sun 2015
	GlorotUniform Initialiser = "glorot_uniform" // U(-a, a), a^2 = 6/(in+out); Glorot and Bengio 2010
	Zeros         Initialiser = "zeros"
	Ones          Initialiser = "ones"
)

func (i Initialiser) check() error {
	switch i {
	case "", LecunNormal, HeNormal, GlorotUniform, Zeros, Ones:
		return nil
	}
	return fmt.Errorf("nn: unknown initialiser %q: use lecun_normal, he_normal, glorot_uniform, zeros or ones", string(i))
}

// Initialise draws a parameter's starting value, flat: [Size]. The stream should be the parameter's own.
func (p Parameter) Initialise(rng random.Stream, dtype compute.DType, g *graph.Graph) *graph.Node {
	if p.Values != nil {
		return graph.ConvertDType(graph.Const(g, p.Values), dtype)
	}
	init := p.Init
	if init == "" {
		init = LecunNormal
		if p.Kind != Weights {
			init = Zeros
		}
	}
	in, out := float64(p.FanIn), float64(p.FanOut)
	switch init {
	case LecunNormal:
		return graph.MulScalar(rng.Normal(dtype, p.Size()), math.Sqrt(1/in))
	case HeNormal:
		return graph.MulScalar(rng.Normal(dtype, p.Size()), math.Sqrt(2/in))
	case GlorotUniform:
		a := math.Sqrt(6 / (in + out))
		return graph.MulScalar(graph.AddScalar(graph.MulScalar(rng.Uniform(dtype, p.Size()), 2), -1), a)
	}
	if init == Ones {
		return graph.FillScalar(g, shapes.Make(dtype, p.Size()), 1)
	}
	return graph.FillScalar(g, shapes.Make(dtype, p.Size()), 0)
}
