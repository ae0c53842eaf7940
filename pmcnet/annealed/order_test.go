package annealed

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

func bound(t *testing.T, network nn.Network, prior bayes.Prior) *bayes.BoundModel {
	t.Helper()
	b, err := bayes.Model{
		Network: network, Prior: prior, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// output is the network's at a point, from the definition.
func output(b *bayes.BoundModel, phi, x []float64) float64 {
	network := b.Model.Network.(nn.MLP)
	of := func(name string) []float64 {
		for _, s := range b.Slots {
			if s.Name == name {
				return phi[s.Offset : s.Offset+s.Size()]
			}
		}
		panic(name)
	}
	for l := range len(network.Hidden) + 1 {
		number := string(rune('1' + l))
		w, bias := of("layer"+number+"/weights"), of("layer"+number+"/biases")
		next := slices.Clone(bias)
		for i := range next {
			for k, v := range x {
				next[i] += w[i*len(x)+k] * v
			}
			if l == len(network.Hidden) {
				continue
			}
			if next[i] = math.Tanh(next[i]); network.Activation == nn.ReLU {
				next[i] = max(0, math.Atanh(next[i]))
			}
		}
		x = next
	}
	return x[0]
}

// Putting a particle into canonical order leaves the network's function as it is, and doing it again changes nothing;
// all images of a particle under the symmetries, |G| of them, come to the same, and one of them alone is in order.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		activation nn.Activation
		images     int
	}{{nn.Tanh, 6 * 8 * 2 * 4}, {nn.ReLU, 6 * 2}} {
		b := bound(t, nn.MLP{Hidden: []int{3, 2}, Activation: c.activation}, bayes.Normal{})
		rng := rand.New(rand.NewPCG(1, 2))
		particles := mat.NewDense(50, b.D, nil)
		particles.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, particles)
		o, learnt := newOrder(b), mat.DenseCopyOf(particles)
		o.learn(learnt)
		if math.Abs(math.Exp(o.logImages)-float64(c.images)) > 1e-9 {
			t.Errorf("%s: %v images, want %d", c.activation, math.Exp(o.logImages), c.images)
		}
		for j := range 50 {
			phi := slices.Clone(particles.RawRowView(j))
			o.apply(phi)
			if !slices.Equal(phi, learnt.RawRowView(j)) || !o.inside(phi) {
				t.Fatalf("%s: particle %d is not in order after apply", c.activation, j)
			}
			again := slices.Clone(phi)
			if o.apply(again); !slices.Equal(again, phi) {
				t.Fatalf("%s: particle %d changes when put into order again", c.activation, j)
			}
			x := []float64{rng.NormFloat64(), rng.NormFloat64()}
			computetest.Near(t, "output", []float64{output(b, phi, x)}, []float64{output(b, particles.RawRowView(j), x)}, 1e-12)
			inside := 0
			images(o, 0, slices.Clone(phi), func(image []float64) {
				computetest.Near(t, "an image's output", []float64{output(b, image, x)}, []float64{output(b, phi, x)}, 1e-12)
				if o.inside(image) {
					inside++
				}
				if o.apply(image); !slices.Equal(image, phi) {
					t.Fatalf("%s: an image of particle %d comes to another order", c.activation, j)
				}
			})
			if inside != 1 {
				t.Fatalf("%s: %d images of particle %d are in order, not one", c.activation, inside, j)
			}
		}
	}
}

// images calls f with each image of phi under exchanges and, where mirrored, changes of sign of the units of layers
// from l on.
func images(o order, l int, phi []float64, f func([]float64)) {
	if l == len(o.layers) {
		f(slices.Clone(phi))
		return
	}
	layer := o.layers[l]
	signs := 1
	if layer.mirrored {
		signs = 1 << layer.n
	}
	for _, from := range permutations(layer.n) {
		for s := range signs {
			image := slices.Clone(phi)
			for i, k := range from {
				sign := 1 - 2*float64(s>>i&1)
				for c := range layer.inputs {
					image[layer.in+i*layer.inputs+c] = sign * phi[layer.in+k*layer.inputs+c]
				}
				image[layer.bias+i] = sign * phi[layer.bias+k]
				for c := range layer.outputs {
					image[layer.out+c*layer.n+i] = sign * phi[layer.out+c*layer.n+k]
				}
			}
			images(o, l+1, image, f)
		}
	}
}

func permutations(n int) (out [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			out = append(out, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return out
}

// oneSided is a prior that is not known to be symmetric.
type oneSided struct{ bayes.Normal }

// wrapped is a network that is not an nn.MLP.
type wrapped struct{ nn.MLP }

// Where the symmetries are not known there is no order, nothing is moved, and all is inside.
func TestNoOrder(t *testing.T) {
	two := nn.MLP{Hidden: []int{2}}
	for _, b := range []*bayes.BoundModel{
		bound(t, wrapped{two}, bayes.Normal{}), bound(t, two, oneSided{}), bound(t, nn.MLP{}, bayes.Normal{}),
	} {
		o := newOrder(b)
		phi := make([]float64, b.D)
		for i := range phi {
			phi[i] = float64(i*7%5) - 2
		}
		before := slices.Clone(phi)
		o.learn(mat.NewDense(1, b.D, phi))
		if o.apply(phi); o.logImages != 0 || !slices.Equal(phi, before) || !o.inside(phi) {
			t.Errorf("%T, %T: %+v", b.Model.Network, b.Model.Prior, o)
		}
	}
	if o := newOrder(bound(t, two, bayes.LearntPrecision{})); len(o.layers) != 1 {
		t.Errorf("LearntPrecision: %+v", o)
	}
}
