package density

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
)

// DataPrefix begins the names of a problem's data among the entries of a sampler's state.
const DataPrefix = "data/"

// Entries returns the names of the problem's data in a sampler's state, in order.
func (p Problem) Entries() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		names = append(names, DataPrefix+name)
	}
	return names
}

// Load puts copies of the problem's data into a sampler's state.
func (p Problem) Load(state *compute.State) error {
	for name, t := range p.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
		state.Set(DataPrefix+name, local)
	}
	return nil
}

// In builds the target in a graph, of the data among a state's entries and the inputs of a move.
func (p Problem) In(entries compute.Nodes, inputs []*graph.Node) Target {
	data := compute.Nodes{}
	for name, node := range entries {
		if bare, ok := strings.CutPrefix(name, DataPrefix); ok {
			data[bare] = node
		}
	}
	target := p.Target(data, inputs)
	if target == nil {
		panic(fmt.Errorf("Problem.Target gives no target"))
	}
	return target
}

// Parameters are the entries of the problem's data in a graph that is thrown away.
func (p Problem) Parameters(g *graph.Graph) compute.Nodes {
	entries := compute.Nodes{}
	for name, t := range p.Data {
		entries[DataPrefix+name] = graph.Parameter(g, DataPrefix+name, t.Shape())
	}
	return entries
}

// Look builds the target of a problem without inputs in a graph that is thrown away, and looks at it.
func (p Problem) Look(engine *compute.Engine, look func(Target)) error {
	return compute.Try(func() {
		g := graph.NewGraph(engine.Backend(), "look at a target")
		defer g.Finalize()
		look(p.In(p.Parameters(g), nil))
	})
}
