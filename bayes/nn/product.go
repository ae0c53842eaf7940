package nn

import (
	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// shortSum is the longest sum of products that is written as a multiplication and a sum, not as a matrix product: XLA
// unrolls it and fuses it with its surroundings, while each call of a small matrix product has an overhead for every
// particle. Longer sums are not unrolled and become slow, and for few particles the matrix product is faster.
const (
	shortSum     = 32
	smallProduct = 1 << 13 // multiplications a particle
	many         = 64      // particles
)

// longBatch is the number of rows from which the product of a single particle is computed as [B, in] by [in, out],
// which is then faster than [out, in] by [in, B]; XLA removes the transposes.
const longBatch = 4096

// particleProduct is W_j h_j for each particle, [J/c, out, B, c]: w is [J/c, out, in, c], h [J/c, in, B, c], or shared,
// [in, B]. Each of the three products in it, forward, and in the gradients with respect to w and to h, is computed in
// the form that is fastest for its sizes.
func particleProduct(w *graph.Node, h Value) *graph.Node {
	blocks, out, in, c := w.Shape().Dim(0), w.Shape().Dim(1), w.Shape().Dim(2), w.Shape().Dim(3)
	rows := h.Node.Shape().Dim(1)
	if h.PerParticle {
		rows = h.Node.Shape().Dim(2)
	}
	switch {
	case c > 1:
		return blockProduct(w, h)
	case blocks == 1 && rows >= longBatch:
		return longProduct(graph.Reshape(w, out, in), h)
	case !h.PerParticle: // one product for all particles: [J*out, in] by [in, B]
		return graph.Reshape(graph.Einsum("ki,ib->kb", graph.Reshape(w, blocks*out, in), h.Node), blocks, out, rows, 1)
	default:
		w, own := graph.Reshape(w, blocks, out, in), graph.Reshape(h.Node, blocks, in, rows)
		return graph.Reshape(matrixProduct(w, own), blocks, out, rows, 1)
	}
}

// matrixProduct is for blocks of one particle: w [J, out, in] by h [J, in, B] to [J, out, B].
func matrixProduct(w, h *graph.Node) *graph.Node {
	out, in := w.Shape().Dim(1), w.Shape().Dim(2)
	asSum := w.Shape().Dim(0) >= many && out*in*h.Shape().Dim(2) <= smallProduct
	forward := func(w, h *graph.Node) *graph.Node {
		if in > shortSum || !asSum {
			return graph.Einsum("joi,jib->job", w, h)
		}
		return graph.ReduceSum(graph.Mul(graph.ExpandAxes(w, 3), graph.ExpandAxes(h, 1)), 2)
	}
	return withGradient(forward, w, h,
		func(v *graph.Node) *graph.Node { return graph.Einsum("job,jib->joi", v, h) },
		func(v *graph.Node) *graph.Node {
			if out > shortSum || !asSum {
				return graph.Einsum("joi,job->jib", w, v)
			}
			return graph.ReduceSum(graph.Mul(graph.ExpandAxes(w, 3), graph.ExpandAxes(v, 2)), 1)
		})
}

// longProduct is w [out, in] by h of one particle, or shared, to [1, out, B, 1]. The transposes stand beside
// elementwise operations and the reshapes beside the product, so that XLA lays activations out row by row and none of
// them copies data.
func longProduct(w *graph.Node, h Value) *graph.Node {
	out, in := w.Shape().Dim(0), w.Shape().Dim(1)
	x := h.Node
	if h.PerParticle {
		x = graph.Transpose(x, 1, 2)
	} else {
		x = graph.Transpose(x, 0, 1)
	}
	x = graph.Reshape(x, -1, in)
	product := graph.Einsum("bi,oi->bo", x, w)
	return graph.Transpose(graph.Reshape(product, 1, -1, out, 1), 1, 2)
}

// blockProduct is for blocks of several particles. All three products are sums over an axis that is not the last, so
// that the particles of a block fill the SIMD vectors.
func blockProduct(w *graph.Node, h Value) *graph.Node {
	x := h.Node
	if h.PerParticle {
		x = compute.Materialise(x, w)
	}
	// All factors as [J/c, out, in, B, c], with an axis of size 1 where a factor has none.
	const outs, ins, rows = 1, 2, 3
	ofW := func(w *graph.Node) *graph.Node { return graph.ExpandAxes(w, rows) }
	ofX := func(x *graph.Node) *graph.Node {
		if h.PerParticle {
			return graph.ExpandAxes(x, outs)
		}
		return graph.ExpandAxes(x, 0, 1, -1)
	}
	ofV := func(v *graph.Node) *graph.Node { return graph.ExpandAxes(v, ins) }
	forward := func(w, x *graph.Node) *graph.Node { return sumOfProducts(ofW(w), ofX(x), ins) }
	return withGradient(forward, w, x,
		func(v *graph.Node) *graph.Node { return sumOfProducts(ofV(v), ofX(x), rows) },
		func(v *graph.Node) *graph.Node {
			gradient := sumOfProducts(ofW(w), ofV(v), outs)
			if h.PerParticle {
				return gradient
			}
			return graph.ReduceSum(gradient, 0, -1)
		})
}

// sumOfProducts is the sum over an axis of a b, in pieces that the compiler unrolls.
func sumOfProducts(a, b *graph.Node, axis int) *graph.Node {
	terms := max(a.Shape().Dim(axis), b.Shape().Dim(axis))
	pieces := (terms + shortSum - 1) / shortSum
	size := (terms + pieces - 1) / pieces
	piece := func(x *graph.Node, from int) *graph.Node {
		if pieces == 1 {
			return x
		}
		return sliceOf(x, axis, from, min(from+size, terms))
	}
	var sum *graph.Node
	for from := 0; from < terms; from += size {
		part := graph.ReduceSum(graph.Mul(piece(a, from), piece(b, from)), axis)
		if sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// sliceOf returns the elements of x along an axis, from index from to to-1.
func sliceOf(x *graph.Node, axis, from, to int) *graph.Node {
	ranges := make([]graph.SliceAxisSpec, x.Rank())
	for i := range ranges {
		ranges[i] = graph.AxisRange()
	}
	ranges[axis] = graph.AxisRange(from, to)
	return graph.Slice(x, ranges...)
}

// withGradient is f(a, b) with its own gradients (JAX's custom_vjp for two arguments): those with respect to a and b
// are ofA(v) and ofB(v), where v is the gradient with respect to f(a, b).
//
// GoMLX has this for the identity of one node only. So the result is f(stop(a), stop(b)) + where(false, id(a) + id(b),
// 0). The gradient of f passes to neither argument. The gradient of the sum, which XLA removes, passes to two
// identities with the custom gradients ofA and ofB.
func withGradient(
	f func(a, b *graph.Node) *graph.Node, a, b *graph.Node, ofA, ofB func(v *graph.Node) *graph.Node,
) *graph.Node {
	var v *graph.Node // set before ofA and ofB use it, as gradients are built from the output back
	linked := func(x *graph.Node, of func(v *graph.Node) *graph.Node) *graph.Node {
		return compute.Element(graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { return of(v) }))
	}
	link := graph.Add(linked(a, ofA), linked(b, ofB))
	never := graph.Const(link.Graph(), false)
	zero := graph.Where(never, link, graph.ZerosLike(link))
	y := graph.Add(f(graph.StopGradient(a), graph.StopGradient(b)), zero)
	return graph.IdentityWithCustomGradient(y, func(_, adjoint *graph.Node) *graph.Node {
		v = adjoint
		return adjoint
	})
}
