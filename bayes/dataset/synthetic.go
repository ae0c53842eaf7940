package dataset

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

const synthetic = "synthetic, made by this package"

// checkDraw is an error if a set has no rows, or a noise that is none.
func checkDraw(name string, n int, noise float64) error {
	if n < 1 {
		return fmt.Errorf("dataset %s: n is %d: it must be at least 1", name, n)
	}
	if !(noise >= 0) || math.IsInf(noise, 0) {
		return fmt.Errorf("dataset %s: the noise is %v: it must be finite and at least 0", name, noise)
	}
	return nil
}

// Crescent draws n observations of the model whose posterior is a crescent (the OHSMC paper, section 4.1):
//
//	phi ~ N(0, diag(2, 1)),  y | phi ~ N(phi_1/psi + (phi_0^2 + psi^2)/2, 1)
//
// at phi = 0, so y ~ N(psi^2/2, 1); the paper takes n = 100 at psi = 1. There is no feature: X is one column of ones,
// [n, 1], so that the set can be split and batched like any other. n must be at least 1, psi finite and not 0.
func Crescent(n int, psi float64, seed uint64) (*Dataset, error) {
	if err := checkDraw("crescent", n, 1); err != nil {
		return nil, err
	}
	if psi == 0 || math.IsNaN(psi) || math.IsInf(psi, 0) {
		return nil, fmt.Errorf("dataset crescent: psi is %v: it must be finite and not 0", psi)
	}
	rng := newRand("crescent", seed, 0)
	x := mat.NewDense(n, 1, nil)
	d := &Dataset{Name: "crescent", Title: "Crescent", Source: synthetic, Features: []string{"one"}, Target: "y",
		X: x, Y: make([]float64, n)}
	for i := range n {
		x.Set(i, 0, 1)
		d.Y[i] = psi*psi/2 + rng.NormFloat64()
	}
	return d, nil
}

// SinTanh draws n rows of the 1-d regression of the OHSMC paper: x ~ U(-6, 6), y = x sin(x tanh x) + N(0, 1). The true
// function is [SinTanhMean]. n must be at least 1.
func SinTanh(n int, seed uint64) (*Dataset, error) {
	return curve("sin_tanh", "x sin(x tanh x) plus noise", n, 1, seed, func(u float64) float64 { return -6 + 12*u },
		SinTanhMean)
}

// SinTanhMean is x sin(x tanh x), the mean of y in [SinTanh].
func SinTanhMean(x float64) float64 { return x * math.Sin(x*math.Tanh(x)) }

// NoisyLine draws n rows of a linear regression: x ~ U(-1, 1), y = 0.3 + 0.5 x + N(0, noise^2). n must be at least 1,
// noise finite and at least 0.
func NoisyLine(n int, noise float64, seed uint64) (*Dataset, error) {
	return curve("line", "Line with noise", n, noise, seed, func(u float64) float64 { return 2*u - 1 },
		func(x float64) float64 { return .3 + .5*x })
}

// GappedWave draws n rows of a 1-d regression with a gap: x uniform on (-3, -1) and (1, 3), y = GappedWaveMean(x) +
// N(0, noise^2). n must be at least 1, noise finite and at least 0.
func GappedWave(n int, noise float64, seed uint64) (*Dataset, error) {
	return curve("gapped_wave", "Wave with a gap", n, noise, seed, func(u float64) float64 {
		if u < .5 {
			return -3 + 4*u
		}
		return -1 + 4*u
	}, GappedWaveMean)
}

// GappedWaveMean is sin(2x)/2 + x/4, the mean of y in [GappedWave].
func GappedWaveMean(x float64) float64 { return math.Sin(2*x)/2 + x/4 }

// curve draws rows of one feature, x = place(u) of a uniform u, and y = mean(x) with noise.
func curve(name, title string, n int, noise float64, seed uint64, place, mean func(float64) float64) (*Dataset, error) {
	if err := checkDraw(name, n, noise); err != nil {
		return nil, err
	}
	rng := newRand(name, seed, 0)
	values := mat.NewDense(n, 1, nil)
	d := &Dataset{Name: name, Title: title, Source: synthetic, Features: []string{"x"}, Target: "y",
		X: values, Y: make([]float64, n)}
	for i := range n {
		x := place(rng.Float64())
		values.Set(i, 0, x)
		d.Y[i] = mean(x) + noise*rng.NormFloat64()
	}
	return d, nil
}
