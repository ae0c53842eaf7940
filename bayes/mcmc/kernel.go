// Package mcmc provides Markov kernels that move all particles, or chains, at once, in a graph, and runs them.
//
// A kernel takes particles phi, [J, D], to new ones. Some leave a target distribution invariant, by accepting or
// rejecting what they propose: RandomWalkMetropolis, PreconditionedCrankNicolson, MALA, HMC and NUTS. ULA, SGLD and
// SGHMC accept every step, may use noisy gradients, and have a bias that falls with the step size. OrnsteinUhlenbeck
// and RandomWalk have no target: the first leaves a Gaussian invariant, such as the prior, and the second leaves no
// distribution invariant; they are for the particles of package ohsmc. Each kernel's comment says what it leaves
// invariant, and tests check it.
//
// SplitHMC is HMC for posteriors near a mode, in whitened coordinates, with the gradient of the target or of a
// surrogate. DelayedAcceptance makes any of these kernels cheaper: it moves on a cheap target, and evaluates the target
// itself once for several moves.
//
// Sample runs chains of a kernel on a Problem. SampleSplit runs chains of SplitHMC, and first finds what they need: the
// mode, the coordinates, and a surrogate if a short pilot run shows that it pays. If you do not know which kernel to
// take, and there is a gradient, take NUTS.
//
// # Moves and transitions
//
// A Move is one compiled step: at most one evaluation of the target or of its gradient for each particle. Most kernels
// make a whole transition in it. Those that follow a trajectory need several: the State carries the trajectory so far,
// and Info.Complete says which particles have completed a transition. So the graph does not grow with the length of a
// trajectory, and particles with trajectories of different lengths need not wait for one another.
//
// # How to write your own
//
// A Kernel has four methods. Carries and UsesTarget say which of its target's values it keeps and whether it evaluates
// one, Check refuses wrong settings, and Move builds the graph of one move, from one State to the next, with
// diagnostics in Info. Build moves from MetropolisHastings, Accept, Choose and Leapfrog; the example of Kernel is
// complete. Four optional interfaces: Stateful carries more from move to move, Tunable lets a warm-up choose the step
// size and Steered the length of a trajectory, and Exact says that the target is left invariant. A kernel is given the
// user's own Target value, and may assert it to an interface with more methods. Package check tests a kernel.
package mcmc

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Target is an unnormalised log-density of each particle, which does not depend on the other particles. Its methods
// build graph, and panic as GoMLX does.
type Target interface {
	// LogDensity is [J] for phi, [J, D]. Values that are not finite count as -Inf.
	LogDensity(phi *graph.Node) *graph.Node
	// Gradient is LogDensity, [J], and its gradient with respect to phi, [J, D].
	Gradient(phi *graph.Node) (logDensity, gradient *graph.Node)
}

// MiniBatchTarget is a Target that can be estimated from mini-batches. A kernel checks whether its target is one, and
// draws mini-batches for each move: by WithMiniBatch if it follows a gradient, by Differences if it compares two
// points. Only kernels that carry nothing from move to move may use one, since carried values would belong to other
// mini-batches.
type MiniBatchTarget interface {
	Target // on all rows, or NaN if that is unknown
	// WithMiniBatch is the target estimated from mini-batches drawn by the stream: the same ones at every point.
	WithMiniBatch(rng random.Stream) Target
	// Differences are M unbiased estimates of log p(to_j) - log p(from_j), [J, M], for from and to, [J, D]. Each is from a
	// mini-batch of its own, drawn by the stream, the same for all particles and both points. Variance, [J], is the
	// variance of one estimate given the points, estimated within the mini-batches, and degrees are the degrees of freedom
	// of that estimate; nil and 0 if unknown. Values that are not finite are returned as they are.
	Differences(rng random.Stream, from, to *graph.Node) (estimates, variance *graph.Node, degrees float64)
}

// ByMiniBatch is a move's estimate of a target: by mini-batches drawn by the stream if it is a MiniBatchTarget, else
// the target itself. Kernels for noisy gradients evaluate it instead of their target.
func ByMiniBatch(rng random.Stream, target Target) Target {
	if batches, ok := target.(MiniBatchTarget); ok {
		return batches.WithMiniBatch(rng.Named("target"))
	}
	return target
}

// Density is a Target given by its log-density alone, [J, D] to [J]: the gradient is taken in reverse mode.
type Density func(phi *graph.Node) *graph.Node

