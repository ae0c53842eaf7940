package check

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Linear is Bayesian linear regression with known noise: theta_d is N(PriorMean, PriorStdDev^2), independent, and y_n
// is N(x_n' theta, NoiseStdDev^2). Its posterior and its evidence are exact.
type Linear struct {
	X           [][]float64 // [N][D]; with a column of ones, if there is an intercept
	Y           []float64   // [N]
	NoiseStdDev float64
	PriorMean   []float64 // [D]; empty: 0
	PriorStdDev []float64 // [D]; empty: 1
}

// Line is a regression of 12 points on two correlated features and an intercept, the last coordinate, with unlike
// weights, 2, -1 and 0, and a prior N(0, 1). Features and y have mean 0 and variance 1 (divided by N), so that a
// program that standardises its data computes with the same numbers.
func Line() Linear {
	const n = 12
	l := Linear{NoiseStdDev: .5}
	a, b, y := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		t := float64(i)
		a[i] = math.Sin(1.7 * t)
		b[i] = .8*a[i] + .6*math.Sin(5.1*t)
		y[i] = 2*a[i] - b[i] + .7*math.Cos(2.9*t)
	}
	for _, c := range [][]float64{a, b, y} {
		mean, square := 0.0, 0.0
		for _, v := range c {
			mean += v / n
			square += v * v / n
		}
		for i := range c {
			c[i] = (c[i] - mean) / math.Sqrt(square-mean*mean)
		}
	}
	for i := range n {
		l.X = append(l.X, []float64{a[i], b[i], 1})
	}
	l.Y = y
	return l
}

// check returns an error that names what is wrong.
func (l Linear) check() error {
	if len(l.X) == 0 || len(l.X) != len(l.Y) || len(l.X[0]) == 0 {
		return fmt.Errorf("check: Linear has %d rows in X and %d in Y: they must be as many, and not empty",
			len(l.X), len(l.Y))
	}
	d := len(l.X[0])
	for n, x := range l.X {
		if len(x) != d {
			return fmt.Errorf("check: Linear.X[%d] has %d values, X[0] has %d", n, len(x), d)
		}
	}
	if m, s := len(l.PriorMean), len(l.PriorStdDev); m != 0 && m != d || s != 0 && s != d {
		return fmt.Errorf("check: Linear.PriorMean has %d values and PriorStdDev %d: each must have %d or none", m, s, d)
	}
	for i, s := range append([]float64{l.NoiseStdDev}, l.PriorStdDev...) {
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("check: standard deviation %d of Linear (the noise, then the prior's) is %v: it must be positive",
				i, s)
		}
	}
	return nil
}

func (l Linear) prior() (mean, sd []float64) {
	d := len(l.X[0])
	mean, sd = l.PriorMean, l.PriorStdDev
	if len(mean) == 0 {
		mean = make([]float64, d)
	}
	if len(sd) == 0 {
		for range d {
			sd = append(sd, 1)
		}
	}
	return mean, sd
}

// posterior gives the covariance of theta given y, and its mean as a function of y.
func (l Linear) posterior() (covariance *mat.SymDense, mean func(y []float64) []float64) {
	m, s := l.prior()
	d := len(m)
	v := l.NoiseStdDev * l.NoiseStdDev
	precision := mat.NewSymDense(d, nil)
	for i := range d {
		precision.SetSym(i, i, 1/(s[i]*s[i]))
	}
	for _, x := range l.X {
		precision.SymRankOne(precision, 1/v, mat.NewVecDense(d, x))
	}
	var factor mat.Cholesky
	factor.Factorize(precision)
	covariance = mat.NewSymDense(d, nil)
	_ = factor.InverseTo(covariance) // a warning at most: the precision is the prior's, or more
	return covariance, func(y []float64) []float64 {
		right := mat.NewVecDense(d, nil)
		for i := range d {
			right.SetVec(i, m[i]/(s[i]*s[i]))
		}
		for n, x := range l.X {
			right.AddScaledVec(right, y[n]/v, mat.NewVecDense(d, x))
		}
		var out mat.VecDense
		out.MulVec(covariance, right)
		return out.RawVector().Data
	}
}

// Posterior is the exact mean, [D], covariance and log evidence, log p(Y). The evidence is the product over n of p(y_n
// | y_1 .. y_(n-1)), and the mean and covariance are updated row by row (the Kalman filter).
func (l Linear) Posterior() (mean []float64, covariance *mat.SymDense, logEvidence float64) {
	m, s := l.prior()
	d := len(m)
	center, spread := mat.NewVecDense(d, append([]float64(nil), m...)), mat.NewSymDense(d, nil)
	for i := range d {
		spread.SetSym(i, i, s[i]*s[i])
	}
	for n, row := range l.X {
		x := mat.NewVecDense(d, row)
		var gain mat.VecDense
		gain.MulVec(spread, x)
		variance := mat.Dot(x, &gain) + l.NoiseStdDev*l.NoiseStdDev
		rest := l.Y[n] - mat.Dot(x, center)
		logEvidence -= rest*rest/(2*variance) + math.Log(2*math.Pi*variance)/2
		center.AddScaledVec(center, rest/variance, &gain)
		spread.SymRankOne(spread, -1/variance, &gain)
	}
	return center.RawVector().Data, spread, logEvidence
}
