package dataset

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestCrescentMoments: the mean of y is psi^2/2, its variance 1. With n = 10^5 the limits are 5 standard errors:
// 1/sqrt(n) and sqrt(2/n).
func TestCrescentMoments(t *testing.T) {
	const n = 100000
	for _, psi := range []float64{1, -2} {
		d, err := Crescent(n, psi, 1)
		if err != nil {
			t.Fatal(err)
		}
		mean, sd, _ := meanStdDev(d.Y)
		if math.Abs(mean-psi*psi/2) > 5/math.Sqrt(n) || math.Abs(sd*sd-1) > 5*math.Sqrt(2./n) {
			t.Errorf("psi = %v: got mean %v, variance %v", psi, mean, sd*sd)
		}
		if column := mat.Col(nil, 0, d.X); d.Dims() != 1 || slices.Max(column) != 1 || slices.Min(column) != 1 {
			t.Error("X is not one column of ones")
		}
	}
}

func TestSyntheticSets(t *testing.T) {
	for name, make := range map[string]func(seed uint64) (*Dataset, error){
		"crescent": func(seed uint64) (*Dataset, error) { return Crescent(100, 1, seed) },
		"sin_tanh": func(seed uint64) (*Dataset, error) { return SinTanh(100, seed) },
	} {
		a, errA := make(1)
		b, errB := make(1)
		c, errC := make(2)
		if errA != nil || errB != nil || errC != nil {
			t.Fatal(name, errA, errB, errC)
		}
		if err := a.Validate(); err != nil || a.Rows() != 100 || a.Name != name {
			t.Errorf("%s: %d rows, name %s, error %v", name, a.Rows(), a.Name, err)
		}
		if a.Hash() != b.Hash() || a.Hash() == c.Hash() {
			t.Errorf("%s: the data do not follow the seed", name)
		}
	}
}

func TestSyntheticErrors(t *testing.T) {
	for _, tt := range []struct {
		make func() (*Dataset, error)
		want []string
	}{
		{func() (*Dataset, error) { return Crescent(0, 1, 0) }, []string{"n is 0"}},
		{func() (*Dataset, error) { return Crescent(10, 0, 0) }, []string{"psi is 0"}},
		{func() (*Dataset, error) { return SinTanh(-1, 0) }, []string{"n is -1"}},
		{func() (*Dataset, error) { return NoisyLine(10, math.Inf(1), 0) }, []string{"noise is +Inf"}},
	} {
		_, err := tt.make()
		wantError(t, err, tt.want...)
	}
}

// The curves keep to their ranges, the wave out of its gap, and what is left of y without the mean has the noise's
// standard deviation: 20 000 rows, five standard errors.
func TestCurves(t *testing.T) {
	const n = 20_000
	sinTanh := func(n int, _ float64, seed uint64) (*Dataset, error) { return SinTanh(n, seed) }
	for _, c := range []struct {
		draw          func(n int, noise float64, seed uint64) (*Dataset, error)
		mean          func(x float64) float64
		lo, hi, noise float64 // lo and hi of |x|
	}{{NoisyLine, func(x float64) float64 { return .3 + .5*x }, 0, 1, .2}, {GappedWave, GappedWaveMean, 1, 3, .2},
		{sinTanh, func(x float64) float64 { return x * math.Sin(x*math.Tanh(x)) }, 0, 6, 1}} {
		d, err := c.draw(n, c.noise, 4)
		if err != nil {
			t.Fatal(err)
		}
		square, sum := 0., 0.
		for i, y := range d.Y {
			x := d.X.At(i, 0)
			if math.Abs(x) < c.lo || math.Abs(x) > c.hi {
				t.Fatalf("%s: x = %v", d.Name, x)
			}
			sum += x
			square += (y - c.mean(x)) * (y - c.mean(x)) / n
		}
		if math.Abs(square/(c.noise*c.noise)-1) > 5*math.Sqrt(2./n) || math.Abs(sum/n) > 5*c.hi/math.Sqrt(n) {
			t.Errorf("%s: noise %v, mean of x %v", d.Name, math.Sqrt(square), sum/n)
		}
	}
}
