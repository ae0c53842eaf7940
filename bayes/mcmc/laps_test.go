package mcmc_test

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// lapsOn is a log-density of d coordinates whose chains begin at N(from, 1), the same in all coordinates.
func lapsOn(name string, d int, from float64, logDensity func(phi *graph.Node) *graph.Node) density.Problem {
	return density.Problem{
		Name: name, Dim: d,
		Target: func(compute.Nodes, []*graph.Node) density.Target { return density.Func(logDensity) },
		Initial: func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
			return graph.AddScalar(rng.Normal(dtype, chains, d), from)
		},
	}.Keyed(name, from)
}

// laps samples a problem, on the Go backend.
func laps(t *testing.T, problem density.Problem, l mcmc.LAPS, s run.Settings) (*fit.Result, *mcmc.LAPSDetails) {
	t.Helper()
	s.Engine = computetest.Go(t)
	result, err := fit.Sample(t.Context(), problem, l, s)
	if err != nil {
		t.Fatal(err)
	}
	return result, fit.Details[*mcmc.LAPSDetails](result)
}

// Chains that begin far from targets which are not symmetric end as independent draws from them.
func TestLAPSIsExact(t *testing.T) {
	t.Parallel()
	for _, target := range check.Targets()[:4] { // those without a bound, and without data
		problem := lapsOn(target.Name, target.D, 6, func(phi *graph.Node) *graph.Node { return target.LogDensity(phi, nil) })
		result, d := laps(t, problem, mcmc.LAPS{Chains: 1000, Draws: 1}, run.Settings{Seed: 1})
		phi, err := compute.Float64s(result.Draws.Phi)
		if err != nil || len(phi) != 1000*target.D || result.Draws.Chains != 0 {
			t.Fatalf("%d numbers, of %d chains, error %v", len(phi), result.Draws.Chains, err)
		}
		if last := d.Adjusted.Draws; last.PerChain != 2 || !slices.Equal(phi[2*target.D:3*target.D], last.At(2, 1)) {
			t.Errorf("%s: the draws are not the last of each chain", target.Name)
		}
		uniform := make([][]float64, target.D)
		for x := range slices.Chunk(phi, target.D) {
			for i, u := range target.Uniform(x, nil) {
				uniform[i] = append(uniform[i], u)
			}
		}
		for i, u := range uniform {
			if p := computetest.Kolmogorov(u, func(x float64) float64 { return x }); p < 1e-3 {
				t.Errorf("%s: coordinate %d is no draw: p = %.2g", target.Name, i, p)
			}
		}
		steps, a := len(d.Unadjusted), d.Adjusted
		if !d.Converged || len(result.Warnings) > 0 || d.Gradients != 2000*(steps+a.WarmUpMoves+a.Moves) {
			t.Errorf("%s: after %d steps, converged: %v, %d gradients, %q", target.Name, steps, d.Converged, d.Gradients,
				result.Warnings)
		}
	}
}

// In the mean over runs the mean and the covariance are the exact ones, of a posterior with unlike scales and
// correlations.
func TestLAPSPassesHarness(t *testing.T) {
	t.Parallel()
	line := check.Line()
	mean, covariance, evidence := line.Posterior()
	var precision mat.Dense
	if err := precision.Inverse(covariance); err != nil {
		t.Fatal(err)
	}
	problem := lapsOn("line", len(mean), 2, func(phi *graph.Node) *graph.Node {
		like := func(values any) *graph.Node { return graph.ConvertDType(graph.Const(phi.Graph(), values), phi.DType()) }
		d := len(mean)
		rows := make([][]float64, d)
		for i := range rows {
			rows[i] = precision.RawRowView(i)
		}
		z := graph.Sub(phi, graph.BroadcastToShape(like([][]float64{mean}), phi.Shape()))
		return graph.MulScalar(graph.ReduceSum(graph.Mul(graph.Einsum("jd,de->je", z, like(rows)), z), 1), -.5)
	})
	check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
		result, _ := laps(t, problem, mcmc.LAPS{Chains: 50, Draws: 2}, run.Settings{Seed: seed})
		phi, err := compute.Float64s(result.Draws.Phi)
		return check.SequentialRun{Phi: phi, LogEvidence: evidence}, err
	}, check.SequentialOptions{Problem: &line, Runs: 40})
}

// normalIn is a normal of d coordinates with the given standard deviations.
func normalIn(sd ...float64) func(phi *graph.Node) *graph.Node {
	return func(phi *graph.Node) *graph.Node {
		scale := graph.ConvertDType(graph.Const(phi.Graph(), [][]float64{sd}), phi.DType())
		z := graph.Div(phi, graph.BroadcastToShape(scale, phi.Shape()))
		return graph.MulScalar(graph.ReduceSum(graph.Square(z), 1), -.5)
	}
}

