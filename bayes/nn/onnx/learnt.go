package onnx

import (
	"fmt"

	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Learnt is a Network whose file is trained along, by methods that learn shared parameters, such as package ohsmc's.
// The file's tensors of weights are psi of layer 1, and begin as they are there. Means and variances of its batch
// normalisations stay. A posterior's file holds what was learnt.
type Learnt struct {
	Network Network `json:"network"`
}

// Layers implements nn.Network.
func (l Learnt) Layers(inputs, outputs int) ([]nn.Layer, error) {
	width, err := l.Network.Features(inputs)
	if err != nil {
		return nil, err
	}
	behind, err := l.Network.behind().Layers(width, outputs)
	return append([]nn.Layer{layer{l.Network}}, behind...), err
}

// layer is the file as a layer.
type layer struct{ Network }

// Parameters implements nn.Layer.
func (l layer) Parameters() (all []nn.Parameter) {
	for _, w := range l.weights {
		if !w.fixed {
			all = append(all, nn.Parameter{Name: "layer1/" + w.Name, Layer: 1, Kind: nn.Weights, Shape: w.Shape,
				FanIn: w.Size() / w.Shape[0], FanOut: w.Shape[0], Values: w.Values})
		}
	}
	return all
}

// Apply implements nn.Layer: [inputs, B] to [F, B].
func (l layer) Apply(params nn.Params, h nn.Value) nn.Value {
	g := h.Node.Graph()
	var weights []*graph.Node
	for _, w := range l.weights {
		if w.fixed {
			all := graph.Const(g, w.Values)
			weights = append(weights, graph.ConvertDType(graph.Reshape(all, w.Shape...), h.Node.DType()))
			continue
		}
		value := params["layer1/"+w.Name]
		if value.PerParticle {
			panic(fmt.Errorf("onnx: tensor %q is stochastic, and the file is one layer that all particles share: leave layer 1 "+
				"out of Model.Stochastic, as by bayes.Layers(2)", w.Name))
		}
		weights = append(weights, value.Node)
	}
	return nn.Value{Node: graph.Transpose(l.outputs(graph.Transpose(h.Node, 0, 1), weights, l.options), 0, 1)}
}

// Stored implements nn.Sized.
func (l layer) Stored(bool) int { return l.stored }
