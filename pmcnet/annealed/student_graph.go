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

// form has the sizes that fix a mixture's graph.
type form struct {
	components int // M
	rank       int // of low rank + diagonal covariances; 0: full
}

// The names of a mixture's numbers in a graph. With full covariances the squared distance to component m is |L_m^-1 (x
// - mu_m)|^2. With low rank + diagonal ones it is |(x - mu_m) / s_m|^2 - |W_m (x - mu_m)|^2 by Woodbury's identity,
// with W = C^-1 U' / s^2 and C C' = 1 + U' (U / s^2). All products L^-1 x, or W x, are computed as one product of x and
// [D, M D], or [D, M R].
const (
	centerName   = "mixture/center"   // about which all is, for the sake of rounding, [1, D]
	productsName = "mixture/products" // the L^-1, or W, transposed and side by side, [D, M D] or [D, M R]
	offsetName   = "mixture/offset"   // these times the means, less the centre, [1, M D] or [1, M R]
	meansName    = "mixture/means"    // less the centre, of low rank, [1, M, D]
	inverseSD    = "mixture/inverse"  // 1/s of low rank, [1, M, D]
	constantName = "mixture/constant" // log share and log normalising constant, [1, M]
	exponentName = "mixture/exponent" // (nu + D)/2, [1, M]
	dofName      = "mixture/dof"      // nu, [1, M]
)

// data returns the numbers of a mixture, by these names.
func (m mixture) data(f form, dtype compute.DType) map[string]*tensors.Tensor {
	d := len(m[0].mean)
	width := d
	if f.rank > 0 {
		width = f.rank
	}
	center := make([]float64, d)
	for _, s := range m {
		floats.AddScaled(center, s.share, s.mean)
	}
	products := mat.NewDense(d, len(m)*width, nil)
	var offset, means, inverse, constant, exponent, dof []float64
	for k, s := range m {
		mean := slices.Clone(s.mean)
		floats.Sub(mean, center)
		own := s.whitener(f.rank)
		for e := range width {
			row := own.RawRowView(e)
			products.SetCol(k*width+e, row)
			offset = append(offset, floats.Dot(row, mean))
		}
		if means = append(means, mean...); f.rank > 0 {
			for _, v := range s.variance {
				inverse = append(inverse, 1/math.Sqrt(v))
			}
		}
		nu := s.dof
		constant = append(constant, math.Log(s.share)+s.logConstant())
		exponent, dof = append(exponent, (nu+float64(d))/2), append(dof, nu)
	}
	data := map[string]*tensors.Tensor{
		centerName:   compute.Floats(dtype, center, 1, d),
		productsName: compute.Floats(dtype, products.RawMatrix().Data, d, len(m)*width),
		offsetName:   compute.Floats(dtype, offset, 1, len(m)*width),
		constantName: compute.Floats(dtype, constant, 1, len(m)), exponentName: compute.Floats(dtype, exponent, 1, len(m)),
		dofName: compute.Floats(dtype, dof, 1, len(m)),
	}
	if f.rank > 0 {
		data[meansName] = compute.Floats(dtype, means, 1, len(m), d)
		data[inverseSD] = compute.Floats(dtype, inverse, 1, len(m), d)
	}
	return data
}

// whitener is L^-1, [D, D], of low rank + diagonal covariances W, [R, D].
func (s student) whitener(rank int) *mat.Dense {
	d := len(s.mean)
	if rank == 0 {
		inverse := mat.NewDense(d, d, nil)
		for i := range d {
			inverse.Set(i, i, 1)
		}
		if err := inverse.Solve(s.lower, inverse); err != nil {
			inverse.Scale(math.NaN(), inverse) // a triangular matrix with a zero on its diagonal, which lowerOf refuses
		}
		return inverse
	}
	scaled := mat.DenseCopyOf(s.factor) // U / s^2, [D, R]
	for i, v := range s.variance {
		floats.Scale(1/v, scaled.RawRowView(i))
	}
	var inner mat.Dense
	inner.Mul(s.factor.T(), scaled)
	symmetric := mat.NewSymDense(rank, nil)
	for i := range rank {
		for j := range i + 1 {
			symmetric.SetSym(i, j, inner.At(i, j))
		}
		symmetric.SetSym(i, i, symmetric.At(i, i)+1)
	}
	out := mat.DenseCopyOf(scaled.T())
	if lower, ok := lowerOf(symmetric); !ok || out.Solve(lower, out) != nil {
		out.Scale(math.NaN(), out)
	}
	return out
}

// logDensity is the mixture's at x, [J, D]: [J].
func (f form) logDensity(data compute.Nodes, x *Node) *Node {
	j, d, m := x.Shape().Dim(0), x.Shape().Dim(1), f.components
	x = Sub(x, data[centerName])
	z := Sub(Einsum("jd,de->je", x, data[productsName]), data[offsetName])
	squaresOf := func(v *Node) *Node { // of each component's part of the rows: [J, M]
		return Reshape(compute.RowSums(Square(Reshape(v, j*m, v.Shape().Size()/(j*m)))), j, m)
	}
	squares := squaresOf(z)
	if f.rank > 0 {
		apart := Mul(Sub(Reshape(x, j, 1, d), data[meansName]), data[inverseSD])
		squares = MaxScalar(Sub(squaresOf(apart), squares), 0)
	}
	each := Sub(data[constantName], Mul(data[exponentName], Log1p(Div(squares, data[dofName]))))
	return Reshape(compute.LogSumExp(each, 1), j)
}
