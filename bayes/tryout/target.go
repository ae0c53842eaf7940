package tryout

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/stats"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// A user's own target can be wrong so that nothing fails, but all draws are wrong. One chain's log-density may depend
// on another chain; Gradient and LogDensity may give different log-densities; or the gradient may not belong to the
// log-density, which only an accept/reject step corrects. Where particles are weighed by one of a target's methods and
// moved by another, these may contradict each other. A kernel's values may be those of another point.

// triedSteps are the lengths of the steps over which the gradient is compared, in units of the coordinates' sizes.
var triedSteps = [...]float64{1e-2, 1e-3}

// Target tries a target of a user's own at phi, [J, D]. One made of a function (density.Func) is tried for whether it
// mixes particles. It adds up to eight evaluations of the target to the graph: try it where particles begin.
func (t *Trial) Target(rng random.Stream, target density.Target, phi *graph.Node) {
	t.target(rng, target, phi, "", true)
}

// Surrogates tries the cheap target of a target that has one (its method Surrogate), and the cheap one's in turn: moves
// on it, such as those of mcmc.DelayedAcceptance, must be reversible, and are not if it mixes chains. Its gradient is
// not tried: moves accept or reject by the log-density, so it need not belong to that.
func (t *Trial) Surrogates(rng random.Stream, target density.Target, phi *graph.Node) {
	of, ok := target.(interface{ Surrogate() density.Target })
	if !ok {
		return
	}
	cheap := of.Surrogate()
	t.target(rng, cheap, phi, " (a surrogate)", false)
	t.Surrogates(rng, cheap, phi)
}

func (t *Trial) target(rng random.Stream, of density.Target, phi *Node, where string, slopes bool) {
	part := held(of)
	_, function := part.(density.Func)
	if !function && !Foreign(part) {
		return
	}
	rng = rng.Named("tried")
	target, name := density.ByMiniBatch(rng, of), fmt.Sprintf("target %T%s", part, where)
	here := target.LogDensity(phi)
	t.Apart(rng, name, "LogDensity", target.LogDensity, phi, here)
	if function {
		return
	}
	again, slope := target.Gradient(phi)
	total := func(phi *Node) *Node { _, slope := target.Gradient(phi); return ReduceSum(slope, 1) }
	t.Apart(rng, name, "Gradient", total, phi, ReduceSum(slope, 1))
	both := And(IsFinite(here), IsFinite(again))
	different := And(both, differ(here, again, densityError))
	record := []*Node{count(phi, both), count(phi, different)}
	if slopes {
		sign := Sign(AddScalar(rng.Named("sign").Uniform(phi.DType(), phi.Shape().Dimensions...), -.5))
		for _, length := range triedSteps {
			step := Mul(sign, MulScalar(AddScalar(Abs(phi), .1), length))
			change := Sub(target.LogDensity(Add(phi, step)), target.LogDensity(Sub(phi, step)))
			expected := MulScalar(ReduceSum(Mul(slope, step), 1), 2)
			most := Max(Abs(change), Abs(expected))
			informed := And(And(IsFinite(change), IsFinite(expected)),
				GreaterThan(most, MulScalar(AddScalar(Abs(here), 1), informedChange)))
			wrong := And(informed, GreaterThan(Abs(Sub(change, expected)), MulScalar(most, slopeError)))
			record = append(record, count(phi, informed), count(phi, wrong))
		}
	}
	t.add(Concatenate(record, 0), func(counts []float64) error { return checkGradient(name, counts) })
}

// checkGradient is an error if two log-densities of a target differ in most particles, or its slopes. The counts are of
// particles with both log-densities, and of those that differ; and for each step of those that are compared, and of
// those with another slope.
func checkGradient(name string, counts []float64) error {
	both, different := counts[0], counts[1]
	if different > both/2 {
		return fmt.Errorf("%s contradicts itself: its LogDensity and its Gradient give different log-densities in "+
			"%.0f of %.0f particles: both must be log p(phi) with the same constant", name, different, both)
	}
	refused := false
	var informed, wrong float64
	for steps := counts[2:]; len(steps) > 0; steps = steps[2:] {
		if steps[0] <= both/4 { // it may be flat but for jumps
			continue
		}
		informed, wrong, refused = steps[0], steps[1], true
		if wrong < wrongChains*informed {
			return nil
		}
	}
	if !refused {
		return nil
	}
	return fmt.Errorf("%s contradicts itself: along a small step its LogDensity does not change as its Gradient "+
		"says in %.0f of %.0f particles: the gradient must be that of LogDensity with respect to phi, with its sign; "+
		"density.Func takes the gradient of a log-density by itself", name, wrong, informed)
}

