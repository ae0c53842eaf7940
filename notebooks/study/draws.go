package study

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/mat"
)

// The papers' synthetic sets of which each has one study.

const drawn = "synthetic, made by this package"

// stream is a generator that depends on (purpose, seed, counter) only, which are the key of ChaCha8.
func stream(purpose string, seed, counter uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], counter)
	copy(key[16:], purpose)
	return rand.New(rand.NewChaCha8(key))
}

// drawMoons draws n points on two interleaved half circles, as scikit-learn's make_moons does. Class 0 has n/2 points
// (rounded down) at (cos t, sin t), class 1 the others at (1 - cos t, 1/2 - sin t), each with t evenly spaced from 0 to
// pi. Both coordinates get Gaussian noise with the given standard deviation. The rows are shuffled.
func drawMoons(n int, noise float64, seed uint64) *dataset.Dataset {
	rng := stream("two_moons", seed, 0)
	x := mat.NewDense(n, 2, nil)
	d := &dataset.Dataset{
		Name: "two_moons", Title: "Two moons", Source: drawn, Task: dataset.BinaryClassification,
		Features: []string{"x0", "x1"}, Target: "moon", Classes: []string{"upper", "lower"}, X: x,
		Y: make([]float64, n),
	}
	upper := n / 2
	for i, row := range rng.Perm(n) {
		if i < upper {
			sin, cos := math.Sincos(angle(i, upper))
			x.SetRow(row, []float64{cos, sin})
		} else {
			sin, cos := math.Sincos(angle(i-upper, n-upper))
			x.SetRow(row, []float64{1 - cos, .5 - sin})
			d.Y[row] = 1
		}
	}
	for i := range n {
		for j := range 2 {
			x.Set(i, j, x.At(i, j)+noise*rng.NormFloat64())
		}
	}
	return d
}

// angle is point i of n evenly spaced from 0 to pi, both ends among them; a single point is at 0.
func angle(i, n int) float64 { return math.Pi * float64(i) / float64(max(n-1, 1)) }

// drawControl draws n rows of the control experiment of the PMCnet paper (section 4.2.1). A network 3-3-1 with tanh
// units gets weights and biases from N(0, 2^2), by the seed called network. x ~ N(0, I), and y is 1 with the network's
// probability, 1/(1 + exp(-f(x))). Sets of one network and several seeds are samples of the same distribution, such as
// a training and a test part.
func drawControl(n int, network, seed uint64) *dataset.Dataset {
	const inputs, hidden, scale = 3, 3, 2
	weights := stream("control network", network, 0)
	var in [hidden][inputs + 1]float64 // the last is the bias
	var out [hidden + 1]float64
	for h := range in {
		for i := range in[h] {
			in[h][i] = scale * weights.NormFloat64()
		}
	}
	for h := range out {
		out[h] = scale * weights.NormFloat64()
	}
	rng := stream("control", seed, network)
	values := mat.NewDense(n, inputs, nil)
	d := &dataset.Dataset{Name: "control", Title: "Control network", Source: drawn, Task: dataset.BinaryClassification,
		Features: []string{"x0", "x1", "x2"}, Target: "y", Classes: []string{"0", "1"},
		X: values, Y: make([]float64, n)}
	for row := range n {
		f := out[hidden]
		x := values.RawRowView(row)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for h, w := range in {
			sum := w[inputs]
			for i, v := range x {
				sum += w[i] * v
			}
			f += out[h] * math.Tanh(sum)
		}
		if rng.Float64() < 1/(1+math.Exp(-f)) {
			d.Y[row] = 1
		}
	}
	return d
}
