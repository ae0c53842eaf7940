package check

import (
	"math"
	"slices"

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

func (l Linear) prior() (mean, sd []float64) {
	d := len(l.X[0])
	mean, sd = l.PriorMean, l.PriorStdDev
	if len(mean) == 0 {
		mean = make([]float64, d)
	}
	if len(sd) == 0 {
		sd = slices.Repeat([]float64{1}, d)
	}
	return mean, sd
}

// Posterior is the exact mean, [D], covariance and log evidence, log p(Y). The evidence is the product over n of p(y_n
// | y_1 .. y_(n-1)), and the mean and covariance are updated row by row (the Kalman filter).
func (l Linear) Posterior() (mean []float64, covariance *mat.SymDense, logEvidence float64) {
	m, s := l.prior()
	d := len(m)
	center, spread := mat.NewVecDense(d, slices.Clone(m)), mat.NewSymDense(d, nil)
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
