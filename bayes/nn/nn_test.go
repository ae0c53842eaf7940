package nn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// sigmoid does not overflow, which the plain formula does for large negative arguments.
func sigmoid(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / (1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

// closed are the activations' values and derivatives in closed form.
var closed = []struct {
	activation        Activation
	value, derivative func(x float64) float64
}{
	{"", func(x float64) float64 { return math.Max(x, 0) }, func(x float64) float64 { return (1 + sign(x)) / 2 }},
	{ReLU, func(x float64) float64 { return math.Max(x, 0) }, func(x float64) float64 { return (1 + sign(x)) / 2 }},
	{Tanh, math.Tanh, func(x float64) float64 { return 4 * sigmoid(2*x) * sigmoid(-2*x) }},
	{GELU, func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 },
		func(x float64) float64 {
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		}},
	{Sigmoid, sigmoid, func(x float64) float64 { return sigmoid(x) * sigmoid(-x) }},
	{Softplus, func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, sigmoid},
	{Swish, func(x float64) float64 { return x * sigmoid(x) }, func(x float64) float64 {
		return sigmoid(x) + x*sigmoid(x)*sigmoid(-x)
	}},
}

func sign(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Copysign(1, x)
}

// Values and gradients equal the closed forms, from where the functions are straight lines to where they bend. ReLU has
// no derivative at 0: any number from 0 to 1 will do.
func TestActivations(t *testing.T) {
	arguments := []float64{-1e4, -88.5, -50, -20, -6, -2.5, -1, -.3, -1e-3, 0, 1e-3, .3, 1, 2.5, 6, 20, 50, 88.5, 1e4}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		out := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
			x := graph.ConvertDType(a[0], dtype)
			var outputs []*graph.Node
			for _, c := range closed {
				y := c.activation.Apply(nil, Value{Node: x}).Node
				outputs = append(outputs, y, graph.Gradient(graph.ReduceAllSum(y), x)[0])
			}
			return outputs
		}, arguments)
		tolerance := 1e-12
		if dtype == compute.Float32 {
			tolerance = 1e-6
		}
		for k, c := range closed {
			for i, x := range arguments {
				value, gradient := out[2*k][i], out[2*k+1][i]
				// Relative to the argument: where 1 + erf cancels, GELU has the rounding of erf times x.
				if want := c.value(x); !(math.Abs(value-want) <= tolerance*(1+math.Abs(x))) {
					t.Errorf("%q of %v is %v, want %v", c.activation, x, value, want)
				}
				want, allowed := c.derivative(x), tolerance
				if x == 0 && (c.activation == ReLU || c.activation == "") {
					allowed = .5
				}
				if !(math.Abs(gradient-want) <= allowed) {
					t.Errorf("gradient of %q at %v is %v, want %v", c.activation, x, gradient, want)
				}
			}
		}
	})
	if len(closed) != len(activations) {
		t.Errorf("%d activations are tested, there are %d", len(closed), len(activations))
	}
}

// An activation passes on whether its input is per particle, and has no parameters.
func TestActivationValue(t *testing.T) {
	engine := computetest.Engines(t)[0]
	computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
		for _, per := range []bool{false, true} {
			if v := Tanh.Apply(nil, Value{a[0], per}); v.PerParticle != per {
				t.Errorf("PerParticle %v became %v", per, v.PerParticle)
			}
		}
		return a
	}, []float32{1})
	if Tanh.Parameters() != nil {
		t.Error("an activation has parameters")
	}
}

