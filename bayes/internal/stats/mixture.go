package stats

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
)

// Mixture is sum_j Weights[j] Parts[j], with positive weights that sum to 1.
type Mixture struct {
	Weights  []float64      // [J]
	Parts    []Distribution // [J]
	Discrete bool           // they are distributions of whole numbers
}

// span is a range of particles [from, to).
type span struct{ from, to int }

// tail is the probability beyond a point, and the density there.
type tail struct{ probability, density float64 }

// add sums the tail over a span of particles, unnormalised. The point u is x for the lower tail (sign 1) and -x for the
// upper one (sign -1), so that the probability always grows with u and is never a difference from 1.
func (t *tail) add(m Mixture, s span, sign, u float64) {
	for j := s.from; j < s.to; j++ {
		part := m.Parts[j]
		if sign > 0 {
			t.probability += m.Weights[j] * part.CDF(u)
		} else {
			t.probability += m.Weights[j] * part.Survival(-u)
		}
		t.density += m.Weights[j] * math.Exp(part.LogProb(sign*u))
	}
}

// CDF writes to groups[g] the share of particles bounds[g] to bounds[g+1] in P(Y <= y), unnormalised: their sum is P(Y
// <= y).
func (m Mixture) CDF(y float64, bounds []int, groups []float64) {
	for g := range groups {
		sum := 0.0
		for j := bounds[g]; j < bounds[g+1]; j++ {
			sum += m.Weights[j] * m.Parts[j].CDF(y)
		}
		groups[g] = sum
	}
}

// Quantile is the p-quantile, 0 < p < 1: the smallest x with P(X <= x) >= p.
func (m Mixture) Quantile(p float64) float64 {
	if m.Discrete {
		return m.discreteQuantile(p, span{})
	}
	p, sign := lowerTail(p)
	mean, variance := 0.0, 0.0
	for j, w := range m.Weights {
		mean += w * m.Parts[j].Mean()
	}
	for j, w := range m.Weights {
		d := m.Parts[j].Mean() - mean
		variance += w * (d*d + m.Parts[j].Variance())
	}
	start := sign*mean + mathext.NormalQuantile(p)*math.Sqrt(variance) // exact if the mixture is Gaussian; may be NaN
	return sign * m.solve(p, sign, start, span{})
}

// lowerTail turns a quantile above the median into one of the mirrored mixture below its median.
func lowerTail(p float64) (float64, float64) {
	if p > 0.5 {
		return 1 - p, -1
	}
	return p, 1
}

// bracket returns the smallest and the largest of the particles' own quantiles, and the particles' total weight. The
// mixture's quantile lies between the two. One span of particles is left out.
func (m Mixture) bracket(p, sign float64, without span) (low, high, mass float64) {
	low, high = math.Inf(1), math.Inf(-1)
	rounding := 1e-12 // of a particle's quantile
	if sign < 0 {
		rounding += math.Min(4e-16/p, 1) // 1-p has lost digits of p
		p = 1 - p
	}
	for _, s := range m.kept(without) {
		for j := s.from; j < s.to; j++ {
			own, mean := sign*m.Parts[j].Quantile(p), sign*m.Parts[j].Mean()
			slack := rounding*math.Abs(own-mean) + 1e-15*math.Abs(own)
			if !(slack < math.Inf(1)) { // there is no mean
				slack = rounding * math.Abs(own)
			}
			low, high = math.Min(low, own-slack), math.Max(high, own+slack)
			mass += m.Weights[j]
		}
	}
	return low, high, mass
}

func (m Mixture) kept(without span) [2]span {
	return [2]span{{0, without.from}, {without.to, len(m.Weights)}}
}

// at is the tail at u of the mixture without one span of particles, whose others' weight is mass.
func (m Mixture) at(u, sign, mass float64, without span) tail {
	var t tail
	for _, s := range m.kept(without) {
		t.add(m, s, sign, u)
	}
	return tail{t.probability / mass, t.density / mass}
}

