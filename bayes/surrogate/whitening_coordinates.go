package surrogate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// This file is the coordinates of a Whitening: from theta to z and back, for one place on the host and for all chains
// in a graph, and a problem whose target has them.

// zOf returns the coordinates z of theta, W^-1 (theta - c): [D].
func (w *Whitening) zOf(theta []float64) []float64 {
	d := len(theta)
	delta := slices.Clone(theta)
	floats.Sub(delta, w.Mode)
	z := make([]float64, d)
	for i, x := range delta {
		floats.AddScaled(z, x, w.ToZ[i*d:(i+1)*d])
	}
	return z
}

// theta is c + W z, the inverse of zOf: [D].
func (w *Whitening) theta(z []float64) []float64 {
	d := len(z)
	out := make([]float64, d)
	for i := range d {
		floats.AddScaled(out, z[i], w.ToTheta[i*d:(i+1)*d])
	}
	floats.Add(out, w.Mode)
	return out
}

// pull is W' g: it takes a gradient with respect to theta, [D], to the gradient with respect to z (the chain rule).
func (w *Whitening) pull(g []float64) []float64 {
	d := len(g)
	out := make([]float64, d)
	for i := range d { // g ToTheta' as a row
		out[i] = floats.Dot(w.ToTheta[i*d:(i+1)*d], g)
	}
	return out
}

// whitening is a Whitening in a graph, whose numbers are entries of a problem's data, or constants.
type whitening struct{ mode, toZ, toTheta *Node }

// whiteningPrefix begins the names of a Whitening's tensors among a problem's data.
const whiteningPrefix = "whitening/"

// tensors returns the whitening's numbers by their names.
func (w *Whitening) tensors(dtype compute.DType) map[string]*tensors.Tensor {
	d := len(w.Mode)
	return map[string]*tensors.Tensor{
		whiteningPrefix + "mode":     compute.Floats(dtype, w.Mode, 1, d),
		whiteningPrefix + "to_z":     compute.Floats(dtype, w.ToZ, d, d),
		whiteningPrefix + "to_theta": compute.Floats(dtype, w.ToTheta, d, d),
	}
}

// of takes the whitening's numbers from nodes by their names.
func (w *Whitening) of(node func(name string) *Node) whitening {
	return whitening{node("mode"), node("to_z"), node("to_theta")}
}

// constants is the whitening with its numbers as constants of the graph, of like's type.
func (w *Whitening) constants(like *Node) whitening {
	all := w.tensors(like.DType())
	return w.of(func(name string) *Node { return ConstTensor(like.Graph(), all[whiteningPrefix+name]) })
}

// wide repeats x, [1, n], for each of like's rows.
func wide(x, like *Node) *Node {
	return BroadcastToDims(x, like.Shape().Dim(0), x.Shape().Dim(1))
}

// z returns the coordinates z, [J, D], of theta, [J, D].
func (w whitening) z(theta *Node) *Node {
	return Dot(Sub(theta, wide(w.mode, theta)), w.toZ).Product()
}

// theta returns the parameters theta, [J, D], of z, [J, D].
func (w whitening) theta(z *Node) *Node { return Add(wide(w.mode, z), Dot(z, w.toTheta).Product()) }

// pull is W' g: it turns gradients with respect to theta, [J, D], into gradients with respect to z.
func (w whitening) pull(g *Node) *Node { return Einsum("jd,kd->jk", g, w.toTheta) }

// near is the problem with the whitening among its data, so that SplitHMC finds it in the target, for chains of the
// given number and type. Unless Problem.Start is set, chains begin around the mode, at z ~ N(0, 1/4) drawn by the seed.
func (w *Whitening) near(
	problem density.Problem, chains int, dtype compute.DType, seed uint64,
) (density.Problem, error) {
	if len(w.Mode) != problem.Dim {
		return density.Problem{}, fmt.Errorf("surrogate: the whitening is of dimension %d, the problem of %d", len(w.Mode),
			problem.Dim)
	}
	if problem.Start == nil {
		problem.Start = w.starts(chains, dtype, seed)
	}
	return w.on(problem, dtype, nil, nil), nil
}

// starts returns starting points around the mode: theta, [chains, D], of draws z ~ N(0, 1/4).
func (w *Whitening) starts(chains int, dtype compute.DType, seed uint64) *tensors.Tensor {
	r := rand.New(rand.NewPCG(seed, 0x7768697465))
	var all []float64
	for range chains {
		z := make([]float64, len(w.Mode))
		for i := range z {
			z[i] = r.NormFloat64() / 2
		}
		all = append(all, w.theta(z)...)
	}
	return compute.Floats(dtype, all, chains, len(w.Mode))
}

// on adds the whitening's data, and others, to a problem's, and wraps its target with them.
func (w *Whitening) on(
	problem density.Problem, dtype compute.DType, more map[string]*tensors.Tensor,
	cheap func(at whitening, data compute.Nodes) density.Target,
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
		t := whitened{own(data, inputs), w.of(func(name string) *Node { return data[whiteningPrefix+name] })}
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
	at whitening
}

func (t whitened) whitening() whitening { return t.at }

// Holds is the target, which may be a user's own.
func (t whitened) Holds() any { return t.Target }

// surrogated is a whitened target with a surrogate.
type surrogated struct {
	whitened
	cheap density.Target
}

// Surrogate implements Surrogated.
func (t surrogated) Surrogate() density.Target { return t.cheap }
