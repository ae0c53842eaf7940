package nn

import (
	"cmp"
	"fmt"
)

// LeNet5 is the network of LeCun, Bottou, Bengio and Haffner (1998) for images, as it is used today: convolutions with
// 6 and 16 kernels of 5 x 5, the first with padding, each followed by tanh and the average of squares of 2 x 2, then
// dense layers of 120 and 84. For images of 28 x 28 with one channel and ten classes it has 61 706 parameters.
func LeNet5(height, width, channels int) CNN {
	return CNN{
		Height: height, Width: width, Channels: channels, Activation: Tanh, Hidden: []int{120, 84},
		Convolutions: []Conv{{Filters: 6, Kernel: 5, Pool: 2}, {Filters: 16, Kernel: 5, Valid: true, Pool: 2}},
	}
}

// ResNet20 is the residual network with 20 layers for small images (He, Zhang, Ren and Sun 2016, section 4.2): a
// convolution of 16 kernels of 3 x 3, three stages of three blocks with 16, 32 and 64 kernels, of which the second and
// the third halve the images' sides, the average over what is left, and a dense layer. A block is two convolutions and
// their input, added up.
//
// Each convolution is followed by FilterResponse and, but for the last of a block before the sum, each by Threshold;
// where the width changes, a convolution of 1 x 1 maps the input (as Izmailov, Vikram, Hoffman and Wilson 2021 have it,
// with swish there). He and others normalise by mini-batches, by which a row's density depends on the other rows: no
// likelihood is then a product over rows.
//
// Convolutions, normalisations and thresholds count as layers from 1, a block's shortcut after its other layers; layer
// 1 is the first convolution.
type ResNet20 struct {
	Height   int         `json:"height"` // of an image, in pixels
	Width    int         `json:"width"`
	Channels int         `json:"channels,omitempty"` // numbers of a pixel; default 1
	Init     Initialiser `json:"init,omitempty"`     // of all weights but the scales; default HeNormal
}

var _ Network = ResNet20{}

// Layers implements Network.
func (n ResNet20) Layers(inputs, outputs int) ([]Layer, error) {
	b := residualBuilder{Image: Image{n.Height, n.Width, cmp.Or(n.Channels, 1)}, init: cmp.Or(n.Init, HeNormal)}
	if err := b.check("a ResNet20", inputs); err != nil {
		return nil, err
	}
	if err := b.init.check(); err != nil {
		return nil, err
	}
	if outputs < 1 {
		return nil, fmt.Errorf("nn: a ResNet20 to %d outputs: it must have at least 1", outputs)
	}
	layers := append(b.normalised(16, 3, 1), b.activation())
	for stage, filters := range []int{16, 32, 64} {
		for block := range 3 {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			layers = append(layers, b.block(filters, stride), b.activation())
		}
	}
	layers = append(layers, Pool{Image: b.Image})
	return append(layers, Dense{Number: b.number + 1, In: b.Channels, Out: outputs, Init: b.init}), nil
}

// residualBuilder counts layers, and knows the size of the images that the last of them gives.
type residualBuilder struct {
	number int
	Image
	init Initialiser
}

// normalised is a convolution and the normalisation after it.
func (b *residualBuilder) normalised(filters, kernel, stride int) []Layer {
	convolution := Convolution{Number: b.number + 1, Image: b.Image, Filters: filters, Kernel: kernel, Stride: stride,
		Init: b.init}
	b.number, b.Image = b.number+2, convolution.result()
	return []Layer{convolution, FilterResponse{b.number, b.Image}}
}

// activation is the Threshold that follows a normalisation, which counts as a layer.
func (b *residualBuilder) activation() Layer {
	b.number++
	return Threshold{b.number, b.Image}
}

// block is the sum of two convolutions and their input.
func (b *residualBuilder) block(filters, stride int) Layer {
	before := *b
	layers := append(b.normalised(filters, 3, stride), b.activation())
	block := Residual{Layers: append(layers, b.normalised(filters, 3, 1)...)}
	if before.Channels != filters || stride > 1 {
		before.number = b.number
		block.Shortcut = before.normalised(filters, 1, stride)
		b.number = before.number
	}
	return block
}
