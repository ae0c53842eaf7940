// Package mcmc provides Markov kernels that move all particles, or chains, at once, in a compiled graph, and runs them.
//
// A Markov kernel draws new particles phi, [J, D], given the present ones. It leaves a target distribution invariant if
// particles that are draws from the target remain so after the move; repeated moves then lead to the target from
// elsewhere too.
//
// # Which to take
//
// If there is a gradient, take NUTS. RandomWalkMetropolis, PreconditionedCrankNicolson, MALA, HMC and NUTS leave their
// target invariant exactly, by accepting or rejecting what they propose. SGLD, SGHMC and MCLMC accept every step, and
// have a bias that falls with the step size; the first two may use the noisy gradients of mini-batches.
// DelayedAcceptance moves on a cheap target, and evaluates the target itself once for several moves. OrnsteinUhlenbeck
// and RandomWalk have no target: they are for the particles of package ohsmc. Package surrogate has a kernel for
// posteriors near the Gaussian of a mode.
//
// Chains are the method that runs any of these kernels.
//
// # Where it fails
//
// A target or a kernel that contradicts itself, a start without density, no step size, and chains that do not move
// (ErrStuck) are errors. Everything else returns draws, which may be wrong: read Result.Warnings, the numbers of
// ChainStats, and R-hat and ESS, which package diag computes:
//
//	summary, err := diag.OfSample(fit.Details[*mcmc.Details](result).Draws.Sample())
//	fmt.Println(summary)
//
// An R-hat above 1.01 says that the chains have not yet seen the same distribution: take more draws and a longer
// warm-up, and look at the single chains. With an ESS below 400 take more draws, or a kernel that mixes faster. The
// units of a network can be exchanged, so judge networks by their predictions (diag.OfPrediction).
//
// No number shows a mode that no chain has found, nor the bias of SGLD, SGHMC and MCLMC. For the first, begin the
// chains far apart and compare with package smc; for the second, halve the step size and see what changes.
//
// # How to write your own
//
// The example of Kernel is complete. Build moves from MetropolisHastings, Accept, Choose and Leapfrog, and test them by
// package check. See Kernel for the optional interfaces.
package mcmc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Carries says which values of the target at phi a kernel keeps in the State from one move to the next. A kernel that
// carries nothing may still evaluate its target in every move, as SGLD does: see Traits.NoTarget.
type Carries int

// From least to most.
const (
	CarriesNothing Carries = iota
	CarriesLogDensity
	CarriesGradient // and the log-density
)

// Traits are what samplers must know of a kernel.
type Traits struct {
	Carries Carries // which of the target's values a State holds
	// NoTarget says that Move does not evaluate its target, which may be nil: RandomWalk does not depend on what is
	// sampled.
	NoTarget bool
	// Exact says that the kernel leaves every target invariant, without a bias of discretisation or of mini-batches.
	// Kernels that accept or reject by the exact ratio do. Samplers whose draws or weights are exact refuse others.
	Exact bool
	// Reversible says that transitions are in detailed balance with the target, p(phi) P(phi, phi') = p(phi') P(phi',
	// phi): a pair of points is passed in either direction equally often. Auxiliary variables, such as momenta, are drawn
	// anew before each transition. DelayedAcceptance accepts no other kernel.
	Reversible bool
}

// State is what a kernel keeps from one move to the next, as nodes of a graph.
type State struct {
	Phi        *graph.Node // [J, D]
	LogDensity *graph.Node // [J], of Phi under the target, -Inf where not finite; nil if the kernel carries nothing
	Gradient   *graph.Node // [J, D], of LogDensity; nil unless the kernel carries it
	// Auxiliary are the kernel's auxiliary variables, such as momenta, each of shape [J, ...]; nil for most.
	Auxiliary map[string]*graph.Node
}

// Tuning is what a sampler has chosen for a kernel, such as the result of a warm-up. The values are nodes, so that one
// compiled move works with all of them. The zero value leaves the kernel's own settings.
type Tuning struct {
	// StepSize is a scalar, or [J], a step size for each particle; nil: the kernel's own. Step reads it.
	StepSize *graph.Node
	Scale    *graph.Node // [D], the scales of phi's coordinates under the target: step sizes are in units of them; nil: 1
	Steps    *graph.Node // of a trajectory, a scalar, for a Steered kernel; nil: the kernel's own
}

