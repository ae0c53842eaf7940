package check

import (
	"math"
	"math/rand/v2"

	"gobnn/bayes/compute"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Targets are what a kernel is tested on if Options names no others: all of two coordinates, none symmetric in them or
// about its mean, since symmetry hides mistakes of sign and order, with standard deviations between 0.5 and 1.7.
func Targets() []Target {
	return []Target{
		gaussian([]float64{1, -.7}, [][]float64{{1.5}, {-.4, .6}}),
		skewed(),
		banana(),
		mixture(),
		bounded(),
		conjugate(),
	}
}

// gaussian is m + L z with standard normal z: mean is [D], factor the rows of the lower triangle L, [D][1 to D]. For
// independent coordinates a row holds zeros and the standard deviation.
func gaussian(mean []float64, factor [][]float64) Target {
	d := len(mean)
	t := Target{Name: "Gaussian", D: d}
	lower := mat.NewTriDense(d, mat.Lower, nil)
	for i, row := range factor {
		for k, v := range row {
			lower.SetTri(i, k, v)
		}
		t.Start = append(t.Start, mean[i]-2*math.Sqrt(floats.Dot(row, row)))
	}
	inverse := inverseOf(lower)
	t.Draw = func(r *rand.Rand) (x, _ []float64) {
		z := make([]float64, d)
		for i := range z {
			z[i] = r.NormFloat64()
		}
		x = times(lower, z)
		floats.Add(x, mean)
		return x, nil
	}
	t.LogDensity = func(phi, _ *Node) *Node {
		flat := mat.DenseCopyOf(inverse).RawMatrix().Data
		precision := ConvertDType(Const(phi.Graph(), compute.Floats(compute.Float64, flat, d, d)), phi.DType())
		return halfSquares(Einsum("jk,lk->jl", Sub(phi, row(phi, mean)), precision))
	}
	t.Uniform = func(x, _ []float64) []float64 {
		return normalCDF(times(inverse, floats.SubTo(make([]float64, d), x, mean)))
	}
	return t
}

// inverseOf is the inverse of a triangle without a 0 on its diagonal.
func inverseOf(lower *mat.TriDense) *mat.TriDense {
	var inverse mat.TriDense
	_ = inverse.InverseTri(lower) // a warning at most
	return &inverse
}

// skewed has two independent coordinates, one with a long tail to the right and one with a long tail to the left:
// Gumbel's distribution with location -1 and scale 0.7, and the mirror image of the one with location -0.5 and scale
// 1.2.
func skewed() Target {
	const a, b, a2, b2 = -1.0, 0.7, 0.5, 1.2
	return Target{
		Name: "skewed", D: 2, Start: []float64{2, -3},
		Draw: func(r *rand.Rand) (x, _ []float64) {
			return []float64{a - b*math.Log(r.ExpFloat64()), a2 + b2*math.Log(r.ExpFloat64())}, nil
		},
		LogDensity: func(phi, _ *Node) *Node {
			z := Mul(Sub(phi, row(phi, []float64{a, a2})), row(phi, []float64{1 / b, -1 / b2}))
			return Neg(ReduceSum(Add(z, Exp(Neg(z))), 1))
		},
		Uniform: func(x, _ []float64) []float64 {
			return []float64{math.Exp(-math.Exp(-(x[0] - a) / b)), -math.Expm1(-math.Exp((x[1] - a2) / b2))}
		},
	}
}

// banana is bent, as Rosenbrock's function is: x1 is N(0.5, 1), and x2 given x1 is N(x1^2 / 2 - 0.5, 0.6^2).
func banana() Target {
	const m, bend, down, spread = 0.5, 0.5, 0.5, 0.6
	return Target{
		Name: "banana", D: 2,
		Draw: func(r *rand.Rand) (x, _ []float64) {
			x1 := m + r.NormFloat64()
			return []float64{x1, bend*x1*x1 - down + spread*r.NormFloat64()}, nil
		},
		LogDensity: func(phi, _ *Node) *Node {
			x1, x2 := coordinate(phi, 0), coordinate(phi, 1)
			rest := DivScalar(Sub(x2, SubScalar(MulScalar(Square(x1), bend), down)), spread)
			return MulScalar(Add(Square(SubScalar(x1, m)), Square(rest)), -0.5)
		},
		Uniform: func(x, _ []float64) []float64 {
			return []float64{distuv.UnitNormal.CDF(x[0] - m), distuv.UnitNormal.CDF((x[1] - bend*x[0]*x[0] + down) / spread)}
		},
	}
}

// mixture has two modes of different weights and shapes, which overlap: 0.3 of a Gaussian at (-1.2, 0.8) with standard
// deviations (0.6, 0.9), and 0.7 of one at (1, -0.5) with standard deviations (0.9, 0.5).
func mixture() Target {
	weight := []float64{.3, .7}
	mean := [][]float64{{-1.2, .8}, {1, -.5}}
	sd := [][]float64{{.6, .9}, {.9, .5}}
	return Target{
		Name: "mixture", D: 2,
		Draw: func(r *rand.Rand) (x, _ []float64) {
			c := 0
			if r.Float64() > weight[0] {
				c = 1
			}
			return []float64{mean[c][0] + sd[c][0]*r.NormFloat64(), mean[c][1] + sd[c][1]*r.NormFloat64()}, nil
		},
		LogDensity: func(phi, _ *Node) *Node {
			var log []*Node
			for c, w := range weight {
				z := Div(Sub(phi, row(phi, mean[c])), row(phi, sd[c]))
				log = append(log, AddScalar(halfSquares(z), math.Log(w/(sd[c][0]*sd[c][1]))))
			}
			top := StopGradient(Max(log[0], log[1])) // cancels
			return Add(top, Log(Add(Exp(Sub(log[0], top)), Exp(Sub(log[1], top)))))
		},
		Uniform: func(x, _ []float64) []float64 {
			var first, second, mass float64
			for c, w := range weight {
				here := distuv.Normal{Mu: mean[c][0], Sigma: sd[c][0]}
				first += w * here.CDF(x[0])
				mass += w * here.Prob(x[0])
				second += w * here.Prob(x[0]) * distuv.Normal{Mu: mean[c][1], Sigma: sd[c][1]}.CDF(x[1])
			}
			return []float64{first, second / mass}
		},
	}
}

// bounded has log-density NaN where x1 < 0, and -Inf where x2 is outside (-1.5, 1): x1 is Gamma(3) with rate 2, and x2
// a normal between those bounds, with a jump at each.
func bounded() Target {
	const shape, rate, low, high = 3, 2, -1.5, 1.0
	from, to := distuv.UnitNormal.CDF(low), distuv.UnitNormal.CDF(high)
	gamma := distuv.Gamma{Alpha: shape, Beta: rate}
	return Target{
		Name: "bounded", D: 2,
		Draw: func(r *rand.Rand) (x, _ []float64) {
			sum := r.ExpFloat64() + r.ExpFloat64() + r.ExpFloat64()
			return []float64{sum / rate, distuv.UnitNormal.Quantile(from + (to-from)*r.Float64())}, nil
		},
		LogDensity: func(phi, _ *Node) *Node {
			x1, x2 := coordinate(phi, 0), coordinate(phi, 1)
			log := Sub(MulScalar(Log(x1), shape-1), MulScalar(x1, rate))
			log = Add(log, MulScalar(Square(x2), -0.5))
			inside := And(GreaterThan(x2, ConstAs(x2, low)), LessThan(x2, ConstAs(x2, high)))
			return compute.Only(inside, log)
		},
		Uniform: func(x, _ []float64) []float64 {
			return []float64{gamma.CDF(max(0, x[0])), (distuv.UnitNormal.CDF(x[1]) - from) / (to - from)}
		},
	}
}

// conjugate is a regression with a prior of N(0.5, 1.5^2) and N(-1, 0.8^2) and four measurements, such that no part of
// the posterior is symmetric.
func conjugate() Target {
	return regression(Linear{
		X: [][]float64{{1, .3}, {-.2, .9}, {.7, .7}, {.1, -.6}}, NoiseStdDev: 1, PriorMean: []float64{.5, -1},
		PriorStdDev: []float64{1.5, .8},
	})
}

// regression is the posterior of a linear regression in which each particle has data of its own, drawn from the prior
// predictive distribution: theta from the prior, and one y_n, [Data], for each row of l.X given theta. l.Y is not used.
func regression(l Linear) Target {
	mean, sd := l.prior()
	t := Target{Name: "conjugate", D: len(mean), Data: len(l.X)}
	l.Y = make([]float64, len(l.X))
	_, covariance, _ := l.Posterior() // whatever Y is
	var factor mat.Cholesky
	var lower mat.TriDense
	factor.Factorize(covariance)
	factor.LTo(&lower)
	inverse := inverseOf(&lower)
	for d := range mean {
		t.Start = append(t.Start, mean[d]+2*sd[d])
	}
	t.Draw = func(r *rand.Rand) (x, data []float64) {
		for d := range mean {
			x = append(x, mean[d]+sd[d]*r.NormFloat64())
		}
		for _, row := range l.X {
			data = append(data, floats.Dot(row, x)+l.NoiseStdDev*r.NormFloat64())
		}
		return x, data
	}
	t.LogDensity = func(phi, data *Node) *Node {
		fit := Einsum("jk,ik->ji", phi, matrix(phi, l.X))
		return Add(
			halfSquares(Div(Sub(phi, row(phi, mean)), row(phi, sd))), halfSquares(DivScalar(Sub(data, fit), l.NoiseStdDev)),
		)
	}
	t.Uniform = func(x, data []float64) []float64 {
		given := l
		given.Y = data
		center, _, _ := given.Posterior()
		return normalCDF(times(inverse, floats.SubTo(make([]float64, len(x)), x, center)))
	}
	return t
}

// halfSquares is -|z|^2 / 2 of each row, [J].
func halfSquares(z *Node) *Node { return MulScalar(ReduceSum(Square(z), 1), -0.5) }

// coordinate is a column of phi, [J].
func coordinate(phi *Node, k int) *Node { return Squeeze(Slice(phi, AxisRange(), AxisElem(k)), 1) }

// row is a constant [D], broadcast to like's shape, [J, D].
func row(like *Node, values []float64) *Node {
	return BroadcastToShape(matrix(like, [][]float64{values}), like.Shape())
}

// matrix is a constant of like's type.
func matrix(like *Node, rows [][]float64) *Node {
	return ConvertDType(Const(like.Graph(), rows), like.DType())
}

// times is the product of a matrix and x.
func times(m mat.Matrix, x []float64) []float64 {
	var out mat.VecDense
	out.MulVec(m, mat.NewVecDense(len(x), x))
	return out.RawVector().Data
}

func normalCDF(z []float64) []float64 {
	u := make([]float64, len(z))
	for i, v := range z {
		u[i] = distuv.UnitNormal.CDF(v)
	}
	return u
}