// solve finds the u whose tail has probability p, without the particles of one span.
//
// It takes Newton steps on probit(P(u)) = probit(p), which is a straight line if the mixture is Gaussian. Where a step
// leaves the points known to lie to either side, or does not halve the error, these are halved, or while there is one
// alone the steps double. Where the start tells nothing, the particles' own quantiles, which take long, are the two.
func (m Mixture) solve(p, sign, start float64, without span) float64 {
	const exact = 1e-12 // in probits
	z := mathext.NormalQuantile(p)
	low, high, mass := math.Inf(-1), math.Inf(1), 0.
	for _, s := range m.kept(without) {
		mass += floats.Sum(m.Weights[s.from:s.to])
	}
	known := false // both low and high
	bracketed := func() float64 {
		low, high, mass = m.bracket(p, sign, without)
		known = true
		return low + (high-low)/2
	}
	u := start
	if math.IsNaN(u) || math.IsInf(u, 0) {
		u = bracketed()
	}
	previous, reach := math.Inf(1), 0.
	for {
		known = known || !math.IsInf(low, 0) && !math.IsInf(high, 0)
		if middle := low + (high-low)/2; known && (middle <= low || middle >= high) {
			return middle // these are neighbouring numbers
		}
		t := m.at(u, sign, mass, without)
		probit := mathext.NormalQuantile(math.Min(t.probability, 1)) // rounding may exceed 1
		miss := probit - z
		if math.Abs(miss) <= exact {
			return u
		}
		if t.probability < p {
			low = u
		} else {
			high = u
		}
		step := miss * math.Exp(-0.5*probit*probit) / (math.Sqrt(2*math.Pi) * t.density)
		next := u - step
		switch {
		case next >= low && next <= high && !math.IsInf(next, 0) && math.Abs(miss) <= 0.5*math.Abs(previous):
			// Newton's next error is about miss^2, times the factor by which this one came from previous^2.
			left := math.Abs(miss) * (miss / previous) * (miss / previous)
			if next == u || left <= exact/1000 && !math.IsInf(previous, 0) {
				return next
			}
			u, previous = next, miss
		case known:
			u, previous = low+(high-low)/2, math.Inf(1)
		case math.IsNaN(next) || math.IsInf(next, 0):
			u, previous = bracketed(), math.Inf(1)
		default:
			reach = max(2*reach, math.Abs(step), math.Nextafter(math.Abs(u), math.Inf(1))-math.Abs(u))
			u, previous = u-math.Copysign(reach, miss), math.Inf(1)
		}
	}
}

// discreteQuantile is the smallest whole number x with P(X <= x) >= p, without the particles of one span.
func (m Mixture) discreteQuantile(p float64, without span) float64 {
	low, high, mass := m.bracket(p, 1, without)
	low, high = math.Ceil(low)-1, math.Ceil(high)
	for high-low > 1 {
		middle := math.Floor(low + (high-low)/2)
		if middle <= low || middle >= high {
			break // beyond 2^53 not all whole numbers are there
		}
		if m.at(middle, 1, mass, without).probability >= p {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// QuantilesWithout writes to out[g] the p-quantile of the mixture without the particles bounds[g] to bounds[g+1];
// rest[g] is the weight of the others and q the quantile of the whole. A few passes over the particles serve all
// groups: leaving out a group moves the quantile little, and a step of Halley's method from q finds it. Where its
// second-order term is more than a twentieth of the first, or the step more than a quarter of the standard deviation of
// the particles' distributions around q, the quantile is solved for anew.
func (m Mixture) QuantilesWithout(p, q float64, bounds []int, rest, out []float64) {
	if m.Discrete {
		for g := range out {
			out[g] = m.discreteQuantile(p, span{bounds[g], bounds[g+1]})
		}
		return
	}
	p, sign := lowerTail(p)
	tails, slopes := make([]tail, len(out)), make([]float64, len(out))
	sharpness := m.sharpness(q)
	h := 0.02 / math.Sqrt(sharpness) // to either side of q, for the slope of the density
	for g := range tails {
		s := span{bounds[g], bounds[g+1]}
		tails[g].add(m, s, sign, sign*q)
		slopes[g] = sign * (m.density(s, q+h) - m.density(s, q-h)) / (2 * h)
	}
	for g := range out {
		var t tail
		slope := 0.0
		for other := range tails {
			if other != g {
				t.probability += tails[other].probability / rest[g]
				t.density += tails[other].density / rest[g]
				slope += slopes[other] / rest[g]
			}
		}
		step := (p - t.probability) / t.density
		bend := step * slope / (2 * t.density)
		if math.Abs(bend) <= 0.05 && step*step*sharpness <= 0.0625 {
			out[g] = q + sign*step*(1-bend)
		} else { // also if NaN
			out[g] = sign * m.solve(p, sign, sign*q, span{bounds[g], bounds[g+1]})
		}
	}
}

// sharpness is the mean of 1/variance over the particles' distributions at x, by their densities there: it tells how
// narrow they are. Those without a variance count as one in whose quartiles half the probability lies.
func (m Mixture) sharpness(x float64) float64 {
	sum, total := 0.0, 0.0
	for j, part := range m.Parts {
		variance := part.Variance()
		if math.IsInf(variance, 1) || math.IsNaN(variance) {
			half := (part.Quantile(0.75) - part.Quantile(0.25)) / 2
			variance = half * half
		}
		density := m.Weights[j] * math.Exp(part.LogProb(x))
		sum += density / variance
		total += density
	}
	return sum / total
}

// density is the unnormalised density of a span of particles at x.
func (m Mixture) density(s span, x float64) float64 {
	sum := 0.0
	for j := s.from; j < s.to; j++ {
		sum += m.Weights[j] * math.Exp(m.Parts[j].LogProb(x))
	}
	return sum
}

// Distribution is bayes.Distribution.
type Distribution interface {
	Mean() float64
	Variance() float64
	LogProb(y float64) float64
	CDF(y float64) float64
	Survival(y float64) float64
	Quantile(p float64) float64
}
