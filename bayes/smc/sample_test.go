package smc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// logNormal is the density of independent standard normals, [J] of phi, [J, D].
func logNormal(phi *graph.Node) *graph.Node {
	square := graph.ReduceSum(graph.Square(phi), 1)
	return graph.AddScalar(graph.MulScalar(square, -.5), -float64(phi.Shape().Dim(1))*math.Log(2*math.Pi)/2)
}

func drawNormal(d int) func(random.Stream, compute.DType, int) *graph.Node {
	return func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
		return rng.Normal(dtype, particles, d)
	}
}

// linear is the harness's regression.
func linear(l check.Linear) density.Problem {
	return density.Problem{
		Name: "line", Dim: len(l.X[0]), Initial: drawNormal(len(l.X[0])),
		Data: map[string]*tensors.Tensor{"x": tensors.FromValue(l.X), "y": tensors.FromValue(l.Y)},
		Target: func(data compute.Nodes, _ []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				of := func(name string) *graph.Node { return graph.ConvertDType(data[name], phi.DType()) }
				rest := graph.Sub(graph.Einsum("jd,nd->jn", phi, of("x")), graph.ExpandAxes(of("y"), 0))
				z := graph.MulScalar(graph.Square(graph.DivScalar(rest, l.NoiseStdDev)), -.5)
				return graph.ReduceSum(graph.AddScalar(z, -math.Log(2*math.Pi)/2-math.Log(l.NoiseStdDev)), 1)
			}}
		},
	}
}

// network is the same regression as a network without hidden layers, by package target.
func network(t *testing.T, engine *compute.Engine, l check.Linear, dtype compute.DType, particles int) density.Problem {
	d := len(l.X[0]) - 1 // the last is the intercept's
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: l.NoiseStdDev}, Stochastic: bayes.All()}
	bound, err := model.Bind(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	var x []float64
	for _, row := range l.X {
		x = append(x, row[:d]...)
	}
	n := len(l.Y)
	problem, err := density.NewProblem(engine, bound, compute.Floats(dtype, x, n, d), compute.Floats(dtype, l.Y, n), nil,
		particles, 1)
	if err != nil {
		t.Fatal(err)
	}
	return problem
}

// Samplers that move all particles and waste-free ones give the exact posterior, an unbiased evidence, and the standard
// error that they state: one call of the harness each, with a false alarm once in a thousand calls; seeds are fixed. A
// ladder that the particles choose has a bias of order 1/J, which is below what the harness sees. The standard
// deviation of the log evidence is held to what was measured, so that wasted particles show. Over all runs it must be
// that which the runs state: 40 runs measure their ratio to 11 %. All is on the Go backend, which compiles nothing.
// XLA, and trajectories whose length is chosen, are in TestNarrowMode.
func TestSampleIsExact(t *testing.T) {
	samplesAreExact(t, []exactSampler{
		{name: "random walk", kernel: mcmc.RandomWalkMetropolis{}, s: setup{Moves: 5}, stdDev: .25},
		{name: "HMC", kernel: mcmc.HMC{Steps: 3}, s: setup{Moves: 2, DType: compute.Float32}, stdDev: .3,
			short: true, network: true},
		{name: "HMC, waste-free", kernel: mcmc.HMC{Steps: 3}, s: setup{Particles: 400, WasteFree: 4}, stdDev: .3},
		{name: "MALA, waste-free", kernel: mcmc.MALA{}, s: setup{Particles: 800, WasteFree: 4, Moves: 3}, stdDev: .3,
			network: true},
	})
}

// exactSampler is a kernel with settings, and the standard deviation of its log evidence.
type exactSampler struct {
	name    string
	kernel  mcmc.Kernel
	s       setup
	stdDev  float64
	short   bool // also with -short
	network bool
}

// samplesAreExact calls the harness for each sampler.
func samplesAreExact(t *testing.T, samplers []exactSampler) {
	for _, c := range samplers {
		if testing.Short() && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := c.s
			s.Engine = computetest.Go(t)
			if s.DType == 0 {
				s.DType = compute.Float64
			}
			if s.Particles == 0 {
				s.Particles = 200
			}
			line := check.Line()
			problem := linear(line)
			if c.network {
				problem = network(t, s.Engine, line, s.DType, s.Particles)
			}
			harness(t, problem, c.kernel, s, check.SequentialOptions{Problem: &line, Runs: 40, StdDev: c.stdDev})
		})
	}
}

