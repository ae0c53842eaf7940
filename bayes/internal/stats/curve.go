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
	met     map[Distribution]*table
}

// table is the distribution function of a standard distribution at z, with a cubic for each step of 1/perUnit of
// u = z/(1 + |z|), which is dense in the middle and reaches far.
type table struct {
	standard Distribution
	cubics   [][4]float64
}

const (
	perUnit = 512     // a cubic's error is a 384th of the fourth derivative with respect to the step
	end     = .984375 // u of z = 63, beyond which the distribution is asked
)

// Read takes a mixture.
func (c *Curve) Read(m Mixture) {
	c.mixture = m
	c.Locations, c.Scales, c.tables = c.Locations[:0], c.Scales[:0], c.tables[:0]
	if c.met == nil {
		c.met = map[Distribution]*table{}
	}
	for _, part := range m.Parts {
		of, ok := part.(LocationScale)
		if !ok {
			c.Locations = append(c.Locations, part.Quantile(.5))
			c.Scales = append(c.Scales, (part.Quantile(.84)-part.Quantile(.16))/2)
			c.tables = append(c.tables, nil)
			continue
		}
		location, scale, standard := of.LocationScale()
		if c.met[standard] == nil {
			c.met[standard] = newTable(standard)
		}
		c.Locations, c.Scales = append(c.Locations, location), append(c.Scales, scale)
		c.tables = append(c.tables, c.met[standard])
	}
}

func newTable(standard Distribution) *table {
	t := &table{standard: standard}
	point := func(i int) (value, slope float64) {
		u := float64(i)/perUnit - end
		z := u / (1 - math.Abs(u))
		return standard.CDF(z), math.Exp(standard.LogProb(z)) * (1 + math.Abs(z)) * (1 + math.Abs(z)) / perUnit
	}
	a, slopeA := point(0)
	for i := 1; float64(i) <= 2*end*perUnit; i++ {
		b, slopeB := point(i)
		t.cubics = append(t.cubics, [4]float64{a, slopeA, 3*(b-a) - 2*slopeA - slopeB, 2*(a-b) + slopeA + slopeB})
		a, slopeA = b, slopeB
	}
	return t
}

// cdf is the distribution function at z.
func (t *table) cdf(z float64) float64 {
	at := (z/(1+math.Abs(z)) + end) * perUnit
	if !(at >= 0 && at < float64(len(t.cubics))) {
		return t.standard.CDF(z)
	}
	i := int(at)
	u, k := at-float64(i), &t.cubics[i]
	return k[0] + u*(k[1]+u*(k[2]+u*k[3]))
}

// CDF is [Mixture.CDF], which writes to groups[g] the share of particles bounds[g] to bounds[g+1] in P(X <= x).
func (c *Curve) CDF(x float64, bounds []int, groups []float64) {
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
}
