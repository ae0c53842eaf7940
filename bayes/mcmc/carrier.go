package mcmc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Carrier keeps a kernel's State between calls of compiled programs, as named tensors. The nodes of a State belong to
// one graph, so between calls its entries are in a compute.State. Sample runs its chains by a Carrier; use it in a
// sampler of your own that moves particles by any kernel:
//
//	carrier, err := mcmc.NewCarrier(engine, kernel, shapes.Make(dtype, particles, dim), target)
//	start, err := compute.NewProgram(engine, "start", nil, carrier.Names(), ...)             // builds carrier.Start
//	move, err := compute.NewProgram(engine, "move", carrier.Names(), carrier.Names(), ...)   // builds carrier.Move
//
// It holds no graph and no tensors, and does not change.
type Carrier struct {
	prefix string
	kernel Kernel
	own    []string // names of State.Auxiliary, sorted
	infos  []info   // the fields of Info that the kernel fills in
	extra  []string // names of Info.Extra, sorted
	drawn  string   // the stream from which a user's own kernel drew more than once in its move, and where; or empty
	shapes map[string]shapes.Shape
	work   int  // numbers that the graph of a start and a move computes
	loops  bool // that graph has a loop
}

// The names of a State's entries, after the Carrier's prefix.
const (
	phiName        = "phi"
	logDensityName = "log_density"
	gradientName   = "gradient"
	ownPrefix      = "own/"
)

// NewCarrier finds what a kernel carries and which fields of Info it fills in. For this it builds the kernel's start
// and one move of particles of phi's shape, [J, D], in a graph of its own. target builds the kernel's target in that
// graph; nil for kernels that do not use one.
func NewCarrier(
	engine *compute.Engine, kernel Kernel, phi shapes.Shape, target func(g *graph.Graph) density.Target,
) (*Carrier, error) {
	c := &Carrier{kernel: kernel}
	if phi.Rank() != 2 {
		return nil, fmt.Errorf("mcmc: particles of shape %s: it must be [J, D]", phi)
	}
	err := compute.Try(func() {
		g := NewGraph(engine.Backend(), "mcmc probe")
		defer g.Finalize()
		var moving density.Target
		if target != nil {
			moving = target(g)
		}
		c.probe(Parameter(g, phiName, phi), moving)
		c.work = compute.Work(g.Nodes())
		for _, node := range g.Nodes() {
			// Within another loop there would be none: what loops is unrolled there.
			c.loops = c.loops || node.Type() == NodeTypeWhile
		}
	})
	if err != nil {
		return nil, fmt.Errorf("mcmc: building a move of %T: %w", kernel, err)
	}
	return c, nil
}

// WithPrefix is the same Carrier with another beginning of all names, such as "moving/".
func (c *Carrier) WithPrefix(prefix string) *Carrier {
	other := *c
	other.prefix = prefix
	return &other
}

// SeveralMoves says whether a transition of the kernel may take several moves: then Info.Complete says where one ends.
func (c *Carrier) SeveralMoves() bool { return c.reports(infoComplete) }

func (c *Carrier) reports(f info) bool { return slices.Contains(c.infos, f) }

// reportedFields returns the names of the fields of Info that the kernel fills in, with the entries of Info.Extra.
func (c *Carrier) reportedFields() []string {
	var names []string
	for _, f := range c.infos {
		names = append(names, infoNames[f])
	}
	for _, name := range c.extra {
		names = append(names, extraPrefix+name)
	}
	return names
}

// reported lists a move's values of these fields, in the order of reportedFields.
func (c *Carrier) reported(outcome Info) []*Node {
	var all []*Node
	for _, f := range c.infos {
		all = append(all, outcome.field(f))
	}
	for _, name := range c.extra {
		all = append(all, outcome.Extra[name])
	}
	if i := slices.Index(all, nil); i >= 0 || len(outcome.Extra) != len(c.extra) {
		panic(fmt.Errorf("%T reports other fields of Info than in the move before: %q", c.kernel, c.reportedFields()))
	}
	return all
}

// entryShapes returns the entries' shapes by their Names, to check a file by.
func (c *Carrier) entryShapes() map[string]shapes.Shape {
	all := map[string]shapes.Shape{}
	for name, shape := range c.shapes {
		all[c.prefix+name] = shape
	}
	return all
}

// Names returns the names of the entries: phi, then the log-density and the gradient as far as the kernel carries them,
// then State.Auxiliary. All are [J, ...], so that a compute.Sharding can divide them.
func (c *Carrier) Names() []string {
	names := []string{c.Phi()}
	if c.kernel.Traits().Carries >= CarriesLogDensity {
		names = append(names, c.LogDensity())
	}
	if c.kernel.Traits().Carries == CarriesGradient {
		names = append(names, c.Gradient())
	}
	for _, name := range c.own {
		names = append(names, c.prefix+ownPrefix+name)
	}
	return names
}

// Phi is the name of phi's entry.
func (c *Carrier) Phi() string { return c.prefix + phiName }

// LogDensity is the name of the log-density's entry, which is there if the kernel carries it.
func (c *Carrier) LogDensity() string { return c.prefix + logDensityName }

// Gradient is the name of the gradient's entry, which is there if the kernel carries it.
func (c *Carrier) Gradient() string { return c.prefix + gradientName }

