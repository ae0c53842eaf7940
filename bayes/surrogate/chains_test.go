package surrogate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// partly is a problem of 100 rows that begins at 0, whose part, tried at a share of the rows, is another target.
func partly(d int, target, part density.Target, share float64) posterior {
	problem := problemOf(d, target)
	problem.Rows, problem.shares = 100, []float64{share}
	problem.Start = compute.Floats(compute.Float64, make([]float64, d), 1, d)
	problem.part = func(rows int, _ []float64) (subset, error) {
		return subset{rows: rows, of: 100, name: "part", target: func(compute.Nodes) density.Target { return part }}, nil
	}
	return problem
}

// quick is a short run.
var quick = Chains{Chains: 2, Draws: 100, WarmUp: 10}

func settings(t *testing.T) run.Settings {
	return run.Settings{Seed: 1, DType: compute.Float64, Engine: computetest.Go(t)}
}

// A surrogate that does not pay makes no draws doubtful: that it is off, and by which numbers, is the pilot's line, and
// no warning. One that is refused where the posterior is no Gaussian is both, and as soon as the chains that look for a
// step show it: Student's t with 3 degrees of freedom has the curvature 4/3 at its mode and the variance 3, so that
// |z|^2/D is about 4.
func TestSplitResultSays(t *testing.T) {
	const d = 20
	wrong := density.Func(func(phi *Node) *Node {
		return Add(normalAt(0, 1).LogDensity(phi), ReduceSum(MulScalar(Cos(MulScalar(phi, 3)), 2), 1))
	})
	wide := density.Func(func(phi *Node) *Node { // Student's t of 3 degrees of freedom
		return MulScalar(ReduceSum(Log(AddScalar(DivScalar(Square(phi), 3), 1)), 1), -2)
	})
	for name, c := range map[string]struct {
		target, part density.Target
		share        float64
		says         string
		states       int
	}{
		"by s":    {normalAt(0, 1), wrong, .1, "surrogate off: s above 1.2: part with 10 of 100 rows: s ", 200},
		"by gain": {normalAt(0, 1), normalAt(0, 1), 1, "surrogate off: gain below 1.3: part with 100 of 100 rows", 200},
		"spread":  {wide, wide, .1, "surrogate off: |z|^2/D is ", 20},
		"pays":    {normalAt(0, 1), normalAt(0, 1), .1, "surrogate on: part with 10 of 100 rows: s ", 200},
	} {
		t.Run(name, func(t *testing.T) {
			method := quick
			method.Draws = 1000 // by which chains agree
			r, details, err := method.sample(t.Context(), partly(d, c.target, c.part, c.share), settings(t))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(details.Pilot, c.says) || details.pilot.states != c.states {
				t.Errorf("after %d states it says %q, want %q after %d", details.pilot.states, details.Pilot, c.says, c.states)
			}
			warned := false
			for _, w := range r.Warnings {
				warned = warned || strings.HasPrefix(w, "surrogate off")
			}
			if warned != (c.states < 200) || !warned && len(r.Warnings) > 0 {
				t.Errorf("warns %q", r.Warnings)
			}
		})
	}
}

// A run on a surrogate is called sticky where one parameter has far fewer effective draws than the others:
// one coordinate is Student's t of two degrees of freedom, whose tails the
// coordinates of the mode do not know. A Gaussian is not sticky.
func TestSplitSticky(t *testing.T) {
	const d = 50
	heavy := density.Func(func(phi *Node) *Node {
		x := Slice(phi, AxisRange(), AxisElem(0))
		tail := MulScalar(Log(AddScalar(DivScalar(Square(x), 2), 1)), -1.5)
		return Add(Squeeze(Add(tail, MulScalar(Square(x), .5)), 1), normalAt(0, 1).LogDensity(phi))
	})
	c := quick
	c.Draws = 500
	r, details, err := c.sample(t.Context(), partly(d, heavy, heavy, .1), settings(t))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(r.Warnings, "\n")
	if details.pilot.best < 0 || !strings.Contains(all, "sticky: ") ||
		!strings.Contains(all, "the smallest effective sample size is ") {
		t.Errorf("%s: %s", details.Pilot, all)
	}
	if r, details, err = c.sample(t.Context(), partly(d, normalAt(0, 1), normalAt(0, 1), .1), settings(t)); err != nil {
		t.Fatal(err)
	}
	if details.pilot.best < 0 || len(r.Warnings) > 0 {
		t.Errorf("a Gaussian: %s, %q", details.Pilot, r.Warnings)
	}
}

// Of a coordinate with lag-1 correlation a, (1 - a)/(1 + a) of the draws are effective for its mean; of antithetic ones
// at most all count.
func TestEffectiveSize(t *testing.T) {
	const chains, draws = 4, 5000
	rng := rand.New(rand.NewPCG(1, 2))
	// of the antithetic one the mean would have nine times the draws, and its squares have what .64 gives
	for a, want := range map[float64]float64{.8: chains * draws * .2 / 1.8, -.8: chains * draws * .36 / 1.64} {
		all := make([][]float64, chains)
		for i := range all {
			last := rng.NormFloat64()
			for range draws {
				all[i] = append(all[i], last)
				last = a*last + math.Sqrt(1-a*a)*rng.NormFloat64()
			}
		}
		if got := effectiveSize(all); math.Abs(got/want-1) > .15 {
			t.Errorf("lag-1 correlation %v: %v effective draws, want %v", a, got, want)
		}
	}
}

// A target whose whitening the library has added is still a user's own, and so is a part of its surrogate: one that
// mixes particles is refused.
func TestSampleTriesTargets(t *testing.T) {
	centred := density.Func(func(phi *Node) *Node { // the particles' mean is taken off
		mean := ReduceAndKeep(phi, ReduceMean, 0)
		return normalAt(0, 1).LogDensity(Sub(phi, BroadcastToShape(mean, phi.Shape())))
	})
	for name, p := range map[string]posterior{
		"whitened": partly(3, centred, centred, .05), "its part": partly(3, normalAt(0, 1), centred, .05),
	} {
		c := quick
		c.Draws, c.WarmUp = 2, mcmc.NoWarmUp
		if _, _, err := c.sample(t.Context(), p, settings(t)); err == nil ||
			!strings.Contains(err.Error(), "LogDensity mixes particles") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
