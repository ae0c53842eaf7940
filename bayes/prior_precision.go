package bayes

import (
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// LearntPrecision is N(0, 1/lambda) with a precision lambda for each layer's weights and another for its biases. Each
// precision has a Gamma prior with shape 1 and rate b = 1 (Javid, Handley, Hobson and Lasenby 2020). lambda is
// integrated out, so that phi has no hyperparameters: the n numbers x that share a precision have the density
//
//	p(x) = b Gamma(1 + n/2) / ((2 pi)^(n/2) (b + |x|^2/2)^(1 + n/2))
//
// a multivariate Student's t with 2 degrees of freedom. Integrating lambda out does not change the evidence, and avoids
// the funnel-shaped density where weights and their common scale go to 0 together, which is hard to sample.
//
// A likelihood that learns its noise, such as Gaussian{Learn: true}, has a precision too: exp(-2t) of its parameter t,
// named "noise/log_scale", has the same Gamma prior, and is not integrated out. Other parameters of a likelihood, such
// as Ordinal's, share a precision as biases do.
type LearntPrecision struct {
	// ByWidth divides the rate of the weights of the second and later layers by the number of inputs of the layer: the
	// mean precision then grows with the width, and the size of the layer's outputs does not.
	ByWidth bool `json:"by_width,omitempty"`
}

var _ Prior = LearntPrecision{}

// Scale implements Prior: sqrt(b), the scale of Student's t; for a learnt noise 1/2, about the standard deviation of t.
func (l LearntPrecision) Scale(p nn.Parameter) float64 {
	if p.Name == noiseName {
		return .5
	}
	return math.Sqrt(l.rate(p))
}

// rate is the rate b of the Gamma prior of a parameter's precision.
func (l LearntPrecision) rate(p nn.Parameter) float64 {
	if l.ByWidth && p.Kind == nn.Weights && p.Layer > 1 {
		return 1 / float64(p.FanIn)
	}
	return 1
}

// Check implements Prior.
func (l LearntPrecision) Check() error { return nil }

// LogDensity implements Prior.
func (l LearntPrecision) LogDensity(phi *graph.Node, slots []Slot) *graph.Node {
	var density *graph.Node
	for _, s := range slots {
		x, b := s.of(phi), l.rate(s.Parameter) // [J, size]
		var term *graph.Node
		if s.Name == noiseName { // of t: log b + log lambda - b lambda + log 2, where lambda = exp(-2t)
			logPrecision := graph.MulScalar(x, -2)
			each := graph.Sub(logPrecision, graph.MulScalar(graph.Exp(logPrecision), b))
			term = compute.RowSums(graph.AddScalar(each, math.Log(2*b)))
		} else {
			shape := 1 + float64(s.Size())/2
			constant, _ := math.Lgamma(shape)
			constant += math.Log(b) - float64(s.Size())/2*math.Log(2*math.Pi)
			rate := graph.AddScalar(graph.MulScalar(compute.RowSums(graph.Square(x)), .5), b)
			term = graph.AddScalar(graph.MulScalar(graph.Log(rate), -shape), constant)
		}
		if density == nil {
			density = term
		} else {
			density = graph.Add(density, term)
		}
	}
	return density
}

// Sample implements Prior.
func (l LearntPrecision) Sample(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node {
	var parts []*graph.Node
	for _, s := range slots {
		each := 1 // precisions
		if s.Name == noiseName {
			each = s.Size()
		}
		u := rng.Named(s.Name+"/precision").Uniform(dtype, particles, each)
		precision := graph.DivScalar(graph.Neg(graph.Log(u)), l.rate(s.Parameter)) // by inversion
		if s.Name == noiseName {
			parts = append(parts, graph.MulScalar(graph.Log(precision), -.5))
			continue
		}
		z := rng.Named(s.Name).Normal(dtype, particles, s.Size())
		parts = append(parts, graph.Div(z, graph.Sqrt(precision)))
	}
	return graph.Concatenate(parts, 1)
}

func init() { Register(LearntPrecision{}) }
