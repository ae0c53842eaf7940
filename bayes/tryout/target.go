package tryout

import (
	"fmt"
	"math"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/stats"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// What the trial of a target allows.
const (
	triedDensity   = 1e-3 // allowed difference of the two log-densities: they may be rounded differently
	triedSlope     = .3   // allowed relative error of the gradient along a step: differences over a step are not exact
	triedInformed  = 1e-4 // the least change of the log-density, over its size, whose difference says something
	triedChains    = .9   // the share of chains in which the gradient is wrong, from which the target is refused
	triedDifferent = 1e-4 // of the two sides of an identity, over the size of the log-densities, and as much in itself
	// TargetNumbers is the length of a record.
	TargetNumbers = 6 + 2*len(triedSteps)
)

// triedSteps are the lengths of the steps over which the gradient is compared, in units of the coordinates' sizes.
var triedSteps = [...]float64{1e-2, 1e-3}

// Target counts particles that are compared and those whose log-density depends on others; the same for gradients;
// particles with two finite log-densities and those with different ones; and for each step, particles that are compared
// and those with another slope, if slopes is set. With mixing alone only the first are counted. phi is [J, D]; the
// record is a vector of TargetNumbers numbers, for CheckTarget.
func Target(
	rng random.Stream, target interface {
		LogDensity(phi *graph.Node) *graph.Node
		Gradient(phi *graph.Node) (logDensity, gradient *graph.Node)
	}, phi *graph.Node, mixing, slopes bool,
) *graph.Node {
	density := target.LogDensity(phi)
	record := []*Node{Mixing(rng, target.LogDensity, phi, density)}
	without := func(count int) *Node {
		return Concatenate(append(record, Zeros(phi.Graph(), shapes.Make(phi.DType(), count))), 0)
	}
	if mixing {
		return without(TargetNumbers - 2)
	}
	again, slope := target.Gradient(phi)
	total := func(phi *Node) *Node { _, slope := target.Gradient(phi); return ReduceSum(slope, 1) }
	both := And(IsFinite(density), IsFinite(again))
	different := And(both, differ(density, again, triedDensity))
	record = append(record, Mixing(rng, total, phi, ReduceSum(slope, 1)), count(phi, both),
		count(phi, different))
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
		record = append(record, count(phi, informed), count(phi, wrong))
	}
	return Concatenate(record, 0)
}

// CheckTarget is an error if the record of a trial by Target says that the target of the named type contradicts itself.
func CheckTarget(record []float64, target string) error {
	for i, function := range []string{"LogDensity", "Gradient"} {
		if err := CheckMixing(record[2*i:], function); err != nil {
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

// CheckIdentity is an error if two sides of an identity, [n] each, which are called left and right, differ by more than
// a constant in most draws.
func CheckIdentity(left, right string, a, b []float64) error {
	var differences, sizes []float64
	for n := range a {
		if difference := a[n] - b[n]; !math.IsNaN(difference) && !math.IsInf(difference, 0) {
			differences, sizes = append(differences, difference), append(sizes, math.Abs(a[n])+math.Abs(b[n]))
		}
	}
	if len(differences) < 2 || len(differences) < len(a)/4 {
		return nil // hardly any draw has a density: the first step says so
	}
	middle := stats.Median(differences)
	for n, d := range differences {
		differences[n] = math.Abs(d - middle)
	}
	off, allowed := stats.Median(differences), triedDifferent*(1+stats.Median(sizes))
	if off <= allowed {
		return nil
	}
	return fmt.Errorf("%s and %s differ by more than a constant: between draws of the prior their difference changes by "+
		"%.3g, where rounding allows %.2g; particles are moved by the one and weighed by the other, so they must be the "+
		"same (smc.Posterior makes both of the same functions)", left, right, off, allowed)
}
