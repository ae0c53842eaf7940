package exchange

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// exchanged holds the log-likelihoods of the sweeps: one row for each sweep, [T R], with set r at power t in column
// t R + r.
type exchanged struct {
	powers []float64
	sets   int
	rows   [][]float64
}

// draws returns the log-likelihoods of each set at power t, [R][]. At the prior they may be -Inf: the likelihood is 0
// on a part of it. A replica with a likelihood of 0 at any other power is no draw of its distribution, but still where
// it began, and is left out.
func (e exchanged) draws(t int) (draws [][]float64, n int) {
	draws = make([][]float64, e.sets)
	for _, row := range e.rows {
		for set, l := range row[t*e.sets : (t+1)*e.sets] {
			if t == 0 || !math.IsInf(l, -1) {
				draws[set] = append(draws[set], l)
				n++
			}
		}
	}
	return draws, n
}

// outside counts the replicas at powers above 0 that stood where the likelihood is 0, over all sweeps.
func (e exchanged) outside() (n int) {
	for _, row := range e.rows {
		for _, l := range row[e.sets:] {
			if math.IsInf(l, -1) {
				n++
			}
		}
	}
	return n
}

// ratio estimates log Z_(t+1)/Z_t from n draws at power t and m at power t + 1. Bennett's estimator is c + log(m/n),
// where c solves
//
//	sum_i 1 / (1 + exp(c - d l_i)) = sum_j 1 / (1 + exp(d l_j - c))
//
// over draws i at power t and j at power t + 1; d is the difference of the powers, l the log-likelihood. of, [R], is
// the influence of each set on the ratio. Its mean is 0, and the variance of its mean is the variance of the estimate.
// Both are NaN where no draw of one of the powers has a likelihood above 0.
func (e exchanged) ratio(t int) (ratio float64, of []float64) {
	d := e.powers[t+1] - e.powers[t]
	lower, n := e.draws(t)
	upper, m := e.draws(t + 1)
	// balance is the left side minus the right side for one set, and its derivative with respect to -c.
	balance := func(set int, c float64) (value, slope float64) {
		for _, l := range lower[set] {
			p := logistic(d*l - c)
			value, slope = value+p, slope+p*(1-p)
		}
		for _, l := range upper[set] {
			p := logistic(c - d*l)
			value, slope = value-p, slope+p*(1-p)
		}
		return value, slope
	}
	all := func(c float64) (value, slope float64) {
		for set := range e.sets {
			v, s := balance(set, c)
			value, slope = value+v, slope+s
		}
		return value, slope
	}
	low, high, some := math.Inf(1), math.Inf(-1), 0
	for _, draws := range [][][]float64{lower, upper} {
		found := false
		for _, l := range slices.Concat(draws...) {
			if v := d * l; !math.IsInf(v, 0) {
				low, high, found = min(low, v), max(high, v), true
			}
		}
		if found {
			some++
		}
	}
	of = make([]float64, e.sets)
	if some < 2 {
		floats.AddConst(math.NaN(), of)
		return math.NaN(), of
	}
	// The root lies between the values, unless many are -Inf or the numbers of draws differ.
	c := root(all, low, high)
	_, slope := all(c)
	for set := range of {
		value, _ := balance(set, c)
		of[set] = value / (slope / float64(e.sets))
	}
	return c + math.Log(float64(m)/float64(n)), of
}

// root is where a decreasing function is 0, to a relative error of about 1e-10. f returns its value and its derivative
// with the sign changed. low <= high need not bracket the root: the interval is widened until it does.
func root(f func(c float64) (value, slope float64), low, high float64) float64 {
	for step := 1.; ; step *= 2 {
		if value, _ := f(low); value >= 0 {
			break
		}
		low -= step
	}
	for step := 1.; ; step *= 2 {
		if value, _ := f(high); value <= 0 {
			break
		}
		high += step
	}
	// Newton's method, with bisection where a step leaves the interval.
	c := (low + high) / 2
	for high-low > 1e-10*max(1, math.Abs(c)) {
		value, slope := f(c)
		if math.Abs(value) <= 1e-9*slope {
			break
		}
		if value > 0 {
			low = c
		} else {
			high = c
		}
		if c += value / slope; !(c > low && c < high) {
			c = (low + high) / 2
		}
	}
	return c
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// evidence is log Z with its standard error, and the log-ratio of each step.
func (e exchanged) evidence() (value, stdErr float64, steps []float64) {
	sum := make([]float64, e.sets)
	for t := range len(e.powers) - 1 {
		c, of := e.ratio(t)
		steps = append(steps, c)
		floats.Add(sum, of)
	}
	return floats.Sum(steps), stat.StdDev(sum, nil) / math.Sqrt(float64(e.sets)), steps
}
