package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// programs are the compiled stages, which the engine keeps.
type programs struct {
	*Stages
	tried bool // the target is no user's, or has passed its trial
}

// Names of the state's entries, as the stages name them.
const (
	phiName        = "phi"
	logWeightsName = "log_weights"
	scaleName      = "scale"
	startName      = "start" // Problem.Start, where it is set
)

// compiled prepares the stages, or takes those that the engine has kept, and finds out the posterior's place.
func (m *machine) compiled() (*programs, func(), error) {
	if err := compute.Try(m.probe); err != nil {
		return nil, nil, fmt.Errorf("smc: %w", err)
	}
	return compute.Keep(m.Engine, m.key(), func() (*programs, error) {
		stages, err := NewStages(m.Engine, m.spec())
		if err != nil {
			return nil, err
		}
		return &programs{Stages: stages}, nil
	})
}

// key names what the stages depend on; "" if that is not known.
func (m *machine) key() string {
	of := m.problem.ProgramKey()
	if of == "" {
		return ""
	}
	return compute.KeyOf("smc", of, m.Kernel, m.Particles, m.chains(), m.Moves, m.block(), m.Devices, m.DType,
		m.Tempering, m.Resampler, m.Threshold, m.folded)
}

// probe builds the target in a graph that is thrown away, to check that it is Factored or Sequential, as the tempering
// needs, and to find out the posterior's place.
func (m *machine) probe() {
	g := graph.NewGraph(m.Engine.Backend(), "smc probe")
	defer g.Finalize()
	nodes := m.problem.Parameters(g)
	m.end = 1
	if m.Tempering == DataTempering {
		m.end = float64(m.sequential(nodes).Rows())
		return
	}
	_, folded := m.factored(nodes).(Folded)
	m.folded = folded && m.problem.Start != nil
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

func (m *machine) sequential(nodes compute.Nodes) Sequential {
	target := m.problem.In(nodes, nil)
	t, ok := target.(Sequential)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, which is not smc.Sequential: data tempering needs the rows' "+
			"likelihoods apart: give an smc.RowPosterior", target))
	}
	if t.Rows() < 1 {
		panic(fmt.Errorf("the target %T has %d rows: there must be at least 1", t, t.Rows()))
	}
	return t
}

// spec says what the stages of this run are compiled for.
func (m *machine) spec() Spec {
	_, tuned := m.adapts()
	s := Spec{
		Kernel: m.Kernel, Particles: m.Particles, Dim: m.problem.Dim, DType: m.DType, Moves: m.Moves,
		Resampler: m.Resampler, Threshold: m.Threshold,
		chains: m.chains(), tuned: tuned, steered: m.steers(), watched: true,
	}
	s.Sequence = Sequence{
		Probe: func(g *graph.Graph) density.Target {
			return m.tempered(m.problem.Parameters(g), graph.Scalar(g, m.DType, 0.5))
		},
		Initial: func(_ compute.Nodes, rng random.Stream) *graph.Node {
			return m.problem.Initial(rng, m.DType, m.Particles)
		},
	}
	switch draws, _ := tryout.DrawsToTry(s.Dim); {
	case draws == 0 || m.folded: // cannot be tried
	case m.problem.Start != nil:
		s.triedOf = "Problem.Start"
		s.tried = func(nodes compute.Nodes, _ random.Stream) *graph.Node {
			every := (m.Particles + draws - 1) / draws // of all parts of Start, in case they lie in some order
			return graph.Slice(nodes[startName], graph.AxisRange().Stride(every))
		}
	default:
		s.triedOf = "Problem.Initial"
		s.tried = func(_ compute.Nodes, rng random.Stream) *graph.Node {
			return m.problem.Initial(rng, m.DType, draws)
		}
	}
	s.Reads = m.problem.Entries()
	if m.problem.Start != nil {
		s.Reads = append(s.Reads, startName)
		s.Initial = func(nodes compute.Nodes, _ random.Stream) *graph.Node {
			return graph.Identity(nodes[startName])
		}
	}
	s.tempered = m.Tempering == LikelihoodTempering
	s.LogPrior = func(nodes compute.Nodes, phi *graph.Node) *graph.Node {
		if s.tempered {
			return m.factored(nodes).LogPrior(phi)
		}
		return m.sequential(nodes).LogPrior(phi)
	}
	s.Target = m.tempered
	block := m.block()
	s.Potential = func(nodes compute.Nodes, phi, place *graph.Node) *graph.Node {
		if s.tempered {
			return m.factored(nodes).LogLikelihood(phi)
		}
		return m.sequential(nodes).LogLikelihoodOf(phi, graph.ConvertDType(place, dtypes.Int32), block)
	}
	return s
}

// block is the number of rows that are taken in at once: not more than there are, as each takes memory.
func (m *machine) block() int {
	if m.Tempering == DataTempering {
		return min(m.Block, int(m.end))
	}
	return m.Block
}

// tempered is the distribution at a place.
func (m *machine) tempered(nodes compute.Nodes, place *graph.Node) density.Target {
	if m.Tempering == LikelihoodTempering {
		return m.factored(nodes).Tempered(place)
	}
	return m.sequential(nodes).FirstRows(place)
}
