package stats

import "math"

// LocationScale is a Distribution of a family in which all are one standard distribution, shifted and stretched: its
// distribution function at x is the standard one's at (x - location)/scale. standard must be comparable.
type LocationScale interface {
	LocationScale() (location, scale float64, standard Distribution)
}

// Curve computes the distribution function of mixtures at many points, fast, with an absolute error below 1e-8: from
// tables of the standard distributions of its LocationScale parts, and for others from the parts' own.
type Curve struct {
	Locations, Scales []float64 // [J] of the parts; of others than LocationScale, the median and half an interval of 68 %

	mixture Mixture
	tables  []*table // [J]; nil of a part without one
	light   bool     // all parts have one table, without tails
	rates   []float64
	met     map[Distribution]*table // of standard distributions in earlier mixtures
}

// table is the distribution function of a standard distribution at points between -end and end, with a cubic for each
// step of 1/perUnit. That of a distribution with heavy tails is of asinh z, so that it is dense in the middle.
type table struct {
	standard Distribution
	heavy    bool
	cubics   [][4]float64
	end      float64
}

const (
	perUnit  = 32  // a cubic's error is (1/32)^4/384 times the fourth derivative, about 1
	lightEnd = 8.5 // beyond which a normal has no probability
	heavyEnd = 8   // asinh of 1490
)

// Read takes a mixture.
func (c *Curve) Read(m Mixture) {
	c.mixture, c.light = m, true
	c.Locations, c.Scales, c.rates, c.tables = c.Locations[:0], c.Scales[:0], c.rates[:0], c.tables[:0]
	if c.met == nil {
		c.met = map[Distribution]*table{}
	}
	var before Distribution
	for i, part := range m.Parts {
		location, scale, standard := locate(part)
		var t *table
		if i > 0 && standard == before {
			t = c.tables[i-1]
		} else if standard != nil {
			t = c.tabulated(standard)
		}
		before = standard
		c.light = c.light && t != nil && !t.heavy && (i == 0 || t == c.tables[0])
		c.Locations, c.Scales = append(c.Locations, location), append(c.Scales, scale)
		c.rates, c.tables = append(c.rates, perUnit/scale), append(c.tables, t)
	}
}

func locate(d Distribution) (location, scale float64, standard Distribution) {
	if of, ok := d.(LocationScale); ok {
		return of.LocationScale()
	}
	return d.Quantile(.5), (d.Quantile(.84) - d.Quantile(.16)) / 2, nil
}

// tabulated is the table of a standard distribution that was met in an earlier mixture, and nil of a new one: there may
// be others in the next.
func (c *Curve) tabulated(standard Distribution) *table {
	t, met := c.met[standard]
	if met && t == nil {
		t = newTable(standard)
	}
	c.met[standard] = t
	return t
}

func newTable(standard Distribution) *table {
	t := &table{standard: standard, heavy: standard.CDF(-lightEnd) > 1e-16, end: lightEnd}
	at := func(z float64) (value, slope float64) { return standard.CDF(z), math.Exp(standard.LogProb(z)) }
	if t.heavy {
		t.end = heavyEnd
	}
	point := func(i int) (value, slope float64) {
		z := float64(i)/perUnit - t.end
		if !t.heavy {
			value, slope = at(z)
			return value, slope / perUnit
		}
		value, slope = at(math.Sinh(z))
		return value, slope * math.Cosh(z) / perUnit
	}
	a, slopeA := point(0)
	for i := 1; float64(i) <= 2*t.end*perUnit; i++ {
		b, slopeB := point(i)
		t.cubics = append(t.cubics, [4]float64{a, slopeA, 3*(b-a) - 2*slopeA - slopeB, 2*(a-b) + slopeA + slopeB})
		a, slopeA = b, slopeB
	}
	return t
}

// cdf is the distribution function at z.
func (t *table) cdf(z float64) float64 {
	u := z
	if t.heavy {
		u = math.Asinh(z)
	}
	u = (u + t.end) * perUnit
	if !(u >= 0 && u < float64(len(t.cubics))) {
		return t.standard.CDF(z)
	}
	i := int(u)
	u -= float64(i)
	k := &t.cubics[i]
	return k[0] + u*(k[1]+u*(k[2]+u*k[3]))
}

// CDF is [Mixture.CDF], which writes to groups[g] the share of particles bounds[g] to bounds[g+1] in P(X <= x).
func (c *Curve) CDF(x float64, bounds []int, groups []float64) {
	if !c.light {
		for g := range groups {
			groups[g] = 0
			for j := bounds[g]; j < bounds[g+1]; j++ {
				if t := c.tables[j]; t != nil {
					groups[g] += c.mixture.Weights[j] * t.cdf((x-c.Locations[j])/c.Scales[j])
				} else {
					groups[g] += c.mixture.Weights[j] * c.mixture.Parts[j].CDF(x)
				}
			}
		}
		return
	}
	cubics := c.tables[0].cubics
	const end = lightEnd * perUnit
	for g := range groups {
		sum := 0.0
		from, to := bounds[g], bounds[g+1]
		locations, rates, weights := c.Locations[from:to], c.rates[from:to], c.mixture.Weights[from:to]
		for j, weight := range weights {
			z := (x - locations[j]) * rates[j]
			switch {
			case z > -end && z < end:
				u := z + end
				i := int(u)
				u -= float64(i)
				k := &cubics[i]
				sum += weight * (k[0] + u*(k[1]+u*(k[2]+u*k[3])))
			case z >= end:
				sum += weight
			}
		}
		groups[g] = sum
	}
}
