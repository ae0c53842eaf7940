package bayes_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"

	"gonum.org/v1/gonum/mat"
)

// linearise is a posterior of the particles of p, linearised at a point, which is given.
func linearise(t *testing.T, p *bayes.Posterior, at []float64) *bayes.Posterior {
	t.Helper()
	draws := computetest.Must(p.Draws())
	draws.LinearisedAt = compute.Floats(draws.Phi.DType(), at, len(at))
	return remade(t, p.Bound(), draws, p.Origin())
}

// A linearised prediction is f(at) + d/dt f(at + t (phi_j - at)) at t = 0, here by central differences of the network's
// own predictions in float64, whose error is of the order of the squared step, 1e-8, and of rounding, 1e-16/1e-4. 1100
// rows of the network with all parameters stochastic need two blocks.
func TestLinearised(t *testing.T) {
	const particles, rows, h = 7, 1100, 1e-4
	x := mat.NewDense(rows, features, wave(rows*features, .37))
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		tolerance := 1e-6
		if dtype == compute.Float32 {
			tolerance = 1e-4
		}
		for i, m := range predicted {
			if !predicts(t, engine, i) {
				continue
			}
			p := newPosterior(t, m.model, m.outputs, particles, dtype).On(engine)
			at := wave(p.Bound().D, .9)
			prediction := predict(t, linearise(t, p, at), x)

			phi := wave(particles*len(at), 1.7) // those of newPosterior
			var around []float64                // at + h (phi_j - at), at - h (phi_j - at) for all j, and at
			for _, step := range []float64{h, -h} {
				for i, v := range phi {
					a := at[i%len(at)]
					around = append(around, a+step*(v-a))
				}
			}
			around = append(around, at...)
			exact := newPosterior(t, m.model, m.outputs, 2*particles+1, compute.Float64)
			draws := computetest.Must(exact.Draws())
			draws.Phi, draws.LogWeights = compute.Floats(compute.Float64, around, 2*particles+1, len(at)),
				bayes.EqualLogWeights(2*particles+1)
			network := remade(t, exact.Bound(), draws, p.Origin())
			f := predict(t, network, x).Outputs
			width := rows * prediction.Width
			var want []float64
			for j := range particles - 1 { // the last has no weight
				for i := range width {
					want = append(want, f[2*particles*width+i]+(f[j*width+i]-f[(particles+j)*width+i])/(2*h))
				}
			}
			computetest.Near(t, m.name, prediction.Outputs, want, tolerance)
		}
	})
}

// Linearised at a particle, that particle's prediction is the network's own; a model that is linear in what is
// stochastic is its own linearisation anywhere.
func TestLinearisedIsExact(t *testing.T) {
	x := mat.NewDense(5, features, wave(5*features, .37))
	last := bayes.Model{Network: mlp, Likelihood: bayes.Categorical{}, Stochastic: bayes.Layers(3)}
	p := newPosterior(t, last, 4, 6, compute.Float64)
	computetest.Near(t, "last layer", predict(t, linearise(t, p, wave(p.Bound().D, .9)), x).Outputs,
		predict(t, p, x).Outputs, 1e-10)

	p = newPosterior(t, predicted[2].model, 1, 6, compute.Float64)
	phi := wave(6*p.Bound().D, 1.7)
	network := predict(t, p, x).Outputs
	linear := predict(t, linearise(t, p, phi[2*p.Bound().D:3*p.Bound().D]), x).Outputs
	computetest.Near(t, "at the third particle", linear[10:15], network[10:15], 1e-10)
	if apart := math.Abs(linear[0] - network[0]); apart < .01 {
		t.Errorf("the first particle's linearised output is within %v of the network's", apart)
	}
}

// A linearised posterior is read back as one, to the same predictions; its copies are too; and a file that says
// otherwise than it holds is refused.
func TestSaveLinearised(t *testing.T) {
	x := mat.NewDense(5, features, wave(5*features, .37))
	p := newPosterior(t, predicted[3].model, 3, 4, compute.Float32)
	linear := linearise(t, p, wave(p.Bound().D, .9))
	path := filepath.Join(t.TempDir(), "linear")
	computetest.NoError(t, linear.Save(path))
	loaded := computetest.Must(bayes.Load(path))
	draws := computetest.Must(linear.Draws())
	copied := remade(t, linear.Bound(), draws, p.Origin())
	want := predict(t, linear, x).Outputs
	for name, other := range map[string]*bayes.Posterior{"loaded": loaded.On(computetest.Go(t)), "copied": copied} {
		computetest.Near(t, name, predict(t, other, x).Outputs, want, 0)
	}

	for name, spoil := range map[string]func(f *tensorfile.File){
		"without the point":   tensor("linearised_at", nil),
		"of the other format": replaced("gobnn.posterior.linearised/2", "gobnn.posterior/2"),
		"of another length":   tensor("linearised_at", compute.Floats(compute.Float32, []float64{1}, 1)),
	} {
		file := computetest.Must(tensorfile.Read(path))
		spoil(&file)
		other := filepath.Join(t.TempDir(), "spoilt")
		computetest.NoError(t, tensorfile.Write(other, file))
		if _, err := bayes.Load(other); err == nil || !strings.Contains(strings.ToLower(err.Error()), "linearised") {
			t.Errorf("%s: error %v, want one that says what is wrong about the linearisation", name, err)
		}
	}
}
