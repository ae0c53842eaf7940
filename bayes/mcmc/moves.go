package mcmc

import (
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/run"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// moves are the compiled programs of runs of one kind: the start of all chains and one move of them.
type moves struct {
	problem density.Problem
	kernel  Kernel
	carrier *Carrier
	chains  int
	dtype   compute.DType
	scaled  bool              // the state has an entry for the scales of the coordinates
	blank   []*tensors.Tensor // the problem's inputs, as they are at the start

	draw, climb *compute.Program // nil if the chains do not climb
	start       *compute.Program
	tried       tryout.Trial // by the start: of the target, and of cheap ones
	compared    tryout.Trial // of what a user's own kernel carries
	// step moves the chains once: if a transition may take several moves, those that an input selects, and the others stay
	// the same.
	step       *compute.Program
	carried    *compute.Program // checks what a user's own kernel carries; nil for others
	lockStep   *compute.Program // the moves of a transition of all chains in one call; nil: one
	burst      *compute.Program // burstMoves in one call; nil: one
	burstMoves int
	programs   []*compute.Program
}

// info is a field of Info.
type info int

const (
	infoComplete info = iota
	infoAcceptance
	infoAccepted
	infoNonFinite
	infoDivergent
	infoEnergy
	infoLength
	infoFull
	infoPartial
	infoPartialGradients
	infoNoise
	infoSteadiness
	infoFields
)

// extraPrefix begins the names of Info.Extra's fields among infoNames.
const extraPrefix = "Extra/"

// infoNames has the names of Info's fields.
var infoNames = [infoFields]string{
	"Complete", "Acceptance", "Accepted", "NonFinite", "Divergent", "Energy", "Length", "Full",
	"Partial", "PartialGradients", "Noise", "Steadiness",
}

func (i Info) field(f info) *Node {
	return [infoFields]*Node{
		i.Complete, i.Acceptance, i.Accepted, i.NonFinite, i.Divergent, i.Energy, i.Length, i.Full, i.Partial,
		i.PartialGradients, i.Noise, i.Steadiness,
	}[f]
}

const (
	startName = "start" // the state's entry of Problem.Start
	scaleName = "scale" // of the coordinates' scales
)

// newMoves finds what the kernel carries and reports, and prepares the programs.
func newMoves(engine *compute.Engine, problem density.Problem, c Chains, s run.Settings) (*moves, error) {
	m := &moves{problem: problem, kernel: c.Kernel, chains: c.Chains, dtype: s.DType, scaled: c.scales()}
	var err error
	if m.blank, err = tensorsOf(blankInputs(problem)); err != nil {
		return nil, fmt.Errorf("mcmc: %w", err)
	}
	if m.carrier, err = NewCarrier(engine, c.Kernel, shapes.Make(s.DType, c.Chains, problem.Dim), m.probed); err != nil {
		return nil, err
	}
	carried, data := m.carrier.Names(), problem.Entries()
	reads := append(slices.Clone(carried), data...)
	if m.scaled {
		reads = append(reads, scaleName)
	}
	program := func(name string, reads, updates []string, step compute.Step) *compute.Program {
		p, failed := compute.NewProgram(engine, name, reads, updates, step)
		m.programs, err = append(m.programs, p), errors.Join(err, failed)
		return p
	}
	first := data
	if problem.Start != nil || problem.ClimbSteps() > 0 {
		first = append(slices.Clone(data), startName)
	}
	if problem.ClimbSteps() > 0 {
		entries := []string{startName, climbMean, climbSquare}
		m.draw = program("mcmc initial", nil, entries, m.drawStep)
		m.climb = program("mcmc climb", append(slices.Clone(entries), data...), entries, m.climbStep)
	}
	m.start = program("mcmc start", first, carried, m.startStep)
	m.step = program("mcmc move", reads, carried, m.moveStep)
	if m.carrier.ComparesCarried() && len(m.blank) == 0 {
		m.carried = program("mcmc carried values", reads, nil, m.carriedStep)
	}
	if !m.inBursts(engine, s) {
		return m, err
	}
	if m.burstMoves = m.movesOfBurst(engine); m.burstMoves > 1 {
		updates := append(slices.Clone(carried), burstPhi)
		m.burst = program("mcmc moves", reads, updates, m.burstStep(m.burstMoves))
	}
	if most := min(m.movesInCall(), mostInLockStep); m.carrier.SeveralMoves() && len(m.blank) == 0 && most > 1 {
		m.lockStep = program("mcmc transition in lock step", reads, carried, m.lockStepped(most))
	}
	return m, err
}

// Close frees the programs.
func (m *moves) Close() {
	for _, p := range m.programs {
		p.Close()
	}
}

// blankInputs returns a problem's inputs of the right shapes; nil if it takes none.
func blankInputs(p density.Problem) []any {
	switch {
	case p.HostInputs != nil:
		return p.HostInputs.Blank
	case p.Inputs != nil:
		return p.Inputs(0)
	}
	return nil
}

// probed builds the problem's target in a graph of the Carrier's probe.
func (m *moves) probed(g *Graph) density.Target {
	var inputs []*Node
	for i, t := range m.blank {
		inputs = append(inputs, Parameter(g, fmt.Sprint("input ", i), t.Shape()))
	}
	var start *Node
	if m.problem.Start != nil {
		start = Parameter(g, startName, m.problem.Start.Shape())
	}
	rng := random.New(g, 0)
	m.initial(rng, start) // panics if its shape is wrong
	return m.target(m.problem.Parameters(g), inputs)
}

// target is the problem's own value, which a kernel may assert to other interfaces.
func (m *moves) target(nodes compute.Nodes, inputs []*Node) density.Target {
	target := m.problem.In(nodes, inputs)
	if _, ok := target.(density.MiniBatchTarget); ok && m.kernel.Traits().Carries != CarriesNothing {
		panic(fmt.Errorf("the target is estimated anew at each move, but the kernel carries the log-density of the move " +
			"before: use one for noisy targets, such as mcmc.SGLD or pbnn's, or give it all rows"))
	}
	return target
}

// initial returns the chains' starting points, [J, D]. start is Problem.Start, nil if there is none.
func (m *moves) initial(rng random.Stream, start *Node) *Node {
	phi, from := start, "Problem.Start has"
	switch {
	case start != nil:
	case m.problem.Initial == nil:
		return rng.Normal(m.dtype, m.chains, m.problem.Dim)
	default:
		phi, from = m.problem.Initial(rng, m.dtype, m.chains), "Problem.Initial gives"
	}
	if want := shapes.Make(m.dtype, m.chains, m.problem.Dim); !phi.Shape().Equal(want) {
		panic(fmt.Errorf("%s shape %s: it must be %s", from, phi.Shape(), want))
	}
	return phi
}

// startStep draws the first phi. Inputs: the key of the run, and those of move 0. The record is the log-density at the
// start, if the kernel carries it, and the trials of a user's own targets.
func (m *moves) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	phi := m.initial(rng.Named("initial"), nodes[startName])
	target := m.target(nodes, inputs[1:])
	s := Start(m.kernel, rng.Named("start"), phi, target)
	record := s.LogDensity
	if record == nil {
		record = Zeros(inputs[0].Graph(), shapes.Make(m.dtype, m.chains))
	}
	m.tried = tryout.Trial{}
	if !m.kernel.Traits().NoTarget {
		m.tried.Target(rng, target, phi)
		m.tried.Surrogates(rng, target, phi)
	}
	if numbers := m.tried.Numbers(); numbers != nil {
		record = Concatenate([]*Node{ConvertDType(record, compute.Float64), numbers}, 0)
	}
	return m.carrier.pack(s), record
}

