package surrogate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// illScaled is N(m, P^-1) in four dimensions, with the precision P of scales from 1/10 to 100.
func illScaled() (density.Func, [][]float64) {
	precision := [][]float64{{9, 3, 0, 1}, {3, 2, 0, .5}, {0, 0, 10_000, 20}, {1, .5, 20, .4}}
	return func(phi *Node) *Node {
		mean := ConvertDType(Const(phi.Graph(), [][]float64{{1, -2, .5, 3}}), phi.DType())
		d := Sub(phi, BroadcastToShape(mean, phi.Shape()))
		flat := ConvertDType(Const(phi.Graph(), precision), phi.DType())
		return MulScalar(ReduceSum(Mul(d, Dot(d, flat).Product()), 1), -.5)
	}, precision
}

// Of a Gaussian the mode is its mean, W' H W = I, and one step of a quarter turn is always accepted and independent of
// where it began.
func TestWhitening(t *testing.T) {
	ctx, engine := context.Background(), computetest.Go(t)
	density, precision := illScaled()
	problem := problemOf(4, density)
	mode, err := findMode(ctx, problem, nil, engine)
	if err != nil {
		t.Fatal(err)
	}
	w, err := whitenedAt(ctx, problem, mode, engine)
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "the mode", w.mode, []float64{1, -2, .5, 3}, 1e-4)
	unit := make([]float64, 16) // W' H W
	for i := range 4 {
		e := make([]float64, 4)
		e[i] = 1
		column := w.theta(e)
		for k := range column {
			column[k] -= w.mode[k]
		}
		h := make([]float64, 4)
		for k := range h {
			for l, x := range column {
				h[k] += precision[k][l] * x
			}
		}
		copy(unit[i*4:], w.pull(h))
	}
	computetest.Near(t, "W' H W", unit, []float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 1e-5)
	theta := []float64{.3, -1, .45, 2}
	computetest.Near(t, "there and back", w.theta(w.zOf(theta)), theta, 1e-9)
	r, err := chainsOf(ctx, w.near(problem, nil, 4, compute.Float64), mcmc.Chains{
		Kernel: splitHMC{StepSize: math.Pi / 2, Steps: 1}, Draws: 500, WarmUp: 10,
	}, run.Settings{Engine: engine, DType: compute.Float64})
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats[0].Acceptance < .9999 {
		t.Errorf("acceptance %v", r.Stats[0].Acceptance)
	}
	sum, lag := 0.0, 0.0
	for _, chain := range r.Draws.Coordinate(2) {
		for i, x := range chain {
			z := (x - .5) / .01 * math.Sqrt(1-400/(10_000*.4)) // sd of the third coordinate, but for the fourth's share
			sum += z
			if i > 0 {
				lag += z * (chain[i-1] - .5) / .01
			}
		}
	}
	if math.Abs(sum/2000) > .15 || math.Abs(lag/2000) > .15 {
		t.Errorf("mean %v, lag-1 covariance %v", sum/2000, lag/2000)
	}
}

func TestWhiteningBadInput(t *testing.T) {
	ctx, engine := context.Background(), computetest.Go(t)
	first := func(phi *Node) *Node { return Squeeze(Slice(phi, AxisRange(), AxisElem(0)), 1) }
	well := density.Func(func(phi *Node) *Node { // two modes, at -1 and 1 of the first coordinate
		x := first(phi)
		rest := Sub(Square(x), ReduceSum(Square(phi), 1))
		return Sub(rest, Square(AddScalar(Square(x), -1)))
	})
	runsOff := func(x *Node) *Node { return ReduceSum(Log(Sigmoid(x)), 1) }
	for want, c := range map[string]struct {
		target density.Func
		mode   []float64
	}{
		"gradient is not finite":    {normalAt(0, 1), []float64{math.NaN(), 0}},
		"the gradient is not small": {runsOff, []float64{0, 0}},
		"the density is flat":       {func(x *Node) *Node { return first(x) }, []float64{0, 0}},
		"a saddle, or":              {well, []float64{0, 0}},
	} {
		_, err := whitenedAt(ctx, problemOf(2, c.target), c.mode, engine)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errNoMode) {
			t.Errorf("%v: %v, want %q", c.mode, err, want)
		}
	}
	nowhere := density.Func(func(phi *Node) *Node { return Log(AddScalar(Neg(Square(first(phi))), -1)) })
	if _, err := findMode(ctx, problemOf(2, nowhere), nil, engine); !errors.Is(err, errNoMode) {
		t.Errorf("a density that is nowhere finite: %v", err)
	}
	drawn := problemOf(2, normalAt(0, 1))
	drawn.Inputs = func(int) []any { return nil }
	if _, err := findMode(ctx, drawn, nil, engine); err == nil {
		t.Error("a target that changes from move to move has no mode")
	}
}

// Chains of a problem without rows: a chain of the target's own gradient at steps that are accepted, on a density
// that is no Gaussian: exp(-x^4/4 - x^2/2 + x/2) in each coordinate, whose moments are sums over a grid.
func TestSampleSplit(t *testing.T) {
	density := density.Func(func(phi *Node) *Node {
		square := Square(phi)
		return ReduceSum(Sub(MulScalar(Sub(phi, square), .5), MulScalar(Square(square), .25)), 1)
	})
	mass, wantMean, wantSquare := 0.0, 0.0, 0.0
	for x := -6.0; x < 6; x += .001 {
		weight := math.Exp(-x*x*x*x/4 - x*x/2 + x/2)
		mass, wantMean, wantSquare = mass+weight, wantMean+weight*x, wantSquare+weight*x*x
	}
	wantMean, wantSquare = wantMean/mass, wantSquare/mass
	var stages []string
	r, details, err := Chains{Draws: 2000, WarmUp: 50}.sample(t.Context(), problemOf(2, density), run.Settings{
		Engine: computetest.Go(t), DType: compute.Float64, Seed: 7,
		Progress: func(p run.Progress) {
			if p.Status == "" && !slices.Contains(stages, p.Stage) {
				stages = append(stages, p.Stage)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// the real root of x^3 + x = 1/2
	computetest.Near(t, "the mode", details.whitening.mode, []float64{.4238537990697837, .4238537990697837}, 1e-4)
	if details.Pilot != "" || len(r.Warnings) > 0 || details.Chains.Stats[0].Acceptance < .35 ||
		strings.Join(stages, ",") != "mode,Hessian,pilot,sampling: warm-up,sampling: draws" {
		t.Errorf("pilot %q, acceptance %v, stages %q", details.Pilot, details.Chains.Stats[0].Acceptance, stages)
	}
	mean, square := 0.0, 0.0
	for k := range 2 {
		for _, chain := range details.Chains.Draws.Coordinate(k) {
			for _, x := range chain {
				mean, square = mean+x/16_000, square+x*x/16_000
			}
		}
	}
	// 16 000 numbers of standard deviation .6, four of them at least as good as one: five standard errors
	if math.Abs(mean-wantMean) > .05 || math.Abs(square-wantSquare) > .05 {
		t.Errorf("mean %.3f, want %.3f; mean square %.3f, want %.3f", mean, wantMean, square, wantSquare)
	}
}
