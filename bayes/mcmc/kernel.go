// Package mcmc has Markov kernels that move all particles, or chains, at once, in a graph, and runs them.
//
// A kernel takes particles phi, [J, D], to new ones. Some leave a target distribution invariant, by accepting or
// rejecting what they propose: RandomWalkMetropolis, PreconditionedCrankNicolson, MALA, HMC and NUTS. ULA, SGLD and
// SGHMC take every step of a gradient, which may be noisy, and have a bias that falls with the step. OrnsteinUhlenbeck
// and RandomWalk ask no target: one leaves a Gaussian invariant, such as the prior, and the other nothing; they are for
// the particles of package ohsmc. What is invariant stands in each kernel's comment; tests hold it to that.
//
// Sample runs chains of a kernel on a Problem. Take NUTS if the gradient can be had and you do not know better.
//
// # Moves and transitions
//
// A Move is one compiled step: at most one evaluation of the target or of its gradient for each particle. Most kernels
// make a whole transition in it. Those that follow a trajectory need several: their Moves go on from what the State
// carries of theirs, and Info.Complete says which particles have come to the end of a transition. So no graph grows
// with the length of a trajectory, and particles whose trajectories differ in length need not wait for one another.
//
// # A kernel of one's own
//
// A Kernel has four methods. Carries and UsesTarget say what it keeps of its target and whether it asks one, Check
// refuses wrong settings, and Move builds the graph of one move from the State before to the State after, and tells in
// Info what people look at. MetropolisHastings, Accept, Choose and Leapfrog are what such moves are made of; the
// example of Kernel is a whole one. Three interfaces are there for those that need them: Stateful carries more from
// move to move, Tunable lets a warm-up choose the step size, and Exact says that the target is left invariant. A kernel
// is given the Target that the user wrote, so it may ask it for more than a Target has. Package check tests a kernel.
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

// MiniBatchTarget is a Target that mini-batches give estimates of. A kernel finds it in its target, and draws
// mini-batches anew for each move: by WithMiniBatch if it follows a gradient, by Differences if it compares two places.
// Only kernels that carry nothing from move to move may be given one, since what they carried were of other
// mini-batches.
type MiniBatchTarget interface {
	Target // by all rows, or NaN if it cannot be told
	// WithMiniBatch is the log-density and its gradient estimated by the mini-batches that the stream picks: the same
	// ones wherever it is asked.
	WithMiniBatch(rng random.Stream) Target
	// Differences are estimates of log p(to_j) - log p(from_j), with mean exactly this, each by a mini-batch of its own
	// that the stream picks, the same for all particles and both places: [J, M] for from and to, [J, D]. Variance is
	// that of one of them given the places, estimated within the mini-batches, [J], and degrees how many degrees of
	// freedom that estimate has; nil and 0 if it cannot be told. What is not finite stands there as it is.
	Differences(rng random.Stream, from, to *graph.Node) (estimates, variance *graph.Node, degrees float64)
}

// ByMiniBatch is a move's estimate of a target: that by the mini-batches that the stream picks if it is a
// MiniBatchTarget, and else the target itself. Kernels for noisy gradients ask it instead of their target.
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

// Carries says what a kernel keeps of its target from one move to the next, and so what a State holds for it. What a
// kernel that carries something needs of its target's values at phi it finds in the State; one that carries nothing may
// still evaluate its target in every move, as ULA and SGLD do: see Kernel.UsesTarget.
type Carries int

// From least to most.
const (
	CarriesNothing Carries = iota
	CarriesLogDensity
	CarriesGradient // and the log-density
)

// State is what the next move needs.
type State struct {
	Phi        *graph.Node // [J, D]
	LogDensity *graph.Node // [J], of Phi under the target, -Inf where not finite; nil if the kernel carries nothing
	Gradient   *graph.Node // [J, D], of LogDensity; nil unless the kernel carries it
	// Own is what a kernel carries of its own, each of shape [J, ...]; nil for most.
	Own map[string]*graph.Node
}

// Tuning is what a warm-up has found, as nodes, so that one compiled move serves all values. The zero value leaves the
// kernel's own settings as they are.
type Tuning struct {
	// StepSize is a scalar, or [J], a step size for each particle; nil: the kernel's own. Step reads it.
	StepSize *graph.Node
	Scale    *graph.Node // [D], the scales of phi's coordinates under the target: step sizes are in units of them; nil: 1
}

