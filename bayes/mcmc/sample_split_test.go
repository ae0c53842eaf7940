package mcmc

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// partly is a problem of 100 rows whose part is another target.
func partly(d int, target, part density.Target) SplitProblem {
	problem := problemOf(d, target)
	problem.Rows = 100
	problem.Part = func(rows int, _ []float64) (Part, error) {
		return Part{Rows: rows, Of: 100, Name: "part", Target: func(compute.Nodes) density.Target { return part }}, nil
	}
	return problem
}

// quickSplit are settings of a short run about the mode 0.
func quickSplit(t *testing.T, d int) SplitSettings {
	return SplitSettings{Mode: make([]float64, d), Settings: Settings{
		Chains: 2, Draws: 100, WarmUp: 10, Seed: 1, DType: compute.Float64, Engine: computetest.Go(t),
	}}
}

// What the pilot has been told counts, and is else what the chains have; what contradicts them is refused, with the
// value and the cure.
func TestSplitSettings(t *testing.T) {
	const d = 20
	problem := partly(d, normalAt(0, 1), normalAt(0, 1))
	spread := func(s SplitSettings) float64 {
		t.Helper()
		r, err := SampleSplit(t.Context(), problem, s)
		if err != nil {
			t.Fatal(err)
		}
		return r.Pilot.Spread
	}
	settings := quickSplit(t, d)
	bySettings := spread(settings)
	settings.Pilot.Seed = 5
	own := spread(settings)
	w, err := NewWhitening(t.Context(), problem, settings.Mode, WhiteningSettings{Engine: settings.Engine})
	if err != nil {
		t.Fatal(err)
	}
	for seed, got := range map[uint64]float64{1: bySettings, 5: own} {
		p, err := NewPilot(t.Context(), problem, w, PilotSettings{
			Seed: seed, Chains: 2, DType: compute.Float64, Engine: settings.Engine,
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.Spread != got {
			t.Errorf("the pilot of seed %d has |z|^2/D = %v, SampleSplit's %v", seed, p.Spread, got)
		}
	}
	for want, change := range map[string]func(s *SplitSettings){
		"SplitSettings.Pilot.Chains is 8: it must be the 2 of the chains": func(s *SplitSettings) { s.Pilot.Chains = 8 },
		"set both alike": func(s *SplitSettings) { s.Pilot.DType = compute.Float32 },
		"SplitSettings.Pilot.Shares is [0.1]: it must be left out where Rows is set, which is 10": func(s *SplitSettings) {
			s.Rows, s.Pilot.Shares = 10, []float64{.1}
		},
		"SplitSettings.Rows is 101: it must be from 1 to the 100 rows": func(s *SplitSettings) { s.Rows = 101 },
	} {
		s := quickSplit(t, d)
		change(&s)
		if _, err := SampleSplit(t.Context(), problem, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Each stage evaluates the target on the engine that its settings name.
func TestSplitEngines(t *testing.T) {
	other, err := compute.Open(compute.GoBackend + ",parallelism=1")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, own := range []string{"mode", "Hessian", "pilot"} {
		stage, seen := "", map[string]int{}
		target := density.Func(func(phi *Node) *Node {
			if phi.Graph().Backend() == other.Backend() {
				seen[stage]++
			}
			return normalAt(0, 1).LogDensity(phi)
		})
		s := quickSplit(t, 2)
		s.Mode = nil
		s.Progress = func(p run.Progress) { stage = p.Stage }
		switch own {
		case "mode":
			s.Search.Engine = other
		case "Hessian":
			s.Whitening.Engine = other
		case "pilot":
			s.Pilot.Engine = other
		}
		if _, err := SampleSplit(t.Context(), partly(2, target, normalAt(0, 1)), s); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 1 || seen[own] == 0 {
			t.Errorf("the engine of the %s has built the target in %v", own, seen)
		}
	}
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
	s.Pilot.Shares = []float64{.1, .2}
	r, err := SampleSplit(t.Context(), problem, s)
	if err != nil {
		t.Fatal(err)
	}
	steps := (10+10)*2 + 200 // of the step pi/2, which is always accepted
	want := Evaluations{FullGradients: steps, Full: 256, Partial: 512, PartialGradients: 2 * (d + 1)}
	want.PartialShare = .15 // the mean of both, which have evaluated as much
	if got := r.Pilot.Cost; math.Abs(got.PartialShare-.15) > 1e-12 || got.Full != want.Full ||
		got.FullGradients != want.FullGradients || got.Partial != want.Partial ||
		got.PartialGradients != want.PartialGradients {
		t.Errorf("the pilot's cost %+v, want %+v", got, want)
	}
	forwards := 3*float64(steps) + 256 + (.1+.2)*(256+3*(d+1))
	if got := r.Pilot.Cost.Forwards(); math.Abs(got-forwards) > 1e-9 {
		t.Errorf("the pilot's cost in forwards %v, want %v", got, forwards)
	}
	hessian := 1 + 2*3 + d // the gradient, the differences of two steps in three directions, and D
	if got := r.SetUpCost.FullGradients - steps; r.Whitening.Gradients != hessian || got != hessian {
		t.Errorf("%d gradients for the Hessian, of which %d are counted, want %d", r.Whitening.Gradients, got, hessian)
	}
	if r.Pilot.Rows != 20 || r.Pilot.Tried[0].SD < 1 {
		t.Errorf("%v of %+v", r.Pilot, r.Pilot.Tried)
	}

	s.Pilot.Shares, s.Rows = nil, 20
	if r, err = SampleSplit(t.Context(), problem, s); err != nil {
		t.Fatal(err)
	}
	want = Evaluations{FullGradients: hessian, PartialGradients: d + 1, PartialShare: .2}
	if r.SetUpCost != want {
		t.Errorf("with Rows the set-up cost %+v, want %+v", r.SetUpCost, want)
	}
	s.Rows = NoSurrogate
	if r, err = SampleSplit(t.Context(), problem, s); err != nil {
		t.Fatal(err)
	}
	if want = (Evaluations{FullGradients: hessian + steps}); r.SetUpCost != want {
		t.Errorf("without a surrogate the set-up cost %+v, want %+v", r.SetUpCost, want)
	}
}

// Evaluations of cheap targets of several shares add up to what they cost.
func TestEvaluationsPlus(t *testing.T) {
	a := Evaluations{Full: 1, Partial: 2, PartialGradients: 1, PartialShare: .1}
	b := Evaluations{FullGradients: 2, Partial: 10, PartialShare: .4}
	if sum := a.plus(b); math.Abs(sum.Forwards()-(1+6+.5+4)) > 1e-12 || sum.Partial != 12 || sum.PartialGradients != 1 {
		t.Errorf("%+v: %v forwards", sum, sum.Forwards())
	}
	if sum := (Evaluations{Full: 3}).plus(b); sum.PartialShare != .4 || sum.Forwards() != 13 {
		t.Errorf("%+v: %v forwards", sum, sum.Forwards())
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
			s.Pilot.Shares = []float64{c.share}
			r, err := SampleSplit(t.Context(), partly(d, c.target, c.part), s)
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
		r, err := SampleSplit(t.Context(), partly(d, heavy, heavy), s)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Warnings, "\n")
		if !r.Kernel.OnSurrogate || !strings.Contains(all, "sticky: ") ||
			!strings.Contains(all, "the smallest effective sample size is ") {
			t.Errorf("rows %d: %v", rows, r)
		}
		if r, err = SampleSplit(t.Context(), partly(d, normalAt(0, 1), normalAt(0, 1)), s); err != nil {
			t.Fatal(err)
		}
		if !r.Kernel.OnSurrogate || len(r.Warnings) > 0 {
			t.Errorf("rows %d, a Gaussian: %v", rows, r)
		}
	}
}

// Of a coordinate with lag-1 correlation a, (1 - a)/(1 + a) of the draws are effective for its mean; of antithetic ones
// at most all count. Two draws a chain are too few.
func TestEffectiveSizes(t *testing.T) {
	const chains, draws = 4, 5000
	rng := rand.New(rand.NewPCG(1, 2))
	d := newDraws(chains, draws, 2, compute.Float64)
	for i := range d.wide {
		a := []float64{.8, -.8}[i%2]
		d.wide[i] = rng.NormFloat64()
		if i/2%draws > 0 {
			d.wide[i] = a*d.wide[i-2] + math.Sqrt(1-a*a)*d.wide[i]
		}
	}
	sizes := effectiveSizes(d)
	if want := chains * draws * .2 / 1.8; math.Abs(sizes[0]/want-1) > .15 {
		t.Errorf("%v effective draws, want %v", sizes[0], want)
	}
	// of the antithetic one the mean would have nine times the draws, and its squares have what .64 gives
	if want := chains * draws * .36 / 1.64; math.Abs(sizes[1]/want-1) > .15 {
		t.Errorf("%v effective draws, want %v", sizes[1], want)
	}
	if sizes := effectiveSizes(d.first(3)); sizes != nil {
		t.Errorf("of three draws: %v", sizes)
	}
}
