package bayes_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// mlp has parameters of 8, 4, 12, 3, 3 and 1 numbers on two features and one output.
var mlp = nn.MLP{Hidden: []int{4, 3}, Activation: nn.Tanh}

func TestBindErrors(t *testing.T) {
	model := func(change func(m *bayes.Model)) bayes.Model {
		m := bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Prior: bayes.Normal{}, Stochastic: bayes.Layers(3)}
		change(&m)
		return m
	}
	partition := func(p bayes.Partition) bayes.Model { return model(func(m *bayes.Model) { m.Stochastic = p }) }
	for _, c := range []struct {
		name            string
		model           bayes.Model
		inputs, outputs int
		says            []string
	}{
		{"no network", model(func(m *bayes.Model) { m.Network = nil }), 2, 1, []string{"Network (it has <nil>)"}},
		{"no likelihood", model(func(m *bayes.Model) { m.Likelihood = nil }), 2, 1,
			[]string{"Likelihood (it has <nil>)"}},
		{"empty partition", partition(bayes.Partition{}), 2, 1,
			[]string{"Model.Stochastic", "bayes.Layers"}},
		{"unknown layer", partition(bayes.Layers(3, 4)), 2, 1,
			[]string{"layer 4", "layer1/weights", "layer3/biases"}},
		{"layer 0", partition(bayes.Layers(0)), 2, 1, []string{"layer 0", "count from 1"}},
		{"unknown name", partition(bayes.Names("layer3/weights", "layer3/wieghts")), 2, 1,
			[]string{`"layer3/wieghts"`}},
		{"empty name", partition(bayes.Names("")), 2, 1, []string{"empty name"}},
		{"a network with two outputs", model(func(m *bayes.Model) { m.Network = twice{mlp} }), 2, 1,
			[]string{"Gaussian", "takes 1 numbers", "twice", "[2 2 3 1]", "[2 1 3 1]"}},
		{"a network whose layers do not fit", model(func(m *bayes.Model) { m.Network = torn{} }), 2, 1,
			[]string{"torn", "cannot be built"}},
		{"a network with a layer twice", model(func(m *bayes.Model) { m.Network = twins{} }), 1, 1,
			[]string{`declare a parameter "layer1/weights"`, "unique"}},
		{"a parameter of a name that a file needs", model(func(m *bayes.Model) {
			m.Network = declared{Name: "log_weights", Kind: nn.Weights}
		}), 2, 1, []string{`declares a parameter "log_weights"`, `"layer1/log_weights"`}},
		{"a parameter without a name", model(func(m *bayes.Model) { m.Network = declared{Kind: nn.Weights} }), 1, 1,
			[]string{"declared", "has no Name"}},
		{"a parameter without a kind", model(func(m *bayes.Model) { m.Network = declared{Name: "slope"} }), 1, 1,
			[]string{`parameter "slope" has no Kind`, "nn.Weights"}},
		{"a parameter with a misspelt initialiser", model(func(m *bayes.Model) {
			m.Network = declared{Name: "slope", Kind: nn.Weights, Init: "he-normal"}
		}), 1, 1, []string{`unknown initialiser "he-normal"`, `parameter "slope"`}},
		{"two ordered classes as one logit", model(func(m *bayes.Model) { m.Likelihood = bayes.Ordinal{} }), 2, 1,
			[]string{"Ordinal", "1 outputs", "Task to Classification", "bayes.Bernoulli"}},
		{"two classes as logits", model(func(m *bayes.Model) { m.Likelihood = bayes.Bernoulli{} }), 2, 2,
			[]string{"Bernoulli", "2 outputs"}},
		{"no features", partition(bayes.All()), 0, 1, []string{"0 inputs"}},
		{"no outputs", partition(bayes.All()), 2, 0, []string{"0 outputs"}},
		{"bad network", model(func(m *bayes.Model) { m.Network = nn.MLP{Hidden: []int{0}} }), 2, 1, []string{"width 0"}},
		{"negative noise", model(func(m *bayes.Model) { m.Likelihood = bayes.Gaussian{StdDev: -.5} }), 2, 1,
			[]string{"Gaussian.StdDev is -0.5"}},
		{"noise that is NaN", model(func(m *bayes.Model) { m.Likelihood = bayes.Gaussian{StdDev: math.NaN()} }), 2, 1,
			[]string{"Gaussian.StdDev is NaN"}},
		{"prior of layers that count from 0", model(func(m *bayes.Model) {
			m.Likelihood = bayes.Gaussian{Learn: true} // shared
			m.Prior = bayes.Normal{PerLayer: map[int]float64{0: 3, 1: 2}}
		}), 2, 1, []string{"Normal.PerLayer has the scale 3 for layer 0", "where that is stochastic"}},
		{"negative prior", model(func(m *bayes.Model) { m.Prior = bayes.Normal{StdDev: -2} }), 2, 1,
			[]string{"Normal.StdDev is -2"}},
		{"prior 0 of a layer", model(func(m *bayes.Model) { m.Prior = bayes.Normal{PerLayer: map[int]float64{1: 2, 3: 0}} }),
			2, 1, []string{"Normal.StdDev of layer 3 is 0"}},
		{"prior of a layer beyond the last",
			model(func(m *bayes.Model) { m.Prior = bayes.Normal{PerLayer: map[int]float64{1: 2, 7: .1}} }), 2, 1,
			[]string{"Normal.PerLayer has the scale 0.1 for layer 7", "from 1 to 3"}},
	} {
		_, err := c.model.Bind(c.inputs, c.outputs)
		computetest.WantError(t, c.name, err, c.says...)
	}
}

