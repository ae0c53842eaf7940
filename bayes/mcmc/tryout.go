package mcmc

import (
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A target of a user's own can be wrong such that nothing fails and all draws are: if one chain's log-density depends
// on another chain, if Gradient and LogDensity give different log-densities, or if the gradient is not that of the
// log-density, which kernels that accept every step do not survive. So such a target is tried where the chains begin.
// So are cheap targets, as of DelayedAcceptance: such kernels leave the target invariant only if moves on the
// cheap one are reversible, and if it mixes chains they are not.

// The sizes of the trial.
const (
	triedError    = 1e-3 // allowed difference of the two log-densities: they may be rounded differently
	triedSlope    = .3   // allowed relative error of the gradient along a step: differences over a step are not exact
	triedInformed = 1e-4 // the least change of the log-density, over its size, whose difference says something
	triedChains   = .9   // the share of chains in which the gradient is wrong, from which the target is refused
	triedNumbers  = 6 + 2*len(triedSteps)
)

// triedSteps are the lengths of the steps over which the gradient is compared, in units of the coordinates' sizes.
var triedSteps = [...]float64{1e-2, 1e-3}

// TryTarget makes the trial of a target that is a user's own at phi, [J, D], and gives its record, a vector for
// CheckTried; nil if the target is of a type of the library's. A density.Func is tried for whether it mixes particles.
// It adds up to eight evaluations of the target to the graph: make it where particles begin.
func TryTarget(rng random.Stream, target density.Target, phi *graph.Node) *graph.Node {
	return try(rng, target, phi, true)
}

// TryCheap is TryTarget for the cheap targets on which a kernel moves, such as those of DelayedAcceptance and of one
// within it, given the kernel's target: the records, one after another, nil if there are none, and a name for each. A
// cheap target's gradient need not be that of its log-density, since moves on it accept or reject by the latter.
func TryCheap(
	rng random.Stream, kernel Kernel, target density.Target, phi *graph.Node,
) (records *graph.Node, names []string) {
	var all []*Node
	for _, cheap := range cheapTargets(kernel, target) {
		if record := try(rng, cheap, phi, false); record != nil {
			all, names = append(all, record), append(names, fmt.Sprintf("%s (on which %T moves)", typeOf(cheap), kernel))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return Concatenate(all, 0), names
}

// movesOnCheap is a kernel that moves on cheap targets.
type movesOnCheap interface {
	CheapTargets(target density.Target) []density.Target
}

// cheapTargets are the cheap targets on which a kernel moves, given its target.
func cheapTargets(kernel Kernel, target density.Target) []density.Target {
	if k, ok := kernel.(movesOnCheap); ok {
		return k.CheapTargets(target)
	}
	return nil
}

// typeOf is the type of a target, or of the part of it that may be a user's own, as text.
func typeOf(target density.Target) string { return fmt.Sprintf("%T", tryout.Held(target)) }

// try counts particles that are compared and those whose log-density depends on others; the same for gradients;
// particles with two finite log-densities and those with different ones; and for each step, particles that are compared
// and those with another slope, if slopes is set. Of a density.Func only the first are counted. It is nil if the target
// is the library's own.
func try(rng random.Stream, target density.Target, phi *Node, slopes bool) *Node {
	held := tryout.Held(target)
	_, function := held.(density.Func)
	if !function && !tryout.Foreign(held) {
		return nil
	}
	rng = rng.Named("tried")
	target = density.ByMiniBatch(rng, target)
	density := target.LogDensity(phi)
	record := []*Node{tryout.Mixing(rng, target.LogDensity, phi, density)}
	without := func(count int) *Node {
		return Concatenate(append(record, Zeros(phi.Graph(), shapes.Make(phi.DType(), count))), 0)
	}
	if function {
		return without(triedNumbers - 2)
	}
	again, slope := target.Gradient(phi)
	total := func(phi *Node) *Node { _, slope := target.Gradient(phi); return ReduceSum(slope, 1) }
	both := And(IsFinite(density), IsFinite(again))
	different := And(both, tryout.Differ(density, again, triedError))
	record = append(record, tryout.Mixing(rng, total, phi, ReduceSum(slope, 1)), tryout.Count(phi, both),
		tryout.Count(phi, different))
	if !slopes {
		return without(2 * len(triedSteps))
	}
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

// CheckTried is an error if the trials of targets, by TryTarget and TryCheap, have found a contradiction. targets are
// the names of their types, for the error, one for each record. The rest are the numbers after these records.
func CheckTried(records []float64, targets ...string) (rest []float64, err error) {
	for _, target := range targets {
		if err := checkTried(records[:triedNumbers], target); err != nil {
			return nil, err
		}
		records = records[triedNumbers:]
	}
	return records, nil
}

func checkTried(record []float64, target string) error {
	for i, function := range []string{"LogDensity", "Gradient"} {
		if err := tryout.CheckMixing(record[2*i:], function); err != nil {
			return fmt.Errorf("target %s: %w", target, err)
		}
	}
	both, different := record[4], record[5]
	if different > both/2 {
		return fmt.Errorf("target %s contradicts itself: its LogDensity and its Gradient give different log-densities in "+
			"%.0f of %.0f particles: both must be log p(phi) with the same constant", target, different, both)
	}
	refused := false
	var informed, wrong float64
	for i := range triedSteps {
		compared := record[6+2*i]
		if compared <= both/4 { // it may be flat but for jumps
			continue
		}
		informed, wrong, refused = compared, record[7+2*i], true
		if wrong < triedChains*informed {
			return nil
		}
	}
	if !refused {
		return nil
	}
	return fmt.Errorf("target %s contradicts itself: along a small step its LogDensity does not change as its Gradient "+
		"says in %.0f of %.0f particles: the gradient must be that of LogDensity with respect to phi, with its sign; "+
		"density.Func takes the gradient of a log-density by itself", target, wrong, informed)
}
