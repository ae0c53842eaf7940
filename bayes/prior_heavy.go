package bayes

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// HierarchicalPrior is a Prior with hyperparameters, such as a scale for each layer, which are sampled together with
// the network's parameters. Its LogJoint and SampleJoint replace LogDensity and Sample.
type HierarchicalPrior interface {
	Prior
	// Hyperparameters are the coordinates that the prior adds to phi, given the stochastic parameters: they are stochastic
	// too, and follow the others in phi, in the given order.
	Hyperparameters(stochastic []nn.Parameter) []nn.Parameter
	// LogJoint is log p(phi), [J], of phi, [J, D]. slots are the places in phi of all its parameters, hyperparameters
	// included.
	LogJoint(phi *graph.Node, slots []Slot) *graph.Node
	// SampleJoint draws phi, [J, D], in the order of the slots.
	SampleJoint(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node
}

// UnboundedPrior is a Prior whose density is infinite somewhere, so that the posterior has no mode: baseline.MAP and
// all methods that start at a mode refuse it.
type UnboundedPrior interface {
	Prior
	// Unbounded says where the density is infinite, such as "where a weight is 0".
	Unbounded() string
}

// StudentTPrior is Student's t distribution with DoF degrees of freedom, centred at 0, with another scale in the layers
// that PerLayer names. Its heavy tails allow a few large weights.
type StudentTPrior struct {
	DoF      float64         `json:"dof"`                 // at most 1e8; default 4
	S        float64         `json:"s"`                   // the scale; default 1
	PerLayer map[int]float64 `json:"per_layer,omitempty"` // layer -> scale
}

// Scale implements Prior: the scale of Student's t, which is not its standard deviation.
func (s StudentTPrior) Scale(p nn.Parameter) float64 { return layerScale(s.S, s.PerLayer, p) }

// Check implements Prior.
func (s StudentTPrior) Check() error {
	if err := checkDoF("StudentTPrior.DoF", s.DoF, "Normal"); err != nil {
		return err
	}
	return checkScales("StudentTPrior.S", s.S, s.PerLayer)
}

// LogDensity implements Prior.
func (s StudentTPrior) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
	dof := orDefault(s.DoF, studentDoF)
	z := graph.Div(phi, rowOf(phi, scales))
	constant := float64(len(scales)) * studentConstant(dof)
	for _, scale := range scales {
		constant -= math.Log(scale)
	}
	tails := compute.RowSums(graph.Log1p(graph.DivScalar(graph.Square(z), dof)))
	return graph.AddScalar(graph.MulScalar(tails, -(dof+1)/2), constant)
}

// Sample implements Prior, by Bailey's polar method (1994): sqrt(v (u^(-2/v) - 1)) cos(2 pi w) for u and w uniform on
// (0, 1).
func (s StudentTPrior) Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node {
	dof := orDefault(s.DoF, studentDoF)
	u := rng.Named("radius").Uniform(dtype, particles, len(scales))
	w := rng.Named("angle").Uniform(dtype, particles, len(scales))
	radius := graph.Sqrt(graph.MulScalar(graph.Expm1(graph.MulScalar(graph.Log(u), -2/dof)), dof))
	return graph.Mul(graph.Mul(radius, graph.Cos(graph.MulScalar(w, 2*math.Pi))), rowOf(w, scales))
}

// Horseshoe is N(0, (Global l)^2) with a half-Cauchy l for each coordinate (Carvalho, Polson and Scott 2010): most
// weights are shrunk to 0, a few hardly at all. l is integrated out,
//
//	p(x) = exp(z) E1(z) / (Global sqrt(2 pi^3)),  z = x^2 / (2 Global^2)
//
// with E1 the exponential integral, so that phi has no hyperparameters. The density is infinite at 0, so MAP does not
// exist.
type Horseshoe struct {
	Global   float64         `json:"global"`              // default 1
	PerLayer map[int]float64 `json:"per_layer,omitempty"` // layer -> Global
}

func (s StudentTPrior) scales() (string, map[int]float64) { return "StudentTPrior", s.PerLayer }
func (h Horseshoe) scales() (string, map[int]float64)     { return "Horseshoe", h.PerLayer }

