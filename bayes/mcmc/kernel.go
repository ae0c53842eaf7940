// Package mcmc has Markov kernels that move all particles at once, in a graph.
//
// A kernel takes particles phi, [J, D], to new ones. Some leave a target distribution invariant, by accepting or rejecting
// what they propose (RandomWalkMetropolis), or by construction (OrnsteinUhlenbeck, whose target is a Gaussian: the prior). RandomWalk
// leaves nothing invariant: it only spreads. What is invariant stands in each kernel's comment; tests hold it to that.
package mcmc

import (
	"fmt"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// LogDensity is an unnormalised log-density of each particle: [J, D] to [J].
type LogDensity func(phi *Node) *Node

// State is what the next move needs.
type State struct {
	Phi        *Node // [J, D]
	LogDensity *Node // [J], of Phi under the target; nil for kernels that do not ask for it
}

// Info is what people look at.
type Info struct {
	// Accepted is 1 for each particle that moved, 0 for each that stayed, [J]; nil for kernels that always move.
	Accepted *Node
	// NonFinite is 1 for each particle whose proposal had a log-density that is NaN or infinite, and was rejected for it, [J]; nil for
	// kernels that do not look.
	NonFinite *Node
}

// Kernel is one move of all particles. Its Move builds graph, and panics as GoMLX does.
type Kernel interface {
	// Move draws the next state. The target may be nil for kernels whose NeedsTarget is false.
	Move(rng random.Stream, s State, target LogDensity) (State, Info)
	// NeedsTarget says whether Move evaluates the target.
	NeedsTarget() bool
	// Check returns an error that names a setting that is wrong, for particles of dimension d.
	Check(d int) error
}

var (
	_ Kernel = RandomWalk{}
	_ Kernel = OrnsteinUhlenbeck{}
	_ Kernel = RandomWalkMetropolis{}
)

// RandomWalk adds N(0, Variance) to every coordinate, and always moves. It leaves no distribution invariant: in OHSMC it is
// the artificial dynamics that keeps particles apart (Zhao et al. 2024, section 3.3).
type RandomWalk struct {
	Variance float64 `json:"variance"` // of the step; default 0.01
}

// NeedsTarget implements Kernel.
func (k RandomWalk) NeedsTarget() bool { return false }

// Check implements Kernel.
func (k RandomWalk) Check(int) error { return nonNegative("RandomWalk.Variance", k.Variance) }

// Move implements Kernel.
func (k RandomWalk) Move(rng random.Stream, s State, _ LogDensity) (State, Info) {
	return State{Phi: Add(s.Phi, MulScalar(normal(rng, s.Phi), math.Sqrt(or(k.Variance, 0.01))))}, Info{}
}

// OrnsteinUhlenbeck runs the process d phi = -(phi - m) dt + sqrt(2) s dW for a Time, exactly: phi' = m + a (phi - m) + s sqrt(1 - a^2) z with
// a = exp(-Time). It leaves N(m, s^2) invariant, coordinate by coordinate.
type OrnsteinUhlenbeck struct {
	Time   float64   `json:"time"`              // terminal time; default 0.1
	Mean   []float64 `json:"mean,omitempty"`    // m, [D]; empty: 0
	StdDev []float64 `json:"std_dev,omitempty"` // s, [D]; empty: 1
}

// NeedsTarget implements Kernel.
func (k OrnsteinUhlenbeck) NeedsTarget() bool { return false }

// Check implements Kernel.
func (k OrnsteinUhlenbeck) Check(d int) error {
	for _, field := range []struct {
		name   string
		values []float64
	}{{"Mean", k.Mean}, {"StdDev", k.StdDev}} {
		if n := len(field.values); n != 0 && n != d {
			return fmt.Errorf("mcmc: OrnsteinUhlenbeck.%s has %d values, but particles have %d coordinates", field.name, n, d)
		}
	}
	for i, m := range k.Mean {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			return fmt.Errorf("mcmc: OrnsteinUhlenbeck.Mean[%d] is %v: it must be finite", i, m)
		}
	}
	for i, s := range k.StdDev {
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("mcmc: OrnsteinUhlenbeck.StdDev[%d] is %v: it must be positive", i, s)
		}
	}
	return nonNegative("OrnsteinUhlenbeck.Time", k.Time)
}

// Move implements Kernel.
func (k OrnsteinUhlenbeck) Move(rng random.Stream, s State, _ LogDensity) (State, Info) {
	time := or(k.Time, 0.1)
	decay, spread := math.Exp(-time), math.Sqrt(-math.Expm1(-2*time))
	noise := MulScalar(normal(rng, s.Phi), spread)
	if len(k.StdDev) > 0 {
		noise = Mul(noise, row(s.Phi, k.StdDev))
	}
	phi := MulScalar(s.Phi, decay)
	if len(k.Mean) > 0 {
		phi = Add(phi, MulScalar(row(s.Phi, k.Mean), 1-decay))
	}
	return State{Phi: Add(phi, noise)}, Info{}
}

// RandomWalkMetropolis proposes phi + StepSize z, z standard normal, and accepts with probability min(1, p(phi')/p(phi))
// (Metropolis et al. 1953), each particle for itself. It leaves the target invariant. A proposal whose log-density is not finite is rejected and
// counted.
type RandomWalkMetropolis struct {
	StepSize float64 `json:"step_size"` // standard deviation of the proposal in every coordinate; default 0.1
}

// NeedsTarget implements Kernel.
func (k RandomWalkMetropolis) NeedsTarget() bool { return true }

// Check implements Kernel.
func (k RandomWalkMetropolis) Check(int) error {
	return nonNegative("RandomWalkMetropolis.StepSize", k.StepSize)
}

// Move implements Kernel.
func (k RandomWalkMetropolis) Move(rng random.Stream, s State, target LogDensity) (State, Info) {
	if s.LogDensity == nil {
		s.LogDensity = smc.Gate(target(s.Phi))
	}
	step := MulScalar(normal(rng.Named("proposal"), s.Phi), or(k.StepSize, 0.1))
	proposal := Add(s.Phi, step)
	density := target(proposal)
	finite := IsFinite(density)
	density = smc.Gate(density)

	u := rng.Named("accept").Uniform(s.Phi.DType(), s.Phi.Shape().Dim(0))
	accepted := And(finite, LessThan(Log(u), Sub(density, s.LogDensity)))
	dtype := s.Phi.DType()
	return State{
			Phi:        Where(BroadcastToDims(ExpandAxes(accepted, 1), s.Phi.Shape().Dimensions...), proposal, s.Phi),
			LogDensity: Where(accepted, density, s.LogDensity),
		}, Info{
			Accepted:  ConvertDType(accepted, dtype),
			NonFinite: ConvertDType(Not(finite), dtype),
		}
}

func normal(rng random.Stream, like *Node) *Node {
	return rng.Normal(like.DType(), like.Shape().Dimensions...)
}

// row is a constant [1, D] of like's type.
func row(like *Node, values []float64) *Node {
	r := ConvertDType(Const(like.Graph(), [][]float64{values}), like.DType())
	return BroadcastToShape(r, shapes.Make(like.DType(), like.Shape().Dimensions...))
}

func or(value, byDefault float64) float64 {
	if value == 0 {
		return byDefault
	}
	return value
}

func nonNegative(name string, v float64) error {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("mcmc: %s is %v: it must be positive (0 takes the default)", name, v)
	}
	return nil
}
