package nn

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// Activation is an elementwise function between layers.
type Activation string

// The activations. The zero value is ReLU.
const (
	ReLU     Activation = "relu"
	Tanh     Activation = "tanh"
	GELU     Activation = "gelu" // x Phi(x), exact (Hendrycks and Gimpel 2016)
	Sigmoid  Activation = "sigmoid"
	Softplus Activation = "softplus" // log(1 + exp x)
	Swish    Activation = "swish"    // x sigmoid(x) (Ramachandran, Zoph and Le 2017)
)

var activations = map[Activation]func(*graph.Node) *graph.Node{
	"":       relu,
	ReLU:     relu,
	Tanh:     graph.Tanh,
	GELU:     gelu,
	Sigmoid:  graph.Sigmoid,
	Softplus: softplus,
	Swish:    func(x *graph.Node) *graph.Node { return graph.Mul(x, graph.Sigmoid(x)) },
}

func (a Activation) check() error {
	if _, ok := activations[a]; !ok {
		return fmt.Errorf("nn: unknown activation %q: use relu, tanh, gelu, sigmoid, softplus or swish", string(a))
	}
	return nil
}

// Parameters of an activation: none.
func (a Activation) Parameters() []Parameter { return nil }

// Apply applies the function to every element.
func (a Activation) Apply(_ Params, h Value) Value {
	return Value{activations[a](h.Node), h.PerParticle}
}

func relu(x *graph.Node) *graph.Node { return graph.MaxScalar(x, 0) }

func gelu(x *graph.Node) *graph.Node {
	return graph.Mul(graph.MulScalar(x, 0.5), graph.OnePlus(graph.Erf(graph.MulScalar(x, 1/math.Sqrt2))))
}

// softplus is max(x, 0) + log(1 + exp(-|x|)): no argument of the exponential is positive. Both halves take the same
// side at 0, so that their gradients add up to 1/2 there.
func softplus(x *graph.Node) *graph.Node {
	zero := graph.ZerosLike(x)
	positive := graph.GreaterThan(x, zero)
	magnitude := graph.Where(positive, x, graph.Neg(x))
	return graph.Add(graph.Where(positive, x, zero), graph.Log1p(graph.Exp(graph.Neg(magnitude))))
}
