package study

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

// TestTwoMoonsWithoutNoise: every point lies on its half circle, and the points of each are evenly spaced with both
// ends among them.
func TestTwoMoonsWithoutNoise(t *testing.T) {
	for _, n := range []int{2, 3, 101, 300} {
		d := drawMoons(n, 0, 4)
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
	clean := drawMoons(n, 0, 4)
	noisy := drawMoons(n, noise, 4)
	if !slices.Equal(clean.Y, noisy.Y) {
		t.Fatal("the labels depend on the noise")
	}
	var diff mat.Dense
	diff.Sub(noisy.X, clean.X)
	s := dataset.FitScaler(&diff)
	for j := range 2 {
		if math.Abs(s.Mean[j]) > 5*noise/math.Sqrt(n) || math.Abs(s.StdDev[j]-noise) > 5*noise/math.Sqrt(2*n) {
			t.Errorf("coordinate %d: the noise has mean %v, standard deviation %v", j, s.Mean[j], s.StdDev[j])
		}
	}
}

// Rows of one network have the same distribution whatever their seed, those of another network have not: the share of
// class 1 is within 5 standard errors between seeds, and a logistic regression's direction, the mean of x where y is 1,
// differs between networks.
func TestControl(t *testing.T) {
	const n = 20000
	summary := func(network, seed uint64) (share float64, mean [3]float64) {
		d := drawControl(n, network, seed)
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
