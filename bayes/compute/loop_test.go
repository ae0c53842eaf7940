package compute_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// A loop takes sums and gradients of what is sliced by its counter, beside sums and the same constants around it. If it
// is refused, GoMLX or go-xla keep elsewhere what they use again in a graph.
func TestLoop(t *testing.T) {
	xlaPlugin(t)
	engine := computetest.Engines(t)[0]
	x := [][]float64{{1, 2}, {-1, .5}, {.25, 3}, {2, -2}, {0, 1}, {1.5, .75}}
	w := []float64{.5, -.25}
	out := computetest.Run(t, engine, func(g *Graph, a []*Node) []*Node {
		x, w := a[0], a[1]
		if !compute.CanLoop(g) {
			t.Fatal("no loops with XLA")
		}
		outside := ReduceAllSum(MulScalar(x, 3))
		value := func(x, w *Node) *Node { return ReduceSum(MulScalar(Tanh(Mul(x, ExpandAxes(w, 0))), 3), 1) }
		results := compute.Loop(3, []*Node{x, w}, []*Node{ZerosLike(w), Zeros(g, Slice(x, AxisRange(), AxisElem(0)).Shape())},
			func(i *Node, outer, carried []*Node) []*Node {
				at := MulScalar(i, 2)
				of := value(compute.RowsFrom(outer[0], at, 2), outer[1])
				gradient := Gradient(ReduceAllSum(of), outer[1])[0]
				return []*Node{Add(carried[0], gradient), compute.WithRowsFrom(carried[1], ExpandAxes(of, 1), at)}
			})
		whole := value(x, w)
		return []*Node{outside, results[0], results[1], Gradient(ReduceAllSum(whole), w)[0], whole, ReduceAllMax(results[1])}
	}, x, w)
	sum := 0.0
	for _, row := range x {
		sum += 3 * (row[0] + row[1])
	}
	computetest.Near(t, "a sum before", out[0], []float64{sum}, 1e-14)
	computetest.Near(t, "gradients", out[1], out[3], 1e-14)
	computetest.Near(t, "rows", out[2], out[4], 1e-14)
	if math.IsNaN(out[5][0]) {
		t.Error("a maximum behind it is NaN")
	}
}

// The number of turns may be a number of the graph: none, some or all.
func TestLoopWhile(t *testing.T) {
	xlaPlugin(t)
	for _, n := range []int32{0, 2, 5} {
		out := computetest.Run(t, computetest.Engines(t)[0], func(_ *Graph, a []*Node) []*Node {
			turns := ConvertDType(Reshape(a[0]), dtypes.Int32)
			outer, carried := []*Node{turns, a[1]}, []*Node{ZerosLike(a[1])}
			more := func(i *Node, outer, _ []*Node) *Node { return LessThan(i, outer[0]) }
			return compute.LoopWhile(more, outer, carried, func(i *Node, outer, carried []*Node) []*Node {
				return []*Node{Add(carried[0], Mul(outer[1], ConvertDType(OnePlus(i), outer[1].DType())))}
			})
		}, []float64{float64(n)}, []float64{3, -1})
		sum := float64(n * (n + 1) / 2)
		computetest.Near(t, "a sum", out[0], []float64{3 * sum, -sum}, 0)
	}
}

func TestLoopBadInput(t *testing.T) {
	g := NewGraph(computetest.Go(t).Backend(), "go")
	defer g.Finalize()
	same := func(_ *Node, _, carried []*Node) []*Node { return carried }
	err := compute.Try(func() { compute.Loop(2, nil, []*Node{Const(g, 1.0)}, same) })
	if err == nil || !strings.Contains(err.Error(), "no loop in a graph of backend") {
		t.Errorf("on the Go backend: %v", err)
	}
	xlaPlugin(t)
	x := NewGraph(computetest.Engines(t)[0].Backend(), "xla")
	defer x.Finalize()
	fewer := func(_ *Node, _, _ []*Node) []*Node { return nil }
	err = compute.Try(func() { compute.Loop(2, nil, []*Node{Const(x, 1.0)}, fewer) })
	if err == nil || !strings.Contains(err.Error(), "gives 0 nodes, carried are 1") {
		t.Errorf("a body that gives too little: %v", err)
	}
}
