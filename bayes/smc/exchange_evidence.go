package smc

import (
	"math"

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

// ratio is log Z_(t+1)/Z_t by Bennett's estimator from the same number of draws of both: c with
//
//	sum_i 1 / (1 + exp(c - d l_i)) = sum_j 1 / (1 + exp(d l_j - c))
//
// over draws i at power t and j at power t + 1, where d is the difference of the powers and l the log-likelihood. of,
// [R], is by how much each set changes c: its mean is 0, and the variance of its mean is the variance of the estimate.
func (e exchanged) ratio(t int) (c float64, of []float64) {
	d := e.powers[t+1] - e.powers[t]
	// balance is the left side minus the right side for one set, and its derivative with respect to -c.
	balance := func(set int, c float64) (value, slope float64) {
		for i := range e.rows {
			low := logistic(d*e.rows[i][t*e.sets+set] - c)
			high := logistic(c - d*e.rows[i][(t+1)*e.sets+set])
			value += low - high
			slope += low*(1-low) + high*(1-high)
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
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range e.rows {
		for _, l := range row[t*e.sets : (t+2)*e.sets] {
			if v := d * l; !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if !(low <= high) {
		return math.Inf(-1), make([]float64, e.sets)
	}
	// Newton's method, with bisection where a step leaves the interval that brackets the root.
	for c = (low + high) / 2; high-low > 1e-10*max(1, math.Abs(c)); {
		value, slope := all(c)
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
	_, slope := all(c)
	of = make([]float64, e.sets)
	for set := range of {
		value, _ := balance(set, c)
		of[set] = value / (slope / float64(e.sets))
	}
	return c, of
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
