package stats

import (
	"math"
	"testing"
)

// Draws at .1, .5 and .6 leave the uniform distribution furthest at .6, by 1 - .6; quantiles at (i + 1/2)/n leave it by
// 1/(2n) everywhere.
func TestKolmogorov(t *testing.T) {
	uniform := func(x float64) float64 { return x }
	if d := Kolmogorov([]float64{.6, .1, .5}, uniform); math.Abs(d-.4) > 1e-15 {
		t.Errorf("distance %v, want .4", d)
	}
	var even []float64
	for i := range 10 {
		even = append(even, (float64(i)+.5)/10)
	}
	if d := Kolmogorov(even, uniform); math.Abs(d-.05) > 1e-15 {
		t.Errorf("distance %v, want .05", d)
	}
	if d := Kolmogorov([]float64{.2, .7}, func(float64) float64 { return math.NaN() }); !math.IsNaN(d) {
		t.Errorf("distance %v from a distribution function that is NaN, want NaN", d)
	}
}

// The critical values of Stephens (1970), table 1: (sqrt(n) + .12 + .11/sqrt(n)) times the distance is above 1.224,
// 1.358 and 1.628 with probability .10, .05 and .01.
func TestKolmogorovP(t *testing.T) {
	for _, n := range []float64{10, 100, 10_000} {
		for critical, want := range map[float64]float64{1.224: .1, 1.358: .05, 1.628: .01} {
			distance := critical / (math.Sqrt(n) + .12 + .11/math.Sqrt(n))
			if p := KolmogorovP(distance, n); math.Abs(p-want) > 2e-3*math.Sqrt(want) {
				t.Errorf("n = %v: the p-value of %v is %v, want %v", n, distance, p, want)
			}
		}
	}
	if KolmogorovP(math.NaN(), 10) != 0 || KolmogorovP(0, 10) != 1 || KolmogorovP(1, 1000) != 0 {
		t.Errorf("p-values of NaN, 0 and 1: %v, %v, %v", KolmogorovP(math.NaN(), 10), KolmogorovP(0, 10),
			KolmogorovP(1, 1000))
	}
}
