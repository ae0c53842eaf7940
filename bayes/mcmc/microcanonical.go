package mcmc

import (
	"cmp"
	"fmt"
	"maps"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

// isokinetic are the dynamics at fixed speed of microcanonical samplers (Robnik, De Luca, Silverstein and Seljak 2023):
// a particle moves with a velocity u of length 1, which the gradient g of the log-density turns,
//
//	d phi/dt = u,  du/dt = (I - u u^T) g / (D - 1)
//
// With directions drawn anew now and then they have the target for their stationary distribution. The energy is minus
// the log-density plus the work, the sum of (D - 1) log |u~| over the steps by which u was turned, where u~ is the
// velocity before it is brought back to length 1. It is what a Metropolis test needs, the change of volume included. A
// step is that of McLachlan's minimal-norm integrator (Omelyan, Mryglod and Folk 2003), of two gradients, whose error
// is smaller than two leapfrog steps'. Scales of the coordinates act as in Leapfrog.
type isokinetic struct{}

// isokineticWork is the work so far, [J], in State.Auxiliary.
const isokineticWork = "work"

// The shares of a step by which McLachlan's integrator turns the velocity: at the beginning and at the end, and in the
// middle; between them the particle moves by half a step.
const (
	turnAtEnds   = 0.1931833275037836
	turnInMiddle = 1 - 2*turnAtEnds
)

func (isokinetic) advance(target density.Target, s State, velocity, stepSize *Node, tuning Tuning) (State, *Node) {
	perParticle := BroadcastToShape(Reshape(stepSize, stepSize.Shape().Size()), s.PerParticle())
	work := s.Auxiliary[isokineticWork]
	turn := func(share float64) {
		var gained *Node
		velocity, gained = turned(velocity, tuning.Scaled(s.Gradient), MulScalar(perParticle, share))
		work = Add(work, gained)
	}
	move := func() {
		s.Phi = Add(s.Phi, Mul(overCoordinates(MulScalar(perParticle, .5), velocity), tuning.Scaled(velocity)))
		s.LogDensity, s.Gradient = Evaluate(target, s.Phi)
	}
	turn(turnAtEnds)
	move()
	usable := IsFinite(s.LogDensity) // in the middle of the step, without which its end means nothing
	turn(turnInMiddle)
	move()
	s.LogDensity = compute.Only(usable, s.LogDensity)
	turn(turnAtEnds)
	s.Auxiliary = maps.Clone(s.Auxiliary)
	s.Auxiliary[isokineticWork] = work
	return s, velocity
}

func (isokinetic) energy(s State, _ *Node) *Node {
	return Sub(s.Auxiliary[isokineticWork], s.LogDensity)
}

// turned is a velocity, [J, D], of length 1 after the gradient g has turned it for the time t, [J], and the work that
// this took, [J]. With e = g/|g| and r = t |g| / (D - 1) the velocity before it is brought back to length 1 is
//
//	u~ = u + e (sinh r + (e . u) (cosh r - 1)),  |u~| = cosh r + (e . u) sinh r
//
// written with z = exp(-r), which does not overflow.
func turned(velocity, gradient, t *Node) (turned, work *Node) {
	d := float64(velocity.Shape().Dim(1) - 1)
	size := Sqrt(compute.RowSums(Square(gradient)))
	direction := Div(gradient, overCoordinates(MaxScalar(size, 1e-30), gradient))
	cosine := compute.RowSums(Mul(direction, velocity))
	r := DivScalar(Mul(t, size), d)
	z := Exp(Neg(r))
	less := OneMinus(z)
	along := Mul(less, Add(OnePlus(z), Mul(cosine, less)))
	turned = Add(
		Mul(direction, overCoordinates(along, direction)), Mul(velocity, overCoordinates(MulScalar(z, 2), velocity)))
	square := Square(z)
	length := Add(OnePlus(cosine), Mul(OneMinus(cosine), square)) // 2 z |u~|
	work = MulScalar(Add(r, Log(MulScalar(length, .5))), d)
	return unitRows(turned), work
}

// unitRows are the rows of x, [J, D], divided by their lengths.
func unitRows(x *Node) *Node {
	return Div(x, overCoordinates(Sqrt(compute.RowSums(Square(x))), x))
}

// checkSphere is an error where there are no directions to turn to.
func checkSphere(kernel string, d int) error {
	if d < 2 {
		return fmt.Errorf("mcmc: %s has particles of %d coordinate: it needs at least 2, since in one a velocity of fixed "+
			"length cannot be turned; take NUTS", kernel, d)
	}
	return nil
}

var (
	_ Stateful     = MicrocanonicalHMC{}
	_ Tunable      = MicrocanonicalHMC{}
	_ Steered      = MicrocanonicalHMC{}
	_ SeveralMoves = MicrocanonicalHMC{}
)

// MicrocanonicalHMC is Metropolis-adjusted microcanonical Hamiltonian Monte Carlo (Robnik, Cohn-Gordon and Seljak 2025,
// arXiv 2503.01707): HMC along the dynamics at fixed speed of MCLMC. A transition draws a direction uniformly and a
// number of steps uniformly from 1 to 2 Steps - 1, follows the dynamics, and accepts the end by the energy error. It
// leaves the target invariant. A Move is one step of the minimal-norm integrator, of two gradients. It needs at least
// two coordinates.
type MicrocanonicalHMC struct {
	StepSize float64 `json:"step_size"` // a length, in units of the scales; 0: a warm-up chooses
	Steps    int     `json:"steps"`     // mean number of steps in a transition; 0: a sampler may choose, else 10
	// Acceptance is the mean acceptance at which a warm-up aims as it chooses the step size; default 0.9, as in the paper.
	Acceptance float64 `json:"acceptance,omitempty"`

	together bool // as HMC's
}

// Traits implements Kernel.
func (k MicrocanonicalHMC) Traits() Traits {
	return Traits{Carries: CarriesGradient, Exact: true, Reversible: true}
}

// Check implements Kernel.
func (k MicrocanonicalHMC) Check(d int) error {
	if k.Steps < 0 {
		return fmt.Errorf("mcmc: MicrocanonicalHMC.Steps is %d: it must be at least 1 (0: the default, %d)", k.Steps,
			HMC{}.length())
	}
	if err := checkAcceptance("MicrocanonicalHMC", k.Acceptance, k.StepSize); err != nil {
		return err
	}
	if err := checkSphere("MicrocanonicalHMC", d); err != nil {
		return err
	}
	return nonNegative("MicrocanonicalHMC.StepSize", zeroWarmUp, k.StepSize)
}

// Tune implements Tunable.
func (k MicrocanonicalHMC) Tune() (stepSize, acceptance float64) {
	return k.StepSize, cmp.Or(k.Acceptance, .9)
}

// Length implements Steered.
func (k MicrocanonicalHMC) Length() int { return k.Steps }

// MostMoves implements SeveralMoves.
func (k MicrocanonicalHMC) MostMoves() int { return k.hmc().MostMoves() }

// hmc is HMC with the same transitions but for the dynamics.
func (k MicrocanonicalHMC) hmc() HMC {
	const nearOne = 1 - 1./(1<<20) // of the steps: from 1 to 2 Steps - 1
	return HMC{StepSize: k.StepSize, Steps: k.Steps, Jitter: nearOne, together: k.together}
}

// Start implements Stateful.
func (k MicrocanonicalHMC) Start(rng random.Stream, s State) State {
	s = k.hmc().Start(rng, s)
	s.Auxiliary[hmcMomentum] = unitRows(s.Auxiliary[hmcMomentum])
	s.Auxiliary[isokineticWork] = Zeros(s.Phi.Graph(), s.PerParticle())
	return s
}

// Move implements Kernel.
func (k MicrocanonicalHMC) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	drawn := k.hmc().draw(rng, s, tuning)
	drawn.momentum = unitRows(drawn.momentum)
	next, info := leap(isokinetic{}, drawn, s, target, tuning.Step(s.Phi, k.StepSize), tuning)
	info.Energy = nil // there is no kinetic energy that is drawn anew
	info.Length = MulScalar(info.Length, 2)
	return next, info
}
