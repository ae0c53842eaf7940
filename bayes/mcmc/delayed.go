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
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// Surrogated is a Target with a cheap substitute, such as an emulator, the posterior given a part of the rows, or its
// Laplace approximation. DelayedAcceptance moves on it.
type Surrogated interface {
	density.Target
	// Surrogate is the cheap target. It must have mass wherever the target has.
	Surrogate() density.Target
}

// DelayedAcceptance makes a transition of a reversible kernel on a cheap target p*, the surrogate of a Surrogated
// target p. One evaluation of p then accepts or rejects the state phi' that it reaches from phi (Christen and Fox 2005,
// "Markov chain Monte Carlo using an approximation"). The probability of acceptance is
//
//	min(1, exp[(log p(phi') - log p(phi)) - (log p*(phi') - log p*(phi))])
//
// It leaves p invariant, whatever p* is. A transition that is reversible with respect to p* proposes phi' from phi
// p*(phi')/p*(phi) times as often as phi from phi'. The second bracket corrects exactly this ratio. A bad cheap target
// costs only acceptance. But no chain enters a region where p* is 0, so p* must have mass wherever p has.
//
// A Move is a whole transition: one log-density of the target and a transition of Inner on the cheap target, whose
// moves are unrolled in the graph. Inner's auxiliary variables, such as momenta, are drawn anew in each. Its step size
// must be set: sample the cheap target by itself with a warm-up, and take Tuned from that result.
//
// Info.Acceptance is the acceptance of the second stage, the decision by the target. It is 0 where the inner transition
// has not moved. Extra reports the stages separately: "inner acceptance" and, over the transitions in which the inner
// one moved, "second-stage acceptance" and "second-stage log-ratio".
type DelayedAcceptance struct {
	// Inner moves on the cheap target: Exact and Reversible, with a step size, and not NUTS, whose trees are too many
	// moves to unroll.
	Inner Kernel
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
	share := limits.Float("Share", &k.Share).Zero("unknown").Between(0, 1)
	if err := limits.Fill("mcmc: DelayedAcceptance", share); err != nil {
		return err
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
			"mcmc.PreconditionedCrankNicolson, mcmc.MALA or mcmc.HMC", k.Inner)
	}
	if _, ok := k.Inner.(NUTS); ok || k.innerMoves() > delayedUnrolled {
		return fmt.Errorf("mcmc: DelayedAcceptance.Inner is %T with too long trajectories: take mcmc.HMC with at most %d "+
			"leapfrog steps", k.Inner, delayedUnrolled)
	}
	return nil
}

// innerMoves returns the largest number of moves that a transition of Inner takes.
func (k DelayedAcceptance) innerMoves() int {
	if hmc, ok := k.Inner.(HMC); ok {
		return hmc.length() + hmc.spread()
	}
	return 1
}

// MarshalJSON writes Inner's type, beside all settings, for checkpoints.
func (k DelayedAcceptance) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"inner": fmt.Sprintf("%T", k.Inner), "settings": k.Inner, "on_host": k.OnHost})
}

// The entries that DelayedAcceptance carries: the cheap target's log-density at phi, and its gradient if Inner carries
// it.
const (
	delayedCheap    = "cheap_log_density"
	delayedGradient = "cheap_gradient"
)

// cheapOf is a target's surrogate.
func cheapOf(target density.Target) density.Target {
	if s, ok := target.(Surrogated); ok {
		return s.Surrogate()
	}
	panic(fmt.Errorf("DelayedAcceptance has no cheap target: give the target, %T, a method Surrogate", target))
}

// Start implements Stateful: it evaluates the cheap target where the particles begin.
func (k DelayedAcceptance) Start(_ random.Stream, s State, target density.Target) State {
	at := State{Phi: s.Phi}
	if k.OnHost {
		target = hostedOf(target)
	}
	cheap := cheapOf(target)
	if k.Inner.Traits().Carries == CarriesGradient {
		at.LogDensity, at.Gradient = Evaluate(cheap, s.Phi)
	} else {
		at.LogDensity = logDensityOf(cheap, s.Phi)
	}
	s.Auxiliary = map[string]*Node{delayedCheap: at.LogDensity}
	if at.Gradient != nil {
		s.Auxiliary[delayedGradient] = at.Gradient
	}
	if k.OnHost {
		k.startOnHost(s, at)
	}
	return s
}

// onCheap is a state as one of the inner kernel, with the cheap target's values.
func (k DelayedAcceptance) onCheap(s State) State {
	return State{Phi: s.Phi, LogDensity: s.Auxiliary[delayedCheap], Gradient: s.Auxiliary[delayedGradient]}
}

// Move implements Kernel.
func (k DelayedAcceptance) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	at := k.onCheap(s)
	if k.OnHost {
		return k.moveOnHost(rng, s, at, target, tuning)
	}
	end, inner := k.propose(rng, at, cheapOf(target), tuning)

	// One evaluation of the target accepts or rejects their end.
	density := logDensityOf(target, end.Phi)
	accepted, next, info := k.decide(threshold(rng, s), at, end, density, Sub(density, s.LogDensity))
	inner.addTo(&info)
	next.LogDensity = Where(accepted, density, s.LogDensity)
	return next, info
}

