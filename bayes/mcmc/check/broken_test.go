package check

import (
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
)

// The kernels of this file are right if fault is empty, and wrong in one respect if it names one: what the harness
// finds is then the fault's doing.
type (
	// walk is random-walk Metropolis with standard normal steps times 1.2.
	walk struct{ fault string }
	// stretch is a random walk in asinh(phi), with the Jacobian of the map.
	stretch struct{ fault string }
	// crank is preconditioned Crank-Nicolson for the reference N(0, 1.5^2).
	crank struct{ fault string }
	// langevin is MALA with a step of 0.7.
	langevin struct{ fault string }
	// hamiltonian is HMC with three leapfrog steps of 0.42.
	hamiltonian struct{ fault string }
	// turning rotates and shrinks the plane about m and adds noise such that N(m, 1) is invariant, but not in detailed
	// balance.
	turning struct{}
)

func (walk) Traits() mcmc.Traits        { return mcmc.Traits{Carries: mcmc.CarriesLogDensity} }
func (stretch) Traits() mcmc.Traits     { return mcmc.Traits{Carries: mcmc.CarriesLogDensity} }
func (crank) Traits() mcmc.Traits       { return mcmc.Traits{Carries: mcmc.CarriesLogDensity} }
func (langevin) Traits() mcmc.Traits    { return mcmc.Traits{Carries: mcmc.CarriesGradient} }
func (hamiltonian) Traits() mcmc.Traits { return mcmc.Traits{Carries: mcmc.CarriesGradient} }
func (turning) Traits() mcmc.Traits     { return mcmc.Traits{NoTarget: true} }
func (walk) Check(int) error            { return nil }
func (stretch) Check(int) error         { return nil }
func (crank) Check(int) error           { return nil }
func (langevin) Check(int) error        { return nil }
func (hamiltonian) Check(int) error     { return nil }
func (turning) Check(int) error         { return nil }

func (k walk) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	z := gauss(rng.Named("proposal"), s.Phi)
	proposal := mcmc.State{Phi: Add(s.Phi, MulScalar(z, 1.2))}
	switch k.fault {
	case "steps have a mean":
		proposal.Phi = Add(s.Phi, MulScalar(AddScalar(z, .1), 1.2))
	case "step grows with |phi|":
		proposal.Phi = Add(s.Phi, Mul(z, AddScalar(Abs(s.Phi), .2)))
	case "one particle's NaN reaches all":
		proposal.Phi = Add(proposal.Phi, MulScalar(ReduceAndKeep(s.Phi, ReduceMean, 0), 0))
	}
	proposal.LogDensity = compute.Gate(target.LogDensity(proposal.Phi))
	logRatio := Sub(proposal.LogDensity, s.LogDensity)
	if k.fault == "likelihood tempered" {
		logRatio = MulScalar(logRatio, .8)
	}
	next, info := decide(rng, s, proposal, logRatio, k.fault)
	switch k.fault {
	case "log-density stays behind":
		next.LogDensity = s.LogDensity
	case "log-density goes ahead":
		next.LogDensity = proposal.LogDensity
	case "all count as accepted":
		info.Accepted = OnesLike(info.Accepted)
	case "acceptance above 1":
		info.Acceptance = Exp(logRatio)
	case "non-finite is not counted":
		info.NonFinite = ZerosLike(info.NonFinite)
	}
	return next, info
}

func (k stretch) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	size := func(x *Node) *Node { return Sqrt(AddScalar(Square(x), 1)) }
	inner := Mul(Sign(s.Phi), Log(Add(Abs(s.Phi), size(s.Phi)))) // asinh
	y := Add(inner, gauss(rng.Named("proposal"), s.Phi))
	proposal := mcmc.State{Phi: MulScalar(Sub(Exp(y), Exp(Neg(y))), .5)}
	proposal.LogDensity = compute.Gate(target.LogDensity(proposal.Phi))
	logRatio := Sub(proposal.LogDensity, s.LogDensity)
	jacobian := ReduceSum(Log(Div(size(proposal.Phi), size(s.Phi))), 1)
	switch k.fault {
	case "Jacobian upside down":
		logRatio = Sub(logRatio, jacobian)
	case "no Jacobian":
	default:
		logRatio = Add(logRatio, jacobian)
	}
	return decide(rng, s, proposal, logRatio, k.fault)
}