// A slice or a map of the caller's, which he changes for his next model, does not change the model that was bound.
func TestBindCopies(t *testing.T) {
	hidden, scales, stochastic := []int{4}, map[int]float64{1: .5}, bayes.All()
	convolutions := []nn.Conv{{Filters: 2, Kernel: 1}}
	for _, network := range []nn.Network{
		nn.MLP{Hidden: hidden}, nn.CNN{Height: 1, Width: 2, Convolutions: convolutions, Hidden: hidden}, &nn.MLP{Hidden: nil},
	} {
		hidden[0], convolutions[0].Filters, scales[1], stochastic.Selectors[0].Kind = 4, 2, .5, nn.Weights
		model := bayes.Model{Network: network, Likelihood: bayes.Gaussian{}, Prior: bayes.Normal{PerLayer: scales},
			Stochastic: stochastic}
		bound := computetest.Must(model.Bind(2, 1))
		p := remade(t, bound, bayes.Draws{Phi: compute.Floats(compute.Float32, make([]float64, bound.D), 1, bound.D),
			LogWeights: []float64{0}}, bayes.Origin{})
		was, before := fmt.Sprintf("%+v", p.Model()), bound.Scales()
		for _, change := range []func(){
			func() {
				hidden[0], convolutions[0].Filters, scales[1], stochastic.Selectors[0].Kind = 5, 3, 7, nn.Biases
			},
			func() { p.Model().Prior.(bayes.Normal).PerLayer[1] = 8 },
		} {
			change()
			if is := fmt.Sprintf("%+v", p.Model()); is != was || !slices.Equal(bound.Scales(), before) {
				t.Errorf("the model is %s with scales %v, was %s with %v", is, bound.Scales(), was, before)
			}
		}
	}
}

// A prior may name layers whose parameters are shared, so that it serves several partitions, and a stochastic noise.
func TestPerLayerOfPartition(t *testing.T) {
	m := bayes.Model{
		Network: nn.MLP{Hidden: []int{4}}, Likelihood: bayes.Gaussian{Learn: true},
		Prior:      bayes.Normal{PerLayer: map[int]float64{0: .5, 1: 2, 2: 3}},
		Stochastic: bayes.Layers(2).And(bayes.Names("noise/log_scale")),
	}
	bound := computetest.Must(m.Bind(2, 1))
	if got, want := bound.Scales(), []float64{3, 3, 3, 3, 3, .5}; !slices.Equal(got, want) {
		t.Errorf("scales %v, want %v", got, want)
	}
}

// twice is a network with twice as many outputs as it is asked for.
type twice struct{ nn.MLP }

func (t twice) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return t.MLP.Layers(inputs, 2*outputs)
}

// torn is one whose last layer takes other widths than the layers before give.
type torn struct{}

func (torn) Layers(inputs, outputs int) ([]nn.Layer, error) {
	first, err := nn.MLP{Hidden: []int{4, 4}, Activation: nn.Tanh}.Layers(inputs, 5)
	if err != nil {
		return nil, err
	}
	last, err := nn.MLP{Hidden: []int{4, 4}, Activation: nn.Tanh}.Layers(inputs, outputs)
	wide := first[len(first)-1].(nn.Dense)
	wide.Number = 4
	return append(first[:len(first)-2:len(first)-2], last[len(last)-1], wide), err
}

// tied has a last layer that reads the first one's weights, and only its own biases.
type tied struct{}

func (tied) Layers(inputs, _ int) ([]nn.Layer, error) {
	layers, err := nn.MLP{Hidden: []int{inputs, inputs}, Activation: nn.Tanh}.Layers(inputs, inputs)
	return append(layers[:len(layers)-1:len(layers)-1], again{nn.Dense{Number: 3, In: inputs, Out: inputs}}), err
}

type again struct{ nn.Dense }

func (a again) Parameters() []nn.Parameter { return a.Dense.Parameters()[1:] }

