package onnx

import (
	"cmp"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Around is the normal prior of the last layer around the file's own, N(w, StdDev^2): of as many outputs, in the file's
// own units, so that Model.Scaling must keep the features.
type Around struct {
	Network Network `json:"network"`
	StdDev  float64 `json:"std_dev"` // default 1
}

var _ bayes.Prior = Around{}

func (a Around) normal() bayes.Normal { return bayes.Normal{StdDev: cmp.Or(a.StdDev, 1)} }

// Scale implements bayes.Prior: the standard deviation.
func (a Around) Scale(p nn.Parameter) float64 { return a.normal().Scale(p) }

// Check implements bayes.Prior.
func (a Around) Check() error {
	if a.Network.file == nil || a.Network.own == nil {
		return fmt.Errorf("onnx: Around.Network has no last layer of its own behind its features: take another prior, such " +
			"as bayes.Normal")
	}
	return a.normal().Check()
}

// LogDensity implements bayes.Prior.
func (a Around) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	return a.normal().LogDensity(graph.Sub(phi, a.mean(phi, slots)), slots)
}

// Sample implements bayes.Prior.
func (a Around) Sample(rng random.Stream, dtype compute.DType, particles int, slots []bayes.Slot) *graph.Node {
	phi := a.normal().Sample(rng, dtype, particles, slots)
	return graph.Add(phi, a.mean(phi, slots))
}

// mean is the file's own layer, [1, D]; 0 for parameters that are none of its.
func (a Around) mean(like *graph.Node, slots []bayes.Slot) *graph.Node {
	var values []float32
	for _, slot := range slots {
		own := make([]float32, slot.Size()) // 0 of what is not of the layer
		switch slot.Name {
		case "layer2/weights": // [out, in], the file's are [in, out]
			own = a.Network.own.weights.transposed().Values
		case "layer2/biases":
			own = a.Network.own.biases.Values
		}
		if len(own) != slot.Size() {
			panic(fmt.Errorf("onnx: Around has a last layer of %v (features, outputs), and the model's %q has %d numbers: take "+
				"another prior, such as bayes.Normal", a.Network.own.weights.Shape, slot.Name, slot.Size()))
		}
		values = append(values, own...)
	}
	return graph.ConvertDType(graph.Const(like.Graph(), [][]float32{values}), like.DType())
}
