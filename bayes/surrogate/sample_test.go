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

	. "github.com/gomlx/gomlx/core/graph"
)

// partly is a problem of 100 rows whose part is another target.
func partly(d int, target, part density.Target) Problem {
	problem := problemOf(d, target)
	problem.Rows = 100
	problem.Part = func(rows int, _ []float64) (Part, error) {
		return Part{Rows: rows, Of: 100, Name: "part", Target: func(compute.Nodes) density.Target { return part }}, nil
	}
	return problem
}

// quickSplit are settings of a short run about the mode 0.
func quickSplit(t *testing.T, d int) Settings {
	return Settings{mode: make([]float64, d), Settings: mcmc.Settings{
		Chains: 2, Draws: 100, WarmUp: 10, Seed: 1, DType: compute.Float64, Engine: computetest.Go(t),
	}}
}

// Every evaluation before the chains counts: of the mode that is given, with H of D + 1 gradients and three directions
// twice to see whether it has a derivative, the pilot's chains, 200 log-densities in blocks of 128 of the target and of
// each part that it tries, and D + 1 gradients of each part. The first part is wrong, and the second all that there is.
func TestSplitCost(t *testing.T) {
	const d = 20
	wrong := density.Func(func(phi *Node) *Node {
		return Add(normalAt(0, 1).LogDensity(phi), ReduceSum(MulScalar(Cos(MulScalar(phi, 3)), 2), 1))
	})
	problem := partly(d, normalAt(0, 1), normalAt(0, 1))
	right := problem.Part
	problem.Part = func(rows int, mode []float64) (Part, error) {
		part, err := right(rows, mode)
		if rows == 10 {
			part.Target = func(compute.Nodes) density.Target { return wrong }
		}
		return part, err
	}
	s := quickSplit(t, d)
	s.shares = []float64{.1, .2}
	r, err := Sample(t.Context(), problem, s)
	if err != nil {
		t.Fatal(err)
	}
	steps := (10+10)*2 + 200 // of the step pi/2, which is always accepted
	want := mcmc.Evaluations{FullGradients: steps, Full: 256, Partial: 512, PartialGradients: 2 * (d + 1)}
	want.PartialShare = .15 // the mean of both, which have evaluated as much
	if got := r.Pilot.cost; math.Abs(got.PartialShare-.15) > 1e-12 || got.Full != want.Full ||
		got.FullGradients != want.FullGradients || got.Partial != want.Partial ||
		got.PartialGradients != want.PartialGradients {
		t.Errorf("the pilot's cost %+v, want %+v", got, want)
	}
	forwards := 3*float64(steps) + 256 + (.1+.2)*(256+3*(d+1))
	if got := r.Pilot.cost.Forwards(); math.Abs(got-forwards) > 1e-9 {
		t.Errorf("the pilot's cost in forwards %v, want %v", got, forwards)
	}
	hessian := 1 + 2*3 + d // the gradient, the differences of two steps in three directions, and D
	if got := r.SetUpCost.FullGradients - steps; r.Whitening.gradients != hessian || got != hessian {
		t.Errorf("%d gradients for the Hessian, of which %d are counted, want %d", r.Whitening.gradients, got, hessian)
	}
	if r.Pilot.Rows != 20 || r.Pilot.Tried[0].SD < 1 {
		t.Errorf("%v of %+v", r.Pilot, r.Pilot.Tried)
	}

	s.shares, s.Rows = nil, 20
	if r, err = Sample(t.Context(), problem, s); err != nil {
		t.Fatal(err)
	}
	want = mcmc.Evaluations{FullGradients: hessian, PartialGradients: d + 1, PartialShare: .2}
	if r.SetUpCost != want {
		t.Errorf("with Rows the set-up cost %+v, want %+v", r.SetUpCost, want)
	}
	s.Rows = NoSurrogate
	if r, err = Sample(t.Context(), problem, s); err != nil {
		t.Fatal(err)
	}
	if want = (mcmc.Evaluations{FullGradients: hessian + steps}); r.SetUpCost != want {
		t.Errorf("without a surrogate the set-up cost %+v, want %+v", r.SetUpCost, want)
	}
}

