package nn

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/gomlx/core/graph"
)

// Layers of images that do not fit together, or into their images, are errors that name the numbers and the cure,
// whether the images are shared or each particle's own. Images of another size would be cut into images of several
// rows.
func TestImagesErrors(t *testing.T) {
	conv := func(change func(l *Convolution)) Layer {
		l := Convolution{Number: 2, Image: Image{4, 6, 2}, Filters: 3, Kernel: 3}
		change(&l)
		return l
	}
	pool := func(side int) Layer { return Pool{Image: Image{4, 6, 2}, Side: side} }
	const width = 48 // of the input
	for _, c := range []struct {
		layer Layer
		says  []string
	}{
		{conv(func(l *Convolution) { l.Stride = -1 }), []string{"convolution 2", "stride of -1", "default stride of 1"}},
		{conv(func(l *Convolution) { l.Kernel = 0 }), []string{"a kernel of side 0", "at least 1"}},
		{conv(func(l *Convolution) { l.Filters = -3 }), []string{"-3 filters", "at least 1"}},
		{conv(func(l *Convolution) { l.Kernel, l.Valid = 5, true }),
			[]string{"convolution 2", "5 x 5 pixels, larger than its images of 4 x 6", "smaller Kernel"}},
		{conv(func(l *Convolution) { l.Kernel, l.Stride, l.Valid = 5, 2, true }), []string{"larger than its images"}},
		{conv(func(l *Convolution) { l.Channels = 1 }),
			[]string{"4 x 6 pixels with 1 channels is given 48 numbers", "set its Height, Width and Channels"}},
		{conv(func(l *Convolution) { l.Channels = 0 }), []string{"with 0 channels"}},
		{conv(func(l *Convolution) { l.Height = 2 }), []string{"2 x 6 pixels with 2 channels is given 48 numbers"}},
		{conv(func(l *Convolution) { l.Height, l.Width = -4, -6 }), []string{"-4 x -6 pixels"}},
		{pool(5), []string{"side 5 in images of 4 x 6 pixels", "fit into them"}},
		{pool(-1), []string{"side -1", "0 for the whole image"}},
		{Pool{Image: Image{4, 3, 2}}, []string{"4 x 3 pixels with 2 channels is given 48 numbers"}},
		{FilterResponse{Number: 1, Image: Image{4, 3, 2}}, []string{"4 x 3 pixels with 2 channels", "48 numbers"}},
		{Threshold{Number: 1, Image: Image{4, 3, 2}}, []string{"4 x 3 pixels with 2 channels", "48 numbers"}},
	} {
		for _, perParticle := range []bool{false, true} {
			said := ""
			computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, a []*graph.Node) []*graph.Node {
				h, params := Value{graph.Reshape(a[0], width, 2), false}, Params{}
				if perParticle {
					h = own(a[0], 2, 1, width, 1)
				}
				for _, p := range c.layer.Parameters() {
					params[p.Name] = Value{graph.Slice(a[0], graph.AxisRange(0, 1)), false}
				}
				func() {
					defer func() { said = fmt.Sprint(recover()) }()
					c.layer.Apply(params, h)
				}()
				return []*graph.Node{graph.Neg(a[0])}
			}, sines(2*width, 1))
			for _, says := range c.says {
				if !strings.Contains(said, says) {
					t.Errorf("%+v, per particle %v: %q does not say %q", c.layer, perParticle, said, says)
				}
			}
		}
	}
}