// A run that is cancelled in either phase resumes to the same bits, and a finished one is read from its checkpoint.
func TestLAPSResumes(t *testing.T) {
	problem, l := lapsOn("resumed", 3, 4, normalIn(1, 3, .5)), mcmc.LAPS{Chains: 10, Draws: 3}
	want, whole := laps(t, problem, l, run.Settings{Seed: 5})
	firstPhase := len(whole.Unadjusted)
	for _, stop := range []int{1, firstPhase - 1, firstPhase, firstPhase + 5, firstPhase + whole.Adjusted.WarmUpMoves} {
		s := run.Settings{Seed: 5, Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "run")}
		made := 0
		for p, err := range fit.SampleSteps(t.Context(), problem, l, s) {
			if err != nil || p.Result != nil {
				t.Fatalf("after %d steps: %+v, error %v", made, p.Result, err)
			}
			if made++; made == stop {
				break
			}
		}
		for range 2 { // the second finds it finished
			got, d := laps(t, problem, l, s)
			if !got.Draws.Phi.Equal(want.Draws.Phi) || !reflect.DeepEqual(d.Unadjusted, whole.Unadjusted) ||
				d.Gradients != whole.Gradients || d.RHat != whole.RHat || d.Converged != whole.Converged {
				t.Errorf("left after %d steps: %+v, not %+v", stop, d, whole)
			}
		}
	}
}

// What makes the draws doubtful is told: a phase that was too short, and places where the target is not finite, which
// no chain comes to.
func TestLAPSWarns(t *testing.T) {
	wide := lapsOn("wide", 2, 30, normalIn(4, 1))
	result, d := laps(t, wide, mcmc.LAPS{Chains: 20, Steps: 32}, run.Settings{})
	if text := strings.Join(result.Warnings, "\n"); d.Converged || len(d.Unadjusted) != 32 ||
		!strings.Contains(text, "had not converged after 32 steps") {
		t.Errorf("converged: %v after %d steps, %q", d.Converged, len(d.Unadjusted), text)
	}
	if result, d = laps(t, wide, mcmc.LAPS{Chains: 20}, run.Settings{}); !d.Converged || len(result.Warnings) > 0 {
		t.Errorf("after %d steps: %+v, %q", len(d.Unadjusted), d.Unadjusted[len(d.Unadjusted)-1], result.Warnings)
	}

	wall := lapsOn("wall", 2, 0, func(phi *graph.Node) *graph.Node {
		first := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
		beyond := graph.GreaterThan(first, graph.OnesLike(first))
		return graph.Where(beyond, graph.Sqrt(graph.Neg(graph.OnesLike(first))), normalIn(1, 1)(phi))
	})
	inside := wall.Initial
	wall.Initial = func(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
		return graph.ClipScalar(inside(rng, dtype, chains), -1, .9)
	}
	result, d = laps(t, wall, mcmc.LAPS{Chains: 400, Steps: 64}, run.Settings{})
	nonFinite := 0
	for _, r := range d.Unadjusted {
		nonFinite += r.NonFinite
	}
	phi, err := compute.Float64s(result.Draws.Phi)
	mean := 0.
	for i := 0; i < len(phi); i += 2 {
		mean += 2 * phi[i] / float64(len(phi))
		if !(phi[i] <= 1) {
			t.Fatalf("a draw at %v, error %v", phi[i:i+2], err)
		}
	}
	// of a standard normal below 1: minus its density there over its distribution function
	if want := -math.Exp(-.5) / math.Sqrt(2*math.Pi) / .841345; nonFinite == 0 || math.Abs(mean-want) > .1 {
		t.Errorf("%d steps were not finite, the mean is %.3f, want %.3f", nonFinite, mean, want)
	}
}

// What cannot be sampled is refused before it is compiled, or with a reason.
func TestLAPSRefuses(t *testing.T) {
	s := run.Settings{Engine: computetest.Go(t)}
	normal := lapsOn("normal", 2, 0, normalIn(1, 1))
	nowhere := lapsOn("nowhere", 2, 0, func(phi *graph.Node) *graph.Node {
		return graph.Log(graph.Neg(graph.ReduceSum(graph.Square(phi), 1)))
	})
	for want, c := range map[string]struct {
		problem density.Problem
		l       mcmc.LAPS
	}{
		"LAPS.Chains is 7":                      {normal, mcmc.LAPS{Chains: 7}},
		"LAPS.Draws is -1":                      {normal, mcmc.LAPS{Draws: -1}},
		"LAPS.Steps is 9":                       {normal, mcmc.LAPS{Steps: 9}},
		"LAPS has particles of 1 coordinate":    {lapsOn("one", 1, 0, normalIn(1)), mcmc.LAPS{}},
		"chains start where the log-density or": {nowhere, mcmc.LAPS{}},
	} {
		if _, err := fit.Sample(t.Context(), c.problem, c.l, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c.l, err, want)
		}
	}
}