// Info is what people look at. All are [J], of phi's type.
type Info struct {
	// Complete is 1 for each particle that has come to the end of a transition in this move; nil: all have. The others
	// of Info have a meaning only there, but for NonFinite.
	Complete *graph.Node
	// Acceptance is the probability with which the transition was accepted, or its mean along a trajectory; nil for
	// kernels that always move.
	Acceptance *graph.Node
	// Accepted is 1 for each particle that moved, 0 for each that stayed; nil for kernels that always move.
	Accepted *graph.Node
	// NonFinite is 1 for each particle at whose proposal the log-density or the gradient is NaN or infinite, or that is
	// NaN itself, and which was rejected for it; nil for kernels that do not look.
	NonFinite *graph.Node
	// Divergent is 1 for each particle whose trajectory left the level set of its energy; nil for kernels without one.
	Divergent *graph.Node
	// EnergyError is the energy at the end of a trajectory less that at its start; nil for kernels without one.
	EnergyError *graph.Node
	// Energy is the energy at the start of the transition, once the momentum is drawn; nil for kernels without one.
	Energy *graph.Node
	// Length is the number of gradients that the transition took, or of moves for kernels that take no gradients but
	// several moves; nil for kernels that take one a move, or none.
	Length *graph.Node
	// Noise is the estimated variance of the log-ratio that accepts or rejects; nil for kernels that know the ratio.
	Noise *graph.Node
	// SquaredSkewness is that of the sample which estimates the log-ratio, m3^2/m2^3 of its central moments; nil for
	// kernels that have no sample of 3 and more.
	SquaredSkewness *graph.Node
	// Extra is what else a kernel tells, by names of its own; always the same names. ChainStats has their means.
	Extra map[string]*graph.Node
}

// Kernel is one move of all particles. Start and Move build graph, and panic as GoMLX does.
type Kernel interface {
	// Carries says what of the target a State holds for this kernel.
	Carries() Carries
	// UsesTarget says whether Move looks at its target. The target may be nil for kernels that do not: they move by
	// themselves, as RandomWalk does, and know nothing of what is sampled.
	UsesTarget() bool
	// Check returns an error that names a setting that is wrong, for particles of dimension d.
	Check(d int) error
	// Move draws the next state.
	Move(rng random.Stream, s State, target Target, tuning Tuning) (State, Info)
}

// Stateful is a Kernel that carries a state of its own from move to move.
type Stateful interface {
	Kernel
	// Start completes a state that holds all but Own.
	Start(rng random.Stream, s State) State
}

// Tunable is a Kernel whose step size a warm-up can choose.
type Tunable interface {
	Kernel
	// Tune gives the step size that is set, 0 if none is, and the mean acceptance at which the kernel mixes best in
	// many dimensions.
	Tune() (stepSize, acceptance float64)
}

// Exact is a Kernel that says whether it leaves its target invariant exactly. Callers that promise exact draws, or
// weights that rest on them, refuse a kernel that does not say so: see LeavesInvariant.
type Exact interface {
	Kernel
	// Exact says whether, with the settings that it has, the kernel leaves every target invariant, without a bias of
	// discretisation or of mini-batches. What accepts and rejects by the right ratio does.
	Exact() bool
}

// LeavesInvariant says whether a kernel is Exact, and says that it leaves its target invariant.
func LeavesInvariant(kernel Kernel) bool {
	exact, ok := kernel.(Exact)
	return ok && exact.Exact()
}

// Check returns an error that names what is wrong with a kernel's settings for particles of dimension d. A step size of
// 0 asks for a warm-up: without one it is an error.
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

// Start is the state of particles at phi, [J, D], that have not moved yet: it evaluates what the kernel carries.
func Start(kernel Kernel, rng random.Stream, phi *graph.Node, target Target) State {
	s := State{Phi: phi}
	switch kernel.Carries() {
	case CarriesLogDensity:
		s.LogDensity = compute.Gate(target.LogDensity(phi))
	case CarriesGradient:
		s.LogDensity, s.Gradient = evaluate(target, phi)
	}
	if starter, ok := kernel.(Stateful); ok {
		s = starter.Start(rng, s)
	}
	return s
}

// evaluate is the gate: where the log-density or a coordinate of the gradient is not finite, the log-density is -Inf
// and the gradient 0.
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

// MetropolisHastings takes the proposal, a state, with probability min(1, exp(logRatio)), each particle for itself, and
// never one whose log-density is not finite. logRatio, [J], is log p(phi') - log p(phi) + log q(phi | phi') - log
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
// logRatio; never where finite is false or the ratio is NaN. Info holds what there is to say of it.
func Accept(rng random.Stream, logRatio, finite *graph.Node) (accepted *graph.Node, info Info) {
	finite = And(finite, Not(IsNaN(logRatio))) // NaN where the particle itself is
	logRatio = compute.Only(finite, logRatio)
	dtype := logRatio.DType()
	u := rng.Named("accept").Uniform(dtype, logRatio.Shape().Dim(0))
	accepted = LessThan(Log(u), logRatio)
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

// What 0 stands for in a setting.
const (
	zeroDefault = "the default"
	zeroWarmUp  = "a warm-up chooses"
)
