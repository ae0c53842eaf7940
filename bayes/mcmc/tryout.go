package mcmc

import (
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A target of a user's own can be wrong such that nothing fails and all draws are: if one chain's log-density depends
// on another chain, if Gradient and LogDensity give different log-densities, or if the gradient is not that of the
// log-density, which kernels that accept every step do not survive. So such a target is tried where the chains begin.

// The sizes of the trial.
const (
	triedError    = 1e-3 // allowed difference of the two log-densities: they may be rounded differently
	triedSlope    = .3   // allowed relative error of the gradient along a step: differences over a step are not exact
	triedInformed = 1e-4 // the least change of the log-density, over its size, whose difference says something
	triedChains   = .9   // the share of chains in which the gradient is wrong, from which the target is refused
)

// triedSteps are the lengths of the steps over which the gradient is compared, in units of the coordinates' sizes.
var triedSteps = [...]float64{1e-2, 1e-3}

// TryTarget makes the trial of a target that is a user's own at phi, [J, D], and gives its record, a vector for
// CheckTried; nil if the target is of a type of the library's. A Density is tried for whether it mixes particles. It
// adds up to seven evaluations of the target to the graph: make it where particles begin.
func TryTarget(rng random.Stream, target Target, phi *graph.Node) *graph.Node {
	if _, ok := target.(Density); ok {
		return try(rng, target, phi, false)
	}
	if tryout.Foreign(target) {
		return try(rng, target, phi, true)
	}
	return nil
}

// try counts particles that are compared and those that depend on others; particles with two finite log-densities and
// those with different ones; and for each step, particles that are compared and those with another slope. The last are
// tried if gradient is set.
func try(rng random.Stream, target Target, phi *Node, gradient bool) *Node {
	rng = rng.Named("tried")
	target = ByMiniBatch(rng, target)
	density := target.LogDensity(phi)
	record := []*Node{tryout.Mixing(rng, target.LogDensity, phi, density)}
	if !gradient {
		rest := shapes.Make(phi.DType(), 2+2*len(triedSteps))
		return Concatenate(append(record, Zeros(phi.Graph(), rest)), 0)
	}
	again, slope := target.Gradient(phi)
	both := And(IsFinite(density), IsFinite(again))
	different := And(both, tryout.Differ(density, again, triedError))
	record = append(record, tryout.Count(phi, both), tryout.Count(phi, different))
	sign := Sign(AddScalar(rng.Named("sign").Uniform(phi.DType(), phi.Shape().Dimensions...), -.5))
	for _, length := range triedSteps {
		step := Mul(sign, MulScalar(AddScalar(Abs(phi), .1), length))
		change := Sub(target.LogDensity(Add(phi, step)), target.LogDensity(Sub(phi, step)))
		expected := MulScalar(ReduceSum(Mul(slope, step), 1), 2)
		most := Max(Abs(change), Abs(expected))
		informed := And(And(IsFinite(change), IsFinite(expected)),
			GreaterThan(most, MulScalar(AddScalar(Abs(density), 1), triedInformed)))
		wrong := And(informed, GreaterThan(Abs(Sub(change, expected)), MulScalar(most, triedSlope)))
		record = append(record, tryout.Count(phi, informed), tryout.Count(phi, wrong))
	}
	return Concatenate(record, 0)
}

// CheckTried is an error if the trial of a target, by TryTarget, has found a contradiction. target is the name of the
// target's type, for the error.
func CheckTried(record []float64, target string) error {
	if err := tryout.CheckMixing(record, "LogDensity"); err != nil {
		return fmt.Errorf("target %s: %w", target, err)
	}
	both, different := record[2], record[3]
	if different > both/2 {
		return fmt.Errorf("target %s contradicts itself: its LogDensity and its Gradient give different log-densities in "+
			"%.0f of %.0f particles: both must be log p(phi) with the same constant", target, different, both)
	}
	refused := false
	var informed, wrong float64
	for i := range triedSteps {
		compared := record[4+2*i]
		if compared <= both/4 { // it may be flat but for jumps
			continue
		}
		informed, wrong, refused = compared, record[5+2*i], true
		if wrong < triedChains*informed {
			return nil
		}
	}
	if !refused {
		return nil
	}
	return fmt.Errorf("target %s contradicts itself: along a small step its LogDensity does not change as its Gradient "+
		"says in %.0f of %.0f particles: the gradient must be that of LogDensity with respect to phi, with its sign; "+
		"mcmc.Density takes the gradient of a log-density by itself", target, wrong, informed)
}
