package bayes_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// watched is a linear network that shows the nodes that it gives.
type watched struct {
	nn.MLP
	show func(output *graph.Node)
}

func (w watched) Layers(inputs, outputs int) ([]nn.Layer, error) {
	layers, err := w.MLP.Layers(inputs, outputs)
	return append(layers, shownLayer{w.show}), err
}

// shownLayer changes nothing.
type shownLayer struct{ show func(output *graph.Node) }

func (shownLayer) Parameters() []nn.Parameter { return nil }

func (l shownLayer) Apply(_ nn.Params, h nn.Value) nn.Value {
	l.show(h.Node)
	return h
}

// What a posterior predicts with is freed when nobody has the posterior any more: the graph that is held here loses its
// nodes, which no collection of garbage takes from it.
func TestEvaluatorsAreFreed(t *testing.T) {
	var program *graph.Graph // the last that was built
	var node weak.Pointer[graph.Node]
	network := watched{show: func(output *graph.Node) { program, node = output.Graph(), weak.Make(output) }}
	bound, err := bayes.Model{Network: network, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := remade(t, bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, []float64{1, 2}, 1, 2), LogWeights: []float64{0},
	}, bayes.Origin{Engine: computetest.Go(t)})
	program = nil
	predict(t, p, mat.NewDense(1, 1, []float64{3}))
	if runtime.GC(); node.Value() == nil {
		t.Fatal("its program is freed while the posterior is there")
	}
	runtime.KeepAlive(p)
	for deadline := time.Now().Add(10 * time.Second); node.Value() != nil; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("it is not freed")
		}
	}
	runtime.KeepAlive(program)
}
