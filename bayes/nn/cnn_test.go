package nn

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The layers of a network for images of 9 x 12 pixels with 2 channels: each layer takes what the one before gives.
func TestCNNLayers(t *testing.T) {
	layers, err := CNN{
		Height: 9, Width: 12, Channels: 2, Hidden: []int{7}, Activation: Tanh, Init: HeNormal,
		Convolutions: []Conv{{Filters: 5, Pool: 2, MaxPool: true}, {Filters: 3, Kernel: 2, Valid: true}},
	}.Layers(216, 4)
	if err != nil {
		t.Fatal(err)
	}
	want := []Layer{
		Convolution{Number: 1, Image: Image{9, 12, 2}, Filters: 5, Kernel: 3, Init: HeNormal}, Tanh,
		Pool{Image: Image{9, 12, 5}, Side: 2, Max: true},
		Convolution{Number: 2, Image: Image{4, 6, 5}, Filters: 3, Kernel: 2, Valid: true, Init: HeNormal}, Tanh,
		Dense{Number: 3, In: 3 * 5 * 3, Out: 7, Init: HeNormal}, Tanh, Dense{Number: 4, In: 7, Out: 4, Init: HeNormal},
	}
	if !reflect.DeepEqual(layers, want) {
		t.Errorf("layers\n%+v, want\n%+v", layers, want)
	}
	var got []string
	for _, p := range layers[3].Parameters() {
		got = append(got, fmt.Sprintf("%s %d %s %v %d %d %s %d", p.Name, p.Layer, p.Kind, p.Shape, p.FanIn, p.FanOut, p.Init,
			p.Size()))
	}
	parameters := []string{
		"layer2/weights 2 weights [3 2 2 5] 20 12 he_normal 60", "layer2/biases 2 biases [3] 20 12 zeros 3",
	}
	if !reflect.DeepEqual(got, parameters) {
		t.Errorf("parameters %q, want %q", got, parameters)
	}
	// 3 x 5 pixels of 3 filters, and for each pixel a patch of 2 x 2 x 5 numbers if the weights are per particle.
	if shared, own := layers[3].(Sized).Stored(false), layers[3].(Sized).Stored(true); shared != 45 || own != 45+300 {
		t.Errorf("a convolution stores %d numbers, and %d with weights per particle", shared, own)
	}
	if stored := layers[2].(Sized).Stored(false); stored != 4*6*5 {
		t.Errorf("a pool stores %d numbers", stored)
	}
	// Without convolutions it is an MLP.
	same, err := CNN{Height: 2, Width: 3, Hidden: []int{4}, Activation: GELU}.Layers(6, 2)
	plain, _ := MLP{Hidden: []int{4}, Activation: GELU}.Layers(6, 2)
	if err != nil || !reflect.DeepEqual(same, plain) {
		t.Errorf("without convolutions %+v, %v, want %+v", same, err, plain)
	}
}

// A normalisation stands between a convolution and its activation, and counts as a layer.
func TestNormalisedCNN(t *testing.T) {
	first, second := Image{4, 5, 2}, Image{2, 2, 3}
	want := []Layer{
		Convolution{Number: 1, Image: Image{4, 5, 1}, Filters: 2, Kernel: 3}, FilterResponse{2, first}, Threshold{3, first},
		Pool{Image: first, Side: 2},
		Convolution{Number: 4, Image: Image{2, 2, 2}, Filters: 3, Kernel: 1}, FilterResponse{5, second}, Threshold{6, second},
		Dense{Number: 7, In: 12, Out: 2},
	}
	layers, err := CNN{Height: 4, Width: 5, Activation: Tanh, Normalised: true,
		Convolutions: []Conv{{Filters: 2, Pool: 2}, {Filters: 3, Kernel: 1}}}.Layers(20, 2)
	if err != nil || !reflect.DeepEqual(layers, want) {
		t.Errorf("layers\n%+v, %v, want\n%+v", layers, err, want)
	}
}

func TestCNNErrors(t *testing.T) {
	conv := func(c ...Conv) CNN { return CNN{Height: 4, Width: 6, Convolutions: c} }
	for _, c := range []struct {
		network         CNN
		inputs, outputs int
		says            []string
	}{
		{CNN{}, 24, 1, []string{"0 x 0 pixels", "set Height and Width"}},
		{CNN{Height: 4, Width: -6}, 24, 1, []string{"4 x -6 pixels", "set Height and Width"}},
		{CNN{Height: 4, Width: 6, Channels: -1}, 24, 1, []string{"-1 channels"}},
		{CNN{Height: 4, Width: 6}, 25, 1, []string{"takes 24 features, but the data has 25", "set Height"}},
		{CNN{Height: 4, Width: 6, Channels: 3}, 24, 1, []string{"takes 72 features, but the data has 24"}},
		{CNN{Height: 3, Width: 1099511640121, Channels: 5766634461275143689}, 3, 1, // in 64 bits their product is 3
			[]string{"takes 19", "but the data has 3"}},
		{conv(Conv{}), 24, 1, []string{"convolution 1 has 0 filters", "at least 1"}},
		{conv(Conv{Filters: 2}, Conv{Filters: -2}), 24, 1, []string{"convolution 2 has -2 filters"}},
		{conv(Conv{Filters: 2, Kernel: -3}), 24, 1, []string{"kernel of side -3", "at least 1"}},
		{conv(Conv{Filters: 2, Kernel: 5, Valid: true}), 24, 1,
			[]string{"5 x 5 pixels, larger than its images of 4 x 6", "smaller Kernel"}},
		{conv(Conv{Filters: 2, Pool: 2}, Conv{Filters: 2, Valid: true}), 24, 1,
			[]string{"convolution 2", "3 x 3 pixels, larger than its images of 2 x 3", "fewer poolings"}},
		{conv(Conv{Filters: 2, Pool: -2}), 24, 1, []string{"squares of side -2", "0 for the whole"}},
		{conv(Conv{Filters: 2, Valid: true, Pool: 3}), 24, 1,
			[]string{"side 3 in images of 2 x 4 pixels", "fewer poolings"}},
		{CNN{Height: 4, Width: 6, Hidden: []int{3, 0}}, 24, 1, []string{"hidden layer 2 has width 0"}},
		{conv(Conv{Filters: 2}), 24, 0, []string{"to 0 outputs"}},
		{CNN{Height: 4, Width: 6, Activation: "rellu"}, 24, 1, []string{`"rellu": use relu`}},
		{CNN{Height: 4, Width: 6, Init: "orthogonal"}, 24, 1, []string{`"orthogonal": use lecun_normal`}},
	} {
		_, err := c.network.Layers(c.inputs, c.outputs)
		if err == nil {
			t.Errorf("%+v, %d, %d: no error", c.network, c.inputs, c.outputs)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%+v, %d, %d: error %q does not say %q", c.network, c.inputs, c.outputs, err, says)
			}
		}
	}
}
