package particles

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Graphs are an algorithm whose step is one graph, for NewStepper. The functions build graph, and panic as GoMLX does.
type Graphs struct {
	// Step is one iteration: from a state and a batch to the next state. Of the batch's M rows the first Count are real;
	// the others are padding, which the methods of Core.Target ignore.
	Step func(s State, batch density.Batch, now Now) (State, StepInfo)
	// Start, if set, makes the state before the first step, from particles of the prior with equal weights and the first
	// batch; logSum, a scalar, is -Inf or NaN if all weights are 0. It must be set if State.Auxiliary has entries.
	Start func(s State, batch density.Batch, rng random.Stream) (next State, logSum *graph.Node)
	// PerParticle lists the entries of State.Auxiliary with a row for each particle, [J, ...]: they are divided between
	// devices. Common lists the others.
	PerParticle, Common []string
	// Inputs, if set, returns further inputs of a step, counted from 0, such as a step size that changes. Step gets them
	// as Now.Inputs. There must be as many at each step.
	Inputs func(step int) []float64
}

// NewStepper compiles an algorithm whose step is one graph.
func NewStepper(c *Core, g Graphs) (Stepper, error) {
	s := &graphStepper{Core: c, Graphs: g, own: slices.Concat(g.PerParticle, g.Common)}
	if g.Step == nil || g.Start == nil && len(s.own) > 0 {
		return nil, fmt.Errorf("particles: Graphs needs a Step, and a Start where the state has entries of its own (%q)",
			s.own)
	}
	for _, name := range s.own {
		if slices.Contains([]string{phiName, weightsName, psiName, meanName, squareName, "train_x", "train_y"}, name) {
			return nil, fmt.Errorf("particles: Graphs names %q among the state's own entries, but every run has one of that "+
				"name", name)
		}
	}
	data := []string{"train_x", "train_y"}
	var err error
	if g.Start != nil {
		updates := append(c.kept(), s.own...)
		if s.start, err = compute.NewProgram(c.Engine, "particles start", append(c.kept(), data...), updates,
			s.startStep); err != nil {
			return nil, err
		}
	}
	carried := append(c.Entries(), s.own...)
	s.step, err = compute.NewProgram(c.Engine, "particles step", append(slices.Clone(carried), data...), carried,
		s.compiledStep)
	return s, err
}

// graphStepper is a Stepper whose step is one program.
type graphStepper struct {
	*Core
	Graphs
	own         []string
	start, step *compute.Program // start is nil if there is no Start
}

// startStep is Start over the named state. Inputs: the batch's rows, how many of them are real, its key.
func (g *graphStepper) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := g.Gather(nodes, inputs[0], compute.Element(inputs[1], 0))
	next, logSum := g.Start(StateOf(nodes), batch, random.FromKey(inputs[2]))
	entries := next.Nodes()
	delete(entries, meanName)
	delete(entries, squareName)
	return checked(entries, nodes), Reshape(logSum, 1)
}

// compiledStep is Step over the named state. Inputs: the batch's rows; the step's number, the learning rate, how many
// rows are real, and Graphs.Inputs; the step's key.
func (g *graphStepper) compiledStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	scalars, dtype := inputs[1], nodes[phiName].DType()
	as := func(i int) *Node { return ConvertDType(compute.Element(scalars, i), dtype) }
	now := Now{RNG: random.FromKey(inputs[2]), Number: as(0), Rate: as(1)}
	for i := 3; i < scalars.Shape().Size(); i++ {
		now.Inputs = append(now.Inputs, as(i))
	}
	batch := g.Gather(nodes, inputs[0], compute.Element(scalars, 2))
	next, info := g.Step(StateOf(nodes, g.own...), batch, now)
	entries := checked(next.Nodes(), nodes)
	return entries, info.record(next)
}

// checked returns the entries of the next state. It panics if one is nil or changes its shape.
func checked(next, before compute.Nodes) compute.Nodes {
	for name, node := range next {
		if node == nil {
			panic(fmt.Errorf("the step gives nil for the state's %q", name))
		}
		if was := before[name]; was != nil && !node.Shape().Equal(was.Shape()) {
			panic(fmt.Errorf("the state's %q is %s before the step and %s after it", name, was.Shape(), node.Shape()))
		}
	}
	return next
}

// Begin implements Stepper.
func (g *graphStepper) Begin(s *Session) error {
	if g.start == nil {
		return nil
	}
	batch := s.Batches.At(0)
	key := random.KeyOf(s.Seed).Named("start")
	record, err := g.start.Run(s.State, batch.Rows, []float64{float64(batch.Count)}, key.Words())
	if err != nil {
		return err
	}
	if math.IsInf(record[0], -1) || math.IsNaN(record[0]) {
		return fmt.Errorf("%w: none of the %d particles from the prior has a finite log-likelihood of the first batch: "+
			"check the data for outliers", bayes.ErrZeroWeights, s.Particles)
	}
	return nil
}

// Advance implements Stepper.
func (g *graphStepper) Advance(_ context.Context, s *Session) (StepRecord, error) {
	batch := s.Batch()
	scalars := []float64{float64(s.Step + 1), s.Rate(), float64(batch.Count)}
	if g.Inputs != nil {
		scalars = append(scalars, g.Inputs(s.Step)...)
	}
	key := random.KeyOf(s.Seed).At(uint32(s.Step + 1))
	values, err := g.step.Run(s.State, batch.Rows, scalars, key.Words())
	if err != nil {
		return StepRecord{}, err
	}
	record, left := recordOf(values)
	if left == 0 { // of a step without an evidence
		record.NonFinite = s.Particles
	}
	if left == 0 || math.IsNaN(left) && math.IsNaN(record.LogEvidence) {
		record.LogEvidence = math.Inf(-1)
	}
	return record, nil
}

// Sharded implements Stepper.
func (g *graphStepper) Sharded() []string { return g.PerParticle }

// Close implements Stepper.
func (g *graphStepper) Close() {
	g.step.Close()
	if g.start != nil {
		g.start.Close()
	}
}
