package surrogate

import (
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// This file is the coordinates of a whitening: from theta to z and back, for one place on the host and for all chains
// in a graph, and a problem whose target has them.

// zOf returns the coordinates z of theta, W^-1 (theta - c): [D].
func (w *whitening) zOf(theta []float64) []float64 {
	d := len(theta)
	delta := slices.Clone(theta)
	floats.Sub(delta, w.mode)
	z := make([]float64, d)
	for i, x := range delta {
		floats.AddScaled(z, x, w.toZ[i*d:(i+1)*d])
	}
	return z
}

// theta is c + W z, the inverse of zOf: [D].
func (w *whitening) theta(z []float64) []float64 {
	d := len(z)
	out := make([]float64, d)
	for i := range d {
		floats.AddScaled(out, z[i], w.toTheta[i*d:(i+1)*d])
	}
	floats.Add(out, w.mode)
	return out
}

// pull is W' g: it takes a gradient with respect to theta, [D], to the gradient with respect to z (the chain rule).
func (w *whitening) pull(g []float64) []float64 {
	d := len(g)
	out := make([]float64, d)
	for i := range d { // g ToTheta' as a row
		out[i] = floats.Dot(w.toTheta[i*d:(i+1)*d], g)
	}
	return out
}

// graphWhitening is a whitening in a graph, whose numbers are entries of a problem's data.
type graphWhitening struct{ mode, toZ, toTheta *Node }

// whiteningPrefix begins the names of a whitening's tensors among a problem's data.
const whiteningPrefix = "whitening/"

// tensors returns the whitening's numbers by their names.
func (w *whitening) tensors(dtype compute.DType) map[string]*tensors.Tensor {
	d := len(w.mode)
	return map[string]*tensors.Tensor{
		whiteningPrefix + "mode":     compute.Floats(dtype, w.mode, 1, d),
		whiteningPrefix + "to_z":     compute.Floats(dtype, w.toZ, d, d),
		whiteningPrefix + "to_theta": compute.Floats(dtype, w.toTheta, d, d),
	}
}

// whiteningOf takes a whitening's numbers from a problem's data.
func whiteningOf(data compute.Nodes) graphWhitening {
	return graphWhitening{
		data[whiteningPrefix+"mode"], data[whiteningPrefix+"to_z"], data[whiteningPrefix+"to_theta"],
	}
}

// wide repeats x, [1, n], for each of like's rows.
func wide(x, like *Node) *Node {
	return BroadcastToDims(x, like.Shape().Dim(0), x.Shape().Dim(1))
}

// z returns the coordinates z, [J, D], of theta, [J, D].
func (w graphWhitening) z(theta *Node) *Node {
	return Dot(Sub(theta, wide(w.mode, theta)), w.toZ).Product()
}

// theta returns the parameters theta, [J, D], of z, [J, D].
func (w graphWhitening) theta(z *Node) *Node {
	return Add(wide(w.mode, z), Dot(z, w.toTheta).Product())
}

// pull is W' g: it turns gradients with respect to theta, [J, D], into gradients with respect to z.
func (w graphWhitening) pull(g *Node) *Node { return Einsum("jd,kd->jk", g, w.toTheta) }

// starts returns starting points around the mode: theta, [chains, D], of draws z ~ N(0, 1/4).
func (w *whitening) starts(chains int, dtype compute.DType, seed uint64) *tensors.Tensor {
	r := rand.New(rand.NewPCG(seed, 0x7768697465))
	var all []float64
	for range chains {
		z := make([]float64, len(w.mode))
		for i := range z {
			z[i] = r.NormFloat64() / 2
		}
		all = append(all, w.theta(z)...)
	}
	return compute.Floats(dtype, all, chains, len(w.mode))
}

// on adds the whitening's data, and others, to a problem's, and wraps its target with them.
func (w *whitening) on(
	problem density.Problem, dtype compute.DType, more map[string]*tensors.Tensor,
	cheap func(at graphWhitening, data compute.Nodes) density.Target,
) density.Problem {
	data := w.tensors(dtype)
	for _, others := range []map[string]*tensors.Tensor{more, problem.Data} {
		for name, t := range others {
			data[name] = t
		}
	}
	own := problem.Target
	problem.Data = data
	problem.Target = func(data compute.Nodes, inputs []*graph.Node) density.Target {
		t := whitened{own(data, inputs), whiteningOf(data)}
		if cheap == nil {
			return t
		}
		return surrogated{t, cheap(t.at, data)}
	}
	return problem
}

// whitened is a target with its whitening.
type whitened struct {
	density.Target
	at graphWhitening
}

func (t whitened) coordinates() graphWhitening { return t.at }

// Holds is the target, which may be a user's own.
func (t whitened) Holds() any { return t.Target }

// surrogated is a whitened target with a surrogate.
type surrogated struct {
	whitened
	cheap density.Target
}

// Surrogate implements mcmc.Surrogated.
func (t surrogated) Surrogate() density.Target { return t.cheap }