// pack returns the entries of a State.
func (c *Carrier) pack(s State) compute.Nodes {
	nodes := compute.Nodes{c.Phi(): s.Phi}
	if c.kernel.Traits().Carries >= CarriesLogDensity {
		nodes[c.LogDensity()] = s.LogDensity
	}
	if c.kernel.Traits().Carries == CarriesGradient {
		nodes[c.Gradient()] = s.Gradient
	}
	for name, node := range s.Auxiliary {
		nodes[c.prefix+ownPrefix+name] = node
	}
	return nodes
}

// unpack returns the State of its entries among nodes.
func (c *Carrier) unpack(nodes compute.Nodes) State {
	s := State{Phi: nodes[c.Phi()], LogDensity: nodes[c.LogDensity()], Gradient: nodes[c.Gradient()]}
	for _, name := range c.own {
		if s.Auxiliary == nil {
			s.Auxiliary = map[string]*Node{}
		}
		s.Auxiliary[name] = nodes[c.prefix+ownPrefix+name]
	}
	return s
}

// Start returns the entries of particles at phi, [J, D], that have not moved yet.
func (c *Carrier) Start(rng random.Stream, phi *graph.Node, target density.Target) compute.Nodes {
	return c.pack(Start(c.kernel, rng, phi, target))
}

// Move moves the particles whose entries nodes holds, and returns their next entries. A particle stays the same where
// moving, bool [J], is false, though Info is as if it had moved; nil moves all.
func (c *Carrier) Move(
	rng random.Stream, nodes compute.Nodes, target density.Target, tuning Tuning, moving *graph.Node,
) (compute.Nodes, Info) {
	next, outcome := c.kernel.Move(rng, c.unpack(nodes), target, tuning)
	packed := c.pack(next)
	if moving != nil {
		for _, name := range c.Names() { // in one order, else each process compiles a graph of its own
			packed[name] = Choose(moving, packed[name], nodes[name])
		}
	}
	return packed, outcome
}

// MoveUnfinished is Move for transitions that all particles make together. unfinished, [J], is 1 for each particle
// whose transition is not complete, and 0 for those that wait; ended is 1 for each that completes its transition in
// this move. Begin a transition with ones, and repeat with unfinished - ended until that is 0 everywhere. If each move
// of the kernel is a transition, all particles move and end.
func (c *Carrier) MoveUnfinished(
	rng random.Stream, nodes compute.Nodes, unfinished *graph.Node, target density.Target, tuning Tuning,
) (next compute.Nodes, ended *graph.Node, outcome Info) {
	if !c.SeveralMoves() {
		next, outcome = c.Move(rng, nodes, target, tuning, nil)
		return next, unfinished, outcome
	}
	next, outcome = c.Move(rng, nodes, target, tuning, GreaterThan(unfinished, ZerosLike(unfinished)))
	return next, Mul(unfinished, outcome.Complete), outcome
}

// probe builds a start and a move at phi, and records what they carry and report.
func (c *Carrier) probe(phi *Node, target density.Target) {
	rng := random.New(phi.Graph(), 0)
	if target == nil && !c.kernel.Traits().NoTarget {
		panic(errors.New("there is no target, and the kernel asks one"))
	}
	s := Start(c.kernel, rng, phi, target)
	c.own = slices.Sorted(maps.Keys(s.Auxiliary))
	var tuning Tuning
	if _, ok := c.kernel.(Tunable); ok {
		tuning.StepSize = OnesLike(Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1))
	}
	moving, drawn := rng.Recorded()
	next, outcome := c.kernel.Move(moving, s, target, tuning)
	// Mini-batches are the same on purpose.
	if _, batches := target.(density.MiniBatchTarget); !batches && ownMoves(c.kernel) != nil {
		c.drawn = drawn.Repeated()
	}
	before, after := c.pack(s), c.pack(next)
	for _, nodes := range []compute.Nodes{before, after} {
		for name := range nodes {
			if was, is := before[name], after[name]; was == nil || is == nil || !is.Shape().Equal(was.Shape()) {
				panic(fmt.Errorf("the state's %q is %s before a move and %s after it", name, shapeOf(was), shapeOf(is)))
			}
		}
	}
	c.shapes = map[string]shapes.Shape{}
	for name, node := range before {
		c.shapes[name] = node.Shape().Clone()
	}
	for f := range infoFields {
		if node := outcome.field(f); node != nil {
			checkShape("Info."+infoNames[f], node, s.PerParticle())
			c.infos = append(c.infos, f)
		}
	}
	c.extra = slices.Sorted(maps.Keys(outcome.Extra))
	for _, name := range c.extra {
		checkShape(fmt.Sprintf("Info.Extra[%q]", name), outcome.Extra[name], s.PerParticle())
	}
}

// checkShape panics if a node has another shape.
func checkShape(what string, node *Node, want shapes.Shape) {
	if node == nil || !node.Shape().Equal(want) {
		panic(fmt.Errorf("%s has shape %s: it must be %s", what, shapeOf(node), want))
	}
}

// shapeOf is a node's shape as text.
func shapeOf(node *Node) string {
	if node == nil {
		return "nil"
	}
	return node.Shape().String()
}
