package mcmc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// moves are the compiled programs of runs of one kind: the start of all chains and one move of them.
type moves struct {
	problem Problem
	kernel  Kernel
	chains  int
	dtype   compute.DType
	scaled  bool // the scales of the coordinates are an entry of the state

	own   []string // names of State.Own, sorted
	infos []info   // that the kernel gives

	start *compute.Program
	// free moves all chains; held only those that its input picks, while the others stay as they are. They are one where every move is a whole
	// transition.
	step, maskedStep *compute.Program
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
	infoNoise
	infoSquaredSkewness
	infoFields
)

func (i Info) field(f info) *Node {
	return [infoFields]*Node{i.Complete, i.Acceptance, i.Accepted, i.NonFinite, i.Divergent, i.EnergyError, i.Energy, i.Length, i.Noise, i.SquaredSkewness}[f]
}

const (
	dataPrefix = "data/"
	ownPrefix  = "own/"
	startName  = "start" // the state's entry of Problem.Start
)

// newMoves finds out what the kernel carries and tells, and prepares the programs.
func newMoves(engine *compute.Engine, problem Problem, kernel Kernel, s Settings) (*moves, error) {
	m := &moves{problem: problem, kernel: kernel, chains: s.Chains, dtype: s.DType, scaled: s.scales(kernel)}
	if err := compute.Try(func() { m.probe(engine) }); err != nil {
		return nil, fmt.Errorf("mcmc: building a move of %T: %w", kernel, err)
	}
	var data []string
	for name := range problem.Data {
		data = append(data, dataPrefix+name)
	}
	slices.Sort(data)
	carried := m.carried()
	reads := append(slices.Clone(carried), data...)
	if m.scaled {
		reads = append(reads, "scale")
	}
	var err error
	first := data
	if problem.Start != nil {
		first = append(slices.Clone(data), startName)
	}
	if m.start, err = compute.NewProgram(engine, "mcmc start", first, carried, m.startStep); err != nil {
		return nil, err
	}
	if m.step, err = compute.NewProgram(engine, "mcmc move", reads, carried, m.moveStep(false)); err != nil {
		return nil, err
	}
	m.maskedStep = m.step
	if slices.Contains(m.infos, infoComplete) {
		m.maskedStep, err = compute.NewProgram(engine, "mcmc move in lock step", reads, carried, m.moveStep(true))
	}
	return m, err
}

func (m *moves) close() {
	m.start.Close()
	m.step.Close()
	if m.maskedStep != m.step {
		m.maskedStep.Close()
	}
}

// blank are inputs of the right shapes; nil if the problem takes none.
func (p Problem) blank() []any {
	switch {
	case p.HostInputs != nil:
		return p.HostInputs.Blank
	case p.Inputs != nil:
		return p.Inputs(0)
	}
	return nil
}

// probe builds the start and a move in a graph that is thrown away.
func (m *moves) probe(engine *compute.Engine) {
	g := NewGraph(engine.Backend(), "mcmc probe")
	defer g.Finalize()
	nodes := compute.Nodes{}
	for name, t := range m.problem.Data {
		nodes[dataPrefix+name] = Parameter(g, dataPrefix+name, t.Shape())
	}
	var inputs []*Node
	if first := m.problem.blank(); first != nil {
		for i, v := range first {
			t, ok := v.(*tensors.Tensor)
			if !ok {
				var err error
				if t, err = tensors.FromAnyValue(v); err != nil {
					panic(fmt.Errorf("input %d: %w", i, err))
				}
			}
			inputs = append(inputs, Parameter(g, fmt.Sprint("input ", i), t.Shape()))
		}
	}
	rng := random.New(g, 0)
	if m.problem.Start != nil {
		nodes[startName] = Parameter(g, startName, m.problem.Start.Shape())
	}
	target := m.target(rng, nodes, inputs)
	s := Start(m.kernel, rng, m.initial(rng, nodes[startName]), target)
	m.own = slices.Sorted(maps.Keys(s.Own))
	var tuning Tuning
	if m.tunable() {
		tuning.StepSize = Scalar(g, m.dtype, 1)
	}
	next, infos := m.kernel.Move(rng, s, target, tuning)
	for name, node := range m.pack(next) {
		if was := m.pack(s)[name]; node == nil || was == nil || !node.Shape().Equal(was.Shape()) {
			panic(fmt.Errorf("the state's %q is %v before a move and %v after it", name, was, node))
		}
	}
	want := shapes.Make(m.dtype, m.chains)
	for f := range infoFields {
		if node := infos.field(f); node != nil {
			if !node.Shape().Equal(want) {
				panic(fmt.Errorf("a field of Info has shape %s: it must be %s", node.Shape(), want))
			}
			m.infos = append(m.infos, f)
		}
	}
}

func (m *moves) tunable() bool {
	_, ok := m.kernel.(Tunable)
	return ok
}

// carried names the entries of the state that a move replaces.
func (m *moves) carried() []string {
	names := []string{"phi"}
	if m.kernel.Carries() >= CarriesLogDensity {
		names = append(names, "log_density")
	}
	if m.kernel.Carries() == CarriesGradient {
		names = append(names, "gradient")
	}
	for _, name := range m.own {
		names = append(names, ownPrefix+name)
	}
	return names
}

func (m *moves) pack(s State) compute.Nodes {
	nodes := compute.Nodes{"phi": s.Phi}
	if m.kernel.Carries() >= CarriesLogDensity {
		nodes["log_density"] = s.LogDensity
	}
	if m.kernel.Carries() == CarriesGradient {
		nodes["gradient"] = s.Gradient
	}
	for name, node := range s.Own {
		nodes[ownPrefix+name] = node
	}
	return nodes
}

