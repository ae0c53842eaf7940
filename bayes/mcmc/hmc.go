package mcmc

import (
	"cmp"
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
)

var (
	_ Stateful = HMC{}
	_ Tunable  = HMC{}
	_ Steered  = HMC{}
)

// HMC is Hamiltonian Monte Carlo with trajectories of a given number of leapfrog steps (Duane, Kennedy, Pendleton and
// Roweth 1987; Neal 2011). Draw a momentum p ~ N(0, I). Follow the dynamics of the energy H = -log p(phi) + |p|^2 / 2
// for Steps leapfrog steps. Accept the end with probability min(1, exp(H - H')), where H' is the energy there. An exact
// trajectory keeps the energy; leapfrog steps change it by their discretisation error, and the accept/reject step
// corrects for this error. It leaves the target invariant. Scales of the coordinates act as a diagonal mass matrix, see
// Leapfrog.
//
// A Move is one leapfrog step, which costs one gradient; a transition is Steps of them. A transition ends early if the
// energy is not finite or has risen by more than 1000: such a trajectory is practically never accepted. It then counts
// as rejected and divergent.
type HMC struct {
	StepSize float64 `json:"step_size"` // h; 0: a warm-up chooses
	Steps    int     `json:"steps"`     // L, leapfrog steps in a transition; 0: a sampler may choose, else 10
	// Jitter draws the number of steps of each transition uniformly from L - k to L + k with k = Jitter L, rounded down,
	// so that trajectories do not resonate with a period of the dynamics (Neal 2011, section 3.2). Default 0: none; below
	// 1.
	Jitter float64 `json:"jitter"`
	// Acceptance is the mean acceptance at which a warm-up aims as it chooses the step size, below 1; default 0.8. Nearer
	// to 1 the steps are shorter, and follow narrow regions in which longer ones diverge. Only with StepSize 0.
	Acceptance float64 `json:"acceptance,omitempty"`
}

// Traits implements Kernel.
func (k HMC) Traits() Traits { return Traits{Carries: CarriesGradient, Exact: true, Reversible: true} }

// Check implements Kernel.
func (k HMC) Check(int) error {
	return limits.Fill("mcmc: HMC", append(limitsOf(&k.StepSize, &k.Acceptance),
		limits.Int("Steps", &k.Steps, 10).From(1),
		limits.Float("Jitter", &k.Jitter).Zero("none").Inside(0, 1))...)
}

// limitsOf are those of a step size that a warm-up may choose, and of the Acceptance at which it then aims.
func limitsOf(stepSize, acceptance *float64) []limits.Row {
	return []limits.Row{
		limits.Field("Acceptance", *acceptance, *acceptance == 0 || *stepSize == 0,
			fmt.Sprintf("0 with a StepSize of %v: it is for a warm-up that chooses the step size", *stepSize)),
		limits.Float("Acceptance", acceptance, defaultAcceptance).Inside(0, 1),
		limits.Float("StepSize", stepSize).Zero(zeroWarmUp).Positive(),
	}
}

// defaultAcceptance is the Acceptance of HMC and NUTS if none is set.
const defaultAcceptance = 0.8

// Tune implements Tunable: Acceptance, by default 0.8. In many independent dimensions 0.651 is best (Beskos, Pillai,
// Roberts, Sanz-Serna and Stuart 2013), but below it the cost of a draw rises steeply and above it slowly, and 0.6 to
// 0.9 is recommended (Betancourt, Byrne and Girolami 2014).
func (k HMC) Tune() (stepSize, acceptance float64) {
	return k.StepSize, cmp.Or(k.Acceptance, defaultAcceptance)
}

// Length implements Steered.
func (k HMC) Length() int { return k.Steps }

// The state that HMC carries: the momentum, the number of steps that the transition takes and has taken, and the state
// and energy at its start. The next momentum is drawn at the end of a transition, not at the beginning: XLA would
// compile the random number generator into every loop that uses it directly, which is slower.
const (
	hmcMomentum   = "momentum"
	hmcPlanned    = "planned"
	hmcTaken      = "taken"
	hmcPhi        = "start_phi"
	hmcLogDensity = "start_log_density"
	hmcGradient   = "start_gradient"
	hmcEnergy     = "start_energy"
)

// Start implements Stateful: the first move begins a transition.
func (k HMC) Start(rng random.Stream, s State, _ density.Target) State {
	none := Zeros(s.Phi.Graph(), s.PerParticle())
	s.Auxiliary = map[string]*Node{
		hmcMomentum: normal(rng.Named("momentum"), s.Phi), hmcPlanned: none, hmcTaken: none,
		hmcPhi: s.Phi, hmcLogDensity: s.LogDensity, hmcGradient: s.Gradient, hmcEnergy: none,
	}
	return s
}

// energyOf is minus the log-density plus the kinetic energy, [J].
func energyOf(s State, momentum *Node) *Node { return Sub(Kinetic(momentum), s.LogDensity) }

