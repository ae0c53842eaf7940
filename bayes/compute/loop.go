package compute

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	backends "github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
)

// CanLoop says whether Loop works in a graph: with XLA, outside of closures.
func CanLoop(g *graph.Graph) bool {
	return g.Backend().Name() == "xla" && g.CurrentFunc().IsMain() && len(shared(g)) == 5
}

// OnCPU says whether a backend is XLA on the host's processors, where an iteration of a loop costs next to nothing, and
// many small products take as long as a large one.
func OnCPU(backend backends.Backend) bool {
	return backend.Name() == "xla" && strings.Contains(strings.ToLower(backend.Description()), "cpu")
}

// Loop evaluates body for i = 0 to n-1, an int32 scalar, one after another, and returns the carried nodes after the
// last. body is compiled once, so that the compilation time does not depend on n. body must not use nodes of the
// surrounding graph other than its arguments: i, the outer nodes and the carried ones, whose next values it returns. It
// may take gradients inside; there is no gradient through the loop.
func Loop(
	n int, outer, carried []*graph.Node, body func(i *graph.Node, outer, carried []*graph.Node) []*graph.Node,
) []*graph.Node {
	return LoopWhile(func(i *graph.Node, _, _ []*graph.Node) *graph.Node {
		return graph.LessThan(i, graph.Const(i.Graph(), int32(n)))
	}, outer, carried, body)
}

// LoopWhile is Loop that goes on while more is true, which is asked before each iteration.
func LoopWhile(
	more func(i *graph.Node, outer, carried []*graph.Node) *graph.Node, outer, carried []*graph.Node,
	body func(i *graph.Node, outer, carried []*graph.Node) []*graph.Node,
) []*graph.Node {
	g := carried[0].Graph()
	if !CanLoop(g) {
		panic(fmt.Errorf("compute: no loop in a graph of backend %q", g.Backend().Name()))
	}
	start, count := graph.Const(g, int32(0)), len(outer)
	state := append(append([]*graph.Node{start}, outer...), carried...)
	parameters := func(g *graph.Graph) (i *graph.Node, outer, carried []*graph.Node) {
		all := make([]*graph.Node, len(state))
		for k, s := range state {
			all[k] = graph.Parameter(g, fmt.Sprint("loop", k), s.Shape())
		}
		return all[0], all[1 : 1+count], all[1+count:]
	}
	goesOn := closure(g, func(g *graph.Graph) []*graph.Node {
		i, outer, carried := parameters(g)
		return []*graph.Node{more(i, outer, carried)}
	})
	step := closure(g, func(g *graph.Graph) []*graph.Node {
		i, outer, carried := parameters(g)
		next := body(i, outer, carried)
		if len(next) != len(carried) {
			panic(fmt.Errorf("compute: the body of a loop gives %d nodes, carried are %d", len(next), len(carried)))
		}
		return slices.Concat([]*graph.Node{graph.OnePlus(i)}, outer, next)
	})
	return graph.While(goesOn, step, state...)[1+len(outer):]
}

// LoopNodes is LoopWhile over named nodes: body maps the nodes to the next values of those that are carried, and is
// given the inputs.
func LoopNodes(
	more func(i *graph.Node, outer, carried []*graph.Node) *graph.Node,
	inputs []*graph.Node, nodes Nodes, carried []string,
	body func(i *graph.Node, inputs []*graph.Node, nodes Nodes) Nodes,
) Nodes {
	var fixed []string
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !slices.Contains(carried, name) {
			fixed = append(fixed, name)
		}
	}
	list := func(names []string, nodes Nodes) (all []*graph.Node) {
		for _, name := range names {
			all = append(all, nodes[name])
		}
		return all
	}
	add := func(to Nodes, names []string, nodes []*graph.Node) Nodes {
		for k, name := range names {
			to[name] = nodes[k]
		}
		return to
	}
	outer := slices.Concat(inputs, list(fixed, nodes))
	after := LoopWhile(more, outer, list(carried, nodes), func(i *graph.Node, outer, now []*graph.Node) []*graph.Node {
		within := add(add(Nodes{}, fixed, outer[len(inputs):]), carried, now)
		return list(carried, body(i, outer[:len(inputs)], within))
	})
	return add(Nodes{}, carried, after)
}

// closure is graph.NewClosure for bodies that take sums and gradients. GoMLX caches a graph's scalars, and go-xla its
// reduction functions, and both would reuse cached nodes inside a closure or after it, where they are not defined for
// XLA: so the caches are emptied where a closure begins and ends. A test fails if a new version caches elsewhere.
func closure(g *graph.Graph, define func(g *graph.Graph) []*graph.Node) *graph.Function {
	forget := func() {
		for _, cache := range shared(g) {
			cache.Clear()
		}
	}
	forget()
	defer forget()
	return graph.NewClosure(g, define)
}

// shared returns the caches of GoMLX and go-xla in a graph.
func shared(g *graph.Graph) []reflect.Value {
	var maps []reflect.Value
	add := func(of reflect.Value, name string) reflect.Value {
		field := of.FieldByName(name)
		if field.IsValid() && field.Kind() == reflect.Map {
			maps = append(maps, reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
		}
		return field
	}
	of := reflect.ValueOf(g).Elem()
	add(of, "scalars")
	add(of, "tensorConstants")
	builder := of.FieldByName("builder")
	if !builder.IsValid() || builder.IsNil() || builder.Elem().Kind() != reflect.Pointer {
		return nil
	}
	for _, name := range []string{"cacheReductions", "cacheArgMinMax", "cacheSelections"} {
		add(builder.Elem().Elem(), name)
	}
	return maps
}

// RowsFrom returns n rows of x from row `from` on, an int32 scalar.
func RowsFrom(x, from *graph.Node, n int) *graph.Node {
	starts, sizes := make([]*graph.Node, x.Rank()), x.Shape().Clone().Dimensions
	for axis := range starts {
		starts[axis] = graph.Const(x.Graph(), int32(0))
	}
	starts[0], sizes[0] = from, n
	return graph.DynamicSlice(x, starts, sizes)
}

// WithRowsFrom is x with its rows from row `from` on, an int32 scalar, replaced by the given ones.
func WithRowsFrom(x, rows, from *graph.Node) *graph.Node {
	starts := make([]*graph.Node, x.Rank())
	for axis := range starts {
		starts[axis] = graph.Const(x.Graph(), int32(0))
	}
	starts[0] = from
	return graph.DynamicUpdateSlice(x, rows, starts)
}
