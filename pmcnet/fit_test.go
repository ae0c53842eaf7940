package pmcnet_test

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

func goSettings(t *testing.T) run.Settings {
	return run.Settings{Seed: 2, Engine: computetest.Go(t), DType: compute.Float64}
}

// A network's posterior and evidence are the exact ones, from every start and with PMCnet-light, and the posterior has
// k-hat, ESS and its algorithm. On XLA the programs have loops.
func TestFit(t *testing.T) {
	model, parts, l := fittest.Harness()
	_, _, want := l.Posterior()
	small := pmcnet.PMC{Proposals: 10, Draws: 100, Iterations: 6, StdDev: .4}
	prior, light := small, small
	prior.Start, light.Ascent, light.BatchSize = pmcnet.FromPrior, pmcnet.MiniBatchAscent, 5
	for _, engine := range computetest.Engines(t) {
		for name, a := range map[string]pmcnet.PMC{"MLE": small, "prior": prior, "light": light} {
			if name != "light" && engine.IsXLA() {
				continue // each compiles for seconds
			}
			settings := goSettings(t)
			settings.Engine = engine
			r, d := fittest.Fit[*pmcnet.Details](t, model, a, parts, settings)
			p := r.Posterior
			e := p.Evidence()
			if math.Abs(e.Value-want) > 5*e.StdErr || !(e.StdErr < .1) || p.Bound().W != 0 {
				t.Errorf("%s: evidence %+v, exact %.3f; %v", name, e, want, r.Warnings)
			}
			if of := p.Diagnostics(); of["k-hat"] != d.KHat || of["effective sample size"] != d.ESS || !(d.KHat < .7) {
				t.Errorf("%s: diagnostics %v, ESS %v, k-hat %v", name, of, d.ESS, d.KHat)
			}
			covariance := `"covariance":"full"`
			if name == "light" {
				covariance = `"covariance":"diagonal"`
			}
			if at := p.Provenance(); !strings.Contains(at.Algorithm, "PMCnet") || at.Seed != 2 || !strings.Contains(
				string(at.Settings), covariance) {
				t.Errorf("%s: provenance %+v", name, at)
			}
		}
	}
}

// Settings and problems that cannot work are refused by name, with what they must be.
func TestBadInput(t *testing.T) {
	model, parts, l := fittest.Harness()
	good := fittest.Density(l)
	for _, c := range []struct {
		a    pmcnet.PMC
		says []string
	}{
		{pmcnet.PMC{Proposals: -1}, []string{"PMC.Proposals", "-1", "at least 1"}},
		{pmcnet.PMC{Draws: 1 << 60}, []string{"PMC.Draws", "fewer", "in memory"}},
		{pmcnet.PMC{StdDev: math.NaN()}, []string{"PMC.StdDev", "NaN"}},
		{pmcnet.PMC{Covariance: "round"}, []string{"PMC.Covariance", "round", "full"}},
		{pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent, Covariance: "full"},
			[]string{"PMC.Covariance is full", "DiagonalCovariance", "left out"}},
		{pmcnet.PMC{Resampling: -2}, []string{"PMC.Resampling", "-2"}},
		{pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent}, []string{"without mini-batches", "PMC.Ascent"}},
		{pmcnet.PMC{Start: "MLE"}, []string{"PMC.Start", "Problem.Start"}},
	} {
		_, err := fit.Sample(t.Context(), good, c.a, goSettings(t))
		fittest.Refused(t, c.says[0], err, c.says...)
	}
	for _, c := range []struct {
		change func(p *density.Problem)
		says   []string
	}{
		{func(p *density.Problem) { p.Initial = nil }, []string{"Problem.Initial"}},
		{func(p *density.Problem) { p.Inputs = func(int) []any { return nil } }, []string{"Problem.Inputs"}},
		{func(p *density.Problem) { p.Start = tensors.FromValue([][]float64{{1, 2, 3}}) },
			[]string{"Problem.Start", "[50, 3]"}},
	} {
		p := good
		c.change(&p)
		_, err := fit.Sample(t.Context(), p, pmcnet.PMC{}, goSettings(t))
		fittest.Refused(t, c.says[0], err, c.says...)
	}
	_, err := fit.Fit(t.Context(), model, pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent, BatchSize: 99}, parts, goSettings(t))
	fittest.Refused(t, "batch size", err, "BatchSize", "99")
	settings := goSettings(t)
	settings.Devices = 2
	_, err = fit.Sample(t.Context(), good, pmcnet.PMC{}, settings)
	fittest.Refused(t, "devices", err, "pmcnet: Settings.Devices is 2", "pmcnet.PMC runs on one device")
}

