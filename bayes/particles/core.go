package particles

import (
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Core is a model bound to data and settings, from which an Algorithm builds its graphs. Its methods that take or
// return nodes build graph, and panic as GoMLX does.
type Core struct {
	Training                       // with the defaults; see Session.Training for which are each run's
	run.Settings                   // with the defaults, Engine the open one; likewise
	Bound        *bayes.BoundModel // the model with the data's widths: the prior, and the layout of phi and psi
	Target       density.Posterior // the likelihood of a batch, evaluated in chunks of particles

	validate  compute.Step // see validation; nil without a validation part
	validates bool         // the Stepper does after each step
}

// State is the state of a run between steps, as nodes of a step's graph.
type State struct {
	Phi        *graph.Node   // [J, D], the particles
	LogWeights *graph.Node   // [J], normalised
	Psi        *graph.Node   // [W], the shared parameters; nil if nothing is shared
	Moments    train.Moments // Adam's moments of the gradient with respect to psi, [W] each
	// Auxiliary are the algorithm's own variables, with the names in Graphs.PerParticle and Graphs.Common.
	Auxiliary map[string]*graph.Node
}

// Now holds the inputs of a step besides the batch.
type Now struct {
	RNG          random.Stream // a stream for this step alone
	Number, Rate *graph.Node   // the step's number, counted from 1, and the learning rate, scalars
	Inputs       []*graph.Node // the values of Graphs.Inputs, scalars
}

// StepInfo holds a step's diagnostics, scalars; nil where an algorithm has none. They become a StepRecord, which
// documents each of them.
type StepInfo struct {
	// LogEvidence also says whether the step is refused: if it is -Inf or NaN all weights are 0, and the run ends with
	// bayes.ErrZeroWeights. Without it a run whose particles are all lost ends as its posterior is made.
	LogEvidence                        *graph.Node
	Loss, ESS, UniqueAncestors         *graph.Node
	Resampled, GradientRejected        *graph.Node // 1 or 0, or bool
	NonFinite                          *graph.Node
	Acceptance, StepSize, MeanGradient *graph.Node
}

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

// recorded is the number of values of a record.
const recorded = 11

// record is the info of a step as a vector, in the order of recordOf: like is of the type of the particles.
func (t StepInfo) record(like *Node) *Node {
	if t.LogEvidence != nil {
		lost := ConstAs(t.LogEvidence, math.Inf(-1))
		t.LogEvidence = Where(IsNaN(t.LogEvidence), lost, t.LogEvidence)
	}
	var row []*Node
	for _, node := range []*Node{
		t.LogEvidence, nil, t.Loss, t.ESS, t.UniqueAncestors, t.Resampled, t.NonFinite, t.GradientRejected, t.Acceptance,
		t.StepSize, t.MeanGradient,
	} {
		if node == nil {
			node = ConstAs(like, math.NaN())
		}
		row = append(row, ConvertDType(node, compute.Float64))
	}
	return Stack(row, 0)
}

// The names of a State's entries.
const (
	phiName     = "phi"
	weightsName = "log_weights"
	psiName     = "psi"
	meanName    = "mean"
	squareName  = "square"
)

// StateOf is the State of its entries, with those of Auxiliary that are named.
func StateOf(s compute.Nodes, auxiliary ...string) State {
	state := State{
		Phi: s[phiName], LogWeights: s[weightsName], Psi: s[psiName],
		Moments: train.Moments{Mean: s[meanName], Square: s[squareName]}, Auxiliary: map[string]*Node{},
	}
	for _, name := range auxiliary {
		state.Auxiliary[name] = s[name]
	}
	return state
}

// Nodes are the entries of a State.
func (s State) Nodes() compute.Nodes {
	nodes := compute.Nodes{phiName: s.Phi, weightsName: s.LogWeights}
	if s.Psi != nil {
		nodes[psiName], nodes[meanName], nodes[squareName] = s.Psi, s.Moments.Mean, s.Moments.Square
	}
	for name, node := range s.Auxiliary {
		nodes[name] = node
	}
	return nodes
}

// kept returns the names of the entries that make a posterior.
func (c *Core) kept() []string {
	if c.Bound.W == 0 {
		return []string{phiName, weightsName}
	}
	return []string{phiName, weightsName, psiName}
}

// Entries are the names of a State's entries without Auxiliary: "phi" and "log_weights", and with shared parameters
// "psi", "mean" and "square".
func (c *Core) Entries() []string {
	if c.Bound.W == 0 {
		return c.kept()
	}
	return append(c.kept(), meanName, squareName)
}

// EqualWeights returns the log-weights of J particles of equal weight, -log J each, [J], with the dtype of like.
func (c *Core) EqualWeights(like *graph.Node) *graph.Node {
	return BroadcastToDims(ConstAs(like, -math.Log(float64(c.Particles))), c.Particles)
}

// Resample draws ancestors if the effective sample size is at most Threshold J; otherwise each particle is its own
// ancestor. It returns the ancestors' indices, int32 [J], the log-weights afterwards, [J], which are equal if it has
// resampled, and whether it has, a bool scalar.
func (c *Core) Resample(logWeights *graph.Node, rng random.Stream) (ancestors, after, done *graph.Node) {
	// With equal weights the effective sample size is J, but may come out a little larger by rounding. The limit is
	// raised by a factor 1 + 1e-6, so that Threshold 1 still resamples at every step.
	least := ConstAs(logWeights, c.Threshold*float64(c.Particles)*(1+1e-6))
	done = LessOrEqual(smc.EffectiveSampleSize(logWeights), least)
	ancestors = c.Resampler.Draw(logWeights, logWeights.Shape().Dim(0), rng)
	if c.Threshold < 1 {
		places := Iota(logWeights.Graph(), ancestors.Shape(), 0)
		ancestors = Where(BroadcastToDims(done, c.Particles), ancestors, places)
	}
	return ancestors, Where(BroadcastToDims(done, c.Particles), c.EqualWeights(logWeights), logWeights), done
}

// Learn moves psi by Adam along N/M times the given gradient, [W], of the batch's log-likelihood. If the gradient is
// not finite psi stays the same, and rejected is 1; otherwise it is 0. Without shared parameters it does nothing.
func (c *Core) Learn(s State, gradient *graph.Node, batch density.Batch, now Now) (next State, rejected *graph.Node) {
	if s.Psi == nil {
		return s, ConstAs(s.Phi, 0.0)
	}
	gradient = Mul(gradient, c.Target.Scale(batch))
	var moved *Node
	s.Psi, s.Moments, moved = c.Optimiser.AscendFinite(nil, s.Psi, gradient, s.Moments, now.Number, now.Rate)
	return s, ConvertDType(Not(moved), s.Phi.DType())
}

// Gather makes a batch of the training rows with the given indices, int32 [M]. The first count of them, a scalar, are
// real; the rest is padding.
func (c *Core) Gather(s compute.Nodes, rows, count *Node) density.Batch {
	return density.Batch{
		X:     Gather(s["train_x"], ExpandAxes(rows, -1)),
		Y:     Gather(s["train_y"], ExpandAxes(rows, -1)),
		Count: ConvertDType(count, s["train_y"].DType()),
	}
}