func harness(t *testing.T, problem density.Problem, kernel mcmc.Kernel, s setup, o check.SequentialOptions) {
	t.Helper()
	sampler := reused{Problem: problem, Kernel: kernel}
	var evidences, variances []float64
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		s.Seed = seed
		result, err := sampler.Sample(t.Context(), s)
		if err != nil {
			return check.SequentialRun{}, err
		}
		last := result.Trace[len(result.Trace)-1]
		if last.Acceptance < .08 || len(result.Trace) < 2 || result.Status != run.Completed {
			return check.SequentialRun{}, fmt.Errorf("this tests little: %+v", result.Trace)
		}
		phi, err := compute.Float64s(result.Phi)
		out := check.SequentialRun{Phi: phi, LogEvidence: result.LogEvidence}
		for j := range result.LogWeights.Len() {
			out.LogWeights = append(out.LogWeights, result.LogWeights.At(j))
		}
		if !math.IsNaN(result.LogEvidenceStdErr) {
			out.StdErr = result.LogEvidenceStdErr
		}
		evidences = append(evidences, result.LogEvidence)
		variances = append(variances, result.LogEvidenceStdErr*result.LogEvidenceStdErr)
		return out, err
	}, o)
	deviation, stated := stat.StdDev(evidences, nil), math.Sqrt(stat.Mean(variances, nil))
	t.Logf("standard deviation of the log evidence %.3f, stated %.3f", deviation, stated)
	if ratio := deviation / stated; ratio < .7 || ratio > 1.45 { // false for NaN, of the quieter schemes
		t.Errorf("the log evidence has a standard deviation of %.3f, but runs state %.3f", deviation, stated)
	}
}

// Moves go on until the particles' correlation with where they were is small enough, and no further: a slow kernel
// takes many, each of which alone leaves nearly all of it. A number that is given is kept, and too small a one is
// warned of.
func TestMovesUntilForgotten(t *testing.T) {
	for _, kernel := range []mcmc.Kernel{mcmc.RandomWalkMetropolis{StepSize: .6}, mcmc.HMC{StepSize: .3, Steps: 2}} {
		sampler := reused{Problem: linear(check.Line()), Kernel: kernel}
		sample := func(s setup) *outcome {
			s.Particles, s.Engine, s.Ladder = 400, computetest.Go(t), []float64{.05, .3, 1}
			result, err := sampler.Sample(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		enough := sample(setup{})
		if len(enough.Warnings) > 0 {
			t.Errorf("%T: %q", kernel, enough.Warnings)
		}
		given := sample(setup{Moves: 2})
		for i, r := range enough.Trace {
			if r.Transitions < 6 || r.Transitions == 100 || !(r.Correlation <= .1 && r.Correlation > .03) {
				t.Errorf("%T: at %v %d transitions leave a correlation of %.3f, want at most .1 after some ten", kernel, r.Place,
					r.Transitions, r.Correlation)
			}
			if r := given.Trace[i]; r.Transitions != 2 || r.Correlation < .6 {
				t.Errorf("%T: at %v %d transitions leave a correlation of %.3f, want 2", kernel, r.Place, r.Transitions,
					r.Correlation)
			}
		}
		if !strings.Contains(strings.Join(given.Warnings, " "), "with a correlation of") {
			t.Errorf("%T: no warning of particles that have not moved: %q", kernel, given.Warnings)
		}
	}
}

// Modes that are a hundred times narrower than they lie apart, beside a coordinate that is wide in each: scales are
// those within a mode, so that one step size suits both coordinates and a few trajectories forget where they were. With
// the standard deviations over both modes the wide coordinate is forgotten after hundreds. The evidence is exact.
func TestScalesWithinModes(t *testing.T) {
	const width, apart = .02, 2.
	component := func(x *graph.Node, mean float64) *graph.Node {
		return graph.MulScalar(graph.Square(graph.DivScalar(graph.AddScalar(x, -mean), width)), -.5)
	}
	problem := density.Problem{Name: "two modes", Dim: 2, Initial: drawNormal(2),
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				x := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
				return graph.LogAddExp(component(x, apart), component(x, -apart))
			}}
		}}
	result, err := draw(t.Context(), problem, mcmc.HMC{Steps: 5},
		setup{Particles: 2000, Seed: 1, Engine: computetest.Go(t)})
	if err != nil {
		t.Fatal(err)
	}
	scale := result.Tuned.Scale
	if math.Abs(scale[0]/width-1) > .1 || math.Abs(scale[1]-1) > .1 {
		t.Errorf("scales are %.3g, want %g and 1", scale, width)
	}
	for _, r := range result.Trace {
		if r.Transitions > 12 {
			t.Errorf("at %.3g it took %d transitions to forget", r.Place, r.Transitions)
		}
	}
	// the integral of N(x; 0, 1) exp(-(x -+ apart)^2 / (2 width^2)) over x, for both modes
	within := 1 + width*width
	exact := math.Log(2*width/math.Sqrt(within)) - apart*apart/(2*within)
	if off := math.Abs(result.LogEvidence - exact); !(off < 4*result.LogEvidenceStdErr) {
		t.Errorf("log evidence %.3f +- %.3f, exact %.3f", result.LogEvidence, result.LogEvidenceStdErr, exact)
	}
}