// Where no draw of the first iteration has any weight the run ends with an error that says so; where some have none,
// they are counted, and the others are the posterior of what is left: half a Gaussian, of mean -sqrt(2/pi).
func TestHoles(t *testing.T) {
	holed := func(bound float64) density.Problem { // NaN beyond a bound
		return density.Problem{Dim: 2, Initial: fittest.Normal(2), Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node {
				first := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
				beyond := graph.GreaterThan(first, graph.ConstAs(first, bound))
				nan := graph.Sqrt(graph.AddScalar(graph.MulScalar(first, 0), -1))
				return graph.Where(beyond, nan, graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5))
			})
		}}
	}
	_, err := fit.Sample(t.Context(), holed(-1e3), pmcnet.PMC{Proposals: 3, Draws: 10}, goSettings(t))
	if fittest.Refused(t, "no weight", err, "step 1", "30 of 30 draws"); !errors.Is(err, bayes.ErrZeroWeights) {
		t.Errorf("no weight: %v", err)
	}
	a := pmcnet.PMC{Proposals: 20, Draws: 100, Iterations: 8, StdDev: .7}
	r, d := fittest.Sample[*pmcnet.Details](t, holed(0), a, goSettings(t))
	phi, err := compute.Float64s(r.Draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := bayes.NewLogWeights(r.Draws.LogWeights)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.
	for j, w := range weights.Weights() {
		mean += w * phi[2*j]
	}
	if d.Trace[0].NonFinite < 100 || math.Abs(mean+math.Sqrt(2/math.Pi)) > .05 || math.Abs(
		r.Draws.Evidence.Value-math.Log(math.Pi)) > .05 {
		t.Errorf("mean %v, evidence %+v, %+v", mean, r.Draws.Evidence, d.Trace[0])
	}
}

// K <= D with full covariances is shrunk, and a warning says so; more draws are not.
func TestShrinkage(t *testing.T) {
	problem := fittest.Density(fittest.Regression(5, 30, 1))
	r, d := fittest.Sample[*pmcnet.Details](t, problem, pmcnet.PMC{Proposals: 6, Iterations: 4, Draws: 3}, goSettings(t))
	fittest.Says(t, "3 draws", strings.Join(r.Warnings, ";"), "rank 2 in 5 dimensions", "shrunk by 0.62")
	if d.Trace[0].Replaced > 0 {
		t.Errorf("%+v", d.Trace[0])
	}
	r, _ = fittest.Sample[*pmcnet.Details](t, problem, pmcnet.PMC{Proposals: 6, Iterations: 4, Draws: 6}, goSettings(t))
	if said := strings.Join(r.Warnings, ";"); strings.Contains(said, "shrunk") {
		t.Errorf("6 draws: %s", said)
	}
}

// In more than a thousand dimensions covariances are diagonal, unless full ones are asked for.
func TestCovarianceOfMany(t *testing.T) {
	problem := density.Problem{Dim: 1001, Initial: fittest.Normal(1001),
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node { return graph.ReduceSum(graph.Neg(graph.Square(phi)), 1) })
		}}
	settings := goSettings(t)
	settings.Checkpoint = filepath.Join(t.TempDir(), "run")
	a := pmcnet.PMC{Proposals: 2, Draws: 3, Iterations: 1}
	fittest.Sample[*pmcnet.Details](t, problem, a, settings)
	a.Covariance = pmcnet.DiagonalCovariance // the same run
	fittest.Sample[*pmcnet.Details](t, problem, a, settings)
}
