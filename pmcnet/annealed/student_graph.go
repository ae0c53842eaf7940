package annealed

import (
	"math"
	"slices"

	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file has the density of a fitted mixture in a graph, for moves that follow its gradient.

// The names of a mixture's numbers in a graph. The squared distance to component m is |L_m^-1 (x - mu_m)|^2. All
// products L^-1 x are computed as one product of x and [D, M D].
const (
	centerName   = "mixture/center"   // about which all is, for the sake of rounding, [1, D]
	productsName = "mixture/products" // the L^-1, transposed and side by side, [D, M D]
	offsetName   = "mixture/offset"   // these times the means, less the centre, [1, M D]
	constantName = "mixture/constant" // log share and log normalising constant, [1, M]
	exponentName = "mixture/exponent" // (nu + D)/2, [1, M]
	dofName      = "mixture/dof"      // nu, [1, M]
)

// data returns the numbers of a mixture, by these names.
func (m mixture) data(dtype compute.DType) map[string]*tensors.Tensor {
	d := len(m[0].mean)
	center := make([]float64, d)
	for _, s := range m {
		floats.AddScaled(center, s.share, s.mean)
	}
	products := mat.NewDense(d, len(m)*d, nil)
	var offset, constant, exponent, dof []float64
	for k, s := range m {
		mean := slices.Clone(s.mean)
		floats.Sub(mean, center)
		inverse := s.whitener()
		for e := range d {
			row := inverse.RawRowView(e)
			products.SetCol(k*d+e, row)
			offset = append(offset, floats.Dot(row, mean))
		}
		constant = append(constant, math.Log(s.share)+s.logConstant())
		exponent, dof = append(exponent, (s.dof+float64(d))/2), append(dof, s.dof)
	}
	return map[string]*tensors.Tensor{
		centerName:   compute.Floats(dtype, center, 1, d),
		productsName: compute.Floats(dtype, products.RawMatrix().Data, d, len(m)*d),
		offsetName:   compute.Floats(dtype, offset, 1, len(m)*d),
		constantName: compute.Floats(dtype, constant, 1, len(m)), exponentName: compute.Floats(dtype, exponent, 1, len(m)),
		dofName: compute.Floats(dtype, dof, 1, len(m)),
	}
}

// whitener is L^-1, [D, D].
func (s student) whitener() *mat.Dense {
	d := len(s.mean)
	inverse := mat.NewDense(d, d, nil)
	for i := range d {
		inverse.Set(i, i, 1)
	}
	if err := inverse.Solve(s.lower, inverse); err != nil {
		inverse.Scale(math.NaN(), inverse) // a triangular matrix with a zero on its diagonal, which lowerOf refuses
	}
	return inverse
}

// logDensityOf is the log-density at x, [J, D], of the mixture of that many components that data has: [J].
func logDensityOf(data compute.Nodes, x *Node, components int) *Node {
	j, d := x.Shape().Dim(0), x.Shape().Dim(1)
	x = Sub(x, data[centerName])
	z := Sub(Einsum("jd,de->je", x, data[productsName]), data[offsetName])
	squares := Reshape(compute.RowSums(Square(Reshape(z, j*components, d))), j, components)
	each := Sub(data[constantName], Mul(data[exponentName], Log1p(Div(squares, data[dofName]))))
	return Reshape(compute.LogSumExp(each, 1), j)
}
