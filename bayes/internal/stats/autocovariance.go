package stats

import (
	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// directLags is the number of lags that are summed directly before a Fourier transform computes all at once. Chains
// that mix well need about ten lags, which is less work than a transform.
const directLags = 64

// autocovariance gives the autocovariance of several chains, averaged over them, at one lag after another.
type autocovariance struct {
	centred []float64 // [chains, n], each chain less its mean
	n       int
	all     []float64 // at lags 0 to n-1, if the transform was needed
	done    bool      // all is filled in

	fft    *fourier.FFT
	padded []float64
	coeff  []complex128
	power  []complex128
}

// load takes chains of n draws, and returns their mean variance W and the variance estimate var+ = (n-1)/n W + B/n,
// where B/n is the variance of the chains' means.
func (a *autocovariance) load(x []float64, n int) (within, total float64) {
	a.centred, a.n, a.done = append(a.centred[:0], x...), n, false
	means := make([]float64, len(x)/n)
	for m := range means {
		own := a.centred[m*n : (m+1)*n]
		means[m] = stat.Mean(own, nil)
		floats.AddConst(-means[m], own)
	}
	variance := a.at(0)
	return variance * float64(n) / float64(n-1), variance + stat.Variance(means, nil)
}

// at is the mean over chains of 1/n sum_i x_i x_{i+lag}.
func (a *autocovariance) at(lag int) float64 {
	if lag >= directLags {
		if !a.done {
			a.transform()
		}
		return a.all[lag]
	}
	sum := 0.0
	for at := 0; at < len(a.centred); at += a.n {
		own := a.centred[at : at+a.n]
		sum += floats.Dot(own[:a.n-lag], own[lag:])
	}
	return sum / float64(len(a.centred))
}

// transform fills all: the inverse transform of the power spectrum is the circular autocovariance, and padding with
// zeros to twice the length keeps the ends from overlapping. Power spectra are added up over chains, so one inverse
// transform is enough.
func (a *autocovariance) transform() {
	length := 1
	for length < 2*a.n {
		length *= 2
	}
	if a.fft == nil || a.fft.Len() != length {
		a.fft = fourier.NewFFT(length)
		a.padded = make([]float64, length)
		a.coeff = make([]complex128, length/2+1)
		a.power = make([]complex128, length/2+1)
	}
	clear(a.power)
	for at := 0; at < len(a.centred); at += a.n {
		clear(a.padded[copy(a.padded, a.centred[at:at+a.n]):])
		a.fft.Coefficients(a.coeff, a.padded)
		for i, c := range a.coeff {
			a.power[i] += complex(real(c)*real(c)+imag(c)*imag(c), 0)
		}
	}
	a.fft.Sequence(a.padded, a.power)
	a.all = append(a.all[:0], a.padded[:a.n]...)
	floats.Scale(1/(float64(length)*float64(len(a.centred))), a.all)
	a.done = true
}
