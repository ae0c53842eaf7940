package bayes

import (
	"math"

	"gobnn/bayes/internal/stats"

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

// LocationScale implements stats.LocationScale.
func (d normal) LocationScale() (location, scale float64, standard stats.Distribution) {
	return d.mean, d.stdDev, normal{0, 1}
}

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

// sum is sum_c f(c) P(c) over the classes c from `from` to `to`.
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

// poisson is the Poisson distribution.
type poisson struct{ mean float64 }

func (d poisson) Mean() float64     { return d.mean }
func (d poisson) Variance() float64 { return d.mean }

func (d poisson) LogProb(y float64) float64 {
	if !isCount(y) {
		return math.Inf(-1)
	}
	if y == 0 || math.IsInf(d.mean, 1) { // an infinite mean gives no count a probability
		return -d.mean
	}
	factorial, _ := math.Lgamma(y + 1)
	return y*math.Log(d.mean) - d.mean - factorial
}

func (d poisson) CDF(y float64) float64 {
	if y < 0 {
		return 0
	}
	return mathext.GammaIncRegComp(math.Floor(y)+1, d.mean)
}

func (d poisson) Survival(y float64) float64 {
	if y < 0 {
		return 1
	}
	return mathext.GammaIncReg(math.Floor(y)+1, d.mean)
}

func (d poisson) Quantile(p float64) float64 { return countQuantile(d, p) }

// negativeBinomial has the variance mean + mean^2/size.
type negativeBinomial struct{ mean, size float64 }

func (d negativeBinomial) Mean() float64     { return d.mean }
func (d negativeBinomial) Variance() float64 { return d.mean + d.mean*d.mean/d.size }

func (d negativeBinomial) LogProb(y float64) float64 {
	if !isCount(y) {
		return math.Inf(-1)
	}
	none := -d.size * math.Log1p(d.mean/d.size)
	if y == 0 {
		return none
	}
	factorial, _ := math.Lgamma(y + 1)
	if d.size < stirlingFrom {
		above, _ := math.Lgamma(y + d.size)
		below, _ := math.Lgamma(d.size)
		return above - below - factorial + none - y*math.Log1p(d.size/d.mean)
	}
	// For a large size the two log Gammas are huge and nearly equal: by Stirling's formula their difference is the sum of
	// (size - 1/2) log(1 + y/size), y log(size + y) - y and the difference of the formula's errors.
	ratio := (d.size-0.5)*math.Log1p(y/d.size) - y + stirlingRest(d.size+y) - stirlingRest(d.size)
	return ratio + y*math.Log1p((y-d.mean)/(d.size+d.mean)) + y*math.Log(d.mean) - factorial + none
}

// stirlingRest is log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2, for x of at least stirlingFrom, by the series of
// stirlingSeries.
func stirlingRest(x float64) float64 {
	inverse := 1 / x
	square := inverse * inverse
	return inverse * (1./12 + square*(-1./360+square*(1./1260+square*(-1./1680+square/1188))))
}

func (d negativeBinomial) CDF(y float64) float64 {
	if y < 0 {
		return 0
	}
	if d.nearPoisson() {
		return poisson{d.mean}.CDF(y) + d.beyondPoisson(y)
	}
	return mathext.RegIncBeta(d.size, math.Floor(y)+1, d.size/(d.size+d.mean))
}

func (d negativeBinomial) Survival(y float64) float64 {
	if y < 0 {
		return 1
	}
	if d.nearPoisson() {
		return poisson{d.mean}.Survival(y) - d.beyondPoisson(y)
	}
	return mathext.RegIncBeta(math.Floor(y)+1, d.size, d.mean/(d.size+d.mean))
}

// nearPoisson says whether beyondPoisson, the expansion about the limit of large sizes, is the more exact way to
// compute the distribution function. Its error is about (mean/size)^2. The incomplete beta function has an error of
// about size 1e-15, so it is useless from a size of 1e16 on.
func (d negativeBinomial) nearPoisson() bool {
	return d.size > 1e5 && math.Sqrt(d.size)*(d.size/d.mean) > 3e7
}

// beyondPoisson returns the excess of the distribution function over the one of a Poisson count with the same mean m,
// to first order in 1/size. A negative binomial count is a Poisson count whose mean has a Gamma distribution with mean
// m and variance m^2/size. So the excess is half this variance times the second derivative of the Poisson distribution
// function by m.
func (d negativeBinomial) beyondPoisson(y float64) float64 {
	y = math.Floor(y)
	p := math.Exp(poisson{d.mean}.LogProb(y))
	if p == 0 {
		return 0
	}
	return p * (d.mean - y) * (d.mean / d.size) / 2
}

func (d negativeBinomial) Quantile(p float64) float64 { return countQuantile(d, p) }

func isCount(y float64) bool { return y >= 0 && y == math.Trunc(y) && !math.IsInf(y, 1) }

// countQuantile returns the smallest whole number whose distribution function is at least p. A bracket starts around
// the mean and moves up in doubling steps until it holds the quantile. Then it is bisected.
func countQuantile(d Distribution, p float64) float64 {
	low, high := -1.0, math.Ceil(d.Mean())+1
	for step := math.Ceil(math.Sqrt(d.Variance())) + 1; d.CDF(high) < p; step *= 2 {
		if math.IsInf(high, 1) || high+step == high {
			return math.Inf(1)
		}
		low, high = high, high+step
	}
	for high-low > 1 {
		middle := math.Floor(low + (high-low)/2)
		if middle <= low || middle >= high {
			break // beyond 2^53 not all whole numbers are there
		}
		if d.CDF(middle) >= p {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