// A surrogate that does not pay makes no draws doubtful: that it is off, and by which numbers, is a line of what is
// printed, and no warning. One that is refused where the posterior is no Gaussian is both.
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
		warns        bool
	}{
		"by s":    {normalAt(0, 1), wrong, .1, "surrogate off: s above 1.2: part with 10 of 100 rows: s ", false},
		"by gain": {normalAt(0, 1), normalAt(0, 1), 1, "surrogate off: gain below 1.3: part with 100 of 100 rows", false},
		"spread":  {wide, wide, .1, "surrogate off: |z|^2/D is ", true},
		"pays":    {normalAt(0, 1), normalAt(0, 1), .1, "surrogate on: part with 10 of 100 rows: s ", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := quickSplit(t, d)
			s.shares = []float64{c.share}
			r, err := Sample(t.Context(), partly(d, c.target, c.part), s)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(r.String(), "\n")
			if len(lines) < 3 || !strings.HasPrefix(lines[2], c.says) ||
				!strings.HasPrefix(lines[0], "2 chains of 100 draws, ") || !strings.HasPrefix(lines[1], "set-up: ") {
				t.Errorf("says\n%v\nwant %q", r, c.says)
			}
			warned := false
			for _, w := range r.Warnings {
				warned = warned || strings.HasPrefix(w, "surrogate off")
			}
			if warned != c.warns || !c.warns && len(r.Warnings) > 0 {
				t.Errorf("warns %q", r.Warnings)
			}
		})
	}
}

// A run on a surrogate is called sticky where one parameter has far fewer effective draws than the others, whether a
// pilot has chosen the rows or the user: one coordinate is Student's t of two degrees of freedom, whose tails the
// coordinates of the mode do not know. A Gaussian is not sticky.
func TestSplitSticky(t *testing.T) {
	const d = 50
	heavy := density.Func(func(phi *Node) *Node {
		x := Slice(phi, AxisRange(), AxisElem(0))
		tail := MulScalar(Log(AddScalar(DivScalar(Square(x), 2), 1)), -1.5)
		return Add(Squeeze(Add(tail, MulScalar(Square(x), .5)), 1), normalAt(0, 1).LogDensity(phi))
	})
	for _, rows := range []int{0, 10} {
		s := quickSplit(t, d)
		s.Rows, s.Draws = rows, 500
		r, err := Sample(t.Context(), partly(d, heavy, heavy), s)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Warnings, "\n")
		if !r.Kernel.OnSurrogate || !strings.Contains(all, "sticky: ") ||
			!strings.Contains(all, "the smallest effective sample size is ") {
			t.Errorf("rows %d: %v", rows, r)
		}
		if r, err = Sample(t.Context(), partly(d, normalAt(0, 1), normalAt(0, 1)), s); err != nil {
			t.Fatal(err)
		}
		if !r.Kernel.OnSurrogate || len(r.Warnings) > 0 {
			t.Errorf("rows %d, a Gaussian: %v", rows, r)
		}
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
	for name, p := range map[string]Problem{
		"whitened": partly(3, centred, centred), "its part": partly(3, normalAt(0, 1), centred),
	} {
		s := quickSplit(t, 3)
		s.Rows, s.Draws, s.WarmUp = 5, 2, mcmc.NoWarmUp
		if _, err := Sample(t.Context(), p, s); err == nil || !strings.Contains(err.Error(), "LogDensity mixes particles") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A part whose log-density is not one number for each state, or that is of other data, is an error that says so.
func TestWrongParts(t *testing.T) {
	right := normalAt(0, 1)
	column := density.Func(func(phi *Node) *Node { return ExpandAxes(right(phi), 1) })
	all := density.Func(func(phi *Node) *Node { return ReduceAllSum(right(phi)) })
	other := partly(2, right, right)
	other.Rows = 1000
	for name, c := range map[string]struct {
		problem Problem
		says    string
	}{
		"a column":   {partly(2, right, column), "the target's log-density has shape (Float64)"},
		"for all":    {partly(2, right, all), "the target's log-density has shape (Float64)"},
		"other data": {other, "Part.Of is 100: it must be the 1000 rows"},
	} {
		if _, err := Sample(t.Context(), c.problem, quickSplit(t, 2)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
