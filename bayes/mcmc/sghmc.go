package mcmc

import (
	"cmp"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ Stateful = SGHMC{}

// SGHMC is stochastic gradient Hamiltonian Monte Carlo with friction (Chen, Fox and Guestrin 2014), in the form with
// learning rate and momentum decay (eq. 15):
//
//	v <- (1 - alpha) v + eta S G(phi) + N(0, 2 alpha eta),  phi <- phi + S v
//
// where v is the velocity, eta the learning rate, alpha the friction and S the scales of the coordinates. G is the
// gradient of the log-posterior, which may be estimated from a mini-batch. Friction takes out the energy that the noise
// of the gradients brings in; the paper's estimate of that noise, beta, is 0 here. For small eta and alpha phi has the
// target as its stationary distribution, and v has N(0, eta). Nothing is accepted or rejected, so that at a given eta
// there is a bias of discretisation. A move costs one gradient.
//
// If the gradient at phi is not finite, the move that led there is undone, in that particle alone, with a fresh v, and
// counted.
type SGHMC struct {
	LearningRate float64 `json:"learning_rate"` // eta, a squared step size; must be set
	Friction     float64 `json:"friction"`      // alpha, above 0 and below 1; default 0.1
}

// Traits implements Kernel.
func (k SGHMC) Traits() Traits { return Traits{} }

// Check implements Kernel.
func (k SGHMC) Check(int) error {
	return limits.Fill("mcmc: SGHMC",
		limits.Float("LearningRate", &k.LearningRate).Positive().Because(noWarmUpChooses),
		limits.Float("Friction", &k.Friction, 0.1).Inside(0, 1))
}

// velocity is the name of v, [J, D], in State.Auxiliary.
const velocity = "velocity"

// Start implements Stateful.
func (k SGHMC) Start(rng random.Stream, s State, _ density.Target) State {
	s = startSafe(s)
	s.Auxiliary[velocity] = MulScalar(normal(rng.Named("velocity"), s.Phi), math.Sqrt(k.LearningRate))
	return s
}

// Move implements Kernel.
func (k SGHMC) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	alpha := cmp.Or(k.Friction, 0.1)
	v, noise := s.Auxiliary[velocity], normal(rng.Named("noise"), s.Phi)
	v = MulScalar(v, 1-alpha)
	v = Add(v, MulScalar(noise, math.Sqrt(2*alpha*k.LearningRate)))
	next, info := moveSafely(rng, s, target, func(gradient *Node) *Node {
		v = Add(v, MulScalar(tuning.Scaled(gradient), k.LearningRate))
		return Add(s.Phi, tuning.Scaled(v))
	})
	undone := GreaterThan(info.NonFinite, ZerosLike(info.NonFinite))
	// where the move is undone, its noise is used for nothing else, and makes a fresh v
	next.Auxiliary[velocity] = Choose(undone, MulScalar(noise, math.Sqrt(k.LearningRate)), v)
	return next, info
}