// Scaled is x, [J, D], times the scales s: of a step in units of the scales it gives the step of phi, and of a gradient
// with respect to phi the one with respect to phi/s.
func (t Tuning) Scaled(x *graph.Node) *graph.Node {
	if t.Scale == nil {
		return x
	}
	return Mul(x, BroadcastToShape(ExpandAxes(ConvertDType(t.Scale, x.DType()), 0), x.Shape()))
}

// unscaled is the inverse of Scaled.
func (t Tuning) unscaled(x *Node) *Node {
	if t.Scale == nil {
		return x
	}
	return Div(x, BroadcastToShape(ExpandAxes(ConvertDType(t.Scale, x.DType()), 0), x.Shape()))
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
	// Divergent is 1 for each particle whose trajectory was given up since its energy, constant on an exact trajectory,
	// was off by too much; nil for kernels without a trajectory.
	Divergent *graph.Node
	// Energy is the energy at the start of the transition, once the momentum is drawn: minus the log-density plus the
	// kinetic energy of the momentum; nil for kernels without one.
	Energy *graph.Node
	// Length and Full are the numbers of gradients of the target, with its log-density, and of log-densities alone that
	// the transition took; Partial and PartialGradients are those of a cheap target or of a part of the data. nil: none.
	Length, Full, Partial, PartialGradients *graph.Node
	// SquaredJump is the squared length of the transition, in units of Tuning.Scale, times Acceptance. JumpGrowth is its
	// derivative with respect to the logarithm of the trajectory's length. Both are nil for kernels that are not Steered.
	SquaredJump, JumpGrowth *graph.Node
	// Steadiness, between 0 and 1, falls as a step's energy error grows, and is 0 where the step is not finite: it is
	// what a warm-up brings to Tune's second value in place of Acceptance, for kernels that always move; nil for others.
	Steadiness *graph.Node
	// Noise is the estimated variance of the log-ratio that accepts or rejects, if that is estimated from mini-batches;
	// nil for kernels that know the ratio.
	Noise *graph.Node
	// Extra are further diagnostics of a kernel, always with the same names. ChainStats has their means.
	Extra map[string]*graph.Node
}

// Kernel is one move of all particles. Start and Move build graph, and panic as GoMLX does.
//
// A transition takes a particle from one draw to the next. A Move is one compiled step, with at most one evaluation of
// the target or of its gradient for each particle. Only DelayedAcceptance, and MCLMC, whose step takes two gradients,
// have several in a Move. Most kernels make a whole transition in one Move. HMC and NUTS, which follow a trajectory,
// need several: the State carries the trajectory so far, and Info.Complete says which particles have completed a
// transition. So the graph does not grow with the length of a trajectory, and particles with trajectories of different
// lengths need not wait for one another.
//
// Optional interfaces: Stateful carries more from move to move. Tunable lets a warm-up choose the step size, and
// Steered the length of a trajectory. A kernel is given the user's own Target value, and may assert it to an interface
// with more methods.
type Kernel interface {
	// Traits says what kind of kernel it is, with its present settings.
	Traits() Traits
	// Check returns an error that names a setting that is wrong, for particles of dimension d.
	Check(d int) error
	// Move draws the next state.
	Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info)
}

// Stateful is a Kernel with auxiliary variables in the State (State.Auxiliary).
type Stateful interface {
	Kernel
	// Start fills in Auxiliary of a state.
	Start(rng random.Stream, s State, target density.Target) State
}

// Tunable is a Kernel whose step size a warm-up can choose.
type Tunable interface {
	Kernel
	// Tune gives the step size that is set, 0 if none is, and the mean acceptance at which the kernel mixes best in
	// many dimensions, or the mean Info.Steadiness for a kernel that reports it.
	Tune() (stepSize, acceptance float64)
}

// Steered is a Kernel that follows trajectories whose length a sampler can choose, by Tuning.Steps. The sampler judges
// a length by the squared distance that moves go, which they report as Info.SquaredJump and Info.JumpGrowth.
type Steered interface {
	Kernel
	// Length is the number of steps of a trajectory that is set, 0 if none is.
	Length() int
}

