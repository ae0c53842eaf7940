package mcmc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

// Surrogated is a Target with a cheap substitute, such as an emulator, the posterior given a part of the rows, or its
// Laplace approximation. DelayedAcceptance moves on it unless Cheap is set.
type Surrogated interface {
	density.Target
	// Surrogate is the cheap target. It must have mass wherever the target has.
	Surrogate() density.Target
}

// DelayedAcceptance makes K transitions of any reversible kernel on a cheap target p*. One evaluation of the target p
// then accepts or rejects the state phi' that they reach from phi (Christen and Fox 2005, "Markov chain Monte Carlo
// using an approximation"). With K above 1 it is the surrogate transition of Liu 2001, section 9.4.3, and the step of
// multilevel ladders. The probability of acceptance is
//
//	min(1, exp[(log p(phi') - log p(phi)) - (log p*(phi') - log p*(phi))])
//
// It leaves p invariant, whatever p* is. K transitions that are reversible with respect to p* propose phi' from phi
// p*(phi')/p*(phi) times as often as phi from phi'. The second bracket corrects exactly this ratio. A bad cheap target
// costs only acceptance. But no chain enters a region where p* is 0, so p* must have mass wherever p has.
//
// A Move is a whole transition: one log-density of the target and K transitions of Inner on the cheap target, unrolled
// in the graph. Inner's auxiliary variables, such as momenta, are drawn anew in each. Its step size must be set: sample
// the cheap target by itself with a warm-up, and take Tuned from that result.
//
// Info.Acceptance is the acceptance of the second stage, the decision by the target. It is 0 where the inner
// transitions have not moved. Extra reports the stages separately: "inner acceptance" and, over the transitions in
// which the inner ones moved, "second-stage acceptance" and "second-stage log-ratio".
type DelayedAcceptance struct {
	Inner       Kernel // on the cheap target: must be Exact and Reversible, with a step size
	Transitions int    // K, of Inner; default 1
	// Cheap makes the cheap target from the user's target; nil: the target is Surrogated. What the function captures is
	// not a part of a checkpoint's identity: Problem.Name must identify it.
	Cheap func(target density.Target) density.Target `json:"-"`
	// Share is the cost of an evaluation of the cheap target relative to one of the target, for Evaluations; 0: unknown.
	Share float64
	// OnHost is for a target that is evaluated on the host between the moves, as in a problem of Hosted; the draws are the
	// same. A move cannot wait for the host, so each one decides on the proposal of the move before it, and then proposes
	// anew; the first decides on nothing.
	OnHost bool
}

// delayedUnrolled is the largest number of inner moves of one Move, each of which is a part of its graph.
const delayedUnrolled = 1024

// Traits implements Kernel: it carries the log-density or, if the target is evaluated on the host, nothing, since the
// graph does not know its value.
func (k DelayedAcceptance) Traits() Traits {
	of := Traits{Carries: CarriesLogDensity, Exact: true, Reversible: true}
	if k.OnHost {
		of.Carries = CarriesNothing
	}
	return of
}

// PartialShare is the cost of the cheap target's evaluation as a share of the target's.
func (k DelayedAcceptance) PartialShare() float64 { return k.Share }

// Check implements Kernel.
func (k DelayedAcceptance) Check(d int) error {
	if k.Transitions < 0 {
		return fmt.Errorf("mcmc: DelayedAcceptance.Transitions is %d: it must be at least 1 (0: the default, 1)",
			k.Transitions)
	}
	if !(k.Share >= 0 && k.Share <= 1) {
		return fmt.Errorf("mcmc: DelayedAcceptance.Share is %v: it must be from 0 (unknown) to 1", k.Share)
	}
	if k.Inner == nil {
		return errors.New("mcmc: DelayedAcceptance.Inner is nil: set a kernel, such as " +
			"mcmc.RandomWalkMetropolis{StepSize: 0.1}")
	}
	if err := Check(k.Inner, d, false); err != nil {
		return fmt.Errorf("mcmc: DelayedAcceptance.Inner, whose step size no warm-up chooses: %w", err)
	}
	if of := k.Inner.Traits(); !of.Exact || !of.Reversible {
		return fmt.Errorf("mcmc: DelayedAcceptance.Inner is %T, which does not say that it is Exact and Reversible: its "+
			"proposals would not be corrected by the ratio of the densities; take mcmc.RandomWalkMetropolis, "+
			"mcmc.PreconditionedCrankNicolson, mcmc.MALA, mcmc.HMC or mcmc.NUTS", k.Inner)
	}
	if d, ok := k.Inner.(DelayedAcceptance); ok && d.OnHost {
		return errors.New("mcmc: DelayedAcceptance.Inner is a DelayedAcceptance with OnHost, whose target is not known " +
			"within a move: set OnHost of the outer one alone")
	}
	if moves := k.innerMoves() * cmp.Or(k.Transitions, 1); moves > delayedUnrolled {
		return fmt.Errorf("mcmc: DelayedAcceptance makes up to %d moves of %T in one transition: take at most %d, by fewer "+
			"Transitions or shorter trajectories", moves, k.Inner, delayedUnrolled)
	}
	return nil
}