func (a again) Apply(params nn.Params, h nn.Value) nn.Value {
	return a.Dense.Apply(nn.Params{
		"layer3/weights": params["layer1/weights"], "layer3/biases": params["layer3/biases"],
	}, h)
}

// A weight that layers before and after the first stochastic one share is trained and predicted with.
func TestSharedAcrossSplit(t *testing.T) {
	model := bayes.Model{Network: tied{}, Likelihood: bayes.Gaussian{StdDev: .3}, Stochastic: bayes.Layers(2)}
	bound := computetest.Must(model.Bind(2, 2))
	for _, s := range bound.Slots {
		if s.InPrefix {
			t.Errorf("%s is before the split, where a later layer does not see it", s.Name)
		}
	}
	p := remade(t, bound, bayes.Draws{Phi: compute.Floats(compute.Float64, make([]float64, 2*bound.D), 2, bound.D),
		Psi:        compute.Floats(compute.Float64, slices.Repeat([]float64{.5}, bound.W), bound.W),
		LogWeights: []float64{0, 0}}, bayes.Origin{Engine: computetest.Go(t)})
	prediction := predict(t, p, mat.NewDense(1, 2, []float64{1, 2}))
	if mean, err := prediction.Mean(); err != nil || mean[0] != .5 { // tanh of 0, of the second layer, and the bias
		t.Errorf("%v, %v; want .5", mean, err)
	}
}

// twins has a layer twice, whose parameters have one name.
type twins struct{}

func (twins) Layers(_, outputs int) ([]nn.Layer, error) {
	layers, err := nn.MLP{}.Layers(outputs, outputs)
	return append(layers, layers...), err
}

// declared is a network of one layer, which multiplies all by one parameter.
type declared nn.Parameter

func (d declared) Layers(_, _ int) ([]nn.Layer, error) {
	d.Shape, d.Layer = []int{1}, 3
	return []nn.Layer{slope(d)}, nil
}

type slope nn.Parameter

func (s slope) Parameters() []nn.Parameter { return []nn.Parameter{nn.Parameter(s)} }

func (s slope) Apply(params nn.Params, h nn.Value) nn.Value {
	return nn.Value{Node: graph.Mul(h.Full(), params[s.Name].Full()), PerParticle: true}
}

// bare has no biases.
type bare struct{}

func (bare) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return []nn.Layer{onlyWeights{inputs, outputs}}, nil
}

type onlyWeights struct{ in, out int }

func (w onlyWeights) Parameters() []nn.Parameter {
	return []nn.Parameter{{Name: "weighted", Layer: 1, Kind: nn.Weights, Shape: []int{w.out, w.in}, FanIn: w.in,
		FanOut: w.out, Init: nn.LecunNormal}}
}

func (w onlyWeights) Apply(params nn.Params, h nn.Value) nn.Value {
	zeros := nn.Value{Node: graph.Zeros(h.Node.Graph(), shapes.Make(h.Node.DType(), w.out))}
	return nn.Dense{Number: 1, In: w.in, Out: w.out}.Apply(nn.Params{
		"layer1/weights": params["weighted"], "layer1/biases": zeros}, h)
}

// All picks what there is; a name is an error where the network has not what it names.
func TestAllWithoutBiases(t *testing.T) {
	for partition, want := range map[string]string{"weighted": "", "biases": `name "biases"`} {
		for _, all := range []bayes.Partition{{}, bayes.All()} {
			bound, err := bayes.Model{Network: bare{}, Likelihood: bayes.Gaussian{},
				Stochastic: all.And(bayes.Names(partition))}.Bind(2, 1)
			if want != "" {
				computetest.WantError(t, partition, err, "a parameter that the network does not have: "+want)
			} else if err != nil || bound.D != 2 {
				t.Errorf("%s: %v", partition, err)
			}
		}
	}
}

