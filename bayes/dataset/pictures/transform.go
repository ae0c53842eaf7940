package pictures

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gobnn/bayes/dataset"
)

// Grey makes one channel of red, green and blue, .299 red + .587 green + .114 blue (ITU-R BT.601), rounded to a byte.
// The rows share nothing with d's. It is an error if d's features are no bytes named as those of pictures in colour.
func Grey(d *dataset.Dataset) (*dataset.Dataset, error) {
	x, ok := d.X.(*dataset.Pixels)
	if !ok {
		return nil, fmt.Errorf("pictures: %s has features of type %T: Grey needs *dataset.Pixels", d.Name, d.X)
	}
	var pixels []string
	for k, name := range d.Features {
		pixel, channel := name, [...]string{"red", "green", "blue"}[k%colours]
		if i := strings.LastIndex(name, ","); i >= 0 && name[i+1:] == channel {
			pixel = name[:i]
		}
		switch {
		case pixel == name:
			return nil, fmt.Errorf("pictures: %s: feature %d is %q: Grey needs pictures in colour, where its name ends "+
				"in \",%s\"", d.Name, k, name, channel)
		case k%colours == 0:
			pixels = append(pixels, pixel)
		}
	}
	n, width := x.Dims()
	if width != colours*len(pixels) {
		return nil, fmt.Errorf("pictures: %s has %d features and %d names of features: Grey needs three names a pixel",
			d.Name, width, len(d.Features))
	}
	grey := make([]byte, 0, n*len(pixels))
	for i := range n {
		for pixel := range slices.Chunk(x.Bytes(i), colours) {
			sum := 299*int(pixel[0]) + 587*int(pixel[1]) + 114*int(pixel[2])
			grey = append(grey, byte((sum+500)/1000))
		}
	}
	out := changed(d, " in grey", grey, len(pixels))
	out.Features = pixels
	return out, nil
}

// changed is d with other pictures.
func changed(d *dataset.Dataset, how string, pixels []byte, width int) *dataset.Dataset {
	out := *d
	out.X = dataset.NewPixels(pixels, width)
	out.Name += how
	if out.Title != "" {
		out.Title += how
	}
	out.Features, out.Classes, out.Y = slices.Clone(d.Features), slices.Clone(d.Classes), slices.Clone(d.Y)
	return &out
}

// Rotated turns each picture about its centre, ((height-1)/2, (width-1)/2), by the given angle or by minus it, each
// with probability 1/2. The sign is a function of the seed and of the row's number in the whole table (see
// [dataset.Dataset.OriginalRow]), so that a subset's pictures are turned as those of the whole. New pixels are bilinear
// in the four nearest old ones, with zeros around the picture, and rounded to a byte.
//
// It is the corruption "rotate" of MNIST-C (Mu and Gilmer 2019), whose severity 2 is .4 rad. That data set's own signs
// are not known, so its pictures are those of Rotated(mnist, 28, 28, .4, seed) up to the signs.
//
// It is an error if d's features are no bytes of whole pictures of that size.
func Rotated(d *dataset.Dataset, height, width int, radians float64, seed uint64) (*dataset.Dataset, error) {
	x, ok := d.X.(*dataset.Pixels)
	if !ok {
		return nil, fmt.Errorf("pictures: %s has features of type %T: Rotated needs *dataset.Pixels", d.Name, d.X)
	}
	n, bytes := x.Dims()
	if height < 1 || width < 1 || bytes%(height*width) != 0 {
		return nil, fmt.Errorf("pictures: %s has %d features: they are no whole channels of %d x %d pixels: give the "+
			"pictures' own height and width", d.Name, bytes, height, width)
	}
	if math.IsNaN(radians) || math.IsInf(radians, 0) {
		return nil, fmt.Errorf("pictures: cannot rotate by %v: give a finite angle in radians", radians)
	}
	channels := bytes / (height * width)
	turns := [2][]bilinear{rotation(height, width, radians), rotation(height, width, -radians)}
	turned := make([]byte, 0, n*bytes)
	for i := range n {
		picture := x.Bytes(i)
		for _, pixel := range turns[sign(seed, d.OriginalRow(i))] {
			for channel := range channels {
				v := 0.
				for k, weight := range pixel.weights {
					v += weight * float64(picture[pixel.from[k]*channels+channel])
				}
				turned = append(turned, byte(v+.5))
			}
		}
	}
	return changed(d, fmt.Sprintf(" rotated by %v", radians), turned, bytes), nil
}

// sign is 0 or 1, each with probability 1/2: a function of the seed and the row.
func sign(seed uint64, row int) uint64 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(row))
	copy(key[16:], "rotated pictures")
	return rand.NewChaCha8(key).Uint64() & 1
}

// bilinear is a new pixel: a weighted sum of four old ones. One outside the picture has the weight 0.
type bilinear struct {
	from    [4]int
	weights [4]float64
}

// rotation gives the new pixels, [height*width]. The one at (x, y) from the centre is taken from
// (x cos - y sin, x sin + y cos), where y points down.
func rotation(height, width int, radians float64) []bilinear {
	sin, cos := math.Sincos(radians)
	middleX, middleY := float64(width-1)/2, float64(height-1)/2
	pixels := make([]bilinear, 0, height*width)
	for i := range height * width {
		x, y := float64(i%width)-middleX, float64(i/width)-middleY
		fromX, fromY := x*cos-y*sin+middleX, x*sin+y*cos+middleY
		left, above := math.Floor(fromX), math.Floor(fromY)
		right, below := fromX-left, fromY-above
		var p bilinear
		for k := range p.from {
			column, row := int(left)+k%2, int(above)+k/2
			if column < 0 || column >= width || row < 0 || row >= height {
				continue
			}
			p.from[k] = row*width + column
			p.weights[k] = []float64{1 - right, right}[k%2] * []float64{1 - below, below}[k/2]
		}
		pixels = append(pixels, p)
	}
	return pixels
}
