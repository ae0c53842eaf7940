package study

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
)

// The data of seed 18 are those that numpy made, with numpy.random.default_rng(18) and jax's float32: some of the
// weights W1[0, 0], W1[0, 1], W1[0, 2], the last three weights, the first and the last row of x, and y there, in the
// file that package target's test reads (testdata/surrogates_n10000.safetensors).
func TestNumpyNormals(t *testing.T) {
	c := surrogateCases()[0]
	rows, test, truth := c.data()
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("W1[0, 0]", truth[0], -.43234000554110225, 1e-14)
	near("W1[0, 1]", truth[10], -1.130096771890423, 1e-14)
	near("W1[0, 2]", truth[20], .6738436579279797, 1e-14)
	near("b2", truth[120], -.6464698101790399, 1e-14)
	near("the last test row", test.At(49, 9), -1.041983723640442, 0)
	near("x[0, 0]", rows.X.At(0, 0), .25569015741348267, 0)
	near("the last x", rows.X.At(9999, 9), -.9672845602035522, 0)
	for i, want := range []float64{-1.6124498844146729, .21656295657157898, -4.608386039733887} {
		near("y", rows.Y[i], want, 1e-6)
	}
	near("the last y", rows.Y[9999], 6.850131988525391, 1e-6)
}

// Cases are named by their network, rows and seed; those that the options ask for, and what is refused.
func TestSurrogateCases(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "10-10-1, N = 10000; 10-50-10-1, N = 10000"},
		{Options{Rows: 500, Hidden: []int{4}, Seed: 7, Activation: "relu"}, "10-4-1 ReLU, N = 500, seed 7"},
		{Options{Rows: 30_000}, "10-10-1, N = 30000"},
		{Options{Data: []string{"10-10-1, N = 100000"}}, "10-10-1, N = 100000"},
		{Options{Data: []string{"10-50-10-1", "N = 10000", "10-10-1", "N = 100000"}},
			"10-10-1, N = 100000; 10-50-10-1, N = 10000"},
	} {
		cases, err := surrogatesAsked(c.o)
		var names []string
		for _, one := range cases {
			names = append(names, one.name())
		}
		if got := strings.Join(names, "; "); err != nil || got != c.want {
			t.Errorf("%+v: %q, want %q: %v", c.o, got, c.want, err)
		}
	}
	for want, o := range map[string]Options{
		"-rows 50": {Rows: 50}, "no data set": {Data: []string{"wine"}}, "tanh or relu": {Activation: "swish"},
		"by one of them": {Data: []string{"10-10-1, N = 10000"}, Rows: 500}, "trains nothing": {Epochs: 3},
	} {
		if _, err := surrogatesAsked(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for d, c := range map[int]surrogateCase{121: surrogateCases()[0], 1071: surrogateCases()[2]} {
		c.rows = 100
		_, _, truth := c.data()
		if len(truth) != d {
			t.Errorf("%s has %d weights, want %d", c.name(), len(truth), d)
		}
	}
}

// The effective size of f is the least of that of f and of its square about the mean, and at most the draws: draws
// that step from side to side are good for the mean and not for the spread, draws that stand still are none. Of three
// draws a chain there is none.
func TestFunctionESS(t *testing.T) {
	const draws = 200
	p := bayes.Prediction{Outputs: make([]float64, 2*draws), Particles: draws, Rows: 2, Width: 1, Chains: 1}
	for j := range draws {
		p.Outputs[2*j] = 1
		p.Outputs[2*j+1] = math.Pow(-1, float64(j)) * (1 + float64(j/20))
	}
	sizes, err := functionESS(p)
	if err != nil || sizes[0] != 0 || sizes[1] > 20 {
		t.Errorf("%v, want none and few: %v", sizes, err)
	}
	p.Particles = 3
	if sizes, err := functionESS(p); err != nil || sizes != nil {
		t.Errorf("of three draws: %v, want nil: %v", sizes, err)
	}
}
