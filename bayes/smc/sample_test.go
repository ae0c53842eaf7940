package smc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
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

// Samplers that move all particles and waste-free ones give the exact posterior, an unbiased evidence, and the standard
// error that they state: one call of the harness each, with a false alarm once in a thousand calls; seeds are fixed. A
// ladder that the particles choose has a bias of order 1/J, which is below what the harness sees. The standard
// deviation of the log evidence is held to what was measured, so that wasted particles show. Over all runs it must be
// that which the runs state: 40 runs measure their ratio to 11 %. All is on the Go backend, which compiles nothing.
// XLA, and trajectories whose length is chosen, are in TestNarrowMode.
func TestSampleIsExact(t *testing.T) {
	samplesAreExact(t, []exactSampler{
		{name: "random walk", stdDev: .25, Tempered: smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Moves: 5}},
		{name: "HMC", stdDev: .3, Tempered: smc.Tempered{Kernel: mcmc.HMC{Steps: 3}, Moves: 2}, short: true,
			dtype: compute.Float32},
		{name: "HMC, waste-free", stdDev: .3, Tempered: smc.Tempered{
			Kernel: mcmc.HMC{Steps: 3}, Particles: 400, WasteFree: 4,
		}},
		{name: "MALA, waste-free", stdDev: .3, Tempered: smc.Tempered{
			Kernel: mcmc.MALA{}, Particles: 800, WasteFree: 4, Moves: 3,
		}},
	})
}

// exactSampler is a sampler, of 200 particles by default, and the standard deviation of its log evidence.
type exactSampler struct {
	name string
	smc.Tempered
	dtype  compute.DType // default Float64
	stdDev float64
	short  bool // also with -short
}

// samplesAreExact calls the harness for each sampler.
func samplesAreExact(t *testing.T, samplers []exactSampler) {
	for _, c := range samplers {
		if testing.Short() && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := run.Settings{Engine: computetest.Go(t), DType: cmp.Or(c.dtype, compute.Float64)}
			c.Particles = cmp.Or(c.Particles, 200)
			line := check.Line()
			harness(t, linear(line), c.Tempered, s, check.SequentialOptions{Problem: &line, Runs: 40, StdDev: c.stdDev})
		})
	}
}

// trace are the records of a run's temperatures.
func trace(r *fit.Result) []smc.StepRecord { return fit.Details[*smc.Details](r).Trace }

// runOf is a result for the harness; none of an error.
func runOf(r *fit.Result) (of check.SequentialRun) {
	if r == nil {
		return of
	}
	phi, err := compute.Float64s(r.Draws.Phi)
	if err != nil {
		panic(err)
	}
	evidence := r.Draws.Evidence
	return check.SequentialRun{
		Phi: phi, LogWeights: r.Draws.LogWeights, LogEvidence: evidence.Value, StdErr: evidence.StdErr,
	}
}

func harness(
	t *testing.T, problem density.Problem, method smc.Tempered, s run.Settings, o check.SequentialOptions,
) {
	t.Helper()
	problem = problem.Keyed("test", t.Name())
	var evidences, variances []float64
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		s.Seed = seed
		result, err := fit.Sample(t.Context(), problem, method, s)
		if err != nil {
			return check.SequentialRun{}, err
		}
		all := trace(result)
		if all[len(all)-1].Acceptance < .08 || len(all) < 2 || result.Status != run.Completed {
			return check.SequentialRun{}, fmt.Errorf("this tests little: %+v", all)
		}
		evidence := result.Draws.Evidence
		evidences, variances = append(evidences, evidence.Value), append(variances, evidence.StdErr*evidence.StdErr)
		return runOf(result), nil
	}, o)
	deviation, stated := stat.StdDev(evidences, nil), math.Sqrt(stat.Mean(variances, nil))
	t.Logf("standard deviation of the log evidence %.3f, stated %.3f", deviation, stated)
	if ratio := deviation / stated; ratio < .7 || ratio > 1.45 {
		t.Errorf("the log evidence has a standard deviation of %.3f, but runs state %.3f", deviation, stated)
	}
}

