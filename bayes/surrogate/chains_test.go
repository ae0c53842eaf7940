package surrogate

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// partly is a problem of so many rows that begins at 0, whose part is another target.
func partly(d int, target, part density.Target, rows int) posterior {
	problem := problemOf(d, target)
	problem.Rows = rows
	problem.Start = compute.Floats(compute.Float64, make([]float64, d), 1, d)
	problem.part = func(some int) (subset, error) {
		return subset{rows: some, of: rows, target: func(compute.Nodes) density.Target { return part }}, nil
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
		rows         int
		says         string
		states       int
	}{
		"by s":    {normalAt(0, 1), wrong, 100, "surrogate off: s above 0.35: order 2 with 10 of 100 rows: s ", 200},
		"by gain": {normalAt(0, 1), normalAt(0, 1), 1, "surrogate off: gain below 1.3: order 2 with 1 of 1 rows", 200},
		"spread":  {wide, wide, 100, "surrogate off: |z|^2/D is ", 20},
		"pays":    {normalAt(0, 1), normalAt(0, 1), 100, "surrogate on: order 2 with 1 of 100 rows: s ", 200},
	} {
		t.Run(name, func(t *testing.T) {
			method := quick
			method.Draws = 1000 // by which chains agree
			r, details, err := method.sample(t.Context(), partly(d, c.target, c.part, c.rows), settings(t))
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

// A target whose whitening the library has added is still a user's own, and so is a part of its surrogate: one that
// mixes particles is refused.
func TestSampleTriesTargets(t *testing.T) {
	centred := density.Func(func(phi *Node) *Node { // the particles' mean is taken off
		mean := ReduceAndKeep(phi, ReduceMean, 0)
		return normalAt(0, 1).LogDensity(Sub(phi, BroadcastToShape(mean, phi.Shape())))
	})
	for name, p := range map[string]posterior{
		"whitened": partly(3, centred, centred, 20), "its part": partly(3, normalAt(0, 1), centred, 20),
	} {
		c := quick
		c.Draws, c.WarmUp = 2, mcmc.NoWarmUp
		if _, _, err := c.sample(t.Context(), p, settings(t)); err == nil ||
			!strings.Contains(err.Error(), "LogDensity mixes particles") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
