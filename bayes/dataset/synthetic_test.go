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
		mean, sd := meanStdDev(d.Y)
		if math.Abs(mean-psi*psi/2) > 5/math.Sqrt(n) || math.Abs(sd*sd-1) > 5*math.Sqrt(2./n) {
			t.Errorf("psi = %v: got mean %v, variance %v", psi, mean, sd*sd)
		}
		if column := mat.Col(nil, 0, d.X); d.Dims() != 1 || slices.Max(column) != 1 || slices.Min(column) != 1 {
			t.Error("X is not one column of ones")
		}
	}
}

// TestSinTanhMoments: x is uniform on (-6, 6), variance 12; the residuals are N(0, 1) and know nothing of x. Limits of
// 5 standard errors.
func TestSinTanhMoments(t *testing.T) {
	const n = 100000
	d, err := SinTanh(n, 1)
	if err != nil {
		t.Fatal(err)
	}
	residuals := make([]float64, n)
	product := 0.0
	for i := range n {
		x := d.X.At(i, 0)
		if x < -6 || x > 6 {
			t.Fatalf("x is %v", x)
		}
		residuals[i] = d.Y[i] - x*math.Sin(x*math.Tanh(x))
		product += x * residuals[i]
	}
	x := FitScaler(d.X)
	mean, sd := meanStdDev(residuals)
	if math.Abs(x.Mean[0]) > 5*math.Sqrt(12./n) || math.Abs(x.StdDev[0]*x.StdDev[0]-12) > 5*math.Sqrt((6*6*6*6/5.-144)/n) {
		t.Errorf("x has mean %v, variance %v", x.Mean[0], x.StdDev[0]*x.StdDev[0])
	}
	if math.Abs(mean) > 5/math.Sqrt(n) || math.Abs(sd*sd-1) > 5*math.Sqrt(2./n) ||
		math.Abs(product/n) > 5*math.Sqrt(12./n) {
		t.Errorf("the noise has mean %v, variance %v, covariance with x %v", mean, sd*sd, product/n)
	}
}

// TestTwoMoonsWithoutNoise: every point lies on its half circle, and the points of each are evenly spaced with both
// ends among them.
func TestTwoMoonsWithoutNoise(t *testing.T) {
	for _, n := range []int{2, 3, 101, 300} {
		d, err := TwoMoons(n, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		var angles [2][]float64
		for i, y := range d.Y {
			a, b := d.X.At(i, 0), d.X.At(i, 1)
			if y == 1 { // the lower moon is the upper one turned by half a turn about (1/2, 1/4)
				a, b = 1-a, .5-b
			}
			if math.Abs(math.Hypot(a, b)-1) > 1e-12 || b < -1e-12 {
				t.Fatalf("n = %d: row %d of class %v is at %v, %v", n, i, y, d.X.At(i, 0), d.X.At(i, 1))
			}
			angles[int(y)] = append(angles[int(y)], math.Acos(max(-1, min(1, a))))
		}
		if len(angles[0]) != n/2 || len(angles[1]) != n-n/2 {
			t.Fatalf("n = %d: the moons have %d and %d points", n, len(angles[0]), len(angles[1]))
		}
		for class, list := range angles {
			if n > 100 && slices.IsSorted(list) {
				t.Errorf("n = %d: the rows are not shuffled", n)
			}
			slices.Sort(list)
			for i, got := range list {
				// acos near 0 has half the digits
				if want := math.Pi * float64(i) / float64(max(len(list)-1, 1)); math.Abs(got-want) > 1e-7 {
					t.Errorf("n = %d, class %d: angle %d is %v, want %v", n, class, i, got, want)
				}
			}
		}
	}
}

// TestTwoMoonsNoise: the same seed without noise gives the same points before the noise, whose standard deviation is as
// asked (5 standard errors).
func TestTwoMoonsNoise(t *testing.T) {
	const n, noise = 20000, .3
	clean, err := TwoMoons(n, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	noisy, err := TwoMoons(n, noise, 4)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(clean.Y, noisy.Y) {
		t.Fatal("the labels depend on the noise")
	}
	var diff mat.Dense
	diff.Sub(noisy.X, clean.X)
	s := FitScaler(&diff)
	for j := range 2 {
		if math.Abs(s.Mean[j]) > 5*noise/math.Sqrt(n) || math.Abs(s.StdDev[j]-noise) > 5*noise/math.Sqrt(2*n) {
			t.Errorf("coordinate %d: the noise has mean %v, standard deviation %v", j, s.Mean[j], s.StdDev[j])
		}
	}
}

func TestSyntheticSets(t *testing.T) {
	for name, make := range map[string]func(seed uint64) (*Dataset, error){
		"crescent":  func(seed uint64) (*Dataset, error) { return Crescent(100, 1, seed) },
		"sin_tanh":  func(seed uint64) (*Dataset, error) { return SinTanh(100, seed) },
		"two_moons": func(seed uint64) (*Dataset, error) { return TwoMoons(100, .3, seed) },
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
		{func() (*Dataset, error) { return TwoMoons(1, .3, 0) }, []string{"n is 1", "at least 2"}},
		{func() (*Dataset, error) { return TwoMoons(10, -.3, 0) }, []string{"noise is -0.3"}},
		{func() (*Dataset, error) { return NoisyLine(10, math.Inf(1), 0) }, []string{"noise is +Inf"}},
		{func() (*Dataset, error) { return Control(0, 1, 1) }, []string{"n is 0"}},
	} {
		_, err := tt.make()
		wantError(t, err, tt.want...)
	}
}

// The curves keep to their ranges, the wave out of its gap, and what is left of y without the mean has the noise's
// standard deviation: 20 000 rows, five standard errors.
func TestCurves(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		draw   func(n int, noise float64, seed uint64) (*Dataset, error)
		mean   func(x float64) float64
		lo, hi float64 // of |x|
	}{{NoisyLine, func(x float64) float64 { return .3 + .5*x }, 0, 1}, {GappedWave, GappedWaveMean, 1, 3}} {
		d, err := c.draw(n, .2, 4)
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
		if math.Abs(square/.04-1) > 5*math.Sqrt(2./n) || math.Abs(sum/n) > 5*c.hi/math.Sqrt(n) {
			t.Errorf("%s: noise %v, mean of x %v", d.Name, math.Sqrt(square), sum/n)
		}
	}
}

// Rows of one network have the same distribution whatever their seed, those of another network have not: the share of
// class 1 is within 5 standard errors between seeds, and a logistic regression's direction, the mean of x where y is 1,
// differs between networks.
func TestControl(t *testing.T) {
	const n = 20000
	summary := func(network, seed uint64) (share float64, mean [3]float64) {
		d, err := Control(n, network, seed)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		for row, y := range d.Y {
			share += y / n
			for i := range mean {
				mean[i] += y * d.X.At(row, i) / n
			}
		}
		return share, mean
	}
	one, first := summary(1, 1)
	two, second := summary(1, 2)
	_, other := summary(2, 1)
	within := 5 * math.Sqrt(2.0/n)
	if math.Abs(one-two) > within || one < .02 || one > .98 {
		t.Errorf("shares of class 1: %.3f and %.3f", one, two)
	}
	apart := 0.
	for i := range first {
		if math.Abs(first[i]-second[i]) > within {
			t.Errorf("mean of x[%d] y is %.3f and %.3f", i, first[i], second[i])
		}
		apart = math.Max(apart, math.Abs(first[i]-other[i]))
	}
	if apart < within {
		t.Errorf("two networks are the same: %v and %v", first, other)
	}
}