// Scale implements Prior: Global.
func (h Horseshoe) Scale(p nn.Parameter) float64 { return layerScale(h.Global, h.PerLayer, p) }

// Check implements Prior.
func (h Horseshoe) Check() error { return checkScales("Horseshoe.Global", h.Global, h.PerLayer) }

// Unbounded implements UnboundedPrior.
func (h Horseshoe) Unbounded() string { return "where a weight is 0" }

// LogDensity implements Prior.
func (h Horseshoe) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
	const least = 1e-30 // of z, where the density is infinite at 0
	z := graph.MulScalar(graph.Square(graph.Div(phi, rowOf(phi, scales))), 0.5)
	constant := 0.5 * float64(len(scales)) * math.Log(2*math.Pi*math.Pi*math.Pi)
	for _, scale := range scales {
		constant += math.Log(scale)
	}
	return graph.SubScalar(compute.RowSums(graph.Log(scaledE1(graph.MaxScalar(z, least)))), constant)
}

// scaledE1 returns exp(x) E1(x) for x > 0. Up to x = 2 it sums the series -gamma - log x - sum_k (-x)^k/(k k!)
// (Abramowitz and Stegun 5.1.11). Beyond, it takes the continued fraction 1/(x+1 - 1/(x+3 - 4/(x+5 - 9/...))), the even
// part of their 5.1.22. The precision of x's type sets the number of terms of both.
func scaledE1(x *graph.Node) *graph.Node {
	const split = 2.0
	terms, levels := 16, 12
	if x.DType() == compute.Float64 {
		terms, levels = 30, 48
	}
	small, large := graph.MinScalar(x, split), graph.MaxScalar(x, split)
	sum := graph.ZerosLike(small)
	for k := terms; k >= 1; k-- { // Horner: a_k = (-1)^k/(k k!)
		factorial, _ := math.Lgamma(float64(k) + 1)
		sign := 1.0 - 2*float64(k%2)
		sum = graph.Mul(graph.AddScalar(sum, sign*math.Exp(-factorial)/float64(k)), small)
	}
	series := graph.Neg(graph.Add(graph.AddScalar(graph.Log(small), eulerGamma), sum))
	fraction := graph.AddScalar(large, float64(2*levels+1))
	for k := levels; k >= 1; k-- {
		fraction = graph.Sub(graph.AddScalar(large, float64(2*k-1)), graph.Div(graph.ConstAs(large, float64(k*k)), fraction))
	}
	near := graph.LessThan(x, graph.ConstAs(x, split))
	return graph.Where(near, graph.Mul(graph.Exp(small), series), graph.Reciprocal(fraction))
}

const eulerGamma = 0.57721566490153286060651209008240243

// Sample implements Prior: a normal times tan(pi u/2), u uniform on (0, 1).
func (h Horseshoe) Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node {
	u := graph.MulScalar(rng.Named("local").Uniform(dtype, particles, len(scales)), math.Pi/2)
	z := rng.Named("normal").Normal(dtype, particles, len(scales))
	return graph.Mul(graph.Mul(z, graph.Div(graph.Sin(u), graph.Cos(u))), rowOf(z, scales))
}

// Hierarchical is N(0, s_l^2) with a standard deviation s_l for each layer l, where log s_l ~ N(log Median, Spread^2)
// is sampled with the weights: phi holds t_l = log s_l, named "prior/layer1/log_scale" and so on. The likelihood's
// parameters, which belong to no layer, are N(0, Median^2).
//
// The joint density of weights and scales is unbounded where both go to 0, so MAP does not exist: sample it, or take
// baseline.VI.
type Hierarchical struct {
	Median float64 `json:"median"` // of s_l; default 1
	Spread float64 `json:"spread"` // standard deviation of log s_l; default 1
}

// Scale implements Prior: for a weight its median standard deviation, Median; for log s_l its standard deviation,
// Spread.
func (h Hierarchical) Scale(p nn.Parameter) float64 {
	if p.Kind == nn.Hyper {
		return orDefault(h.Spread, 1)
	}
	return orDefault(h.Median, 1)
}

// Check implements Prior.
func (h Hierarchical) Check() error {
	if err := checkPositive("Hierarchical.Median", h.Median, 1); err != nil {
		return err
	}
	return checkPositive("Hierarchical.Spread", h.Spread, 1)
}