// approximation says in words, for bayes.Provenance, that chains of a kernel do not draw from their target exactly; it
// is empty for kernels that leave their target invariant.
func approximation(kernel Kernel) string {
	if kernel.Traits().Exact {
		return ""
	}
	return fmt.Sprintf("where chains of %T go, which do not leave their target invariant, or do not say so "+
		"(mcmc.Traits)", kernel)
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
func Start(kernel Kernel, rng random.Stream, phi *graph.Node, target density.Target) State {
	s := State{Phi: phi}
	switch kernel.Traits().Carries {
	case CarriesLogDensity:
		s.LogDensity = logDensityOf(target, phi)
	case CarriesGradient:
		s.LogDensity, s.Gradient = Evaluate(target, phi)
	}
	return withAuxiliary(kernel, rng, s, target)
}

// withAuxiliary is a state with the kernel's auxiliary variables, as before its first move.
func withAuxiliary(kernel Kernel, rng random.Stream, s State, target density.Target) State {
	if k, ok := kernel.(Stateful); ok {
		return k.Start(rng, s, target)
	}
	return s
}

// Evaluate is the target's log-density, [J], and gradient, [J, D]. Where either is not finite they are -Inf and 0, so
// that such points are rejected. It panics if they have other shapes.
func Evaluate(target density.Target, phi *Node) (logDensity, gradient *Node) {
	logDensity, gradient = target.Gradient(phi)
	checkShape("the target's log-density", logDensity, State{Phi: phi}.PerParticle())
	checkShape("the target's gradient", gradient, phi.Shape())
	finite := And(IsFinite(logDensity), compute.RowsAll(IsFinite(gradient), gradient.DType()))
	return compute.Only(finite, logDensity), Choose(finite, gradient, ZerosLike(gradient))
}

// logDensityOf is the target's log-density, [J], -Inf where it is not finite. It panics if it has another shape.
func logDensityOf(target density.Target, phi *Node) *Node {
	logDensity := target.LogDensity(phi)
	checkShape("the target's log-density", logDensity, State{Phi: phi}.PerParticle())
	return compute.Gate(logDensity)
}

// Choose takes row j of a where condition j is true, else of b; a and b are of one shape, [J, ...].
func Choose(condition, a, b *graph.Node) *graph.Node {
	for condition.Rank() < a.Rank() {
		condition = ExpandAxes(condition, -1)
	}
	return Where(BroadcastToDims(condition, a.Shape().Dimensions...), a, b)
}

// MetropolisHastings accepts the proposal, a state, with probability min(1, exp(logRatio)), each particle for itself.
// It never accepts a log-density that is not finite. logRatio, [J], is log p(phi') - log p(phi) + log q(phi | phi') -
// log q(phi' | phi), with q the density of the proposal. Info counts the evaluation of the proposal.
func MetropolisHastings(rng random.Stream, current, proposal State, logRatio *graph.Node) (State, Info) {
	accepted, info := Accept(rng, logRatio, IsFinite(proposal.LogDensity))
	next := current
	next.Phi = Choose(accepted, proposal.Phi, current.Phi)
	next.LogDensity = Where(accepted, proposal.LogDensity, current.LogDensity)
	if proposal.Gradient == nil {
		info.Full = OnesLike(logRatio)
		return next, info
	}
	next.Gradient, info.Length = Choose(accepted, proposal.Gradient, current.Gradient), OnesLike(logRatio)
	return next, info
}

// Accept decides for each particle by itself, with probability min(1, exp(logRatio)): accepted, bool [J], is true for
// those that accept, never where finite is false or the ratio, [J], is NaN. Info has Acceptance, Accepted and
// NonFinite.
func Accept(rng random.Stream, logRatio, finite *graph.Node) (accepted *graph.Node, info Info) {
	u := rng.Named("accept").Uniform(logRatio.DType(), logRatio.Shape().Dim(0))
	return acceptAbove(Log(u), logRatio, finite)
}

// acceptAbove is Accept given the threshold, [J], the logarithm of the uniform number that the ratio must exceed.
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
	return BroadcastToShape(ConvertDType(Const(like.Graph(), [][]float64{values}), like.DType()), like.Shape())
}

// zeroWarmUp is the meaning of a step size of 0, for messages.
const zeroWarmUp = "a warm-up chooses"

// checkStep checks a step size that a warm-up may choose.
func checkStep(kernel string, stepSize float64) error {
	return limits.Fill("mcmc: "+kernel, limits.Float("StepSize", &stepSize).Zero(zeroWarmUp).Positive())
}
