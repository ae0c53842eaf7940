package mcmc

import (
	"cmp"
	"fmt"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
)

// The kernels of this file have no target, and accept everything.
var (
	_ Kernel = RandomWalk{}
	_ Kernel = OrnsteinUhlenbeck{}
)

// RandomWalk adds N(0, Variance) to every coordinate, and always moves. It leaves no distribution invariant: in OHSMC
// it is the artificial dynamics that keep particles apart (Zhao et al. 2024, section 3.3).
type RandomWalk struct {
	Variance float64 `json:"variance"` // of the step; default 0.01
}

// Traits implements Kernel.
func (k RandomWalk) Traits() Traits { return Traits{NoTarget: true} }

// Check implements Kernel.
func (k RandomWalk) Check(int) error {
	return limits.Fill("mcmc: RandomWalk", limits.Float("Variance", &k.Variance, 0.01).Positive())
}

// Move implements Kernel.
func (k RandomWalk) Move(rng random.Stream, s State, _ density.Target, tuning Tuning) (State, Info) {
	step := Mul(tuning.Scaled(normal(rng, s.Phi)), tuning.Step(s.Phi, math.Sqrt(cmp.Or(k.Variance, 0.01))))
	return State{Phi: Add(s.Phi, step)}, Info{}
}

// OrnsteinUhlenbeck runs the process d phi = -(phi - m) dt + sqrt(2) s dW for a Time, exactly: phi' = m + a (phi - m) +
// s sqrt(1 - a^2) z with a = exp(-Time). It leaves N(m, s^2) invariant, coordinate by coordinate.
type OrnsteinUhlenbeck struct {
	Time   float64   `json:"time"`              // terminal time; default 0.1
	Mean   []float64 `json:"mean,omitempty"`    // m, [D]; empty: 0
	StdDev []float64 `json:"std_dev,omitempty"` // s, [D]; empty: 1
}

// Traits implements Kernel.
func (k OrnsteinUhlenbeck) Traits() Traits { return Traits{NoTarget: true} }

// Check implements Kernel.
func (k OrnsteinUhlenbeck) Check(d int) error {
	if err := checkNormal("OrnsteinUhlenbeck", k.Mean, k.StdDev, d); err != nil {
		return err
	}
	return limits.Fill("mcmc: OrnsteinUhlenbeck", limits.Float("Time", &k.Time, 0.1).Positive())
}

// Move implements Kernel.
func (k OrnsteinUhlenbeck) Move(rng random.Stream, s State, _ density.Target, _ Tuning) (State, Info) {
	time := cmp.Or(k.Time, 0.1)
	return State{Phi: pull(rng, s.Phi, math.Exp(-time), math.Sqrt(-math.Expm1(-2*time)), k.Mean, k.StdDev)}, Info{}
}

// pull is m + decay (phi - m) + spread s z with standard normal z: it leaves N(m, s^2) invariant if decay^2 + spread^2
// = 1.
func pull(rng random.Stream, phi *Node, decay, spread float64, mean, stdDev []float64) *Node {
	noise := MulScalar(normal(rng, phi), spread)
	if len(stdDev) > 0 {
		noise = Mul(noise, row(phi, stdDev))
	}
	pulled := MulScalar(phi, decay)
	if len(mean) > 0 {
		pulled = Add(pulled, MulScalar(row(phi, mean), 1-decay))
	}
	return Add(pulled, noise)
}

// checkNormal checks the mean and the standard deviations of a normal distribution over d coordinates; empty ones stand
// for 0 and 1.
func checkNormal(kernel string, mean, stdDev []float64, d int) error {
	if m, s := len(mean), len(stdDev); m != 0 && m != d || s != 0 && s != d {
		return fmt.Errorf("mcmc: %s.Mean has %d values, and StdDev %d: each must have %d, as particles have coordinates, "+
			"or none", kernel, m, s, d)
	}
	for i, m := range mean {
		if !finite(m) {
			return fmt.Errorf("mcmc: %s.Mean[%d] is %v: it must be finite", kernel, i, m)
		}
	}
	for i, s := range stdDev {
		if !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("mcmc: %s.StdDev[%d] is %v: it must be positive", kernel, i, s)
		}
	}
	return nil
}
