package dataset

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Pixels are the features of N pictures, [N, d], kept as bytes, an eighth of the memory of a mat.Dense: the byte b is
// the number b/255, from 0 to 1. Samplers put the bytes on the device, where a mini-batch becomes floats. All features
// have one scale already, so that a model never standardises them.
//
// A subset of rows, such as a part of a split, shares the bytes.
type Pixels struct {
	bytes []byte // of all pictures, [., d]
	width int
	rows  []int // of the pictures; nil: all
}

var _ mat.Matrix = (*Pixels)(nil)

// NewPixels are pictures of the given number of bytes each, one after another. The bytes are not copied. It panics if
// they are no whole pictures, as mat.NewDense does.
func NewPixels(bytes []byte, width int) *Pixels {
	if width < 1 || len(bytes)%width != 0 {
		panic(fmt.Sprintf("dataset: %d bytes are no whole pictures of %d each", len(bytes), width))
	}
	return &Pixels{bytes: bytes, width: width}
}

// Dims is the number of pictures N and of bytes in each.
func (p *Pixels) Dims() (pictures, width int) {
	if p.rows != nil {
		return len(p.rows), p.width
	}
	return len(p.bytes) / max(1, p.width), p.width
}

// Bytes is picture i, [d]; it must not be changed.
func (p *Pixels) Bytes(i int) []byte {
	if p.rows != nil {
		i = p.rows[i]
	}
	return p.bytes[i*p.width : (i+1)*p.width : (i+1)*p.width]
}

// At implements mat.Matrix: byte j of picture i, divided by 255.
func (p *Pixels) At(i, j int) float64 { return float64(p.Bytes(i)[j]) / 255 }

// T implements mat.Matrix.
func (p *Pixels) T() mat.Matrix { return mat.Transpose{Matrix: p} }

// subset are some of the pictures, in the given order.
func (p *Pixels) subset(rows []int) *Pixels {
	some := make([]int, len(rows))
	for k, i := range rows {
		some[k] = i
		if p.rows != nil {
			some[k] = p.rows[i]
		}
	}
	return &Pixels{p.bytes, p.width, some}
}