// LogDensity implements Prior: N(0, scale^2), given the standard deviations.
func (h Hierarchical) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
	return Normal{}.LogDensity(phi, scales)
}

// Sample implements Prior: N(0, scale^2), given the standard deviations.
func (h Hierarchical) Sample(rng random.Stream, dtype compute.DType, particles int, scales []float64) *graph.Node {
	return Normal{}.Sample(rng, dtype, particles, scales)
}

// Unbounded implements UnboundedPrior.
func (h Hierarchical) Unbounded() string {
	return "where the weights of a layer and their scale go to 0 together"
}

// Hyperparameters implements HierarchicalPrior.
func (h Hierarchical) Hyperparameters(stochastic []nn.Parameter) []nn.Parameter {
	var added []nn.Parameter
	seen := map[int]bool{0: true} // 0: no layer
	for _, p := range stochastic {
		if !seen[p.Layer] {
			seen[p.Layer] = true
			added = append(added, nn.Parameter{
				Name: hyperName(p.Layer), Layer: p.Layer, Kind: nn.Hyper, Shape: []int{1}, FanIn: 1, FanOut: 1, Init: nn.Zeros,
			})
		}
	}
	return added
}

func hyperName(layer int) string { return fmt.Sprintf("prior/layer%d/log_scale", layer) }

// LogJoint implements HierarchicalPrior.
func (h Hierarchical) LogJoint(phi *graph.Node, slots []Slot) *graph.Node {
	logScales, center := h.layers(slots, func(s Slot) *graph.Node { return s.of(phi) })
	var density *graph.Node
	for _, s := range slots {
		var term *graph.Node
		x := s.of(phi) // [J, size]
		switch t := logScales[s.Layer]; {
		case s.Kind == nn.Hyper:
			term = Normal{}.LogDensity(graph.SubScalar(x, center), constants(orDefault(h.Spread, 1), 1))
		case t == nil:
			term = h.LogDensity(x, constants(orDefault(h.Median, 1), s.Size()))
		default: // N(x; 0, exp(2t)) = N(x exp(-t); 0, 1) exp(-t)
			term = h.LogDensity(graph.Mul(x, graph.Exp(graph.Neg(t))), constants(1, s.Size()))
			term = graph.Sub(term, graph.MulScalar(graph.Squeeze(t, 1), float64(s.Size())))
		}
		if density == nil {
			density = term
		} else {
			density = graph.Add(density, term)
		}
	}
	return density
}

// SampleJoint implements HierarchicalPrior.
func (h Hierarchical) SampleJoint(rng random.Stream, dtype compute.DType, particles int, slots []Slot) *graph.Node {
	median := math.Log(orDefault(h.Median, 1))
	logScales, _ := h.layers(slots, func(s Slot) *graph.Node {
		z := rng.Named(s.Name).Normal(dtype, particles, 1)
		return graph.AddScalar(graph.MulScalar(z, orDefault(h.Spread, 1)), median)
	})
	var parts []*graph.Node
	for _, s := range slots {
		t := logScales[s.Layer]
		if s.Kind != nn.Hyper {
			z := rng.Named(s.Name).Normal(dtype, particles, s.Size())
			if t == nil {
				t = graph.ConstAs(z, median)
			}
			t = graph.Mul(z, graph.Exp(t))
		}
		parts = append(parts, t)
	}
	return graph.Concatenate(parts, 1)
}

// layers returns the coordinates log s_l, [J, 1], by layer, and the mean of their prior, log Median.
func (h Hierarchical) layers(slots []Slot, of func(Slot) *graph.Node) (logScales map[int]*graph.Node, center float64) {
	logScales = map[int]*graph.Node{}
	for _, s := range slots {
		if s.Kind == nn.Hyper {
			logScales[s.Layer] = of(s)
		}
	}
	return logScales, math.Log(orDefault(h.Median, 1))
}

func constants(value float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func init() {
	for _, value := range []any{StudentTPrior{}, Horseshoe{}, Hierarchical{}} {
		Register(value)
	}
}

var (
	_ Prior             = StudentTPrior{}
	_ UnboundedPrior    = Horseshoe{}
	_ HierarchicalPrior = Hierarchical{}
	_ UnboundedPrior    = Hierarchical{}
)
