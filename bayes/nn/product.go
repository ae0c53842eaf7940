package nn

import (
	"github.com/gomlx/gomlx/core/graph"
)

// shortSum is the longest sum of products that is written as a multiplication and a sum, not as a matrix product: the compiler unrolls it
// and fuses it with what surrounds it, while a product of small matrices costs a microsecond a particle before it begins. Measured with XLA
// on a CPU, [J, 5, 20] by [J, 20, 50]: 3.5 times as fast; with sums of more than 32 terms it is many times slower. It pays for
// many particles with small products: [10, 20, 20] by [10, 20, 50] takes half the time as a matrix product, and a whole gradient of 10 networks 13-50-20-5-1,
// 50 rows, 0.33 ms instead of 0.54.
const (
	shortSum     = 32
	smallProduct = 1 << 13 // multiplications a particle
	many         = 64      // particles
)

// particleProduct is W_j h_j for each particle: w [J, out, in] by h [J, in, B] to [J, out, B]. Each of the three products in it, forward, and in the
// gradients with respect to w and to h, takes the form that is fastest for its sizes.
func particleProduct(w, h *graph.Node) *graph.Node {
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

// withGradient is f(a, b), whose gradients are what ofA and ofB make of v, the gradient with respect to f(a, b).
//
// GoMLX lets an identity of one node have a gradient of its own, no function of two. So f is taken of constants, and a zero that depends on a and b is
// added to it, which the compiler removes: gradients pass through it to two such identities.
func withGradient(f func(a, b *graph.Node) *graph.Node, a, b *graph.Node, ofA, ofB func(v *graph.Node) *graph.Node) *graph.Node {
	var v *graph.Node // set before it is used: gradients pass from the output to the inputs
	first := func(x *graph.Node, of func(v *graph.Node) *graph.Node) *graph.Node {
		x = graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { return of(v) })
		corner := make([]graph.SliceAxisSpec, x.Rank())
		for axis := range corner {
			corner[axis] = graph.AxisRange(0, 1)
		}
		return graph.Reshape(graph.Slice(x, corner...))
	}
	link := graph.Add(first(a, ofA), first(b, ofB))
	never := graph.Const(link.Graph(), false)
	zero := graph.Where(never, link, graph.ZerosLike(link))
	y := graph.Add(f(graph.StopGradient(a), graph.StopGradient(b)), zero)
	return graph.IdentityWithCustomGradient(y, func(_, adjoint *graph.Node) *graph.Node {
		v = adjoint
		return adjoint
	})
}
