package bayes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// cauchy is a prior of one's own: independent Cauchy distributions, with a scale that falls with a layer's inputs.
type cauchy struct {
	Width float64 `json:"width"`
}

func init() { bayes.Register(cauchy{}) }

func (c cauchy) Check() error {
	if !(c.Width > 0) || math.IsInf(c.Width, 1) {
		return errors.New("cauchy: Width must be positive and finite")
	}
	return nil
}

// Scale is that of each element of a parameter.
func (c cauchy) Scale(p nn.Parameter) float64 { return c.Width / math.Sqrt(float64(p.FanIn)) }

// LogDensity is the sum of -log(pi s (1 + (x/s)^2)).
func (c cauchy) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	scales := bayes.Scales(c, slots)
	z := graph.Div(phi, across(phi, scales))
	constant := 0.0
	for _, s := range scales {
		constant += math.Log(math.Pi * s)
	}
	return graph.SubScalar(graph.Neg(graph.ReduceSum(graph.Log1p(graph.Square(z)), 1)), constant)
}

// Sample is s tan(pi (u - 1/2)) for u uniform on (0, 1).
func (c cauchy) Sample(rng random.Stream, dtype compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	scales := bayes.Scales(c, slots)
	angle := graph.MulScalar(graph.AddScalar(rng.Uniform(dtype, particles, len(scales)), -.5), math.Pi)
	return graph.Mul(graph.Div(graph.Sin(angle), graph.Cos(angle)), across(angle, scales))
}

// across is one row of numbers for each particle, [J, D].
func across(like *graph.Node, values []float64) *graph.Node {
	row := graph.ConvertDType(graph.Const(like.Graph(), [][]float64{values}), like.DType())
	return graph.BroadcastToShape(row, like.Shape())
}

// A prior of one's own: with two points on a line through 0, and noise of 0.1, it is the data that speak, but the
// prior keeps the intercept near 0.
func ExamplePrior() {
	data := &dataset.Dataset{Name: "two points", Features: []string{"x"}, Target: "y",
		X: mat.NewDense(2, 1, []float64{1, 2}), Y: []float64{3, 6}}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .1}, Prior: cauchy{Width: 1}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	method := mcmc.Chains{Kernel: mcmc.HMC{Jitter: .5}, Draws: 100, WarmUp: 150}
	result, err := fit.Fit(context.Background(), model, method, dataset.Parts{Train: data}, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	slopes, _, err := result.Posterior.Parameter("layer1/weights")
	if err != nil {
		log.Fatal(err)
	}
	mean := 0.0
	for _, slope := range slopes {
		mean += slope / float64(len(slopes))
	}
	fmt.Printf("%d draws, mean slope %.0f\n", len(slopes), mean)
	// Output:
	// 400 draws, mean slope 3
}