// Trajectories grow where coordinates are correlated, which no scales mend, and not on a round Gaussian.
func TestTrajectoriesGrow(t *testing.T) {
	const d = 6
	for name, c := range map[string]struct {
		precision   float64 // of the likelihood, of differences of neighbours
		least, most int     // of the steps at the end
	}{"round": {0, 15, 18}, "ill-conditioned": {1e3, 25, 60}} {
		problem := density.Problem{Name: name, Dim: d, Initial: drawNormal(d),
			Target: func(compute.Nodes, []*graph.Node) density.Target {
				return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
					left := graph.Slice(phi, graph.AxisRange(), graph.AxisRange(0, d-1))
					right := graph.Slice(phi, graph.AxisRange(), graph.AxisRange(1, d))
					apart := graph.ReduceSum(graph.Square(graph.Sub(left, right)), 1)
					all := graph.ReduceSum(graph.Square(phi), 1)
					return graph.Sub(graph.MulScalar(apart, -c.precision/2), graph.MulScalar(all, 4))
				}}
			}}
		result, err := draw(t.Context(), problem, mcmc.HMC{},
			setup{Particles: 200, Seed: 1, Engine: computetest.Go(t), Moves: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Trace[len(result.Trace)-1].Steps; got < c.least || got > c.most {
			t.Errorf("%s: %d steps at the end, want %d to %d", name, got, c.least, c.most)
		}
	}
}