func (m *moves) unpack(nodes compute.Nodes) State {
	s := State{Phi: nodes["phi"], LogDensity: nodes["log_density"], Gradient: nodes["gradient"]}
	for _, name := range m.own {
		if s.Own == nil {
			s.Own = map[string]*Node{}
		}
		s.Own[name] = nodes[ownPrefix+name]
	}
	return s
}

// target is the problem's, held to its shapes; of one that is noisy, what the move's mini-batches show.
func (m *moves) target(rng random.Stream, nodes compute.Nodes, inputs []*Node) Target {
	data := compute.Nodes{}
	for name, node := range nodes {
		if bare, ok := strings.CutPrefix(name, dataPrefix); ok {
			data[bare] = node
		}
	}
	target := m.problem.Target(data, inputs)
	if target == nil {
		panic(fmt.Errorf("Problem.Target gives no target"))
	}
	noisy, ok := target.(MiniBatchTarget)
	if !ok {
		return shapeChecked{target}
	}
	if m.kernel.Carries() != CarriesNothing {
		panic(fmt.Errorf("the target is estimated anew at each move, but the kernel carries the log-density of the move before: " +
			"use one for noisy targets, such as mcmc.SGLD or pbnn's, or give it all rows"))
	}
	return noisyChecked{shapeChecked{noisy.WithMiniBatch(rng.Named("target"))}, noisy}
}

type shapeChecked struct{ target Target }

// noisyChecked is a draw of a noisy target, and the target itself.
type noisyChecked struct {
	shapeChecked
	noisy MiniBatchTarget
}

var _ MiniBatchTarget = noisyChecked{}

func (t noisyChecked) WithMiniBatch(rng random.Stream) Target {
	return shapeChecked{t.noisy.WithMiniBatch(rng)}
}

func (t noisyChecked) Differences(rng random.Stream, from, to *Node) (estimates, variance *Node, degrees float64) {
	estimates, variance, degrees = t.noisy.Differences(rng, from, to)
	if want := from.Shape().Dim(0); estimates.Rank() != 2 || estimates.Shape().Dim(0) != want || estimates.DType() != from.DType() {
		panic(fmt.Errorf("the target's differences have shape %s: it must be (%s)[%d M]", estimates.Shape(), from.DType(), want))
	}
	if variance != nil {
		t.check("variance of a difference", variance, shapes.Make(from.DType(), from.Shape().Dim(0)))
	}
	return estimates, variance, degrees
}

func (t shapeChecked) LogDensity(phi *Node) *Node {
	logDensity := t.target.LogDensity(phi)
	t.check("log-density", logDensity, shapes.Make(phi.DType(), phi.Shape().Dim(0)))
	return logDensity
}

func (t shapeChecked) Gradient(phi *Node) (logDensity, gradient *Node) {
	logDensity, gradient = t.target.Gradient(phi)
	t.check("log-density", logDensity, shapes.Make(phi.DType(), phi.Shape().Dim(0)))
	t.check("gradient", gradient, phi.Shape())
	return logDensity, gradient
}

func (t shapeChecked) check(what string, node *Node, want shapes.Shape) {
	if !node.Shape().Equal(want) {
		panic(fmt.Errorf("the target's %s has shape %s: it must be %s", what, node.Shape(), want))
	}
}

// initial is where the chains begin; start is Problem.Start, nil if there is none.
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

// startStep draws the first phi. Inputs: the seed, and those of move 0. The record is the log-density at the start, if the kernel needs it.
func (m *moves) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromSeed(inputs[0])
	s := Start(m.kernel, rng.Named("start"), m.initial(rng.Named("initial"), nodes[startName]), m.target(rng, nodes, inputs[1:]))
	record := s.LogDensity
	if record == nil {
		record = Zeros(inputs[0].Graph(), shapes.Make(m.dtype, m.chains))
	}
	return m.pack(s), record
}

// moveStep moves the chains once. Inputs: the seed, the number of the move, the step size, if hold which chains move, and those of the problem. The
// record is what the kernel tells of each chain, one field of Info after the other.
func (m *moves) moveStep(hold bool) compute.Step {
	return func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		rng := random.FromSeed(inputs[0]).Named("move").At(inputs[1])
		var tuning Tuning
		if m.tunable() {
			tuning.StepSize = ConvertDType(inputs[2], m.dtype)
		}
		tuning.Scale = nodes["scale"] // nil if there is none
		rest := inputs[3:]
		var moving *Node
		if hold {
			moving, rest = rest[0], rest[1:]
		}
		next, outcome := m.kernel.Move(rng, m.unpack(nodes), m.target(rng, nodes, rest), tuning)
		packed := m.pack(next)
		if hold {
			for name, node := range packed {
				packed[name] = Choose(moving, node, nodes[name])
			}
		}
		if len(m.infos) == 0 {
			return packed, Zeros(inputs[0].Graph(), shapes.Make(dtypes.Float64, 1))
		}
		var record []*Node
		for _, f := range m.infos {
			record = append(record, outcome.field(f))
		}
		return packed, Concatenate(record, 0)
	}
}

// moveRecord is the record of one move.
type moveRecord struct {
	moves  *moves
	values []float64
}

// of gives a field for one chain, byDefault if the kernel does not tell it.
func (t moveRecord) of(f info, chain int, byDefault float64) float64 {
	at := slices.Index(t.moves.infos, f)
	if at < 0 {
		return byDefault
	}
	return t.values[at*t.moves.chains+chain]
}

func (m *moves) tells(f info) bool { return slices.Contains(m.infos, f) }
