package bayes_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
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

// watchedContext says when it is waited for.
type watchedContext struct {
	context.Context
	asked chan struct{}
}

func (w watchedContext) Done() <-chan struct{} {
	w.asked <- struct{}{}
	return w.Context.Done()
}

// A row does not wait for a prediction of many rows, which holds its turn here while its program is built. Another one
// of many waits for its turn, and no longer than its context.
func TestPredictDoesNotWaitForMany(t *testing.T) {
	const particles, many = 3000, 1000
	begun, release := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() {
		close(begun)
		<-release
	})
	network := watched{show: func(output *graph.Node) {
		if output.Shape().Dim(2) == many {
			wait()
		}
	}}
	model := bayes.Model{Network: network, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}
	bound := computetest.Must(model.Bind(1, 1))
	p := computetest.Must(bayes.NewPosterior(bound, bayes.Draws{
		Phi:        compute.Floats(compute.Float64, wave(particles*2, 1.7), particles, 2),
		LogWeights: bayes.EqualLogWeights(particles),
	}, bayes.Origin{Engine: computetest.Go(t)}))
	var predictions sync.WaitGroup
	predictions.Go(func() {
		if _, err := p.Predict(context.Background(), mat.NewDense(many, 1, nil)); err != nil {
			t.Errorf("many rows: %v", err)
		}
	})
	<-begun
	predict(t, p, mat.NewDense(1, 1, nil))
	inner, leave := context.WithCancel(context.Background())
	gone := watchedContext{inner, make(chan struct{}, 9)}
	predictions.Go(func() {
		if _, err := p.Predict(gone, mat.NewDense(many, 1, nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("many rows of a client that has gone: %v", err)
		}
		close(release)
	})
	<-gone.asked
	leave()
	predictions.Wait()
}

// Programs are closed for others while some of them run.
func TestPredictManyShapesConcurrently(t *testing.T) {
	p := newPosterior(t, predicted[1].model, predicted[1].outputs, 3, compute.Float32)
	const least, shapes = 256, 20 // from there on each number of rows has a program
	x := mat.NewDense(least+shapes, features, wave((least+shapes)*features, .37))
	want := predict(t, p, x)
	var all sync.WaitGroup
	for client := range 4 {
		all.Go(func() {
			for k := range shapes {
				rows := least + (k+5*client)%shapes
				got, err := p.Predict(t.Context(), x.Slice(0, rows, 0, features))
				if err != nil || !slices.Equal(got.Outputs[:rows*got.Width], want.Outputs[:rows*got.Width]) {
					t.Errorf("%d rows: %v, or other outputs of the first particle", rows, err)
				}
			}
		})
	}
	all.Wait()
}
