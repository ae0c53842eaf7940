package nn_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// residual is a network of one's own for signals, pictures of one row of pixels, of the library's layers: a
// convolution, another one whose result is added to its input, and the average over the signal.
type residual struct {
	Length  int `json:"length"`
	Filters int `json:"filters"`
}

func init() { bayes.Register(residual{}) }

// Layers implements nn.Network.
func (r residual) Layers(inputs, outputs int) ([]nn.Layer, error) {
	if r.Length != inputs || r.Filters < 1 {
		return nil, fmt.Errorf("residual: signals of length %d, not %d, and %d filters: there must be one", inputs, r.Length,
			r.Filters)
	}
	image := func(channels int) nn.Image { return nn.Image{Height: 1, Width: r.Length, Channels: channels} }
	convolution := func(number, channels int) []nn.Layer {
		return []nn.Layer{
			nn.Convolution{Number: number, Image: image(channels), Filters: r.Filters, Kernel: 3},
			nn.FilterResponse{Number: number + 1, Image: image(r.Filters)},
			nn.Threshold{Number: number + 2, Image: image(r.Filters)},
		}
	}
	return append(convolution(1, 1),
		nn.Residual{Layers: convolution(4, r.Filters)},
		nn.Pool{Image: image(r.Filters)},
		nn.Dense{Number: 7, In: r.Filters, Out: outputs}), nil
}

// A residual network tells signals that jump up from those that jump down, at any place.
func ExampleResidual() {
	const length, rows = 16, 400
	rng := rand.New(rand.NewPCG(1, 2))
	signals := mat.NewDense(rows, length, nil)
	data := &dataset.Dataset{Name: "jumps", Task: dataset.BinaryClassification, Target: "direction",
		Classes: []string{"down", "up"}, X: signals}
	for i := range length {
		data.Features = append(data.Features, fmt.Sprint("at ", i))
	}
	for n := range rows {
		signal, at, class := signals.RawRowView(n), 4+rng.IntN(length-8), n%2
		for i := range signal {
			signal[i] = .2 * rng.NormFloat64()
			if (i >= at) == (class == 1) {
				signal[i]++
			}
		}
		data.Y = append(data.Y, float64(class))
	}
	parts, err := data.Split(dataset.Fractions{Train: .7, Test: .3}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{Network: residual{Length: length, Filters: 4}, Likelihood: bayes.Bernoulli{},
		Stochastic: bayes.All(), Scaling: bayes.Scaling{KeepFeatures: true}}
	method := baseline.MAP{Training: train.Training{Epochs: 60}}
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
	fmt.Println("more than 90 % right:", accuracy.Value > .9)
	// Output:
	// more than 90 % right: true
}
