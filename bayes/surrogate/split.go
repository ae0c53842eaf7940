package surrogate

import (
	"cmp"
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

var (
	_ mcmc.Exact      = SplitHMC{}
	_ mcmc.Reversible = SplitHMC{}
)

// SplitHMC is Hamiltonian Monte Carlo in the whitened coordinates z of a mode c (see Whitening), which splits off the
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
// surrogate costs only acceptance. It pays if a surrogate from few rows has the right gradient: Sample measures this by
// a pilot.
//
// Sample gives the target its whitening and its surrogate; with mcmc.Sample set Whitening, and Cheap. A Move is a whole
// transition.
type SplitHMC struct {
	StepSize float64 // h, an angle; default 0.75, at most pi/2
	Steps    int     // L; default 2. On a surrogate L h is at most 1.5: longer trajectories leave its domain
	// Jitter draws each transition's step uniformly from h (1 - Jitter) to h (1 + Jitter), within the bounds above;
	// default 0: none.
	Jitter      float64
	OnSurrogate bool
	// Whitening is for targets that have none of their own. It becomes constants of the graph, so it is for small D.
	Whitening *Whitening `json:",omitempty"`
	// Cheap makes the surrogate of targets that are not Surrogated, as in DelayedAcceptance.
	Cheap func(target density.Target) density.Target `json:"-"`
	// Share is the cost of an evaluation of the surrogate relative to the target's; 0: unknown.
	Share float64
}

// The bounds of a trajectory, and of its steps.
const (
	mostSurrogateAngle = 1.5
	mostAngle          = math.Pi / 2
)

// Carries implements Kernel: the gradient, or the log-density alone on a surrogate.
func (k SplitHMC) Carries() mcmc.Carries {
	if k.OnSurrogate {
		return mcmc.CarriesLogDensity
	}
	return mcmc.CarriesGradient
}

// UsesTarget implements Kernel.
func (k SplitHMC) UsesTarget() bool { return true }

// Exact implements Exact: it accepts and rejects by the target.
func (k SplitHMC) Exact() bool { return true }

// Reversible implements Reversible.
func (k SplitHMC) Reversible() bool { return true }

// PartialShare is the cost of a surrogate's evaluation as a share of the target's.
func (k SplitHMC) PartialShare() float64 { return k.Share }

// withDefaults fills in what is zero.
func (k SplitHMC) withDefaults() SplitHMC {
	k.StepSize, k.Steps = cmp.Or(k.StepSize, .75), cmp.Or(k.Steps, 2)
	return k
}

// Check implements Kernel.
func (k SplitHMC) Check(d int) error {
	k = k.withDefaults()
	if !(k.StepSize > 0 && k.StepSize <= mostAngle+1e-3) {
		return fmt.Errorf("surrogate: SplitHMC.StepSize is %v: it is an angle above 0 and at most pi/2 (0: the default, "+
			"0.75)", k.StepSize)
	}
	if k.Steps < 1 || k.Steps > 100 {
		return fmt.Errorf("surrogate: SplitHMC.Steps is %d: it must be from 1 to 100 (0: the default, 2)", k.Steps)
	}
	if !(k.Jitter >= 0 && k.Jitter < 1) {
		return fmt.Errorf("surrogate: SplitHMC.Jitter is %v: it must be from 0 (none) to below 1", k.Jitter)
	}
	if !(k.Share >= 0 && k.Share <= 1) {
		return fmt.Errorf("surrogate: SplitHMC.Share is %v: it must be from 0 (unknown) to 1", k.Share)
	}
	if angle := k.StepSize * float64(k.Steps); k.OnSurrogate && angle > mostSurrogateAngle+1e-9 {
		return fmt.Errorf("surrogate: SplitHMC makes %d steps of %v on a surrogate, an angle of %.3g: it must be at most "+
			"%v, since a surrogate need not be a density, and longer trajectories can run away on it", k.Steps,
			k.StepSize, angle, mostSurrogateAngle)
	}
	if w := k.Whitening; w != nil && len(w.Mode) != d {
		return fmt.Errorf("surrogate: SplitHMC.Whitening is of dimension %d, the particles of %d", len(w.Mode), d)
	}
	return nil
}

// The entries that SplitHMC carries beside phi: z, and on a surrogate grad phi~ there.
const (
	splitZ     = "z"
	splitField = "field"
)

// at is the whitening of a target, or the kernel's own.
func (k SplitHMC) at(target density.Target, like *Node) whitening {
	if t, ok := target.(interface{ whitening() whitening }); ok {
		return t.whitening()
	}
	if k.Whitening == nil {
		panic(fmt.Errorf("SplitHMC has no whitening: sample the problem of Whitening.near, or set SplitHMC.Whitening"))
	}
	return k.Whitening.constants(like)
}

// surrogate is the target that the steps follow with OnSurrogate.
func (k SplitHMC) surrogate(target density.Target) density.Target {
	return mcmc.CheapOf("SplitHMC", k.Cheap, target)
}

// CheapTargets returns the surrogate, if the steps follow it.
func (k SplitHMC) CheapTargets(target density.Target) []density.Target {
	if !k.OnSurrogate {
		return nil
	}
	return []density.Target{k.surrogate(target)}
}

// StartBy implements mcmc.StartedByTarget: it evaluates what the first move needs.
func (k SplitHMC) StartBy(_ random.Stream, s mcmc.State, target density.Target) mcmc.State {
	at := k.at(target, s.Phi)
	z := at.z(s.Phi)
	s.Auxiliary = map[string]*Node{splitZ: z}
	if k.OnSurrogate {
		_, gradient := mcmc.Evaluate(k.surrogate(target), s.Phi)
		s.Auxiliary[splitField] = field(at, gradient, z)
	}
	return s
}

// field is grad phi(z), [J, D], the gradient of what the potential has beyond the Gaussian, given the gradient of log p
// with respect to theta: W' grad U - z.
func field(at whitening, gradient, z *Node) *Node { return Neg(Add(at.pull(gradient), z)) }

// Move implements Kernel.
func (k SplitHMC) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	k = k.withDefaults()
	at := k.at(target, s.Phi)
	h := k.angle(rng.Named("step"), s)
	each := func(x *Node) *Node { return BroadcastToShape(ExpandAxes(x, 1), s.Phi.Shape()) }
	cos, sin, half := each(Cos(h)), each(Sin(h)), each(MulScalar(h, .5))
	follows := target
	if k.OnSurrogate {
		follows = k.surrogate(target)
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
	info.Energy, info.EnergyError = energy, energyError
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
func (k SplitHMC) angle(rng random.Stream, s mcmc.State) *Node {
	h := BroadcastToShape(ConstAs(s.Phi, k.StepSize), s.PerParticle())
	if k.Jitter == 0 {
		return h
	}
	u := rng.Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0))
	h = Mul(h, AddScalar(MulScalar(u, 2*k.Jitter), 1-k.Jitter))
	return MinScalar(h, k.mostStep())
}

// mostStep is the longest step that Jitter may draw: within the bound on the angle, but never below StepSize itself.
func (k SplitHMC) mostStep() float64 {
	if k.OnSurrogate {
		return math.Max(k.StepSize, mostSurrogateAngle/float64(k.Steps))
	}
	return math.Max(k.StepSize, mostAngle)
}
