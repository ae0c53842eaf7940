package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

type student struct{ distuv.StudentsT }

func (s student) LocationScale() (location, scale float64, standard Distribution) {
	return s.Mu, s.Sigma, student{distuv.StudentsT{Sigma: 1, Nu: s.Nu}}
}

// The distribution function by the table is that of the parts, group by group, of one family after another and of parts
// that are of none.
func TestCurve(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var c Curve
	for _, test := range []struct {
		name string
		part func(location, scale float64) Distribution
	}{
		{"no family", func(m, s float64) Distribution { return distuv.Laplace{Mu: m, Scale: s} }},
		{"heavy tails", func(m, s float64) Distribution { return student{distuv.StudentsT{Mu: m, Sigma: s, Nu: .6}} }},
		{"t", func(m, s float64) Distribution { return student{distuv.StudentsT{Mu: m, Sigma: s, Nu: 4}} }},
		{"nearly normal", func(m, s float64) Distribution { return student{distuv.StudentsT{Mu: m, Sigma: s, Nu: 1e3}} }},
		{"two families", func(m, s float64) Distribution {
			return student{distuv.StudentsT{Mu: m, Sigma: s, Nu: 3 + float64(rng.IntN(2))}}
		}},
	} {
		m, bounds := Mixture{}, []int{0, 3, 3, 20}
		for range 20 {
			m.Weights = append(m.Weights, .05)
			m.Parts = append(m.Parts, test.part(rng.NormFloat64(), math.Exp(2*rng.NormFloat64())))
		}
		c.Read(m)
		c.Read(m) // tables are of what has been met before
		got, want := make([]float64, 3), make([]float64, 3)
		for range 2000 {
			x := math.Exp(3*rng.NormFloat64()) * float64(1-2*rng.IntN(2))
			c.CDF(x, bounds, got)
			m.CDF(x, bounds, want)
			for g, v := range got {
				if !(math.Abs(v-want[g]) <= 1e-8) {
					t.Fatalf("%s: P(X <= %v) is %v in group %d, want %v", test.name, x, v, g, want[g])
				}
			}
		}
		if len(c.Locations) != 20 || len(c.Scales) != 20 {
			t.Errorf("%s: %d locations and %d scales", test.name, len(c.Locations), len(c.Scales))
		}
	}
}
