package metric

import (
	"math"
	"slices"

	"gobnn/bayes"
)

// CRPS is the continuous ranked probability score, the mean over rows of
//
//	integral (F(x) - 1{x >= y})^2 dx = E|X - y| - E|X - X'| / 2
//
// where F is the predictive distribution function, of the mixture of all particles, and X and X' are independent draws
// of it (Gneiting and Raftery 2007, eq. 20 and 21), for regression, in the target's units. Lower is better; of a point
// it is the absolute error. Unlike the NLPD it weighs a target far outside by its distance only. It is computed to
// within 0.05 %.
func CRPS(p bayes.Prediction, y []float64) (Estimate, error) { return one(newCRPS(), p, y) }

func newCRPS() *measure {
	return &measure{name: "CRPS", tasks: regressionOnly, scorer: &rowMean{score: (*row).crps}}
}

// crps integrates by Simpson's rule between some of the particles' own quantiles, with the target among the bounds, in
// panels that are halved until this changes nothing, and outward in panels that double, until one adds nothing. The
// sums over groups at each place serve the score and all its replicates. For mixtures of normals there is a closed form
// (Grimit, Gneiting, Berrocal and Johnson 2006, eq. 5), with a term for each two particles, of which many particles
// have too many. Of counts the integral is a sum.
func (r *row) crps(out []float64) {
	clear(out)
	bounds, y := r.bends(), r.ys[0]
	first, last := math.Min(bounds[0], y), math.Max(bounds[len(bounds)-1], y)
	if r.discrete && last-first < mostCounts {
		for k := first; k <= last; k++ {
			for g, v := range r.squared(k, indicator(k >= y)) {
				out[g] += v
			}
		}
	} else {
		bounds = append(bounds, y)
		slices.Sort(bounds)
		rough := 0.0 // the score, by which errors are measured
		for i, to := range bounds[1:] {
			rough += (to - bounds[i]) * r.squared(bounds[i]+(to-bounds[i])/2, indicator(to > y))[0]
		}
		tolerance := crpsError * rough
		for i, to := range bounds[1:] {
			r.integrate(bounds[i], to, indicator(to > y), tolerance, out)
		}
		for _, outward := range []float64{-1, 1} {
			from := last
			if outward < 0 {
				from = first
			}
			for width, before := (last-first)/8, math.Inf(-1); out[0] > before+tolerance && width > 0; width *= 2 {
				before = out[0]
				to := from + outward*width
				r.integrate(math.Min(from, to), math.Max(from, to), indicator(outward > 0), tolerance, out)
				from = to
			}
		}
	}
	for g := range out {
		out[g] *= r.scale
	}
}

// squared is (F(x) - above)^2, [1+G].
func (r *row) squared(x, above float64) []float64 {
	all := make([]float64, 1+r.replicates)
	r.mixture().CDF(x, r.bounds, r.sums)
	r.withAndWithout(r.sums, all)
	for g, f := range all {
		all[g] = (f - above) * (f - above)
	}
	return all
}

// integrate adds the integral of (F(x) - above)^2 over a panel to out, in panels whose errors are below a tolerance.
func (r *row) integrate(from, to, above, tolerance float64, out []float64) {
	if !(from < to) {
		return
	}
	const least, most = 2, 30 // halvings
	var halve func(from, to float64, a, m, b []float64, depth int)
	halve = func(from, to float64, a, m, b []float64, depth int) {
		width, middle := (to-from)/2, from+(to-from)/2
		left, right := r.squared(from+width/2, above), r.squared(middle+width/2, above)
		rough, fine := width/3*(a[0]+4*m[0]+b[0]), width/6*(a[0]+4*left[0]+2*m[0]+4*right[0]+b[0])
		if depth == 0 || depth < most-least && math.Abs(fine-rough) <= tolerance {
			for g := range out {
				out[g] += width / 6 * (a[g] + 4*left[g] + 2*m[g] + 4*right[g] + b[g])
			}
			return
		}
		halve(from, middle, a, left, m, depth-1)
		halve(middle, to, m, right, b, depth-1)
	}
	at := func(x float64) []float64 { return r.squared(x, above) }
	halve(from, to, at(from), at(from+(to-from)/2), at(to), most)
}

// bends are some of the particles' own quantiles, in order; of counts those between which nearly all their probability
// lies.
func (r *row) bends() []float64 {
	levels, count := []float64{.1, .5, .9}, 4
	if r.discrete {
		levels, count = []float64{1e-7, 1 - 1e-7}, 1
	}
	var all []float64
	for _, part := range r.parts[0] {
		for _, level := range levels {
			all = append(all, part.Quantile(level))
		}
	}
	slices.Sort(all)
	var bounds []float64
	for i := range count + 1 {
		bounds = append(bounds, all[i*(len(all)-1)/count])
	}
	return bounds
}

const (
	crpsError  = 1e-5   // of the score, at most, of a panel
	mostCounts = 20_000 // beyond, a sum over counts is as near its integral
)