// The initialisers have mean 0 and the variance that their papers give, within five standard errors of 60 000 draws,
// and their support: a uniform's ends, a normal's tails. Two parameters of one network differ, and biases start at 0.
func TestInitialisers(t *testing.T) {
	const in, out = 200, 300
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		glorot := math.Sqrt(6. / (in + out))
		for _, c := range []struct {
			init     Initialiser
			variance float64
			kurtosis float64 // 3 of a normal, 9/5 of a uniform
			end      float64 // of the support
		}{
			{"", 1. / in, 3, math.Inf(1)}, {LecunNormal, 1. / in, 3, math.Inf(1)}, {HeNormal, 2. / in, 3, math.Inf(1)},
			{GlorotUniform, glorot * glorot / 3, 1.8, glorot},
		} {
			parameters := Dense{Number: 1, In: in, Out: out, Init: c.init}.Parameters()
			draws := computetest.Run(t, engine, func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
				rng := random.New(g, 3)
				return []*graph.Node{
					parameters[0].Initialise(rng.Named("a"), dtype, g), parameters[0].Initialise(rng.Named("b"), dtype, g),
					parameters[1].Initialise(rng, dtype, g),
				}
			})
			n := float64(in * out)
			if len(draws[0]) != in*out || len(draws[2]) != out {
				t.Fatalf("%q: %d weights and %d biases", c.init, len(draws[0]), len(draws[2]))
			}
			mean, variance := stat.MeanVariance(draws[0], nil)
			if math.Abs(mean) > 5*math.Sqrt(c.variance/n) {
				t.Errorf("%q: mean %v", c.init, mean)
			}
			if math.Abs(variance-c.variance) > 5*c.variance*math.Sqrt((c.kurtosis-1)/n) {
				t.Errorf("%q: variance %v, want %v", c.init, variance, c.variance)
			}
			if kurtosis := stat.ExKurtosis(draws[0], nil) + 3; math.Abs(kurtosis-c.kurtosis) > .15 {
				t.Errorf("%q: kurtosis %v, want %v", c.init, kurtosis, c.kurtosis)
			}
			if largest := max(slices.Max(draws[0]), -slices.Min(draws[0])); largest > c.end*(1+1e-6) {
				t.Errorf("%q: a draw of %v, beyond %v", c.init, largest, c.end)
			}
			if slices.Equal(draws[0], draws[1]) {
				t.Errorf("%q: two streams gave the same draws", c.init)
			}
			if slices.Max(draws[2]) != 0 || slices.Min(draws[2]) != 0 {
				t.Errorf("%q: biases do not start at 0", c.init)
			}
		}
		zeros := computetest.Run(t, engine, func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
			return []*graph.Node{Parameter{Kind: Weights, Shape: []int{2, 3}, FanIn: 3, FanOut: 2,
				Init: Zeros}.Initialise(random.New(g, 3), dtype, g)}
		})
		computetest.Near(t, "zeros", zeros[0], make([]float64, 6), 0)
	})
}

func TestLayers(t *testing.T) {
	layers := computetest.Must(MLP{Hidden: []int{4, 3}, Activation: Tanh, Init: HeNormal}.Layers(2, 5))
	var got []string
	for _, layer := range layers {
		for _, p := range layer.Parameters() {
			got = append(got, fmt.Sprintf("%s %d %s %v %d %d %s %d", p.Name, p.Layer, p.Kind, p.Shape, p.FanIn, p.FanOut,
				p.Init, p.Size()))
		}
		if a, ok := layer.(Activation); ok {
			got = append(got, string(a))
		}
	}
	want := []string{
		"layer1/weights 1 weights [4 2] 2 4 he_normal 8", "layer1/biases 1 biases [4] 2 4 zeros 4", "tanh",
		"layer2/weights 2 weights [3 4] 4 3 he_normal 12", "layer2/biases 2 biases [3] 4 3 zeros 3", "tanh",
		"layer3/weights 3 weights [5 3] 3 5 he_normal 15", "layer3/biases 3 biases [5] 3 5 zeros 5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("layers\n%q, want\n%q", got, want)
	}
	for _, c := range []struct {
		mlp             MLP
		inputs, outputs int
		says            string
	}{
		{MLP{Hidden: []int{3, 0}}, 1, 1, "hidden layer 2 has width 0"},
		{MLP{Hidden: []int{-1}}, 1, 1, "hidden layer 1 has width -1"},
		{MLP{}, 0, 1, "from 0 inputs"},
		{MLP{}, 3, -2, "to -2 outputs"},
		{MLP{Activation: "rellu"}, 1, 1, `"rellu": use relu`},
		{MLP{Init: "orthogonal"}, 1, 1, `"orthogonal": use lecun_normal`},
	} {
		if _, err := c.mlp.Layers(c.inputs, c.outputs); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v, %d, %d: error %v does not say %q", c.mlp, c.inputs, c.outputs, err, c.says)
		}
	}
}