// moveStep moves the chains once. Inputs: the move's key, each chain's step size, which chains move, if a transition
// may take several moves, and those of the problem. The record has the fields of Info that the kernel reports, one
// after the other, [fields J].
func (m *moves) moveStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rest := inputs[2:]
	var moving *Node
	if m.carrier.SeveralMoves() {
		moving, rest = rest[0], rest[1:]
	}
	return m.move(nodes, random.FromKey(inputs[0]), inputs[1], rest, moving)
}

// move moves the chains once, given the move's random numbers, each chain's step size, the problem's inputs, and which
// chains move.
func (m *moves) move(
	nodes compute.Nodes, rng random.Stream, stepSize *Node, inputs []*Node, moving *Node,
) (compute.Nodes, *Node) {
	var tuning Tuning
	if _, ok := m.kernel.(Tunable); ok {
		tuning.StepSize = ConvertDType(stepSize, m.dtype)
	}
	tuning.Scale = nodes[scaleName] // nil where there are none
	packed, outcome := m.carrier.Move(rng, nodes, m.target(nodes, inputs), tuning, moving)
	reported := m.carrier.reported(outcome)
	if len(reported) == 0 {
		return packed, Zeros(rng.Graph(), shapes.Make(m.dtype, 1))
	}
	return packed, Concatenate(reported, 0)
}

// moveRecord is the record of one move.
type moveRecord struct {
	moves  *moves
	values []float64
	phi    string // the state's entry that holds phi after the move
	slot   int    // among its [J, D]
}

// of is a field for one chain, byDefault if the kernel does not report it.
func (t moveRecord) of(f info, chain int, byDefault float64) float64 {
	at := slices.Index(t.moves.carrier.infos, f)
	if at < 0 {
		return byDefault
	}
	return t.values[at*t.moves.chains+chain]
}

// extra is entry i of Info.Extra for one chain.
func (t moveRecord) extra(i, chain int) float64 {
	return t.values[(len(t.moves.carrier.infos)+i)*t.moves.chains+chain]
}