func (k crank) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	const beta, sd = .6, 1.5
	proposal := mcmc.State{
		Phi: Add(MulScalar(s.Phi, math.Sqrt(1-beta*beta)), MulScalar(gauss(rng.Named("proposal"), s.Phi), beta*sd)),
	}
	if k.fault == "does not contract" {
		proposal.Phi = Add(s.Phi, MulScalar(gauss(rng.Named("proposal"), s.Phi), beta*sd))
	}
	proposal.LogDensity = compute.Gate(target.LogDensity(proposal.Phi))
	logRatio := Sub(proposal.LogDensity, s.LogDensity)
	reference := func(phi *Node) *Node { return halfSquares(DivScalar(phi, sd)) }
	switch k.fault {
	case "no reference term":
	case "reference term upside down":
		logRatio = Add(logRatio, Sub(reference(proposal.Phi), reference(s.Phi)))
	default:
		logRatio = Sub(logRatio, Sub(reference(proposal.Phi), reference(s.Phi)))
	}
	return decide(rng, s, proposal, logRatio, k.fault)
}

func (k langevin) Move(rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	const h = .7
	sign := 1.0
	if k.fault == "gradient's sign, in the proposal" || k.fault == "gradient's sign, in both" {
		sign = -1
	}
	drift := func(at mcmc.State, sign float64) *Node { return Add(at.Phi, MulScalar(at.Gradient, sign*h*h/2)) }
	proposal := mcmc.State{Phi: Add(drift(s, sign), MulScalar(gauss(rng.Named("proposal"), s.Phi), h))}
	proposal.LogDensity, proposal.Gradient = gate(target, proposal.Phi)
	back := h
	if k.fault == "another step back" {
		back = .8 * h
	}
	if k.fault == "gradient's sign, in the proposal" {
		sign = 1
	}
	forward := halfSquares(DivScalar(Sub(proposal.Phi, drift(s, sign)), h))
	backward := AddScalar(halfSquares(DivScalar(Sub(s.Phi, drift(proposal, sign)), back)), -2*math.Log(back/h))
	logRatio := Sub(proposal.LogDensity, s.LogDensity)
	switch k.fault {
	case "no backward density":
		logRatio = Sub(logRatio, forward)
	case "proposal taken as symmetric":
	case "proposal ratio swapped":
		logRatio = Add(logRatio, Sub(forward, backward))
	default:
		logRatio = Add(logRatio, Sub(backward, forward))
	}
	next, info := decide(rng, s, proposal, logRatio, k.fault)
	if k.fault == "gradient stays behind" {
		next.Gradient = s.Gradient
	}
	return next, info
}

// Start implements mcmc.Stateful: only the fault carries a momentum.
func (k hamiltonian) Start(rng random.Stream, s mcmc.State, _ density.Target) mcmc.State {
	if k.fault == "momentum not refreshed" {
		s.Auxiliary = map[string]*Node{"momentum": gauss(rng, s.Phi)}
	}
	return s
}

