package study

import (
	"math"
	"testing"
)

// With n evaluations the best place is within .618^(n-2) of the interval's length of the minimum, wherever that lies.
func TestGoldenSection(t *testing.T) {
	for _, minimum := range []float64{-3, -2.99, 0, .7, math.Pi, 5} {
		for _, n := range []int{2, 3, 10, 25} {
			count := 0
			got := goldenSection(-3, 5, n, func(x float64) float64 {
				count++
				if x <= -3 || x >= 5 {
					t.Errorf("evaluated at %v", x)
				}
				return math.Abs(x-minimum) + .1*(x-minimum)*(x-minimum)
			})
			within := 8 * math.Pow(.6181, float64(n-1))
			if count != n || math.Abs(got.X-minimum) > within {
				t.Errorf("minimum %v: %v after %d of %d evaluations; want within %.4f", minimum, got, count, n, within)
			}
		}
	}
}

// A function that is NaN to the one side has its minimum found on the other.
func TestGoldenSectionNaN(t *testing.T) {
	got := goldenSection(0, 1, 30, func(x float64) float64 {
		if x > .5 {
			return math.NaN()
		}
		return (x - .2) * (x - .2)
	})
	if math.Abs(got.X-.2) > 1e-4 {
		t.Errorf("%v; want .2", got)
	}
}