// LogDensity implements Target.
func (f Density) LogDensity(phi *graph.Node) *graph.Node { return f(phi) }

// Gradient implements Target.
func (f Density) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity = f(phi)
	return logDensity, Gradient(ReduceAllSum(logDensity), phi)[0]
}

// Carries says which values of the target at phi a kernel keeps in the State from one move to the next. A kernel that
// carries nothing may still evaluate its target in every move, as ULA and SGLD do: see Kernel.UsesTarget.
type Carries int

// From least to most.
const (
	CarriesNothing Carries = iota
	CarriesLogDensity
	CarriesGradient // and the log-density
)

// State is a kernel's state between moves.
type State struct {
	Phi        *graph.Node // [J, D]
	LogDensity *graph.Node // [J], of Phi under the target, -Inf where not finite; nil if the kernel carries nothing
	Gradient   *graph.Node // [J, D], of LogDensity; nil unless the kernel carries it
	// Auxiliary are the kernel's auxiliary variables, such as momenta, each of shape [J, ...]; nil for most.
	Auxiliary map[string]*graph.Node
}

// Tuning are the results of a warm-up, as nodes, so that one compiled move works with all values. The zero value leaves
// the kernel's own settings.
type Tuning struct {
	// StepSize is a scalar, or [J], a step size for each particle; nil: the kernel's own. Step reads it.
	StepSize *graph.Node
	Scale    *graph.Node // [D], the scales of phi's coordinates under the target: step sizes are in units of them; nil: 1
	Steps    *graph.Node // of a trajectory, a scalar, for a Steered kernel; nil: the kernel's own
}

// Info are the diagnostics of a move. All are [J], of phi's type.
type Info struct {
	// Complete is 1 for each particle that has completed a transition in this move; nil: all have. The other fields but
	// NonFinite are meaningful only where it is 1.
	Complete *graph.Node
	// Acceptance is the probability with which the transition was accepted, or its mean along a trajectory; nil for
	// kernels that always move.
	Acceptance *graph.Node
	// Accepted is 1 for each particle that moved, 0 for each that stayed; nil for kernels that always move.
	Accepted *graph.Node
	// NonFinite is 1 for each particle whose proposal was rejected because it is NaN, or the log-density or the gradient
	// there is NaN or infinite; nil for kernels that do not check this.
	NonFinite *graph.Node
	// Divergent is 1 for each particle whose trajectory left the level set of its energy; nil for kernels without one.
	Divergent *graph.Node
	// EnergyError is the energy at the end of a trajectory less that at its start; nil for kernels without one.
	EnergyError *graph.Node
	// Energy is the energy at the start of the transition, once the momentum is drawn; nil for kernels without one.
	Energy *graph.Node
	// Length is the number of gradients that the transition took or, for kernels without gradients that take several
	// moves, the number of moves; nil for kernels that take one gradient a move, or none.
	Length *graph.Node
	// Full is the number of log-densities of the target, without a gradient, that the transition took. nil means one for
	// kernels that carry the log-density alone and make a transition in each move, and none for others.
	Full *graph.Node
	// Partial and PartialGradients are the numbers of log-densities, and of gradients, of a cheap target or of a part of
	// the data that the transition took; nil: none.
	Partial, PartialGradients *graph.Node
	// SquaredJump is the squared length of the transition, in units of Tuning.Scale, times Acceptance. JumpGrowth is its
	// derivative with respect to the logarithm of the trajectory's length. Both are nil for kernels that are not Steered.
	SquaredJump, JumpGrowth *graph.Node
	// Noise is the estimated variance of the log-ratio that accepts or rejects; nil for kernels that know the ratio.
	Noise *graph.Node
	// SquaredSkewness is m3^2/m2^3, from the central moments of the sample that estimates the log-ratio; nil for kernels
	// without a sample of at least 3.
	SquaredSkewness *graph.Node
	// Extra are further diagnostics of a kernel, always with the same names. ChainStats has their means.
	Extra map[string]*graph.Node
}

// Kernel is one move of all particles. Start and Move build graph, and panic as GoMLX does.
type Kernel interface {
	// Carries says which of the target's values a State holds for this kernel.
	Carries() Carries
	// UsesTarget says whether Move evaluates its target. For kernels that do not, such as RandomWalk, the target may be
	// nil: they do not depend on what is sampled.
	UsesTarget() bool
	// Check returns an error that names a setting that is wrong, for particles of dimension d.
	Check(d int) error
	// Move draws the next state.
	Move(rng random.Stream, s State, target Target, tuning Tuning) (State, Info)
}