// Apart tries whether a log-density, or another number of each particle, changes when other particles move: density
// maps phi, [J, D], to [J], and here is its value at phi. part and function name it.
func (t *Trial) Apart(
	rng random.Stream, part, function string, density func(phi *graph.Node) *graph.Node, phi, here *graph.Node,
) {
	j, d := phi.Shape().Dim(0), phi.Shape().Dim(1)
	half := j / 2
	if half == 0 {
		return
	}
	// The first half stays, the others are put near the first particle.
	first := BroadcastToDims(Slice(phi, AxisElem(0)), j-half, d)
	noise := MulScalar(rng.Named("mixing").Normal(phi.DType(), j-half, d), 1e-2)
	others := Add(first, Mul(AddScalar(Abs(first), 1e-2), noise))
	again := density(Concatenate([]*Node{Slice(phi, AxisRange(0, half)), others}, 0))
	was, is := Slice(here, AxisRange(0, half)), Slice(again, AxisRange(0, half))
	there := IsFinite(was)
	none := ZerosLike(was)
	mean := func(x *Node) *Node {
		number := MaxScalar(ReduceAllSum(ConvertDType(there, was.DType())), 1)
		return BroadcastToShape(Div(ReduceAllSum(Where(there, x, none)), number), was.Shape())
	}
	allowed := MulScalar(mean(Abs(Sub(Where(there, was, none), mean(was)))), mixingDeviation)
	changed := And(differ(was, is, mixingError), Not(LessOrEqual(Abs(Sub(was, is)), allowed)))
	counts := Concatenate([]*Node{count(phi, there), count(phi, And(there, changed))}, 0)
	t.add(counts, func(counts []float64) error {
		if compared, changed := counts[0], counts[1]; changed > compared/2 {
			return fmt.Errorf("%s: %s mixes particles: what it gives for %.0f of %.0f particles changes when others move; it "+
				"must compute row j of its result from row j of phi, [J, D], alone: look for a sum, a mean, a norm or a product "+
				"over the axis of particles", part, function, changed, compared)
		}
		return nil
	})
}

// Identity tries whether two expressions of a target's methods, [n] each, which are called left and right, differ by
// more than a constant in most draws.
func (t *Trial) Identity(part, left, right string, a, b *graph.Node) {
	t.add(Concatenate([]*Node{a, b}, 0), func(both []float64) error {
		var differences, sizes []float64
		n := len(both) / 2
		for i, a := range both[:n] {
			b := both[n+i]
			if difference := a - b; !math.IsNaN(difference) && !math.IsInf(difference, 0) {
				differences, sizes = append(differences, difference), append(sizes, math.Abs(a)+math.Abs(b))
			}
		}
		if len(differences) < 2 || len(differences) < n/4 {
			return nil // hardly any draw has a density: the first step says so
		}
		middle := stats.Median(differences)
		for i, d := range differences {
			differences[i] = math.Abs(d - middle)
		}
		off, allowed := stats.Median(differences), identityError*(1+stats.Median(sizes))
		if off <= allowed {
			return nil
		}
		return fmt.Errorf("%s contradicts itself: %s and %s differ by more than a constant: between draws of the prior "+
			"their difference changes by %.3g, where rounding allows %.2g; particles are moved by the one and weighed by the "+
			"other, so they must be the same (smc.Posterior makes both of the same functions)", part, left, right, off, allowed)
	})
}

// Carried compares the log-densities, [J], and gradients, [J, D], of a target at phi with those that a kernel carries;
// a gradient is nil if none is carried.
func (t *Trial) Carried(kernel any, density, carriedDensities, gradient, carriedGradients *graph.Node) {
	there := IsFinite(density)
	compare := func(what string, same *Node) {
		counts := []*Node{count(density, there), count(density, And(there, Not(same)))}
		t.add(Concatenate(counts, 0), func(counts []float64) error {
			if of, other := counts[0], counts[1]; other > carriedChains*of {
				return fmt.Errorf("the State.%s of %.0f of %.0f chains is not that of State.Phi: Move of %T must carry the "+
					"proposal's where it accepts, and keep the present one where it rejects, as mcmc.MetropolisHastings does",
					what, other, of, kernel)
			}
			return nil
		})
	}
	allowed := AddScalar(MulScalar(Abs(density), math.Sqrt(compute.Epsilon(density.DType()))), carriedDensity)
	compare("LogDensity", LessOrEqual(Abs(Sub(density, carriedDensities)), allowed))
	if gradient != nil {
		squares := func(x *Node) *Node { return ReduceSum(Square(x), 1) }
		most := MulScalar(Add(squares(gradient), squares(carriedGradients)), carriedGradient*carriedGradient)
		compare("Gradient", LessOrEqual(squares(Sub(gradient, carriedGradients)), most))
	}
}

// differ says where two log-densities differ by more than an error, relative and absolute.
func differ(a, b *graph.Node, err float64) *graph.Node {
	return Not(LessOrEqual(Abs(Sub(a, b)), AddScalar(MulScalar(Abs(a), err), err)))
}

// count returns the number of true values in `which`, [1], in the type of `like`.
func count(like, which *graph.Node) *graph.Node {
	return Reshape(ReduceAllSum(ConvertDType(which, like.DType())), 1)
}
