package predictive

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Mixture is sum_j Weights[j] N(Means[j], StdDevs[j]^2), with positive weights that sum to 1 and positive standard deviations.
type Mixture struct {
	Weights, Means, StdDevs []float64 // [J]
}

// span is a range of particles [from, to).
type span struct{ from, to int }

// tail is the probability beyond a point, its derivative, the derivative of that, and the sum of the densities over the variances, which tells how
// narrow the Gaussians there are.
type tail struct{ probability, density, slope, sharpness float64 }

// add sums the tail over a span of particles, unnormalised. The point u is x for the lower tail (sign 1) and -x for the upper one
// (sign -1), so that the probability always grows with u and is never a difference from 1.
func (t *tail) add(m Mixture, s span, sign, u float64) {
	for j := s.from; j < s.to; j++ {
		scale := 1 / m.StdDevs[j]
		z := (u - sign*m.Means[j]) * scale
		density := m.Weights[j] * scale * math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi)
		t.probability += m.Weights[j] * 0.5 * math.Erfc(-z/math.Sqrt2)
		t.density += density
		t.slope -= density * z * scale
		t.sharpness += density * scale * scale
	}
}

// scaled divides by the weight of what was summed.
func (t tail) scaled(mass float64) tail {
	return tail{t.probability / mass, t.density / mass, t.slope / mass, t.sharpness / mass}
}

// CDF writes to groups[g] the share of particles bounds[g] to bounds[g+1] in P(Y <= y), unnormalised: their sum is P(Y <= y).
func (m Mixture) CDF(y float64, bounds []int, groups []float64) {
	for g := range groups {
		sum := 0.0
		for j := bounds[g]; j < bounds[g+1]; j++ {
			sum += m.Weights[j] * 0.5 * math.Erfc((m.Means[j]-y)/(m.StdDevs[j]*math.Sqrt2))
		}
		groups[g] = sum
	}
}

// Quantile is the p-quantile, 0 < p < 1.
func (m Mixture) Quantile(p float64) float64 {
	p, sign := lowerTail(p)
	mean, variance := 0.0, 0.0
	for j, w := range m.Weights {
		mean += w * m.Means[j]
	}
	for j, w := range m.Weights {
		d := m.Means[j] - mean
		variance += w * (d*d + m.StdDevs[j]*m.StdDevs[j])
	}
	start := sign*mean + mathext.NormalQuantile(p)*math.Sqrt(variance) // exact if the mixture is Gaussian
	return sign * m.solve(p, sign, start, span{})
}

// lowerTail turns a quantile above the median into one of the mirrored mixture below its median.
func lowerTail(p float64) (float64, float64) {
	if p > 0.5 {
		return 1 - p, -1
	}
	return p, 1
}

// solve finds the u whose tail has probability p, without the particles of one span.
//
// The quantile lies between the smallest and the largest of the particles' own p-quantiles. Within that bracket it takes Newton steps on
// probit(P(u)) = probit(p), which is a straight line if the mixture is Gaussian, and halves the bracket where a step
// leaves it or does not halve the error.
func (m Mixture) solve(p, sign, start float64, without span) float64 {
	z := mathext.NormalQuantile(p)
	kept := [2]span{{0, without.from}, {without.to, len(m.Weights)}}
	low, high, smallest, mass := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	for _, s := range kept {
		for j := s.from; j < s.to; j++ {
			own := sign*m.Means[j] + z*m.StdDevs[j]
			low, high = math.Min(low, own), math.Max(high, own)
			smallest = math.Min(smallest, m.StdDevs[j])
			mass += m.Weights[j]
		}
	}
	u := math.Min(math.Max(start, low), high)
	previous := math.Inf(1)
	for {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			return middle // the bracket is down to two neighbouring numbers
		}
		var t tail
		for _, s := range kept {
			t.add(m, s, sign, u)
		}
		t = t.scaled(mass)
		if t.probability < p {
			low = u
		} else {
			high = u
		}
		probit := mathext.NormalQuantile(math.Min(t.probability, 1)) // rounding may exceed 1
		miss := probit - z
		step := -miss * math.Exp(-0.5*probit*probit) / (math.Sqrt(2*math.Pi) * t.density)
		next := u + step
		switch inside := next >= low && next <= high; { // false if step is NaN
		case inside && math.Abs(step) <= 1e-6*smallest:
			return next // what is left is of the order of the step's square
		case inside && math.Abs(miss) <= 0.5*math.Abs(previous):
			u, previous = next, miss
		default:
			u, previous = low+(high-low)/2, math.Inf(1)
		}
	}
}

// QuantilesWithout writes to out[g] the p-quantile of the mixture without the particles bounds[g] to bounds[g+1]; rest[g] is the weight
// of the others and q the quantile of the whole. One pass over the particles serves all groups: leaving out a group moves the
// quantile little, and a step of Halley's method from q finds it. Where its second-order term is more than a twentieth of the first, or the step more than
// a quarter of the standard deviation of the Gaussians around q, the quantile is solved for anew.
func (m Mixture) QuantilesWithout(p, q float64, bounds []int, rest, out []float64) {
	p, sign := lowerTail(p)
	tails := make([]tail, len(out))
	for g := range tails {
		tails[g].add(m, span{bounds[g], bounds[g+1]}, sign, sign*q)
	}
	for g := range out {
		var t tail
		for other := range tails {
			if other != g {
				t.probability += tails[other].probability
				t.density += tails[other].density
				t.slope += tails[other].slope
				t.sharpness += tails[other].sharpness
			}
		}
		t = t.scaled(rest[g])
		step := (p - t.probability) / t.density
		bend := step * t.slope / (2 * t.density)
		if math.Abs(bend) <= 0.05 && step*step*t.sharpness <= 0.0625*t.density {
			out[g] = q + sign*step*(1-bend)
		} else { // also if NaN
			out[g] = sign * m.solve(p, sign, sign*q, span{bounds[g], bounds[g+1]})
		}
	}
}
