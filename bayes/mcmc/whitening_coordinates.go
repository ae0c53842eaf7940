package mcmc

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is the coordinates of a Whitening: from theta to z and back, for one place on the host and for all chains
// in a graph, and a problem whose target has them.

// zOf are the coordinates z of theta, W^-1 (theta - c): [D].
func (w *Whitening) zOf(theta []float64) []float64 {
	d := len(theta)
	delta := slices.Clone(theta)
	floats.Sub(delta, w.Mode)
	switch w.Structure {
	case LowRank:
		floats.Div(delta, w.Scale)
		w.stretch(delta, func(root float64) float64 { return root - 1 })
		return delta
	case Kronecker:
		return w.byBlocks(delta, func(e KroneckerEigen, m *mat.Dense) *mat.Dense { return e.scaled(e.Unrotate(m), .5) })
	}
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
	switch w.Structure {
	case Dense:
		for i := range d {
			floats.AddScaled(out, z[i], w.ToTheta[i*d:(i+1)*d])
		}
	case Kronecker:
		out = w.byBlocks(z, func(e KroneckerEigen, m *mat.Dense) *mat.Dense { return e.Rotate(e.scaled(m, -.5)) })
	default:
		copy(out, z)
		w.stretch(out, func(root float64) float64 { return 1/root - 1 })
		floats.Mul(out, w.Scale)
	}
	floats.Add(out, w.Mode)
	return out
}

// pull is W' g: it takes a gradient with respect to theta, [D], to the gradient with respect to z (the chain rule).
func (w *Whitening) pull(g []float64) []float64 {
	d := len(g)
	out := make([]float64, d)
	if w.Structure == Dense { // g ToTheta' as a row
		for i := range d {
			out[i] = floats.Dot(w.ToTheta[i*d:(i+1)*d], g)
		}
		return out
	}
	if w.Structure == Kronecker {
		return w.byBlocks(g, func(e KroneckerEigen, m *mat.Dense) *mat.Dense { return e.scaled(e.Unrotate(m), -.5) })
	}
	floats.MulTo(out, g, w.Scale)
	w.stretch(out, func(root float64) float64 { return 1/root - 1 })
	return out
}

// stretch adds V diag(by(Roots)) V' x to x.
func (w *Whitening) stretch(x []float64, by func(root float64) float64) {
	r := len(w.Roots)
	inner := make([]float64, r)
	for i, v := range x {
		floats.AddScaled(inner, v, w.Vectors[i*r:(i+1)*r])
	}
	for k, root := range w.Roots {
		inner[k] *= by(root)
	}
	for i := range x {
		x[i] += floats.Dot(inner, w.Vectors[i*r:(i+1)*r])
	}
}

// whitening is a Whitening in a graph, whose numbers are entries of a problem's data, or constants.
type whitening struct {
	structure                                           Structure
	mode, toZ, toTheta, scale, vectors, stretch, shrink *Node
	blocks                                              []whiteningBlock
}

// whiteningPrefix begins the names of a Whitening's tensors among a problem's data.
const whiteningPrefix = "whitening/"

// tensors are the whitening's numbers by their names.
func (w *Whitening) tensors(dtype compute.DType) map[string]*tensors.Tensor {
	d := len(w.Mode)
	all := map[string]*tensors.Tensor{whiteningPrefix + "mode": compute.Floats(dtype, w.Mode, 1, d)}
	if w.Structure == Dense {
		all[whiteningPrefix+"to_z"] = compute.Floats(dtype, w.ToZ, d, d)
		all[whiteningPrefix+"to_theta"] = compute.Floats(dtype, w.ToTheta, d, d)
		return all
	}
	if w.Structure == Kronecker {
		w.blockTensors(all, dtype)
		return all
	}
	r := len(w.Roots)
	stretch, shrink := make([]float64, r), make([]float64, r)
	for k, root := range w.Roots {
		stretch[k], shrink[k] = root-1, 1/root-1
	}
	all[whiteningPrefix+"scale"] = compute.Floats(dtype, w.Scale, 1, d)
	all[whiteningPrefix+"vectors"] = compute.Floats(dtype, w.Vectors, d, r)
	all[whiteningPrefix+"stretch"] = compute.Floats(dtype, stretch, 1, r)
	all[whiteningPrefix+"shrink"] = compute.Floats(dtype, shrink, 1, r)
	return all
}

