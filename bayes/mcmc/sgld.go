package mcmc

import (
	"cmp"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Stateful = SGLD{}

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011, eq. 4):
//
//	phi' = phi + (e_t/2) S^2 G(phi) + sqrt(e_t) S z
//
// where e_t is the step size of move t, S has the scales of the coordinates and z is standard normal. G is the gradient
// of the log-posterior estimated from a mini-batch of n of the N rows, with the log-likelihood scaled by N/n, as by
// density.MiniBatch. Step sizes e_t = a (b + t)^-c, 0.5 < c <= 1, fall to 0, and in this limit the target is left
// invariant. The gradient's noise has a variance proportional to e_t^2, which becomes small beside the variance of the
// noise z, proportional to e_t. With a constant e the target is not invariant; the bias grows with e and with the
// variance of G. A move costs one gradient; nothing is accepted or rejected.
//
// With the gradient of all rows and a constant e it is the unadjusted Langevin algorithm (Roberts and Tweedie 1996;
// Durmus and Moulines 2017), MALA without the accept/reject step. On a Gaussian of standard deviation s its stationary
// variance is then s^2 / (1 - e/(4 s^2)), and for e >= 4 s^2 there is no stationary distribution.
//
// If the gradient at phi is not finite, the move that led there is undone, in that particle alone, and counted.
type SGLD struct {
	StepSize float64 `json:"step_size"` // a, a variance: the square of MALA's step size; must be set
	Offset   float64 `json:"offset"`    // b; default 1
	Decay    float64 `json:"decay"`     // c; default 0: the step size is constant, a
}

// Traits implements Kernel.
func (k SGLD) Traits() Traits { return Traits{} }

// Check implements Kernel.
func (k SGLD) Check(int) error {
	return limits.Fill("mcmc: SGLD",
		limits.Float("StepSize", &k.StepSize).Positive().Because(noWarmUpChooses),
		limits.Float("Offset", &k.Offset, 1).Positive(),
		limits.Float("Decay", &k.Decay).Zero("a constant step size").Between(0, 1))
}

// moved is the name of a particle's number of moves, t, in State.Auxiliary: [J].
const moved = "moved"

// Start implements Stateful.
func (k SGLD) Start(_ random.Stream, s State, _ density.Target) State {
	s = startSafe(s)
	s.Auxiliary[moved] = Zeros(s.Phi.Graph(), s.PerParticle())
	return s
}

// Move implements Kernel.
func (k SGLD) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	e := BroadcastToShape(ConstAs(s.Phi, k.StepSize), s.PerParticle())
	if k.Decay > 0 {
		e = MulScalar(Pow(AddScalar(s.Auxiliary[moved], cmp.Or(k.Offset, 1)), ConstAs(s.Phi, -k.Decay)), k.StepSize)
	}
	z := normal(rng, s.Phi)
	next, info := moveSafely(rng, s, target, func(gradient *Node) *Node {
		drift := Mul(tuning.Scaled(tuning.Scaled(gradient)), overCoordinates(MulScalar(e, 0.5), z))
		return Add(s.Phi, Add(drift, Mul(tuning.Scaled(z), overCoordinates(Sqrt(e), z))))
	})
	next.Auxiliary[moved] = AddScalar(s.Auxiliary[moved], 1)
	return next, info
}

// Kernels without an accept/reject step notice a gradient that is not finite only after they have moved to that point.
// They carry the last point with a finite gradient, to return to it.
const safePlace = "safe"

// startSafe begins with phi as the place to return to.
func startSafe(s State) State {
	s.Auxiliary = map[string]*Node{safePlace: s.Phi}
	return s
}

// moveSafely evaluates the gradient at phi and makes the step, [J, D] to the new phi, but returns to the safe place if
// the gradient is not finite, and stays if the step is not.
func moveSafely(rng random.Stream, s State, target density.Target, step func(gradient *Node) *Node) (State, Info) {
	logDensity, gradient := Evaluate(density.ByMiniBatch(rng, target), s.Phi)
	usable := IsFinite(logDensity)
	proposal := step(gradient)
	arrives := compute.RowsAll(IsFinite(proposal), proposal.DType())
	safe := Choose(usable, s.Phi, s.Auxiliary[safePlace])
	moves := And(usable, arrives)

	next := State{Phi: Choose(moves, proposal, safe), Auxiliary: map[string]*Node{safePlace: safe}}
	return next, Info{
		NonFinite: ConvertDType(Not(moves), s.Phi.DType()),
		Length:    OnesLike(logDensity),
	}
}

// noWarmUpChooses says why a step size must be set.
const noWarmUpChooses = "and no warm-up chooses it: without accepting and rejecting nothing says what is too large"
