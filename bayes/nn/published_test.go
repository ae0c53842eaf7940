package nn

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// The published networks have the published numbers of parameters.
func TestPublishedSizes(t *testing.T) {
	for _, c := range []struct {
		network Network
		inputs  int
		want    int
	}{
		{LeNet5(28, 28, 1), 784, 61_706}, {LeNet5(32, 32, 1), 1024, 82_826}, // Huang and others 2023, Table 8
		// 270 256 weights and 784 biases of convolutions, 1568 scales and shifts, 688 thresholds, 650 of the dense layer
		{ResNet20{Height: 32, Width: 32, Channels: 3}, 3072, 273_946},
	} {
		layers := computetest.Must(c.network.Layers(c.inputs, 10))
		size, names := 0, map[string]bool{}
		for _, layer := range layers {
			for _, p := range layer.Parameters() {
				if err := p.Check(); err != nil || names[p.Name] {
					t.Errorf("%T: parameter %q: %v, or it is there twice", c.network, p.Name, err)
				}
				names[p.Name] = true
				size += p.Size()
			}
		}
		if size != c.want {
			t.Errorf("%T has %d parameters, want %d", c.network, size, c.want)
		}
	}
}

// A ResNet20 whose first layer differs from particle to particle, and all others are shared, gives each particle what
// a network gives that has this particle's numbers as shared ones.
func TestResNetParticles(t *testing.T) {
	const particles, batch, side = 2, 3, 5
	layers := computetest.Must(ResNet20{Height: side, Width: side}.Layers(side*side, 2))
	engine := computetest.Go(t)
	got := computetest.Run(t, engine, func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
		h := Value{graph.Reshape(a[0], side*side, batch), false}
		apply := func(particle int) *graph.Node { // -1: all at once
			params, x := Params{}, h
			for _, layer := range layers {
				for i, p := range layer.Parameters() {
					numbers := graph.Slice(a[1], graph.AxisRange(i, i+p.Size()))
					if p.Kind == Weights && len(p.Shape) == 1 {
						numbers = graph.OnePlus(numbers)
					}
					if p.Layer > 1 {
						params[p.Name] = Value{graph.Reshape(numbers, p.Shape...), false}
						continue
					}
					all := graph.Stack([]*graph.Node{numbers, graph.Sin(graph.MulScalar(numbers, 7))}, 0)
					if params[p.Name] = own(all, particles, 1, p.Shape...); particle >= 0 {
						one := graph.Slice(all, graph.AxisElem(particle))
						params[p.Name] = Value{graph.Reshape(one, p.Shape...), false}
					}
				}
				x = layer.Apply(params, x)
			}
			return graph.Reshape(x.Node, -1)
		}
		return []*graph.Node{apply(-1), graph.Concatenate([]*graph.Node{apply(0), apply(1)}, 0)}
	}, sines(side*side*batch, .7), sines(40_000, 1.1))
	computetest.Near(t, "outputs", got[0], got[1], 1e-9)
	if got[0][0] == got[0][2*batch] {
		t.Error("both particles have the same outputs")
	}
}

func TestResNetErrors(t *testing.T) {
	for _, c := range []struct {
		network         ResNet20
		inputs, outputs int
		says            string
	}{
		{ResNet20{}, 4, 1, "a ResNet20 for images of 0 x 0 pixels"},
		{ResNet20{Height: 2, Width: 2}, 5, 1, "takes 4 features, but the data has 5"},
		{ResNet20{Height: 2, Width: 2}, 4, 0, "to 0 outputs"},
		{ResNet20{Height: 2, Width: 2, Init: "orthogonal"}, 4, 1, `"orthogonal": use lecun_normal`},
	} {
		if _, err := c.network.Layers(c.inputs, c.outputs); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.network, err)
		}
	}
}

// Where layers change the width and no shortcut does, the error says so.
func TestResidualWithoutShortcut(t *testing.T) {
	residualWithoutShortcut(t, 3, false)
	residualWithoutShortcut(t, 1, true) // which would be broadcast to the input's 2
}

func residualWithoutShortcut(t *testing.T, out int, perParticle bool) {
	wide, said := Residual{Layers: []Layer{Dense{Number: 1, In: 2, Out: out}}}, ""
	computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
		weights := Value{graph.Reshape(a[0], out, 2), false}
		if perParticle {
			weights = own(graph.Concatenate([]*graph.Node{a[0], a[0]}, 0), 2, 1, out, 2)
		}
		func() {
			defer func() { said = fmt.Sprint(recover()) }()
			wide.Apply(Params{
				"layer1/weights": weights,
				"layer1/biases":  {graph.Slice(a[0], graph.AxisRange(0, out)), false},
			}, Value{graph.Reshape(a[1], 2, 1), false})
		}()
		return []*graph.Node{graph.Reshape(a[1], -1)}
	}, sines(2*out, 1), sines(2, 1))
	if !strings.Contains(said, "set Shortcut") {
		t.Error(said)
	}
}