// of takes the whitening's numbers from nodes by their names.
func (w *Whitening) of(node func(name string) *Node) whitening {
	g := whitening{structure: w.Structure, mode: node("mode")}
	if w.Structure == Dense {
		g.toZ, g.toTheta = node("to_z"), node("to_theta")
		return g
	}
	if w.Structure == Kronecker {
		for b, e := range w.Blocks {
			g.blocks = append(g.blocks, whiteningBlock{e.KroneckerFactor, node(blockName(b, "left")),
				node(blockName(b, "right")), node(blockName(b, "roots"))})
		}
		return g
	}
	g.scale, g.vectors, g.stretch, g.shrink = node("scale"), node("vectors"), node("stretch"), node("shrink")
	return g
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

// z are the coordinates z, [J, D], of theta, [J, D].
func (w whitening) z(theta *Node) *Node {
	d := Sub(theta, wide(w.mode, theta))
	if w.structure == Dense {
		return Dot(d, w.toZ).Product()
	}
	if w.structure == Kronecker {
		return w.eachBlock(d, func(b whiteningBlock, m *Node) *Node {
			m = b.unrotated(m)
			return Mul(m, b.wideRoots(m))
		})
	}
	d = Div(d, wide(w.scale, d))
	return w.stretched(d, w.stretch)
}

// theta are the parameters theta, [J, D], of z, [J, D].
func (w whitening) theta(z *Node) *Node {
	if w.structure == Dense {
		return Add(wide(w.mode, z), Dot(z, w.toTheta).Product())
	}
	if w.structure == Kronecker {
		return Add(wide(w.mode, z), w.eachBlock(z, func(b whiteningBlock, m *Node) *Node {
			return b.rotated(Div(m, b.wideRoots(m)))
		}))
	}
	return Add(wide(w.mode, z), Mul(w.stretched(z, w.shrink), wide(w.scale, z)))
}

// pull is W' g: it takes gradients with respect to theta, [J, D], to those with respect to z.
func (w whitening) pull(g *Node) *Node {
	if w.structure == Dense {
		return Einsum("jd,kd->jk", g, w.toTheta)
	}
	if w.structure == Kronecker {
		return w.eachBlock(g, func(b whiteningBlock, m *Node) *Node {
			m = b.unrotated(m)
			return Div(m, b.wideRoots(m))
		})
	}
	return w.stretched(Mul(g, wide(w.scale, g)), w.shrink)
}

// stretched is x + V diag(by) V' x for each row.
func (w whitening) stretched(x, by *Node) *Node {
	inner := Mul(Einsum("jd,dr->jr", x, w.vectors), wide(by, x))
	return Add(x, Einsum("jr,dr->jd", inner, w.vectors))
}

// On is the problem with the whitening among its data, so that SplitHMC finds it in the target, for chains of the given
// number and type. Unless Problem.Start is set, chains begin around the mode, at z ~ N(0, 1/4) drawn by the seed.
func (w *Whitening) On(problem Problem, chains int, dtype compute.DType, seed uint64) (Problem, error) {
	if len(w.Mode) != problem.Dim {
		return Problem{}, fmt.Errorf("mcmc: the whitening is of dimension %d, the problem of %d", len(w.Mode), problem.Dim)
	}
	if problem.Start == nil {
		problem.Start = w.starts(chains, dtype, seed)
	}
	return w.on(problem, dtype, nil, nil), nil
}

// starts are starting points around the mode: theta, [chains, D], of draws z ~ N(0, 1/4).
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
	problem Problem, dtype compute.DType, more map[string]*tensors.Tensor,
	cheap func(at whitening, data compute.Nodes) Target,
) Problem {
	data := w.tensors(dtype)
	for _, others := range []map[string]*tensors.Tensor{more, problem.Data} {
		for name, t := range others {
			data[name] = t
		}
	}
	own := problem.Target
	problem.Data = data
	problem.Target = func(data compute.Nodes, inputs []*graph.Node) Target {
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
	Target
	at whitening
}

func (t whitened) whitening() whitening { return t.at }

// Holds is the target, which may be a user's own.
func (t whitened) Holds() any { return t.Target }

// surrogated is a whitened target with a surrogate.
type surrogated struct {
	whitened
	cheap Target
}

// Surrogate implements Surrogated.
func (t surrogated) Surrogate() Target { return t.cheap }
