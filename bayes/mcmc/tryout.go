package mcmc

import (
	"fmt"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A user's own target can be wrong so that nothing fails, but all draws are wrong. One chain's log-density may depend
// on another chain; Gradient and LogDensity may give different log-densities; or the gradient may not belong to the
// log-density, which only an accept/reject step corrects. So such a target is tried where the chains begin. So are
// cheap targets, as of DelayedAcceptance: such kernels leave the target invariant only if moves on the cheap one are
// reversible, and if it mixes chains they are not.

// TryTarget makes the trial of a target that is a user's own at phi, [J, D], and gives its record, a vector for
// CheckTried; nil if the target is of a type of the library's. A density.Func is tried for whether it mixes particles.
// It adds up to eight evaluations of the target to the graph: make it where particles begin.
func TryTarget(rng random.Stream, target density.Target, phi *graph.Node) *graph.Node {
	return try(rng, target, phi, true)
}

// TryCheap is TryTarget for the cheap targets on which a kernel moves, such as DelayedAcceptance's and one nested
// within. It returns the records, one after another, and a name for each; nil if there are none. The gradients of cheap
// targets are not tried: moves on them accept or reject by the log-density, so a gradient need not belong to it.
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

// cheapTargets returns the cheap targets on which a kernel moves, given its target.
func cheapTargets(kernel Kernel, target density.Target) []density.Target {
	if k, ok := kernel.(movesOnCheap); ok {
		return k.CheapTargets(target)
	}
	return nil
}

// typeOf is the type of a target, or of the part of it that may be a user's own, as text.
func typeOf(target density.Target) string { return fmt.Sprintf("%T", tryout.Held(target)) }

// try is the trial of a target, nil if it is the library's own. Of a density.Func only mixing is tried.
func try(rng random.Stream, target density.Target, phi *Node, slopes bool) *Node {
	held := tryout.Held(target)
	_, function := held.(density.Func)
	if !function && !tryout.Foreign(held) {
		return nil
	}
	rng = rng.Named("tried")
	return tryout.Target(rng, density.ByMiniBatch(rng, target), phi, function, slopes)
}

// CheckTried returns an error if the trials by TryTarget and TryCheap have found a contradiction. targets has the name
// of each tried target's type, for the error. rest has the numbers that follow the records.
func CheckTried(records []float64, targets ...string) (rest []float64, err error) {
	for _, target := range targets {
		if err := tryout.CheckTarget(records[:tryout.TargetNumbers], target); err != nil {
			return nil, err
		}
		records = records[tryout.TargetNumbers:]
	}
	return records, nil
}
