package check

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// chains runs a kernel over all rows of a layout, a transition at a time.
type chains struct {
	layout
	kernel  mcmc.Kernel
	carrier *mcmc.Carrier
	engine  *compute.Engine
	dtype   compute.DType
	most    int // moves a transition may take
	options Options
	gives   []string // the fields of Info that the kernel fills in and that are looked at

	startProgram, moveProgram *compute.Program

	seed  []uint32
	step  uint32
	state *compute.State // what the carrier carries, the data, and which chains have not ended their transition
}

// Entries of the state beside the carrier's.
const (
	dataEntry       = "data"       // [J, layout.data]
	unfinishedEntry = "unfinished" // [J]
)

// The fields of Info that are looked at.
const acceptance, accepted, nonFinite = "Acceptance", "Accepted", "NonFinite"

// info has these fields of a transition on the host, [J] each, as far as the kernel gives them.
type info map[string][]float64

func newChains(engine *compute.Engine, kernel mcmc.Kernel, l layout, o Options) (c *chains, err error) {
	c = &chains{layout: l, kernel: kernel, engine: engine, dtype: o.DType, most: o.maxMoves, options: o}
	target := func(g *Graph) density.Target {
		return l.target(Parameter(g, dataEntry, shapes.Make(o.DType, l.j, l.data)))
	}
	if c.carrier, err = mcmc.NewCarrier(engine, kernel, shapes.Make(o.DType, l.j, l.d), target); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	names := c.carrier.Names()
	c.startProgram, err = compute.NewProgram(engine, "check start", []string{dataEntry}, names, c.startStep)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	updates := append(slices.Clone(names), unfinishedEntry)
	reads := append(slices.Clone(updates), dataEntry)
	if c.moveProgram, err = compute.NewProgram(engine, "check move", reads, updates, c.moveStep); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return c, nil
}

func (c *chains) close() {
	c.startProgram.Close()
	c.moveProgram.Close()
	if c.state != nil {
		c.state.Close()
	}
}

// startStep puts the chains at phi. Inputs: the seed, phi. The record is the log-density, whether the kernel carries it
// or not.
func (c *chains) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	target := c.target(nodes[dataEntry])
	next := c.carrier.Start(random.FromKey(inputs[0]).Named("start"), inputs[1], target)
	logDensity := next[c.carrier.LogDensity()]
	if logDensity == nil {
		logDensity = compute.Gate(target.LogDensity(inputs[1]))
	}
	return next, logDensity
}

// moveStep moves the chains that are unfinished. Inputs: the seed, the number of the move. The record: which chains
// ended their transition in this move, and the fields of info, [J] each, one after the other.
func (c *chains) moveStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	g := inputs[0].Graph()
	var tuning mcmc.Tuning
	if c.options.stepSize > 0 {
		tuning.StepSize = Const(g, c.options.stepSize)
	}
	if c.options.scale != nil {
		tuning.Scale = Const(g, c.options.scale)
	}
	rng, target := random.FromKey(inputs[0]).At(inputs[1]), c.target(nodes[dataEntry])
	next, ended, told := c.carrier.MoveUnfinished(rng, nodes, nodes[unfinishedEntry], target, tuning)
	next[unfinishedEntry] = Sub(nodes[unfinishedEntry], ended)
	c.gives = nil
	record := []*Node{ended}
	for _, field := range []struct {
		name string
		node *Node
	}{{acceptance, told.Acceptance}, {accepted, told.Accepted}, {nonFinite, told.NonFinite}} {
		if field.node != nil {
			c.gives, record = append(c.gives, field.name), append(record, field.node)
		}
	}
	return next, Concatenate(record, 0)
}

// at is a state of chains at phi, [J, D] flat, with their data, [J, layout.data] flat, and the log-density there.
func (c *chains) at(phi, data []float64) (state *compute.State, logDensity []float64, err error) {
	state = compute.NewState(c.engine)
	state.Set(dataEntry, compute.Floats(c.dtype, data, c.j, c.layout.data))
	logDensity, err = c.startProgram.Run(state, c.seed, compute.Floats(c.dtype, phi, c.j, c.d))
	if err != nil {
		state.Close()
		return nil, nil, fmt.Errorf("check: start: %w", err)
	}
	return state, logDensity, nil
}

// start puts the chains at phi.
func (c *chains) start(seed uint64, phi, data []float64) (err error) {
	if c.state != nil {
		c.state.Close()
	}
	c.seed, c.step = random.KeyOf(seed).Words(), 0
	c.state, _, err = c.at(phi, data)
	return err
}

// phi is where the chains are, [J, D] flat.
func (c *chains) phi() ([]float64, error) { return values(c.state, c.carrier.Phi()) }

// values returns an entry of a state, flat.
func values(state *compute.State, name string) ([]float64, error) {
	host, err := state.Host(name)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer host[name].FinalizeAll() //nolint:errcheck // freeing a copy
	return compute.Float64s(host[name])
}

// begin lets all chains begin a transition.
func (c *chains) begin() {
	c.state.Set(unfinishedEntry, compute.Floats(c.dtype, slices.Repeat([]float64{1}, c.j), c.j))
}

// move makes one move of the chains that have not ended their transition, and says which have in it.
func (c *chains) move() (ended []float64, i info, err error) {
	record, err := c.moveProgram.Run(c.state, c.seed, c.step)
	if err != nil {
		return nil, nil, fmt.Errorf("check: move %d: %w", c.step, err)
	}
	c.step++
	i = info{}
	for n, name := range c.gives {
		i[name] = record[(n+1)*c.j : (n+2)*c.j]
	}
	return record[:c.j], i, nil
}

// transition moves until every chain has come to the end of one transition; those that have done so before the others
// wait.
func (c *chains) transition() (total info, err error) {
	c.begin()
	done := make([]bool, c.j)
	for n := range c.most {
		ended, now, err := c.move()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			total = now
		}
		left := 0
		for j := range done {
			if done[j] {
				continue // it waited
			}
			if done[j] = ended[j] > 0; !done[j] {
				left++
			}
			for name, values := range now {
				if name == nonFinite {
					values[j] = math.Max(total[name][j], values[j])
				}
				total[name][j] = values[j]
			}
		}
		if left == 0 {
			return total, nil
		}
	}
	return nil, fmt.Errorf("check: %T has not completed a transition of every chain in %d moves: "+
		"let Info.Complete say when one is over", c.kernel, c.most)
}
