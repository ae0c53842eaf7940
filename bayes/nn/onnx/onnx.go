// Package onnx makes a network of a file that was trained elsewhere, by PyTorch, Keras or scikit-learn: what the file
// computes up to an inner tensor are features, of which a last, stochastic layer makes the outputs.
//
//	network, err := onnx.Open("model.onnx", onnx.Options{})
//	model := bayes.Model{Network: network, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(2)}
//
// The file stays as it is: its features are computed once for each row, and kept on disk. So sampling costs what it
// does for a linear model, and any method takes it. A posterior's file names the ONNX file by its hash: Open it, at any
// path, before bayes.Load.
package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/nn"
)

// Options say how rows of data become the file's input, and where it is cut. The zero value is for files whose last
// product with weights gives the outputs, and for data in the file's own units.
type Options struct {
	// Features is the tensor of the file that has the features, of any shape [N, ...]; default: what its last product
	// with weights multiplies.
	Features string `json:"features,omitempty"`
	// Image is the size of pictures; default: as in the file. A row is a picture as for nn.CNN, pixel by pixel, whatever
	// the order of axes in the file.
	Image nn.Image `json:"image,omitzero"`
	// Mean and StdDev standardise the input, (x - Mean) / StdDev, all of it by one number or each channel of pictures by
	// its own; default 0 and 1. Bytes of dataset.Pixels are numbers from 0 to 1 before. Leave them out where the file's
	// first nodes do so.
	Mean   []float64 `json:"mean,omitempty"`
	StdDev []float64 `json:"std_dev,omitempty"`
	// Reversed: the file takes blue, green and red, where the rows have red, green and blue.
	Reversed bool `json:"reversed,omitempty"`
	// Hidden are the widths of dense layers with ReLU between the features and the last layer, from layer 2 on: shared
	// parameters for methods that learn these; default none.
	Hidden []int `json:"hidden,omitempty"`
}

// Network is an ONNX file, layer 1, with new layers behind its features, of which the last gives the outputs: layer 2,
// if there are none between. Open makes it.
type Network struct {
	sum     string
	options Options
	*file   // nil: not opened
}

var _ bayes.Extractor = Network{}

func init() {
	for _, value := range []any{Network{}, Learnt{}, last{}, Around{}} {
		bayes.Register(value)
	}
}

// opened are the networks that the program has opened, by their JSON, and the paths of their files, by the hash: there
// a posterior that is loaded finds its network.
var opened sync.Map

// Open reads an ONNX file of one input, of operators 11 to 23, in float32. Nothing in it is run, and no other file is
// read. The error names the operator or the tensor that is not read, and what to do.
func Open(path string, o Options) (Network, error) {
	f, err := read(path, o)
	if err != nil {
		return Network{}, fmt.Errorf("onnx: %s: %w", path, err)
	}
	n := Network{sum: f.sum, options: o, file: f}
	text, err := n.MarshalJSON()
	if err != nil {
		return Network{}, err
	}
	opened.Store(string(text), n)
	opened.Store(n.sum, path)
	return n, nil
}

// ErrNotOpened says that a posterior's file names an ONNX file which the program has not opened.
var ErrNotOpened = errors.New("onnx: the posterior needs its ONNX file, opened by onnx.Open before bayes.Load")

// described is a network as JSON.
type described struct {
	SHA256  string  `json:"sha256"`
	Options Options `json:"options"`
}

// MarshalJSON writes the file's hash, and the options.
func (n Network) MarshalJSON() ([]byte, error) { return json.Marshal(described{n.sum, n.options}) }

// UnmarshalJSON finds the network among those that were opened, or opens its file with these options.
func (n *Network) UnmarshalJSON(text []byte) error {
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	n.sum, n.options = d.SHA256, d.Options
	key, err := n.MarshalJSON()
	if err != nil {
		return err
	}
	if known, is := opened.Load(string(key)); is {
		*n = known.(Network)
		return nil
	}
	path, is := opened.Load(d.SHA256)
	if !is {
		return fmt.Errorf("%w: it has the SHA-256 %s", ErrNotOpened, d.SHA256)
	}
	if *n, err = Open(path.(string), d.Options); err == nil && n.sum != d.SHA256 {
		err = fmt.Errorf("%w: %s was it, and is another file now; it has the SHA-256 %s", ErrNotOpened, path, d.SHA256)
	}
	return err
}

// Features implements bayes.Extractor.
func (n Network) Features(inputs int) (int, error) {
	if n.file == nil {
		return 0, errors.New("onnx: the network was not opened: take onnx.Open")
	}
	return n.width, n.check(inputs)
}

// Layers implements nn.Network: the layers behind the features.
func (n Network) Layers(inputs, outputs int) ([]nn.Layer, error) {
	return n.behind().Layers(inputs, outputs)
}

func (n Network) behind() last { return last{n.options.Hidden} }

// Behind implements bayes.Extractor.
func (n Network) Behind(m bayes.Model) (bayes.Model, error) {
	if a, is := m.Prior.(Around); is && (!m.Scaling.KeepFeatures || a.Network.sum != n.sum || len(n.options.Hidden) > 0) {
		return m, errors.New("onnx: the prior Around is of a file's own layer, for features as they are: set " +
			"Model.Scaling.KeepFeatures, take the Network of the same file, and no Options.Hidden")
	}
	m.Network = n.behind()
	return m, nil
}

// last is what stands behind the features, from layer 2 on.
type last struct {
	Hidden []int `json:"hidden,omitempty"`
}

// Layers implements nn.Network.
func (l last) Layers(inputs, outputs int) (layers []nn.Layer, err error) {
	number := 2
	for _, width := range l.Hidden {
		if width < 1 {
			return nil, fmt.Errorf("onnx: Options.Hidden is %v: a layer has at least one unit", l.Hidden)
		}
		layers = append(layers, nn.Dense{Number: number, In: inputs, Out: width, Init: nn.HeNormal}, nn.ReLU)
		number, inputs = number+1, width
	}
	return append(layers, nn.Dense{Number: number, In: inputs, Out: outputs}), nil
}