// Stateful is a Kernel with auxiliary variables in the State (State.Auxiliary).
type Stateful interface {
	Kernel
	// Start fills in Auxiliary of a state.
	Start(rng random.Stream, s State) State
}

// Tunable is a Kernel whose step size a warm-up can choose.
type Tunable interface {
	Kernel
	// Tune gives the step size that is set, 0 if none is, and the mean acceptance at which the kernel mixes best in
	// many dimensions.
	Tune() (stepSize, acceptance float64)
}

// Steered is a Kernel that follows trajectories whose length a sampler can choose, by Tuning.Steps, from what the moves
// report as Info.SquaredJump and Info.JumpGrowth.
type Steered interface {
	Kernel
	// Length is the number of steps of a trajectory that is set, 0 if none is.
	Length() int
}

// Exact is a Kernel that says whether it leaves its target invariant exactly. Samplers whose draws or weights are exact
// refuse other kernels: see LeavesInvariant.
type Exact interface {
	Kernel
	// Exact says whether the kernel, with its present settings, leaves every target invariant, without a bias of
	// discretisation or of mini-batches. Kernels that accept or reject by the exact ratio do.
	Exact() bool
}

// Reversible is a Kernel that says whether its transitions are in detailed balance with its target, p(phi) P(phi, phi')
// = p(phi') P(phi', phi), if auxiliary variables are drawn anew before each transition. DelayedAcceptance accepts no
// other.
type Reversible interface {
	Kernel
	Reversible() bool
}

// SeveralMoves is a Kernel that says how many moves a transition takes at most, if that is more than one.
type SeveralMoves interface {
	Kernel
	MostMoves() int
}

// LeavesInvariant says whether a kernel is Exact, and says that it leaves its target invariant.
func LeavesInvariant(kernel Kernel) bool {
	exact, ok := kernel.(Exact)
	return ok && exact.Exact()
}

// Approximation says what chains of a kernel draw from where it does not leave its target invariant, or does not say
// so, as bayes.Provenance has it; empty for others.
func Approximation(kernel Kernel) string {
	if LeavesInvariant(kernel) {
		return ""
	}
	return fmt.Sprintf("where chains of %T go, which do not leave their target invariant, or do not say so (mcmc.Exact)",
		kernel)
}

// Check returns an error that names what is wrong with a kernel's settings for particles of dimension d. A step size of
// 0 is an error without a warm-up to choose it.
func Check(kernel Kernel, d int, warmUp bool) error {
	if kernel == nil {
		return fmt.Errorf("mcmc: there is no kernel: set one, such as mcmc.RandomWalkMetropolis{StepSize: 0.1}")
	}
	if err := kernel.Check(d); err != nil {
		return err
	}
	if t, ok := kernel.(Tunable); ok && !warmUp {
		if stepSize, _ := t.Tune(); stepSize == 0 {
			return fmt.Errorf("mcmc: %T.StepSize is 0: set it, or run a warm-up, which chooses one", kernel)
		}
	}
	return nil
}

// Start is the state of particles at phi, [J, D], that have not moved yet: it evaluates the values that the kernel
// carries.
func Start(kernel Kernel, rng random.Stream, phi *graph.Node, target Target) State {
	s := State{Phi: phi}
	switch kernel.Carries() {
	case CarriesLogDensity:
		s.LogDensity = compute.Gate(target.LogDensity(phi))
	case CarriesGradient:
		s.LogDensity, s.Gradient = evaluate(target, phi)
	}
	return withAuxiliary(kernel, rng, s, target)
}

// withAuxiliary is a state with the kernel's auxiliary variables, as before its first move.
func withAuxiliary(kernel Kernel, rng random.Stream, s State, target Target) State {
	switch starter := kernel.(type) {
	case startsByTarget:
		return starter.startBy(rng, s, target)
	case Stateful:
		return starter.Start(rng, s)
	}
	return s
}

// startsByTarget is a kernel whose auxiliary variables depend on the target; it replaces Stateful.
type startsByTarget interface {
	startBy(rng random.Stream, s State, target Target) State
}

// evaluate is the target's log-density and gradient, replaced by -Inf and 0 where either is not finite, so that such
// points are rejected.
func evaluate(target Target, phi *Node) (logDensity, gradient *Node) {
	logDensity, gradient = target.Gradient(phi)
	finite := And(IsFinite(logDensity), compute.RowsAll(IsFinite(gradient), gradient.DType()))
	return compute.Only(finite, logDensity), Choose(finite, gradient, ZerosLike(gradient))
}