// innerInfo is what the inner transition reports, [J] each; acceptance is nil if the kernel does not report it.
type innerInfo struct{ acceptance, logDensities, gradients *Node }

// addTo adds it to what the outer transition reports.
func (i innerInfo) addTo(info *Info) {
	info.Partial, info.PartialGradients = i.logDensities, i.gradients
	if i.acceptance != nil {
		info.Extra["inner acceptance"] = i.acceptance
	}
}

// propose makes a transition of Inner for every particle: particles that have completed theirs wait for the others.
func (k DelayedAcceptance) propose(
	rng random.Stream, s State, cheap density.Target, tuning Tuning,
) (end State, inner innerInfo) {
	rng = rng.Named("inner 0")
	s = withAuxiliary(k.Inner, rng.Named("start"), s, cheap)
	none := Zeros(s.Phi.Graph(), s.PerParticle())
	var waits *Node // bool [J], those of the moves before; nil: none
	for i := range k.innerMoves() {
		next, info := k.Inner.Move(rng.Named(fmt.Sprint("move ", i)), s, cheap, tuning)
		now := innerInfo{info.Acceptance, cmp.Or(info.Full, none), cmp.Or(info.Length, none)}
		if waits != nil { // an HMC, which reports its acceptance
			next = chooseState(waits, s, next)
			now = innerInfo{Where(waits, inner.acceptance, now.acceptance),
				Where(waits, inner.logDensities, now.logDensities), Where(waits, inner.gradients, now.gradients)}
		}
		s, inner = next, now
		if info.Complete != nil {
			if _, ok := k.Inner.(HMC); !ok {
				panic(fmt.Errorf("a transition of %T takes several moves, which it may as DelayedAcceptance.Inner only if it "+
					"is mcmc.HMC: make a whole transition in a Move", k.Inner))
			}
			complete := GreaterThan(info.Complete, ZerosLike(info.Complete))
			if waits != nil {
				complete = Or(waits, complete)
			}
			waits = complete
		}
	}
	s.Auxiliary = nil
	return s, inner
}

// threshold is the logarithm of a uniform number, [J], which the log-ratio must exceed for a particle to accept.
func threshold(rng random.Stream, s State) *Node {
	return Log(rng.Named("accept").Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0)))
}

// decide is the second stage, given the target's log-density at the end and its increase from the point where the inner
// transition began. The next state has everything but the target's log-density.
func (k DelayedAcceptance) decide(
	threshold *Node, at, end State, density, onTarget *Node,
) (accepted *Node, next State, info Info) {
	onCheap := Sub(end.LogDensity, at.LogDensity)
	logRatio := Sub(onTarget, onCheap)
	finite := And(IsFinite(density), And(IsFinite(end.LogDensity), IsFinite(at.LogDensity)))
	accepted, info = acceptAbove(threshold, logRatio, finite)

	moved := Not(compute.RowsAll(Equal(end.Phi, at.Phi), at.Phi.DType())) // also where phi is NaN
	accepted = And(accepted, moved)
	own := map[string]*Node{delayedCheap: Where(accepted, end.LogDensity, at.LogDensity)}
	if at.Gradient != nil {
		own[delayedGradient] = Choose(accepted, end.Gradient, at.Gradient)
	}
	next = State{Phi: Choose(accepted, end.Phi, at.Phi), Auxiliary: own}
	none := fillAs(logRatio, math.NaN())
	info.Extra = map[string]*Node{
		"second-stage acceptance": Where(moved, info.Acceptance, none),
		"second-stage log-ratio":  Where(And(moved, finite), logRatio, none),
	}
	info.Acceptance = Where(moved, info.Acceptance, ZerosLike(logRatio))
	info.Accepted = ConvertDType(accepted, at.Phi.DType())
	info.Full = OnesLike(logRatio)
	return accepted, next, info
}

// chooseState is a's particles where condition, bool [J], is true, and else b's, of an HMC.
func chooseState(condition *Node, a, b State) State {
	chosen := State{
		Phi: Choose(condition, a.Phi, b.Phi), LogDensity: Where(condition, a.LogDensity, b.LogDensity),
		Gradient: Choose(condition, a.Gradient, b.Gradient), Auxiliary: map[string]*Node{},
	}
	for _, name := range slices.Sorted(maps.Keys(a.Auxiliary)) { // in one order, as in Carrier.Move
		chosen.Auxiliary[name] = Choose(condition, a.Auxiliary[name], b.Auxiliary[name])
	}
	return chosen
}

// stuckBy explains why a run has had no accepted transition.
func (k DelayedAcceptance) stuckBy(stats []ChainStats) string {
	mean := func(name string) float64 {
		var of []float64
		for _, c := range stats {
			if v, ok := c.Extra[name]; ok && finite(v) {
				of = append(of, v)
			}
		}
		return stat.Mean(of, nil)
	}
	return fmt.Sprintf("delayed acceptance: the inner kernel accepted %.3g of its own transitions on the cheap target, "+
		"and the target refused all ends, at a mean log-ratio of %.3g: the cheap target is too far from the target; make it "+
		"better where the chains are, or shorten the inner transitions (the inner step size)", mean("inner acceptance"),
		mean("second-stage log-ratio"))
}