// A run that is cancelled anywhere goes on from its checkpoint to the bits of an uninterrupted one: after a weighing,
// in the middle of moves, of a transition and of waste-free chains.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		name   string
		kernel mcmc.Kernel
		s      setup
	}{
		{"random walk", mcmc.RandomWalkMetropolis{}, setup{Moves: 4}},
		{"HMC", mcmc.HMC{Steps: 3, Jitter: .5}, setup{Moves: 2}},
		{"waste-free", mcmc.MALA{}, setup{WasteFree: 4, Ladder: []float64{.1, .5, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sampler := reused{Problem: linear(check.Line()), Kernel: c.kernel}
			s := c.s
			s.Particles, s.Seed, s.Engine = 60, 3, computetest.Go(t)
			whole, err := sampler.Sample(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for stop := range 100 {
				s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
				ctx := &countdown{Context: t.Context(), left: 1 + stop}
				part, err := sampler.Sample(ctx, s)
				if err != nil {
					t.Fatal(err)
				}
				if part.Status == run.Completed && stop > 6 {
					break
				}
				if part.Status != run.Cancelled || !math.IsNaN(part.LogEvidence) || part.LogWeights.Len() != 60 {
					t.Fatalf("cancelled at the %dth look: %s, log evidence %v", ctx.left, part.Status, part.LogEvidence)
				}
				for range 2 { // the second finds it finished
					again, err := sampler.Sample(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					same(t, again, whole)
				}
			}
		})
	}
}

// A run whose moves end by themselves goes on to the same bits wherever it was stopped between two looks at how the
// correlation falls, at 20 and 40 transitions.
func TestResumeBetweenLooks(t *testing.T) {
	sampler := reused{Problem: linear(check.Line()), Kernel: mcmc.RandomWalkMetropolis{StepSize: .15}}
	s := setup{Particles: 60, Seed: 3, Ladder: []float64{.01, 1}, Engine: computetest.Go(t)}
	whole, err := sampler.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if first := whole.Trace[0].Transitions; first <= 40 {
		t.Fatalf("moves ended after %d transitions: the test needs more than 40", first)
	}
	s.Checkpoint = filepath.Join(t.TempDir(), "run.safetensors")
	part, err := sampler.Sample(&countdown{Context: t.Context(), left: 32}, s)
	if err != nil {
		t.Fatal(err)
	}
	if at := part.Trace[0].Transitions; len(part.Trace) != 1 || at <= 20 || at >= 40 {
		t.Fatalf("stopped after %d transitions at temperature %d: the test needs 21 to 39 at the first", at, len(part.Trace))
	}
	again, err := sampler.Sample(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, whole)
}

// fit.SampleSteps yields after each call to the device, with the result so far, and gives what fit.Sample gives: as a
// whole, and left and gone on with from its checkpoint.
func TestSteps(t *testing.T) {
	problem := linear(check.Line())
	method := smc.Tempered{Kernel: mcmc.HMC{Steps: 3}, Particles: 60, Moves: 2, Ladder: []float64{.1, .3, 1}}
	settings := run.Settings{Seed: 3, Engine: computetest.Go(t)}
	want, err := draw(t.Context(), problem, method.Kernel, setup{
		Particles: 60, Seed: 3, Moves: 2, Ladder: method.Ladder, Engine: settings.Engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	settings.Checkpoint = filepath.Join(t.TempDir(), "particles")
	var places []float64
	var last *fit.Result
	for session := range 2 {
		for now, err := range fit.SampleSteps(t.Context(), problem, method, settings) {
			if err != nil {
				t.Fatal(err)
			}
			if last, err = now.Now(); err != nil || len(last.Draws.LogWeights) != 60 {
				t.Fatal(last, err)
			}
			trace := fit.Details[*smc.Details](last).Trace
			place := trace[len(trace)-1].Place
			if len(places) == 0 || places[len(places)-1] != place {
				places = append(places, place)
			}
			if of := last.Approximation; (of == "") != (last.Status == run.Completed || place == 1 && now.Result == nil) &&
				place < 1 {
				t.Errorf("at %v the particles are said to be of %q", place, of)
			}
			if session == 0 && place > .2 {
				break
			}
		}
	}
	if !slices.Equal(places, method.Ladder) {
		t.Errorf("it stood at %v, want %v", places, method.Ladder)
	}
	if e := last.Draws.Evidence; e.Value != want.LogEvidence || e.StdErr != want.LogEvidenceStdErr {
		t.Errorf("log evidence %+v, want %v +- %v", e, want.LogEvidence, want.LogEvidenceStdErr)
	}
}

// countdown is a context that ends after it was asked a given number of times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// same fails unless two results agree in every bit.
func same(t *testing.T, got, want *outcome) {
	t.Helper()
	a, err := compute.Float64s(got.Phi)
	b, err2 := compute.Float64s(want.Phi)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) || got.LogEvidence != want.LogEvidence || got.LogEvidenceStdErr != want.LogEvidenceStdErr ||
		!slices.Equal(got.LogWeights.Weights(), want.LogWeights.Weights()) || got.Evaluations != want.Evaluations ||
		!slices.Equal(got.Tuned.Scale, want.Tuned.Scale) || got.Tuned.StepSize != want.Tuned.StepSize ||
		len(got.Trace) != len(want.Trace) {
		t.Fatalf("log evidence %v +- %v after %d temperatures, uninterrupted %v +- %v after %d", got.LogEvidence,
			got.LogEvidenceStdErr, len(got.Trace), want.LogEvidence, want.LogEvidenceStdErr, len(want.Trace))
	}
	for i := range got.Trace {
		was, is := want.Trace[i], got.Trace[i]
		if math.IsNaN(was.Acceptance) && math.IsNaN(is.Acceptance) {
			was.Acceptance, is.Acceptance = 0, 0
		}
		if was.Seconds, is.Seconds = 0, 0; was != is {
			t.Errorf("temperature %d: %+v, uninterrupted %+v", i, is, was)
		}
	}
}

// What a caller changes on the way, of the ladder given or of a result taken, changes nothing of the run.
func TestOwnMemory(t *testing.T) {
	method := smc.Tempered{
		Kernel: mcmc.RandomWalkMetropolis{}, Particles: 50, Moves: 2, Ladder: []float64{.1, .5, 1},
	}
	settings, problem := run.Settings{Engine: computetest.Go(t), Seed: 1}, linear(check.Line())
	want, err := fit.Sample(t.Context(), problem, method, settings)
	if err != nil {
		t.Fatal(err)
	}
	for at, err := range fit.SampleSteps(t.Context(), problem, method, settings) {
		if err != nil {
			t.Fatal(err)
		}
		method.Ladder[1] = .9
		got, err := at.Now()
		if err != nil {
			t.Fatal(err)
		}
		if at.Result == nil {
			clear(fit.Details[*smc.Details](got).Trace)
			continue
		}
		if got.Draws.Evidence != want.Draws.Evidence {
			t.Errorf("log evidence %+v, want %+v", got.Draws.Evidence, want.Draws.Evidence)
		}
	}
}

// Several devices share the particles, and give what one gives, by rounding only.
func TestDevices(t *testing.T) {
	s := setup{Particles: 400, Ladder: []float64{.1, .4, 1}, Moves: 1, DType: compute.Float64, Seed: 4}
	engines := []*compute.Engine{computetest.Go(t), computetest.Several(t)} // the first compiles nothing
	var evidence []float64
	for i, devices := range []int{1, 4} {
		s.Engine, s.Devices = engines[i], devices
		result, err := draw(t.Context(), linear(check.Line()), mcmc.RandomWalkMetropolis{}, s)
		if err != nil {
			t.Fatal(err)
		}
		evidence = append(evidence, result.LogEvidence, result.LogEvidenceStdErr)
	}
	computetest.Near(t, "log evidence, its standard error", evidence[2:], evidence[:2], 1e-9)
}

// What cannot be sampled is refused with what is wrong, and what to do.
func TestBadInput(t *testing.T) {
	good := linear(check.Line())
	change := func(f func(p *density.Problem)) density.Problem {
		p := good
		f(&p)
		return p
	}
	only := func(target density.Target) density.Problem {
		return change(func(p *density.Problem) {
			p.Target = func(compute.Nodes, []*graph.Node) density.Target { return target }
		})
	}
	constant := func(v float64) density.Func {
		return func(phi *graph.Node) *graph.Node {
			return graph.AddScalar(graph.MulScalar(graph.ReduceSum(phi, 1), 0), v)
		}
	}
	rwm := mcmc.RandomWalkMetropolis{}
	for _, c := range []struct {
		problem density.Problem
		kernel  mcmc.Kernel
		s       setup
		says    string
	}{
		{change(func(p *density.Problem) { p.Dim = 0 }), rwm, setup{}, "Dim is 0"},
		{change(func(p *density.Problem) { p.Target = nil }), rwm, setup{}, "Problem.Target is nil"},
		{change(func(p *density.Problem) { p.Initial = nil }), rwm, setup{}, "Problem.Initial is nil: it must be a " +
			"function that draws from the prior"},
		{change(func(p *density.Problem) { p.Start = tensors.FromValue([]float64{1}) }), rwm, setup{},
			"Problem.Start is (Float64)[1]: it must be (Float32)[1000, 3]"},
		{change(func(p *density.Problem) { p.Inputs = func(int) []any { return nil } }), rwm, setup{},
			"Problem.Inputs is set"},
		{good, mcmc.ULA{StepSize: .1}, setup{}, "mcmc.ULA leaves no target invariant"},
		{good, mcmc.RandomWalk{}, setup{}, "mcmc.RandomWalk leaves no target invariant"},
		{good, mcmc.RandomWalkMetropolis{StepSize: -1}, setup{}, "-1"},
		{good, rwm, setup{Particles: 1}, "Particles is 1"},
		{good, rwm, setup{Particles: 1 << 45}, "Particles is 35184372088832: it must be fewer"},
		{good, rwm, setup{Particles: 1 << 62}, "numbers in memory"},
		{good, rwm, setup{Ladder: []float64{.5, .4, 1}}, "Ladder[1] is 0.4"},
		{good, rwm, setup{Ladder: []float64{.5, .9}}, "Ladder[1] is 0.9"},
		{good, rwm, setup{Threshold: 1}, "Threshold is 1"},
		{good, rwm, setup{Threshold: math.NaN()}, "Threshold is NaN"},
		{good, rwm, setup{WasteFree: 1}, "WasteFree is 1"},
		{good, rwm, setup{WasteFree: 7}, "WasteFree is 7: it must be a divisor of the 1000 Particles"},
		{good, rwm, setup{Moves: -1}, "Moves is -1"},
		{good, rwm, setup{Devices: 3}, "3 devices"},
		{good, rwm, setup{CheckpointEvery: -1}, "CheckpointEvery is -1"},
		{only(constant(0)), rwm, setup{}, "not smc.Factored"},
		{only(smc.Posterior{Prior: logNormal, Likelihood: constant(math.Inf(-1))}), rwm, setup{},
			"1000 of 1000 particles have a log-likelihood that is not finite"},
		{only(smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node { return phi }}), rwm,
			setup{}, "shape"},
		{change(func(p *density.Problem) { p.Initial = drawNormal(2) }), rwm, setup{},
			"what Initial draws has shape (Float32)[1000, 2]"},
	} {
		c.s.Engine = computetest.Go(t)
		_, err := draw(t.Context(), c.problem, c.kernel, c.s)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v does not say %q", c.s, err, c.says)
		}
		if strings.Contains(c.says, "1000 of 1000") && !errors.Is(err, bayes.ErrZeroWeights) {
			t.Errorf("%v does not wrap ErrZeroWeights", err)
		}
	}
}

// Where no step of the power is small enough to leave more than one particle, the run stops with what there is and says
// so: of a likelihood that is all cliffs, or of one that only a particle of the prior has: among 1000 normals of this
// seed one is above 3.4. From its checkpoint it does not go on: moves would lead the copies of one particle apart, and
// the run would then end as completed.
func TestStall(t *testing.T) {
	for name, likelihood := range map[string]func(x *graph.Node) *graph.Node{
		"cliffs": func(x *graph.Node) *graph.Node {
			x = graph.MulScalar(graph.Square(x), 1e4)
			return graph.MulScalar(graph.Sub(x, graph.Floor(graph.StopGradient(x))), -1e30) // a floor has no gradient
		},
		"a needle": func(x *graph.Node) *graph.Node {
			return compute.Only(graph.GreaterThan(x, graph.AddScalar(graph.ZerosLike(x), 3.4)), graph.MulScalar(x, -1))
		},
	} {
		problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
			return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
				return likelihood(graph.Reshape(phi, phi.Shape().Dim(0)))
			}}
		}}
		for _, kernel := range []mcmc.Kernel{mcmc.RandomWalkMetropolis{}, mcmc.HMC{Steps: 2}} {
			s := setup{Seed: 3, DType: compute.Float64, Engine: computetest.Go(t),
				Checkpoint: filepath.Join(t.TempDir(), "run")}
			said := ""
			for session := range 2 {
				result, err := draw(t.Context(), problem, kernel, s)
				if !strings.Contains(fmt.Sprint(err), "the ladder stalls") || result == nil || result.Status != run.Stopped ||
					result.LogWeights.Len() != 1000 || !math.IsNaN(result.LogEvidence) || len(result.Trace) != 1 ||
					session > 0 && err.Error() != said {
					t.Fatalf("%s, %T, session %d: error %v, not %s, %+v", name, kernel, session, err, said, result)
				}
				said = err.Error()
			}
		}
	}
}

