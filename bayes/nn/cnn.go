package nn

import (
	"cmp"
	"fmt"
)

// CNN is a convolutional network for images: the Convolutions, each followed by its normalisation if there is one, the
// activation and its pooling, then Dense layers of the Hidden widths, each followed by the activation, and a last Dense
// layer to the output. Layers count from 1, convolutions first; poolings do not count, normalisations do. Without
// them the output layer is number len(Convolutions)+len(Hidden)+1.
//
// A row of the data is an image, row of pixels by row of pixels from the top left, and the channels of a pixel are
// neighbours: feature (y*Width + x)*Channels + channel. So are images of package dataset/mnist, with one channel.
// Images whose channels follow each other as a whole, as in CIFAR's files, must be rearranged.
type CNN struct {
	Height       int    `json:"height"` // of an image, in pixels
	Width        int    `json:"width"`
	Channels     int    `json:"channels,omitempty"` // numbers of a pixel; default 1
	Convolutions []Conv `json:"convolutions"`       // may be empty: an MLP

	// Normalised: each convolution is followed by FilterResponse and Threshold, which are layers too, in place of the
	// Activation.
	Normalised bool `json:"normalised,omitempty"`

	Hidden     []int       `json:"hidden"`         // may be empty
	Activation Activation  `json:"activation"`     // default ReLU
	Init       Initialiser `json:"init,omitempty"` // of the weights; default LecunNormal
}

// Conv is a convolution of a CNN and the pooling after it.
type Conv struct {
	Filters int  `json:"filters"`
	Kernel  int  `json:"kernel,omitempty"` // side of the kernels, in pixels; default 3
	Valid   bool `json:"valid,omitempty"`  // kernels stay inside the image: see Convolution
	Pool    int  `json:"pool,omitempty"`   // side of the squares that are pooled; default 1: no pooling
	MaxPool bool `json:"max_pool,omitempty"`
}

var _ Network = CNN{}

// Layers implements Network.
func (n CNN) Layers(inputs, outputs int) ([]Layer, error) {
	image := Image{n.Height, n.Width, cmp.Or(n.Channels, 1)}
	if err := image.check("a CNN", inputs); err != nil {
		return nil, err
	}
	var layers []Layer
	number := 0
	for _, c := range n.Convolutions {
		convolution := Convolution{Number: number + 1, Image: image, Filters: c.Filters, Kernel: cmp.Or(c.Kernel, 3),
			Valid: c.Valid, Init: n.Init}
		if err := convolution.check(); err != nil {
			return nil, err
		}
		image = convolution.result()
		number++
		layers = append(layers, convolution)
		if n.Normalised {
			layers = append(layers, FilterResponse{number + 1, image}, Threshold{number + 2, image})
			number += 2
		} else {
			layers = append(layers, n.Activation)
		}
		if c.Pool == 0 || c.Pool == 1 {
			continue
		}
		pool := Pool{Image: image, Side: c.Pool, Max: c.MaxPool}
		if err := pool.check(); err != nil {
			return nil, err
		}
		layers = append(layers, pool)
		image = pool.result()
	}
	dense, err := MLP{Hidden: n.Hidden, Activation: n.Activation, Init: n.Init}.Layers(image.size(), outputs)
	if err != nil {
		return nil, err
	}
	for _, layer := range dense {
		if d, ok := layer.(Dense); ok {
			d.Number += number
			layer = d
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// Image is the size of images: in pixels, and in numbers of a pixel.
type Image struct{ Height, Width, Channels int }

// size is the count of an image's numbers.
func (i Image) size() int { return i.Height * i.Width * i.Channels }

// check is an error unless the data's features are such images.
func (i Image) check(network string, inputs int) error {
	if i.Height < 1 || i.Width < 1 || i.Channels < 1 {
		return fmt.Errorf("nn: %s for images of %d x %d pixels with %d channels: set Height and Width, and Channels if "+
			"there are several, to at least 1", network, i.Height, i.Width, i.Channels)
	}
	if size := float64(i.Height) * float64(i.Width) * float64(i.Channels); size != float64(inputs) { // no overflow
		return fmt.Errorf("nn: %s for images of %d x %d pixels with %d channels takes %.0f features, but the data has %d: "+
			"set Height, Width and Channels to those of the images, whose product is the number of features", network,
			i.Height, i.Width, i.Channels, size, inputs)
	}
	return nil
}