// Offsets run through phi and psi without gaps, in the network's order; the prefix holds what comes before the first
// stochastic parameter's layer.
func TestLayout(t *testing.T) {
	learnt := bayes.Gaussian{Learn: true}
	for _, c := range []struct {
		name       string
		likelihood bayes.Likelihood
		partition  bayes.Partition
		d, w       int
		slots      []string // short name, s or p for shared or stochastic, offset, ^ if in the prefix
		hasPrefix  bool
	}{
		{"first layer", bayes.Gaussian{}, bayes.Layers(1), 12, 19, []string{"1w p0", "1b p8", "2w s0", "2b s12", "3w s15",
			"3b s18"}, false},
		{"middle layer", bayes.Gaussian{}, bayes.Layers(2), 15, 16, []string{"1w s0^", "1b s8^", "2w p0", "2b p12", "3w s12",
			"3b s15"}, true},
		{"last layer", bayes.Gaussian{}, bayes.Layers(3), 4, 27, []string{"1w s0^", "1b s8^", "2w s12^", "2b s24^", "3w p0",
			"3b p3"}, true},
		{"two layers", bayes.Gaussian{}, bayes.Layers(3, 1), 16, 15, []string{"1w p0", "1b p8", "2w s0", "2b s12", "3w p12",
			"3b p15"}, false},
		{"all", bayes.Gaussian{}, bayes.All(), 31, 0, []string{"1w p0", "1b p8", "2w p12", "2b p24", "3w p27",
			"3b p30"}, false},
		{"weights", bayes.Gaussian{}, bayes.Names("layer1/weights", "layer2/weights", "layer3/weights"), 23, 8,
			[]string{"1w p0", "1b s0", "2w p8", "2b s4", "3w p20", "3b s7"}, false},
		{"weights of two layers", bayes.Gaussian{}, bayes.Names("layer2/weights", "layer3/weights"), 15, 16,
			[]string{"1w s0^", "1b s8^", "2w p0", "2b s12", "3w p12", "3b s15"}, true},
		{"biases of a layer", bayes.Gaussian{}, bayes.Names("layer2/biases"), 3, 28,
			[]string{"1w s0^", "1b s8^", "2w s12", "2b p0", "3w s24", "3b s27"}, true},
		{"a name and a layer", bayes.Gaussian{}, bayes.Names("layer1/biases").And(bayes.Layers(3)), 8, 23,
			[]string{"1w s0", "1b p0", "2w s8", "2b s20", "3w p4", "3b p7"}, false},
		{"twice the same", bayes.Gaussian{}, bayes.Layers(3).And(bayes.Layers(3)), 4, 27,
			[]string{"1w s0^", "1b s8^", "2w s12^", "2b s24^", "3w p0", "3b p3"}, true},
		{"noise", learnt, bayes.Names("noise/log_scale"), 1, 31, []string{"1w s0^", "1b s8^", "2w s12^", "2b s24^", "3w s27^",
			"3b s30^", "noise p0"}, true},
		{"shared noise", learnt, bayes.Layers(2), 15, 17, []string{"1w s0^", "1b s8^", "2w p0", "2b p12", "3w s12", "3b s15",
			"noise s16"}, true},
	} {
		bound := computetest.Must(bayes.Model{Network: mlp, Likelihood: c.likelihood, Stochastic: c.partition}.Bind(2, 1))
		var slots []string
		for _, s := range bound.Slots {
			name := "noise"
			if s.Layer > 0 {
				name = fmt.Sprintf("%d%c", s.Layer, s.Kind[0])
			}
			role := "s"
			if s.Stochastic {
				role = "p"
			}
			text := fmt.Sprintf("%s %s%d", name, role, s.Offset)
			if s.InPrefix {
				text += "^"
			}
			slots = append(slots, text)
		}
		if bound.D != c.d || bound.W != c.w || bound.HasPrefix() != c.hasPrefix || !slices.Equal(slots, c.slots) {
			t.Errorf("%s: D %d, W %d, prefix %v, slots %q; want %d, %d, %v, %q", c.name, bound.D, bound.W, bound.HasPrefix(),
				slots, c.d, c.w, c.hasPrefix, c.slots)
		}
	}
}

// trimmed is a text without spaces at the ends of its lines.
func trimmed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

func TestScalesAndSummary(t *testing.T) {
	bound, err := bayes.Model{
		Network: mlp, Likelihood: bayes.Gaussian{Learn: true},
		Prior:      bayes.Normal{StdDev: 2, PerLayer: map[int]float64{3: .25}},
		Stochastic: bayes.Layers(3).And(bayes.Names("noise/log_scale")),
	}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.Scales(); !slices.Equal(got, []float64{.25, .25, .25, .25, 2}) {
		t.Errorf("scales %v", got)
	}
	want := `
parameter        shape              count  prior
layer1/weights   [4 2]  shared      8
layer1/biases    [4]    shared      4
layer2/weights   [3 4]  shared      12
layer2/biases    [3]    shared      3
layer3/weights   [1 3]  stochastic  3      Normal(0.25)
layer3/biases    [1]    stochastic  1      Normal(0.25)
noise/log_scale  [1]    stochastic  1      Normal(2)
total                   stochastic  5      per particle
                        shared      27
`
	if got := "\n" + trimmed(bound.Summary()); got != want {
		t.Errorf("Summary is%s, want%s", got, want)
	}
	// no prior: Normal of 1
	bound, err = bayes.Model{Network: mlp, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Layers(3)}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.Scales(); !slices.Equal(got, []float64{1, 1, 1, 1}) ||
		!strings.Contains(bound.Summary(), "Normal(1)") {
		t.Errorf("scales %v, summary\n%s", got, bound.Summary())
	}
}