// Choose takes row j of a where condition j is true, else of b; a and b are of one shape, [J, ...].
func Choose(condition, a, b *graph.Node) *graph.Node {
	for condition.Rank() < a.Rank() {
		condition = ExpandAxes(condition, -1)
	}
	return Where(BroadcastToDims(condition, a.Shape().Dimensions...), a, b)
}

// MetropolisHastings accepts the proposal, a state, with probability min(1, exp(logRatio)), each particle for itself,
// and never one whose log-density is not finite. logRatio, [J], is log p(phi') - log p(phi) + log q(phi | phi') - log
// q(phi' | phi), with q the density of the proposal.
func MetropolisHastings(rng random.Stream, current, proposal State, logRatio *graph.Node) (State, Info) {
	accepted, info := Accept(rng, logRatio, IsFinite(proposal.LogDensity))
	next := current
	next.Phi = Choose(accepted, proposal.Phi, current.Phi)
	next.LogDensity = Where(accepted, proposal.LogDensity, current.LogDensity)
	if proposal.Gradient != nil {
		next.Gradient = Choose(accepted, proposal.Gradient, current.Gradient)
	}
	return next, info
}

// Accept draws with probability min(1, exp(logRatio)), each particle for itself, true for those that accept, [J] like
// logRatio; never where finite is false or the ratio is NaN. Info has the acceptance.
func Accept(rng random.Stream, logRatio, finite *graph.Node) (accepted *graph.Node, info Info) {
	u := rng.Named("accept").Uniform(logRatio.DType(), logRatio.Shape().Dim(0))
	return acceptAbove(Log(u), logRatio, finite)
}

// acceptAbove is Accept by the logarithm of the uniform number.
func acceptAbove(threshold, logRatio, finite *Node) (accepted *Node, info Info) {
	finite = And(finite, Not(IsNaN(logRatio))) // NaN where the particle itself is NaN
	logRatio = compute.Only(finite, logRatio)
	dtype := logRatio.DType()
	accepted = LessThan(threshold, logRatio)
	probability := Exp(MinScalar(logRatio, 0))
	return accepted, Info{
		Acceptance: Where(IsFinite(probability), probability, ZerosLike(probability)),
		Accepted:   ConvertDType(accepted, dtype),
		NonFinite:  ConvertDType(Not(finite), dtype),
	}
}

// Step is the tuned step size, or the kernel's own, of like's type: a scalar, or [J, 1], which multiplies phi, [J, D],
// either way.
func (t Tuning) Step(like *graph.Node, own float64) *graph.Node {
	switch {
	case t.StepSize == nil:
		return ConstAs(like, own)
	case t.StepSize.Rank() == 1:
		return ConvertDType(ExpandAxes(t.StepSize, 1), like.DType())
	}
	return ConvertDType(t.StepSize, like.DType())
}

// Scaled multiplies x, [J, D], by the scales of the coordinates.
func (t Tuning) Scaled(x *graph.Node) *graph.Node {
	if t.Scale == nil {
		return x
	}
	return Mul(x, BroadcastToShape(ExpandAxes(ConvertDType(t.Scale, x.DType()), 0), x.Shape()))
}

// PerParticle is the shape of one number for each particle, [J], of phi's type.
func (s State) PerParticle() shapes.Shape { return shapes.Make(s.Phi.DType(), s.Phi.Shape().Dim(0)) }

// overCoordinates is x, [J], repeated for each coordinate of like, [J, D].
func overCoordinates(x, like *Node) *Node {
	return BroadcastToShape(ExpandAxes(x, 1), like.Shape())
}

// normal draws a standard normal of like's shape.
func normal(rng random.Stream, like *Node) *Node {
	return rng.Normal(like.DType(), like.Shape().Dimensions...)
}

// row is a constant [D], broadcast to like's shape, [J, D].
func row(like *Node, values []float64) *Node {
	r := ConvertDType(Const(like.Graph(), [][]float64{values}), like.DType())
	return BroadcastToShape(r, shapes.Make(like.DType(), like.Shape().Dimensions...))
}

func nonNegative(name, zero string, v float64) error {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("mcmc: %s is %v: it must be positive and finite (0: %s)", name, v, zero)
	}
	return nil
}

// The meaning of 0 in a setting, for messages.
const (
	zeroDefault = "the default"
	zeroWarmUp  = "a warm-up chooses"
)