// innerMoves returns the largest number of moves that a transition of Inner takes.
func (k DelayedAcceptance) innerMoves() int {
	if several, ok := k.Inner.(severalMoves); ok {
		return several.mostMoves()
	}
	return 1
}

// MarshalJSON writes Inner's type, beside all settings, for checkpoints.
func (k DelayedAcceptance) MarshalJSON() ([]byte, error) {
	decides := map[string]any{
		"inner": fmt.Sprintf("%T", k.Inner), "settings": k.Inner, "transitions": cmp.Or(k.Transitions, 1),
		"own_cheap": k.Cheap != nil,
	}
	if k.OnHost {
		decides["on_host"] = true
	}
	return json.Marshal(decides)
}

// The entries that DelayedAcceptance carries: the cheap target's log-density at phi, and its gradient if Inner carries
// it.
const (
	delayedCheap    = "cheap_log_density"
	delayedGradient = "cheap_gradient"
)

// cheap is the cheap target.
func (k DelayedAcceptance) cheap(target density.Target) density.Target {
	if k.Cheap != nil {
		return k.Cheap(target)
	}
	if s, ok := target.(Surrogated); ok {
		return s.Surrogate()
	}
	panic(fmt.Errorf("DelayedAcceptance has no cheap target: set Cheap, or give the target, %T, a method Surrogate",
		target))
}

// CheapTargets returns the cheap target and, if Inner has cheap targets in turn, those too.
func (k DelayedAcceptance) CheapTargets(target density.Target) []density.Target {
	cheap := k.cheap(target)
	return append([]density.Target{cheap}, cheapTargets(k.Inner, cheap)...)
}

// StartBy evaluates the cheap target where the particles begin.
func (k DelayedAcceptance) StartBy(rng random.Stream, s State, target density.Target) State {
	at := State{Phi: s.Phi}
	if k.OnHost {
		target = hostedOf(target)
	}
	cheap := k.cheap(target)
	if err := checkTarget(k.Inner, rng, s.Phi, cheap); err != nil { // one number for all chains would be repeated
		panic(fmt.Errorf("DelayedAcceptance's cheap target: %w", err))
	}
	if k.Inner.Traits().Carries == CarriesGradient {
		at.LogDensity, at.Gradient = Evaluate(cheap, s.Phi)
	} else {
		at.LogDensity = compute.Gate(cheap.LogDensity(s.Phi))
	}
	s.Auxiliary = carriedCheap(at)
	if k.OnHost {
		k.startOnHost(s, at)
	}
	return s
}

// onCheap is a state as one of the inner kernel, with the cheap target's values.
func (k DelayedAcceptance) onCheap(s State) State {
	return State{Phi: s.Phi, LogDensity: s.Auxiliary[delayedCheap], Gradient: s.Auxiliary[delayedGradient]}
}

// carriedCheap returns the cheap target's values at a state, as entries of State.Auxiliary.
func carriedCheap(at State) map[string]*Node {
	own := map[string]*Node{delayedCheap: at.LogDensity}
	if at.Gradient != nil {
		own[delayedGradient] = at.Gradient
	}
	return own
}

// Move implements Kernel.
func (k DelayedAcceptance) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	at := k.onCheap(s)
	if k.OnHost {
		return k.moveOnHost(rng, s, at, target, tuning)
	}
	end, inner := k.propose(rng, at, k.cheap(target), tuning)

	// One evaluation of the target accepts or rejects their end.
	density := compute.Gate(target.LogDensity(end.Phi))
	accepted, next, info := k.decide(threshold(rng, s), at, end, density, Sub(density, s.LogDensity), inner)
	next.LogDensity = Where(accepted, density, s.LogDensity)
	return next, info
}

// propose makes K transitions on the cheap target, each from auxiliary variables of its own, and sums up what they
// report.
func (k DelayedAcceptance) propose(
	rng random.Stream, at State, cheap density.Target, tuning Tuning,
) (end State, inner innerInfo) {
	end = at
	for j := range cmp.Or(k.Transitions, 1) {
		end = k.innerTransition(rng.Named(fmt.Sprint("inner ", j)), end, cheap, tuning, &inner)
	}
	return end, inner
}

// threshold is the logarithm of a uniform number, [J], which the log-ratio must exceed for a particle to accept.
func threshold(rng random.Stream, s State) *Node {
	return Log(rng.Named("accept").Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0)))
}

