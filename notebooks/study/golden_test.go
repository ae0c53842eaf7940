package study

import (
	"errors"
	"math"
	"testing"
)

// With n evaluations the best place is within .618^(n-2) of the interval's length of the minimum, wherever that lies.
func TestGoldenSection(t *testing.T) {
	for _, minimum := range []float64{-3, -2.99, 0, .7, math.Pi, 5} {
		for _, n := range []int{2, 3, 10, 25} {
			count := 0
			got, err := goldenSection(-3, 5, n, func(x float64) (float64, error) {
				count++
				if x <= -3 || x >= 5 {
					t.Errorf("evaluated at %v", x)
				}
				return math.Abs(x-minimum) + .1*(x-minimum)*(x-minimum), nil
			})
			within := 8 * math.Pow(.6181, float64(n-1))
			if err != nil || count != n || math.Abs(got.X-minimum) > within {
				t.Errorf("minimum %v: %v after %d of %d evaluations, %v; want within %.4f", minimum, got, count, n, err, within)
			}
		}
	}
}

// A function that is NaN to the one side has its minimum found on the other, and an error comes back with the best so
// far.
func TestGoldenSectionFaults(t *testing.T) {
	got, err := goldenSection(0, 1, 30, func(x float64) (float64, error) {
		if x > .5 {
			return math.NaN(), nil
		}
		return (x - .2) * (x - .2), nil
	})
	if err != nil || math.Abs(got.X-.2) > 1e-4 {
		t.Errorf("%v, %v; want .2", got, err)
	}
	stop := errors.New("enough")
	count := 0
	got, err = goldenSection(0, 1, 30, func(x float64) (float64, error) {
		if count++; count > 2 {
			return 0, stop
		}
		return x, nil
	})
	if !errors.Is(err, stop) || count != 3 || math.Abs(got.X-.381966) > 1e-6 {
		t.Errorf("%v after %d, %v", got, count, err)
	}
}
