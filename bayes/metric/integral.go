package metric

import (
	"math"
	"slices"

	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
)

// integral is the integral of the CRPS, of F(x)^2 below the target y and of (1 - F(x))^2 above it, by Kronrod's rule in
// panels that are halved until its error is small, and outward in panels that double, until one can add nothing. The
// sums over groups at each place serve the score and all its replicates. For mixtures of normals the CRPS has a closed
// form (Grimit, Gneiting, Berrocal and Johnson 2006, eq. 5), with a term for each two particles, of which many
// particles have too many. Of counts the integral is a sum.
type integral struct {
	r         *row
	curve     stats.Curve
	y         float64   // where the integrand changes sides
	tolerance float64   // of the error of a panel
	narrow    float64   // width of panels in which the narrowest particles are seen
	out       []float64 // [1+G]
	groups    []float64 // [G] scratch
}

const (
	panelError   = 1e-5 // of the score, at most
	mostHalvings = 50
	// The score of Student's t with half a degree of freedom is infinite; of one with .54 this many find the end.
	mostDoublings = 200
	halfWidth     = 4    // of the first panels, in standard deviations
	fewScales     = 8    // width of a narrow panel, in scales of a particle
	eachCount     = 1000 // counts that are summed one by one; further ones in blocks of ever more
	noCounts      = 1e-5 // probability beyond the counts that are summed
)

func (s *integral) score(r *row, out []float64) {
	clear(out)
	s.r, s.out, s.y, s.groups = r, out, r.ys[0], make([]float64, r.groups)
	if r.discrete {
		s.sum()
	} else {
		s.integrate()
	}
	for g := range out {
		out[g] *= r.scales[0]
	}
}

// squared turns sums of the distribution function over groups into the integrand, [1+G].
func (s *integral) squared(above bool) []float64 {
	values := s.r.withAndWithout(s.groups)
	for g, f := range values {
		if above {
			f = 1 - f
		}
		values[g] = f * f
	}
	return values
}

// counts are a range of counts, the target among them, outside which the mixture has no probability to speak of.
func (s *integral) counts() (first, last float64) {
	upTo := func(k float64) float64 {
		s.r.mixture().CDF(k, s.r.bounds, s.groups)
		return floats.Sum(s.groups)
	}
	first, last = s.y, s.y
	for step := 1.; first > 0 && upTo(first-1) > noCounts; step *= 2 {
		first = max(first-step, 0)
	}
	for step := 1.; upTo(last) < 1-noCounts; step *= 2 {
		last += step
	}
	return first, last
}

// sum is the sum over counts. In a block of an odd number of counts, at most a five-hundredth of those before it, the
// distribution function hardly bends, and its middle stands for all.
func (s *integral) sum() {
	first, last := s.counts()
	for k := first; k <= last; {
		half := math.Floor((k - first) / eachCount)
		if k < s.y {
			half = min(half, math.Floor((s.y-k-1)/2)) // the target begins another block
		}
		s.r.mixture().CDF(k+half, s.r.bounds, s.groups)
		floats.AddScaled(s.out, 2*half+1, s.squared(k >= s.y))
		k = max(k+2*half+1, math.Nextafter(k, math.Inf(1))) // beyond 2^53 not all counts are there
	}
}

// integrate is the integral over all x.
func (s *integral) integrate() {
	s.curve.Read(s.r.mixture())
	mean, variance, sharpness := 0., 0., 0.
	for i, w := range s.r.weights {
		mean += w * s.curve.Locations[i]
		sharpness += w / s.curve.Scales[i]
	}
	s.narrow = fewScales / sharpness
	for i, w := range s.r.weights {
		d, width := s.curve.Locations[i]-mean, s.curve.Scales[i]
		variance += w * (d*d + width*width)
	}
	half := halfWidth * math.Sqrt(variance)
	bounds := []float64{mean - half, mean, mean + half, s.y}
	slices.Sort(bounds)
	first, last := bounds[0], bounds[len(bounds)-1]
	var panels []panel
	rough := 0.
	for i, to := range bounds[1:] {
		panels = append(panels, s.rule(bounds[i], to))
		rough += panels[i].values[0]
	}
	s.tolerance = panelError * rough
	for _, p := range panels {
		s.add(p, mostHalvings)
	}
	for _, outward := range []float64{-1, 1} {
		x := last
		if outward < 0 {
			x = first
		}
		doublings := 0
		for width := max(last-first, half) / 4; width*s.at(x, outward > 0)[0] > s.tolerance; width *= 2 {
			if doublings++; doublings > mostDoublings {
				floats.AddConst(math.Inf(1), s.out)
				return
			}
			to := x + outward*width
			s.add(s.rule(math.Min(x, to), math.Max(x, to)), mostHalvings)
			x = to
		}
	}
}

// at is the integrand at x, [1+G].
func (s *integral) at(x float64, above bool) []float64 {
	s.curve.CDF(x, s.r.bounds, s.groups)
	return s.squared(above)
}

// panel is the integral from one place to another, for all particles and the replicates, and its error.
type panel struct {
	from, to float64
	values   []float64 // [1+G]
	err      float64
}

// rule is Kronrod's rule of 15 points, with its difference from Gauss's rule of 7 of them.
func (s *integral) rule(from, to float64) panel {
	half, middle := (to-from)/2, from+(to-from)/2
	p := panel{from, to, make([]float64, len(s.out)), 0}
	for _, node := range kronrod {
		for _, at := range []float64{-node.at, node.at}[:node.times] {
			values := s.at(middle+at*half, from >= s.y)
			floats.AddScaled(p.values, half*node.weight, values)
			p.err += half * (node.weight - node.gauss) * values[0]
		}
	}
	p.err = math.Abs(p.err)
	return p
}

// add adds a panel to the score, in halves if its error is too large. In a wide panel a step of the distribution
// function may escape both rules, and the halves must agree with it.
func (s *integral) add(p panel, halvings int) {
	if halvings == 0 || !(p.err > s.tolerance) && p.to-p.from <= s.narrow {
		floats.Add(s.out, p.values)
		return
	}
	middle := p.from + (p.to-p.from)/2
	left, right := s.rule(p.from, middle), s.rule(middle, p.to)
	change := math.Abs(left.values[0] + right.values[0] - p.values[0])
	if !(max(change, p.err, left.err, right.err) > s.tolerance) {
		halvings = 1 // enough
	}
	s.add(left, halvings-1)
	s.add(right, halvings-1)
}

// kronrod are the nodes of [-1, 1], on both sides of 0, with their weights in Kronrod's rule of 15 points and in
// Gauss's of 7 (Piessens and others 1983, QUADPACK, qk15).
var kronrod = []struct {
	at, weight, gauss float64
	times             int // 1 for the middle
}{
	{0.99145537112081263, 0.02293532201052922, 0, 2},
	{0.94910791234275852, 0.06309209262997855, 0.12948496616886969, 2},
	{0.86486442335976907, 0.10479001032225018, 0, 2},
	{0.74153118559939443, 0.14065325971552591, 0.27970539148927666, 2},
	{0.58608723546769113, 0.16900472663926790, 0, 2},
	{0.40584515137739716, 0.19035057806478540, 0.38183005050511894, 2},
	{0.20778495500789846, 0.20443294007529889, 0, 2},
	{0, 0.20948214108472782, 0.41795918367346938, 1},
}