// Move implements Kernel. Of the random numbers it takes those for where the transition is: at its beginning or its
// end.
func (k HMC) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	dtype, stepSize := s.Phi.DType(), tuning.Step(s.Phi, k.StepSize)
	steps := k.steps(rng.Named("steps"), s, tuning)
	uniform := rng.Named("accept").Uniform(dtype, s.Phi.Shape().Dim(0))
	fresh := normal(rng.Named("momentum"), s.Phi)
	// If a transition begins: store its start, to return to, its energy and the number of its steps.
	begins := computedOnce(dtype, LessThan(s.Auxiliary[hmcTaken], ConstAs(s.Phi, 0.5)))[0]
	momentum := s.Auxiliary[hmcMomentum]
	at := func(name string, now *Node) *Node { return Choose(begins, now, s.Auxiliary[name]) }
	start := State{
		Phi: at(hmcPhi, s.Phi), LogDensity: at(hmcLogDensity, s.LogDensity), Gradient: at(hmcGradient, s.Gradient),
	}
	energy := at(hmcEnergy, energyOf(s, momentum))
	planned := at(hmcPlanned, steps)

	// One step of the dynamics.
	end, momentumAtEnd := Leapfrog(target, s, momentum, stepSize, tuning)
	momentum = momentumAtEnd
	taken := AddScalar(s.Auxiliary[hmcTaken], 1)
	energyError := Sub(energyOf(end, momentum), energy)
	diverges := Not(LessOrEqual(energyError, ConstAs(s.Phi, maxEnergyError))) // also where it is NaN

	// If it ends: accept or return to the start.
	complete := Or(diverges, GreaterOrEqual(taken, planned))
	probability := Where(diverges, ZerosLike(energy), Exp(Neg(MaxScalar(energyError, 0))))
	accepted := And(complete, LessThan(uniform, probability))
	goesOn := computedOnce(dtype, Or(accepted, Not(complete)))[0]
	momentum = Choose(complete, fresh, momentum) // the next transition's
	next := State{
		Phi:        Choose(goesOn, end.Phi, start.Phi),
		LogDensity: Choose(goesOn, end.LogDensity, start.LogDensity),
		Gradient:   Choose(goesOn, end.Gradient, start.Gradient),
		Auxiliary: map[string]*Node{
			hmcMomentum: momentum, hmcPlanned: planned, hmcTaken: Where(complete, ZerosLike(taken), taken),
			hmcPhi: start.Phi, hmcLogDensity: start.LogDensity, hmcGradient: start.Gradient, hmcEnergy: energy,
		},
	}
	squaredJump, growth := jump(start.Phi, end.Phi, momentumAtEnd, stepSize, taken, tuning)
	return next, Info{
		Complete:    ConvertDType(complete, dtype),
		Acceptance:  probability,
		Accepted:    ConvertDType(accepted, dtype),
		NonFinite:   ConvertDType(Not(IsFinite(end.LogDensity)), dtype),
		Divergent:   ConvertDType(diverges, dtype),
		Energy:      energy,
		Length:      taken,
		SquaredJump: Mul(probability, squaredJump),
		JumpGrowth:  Mul(probability, growth),
	}
}

// length is L, the number of leapfrog steps of a transition unless a sampler chooses it.
func (k HMC) length() int { return cmp.Or(k.Steps, 10) }

// spread is the largest number of steps by which Jitter changes L.
func (k HMC) spread() int { return int(math.Floor(k.Jitter * float64(k.length()))) }

// jump is the squared distance, [J], between the ends of trajectories in units of the scales, |delta|^2, and its
// derivative with respect to the logarithm of their duration t, 2 t delta . p, with p the momentum at the end. A
// sampler that chooses the length of trajectories needs both: see Steered.
func jump(start, end, momentum, stepSize, taken *Node, tuning Tuning) (squared, growth *Node) {
	delta := tuning.unscaled(Sub(end, start))
	time := Mul(taken, BroadcastToShape(Squeeze(stepSize), taken.Shape()))
	return compute.RowSums(Square(delta)), Mul(MulScalar(time, 2), compute.RowSums(Mul(delta, momentum)))
}

// steps draws the number of leapfrog steps of each particle's transition, [J].
func (k HMC) steps(rng random.Stream, s State, tuning Tuning) *Node {
	mean, spread := ConstAs(s.Phi, float64(k.length())), ConstAs(s.Phi, float64(k.spread()))
	if k.Steps == 0 && tuning.Steps != nil {
		mean = ConvertDType(tuning.Steps, s.Phi.DType())
		spread = Floor(MulScalar(mean, k.Jitter))
	}
	all := BroadcastToShape(mean, s.PerParticle())
	if k.Jitter == 0 {
		return all
	}
	u := rng.Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0))
	drawn := Floor(Mul(u, BroadcastToShape(AddScalar(MulScalar(spread, 2), 1), u.Shape())))
	return Add(all, Sub(drawn, BroadcastToShape(spread, u.Shape())))
}
