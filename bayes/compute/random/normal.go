package random

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Normal draws standard normals. float32 is the normal distribution's quantile at one uniform, with a relative error of
// at most 4e-7, and reaches 5.3 standard deviations; float64 is the method of Box and Muller (1958) at two uniforms of
// 32 bits, and reaches 6.7.
func (s Stream) Normal(dtype dtypes.DType, dims ...int) *graph.Node {
	return s.stored(dims, func(s Stream, dims []int) *Node { return s.normal(dtype, dims) })
}

func (s Stream) normal(dtype dtypes.DType, dims []int) *Node {
	x0, x1 := s.words(dims)
	if dtype == dtypes.Float64 {
		unit := func(x *Node) *Node { return MulScalar(AddScalar(ConvertDType(x, dtype), 0.5), 0x1p-32) }
		radius := Sqrt(MulScalar(Log(unit(x0)), -2))
		return compute.Materialise(Mul(radius, Cos(MulScalar(unit(x1), 2*math.Pi))), s.key0)
	}
	return quantile(uniform23(x0))
}

// quantile is the standard normal's quantile at u of uniform23. Let x = 2u - 1 and w = -log(1 - x^2), a variable that
// Giles (2010, "Approximating the erfinv function") proposes. Then the quantile over x is a smooth function of w. Here
// it is one quotient of two polynomials for all w, fitted to the least relative error, 1.3e-8 before rounding. All of
// their coefficients are positive, so that the sums lose no digits. The last operation is a division, which the
// compiler does not repeat in each loop that uses its result (see compute.Materialise).
func quantile(u *Node) *Node {
	x := SubScalar(MulScalar(u, 2), 1) // exact
	w := Neg(logOfPositive(Mul(OneMinus(x), OnePlus(x))))
	numerator := polynomial(w, 1.25331415, 0.433410447, 0.0842448662, 0.0109785748, 0.000910369021, 3.44347253e-05)
	denominator := polynomial(w, 1, 0.0840124776, 0.0321896204, 0.00187509716, 0.000179672818, 1.29359025e-06)
	return Div(Mul(x, numerator), denominator)
}

// logOfPositive is the natural logarithm of y, float32 and normal: the exponent's, plus a polynomial in the mantissa m,
// in [1, 2), with an error of 2e-7 before rounding. That error is absolute: next to y = 1, where the logarithm is
// nearly 0, its last digits are lost, which the quantile, smooth in it, does not feel. The compiler's own logarithm
// keeps them, and has zeros, infinities and NaN to tell apart, which takes twice the time.
func logOfPositive(y *Node) *Node {
	g := y.Graph()
	bits := Bitcast(y, dtypes.Uint32)
	exponent := ConvertDType(Bitcast(BitwiseShiftRightLogical(bits, word(g, 23)), dtypes.Int32), dtypes.Float32)
	m := Bitcast(BitwiseOr(BitwiseAnd(bits, word(g, 0x7fffff)), word(g, 0x3f800000)), dtypes.Float32)
	logOfMantissa := polynomial(SubScalar(m, 1.5), 0.405465292, 0.666665756, -0.222245402, 0.0988048904, -0.0489289895,
		0.0258622139, -0.0174141992, 0.0104841013)
	return Add(MulScalar(SubScalar(exponent, 127), math.Ln2), logOfMantissa)
}

// polynomial is the sum of coefficient k times the k-th power of x.
func polynomial(x *Node, coefficients ...float64) *Node {
	last := len(coefficients) - 1
	p := ConstAs(x, coefficients[last])
	for k := last - 1; k >= 0; k-- {
		p = AddScalar(Mul(p, x), coefficients[k])
	}
	return p
}