// Where half of the prior has no likelihood at all the evidence is half of what it is elsewhere: those particles get
// weight 0 and are counted, and no step of the ladder is too large for them. The likelihood is 0 beyond, and else c
// exp(-phi^2/2 k): with a normal prior the evidence is c/2 (1 + k)^-1/2. Over four seeds the sum of z is 0 to 3.5 times
// 2.
func TestHalfWithoutLikelihood(t *testing.T) {
	const k, c = 50., 3.
	problem := density.Problem{Dim: 1, Initial: drawNormal(1), Target: func(compute.Nodes, []*graph.Node) density.Target {
		return smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node {
			x := graph.Reshape(phi, phi.Shape().Dim(0))
			l := graph.AddScalar(graph.MulScalar(graph.Square(x), -k/2), math.Log(c))
			return compute.Only(graph.GreaterThan(x, graph.ZerosLike(x)), l)
		}}
	}}
	for _, kernel := range []mcmc.Kernel{mcmc.RandomWalkMetropolis{}, mcmc.HMC{Steps: 3}} {
		sampler := reused{Problem: problem, Kernel: kernel}
		want, sum := math.Log(c/2)-math.Log(1+k)/2, 0.
		for seed := range uint64(4) {
			result, err := sampler.Sample(t.Context(), setup{Particles: 2000, Seed: seed, Engine: computetest.Go(t)})
			if err != nil {
				t.Fatal(err)
			}
			sum += (result.LogEvidence - want) / result.LogEvidenceStdErr
			if result.LogEvidenceStdErr > .1 || result.Trace[0].NonFinite < 850 {
				t.Errorf("%T: log evidence %.4f +- %.4f, want %.4f; %+v", kernel, result.LogEvidence,
					result.LogEvidenceStdErr, want, result.Trace)
			}
		}
		if math.Abs(sum) > 3.5*2 {
			t.Errorf("%T: over four seeds the errors of the log evidence sum to %.1f standard errors", kernel, sum)
		}
	}
}
