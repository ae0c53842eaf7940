package mcmc

import (
	"cmp"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

var (
	_ Stateful = MCLMC{}
	_ Tunable  = MCLMC{}
)

// MCLMC is microcanonical Langevin Monte Carlo (Robnik, De Luca, Silverstein and Seljak 2023): a particle moves at
// fixed speed, its velocity is turned by the gradient (see MicrocanonicalHMC), and after each step partly drawn anew,
//
//	u <- (u + n z) / |u + n z|,  n^2 = (exp(2 h/L) - 1) / D
//
// with h the step size, L the Length and z standard normal, [D]. Nothing is accepted or rejected, so that it has a
// bias, which falls with the step size. A warm-up chooses the step size by the energy error e of a step, which would be
// 0 if the dynamics were followed exactly: its steadiness exp(-|e| / sqrt(v D)) becomes 0.523 in the mean, as that of a
// normal of variance v D, with v the EnergyVariance. A Move is a step, of two gradients; thin its draws. It needs at
// least two coordinates.
//
// A particle whose step ends where the log-density or its gradient is not finite stays, with a velocity drawn anew, and
// is counted; the warm-up takes such a step for too long.
type MCLMC struct {
	StepSize float64 `json:"step_size"` // h, a length, in units of the scales; 0: a warm-up chooses
	// Length is L, the way after which a particle has forgotten its direction, in units of the scales; default the root
	// of D, the radius at which a standard normal has its mass.
	Length float64 `json:"length,omitempty"`
	// EnergyVariance is v, the variance of a step's energy error at which a warm-up aims, per coordinate; default 0.0005,
	// as in the authors' program. The step size goes with its sixth root. Networks have wanted less: see package auto.
	EnergyVariance float64 `json:"energy_variance,omitempty"`
}

// Traits implements Kernel.
func (k MCLMC) Traits() Traits { return Traits{Carries: CarriesGradient} }

// Check implements Kernel.
func (k MCLMC) Check(d int) error {
	if err := checkSphere("MCLMC", d); err != nil {
		return err
	}
	if err := nonNegative("MCLMC.Length", zeroDefault, k.Length); err != nil {
		return err
	}
	if err := nonNegative("MCLMC.EnergyVariance", zeroDefault, k.EnergyVariance); err != nil {
		return err
	}
	return nonNegative("MCLMC.StepSize", zeroWarmUp, k.StepSize)
}

// Tune implements Tunable. With an energy error of the wanted variance, and normal, this is the mean of exp(-|z|) over
// a standard normal z: see Info.Steadiness.
func (k MCLMC) Tune() (stepSize, steadiness float64) { return k.StepSize, .5231 }

const mclmcVelocity = "velocity"

// Start implements Stateful.
func (k MCLMC) Start(rng random.Stream, s State) State {
	s.Auxiliary = map[string]*Node{mclmcVelocity: unitRows(normal(rng.Named("velocity"), s.Phi))}
	return s
}

// Move implements Kernel.
func (k MCLMC) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	d := float64(s.Phi.Shape().Dim(1))
	h, length := tuning.Step(s.Phi, k.StepSize), cmp.Or(k.Length, math.Sqrt(d))
	next, info := langevin(rng, s, target, h, MulScalar(h, 2/length), tuning)
	usable := OneMinus(info.NonFinite)
	scale := math.Sqrt(cmp.Or(k.EnergyVariance, 5e-4) * d)
	info.Steadiness = Mul(usable, Exp(DivScalar(Neg(Abs(info.EnergyError)), scale)))
	return next, info
}

// langevin is a step of size h, after which exp(forgotten) - 1 is D n^2.
func langevin(
	rng random.Stream, s State, target density.Target, h, forgotten *Node, tuning Tuning,
) (State, Info) {
	d, dtype := s.Phi.Shape().Dim(1), s.Phi.DType()
	from := s
	from.Auxiliary = map[string]*Node{isokineticWork: Zeros(s.Phi.Graph(), s.PerParticle())}
	end, velocity := isokinetic{}.advance(target, from, s.Auxiliary[mclmcVelocity], h, tuning)
	energyError := Sub(isokinetic{}.energy(end, velocity), isokinetic{}.energy(from, velocity))
	usable := IsFinite(energyError)
	energyError = Where(usable, energyError, ZerosLike(energyError))

	z := normal(rng.Named("velocity"), s.Phi)
	share := Sqrt(DivScalar(Expm1(forgotten), float64(d)))
	velocity = Choose(usable, unitRows(Add(velocity, Mul(z, share))), unitRows(z))
	next := State{
		Phi:        Choose(usable, end.Phi, s.Phi),
		LogDensity: Where(usable, end.LogDensity, s.LogDensity),
		Gradient:   Choose(usable, end.Gradient, s.Gradient),
		Auxiliary:  map[string]*Node{mclmcVelocity: velocity},
	}
	return next, Info{
		NonFinite:   ConvertDType(Not(usable), dtype),
		EnergyError: energyError,
		Cost:        Cost{Length: MulScalar(OnesLike(energyError), 2)},
	}
}
