package fit

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// On linear data with normal noise, and on classes that are normal with one covariance, the linear model's density is
// the true one, up to what its coefficients cost: half a nat each over the number of rows. A column twice and a
// constant one make no difference.
func TestLinear(t *testing.T) {
	const rows, tests = 4000, 2000
	rng := rand.New(rand.NewPCG(5, 1))
	for _, c := range []struct {
		name    string
		classes []string
		target  func(x []float64) (y, truth float64) // truth is log p(y | x)
	}{
		{"regression", nil, func(x []float64) (float64, float64) {
			noise := distuv.Normal{Mu: 50 + 3*x[0] - x[1], Sigma: 2}
			y := noise.Mu + 2*rng.NormFloat64()
			return y, noise.LogProb(y)
		}},
		{"three classes", []string{"a", "b", "c"}, func(x []float64) (float64, float64) {
			class := rng.IntN(3)
			x[0] += 2 * float64(class)
			x[1] -= float64(class * class)
			var logs [3]float64
			sum := 0.
			for k := range logs {
				a, b := x[0]-2*float64(k), x[1]+float64(k*k)
				logs[k] = -(a*a + b*b) / 2
			}
			for k := range logs {
				sum += math.Exp(logs[k])
			}
			return float64(class), logs[class] - math.Log(sum)
		}},
	} {
		d := &dataset.Dataset{Name: c.name, Features: []string{"a", "b", "b again", "one"}, Target: "y", Classes: c.classes}
		if c.classes != nil {
			d.Task = dataset.Classification
		}
		x, truth := mat.NewDense(rows+tests, 4, nil), make([]float64, rows+tests)
		for i := range truth {
			at := []float64{rng.NormFloat64(), rng.NormFloat64()}
			y, log := c.target(at)
			x.SetRow(i, []float64{at[0], at[1], at[1], 7})
			d.Y, truth[i] = append(d.Y, y), log
		}
		d.X = x
		cut := make([]int, rows+tests)
		for i := range cut {
			cut[i] = i
		}
		train := computetest.Must(d.Subset(cut[:rows]))
		test := computetest.Must(d.Subset(cut[rows:]))
		got := newLinear(train).logDensity(test)
		for i := range got {
			got[i] = truth[rows+i] - got[i]
		}
		mean, stdDev := stat.MeanStdDev(got, nil)
		if math.Abs(mean) > 6./(2*rows)+4*stdDev/math.Sqrt(tests) || stdDev > .1 {
			t.Errorf("%s: the true density is higher by %.4f a row, with a deviation of %.4f", c.name, mean, stdDev)
		}
		if few, err := d.Subset(cut[:9]); err != nil || newLinear(few) != nil {
			t.Errorf("%s: nine rows of four features have a linear model (%v)", c.name, err)
		}
	}
}
