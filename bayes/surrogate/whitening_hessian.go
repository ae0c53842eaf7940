package surrogate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file evaluates the Hessian of -log p for a whitening, by differences of gradients in float64: products with it,
// and the whole of it.

// difference is the step of the differences of gradients in a coordinate, relative to 1 + |c|: small compared with any
// scale of a nonlinearity, large compared with rounding in float64.
const difference = 1e-7

// about is the gradient of log p at c, [D], and H v for vectors v, [n, D] flat: (grad U(c + e v) - grad U(c)) / e,
// where e makes the largest coordinate of e v equal to `difference`. If the gradient is not given, it is evaluated with
// the others.
func (p *places) about(c, gradient, v []float64) (at, h []float64, err error) {
	d, at := p.dim, gradient
	if gradient == nil {
		v = slices.Concat(make([]float64, d), v)
	}
	n := len(v) / d
	points, steps := make([]float64, n*d), make([]float64, n)
	for i := range n {
		copy(points[i*d:], c)
		of := v[i*d : (i+1)*d]
		largest := 0.0
		for k, x := range of {
			largest = math.Max(largest, math.Abs(x)/(1+math.Abs(c[k])))
		}
		if largest > 0 {
			steps[i] = difference / largest
			floats.AddScaled(points[i*d:(i+1)*d], steps[i], of)
		}
	}
	_, moved, err := p.gradients(points)
	if err != nil {
		return nil, nil, err
	}
	if at == nil {
		at = slices.Clone(moved.RawRowView(0))
	}
	for i := range n {
		row := moved.RawRowView(i)
		floats.Sub(row, at)
		if steps[i] > 0 {
			floats.Scale(-1/steps[i], row)
		}
	}
	h = moved.RawMatrix().Data
	if gradient == nil {
		h = h[d:]
	}
	if slices.ContainsFunc(h, func(x float64) bool { return !finite(x) }) {
		return nil, nil, fmt.Errorf("%w: numbers of the Hessian there are not finite", errNoMode)
	}
	return at, h, nil
}

// hessian returns the Hessian of -log p at c, symmetric. gradient is that of log p there.
func (p *places) hessian(c, gradient []float64) (*mat.SymDense, error) {
	d := p.dim
	unit := make([]float64, d*d)
	for k := range d {
		unit[k*d+k] = 1
	}
	_, h, err := p.about(c, gradient, unit)
	if err != nil {
		return nil, err
	}
	hessian := mat.NewSymDense(d, nil)
	for i := range d {
		for k := range i + 1 {
			hessian.SetSym(i, k, (h[i*d+k]+h[k*d+i])/2)
		}
	}
	return hessian, nil
}
