package bayes

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
)

// normal is N(mean, stdDev^2).
type normal struct{ mean, stdDev float64 }

func (d normal) Mean() float64     { return d.mean }
func (d normal) Variance() float64 { return d.stdDev * d.stdDev }

func (d normal) LogProb(y float64) float64 {
	z := (y - d.mean) / d.stdDev
	return -0.5*z*z - math.Log(d.stdDev) - 0.5*math.Log(2*math.Pi)
}

func (d normal) CDF(y float64) float64      { return 0.5 * math.Erfc((d.mean-y)/(d.stdDev*math.Sqrt2)) }
func (d normal) Survival(y float64) float64 { return 0.5 * math.Erfc((y-d.mean)/(d.stdDev*math.Sqrt2)) }
func (d normal) Quantile(p float64) float64 { return d.mean + d.stdDev*mathext.NormalQuantile(p) }

// classes is a class c, from 0, with a probability proportional to exp(logits[c]).
type classes struct {
	logits []float64
	logSum float64
}

func newClasses(logits []float64) classes { return classes{logits, floats.LogSumExp(logits)} }

func (d classes) LogProb(y float64) float64 {
	if y < 0 || y >= float64(len(d.logits)) || y != math.Trunc(y) {
		return math.Inf(-1)
	}
	return d.logits[int(y)] - d.logSum
}

// sum is sum_c f(c) P(c) over the classes from `from` to to.
func (d classes) sum(from, to int, f func(c float64) float64) float64 {
	total := 0.0
	for c := max(from, 0); c <= min(to, len(d.logits)-1); c++ {
		total += f(float64(c)) * math.Exp(d.logits[c]-d.logSum)
	}
	return total
}

func one(float64) float64 { return 1 }

func (d classes) Mean() float64 {
	return d.sum(0, len(d.logits), func(c float64) float64 { return c })
}

func (d classes) Variance() float64 {
	mean := d.Mean()
	return d.sum(0, len(d.logits), func(c float64) float64 { return (c - mean) * (c - mean) })
}

func (d classes) CDF(y float64) float64      { return d.sum(0, int(math.Floor(y)), one) }
func (d classes) Survival(y float64) float64 { return d.sum(int(math.Floor(y))+1, len(d.logits), one) }

func (d classes) Quantile(p float64) float64 {
	for c := range d.logits {
		if d.CDF(float64(c)) >= p {
			return float64(c)
		}
	}
	return float64(len(d.logits) - 1)
}
