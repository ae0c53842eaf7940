package nn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// fourier is a network of one's own: a linear model of sines and cosines of the features.
type fourier struct {
	Waves int `json:"waves"`
}

// A saved posterior names its network: Load finds the type by it.
func init() { bayes.Register(fourier{}) }

// Layers implements nn.Network.
func (f fourier) Layers(inputs, outputs int) ([]nn.Layer, error) {
	if f.Waves < 1 {
		return nil, errors.New("fourier: Waves must be at least 1")
	}
	return []nn.Layer{waves(f.Waves), nn.Dense{Number: 1, In: 2 * f.Waves * inputs, Out: outputs}}, nil
}

// waves is a layer of one's own, without parameters: sin kx and cos kx, k = 1, ..., of each of its inputs.
type waves int

// Parameters implements nn.Layer.
func (w waves) Parameters() []nn.Parameter { return nil }

// Apply implements nn.Layer. What all particles share is [in, B], what each has of its own [J/c, in, B, c].
func (w waves) Apply(_ nn.Params, h nn.Value) nn.Value {
	axis := 0
	if h.PerParticle {
		axis = 1
	}
	var all []*graph.Node
	for k := 1; k <= int(w); k++ {
		phase := graph.MulScalar(h.Node, float64(k))
		all = append(all, graph.Sin(phase), graph.Cos(phase))
	}
	return nn.Value{Node: graph.Concatenate(all, axis), PerParticle: h.PerParticle}
}

// A network of one's own, with a layer of one's own, finds a square wave's first two sines, 4/pi and 4/(3 pi).
func ExampleNetwork() {
	data := &dataset.Dataset{Name: "square wave", Features: []string{"x"}, Target: "y", X: mat.NewDense(200, 1, nil)}
	for n := range 200 {
		x := 2 * math.Pi * (float64(n) + .5) / 200
		data.X.Set(n, 0, x)
		data.Y = append(data.Y, math.Copysign(1, math.Pi-x))
	}
	model := bayes.Model{
		Network: fourier{Waves: 3}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All(),
		Prior:   bayes.Normal{StdDev: 10},
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	result, err := baseline.Fit(context.Background(), model, baseline.MAP{}, dataset.Parts{Train: data},
		baseline.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	weights, _, err := result.Posterior.Parameter("layer1/weights")
	if err != nil {
		log.Fatal(err)
	}
	for k := range 3 {
		fmt.Printf("sin %dx: %.1f\n", k+1, math.Abs(weights[2*k]))
	}
	// Output:
	// sin 1x: 1.3
	// sin 2x: 0.0
	// sin 3x: 0.4
}
