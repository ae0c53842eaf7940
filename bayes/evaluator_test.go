package bayes

import (
	"runtime"
	"testing"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// What a posterior predicts with is freed when nobody has the posterior any more.
func TestEvaluatorsAreFreed(t *testing.T) {
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := Model{Network: nn.MLP{}, Likelihood: Gaussian{}, Stochastic: All()}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPosterior(bound, Draws{
		Phi: compute.Floats(compute.Float64, []float64{1, 2}, 1, 2), LogWeights: []float64{0},
	}, Origin{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Predict(t.Context(), mat.NewDense(1, 1, []float64{3})); err != nil {
		t.Fatal(err)
	}
	cache := p.evaluators.cache
	if cache.Len() != 1 {
		t.Fatalf("%d evaluators are kept", cache.Len())
	}
	runtime.KeepAlive(p)
	for deadline := time.Now().Add(10 * time.Second); cache.Len() > 0; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatal("they were not freed")
		}
	}
}