// decide is the second stage, given the target's log-density at the end and its increase from the point where the inner
// transitions began. The next state has everything but the target's log-density.
func (k DelayedAcceptance) decide(
	threshold *Node, at, end State, density, onTarget *Node, inner innerInfo,
) (accepted *Node, next State, info Info) {
	onCheap := Sub(end.LogDensity, at.LogDensity)
	logRatio := Sub(onTarget, onCheap)
	finite := And(IsFinite(density), And(IsFinite(end.LogDensity), IsFinite(at.LogDensity)))
	accepted, info = acceptAbove(threshold, logRatio, finite)

	moved := Not(compute.RowsAll(Equal(end.Phi, at.Phi), at.Phi.DType())) // also where phi is NaN
	accepted = And(accepted, moved)
	chosen := chooseState(accepted, end, at)
	next = State{Phi: chosen.Phi, Auxiliary: carriedCheap(chosen)}
	none := fillAs(logRatio, math.NaN())
	info.Extra = map[string]*Node{
		"second-stage acceptance": Where(moved, info.Acceptance, none),
		"second-stage log-ratio":  Where(And(moved, finite), logRatio, none),
	}
	if inner.acceptance != nil {
		info.Extra["inner acceptance"] = DivScalar(inner.acceptance, float64(cmp.Or(k.Transitions, 1)))
	}
	info.Acceptance = Where(moved, info.Acceptance, ZerosLike(logRatio))
	info.Accepted = ConvertDType(accepted, at.Phi.DType())
	info.Full, info.Partial, info.PartialGradients = OnesLike(logRatio), inner.logDensities, inner.gradients
	return accepted, next, info
}

// innerInfo sums up what the inner transitions report, [J] each.
type innerInfo struct{ acceptance, logDensities, gradients *Node }

// innerTransition makes one transition of Inner for every particle: particles that have completed theirs wait for the
// others.
func (k DelayedAcceptance) innerTransition(
	rng random.Stream, s State, cheap density.Target, tuning Tuning, sum *innerInfo,
) State {
	s = withAuxiliary(k.Inner, rng.Named("start"), s, cheap)
	add := func(sum **Node, x *Node) {
		if *sum != nil {
			x = Add(*sum, x)
		}
		*sum = x
	}
	var waits, acceptance *Node // bool [J], those of the moves before; nil: none
	for i := range k.innerMoves() {
		next, info := k.Inner.Move(rng.Named(fmt.Sprint("move ", i)), s, cheap, tuning)
		gradients, logDensities := evaluated(k.Inner, info, s)
		if waits != nil {
			next = chooseState(waits, s, next)
			gradients, logDensities = zeroWhere(waits, gradients), zeroWhere(waits, logDensities)
			if info.Acceptance != nil {
				info.Acceptance = Where(waits, acceptance, info.Acceptance)
			}
		}
		s, acceptance = next, info.Acceptance
		if info.Complete != nil { // the cost of a transition is reported at its end
			if _, ok := k.Inner.(severalMoves); !ok {
				panic(fmt.Errorf("a transition of %T takes several moves, which it may as DelayedAcceptance.Inner only if it "+
					"is mcmc.HMC or mcmc.NUTS: make a whole transition in a Move", k.Inner))
			}
			complete := GreaterThan(info.Complete, ZerosLike(info.Complete))
			gradients, logDensities = zeroWhere(Not(complete), gradients), zeroWhere(Not(complete), logDensities)
			if waits != nil {
				complete = Or(waits, complete)
			}
			waits = complete
		}
		add(&sum.gradients, gradients)
		add(&sum.logDensities, logDensities)
	}
	if acceptance != nil {
		add(&sum.acceptance, acceptance)
	}
	s.Auxiliary = nil
	return s
}

// chooseState is a's particles where condition, bool [J], is true, and else b's.
func chooseState(condition *Node, a, b State) State {
	choose := func(a, b *Node) *Node {
		if a == nil {
			return nil
		}
		return Choose(condition, a, b)
	}
	chosen := State{
		Phi: choose(a.Phi, b.Phi), LogDensity: choose(a.LogDensity, b.LogDensity), Gradient: choose(a.Gradient, b.Gradient),
	}
	for _, name := range slices.Sorted(maps.Keys(a.Auxiliary)) { // in one order, as in Carrier.Move
		if chosen.Auxiliary == nil {
			chosen.Auxiliary = map[string]*Node{}
		}
		chosen.Auxiliary[name] = Choose(condition, a.Auxiliary[name], b.Auxiliary[name])
	}
	return chosen
}

// zeroWhere is x, [J], with 0 where condition is true.
func zeroWhere(condition, x *Node) *Node { return Where(condition, ZerosLike(x), x) }

// stuckBy explains why a run has had no accepted transition.
func (k DelayedAcceptance) stuckBy(stats []ChainStats) string {
	transitions := 0
	means := map[string]float64{"second-stage log-ratio": 0, "inner acceptance": 0}
	for _, c := range stats {
		transitions += c.Transitions
	}
	for name := range means {
		n := 0.0
		for _, c := range stats {
			if v, ok := c.Extra[name]; ok && finite(v) {
				means[name], n = means[name]+v, n+1
			}
		}
		means[name] /= n
	}
	return fmt.Sprintf("delayed acceptance: the inner kernel accepted %.3g of its own transitions on the cheap target, "+
		"and of %d ends the target refused all, at a mean log-ratio of %.3g: the cheap target is too far from the target; "+
		"make it better where the chains are, or shorten the inner transitions (Transitions, the inner step size)",
		means["inner acceptance"], transitions, means["second-stage log-ratio"])
}
