package train

import (
	"fmt"

	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Augment changes the pictures of each training batch at random, as it is customary for small colour pictures (He,
// Zhang, Ren and Sun 2016, section 4.2): each is flipped with probability 1/2, and moved by up to Shift pixels along
// both axes, with zeros where it has moved away. What happens to a row depends on the seed and the step alone.
// Validation and prediction see the pictures as they are. The likelihood of changed pictures is not that of the data:
// what is trained so is no posterior.
//
// The zero value changes nothing. A picture's features are in the order of nn.CNN.
type Augment struct {
	Height   int  `json:"height"` // of a picture, in pixels
	Width    int  `json:"width"`
	Channels int  `json:"channels,omitempty"` // numbers of a pixel; default 1
	Flip     bool `json:"flip,omitempty"`     // left to right
	Shift    int  `json:"shift,omitempty"`    // pixels
}

// Check returns an error unless a picture has as many features as the data, [N, inputs].
func (a Augment) Check(inputs int) error {
	if a == (Augment{}) {
		return nil
	}
	if size := a.Height * a.Width * max(a.Channels, 1); size != inputs || a.Height < 0 || a.Width < 0 || a.Channels < 0 {
		return fmt.Errorf("Training.Augment is for pictures of %d x %d pixels with %d channels, which have %d features, but "+
			"the data has %d: set Height, Width and Channels to those of the pictures", a.Height, a.Width, max(a.Channels, 1),
			size, inputs)
	}
	if a.Shift < 0 || a.Shift >= min(a.Height, a.Width) {
		return fmt.Errorf("Training.Augment.Shift is %d: it must be at least 0 and less than the sides, %d and %d", a.Shift,
			a.Height, a.Width)
	}
	return nil
}

// Apply changes pictures x, [B, d], bytes or floats. It builds graph, and panics as GoMLX does.
func (a Augment) Apply(x *graph.Node, rng random.Stream) *graph.Node {
	if !a.Flip && a.Shift == 0 {
		return x
	}
	g, rows, channels := x.Graph(), x.Shape().Dim(0), max(a.Channels, 1)
	whole := func(axis int) *Node { // the number along an axis of [B, H, W]
		return Iota(g, shapes.Make(dtypes.Int32, rows, a.Height, a.Width), axis)
	}
	perRow := func(x *Node) *Node { return BroadcastToDims(Reshape(x, rows, 1, 1), rows, a.Height, a.Width) }
	shift := func(axis string) *Node { // from -Shift to Shift
		u := rng.Named(axis).Uniform(dtypes.Float32, rows)
		return AddScalar(ConvertDType(MulScalar(u, float64(2*a.Shift+1)), dtypes.Int32), float64(-a.Shift))
	}
	row, column := whole(1), whole(2) // where a pixel comes from
	if a.Flip {
		flipped := LessThan(rng.Named("flip").Uniform(dtypes.Float32, rows), Scalar(g, dtypes.Float32, .5))
		column = Where(perRow(flipped), AddScalar(Neg(column), float64(a.Width-1)), column)
	}
	if a.Shift > 0 {
		row, column = Add(row, perRow(shift("rows"))), Add(column, perRow(shift("columns")))
	}
	zero := Scalar(g, dtypes.Int32, 0)
	inside := And(And(GreaterOrEqual(row, zero), LessThan(row, Scalar(g, dtypes.Int32, a.Height))),
		And(GreaterOrEqual(column, zero), LessThan(column, Scalar(g, dtypes.Int32, a.Width))))
	from := Add(MulScalar(Add(MulScalar(whole(0), float64(a.Height)), row), float64(a.Width)), column)
	from = Where(inside, from, ZerosLike(from))
	pixels := Gather(Reshape(x, -1, channels), Reshape(from, -1, 1)) // [B H W, channels]
	kept := BroadcastToDims(Reshape(inside, -1, 1), pixels.Shape().Dimensions...)
	return Reshape(Where(kept, pixels, ZerosLike(pixels)), x.Shape().Dimensions...)
}
