package mcmc

import (
	"fmt"
	"reflect"
	"strings"

	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// A target of a user's own can be wrong such that nothing fails and all draws are: if one chain's log-density depends
// on another chain, if Gradient and LogDensity give different log-densities, or if the gradient is not that of the
// log-density, which kernels that accept every step do not survive. So such a target is tried where the chains begin.

// The sizes of the trial.
const (
	triedError    = 1e-3 // allowed difference of log-densities that are computed in two ways, of rounding in float32
	triedMixing   = 1e-4 // the same, of those that are computed in one way
	triedSlope    = .3   // allowed relative error of the gradient along a step: differences over a step are not exact
	triedInformed = 1e-4 // the least change of the log-density, over its size, whose difference says something
	triedChains   = .9   // the share of chains in which the gradient is wrong, from which the target is refused
)

// triedSteps are the lengths of the steps over which the gradient is compared, in units of the coordinates' sizes.
var triedSteps = [...]float64{1e-2, 1e-3}

// triedRecord is the length of the record of a trial: chains compared and those that depend on others; chains with two
// finite log-densities and those with different ones; for each step, chains compared and those with another slope.
const triedRecord = 4 + 2*len(triedSteps)

// tries says whether a target is tried, and whether its Gradient is its own.
func tries(target Target) (tried, gradient bool) {
	kind := reflect.TypeOf(target)
	if kind == reflect.TypeFor[Density]() {
		return true, false
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	module, _, _ := strings.Cut(reflect.TypeFor[Density]().PkgPath(), "/")
	path := kind.PkgPath()
	inside := path == module || strings.HasPrefix(path, module+"/")
	foreign := !inside || strings.HasSuffix(path, "_test")
	return foreign, foreign
}

// try makes the trial of a target at phi, [J, D]: the record for checkTried.
func try(rng random.Stream, target Target, phi *Node, gradient bool) *Node {
	rng = rng.Named("tried")
	target = ByMiniBatch(rng, target)
	g, j := phi.Graph(), phi.Shape().Dim(0)
	count := func(which *Node) *Node { return Reshape(ReduceAllSum(ConvertDType(which, phi.DType())), 1) }
	nothing := Zeros(g, shapes.Make(phi.DType(), 1))
	density := target.LogDensity(phi)
	record := []*Node{nothing, nothing}
	if half := j / 2; half > 0 {
		// The first half of the chains stays, the others are put near the first chain.
		first := BroadcastToDims(Slice(phi, AxisElem(0)), j-half, phi.Shape().Dim(1))
		noise := rng.Normal(phi.DType(), j-half, phi.Shape().Dim(1))
		others := Add(first, Mul(AddScalar(Abs(first), 1e-2), MulScalar(noise, 1e-2)))
		mixed := target.LogDensity(Concatenate([]*Node{Slice(phi, AxisRange(0, half)), others}, 0))
		was, is := Slice(density, AxisRange(0, half)), Slice(mixed, AxisRange(0, half))
		there := IsFinite(was)
		record = []*Node{count(there), count(And(there, differ(was, is, triedMixing)))}
	}
	if !gradient {
		return Concatenate(append(record, Zeros(g, shapes.Make(phi.DType(), triedRecord-2))), 0)
	}
	again, slope := target.Gradient(phi)
	both := And(IsFinite(density), IsFinite(again))
	record = append(record, count(both), count(And(both, differ(density, again, triedError))))
	sign := Sign(AddScalar(rng.Named("sign").Uniform(phi.DType(), phi.Shape().Dimensions...), -.5))
	for _, length := range triedSteps {
		step := Mul(sign, MulScalar(AddScalar(Abs(phi), .1), length))
		change := Sub(target.LogDensity(Add(phi, step)), target.LogDensity(Sub(phi, step)))
		expected := MulScalar(ReduceSum(Mul(slope, step), 1), 2)
		most := Max(Abs(change), Abs(expected))
		informed := And(And(IsFinite(change), IsFinite(expected)),
			GreaterThan(most, MulScalar(AddScalar(Abs(density), 1), triedInformed)))
		wrong := GreaterThan(Abs(Sub(change, expected)), MulScalar(most, triedSlope))
		record = append(record, count(informed), count(And(informed, wrong)))
	}
	return Concatenate(record, 0)
}

// differ says where two log-densities differ by more than an error, relative and absolute.
func differ(a, b *Node, err float64) *Node {
	return Not(LessOrEqual(Abs(Sub(a, b)), AddScalar(MulScalar(Abs(a), err), err)))
}

// checkTried is an error if a target's trial has found a contradiction.
func checkTried(record []float64, target string) error {
	finite, coupled := record[0], record[1]
	if coupled > finite/2 {
		return fmt.Errorf("target %s mixes chains: the log-densities of %.0f of %.0f chains change when other chains move; "+
			"LogDensity must compute row j of its result, [J], from row j of phi, [J, D], alone: look for a sum, a mean or "+
			"a product over the axis of chains", target, coupled, finite)
	}
	both, different := record[2], record[3]
	if different > both/2 {
		return fmt.Errorf("target %s contradicts itself: its LogDensity and its Gradient give different log-densities in "+
			"%.0f of %.0f chains: both must be log p(phi) with the same constant", target, different, both)
	}
	said := 0
	var informed, wrong float64
	for i := range triedSteps {
		informed, wrong = record[4+2*i], record[5+2*i]
		if informed <= both/4 { // it may be flat but for jumps
			continue
		}
		if said++; wrong < triedChains*informed {
			return nil
		}
	}
	if said == 0 {
		return nil
	}
	return fmt.Errorf("target %s contradicts itself: along a small step its LogDensity does not change as its Gradient "+
		"says in %.0f of %.0f chains: the gradient must be that of LogDensity with respect to phi, with its sign; "+
		"mcmc.Density takes the gradient of a log-density by itself", target, wrong, informed)
}