// Moves go on until the particles' correlation with where they were is small enough, and no further: a slow kernel
// takes many, each of which alone leaves nearly all of it. A number that is given is kept, and too small a one is
// warned of.
func TestMovesUntilForgotten(t *testing.T) {
	for _, kernel := range []mcmc.Kernel{mcmc.RandomWalkMetropolis{StepSize: .6}, mcmc.HMC{StepSize: .3, Steps: 2}} {
		sample := func(moves int) *fit.Result {
			method := smc.Tempered{Kernel: kernel, Particles: 400, Ladder: []float64{.05, .3, 1}, Moves: moves}
			result, err := fit.Sample(t.Context(), linear(check.Line()), method, run.Settings{Engine: computetest.Go(t)})
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		enough := sample(0)
		if len(enough.Warnings) > 0 {
			t.Errorf("%T: %q", kernel, enough.Warnings)
		}
		given := sample(2)
		for i, r := range trace(enough) {
			if r.Transitions < 6 || r.Transitions == 100 || !(r.Correlation <= .1 && r.Correlation > .03) {
				t.Errorf("%T: at %v %d transitions leave a correlation of %.3f, want at most .1 after some ten", kernel, r.Place,
					r.Transitions, r.Correlation)
			}
			if r := trace(given)[i]; r.Transitions != 2 || r.Correlation < .6 {
				t.Errorf("%T: at %v %d transitions leave a correlation of %.3f, want 2", kernel, r.Place, r.Transitions,
					r.Correlation)
			}
		}
		if !strings.Contains(strings.Join(given.Warnings, " "), "with a correlation of") {
			t.Errorf("%T: no warning of particles that have not moved: %q", kernel, given.Warnings)
		}
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
		result, err := fit.Sample(t.Context(), problem, smc.Tempered{Kernel: mcmc.HMC{}, Particles: 200, Moves: 4},
			run.Settings{Seed: 1, Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		if got := trace(result)[len(trace(result))-1].Steps; got < c.least || got > c.most {
			t.Errorf("%s: %d steps at the end, want %d to %d", name, got, c.least, c.most)
		}
	}
}

// A run that is left anywhere goes on from its checkpoint to the bits of an uninterrupted one: after a weighing, in the
// middle of moves, of a transition and of waste-free chains, and between two looks at how the correlation falls, at 20
// and 40 transitions. What a caller changes on the way, of the ladder or of a result so far, changes nothing of it.
func TestResume(t *testing.T) {
	for name, method := range map[string]smc.Tempered{
		"random walk": {Kernel: mcmc.RandomWalkMetropolis{}, Moves: 4},
		"HMC":         {Kernel: mcmc.HMC{Steps: 3, Jitter: .5}, Moves: 2},
		"waste-free":  {Kernel: mcmc.MALA{}, WasteFree: 4, Ladder: []float64{.1, .5, 1}},
		"looks":       {Kernel: mcmc.RandomWalkMetropolis{StepSize: .15}, Ladder: []float64{.01, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			method.Particles = 60
			problem, s := linear(check.Line()).Keyed("test", t.Name()), run.Settings{Seed: 3, Engine: computetest.Go(t)}
			whole, err := fit.Sample(t.Context(), problem, method, s)
			if err != nil {
				t.Fatal(err)
			}
			if first := trace(whole)[0].Transitions; name == "looks" && first <= 40 {
				t.Fatalf("moves ended after %d transitions: the test needs more than 40", first)
			}
			for stop, most := 1, 1; stop <= most; stop += 1 + stop/4 {
				s.Checkpoint = filepath.Join(t.TempDir(), "run")
				mine, steps := method, 0
				mine.Ladder = slices.Clone(method.Ladder)
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := fit.Sample(run.Watched(ctx, func(_ run.Progress, m run.Machine) {
					soFar, err := fit.Now(m)
					if err != nil || len(soFar.Draws.LogWeights) != 60 || !math.IsNaN(soFar.Draws.Evidence.Value) {
						t.Fatalf("so far: %+v, error %v", soFar, err)
					}
					clear(trace(soFar))
					clear(mine.Ladder)
					if steps++; steps == stop {
						cancel()
					}
				}), problem, mine, s); err != nil || steps != stop {
					t.Fatalf("it ended after step %d, not %d: %v", steps, stop, err)
				}
				most = 1
				resumed, err := fit.Sample(run.Watched(t.Context(), func(run.Progress, run.Machine) { most++ }), problem, method,
					s)
				if err != nil {
					t.Fatal(err)
				}
				same(t, resumed, whole)
				most += stop - 2                                          // steps before the last one
				again, err := fit.Sample(t.Context(), problem, method, s) // which is finished
				if err != nil {
					t.Fatal(err)
				}
				same(t, again, whole)
			}
		})
	}
}

// same fails unless two results agree in every bit.
func same(t *testing.T, got, want *fit.Result) {
	t.Helper()
	a, b := runOf(got), runOf(want)
	if math.IsNaN(a.LogEvidence) || !reflect.DeepEqual(a, b) {
		t.Fatalf("log evidence %v after %d temperatures, uninterrupted %v after %d", got.Draws.Evidence, len(trace(got)),
			want.Draws.Evidence, len(trace(want)))
	}
	details := func(r *fit.Result) string { return fmt.Sprintf("%+v", *fit.Details[*smc.Details](r)) }
	if is, was := details(got), details(want); is != was {
		t.Errorf("%s, uninterrupted %s", is, was)
	}
}

// What cannot be sampled is refused with what is wrong, and what to do.
func TestBadInput(t *testing.T) {
	good := linear(check.Line())
	only := func(target density.Target) density.Problem {
		p := good
		p.Target = func(compute.Nodes, []*graph.Node) density.Target { return target }
		return p
	}
	constant := func(v float64) density.Func {
		return func(phi *graph.Node) *graph.Node {
			return graph.AddScalar(graph.MulScalar(graph.ReduceSum(phi, 1), 0), v)
		}
	}
	initial := func(p density.Problem, of func(random.Stream, compute.DType, int) *graph.Node) density.Problem {
		p.Initial = of
		return p
	}
	start, inputs := good, good
	start.Start = tensors.FromValue([]float64{1})
	inputs.Inputs = func(int) []any { return nil }
	for _, c := range []struct {
		problem density.Problem
		smc.Tempered
		says string
	}{
		{initial(good, nil), smc.Tempered{}, "Problem.Initial is nil: it must be a function that draws from the prior"},
		{start, smc.Tempered{}, "Problem.Start is (Float64)[1]: it must be (Float32)[1000, 3]"},
		{inputs, smc.Tempered{}, "Problem.Inputs is set"},
		{good, smc.Tempered{Kernel: mcmc.SGLD{StepSize: .01}}, "mcmc.SGLD leaves no target invariant"},
		{good, smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{StepSize: -1}}, "-1"},
		{good, smc.Tempered{Particles: 1}, "Particles is 1"},
		{good, smc.Tempered{Particles: 1 << 45}, "Particles is 35184372088832: it must be fewer"},
		{good, smc.Tempered{Ladder: []float64{.5, .4, 1}}, "Ladder[1] is 0.4"},
		{good, smc.Tempered{Ladder: []float64{.5, .9}}, "Ladder[1] is 0.9"},
		{good, smc.Tempered{Threshold: math.NaN()}, "Threshold is NaN"},
		{good, smc.Tempered{WasteFree: 7}, "WasteFree is 7: it must be a divisor of the 1000 Particles"},
		{good, smc.Tempered{Moves: -1}, "Moves is -1"},
		{only(constant(0)), smc.Tempered{}, "not smc.Factored"},
		{only(smc.Posterior{Prior: logNormal, Likelihood: constant(math.Inf(-1))}), smc.Tempered{},
			"1000 of 1000 particles have a log-likelihood that is not finite"},
		{only(smc.Posterior{Prior: logNormal, Likelihood: func(phi *graph.Node) *graph.Node { return phi }}),
			smc.Tempered{}, "shape"},
		{initial(good, drawNormal(2)), smc.Tempered{}, "what Initial draws has shape (Float32)[1000, 2]"},
	} {
		if c.Kernel == nil {
			c.Kernel = mcmc.RandomWalkMetropolis{}
		}
		_, err := fit.Sample(t.Context(), c.problem, c.Tempered, run.Settings{Engine: computetest.Go(t)})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v does not say %q", c.Tempered, err, c.says)
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
			s := run.Settings{Seed: 3, DType: compute.Float64, Engine: computetest.Go(t),
				Checkpoint: filepath.Join(t.TempDir(), "run")}
			said := ""
			for session := range 2 {
				result, err := fit.Sample(t.Context(), problem, smc.Tempered{Kernel: kernel}, s)
				if !strings.Contains(fmt.Sprint(err), "the ladder stalls") || result == nil || result.Status != run.Stopped ||
					len(result.Draws.LogWeights) != 1000 || !math.IsNaN(result.Draws.Evidence.Value) || len(trace(result)) != 1 ||
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
		problem := problem.Keyed("half", kernel)
		want, sum := math.Log(c/2)-math.Log(1+k)/2, 0.
		for seed := range uint64(4) {
			result, err := fit.Sample(t.Context(), problem, smc.Tempered{Kernel: kernel, Particles: 2000},
				run.Settings{Seed: seed, Engine: computetest.Go(t)})
			if err != nil {
				t.Fatal(err)
			}
			sum += (result.Draws.Evidence.Value - want) / result.Draws.Evidence.StdErr
			if result.Draws.Evidence.StdErr > .1 || trace(result)[0].NonFinite < 850 {
				t.Errorf("%T: log evidence %.4f +- %.4f, want %.4f; %+v", kernel, result.Draws.Evidence.Value,
					result.Draws.Evidence.StdErr, want, trace(result))
			}
		}
		if math.Abs(sum) > 3.5*2 {
			t.Errorf("%T: over four seeds the errors of the log evidence sum to %.1f standard errors", kernel, sum)
		}
	}
}
