package stats

import "math"

// LocationScale is a Distribution of a family in which all are one standard distribution, shifted and stretched: its
// distribution function at x is the standard one's at (x - location)/scale. standard must be comparable.
type LocationScale interface {
	LocationScale() (location, scale float64, standard Distribution)
}

// Curve computes the distribution function of mixtures at many points, fast: if all parts are of one LocationScale
// family, from a table of the standard distribution, with an absolute error below 1e-8; else from the parts' own.
type Curve struct {
	Locations, Scales []float64 // [J] of the parts; of others than LocationScale, the median and half an interval of 68 %

	mixture  Mixture
	family   bool
	rates    []float64    // [J] steps of the table per unit
	standard Distribution // that is tabulated
	cubics   [][4]float64 // of z between -end and end, in steps of 1/perUnit
	end      float64
	beyond   bool // there is probability beyond end
}

const (
	perUnit  = 32  // a cubic's error is (1/32)^4/384 times the fourth derivative, about 1
	lightEnd = 8.5 // beyond which a normal has no probability
	heavyEnd = 32
)

// Read takes a mixture.
func (c *Curve) Read(m Mixture) {
	c.mixture, c.family = m, true
	c.Locations, c.Scales, c.rates = c.Locations[:0], c.Scales[:0], c.rates[:0]
	var first Distribution
	for i, part := range m.Parts {
		location, scale, standard := locate(part)
		if i == 0 {
			first = standard
		}
		c.family = c.family && standard != nil && standard == first
		c.Locations, c.Scales = append(c.Locations, location), append(c.Scales, scale)
		c.rates = append(c.rates, perUnit/scale)
	}
	if c.family && first != c.standard {
		c.tabulate(first)
	}
}

func locate(d Distribution) (location, scale float64, standard Distribution) {
	if of, ok := d.(LocationScale); ok {
		return of.LocationScale()
	}
	return d.Quantile(.5), (d.Quantile(.84) - d.Quantile(.16)) / 2, nil
}

// tabulate makes the table: between its points, the cubic with the distribution function's values and densities there.
func (c *Curve) tabulate(standard Distribution) {
	c.standard, c.cubics = standard, c.cubics[:0]
	c.end, c.beyond = lightEnd, standard.CDF(-lightEnd) > 1e-16
	if c.beyond {
		c.end = heavyEnd
	}
	at := func(i int) (value, slope float64) {
		z := float64(i)/perUnit - c.end
		return standard.CDF(z), math.Exp(standard.LogProb(z)) / perUnit
	}
	a, slopeA := at(0)
	for i := 1; float64(i) <= 2*c.end*perUnit; i++ {
		b, slopeB := at(i)
		c.cubics = append(c.cubics, [4]float64{a, slopeA, 3*(b-a) - 2*slopeA - slopeB, 2*(a-b) + slopeA + slopeB})
		a, slopeA = b, slopeB
	}
}

// CDF is [Mixture.CDF], which writes to groups[g] the share of particles bounds[g] to bounds[g+1] in P(X <= x).
func (c *Curve) CDF(x float64, bounds []int, groups []float64) {
	if !c.family {
		c.mixture.CDF(x, bounds, groups)
		return
	}
	end := c.end * perUnit
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
				k := &c.cubics[i]
				sum += weight * (k[0] + u*(k[1]+u*(k[2]+u*k[3])))
			case c.beyond:
				sum += weight * c.standard.CDF(z/perUnit)
			case z >= end:
				sum += weight
			}
		}
		groups[g] = sum
	}
}
