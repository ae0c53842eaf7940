package surrogate

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

var _ mcmc.Stateful = splitHMC{}

// splitHMC is Hamiltonian Monte Carlo in the whitened coordinates z of a mode c (see whitening), which splits off the
// Gaussian part of the potential U = -log p and solves it exactly (Shahbaba, Lan, Johnson and Neal 2014, "Split
// Hamiltonian Monte Carlo"):
//
//	theta = c + W z,  phi(z) = U(theta) - U(c) - |z|^2/2
//
// A transition draws a momentum p ~ N(0, I), makes Steps steps
//
//	p <- p - h/2 grad phi(z);  (z, p) <- (z cos h + p sin h, p cos h - z sin h);  p <- p - h/2 grad phi(z)
//
// and accepts the end by the energy U(theta) + |p|^2/2. If the posterior is the Gaussian, phi is 0, every step is
// accepted, and a single step of h = pi/2 gives an independent draw. It leaves the target invariant, whatever c and W
// are. It is for any posterior that has a mode, and samples near that mode: chains do not change modes.
//
// With OnSurrogate the steps follow the gradient of a surrogate, grad phi~. The end is accepted by the target's own U,
// evaluated once in a transition, without a gradient. This too leaves the target invariant, for any field that depends
// on z alone, since the map remains reversible and preserves volume (Neal 2011, section 5.5; Rasmussen 2003). A bad
// surrogate costs only acceptance. It pays if a surrogate from few rows has the right gradient, which a pilot measures.
// Its trajectories are at most 1.5 long: longer ones leave its domain.
//
// The target is a whitened one, and surrogated. A Move is a whole transition.
type splitHMC struct {
	StepSize float64 // h, an angle
	Steps    int
	// Jitter draws each transition's step uniformly from h (1 - Jitter) to h (1 + Jitter).
	Jitter      float64
	OnSurrogate bool
	Share       float64 // the cost of an evaluation of the surrogate relative to the target's
}

// Traits implements mcmc.Kernel: it carries the gradient, or the log-density alone on a surrogate.
func (k splitHMC) Traits() mcmc.Traits {
	of := mcmc.Traits{Carries: mcmc.CarriesGradient, Exact: true, Reversible: true}
	if k.OnSurrogate {
		of.Carries = mcmc.CarriesLogDensity
	}
	return of
}

// PartialShare is the cost of a surrogate's evaluation as a share of the target's.
func (k splitHMC) PartialShare() float64 { return k.Share }

// Check implements mcmc.Kernel.
func (k splitHMC) Check(int) error { return nil }

// The entries that splitHMC carries beside phi: z, and on a surrogate grad phi~ there.
const (
	splitZ     = "z"
	splitField = "field"
)

// coordinates are the target's.
func coordinates(target density.Target) graphWhitening {
	return target.(interface{ coordinates() graphWhitening }).coordinates()
}

// Start implements mcmc.Stateful: it evaluates what the first move needs.
func (k splitHMC) Start(_ random.Stream, s mcmc.State, target density.Target) mcmc.State {
	at := coordinates(target)
	z := at.z(s.Phi)
	s.Auxiliary = map[string]*Node{splitZ: z}
	if k.OnSurrogate {
		_, gradient := mcmc.Evaluate(target.(mcmc.Surrogated).Surrogate(), s.Phi)
		s.Auxiliary[splitField] = field(at, gradient, z)
	}
	return s
}

// field is grad phi(z), [J, D], the gradient of what the potential has beyond the Gaussian, given the gradient of log p
// with respect to theta: W' grad U - z.
func field(at graphWhitening, gradient, z *Node) *Node { return Neg(Add(at.pull(gradient), z)) }

// Move implements mcmc.Kernel.
func (k splitHMC) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	at := coordinates(target)
	h := k.angle(rng.Named("step"), s)
	each := func(x *Node) *Node { return BroadcastToShape(ExpandAxes(x, 1), s.Phi.Shape()) }
	cos, sin, half := each(Cos(h)), each(Sin(h)), each(MulScalar(h, .5))
	follows := target
	if k.OnSurrogate {
		follows = target.(mcmc.Surrogated).Surrogate()
	}

	// The trajectory.
	start := compute.Materialise(rng.Named("momentum").Normal(s.Phi.DType(), s.Phi.Shape().Dimensions...), s.Phi)
	z, p := s.Auxiliary[splitZ], start
	gradPhi, end := s.Auxiliary[splitField], mcmc.State{}
	if !k.OnSurrogate {
		gradPhi = field(at, s.Gradient, z)
	}
	for range k.Steps {
		p = Sub(p, Mul(half, gradPhi))
		z, p = Add(Mul(z, cos), Mul(p, sin)), Sub(Mul(p, cos), Mul(z, sin))
		end = mcmc.State{Phi: at.theta(z)}
		end.LogDensity, end.Gradient = mcmc.Evaluate(follows, end.Phi)
		gradPhi = field(at, end.Gradient, z)
		p = Sub(p, Mul(half, gradPhi))
	}

	// Accept its end by the target.
	if k.OnSurrogate {
		end.LogDensity, end.Gradient = compute.Gate(target.LogDensity(end.Phi)), nil
	}
	energy := Sub(mcmc.Kinetic(start), s.LogDensity)
	energyError := Sub(Sub(mcmc.Kinetic(p), end.LogDensity), energy)
	accepted, info := mcmc.Accept(rng, Neg(energyError), IsFinite(end.LogDensity))
	next := mcmc.State{
		Phi: mcmc.Choose(accepted, end.Phi, s.Phi), LogDensity: Where(accepted, end.LogDensity, s.LogDensity),
		Auxiliary: map[string]*Node{splitZ: mcmc.Choose(accepted, z, s.Auxiliary[splitZ])},
	}
	info.Energy = energy
	steps := MulScalar(OnesLike(energy), float64(k.Steps))
	if k.OnSurrogate {
		next.Auxiliary[splitField] = mcmc.Choose(accepted, gradPhi, s.Auxiliary[splitField])
		info.Full, info.PartialGradients = OnesLike(energy), steps
	} else {
		next.Gradient = mcmc.Choose(accepted, end.Gradient, s.Gradient)
		info.Length = steps
	}
	return next, info
}

// angle is each particle's h in this transition, [J].
func (k splitHMC) angle(rng random.Stream, s mcmc.State) *Node {
	h := BroadcastToShape(ConstAs(s.Phi, k.StepSize), s.PerParticle())
	if k.Jitter == 0 {
		return h
	}
	u := rng.Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0))
	return Mul(h, AddScalar(MulScalar(u, 2*k.Jitter), 1-k.Jitter))
}
