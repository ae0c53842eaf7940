package study

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is the exact log evidence of a linear row of the evidence benchmark.

// exact returns the log of the mean of Z of a linear row. Let s be X's singular values and a = U'y; features and target
// are centred. Given the precisions t of the noise, w of the weights and b of the bias, y is independent in three kinds
// of directions: variance 1/t + s^2/w in the directions of U, 1/t + n/b in the direction of the constant, and 1/t in
// all others.
func (r evidenceRow) exact() estimate {
	var all []estimate
	for split := range evidenceSplits {
		parts := must(dataset.MustLoad("boston").PublishedSplit(dataset.Javid, split))
		data := must(fit.New("study", r.model(), dataset.Parts{Train: parts.Train}))
		x, y, err := data.Tensors(compute.Float64, parts.Train)
		failOn(err)
		flat := must(compute.Float64s(x))
		targets := must(compute.Float64s(y))
		n := len(targets)
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(n, len(flat)/n, flat), mat.SVDThin) {
			failOn(fmt.Errorf("split %d: the features have no singular values", split))
		}
		var u mat.Dense
		svd.UTo(&u)
		var along mat.VecDense
		along.MulVec(u.T(), mat.NewVecDense(n, targets))
		l := linearModel{s: svd.Values(nil), along: along.RawVector().Data, n: float64(n),
			square: floats.Dot(targets, targets)}
		value := l.given(1, 1, 1)
		if r.learnt {
			value = l.learnt()
		}
		all = append(all, estimate{value, 0})
	}
	return meanEvidence(all)
}

// linearModel holds the centred data as exact uses them: singular values, U'y, |y|^2, and the number of rows.
type linearModel struct {
	s, along  []float64
	square, n float64
}

// given is the log evidence given the precisions.
func (l linearModel) given(t, w, b float64) float64 {
	return l.noise(t) + l.weights(t, w) + l.bias(t, b)
}

// learnt is the log evidence where each precision has the Gamma distribution of shape 1 and rate 1. It integrates over
// their logarithms by the trapezoid rule; the integrand is smooth, and 0 at the ends.
func (l linearModel) learnt() float64 {
	const from, to, step = -14., 6., .125
	integral := func(f func(precision float64) float64) float64 {
		var terms []float64
		for u := from; u <= to; u += step {
			precision := math.Exp(u)
			terms = append(terms, f(precision)+u-precision)
		}
		return floats.LogSumExp(terms) + math.Log(step)
	}
	return integral(func(t float64) float64 {
		return l.noise(t) + integral(func(w float64) float64 { return l.weights(t, w) }) +
			integral(func(b float64) float64 { return l.bias(t, b) })
	})
}

// noise is the log-density of y if it were all noise.
func (l linearModel) noise(t float64) float64 { return .5*l.n*math.Log(t/(2*math.Pi)) - .5*t*l.square }

// weights is the log-density of y in the directions of U, minus its value under the noise alone.
func (l linearModel) weights(t, w float64) float64 {
	sum := 0.
	for i, s := range l.s {
		ratio := 1 + t*s*s/w
		sum -= .5 * (math.Log(ratio) + t*l.along[i]*l.along[i]*(1/ratio-1))
	}
	return sum
}

// bias is the same in the direction of the constant, where y has nothing.
func (l linearModel) bias(t, b float64) float64 { return -.5 * math.Log1p(t*l.n/b) }