func (k hamiltonian) Move(
	rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	const h, steps = .42, 3
	start := gauss(rng.Named("momentum"), s.Phi)
	if k.fault == "momentum not refreshed" {
		start = s.Auxiliary["momentum"]
	}
	sign := 1.0
	if k.fault == "gradient's sign" {
		sign = -1
	}
	proposal, p := s, start
	for i := range steps {
		p = Add(p, MulScalar(proposal.Gradient, sign*h/2))
		if k.fault == "first half step of the momentum twice" && i == 0 {
			p = Add(p, MulScalar(proposal.Gradient, sign*h/2))
		}
		proposal = mcmc.State{Phi: Add(proposal.Phi, MulScalar(p, h))}
		proposal.LogDensity, proposal.Gradient = gate(target, proposal.Phi)
		if k.fault == "last half step of the momentum missing" && i == steps-1 {
			break
		}
		p = Add(p, MulScalar(proposal.Gradient, sign*h/2))
	}
	logRatio := Add(Sub(proposal.LogDensity, s.LogDensity), Sub(halfSquares(p), halfSquares(start)))
	if k.fault == "no kinetic energy" {
		logRatio = Sub(proposal.LogDensity, s.LogDensity)
	}
	next, info := decide(rng, s, proposal, logRatio, k.fault)
	if k.fault == "momentum not refreshed" { // it goes on where it was accepted, and turns where not
		accepted := GreaterThan(info.Accepted, ZerosLike(info.Accepted))
		next.Auxiliary = map[string]*Node{"momentum": pick(accepted, p, Neg(start))}
	}
	return next, info
}

func (turning) Move(rng random.Stream, s mcmc.State, _ density.Target, _ mcmc.Tuning) (mcmc.State, mcmc.Info) {
	const a, angle = .9, .5
	m := row(s.Phi, []float64{1, -.5})
	turn := matrix(
		s.Phi, [][]float64{{a * math.Cos(angle), -a * math.Sin(angle)}, {a * math.Sin(angle), a * math.Cos(angle)}},
	)
	turned := Einsum("jk,lk->jl", Sub(s.Phi, m), turn)
	return mcmc.State{Phi: Add(Add(m, turned), MulScalar(gauss(rng, s.Phi), math.Sqrt(1-a*a)))}, mcmc.Info{}
}

// decide accepts with the probability min(1, exp(logRatio)), or in one of the ways of doing it wrong.
func decide(rng random.Stream, current, proposal mcmc.State, logRatio *Node, fault string) (mcmc.State, mcmc.Info) {
	finite := IsFinite(proposal.LogDensity)
	logRatio = Where(finite, logRatio, BroadcastToShape(ConstAs(logRatio, math.Inf(-1)), logRatio.Shape()))
	dtype, j := current.Phi.DType(), current.Phi.Shape().Dim(0)
	u := rng.Named("accept").Uniform(dtype, j)
	if fault == "proposal's random numbers again" {
		u = rng.Named("proposal").Uniform(dtype, j)
	}
	accepted := LessThan(Log(u), logRatio)
	switch fault {
	case "accepts with > for <":
		accepted = And(finite, GreaterThan(Log(u), logRatio))
	case "always accepts":
		accepted = finite
	case "accepts only what is better":
		accepted = GreaterThan(logRatio, ZerosLike(logRatio))
	case "accepts with min(r, 1/2)":
		accepted = LessThan(u, MinScalar(Exp(logRatio), .5))
	}
	next := current
	next.Phi = pick(accepted, proposal.Phi, current.Phi)
	next.LogDensity = Where(accepted, proposal.LogDensity, current.LogDensity)
	if proposal.Gradient != nil {
		next.Gradient = pick(accepted, proposal.Gradient, current.Gradient)
	}
	probability := Exp(MinScalar(logRatio, 0))
	return next, mcmc.Info{
		Acceptance: Where(IsFinite(probability), probability, ZerosLike(probability)),
		Accepted:   ConvertDType(accepted, dtype),
		NonFinite:  ConvertDType(Not(finite), dtype),
	}
}

func gauss(rng random.Stream, like *Node) *Node {
	return rng.Normal(like.DType(), like.Shape().Dimensions...)
}

// gate is what mcmc.Start evaluates.
func gate(target density.Target, phi *Node) (logDensity, gradient *Node) {
	logDensity, gradient = target.Gradient(phi)
	finite := And(IsFinite(logDensity), LogicalAll(IsFinite(gradient), 1))
	return Where(
		finite, logDensity, BroadcastToShape(ConstAs(logDensity, math.Inf(-1)), logDensity.Shape()),
	), pick(finite, gradient, ZerosLike(gradient))
}

func pick(condition, a, b *Node) *Node {
	return Where(BroadcastToDims(ExpandAxes(condition, 1), a.Shape().Dimensions...), a, b)
}
