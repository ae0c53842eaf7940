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

	// Normalisation of the convolutions' results; default none. ByFilterResponse is followed by Threshold, also a
	// layer, in place of the Activation.
	Normalisation Normalisation `json:"normalisation,omitempty"`

	Hidden     []int       `json:"hidden"`         // may be empty
	Activation Activation  `json:"activation"`     // default ReLU
	Init       Initialiser `json:"init,omitempty"` // of the weights; default LecunNormal
}

// Conv is a convolution of a CNN and the pooling after it.
type Conv struct {
	Filters int     `json:"filters"`
	Kernel  int     `json:"kernel,omitempty"`  // side of the kernels, in pixels; default 3
	Padding Padding `json:"padding,omitempty"` // at the edges; default Same
	Pool    int     `json:"pool,omitempty"`    // side of the squares that are pooled; default 1: no pooling
	Pooling Pooling `json:"pooling,omitempty"` // default Average
}

var _ Network = CNN{}

// Layers implements Network.
func (n CNN) Layers(inputs, outputs int) ([]Layer, error) {
	height, width, channels := n.Height, n.Width, cmp.Or(n.Channels, 1)
	if err := checkImages("a CNN", n.Height, n.Width, n.Channels, inputs); err != nil {
		return nil, err
	}
	if err := n.Normalisation.check(); err != nil {
		return nil, err
	}
	var layers []Layer
	number := 0
	for i, c := range n.Convolutions {
		if err := c.check(i+1, height, width); err != nil {
			return nil, err
		}
		convolution := Convolution{
			Number: number + 1, Height: height, Width: width, Channels: channels, Filters: c.Filters, Kernel: c.kernel(),
			Padding: c.Padding, Init: n.Init,
		}
		height, width = convolution.Size()
		channels = c.Filters
		number++
		layers = append(layers, convolution)
		if n.Normalisation == ByFilterResponse {
			layers = append(layers, FilterResponse{Number: number + 1, Height: height, Width: width, Channels: channels},
				Threshold{Number: number + 2, Height: height, Width: width, Channels: channels})
			number += 2
		} else {
			layers = append(layers, n.Activation)
		}
		if c.Pool <= 1 {
			continue
		}
		if c.Pool > min(height, width) {
			return nil, fmt.Errorf("nn: convolution %d pools squares of %d x %d pixels of images of %d x %d, which leaves "+
				"nothing: take a smaller Pool, or fewer poolings before it", i+1, c.Pool, c.Pool, height, width)
		}
		pool := Pool{Height: height, Width: width, Channels: channels, Side: c.Pool, Pooling: c.Pooling}
		layers = append(layers, pool)
		height, width = pool.Size()
	}
	dense, err := MLP{Hidden: n.Hidden, Activation: n.Activation, Init: n.Init}.Layers(height*width*channels, outputs)
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

// checkImages is for a network of images of a size; 0 channels are 1.
func checkImages(network string, height, width, channels, inputs int) error {
	channels = cmp.Or(channels, 1)
	if height < 1 || width < 1 || channels < 1 {
		return fmt.Errorf("nn: %s for images of %d x %d pixels with %d channels: set Height and Width, and Channels if "+
			"there are several, to at least 1", network, height, width, channels)
	}
	if product := float64(height) * float64(width) * float64(channels); product != float64(inputs) { // no overflow
		return fmt.Errorf("nn: %s for images of %d x %d pixels with %d channels takes %.0f features, but the data has %d: "+
			"set Height, Width and Channels to those of the images, whose product is the number of features", network, height,
			width, channels, product, inputs)
	}
	return nil
}

func (c Conv) kernel() int { return cmp.Or(c.Kernel, 3) }

// check is for the convolution of a number, of images of a size.
func (c Conv) check(number, height, width int) error {
	switch kernel := c.kernel(); {
	case c.Filters < 1:
		return fmt.Errorf("nn: convolution %d has %d filters: it must have at least 1", number, c.Filters)
	case kernel < 1:
		return fmt.Errorf("nn: convolution %d has a kernel of side %d: it must be at least 1, or 0 for the default of 3",
			number, kernel)
	case kernel > min(height, width):
		return kernelTooLarge(number, kernel, height, width)
	case c.Pool < 0:
		return fmt.Errorf("nn: convolution %d pools squares of side %d: it must be at least 1, or 0 for no pooling", number,
			c.Pool)
	}
	if err := c.Padding.check(); err != nil {
		return err
	}
	return c.Pooling.check()
}
