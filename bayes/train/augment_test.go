package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Each picture is what a loop makes of it for one flip and one shift, all of these occur, about equally often, and the
// same stream gives the same pictures. Bytes and floats are moved alike.
func TestAugment(t *testing.T) {
	const rows, height, width, channels = 400, 3, 4, 2
	x := make([]float64, rows*height*width*channels)
	for i := range x {
		x[i] = float64(1 + i%250)
	}
	for _, a := range []Augment{{height, width, channels, true, 1}, {height, width, channels, true, 0},
		{height, width, channels, false, 2}, {Height: height, Width: width, Channels: channels}} {
		apply := func(dtype compute.DType, seed uint64) []float64 {
			run := computetest.Compile(t, computetest.Go(t), func(g *Graph, in []*Node) []*Node {
				moved := a.Apply(ConvertDType(Reshape(in[0], rows, -1), dtype), random.New(g, seed))
				return []*Node{ConvertDType(moved, dtypes.Float64)}
			})
			return run(x)[0]
		}
		got := apply(dtypes.Float32, 1)
		if !slices.Equal(got, apply(dtypes.Uint8, 1)) {
			t.Errorf("%+v: bytes are moved otherwise than floats", a)
		}
		if a.Flip && slices.Equal(got, apply(dtypes.Float32, 2)) {
			t.Errorf("%+v: two streams give the same pictures", a)
		}
		found := map[[3]int]int{}
		for n := range rows {
			for _, how := range ways(a) {
				if slices.Equal(picture(got, n, height*width*channels), a.moved(picture(x, n, height*width*channels), how)) {
					found[how]++
				}
			}
		}
		ways, total := ways(a), 0
		for _, how := range ways {
			total += found[how]
			// 400 draws: outside of five standard deviations with a probability of 6e-7 each, in 10 + 2 + 25 ways.
			p := 1 / float64(len(ways))
			if off := math.Abs(float64(found[how]) - rows*p); off > 5*math.Sqrt(rows*p*(1-p)) {
				t.Errorf("%+v: flip and shifts %v occur %d times of %d", a, how, found[how], rows)
			}
		}
		if total != rows {
			t.Errorf("%+v: %d of %d pictures are as one of the %d ways makes them", a, total, rows, len(ways))
		}
	}
}

func picture(x []float64, n, size int) []float64 { return x[n*size : (n+1)*size] }

// ways are all flips and shifts.
func ways(a Augment) (all [][3]int) {
	for flip := range 2 {
		for down := -a.Shift; down <= a.Shift; down++ {
			for right := -a.Shift; right <= a.Shift; right++ {
				if flip == 0 || a.Flip {
					all = append(all, [3]int{flip, down, right})
				}
			}
		}
	}
	return all
}

// moved is a picture, flipped or not and then moved, by loops.
func (a Augment) moved(x []float64, how [3]int) []float64 {
	to := make([]float64, len(x))
	for row := range a.Height {
		for column := range a.Width {
			r, c := row+how[1], column+how[2]
			if how[0] == 1 {
				c = a.Width - 1 - column + how[2]
			}
			if r < 0 || r >= a.Height || c < 0 || c >= a.Width {
				continue
			}
			for k := range a.Channels {
				to[(row*a.Width+column)*a.Channels+k] = x[(r*a.Width+c)*a.Channels+k]
			}
		}
	}
	return to
}

func TestAugmentCheck(t *testing.T) {
	for _, c := range []struct {
		augment Augment
		inputs  int
		want    string
	}{
		{Augment{}, 7, ""}, {Augment{Height: 2, Width: 3, Flip: true}, 6, ""},
		{Augment{Height: 2, Width: 3, Channels: 3, Shift: 1}, 18, ""},
		{Augment{Height: 2, Width: 3, Flip: true}, 12, "which have 6 features, but the data has 12"},
		{Augment{Flip: true}, 12, "pictures of 0 x 0 pixels"},
		{Augment{Height: -2, Width: -3, Flip: true}, 6, "pictures of -2 x -3 pixels"},
		{Augment{Height: 2, Width: 3, Shift: 2}, 6, "Shift is 2: it must be at least 0 and less than the sides, 2 and 3"},
		{Augment{Height: 2, Width: 3, Shift: -1}, 6, "Shift is -1"},
	} {
		err := c.augment.Check(c.inputs)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v for %d features: %v, want %q", c.augment, c.inputs, err, c.want)
		}
	}
}
