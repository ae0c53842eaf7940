package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
)

// Names of the state's entries, as the stages name them.
const (
	phiName        = "phi"
	logWeightsName = "log_weights"
	scaleName      = "scale"
	startName      = "start" // Problem.Start, where it is set
)

// compiled prepares the stages, or takes those that the engine has kept.
func (m *machine) compiled() (*Stages, func(), error) {
	if err := compute.Try(m.probe); err != nil {
		return nil, nil, fmt.Errorf("smc: %w", err)
	}
	return compute.Keep(m.Engine, m.programKey(), func() (*Stages, error) { return NewStages(m.Engine, m.spec()) })
}

// programKey names what the stages depend on; "" if that is not known.
func (m *machine) programKey() string {
	of := m.problem.ProgramKey()
	if of == "" {
		return ""
	}
	return compute.KeyOf("smc", of, m.Kernel, m.Particles, m.chains(), m.Moves, m.Devices, m.DType,
		m.Threshold, m.folded)
}

// probe builds the target in a graph that is thrown away, to check that it is Factored, and to find out whether it is
// folded.
func (m *machine) probe() {
	g := graph.NewGraph(m.Engine.Backend(), "smc probe")
	defer g.Finalize()
	nodes := m.problem.Parameters(g)
	_, isFolded := m.factored(nodes).(folded)
	m.folded = isFolded && m.problem.Start != nil
}

// factored is the problem's target, given the state's entries (see density.Problem.In). It panics if the target is not
// Factored.
func (m *machine) factored(nodes compute.Nodes) Factored {
	target := m.problem.In(nodes, nil)
	t, ok := target.(Factored)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, which is not smc.Factored: likelihood tempering needs prior and "+
			"likelihood apart: give an smc.Posterior", target))
	}
	return t
}

// spec says what the stages of this run are compiled for.
func (m *machine) spec() Spec {
	_, tuned := m.adapts()
	s := Spec{
		Kernel: m.Kernel, Particles: m.Particles, Dim: m.problem.Dim, DType: m.DType, Moves: m.Moves,
		Resampler: Multinomial, Threshold: m.Threshold,
		chains: m.chains(), tuned: tuned, steered: m.steers(), tempered: true, try: m.try,
	}
	s.Sequence = Sequence{
		Probe: func(g *graph.Graph) density.Target {
			return m.tempered(m.problem.Parameters(g), graph.Scalar(g, m.DType, 0.5))
		},
		Initial: func(_ compute.Nodes, rng random.Stream) *graph.Node {
			return m.problem.Initial(rng, m.DType, m.Particles)
		},
	}
	s.Reads = m.problem.Entries()
	if m.problem.Start != nil {
		s.Reads = append(s.Reads, startName)
		s.Initial = func(nodes compute.Nodes, _ random.Stream) *graph.Node {
			return graph.Identity(nodes[startName])
		}
	}
	s.LogPrior = func(nodes compute.Nodes, phi *graph.Node) *graph.Node { return m.factored(nodes).LogPrior(phi) }
	s.Target = m.tempered
	s.Potential = func(nodes compute.Nodes, phi, _ *graph.Node) *graph.Node {
		return m.factored(nodes).LogLikelihood(phi)
	}
	return s
}

// tempered is the distribution at a power of the likelihood.
func (m *machine) tempered(nodes compute.Nodes, power *graph.Node) density.Target {
	return m.factored(nodes).Tempered(power)
}
