package nn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

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
	xs := mat.NewDense(200, 1, nil)
	data := &dataset.Dataset{Name: "square wave", Features: []string{"x"}, Target: "y", X: xs}
	for n := range 200 {
		x := 2 * math.Pi * (float64(n) + .5) / 200
		xs.Set(n, 0, x)
		data.Y = append(data.Y, math.Copysign(1, math.Pi-x))
	}
	model := bayes.Model{
		Network: fourier{Waves: 3}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All(),
		Prior:   bayes.Normal{StdDev: 10},
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	result, err := fit.Fit(context.Background(), model, baseline.MAP{}, dataset.Parts{Train: data}, run.Settings{})
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

// hinge is a layer of one's own with a learnt parameter: x for x > 0, and slope x otherwise, with a slope for each of
// its inputs (He, Zhang, Ren and Sun 2015).
type hinge struct{ Number, Inputs int }

// Parameters implements nn.Layer. By their kind and their layer's number a partition says which are stochastic.
func (l hinge) Parameters() []nn.Parameter {
	return []nn.Parameter{{
		Name: fmt.Sprintf("layer%d/slope", l.Number), Layer: l.Number, Kind: nn.Weights, Shape: []int{l.Inputs},
		FanIn: 1, FanOut: l.Inputs, Init: nn.Ones,
	}}
}

// Apply implements nn.Layer. Full gives inputs as [J/c, in, B, c] and a vector as [J/c, in, 1, c], with 1 for J/c and c
// where all particles share it.
func (l hinge) Apply(params nn.Params, h nn.Value) nn.Value {
	slope, x := params[fmt.Sprintf("layer%d/slope", l.Number)], h.Full()
	y := graph.Add(graph.MaxScalar(x, 0), graph.Mul(slope.Full(), graph.MinScalar(x, 0)))
	if slope.PerParticle || h.PerParticle {
		return nn.Value{Node: y, PerParticle: true}
	}
	return nn.Value{Node: graph.Reshape(y, h.Node.Shape().Dimensions...)}
}

// hinged is a dense layer of the library's, a layer of one's own, and another dense layer.
type hinged struct {
	Width int `json:"width"`
}

func init() { bayes.Register(hinged{}) }

// Layers implements nn.Network.
func (n hinged) Layers(inputs, outputs int) ([]nn.Layer, error) {
	if n.Width < 1 {
		return nil, errors.New("hinged: Width must be at least 1")
	}
	return []nn.Layer{nn.Dense{Number: 1, In: inputs, Out: n.Width}, hinge{Number: 2, Inputs: n.Width},
		nn.Dense{Number: 3, In: n.Width, Out: outputs}}, nil
}

// A layer of one's own among the library's. Fit tries it on a few numbers: a layer that mixes rows or particles is an
// error. Here the slopes and the last layer have a distribution, and the first layer is trained.
func ExampleLayer() {
	var x, y []float64
	for n := range 100 {
		x = append(x, float64(n)/50-1)
		y = append(y, math.Max(x[n], -x[n]/2))
	}
	data := &dataset.Dataset{Name: "kink", Features: []string{"x"}, Target: "y", X: mat.NewDense(100, 1, x), Y: y}
	model := bayes.Model{
		Network: hinged{Width: 4}, Likelihood: bayes.Gaussian{StdDev: .1}, Stochastic: bayes.Layers(2, 3),
	}
	method := baseline.MAP{Training: train.Training{Epochs: 300}}
	result, err := fit.Fit(context.Background(), model, method, dataset.Parts{Train: data}, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(context.Background(), mat.NewDense(3, 1, []float64{-.8, .4, .8}))
	if err != nil {
		log.Fatal(err)
	}
	mean, err := prediction.Mean()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f\n", mean)
	// Output:
	// [0.4 0.4 0.8]
}

// A convolutional network, whose first convolution has a distribution, tells pictures of a horizontal line from those
// of a vertical one, anywhere in noise.
func ExampleCNN() {
	const side, rows = 8, 300
	rng := rand.New(rand.NewPCG(1, 2))
	pictures := mat.NewDense(rows, side*side, nil)
	data := &dataset.Dataset{Name: "lines", Task: dataset.BinaryClassification, Target: "direction",
		Classes: []string{"horizontal", "vertical"}, X: pictures}
	for pixel := range side * side {
		data.Features = append(data.Features, fmt.Sprintf("%d,%d", pixel/side, pixel%side))
	}
	for n := range rows {
		picture, line, class := pictures.RawRowView(n), rng.IntN(side), n%2
		for i := range picture {
			picture[i] = .3 * rng.NormFloat64()
		}
		for i := range side {
			if class == 0 {
				picture[line*side+i]++
			} else {
				picture[i*side+line]++
			}
		}
		data.Y = append(data.Y, float64(class))
	}
	parts, err := data.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.CNN{Height: side, Width: side, Convolutions: []nn.Conv{{Filters: 4, Pool: 2}, {Filters: 8, Pool: 2}},
			Hidden: []int{16}},
		Likelihood: bayes.Bernoulli{}, Stochastic: bayes.Layers(1), Scaling: bayes.Scaling{KeepFeatures: true},
	}
	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 50, BatchSize: 30, Epochs: 20}}
	result, err := fit.Fit(context.Background(), model, method, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(context.Background(), parts.Test.X)
	if err != nil {
		log.Fatal(err)
	}
	accuracy, err := metric.Accuracy(prediction, parts.Test.Y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, more than 90 %% right: %v\n", result.Status, accuracy.Value > .9)
	// Output:
	// completed, more than 90 % right: true
}
