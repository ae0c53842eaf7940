package mcmc

import (
	"fmt"
	"iter"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// moves are the compiled programs of runs of one kind: the start of all chains and one move of them.
type moves struct {
	problem density.Problem
	kernel  Kernel
	carrier *Carrier
	chains  int
	dtype   compute.DType
	scaled  bool // the state has an entry for the scales of the coordinates

	draw, climb *compute.Program // nil if the chains do not climb
	start       *compute.Program
	leaps       int          // of HMC in a move; 1 for other kernels
	tried       tryout.Trial // by the start: of the target, and of cheap ones
	compared    tryout.Trial // of what a user's own kernel carries
	// step moves all chains; maskedStep moves those that an input selects, and the others stay the same. If every move is
	// a whole transition, no chain ever waits, and maskedStep is step.
	step, maskedStep *compute.Program
	carried          *compute.Program // checks what a user's own kernel carries; nil for others
	burst            *burst           // several moves in one call; nil: one
	lockStep         *compute.Program // the moves of a transition of all chains in one call; nil: one
}

// info is a field of Info.
type info int

const (
	infoComplete info = iota
	infoAcceptance
	infoAccepted
	infoNonFinite
	infoDivergent
	infoEnergyError
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
	"Complete", "Acceptance", "Accepted", "NonFinite", "Divergent", "EnergyError", "Energy", "Length", "Full",
	"Partial", "PartialGradients", "Noise", "Steadiness",
}

func (i Info) field(f info) *Node { return *i.fields()[f] }

// fields returns the fields of infoNames, in the same order.
func (i *Info) fields() []**Node {
	return []**Node{
		&i.Complete, &i.Acceptance, &i.Accepted, &i.NonFinite, &i.Divergent, &i.EnergyError, &i.Energy, &i.Length, &i.Full,
		&i.Partial, &i.PartialGradients, &i.Noise, &i.Steadiness,
	}
}

// until is i for the particles where waits, bool [J], is true, and later for the others; both have the same fields, and
// no Extra.
func (i Info) until(waits *Node, later Info) Info {
	former := append(i.fields(), &i.SquaredJump, &i.JumpGrowth)
	for k, field := range append(later.fields(), &later.SquaredJump, &later.JumpGrowth) {
		if *field != nil {
			*field = Where(waits, *former[k], *field)
		}
	}
	return later
}

const (
	startName = "start" // the state's entry of Problem.Start
	scaleName = "scale" // of the coordinates' scales
)

// newMoves finds what the kernel carries and reports, and prepares the programs.
func newMoves(engine *compute.Engine, problem density.Problem, kernel Kernel, s setup) (*moves, error) {
	m := &moves{
		problem: problem, kernel: kernel, chains: s.Chains, dtype: s.DType, scaled: s.scales(kernel), leaps: 1,
	}
	if k, ok := kernel.(HMC); ok {
		if k.AtOnce == 0 && !engine.OnCPU() && !m.keepsMoves(burstMoves) {
			k = k.onAccelerator()
		}
		kernel, m.leaps = k, k.atOnce()
	}
	var err error
	if m.carrier, err = NewCarrier(engine, kernel, shapes.Make(s.DType, s.Chains, problem.Dim), m.probed); err != nil {
		return nil, err
	}
	data := problem.Entries()
	carried := m.carrier.Names()
	reads := append(slices.Clone(carried), data...)
	if m.scaled {
		reads = append(reads, scaleName)
	}
	first := data
	if problem.Start != nil || problem.ClimbSteps() > 0 {
		first = append(slices.Clone(data), startName)
	}
	if problem.ClimbSteps() > 0 {
		if err = m.newClimb(engine, data); err != nil {
			return nil, err
		}
	}
	if m.start, err = compute.NewProgram(engine, "mcmc start", first, carried, m.startStep); err != nil {
		return nil, err
	}
	if m.step, err = compute.NewProgram(engine, "mcmc move", reads, carried, m.moveStep(false)); err != nil {
		return nil, err
	}
	m.maskedStep = m.step
	if m.carrier.SeveralMoves() {
		m.maskedStep, err = compute.NewProgram(engine, "mcmc move in lock step", reads, carried, m.moveStep(true))
		if err != nil {
			return nil, err
		}
	}
	if m.carrier.ComparesCarried() && blankInputs(problem) == nil {
		m.carried, err = compute.NewProgram(engine, "mcmc carried values", reads, nil, m.carriedStep)
		if err != nil {
			return nil, err
		}
	}
	if m.burst, err = m.newBurst(engine, s, reads); err != nil {
		return nil, err
	}
	m.lockStep, err = m.newLockStep(engine, s, reads)
	return m, err
}

// Close frees the programs.
func (m *moves) Close() {
	if m.climb != nil {
		m.draw.Close()
		m.climb.Close()
	}
	if m.carried != nil {
		m.carried.Close()
	}
	if m.burst != nil {
		m.burst.program.Close()
	}
	m.start.Close()
	m.step.Close()
	if m.maskedStep != m.step {
		m.maskedStep.Close()
	}
	if m.lockStep != nil {
		m.lockStep.Close()
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
	for i, v := range blankInputs(m.problem) {
		t, err := tensorOf(v)
		if err != nil {
			panic(fmt.Errorf("input %d: %w", i, err))
		}
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

func (m *moves) tunable() bool {
	_, ok := m.kernel.(Tunable)
	return ok
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
		TryCheap(&m.tried, rng, m.kernel, target, phi)
	}
	if numbers := m.tried.Numbers(); numbers != nil {
		record = Concatenate([]*Node{record, numbers}, 0)
	}
	return m.carrier.pack(s), record
}

// moveStep moves the chains once. Inputs: the move's key, each chain's step size, if hold which chains move, and
// those of the problem. The record has the fields of Info that the kernel reports, one after the
// other, [fields J].
func (m *moves) moveStep(hold bool) compute.Step {
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		rest := inputs[2:]
		var moving *Node
		if hold {
			moving, rest = rest[0], rest[1:]
		}
		return m.move(nodes, random.FromKey(inputs[0]), inputs[1], rest, moving)
	}
}

// move moves the chains once, given the move's random numbers, each chain's step size, the problem's inputs, and which
// chains move.
func (m *moves) move(
	nodes compute.Nodes, rng random.Stream, stepSize *Node, inputs []*Node, moving *Node,
) (compute.Nodes, *Node) {
	var tuning Tuning
	if m.tunable() {
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

// extra yields the entries of Info.Extra for one chain.
func (t moveRecord) extra(chain int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		first := len(t.moves.carrier.infos)
		for i, name := range t.moves.carrier.extra {
			if !yield(name, t.values[(first+i)*t.moves.chains+chain]) {
				return
			}
		}
	}
}

func (m *moves) reports(f info) bool { return m.carrier.reports(f) }
