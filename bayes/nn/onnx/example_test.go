package onnx_test

import (
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/nn/onnx"
)

// A last layer behind the network of a file: a new one, with the posterior of its weights; one whose prior is around
// the layer that the file has; one behind a file that is trained along; and one behind a new hidden layer that is.
func Example() {
	network, err := onnx.Open("testdata/digits.onnx", onnx.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fresh := bayes.Model{Network: network, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(2)}
	around := fresh
	around.Prior = onnx.Around{Network: network, StdDev: .1}
	around.Scaling.KeepFeatures = true // the file's layer is for the file's own features
	learnt := fresh
	learnt.Network = onnx.Learnt{Network: network} // by ohsmc.OpenHorizon, for instance
	between, err := onnx.Open("testdata/digits.onnx", onnx.Options{Hidden: []int{8}})
	if err != nil {
		fmt.Println(err)
		return
	}
	hidden := fresh
	hidden.Network, hidden.Stochastic = between, bayes.Layers(3)
	for _, model := range []bayes.Model{fresh, around, learnt, hidden} {
		bound, err := model.Bind(64, 10)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(bound.D, "numbers with a posterior,", bound.W, "that are learnt")
	}
	// Output:
	// 170 numbers with a posterior, 0 that are learnt
	// 170 numbers with a posterior, 0 that are learnt
	// 170 numbers with a posterior, 1040 that are learnt
	// 90 numbers with a posterior, 136 that are learnt
}
