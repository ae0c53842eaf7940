package pmcnet_test

import (
	"cmp"
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
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// line is the harness's regression as a dataset, and as a model: a network without hidden layers.
func line(t *testing.T) (bayes.Model, dataset.Parts, check.Linear) {
	t.Helper()
	l := check.Line()
	d := len(l.X[0]) - 1 // the last is the intercept's
	x := mat.NewDense(len(l.Y), d, nil)
	for n, row := range l.X {
		x.SetRow(n, row[:d])
	}
	data := &dataset.Dataset{
		Name: "line", Task: bayes.Regression, X: x, Y: l.Y, Features: []string{"a", "b"}, Target: "y",
	}
	model := bayes.Model{ // Stochastic is All by default
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: l.NoiseStdDev}, Prior: bayes.Normal{StdDev: 1},
	}
	return model, dataset.Parts{Train: data}, l
}

func goSettings(t *testing.T) run.Settings {
	return run.Settings{Seed: 2, Engine: computetest.Go(t), DType: compute.Float64}
}

// A network's posterior and evidence are the exact ones, from every start, with PMCnet-light, and after Save and Load;
// and the posterior knows k-hat, ESS and its algorithm. On XLA the programs have loops.
func TestFit(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		settings := goSettings(t)
		settings.Engine = engine
		t.Run(engine.Name(), func(t *testing.T) { testFit(t, settings) })
	}
}

func testFit(t *testing.T, settings run.Settings) {
	model, parts, l := line(t)
	_, _, want := l.Posterior()
	small := pmcnet.PMC{Proposals: 10, Draws: 100, Iterations: 6, StdDev: .4}
	for name, change := range map[string]func(a *pmcnet.PMC){
		"MLE":   func(*pmcnet.PMC) {},
		"prior": func(a *pmcnet.PMC) { a.Start = pmcnet.FromPrior },
		"light": func(a *pmcnet.PMC) { a.Ascent, a.BatchSize = pmcnet.MiniBatchAscent, 5 },
	} {
		a := small
		change(&a)
		if name != "light" && settings.Engine.IsXLA() {
			continue // each compiles for seconds
		}
		r, err := fitted(t.Context(), model, a, parts, settings)
		if err != nil {
			t.Fatal(name, err)
		}
		p := r.Posterior
		e := p.Evidence()
		if math.Abs(e.Value-want) > 5*e.StdErr || !(e.StdErr < .1) || r.Evidence != e || p.Bound().W != 0 {
			t.Errorf("%s: evidence %+v, exact %.3f; %v", name, e, want, r.Warnings)
		}
		if d := p.Diagnostics(); d["k-hat"] != r.KHat || d["effective sample size"] != r.ESS || !(r.KHat < .7) {
			t.Errorf("%s: diagnostics %v, ESS %v, k-hat %v", name, d, r.ESS, r.KHat)
		}
		covariances := map[string]pmcnet.Covariance{"light": pmcnet.DiagonalCovariance}
		covariance := fmt.Sprintf(`"covariance":%q`, cmp.Or(covariances[name], "full"))
		if at := p.Provenance(); !strings.Contains(at.Algorithm, "PMCnet") || at.Seed != 2 || !strings.Contains(
			string(at.Settings), covariance) {
			t.Errorf("%s: provenance %+v", name, at)
		}
		file := filepath.Join(t.TempDir(), "posterior")
		if err := p.Save(file); err != nil {
			t.Fatal(err)
		}
		loaded, err := bayes.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(numbers(t, loaded), numbers(t, p)) || loaded.Evidence() != e {
			t.Errorf("%s: a loaded posterior has other numbers", name)
		}
		scores, err := metric.Of(t.Context(), p, parts.Train)
		if err != nil || !(scores[0].Value < 1.5) {
			t.Errorf("%s: scores %v, %v", name, scores, err)
		}
	}
}

// unnormalised is a Gaussian likelihood without its constant.
type unnormalised struct{ bayes.Gaussian }

func (u unnormalised) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	return graph.AddScalar(u.Gaussian.LogDensity(params, outputs, y), 1)
}

// Settings that are out of bounds are refused by name, with what they must be.
func TestBadInput(t *testing.T) {
	model, parts, l := line(t)
	good := problem(l)
	for _, c := range []struct {
		name string
		a    pmcnet.PMC
		says []string
	}{
		{"M", pmcnet.PMC{Proposals: -1}, []string{"PMC.Proposals", "-1", "at least 1"}},
		{"K", pmcnet.PMC{Draws: -3}, []string{"PMC.Draws", "-3", "at least 1"}},
		{"M beyond memory", pmcnet.PMC{Proposals: 1 << 45}, []string{"PMC.Proposals", "fewer", "in memory"}},
		{"K beyond memory", pmcnet.PMC{Draws: 1 << 60}, []string{"PMC.Draws", "fewer", "in memory"}},
		{"T", pmcnet.PMC{Iterations: -1}, []string{"PMC.Iterations", "-1"}},
		{"sigma", pmcnet.PMC{StdDev: -.1}, []string{"PMC.StdDev", "-0.1", "positive"}},
		{"sigma NaN", pmcnet.PMC{StdDev: math.NaN()}, []string{"PMC.StdDev", "NaN"}},
		{"noise", pmcnet.PMC{Noise: -1}, []string{"PMC.Noise", "-1"}},
		{"covariance", pmcnet.PMC{Covariance: "round"}, []string{"PMC.Covariance", "round", "full"}},
		{"light with full covariances", pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent,
			Covariance: "full"}, []string{"PMC.Covariance is full", "DiagonalCovariance", "left out"}},
		{"ascent", pmcnet.PMC{Ascent: "steep"}, []string{"PMC.Ascent", "steep", "mini-batch"}},
		{"weights", pmcnet.PMC{Weights: "heavy"}, []string{"PMC.Weights", "heavy", "honest"}},
		{"resampling", pmcnet.PMC{Resampling: -2}, []string{"PMC.Resampling", "-2"}},
		{"light without rows", pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent}, []string{"without mini-batches", "PMC.Ascent"}},
		{"MLE of a log-density", pmcnet.PMC{Start: "MLE"}, []string{"PMC.Start", "Problem.Start"}},
	} {
		_, err := sampled(t.Context(), good, c.a, goSettings(t))
		says(t, c.name, err, c.says...)
	}
	for name, c := range map[string]struct {
		change func(p *density.Problem)
		says   []string
	}{
		"no target":    {func(p *density.Problem) { p.Target = nil }, []string{"Problem.Target"}},
		"no prior":     {func(p *density.Problem) { p.Initial = nil }, []string{"Problem.Initial"}},
		"no dimension": {func(p *density.Problem) { p.Dim = 0 }, []string{"Problem.Dim"}},
		"inputs":       {func(p *density.Problem) { p.Inputs = func(int) []any { return nil } }, []string{"Problem.Inputs"}},
		"start": {func(p *density.Problem) { p.Start = tensors.FromValue([][]float64{{1, 2, 3}}) },
			[]string{"Problem.Start", "[50, 3]"}},
	} {
		p := good
		c.change(&p)
		_, err := sampled(t.Context(), p, pmcnet.PMC{}, goSettings(t))
		says(t, name, err, c.says...)
	}
	settings := goSettings(t)
	settings.Observe = func(int, *bayes.Posterior) error { return nil }
	_, err := sampled(t.Context(), good, pmcnet.PMC{}, settings)
	says(t, "observe", err, "Observe", "fit.SampleSteps")
	a := pmcnet.PMC{Ascent: pmcnet.MiniBatchAscent, BatchSize: 99}
	_, err = fitted(t.Context(), model, a, parts, goSettings(t))
	says(t, "batch size", err, "BatchSize", "99")

	// A likelihood without its normalising constant has no evidence: the model does not bind.
	model.Likelihood = unnormalised{bayes.Gaussian{StdDev: .5}}
	_, err = fitted(t.Context(), model, pmcnet.PMC{}, parts, goSettings(t))
	says(t, "unnormalised", err, "unnormalised", "Predictive")
}

func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the error %q does not say %q", what, err, w)
		}
	}
}

// holed is a problem whose density is nowhere above 0, or NaN beyond a bound.
func holed(bound float64) density.Problem {
	return density.Problem{
		Dim: 2,
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node {
			return rng.Normal(dtype, particles, 2)
		},
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node {
				first := graph.Squeeze(graph.Slice(phi, graph.AxisRange(), graph.AxisElem(0)), 1)
				beyond := graph.GreaterThan(first, graph.ConstAs(first, bound))
				nan := graph.Sqrt(graph.AddScalar(graph.MulScalar(first, 0), -1))
				return graph.Where(beyond, nan, graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -.5))
			})
		},
	}
}

// Where no draw of the first iteration has any weight the run ends with an error that says so; where some have none,
// they are counted, and the others are the posterior of what is left: half a Gaussian, of mean -sqrt(2/pi).
func TestHoles(t *testing.T) {
	_, err := sampled(t.Context(), holed(-1e3), pmcnet.PMC{Proposals: 3, Draws: 10}, goSettings(t))
	if says(t, "no weight", err, "step 1", "30 of 30 draws"); !errors.Is(err, bayes.ErrZeroWeights) {
		t.Errorf("no weight: %v", err)
	}
	a := pmcnet.PMC{Proposals: 20, Draws: 100, Iterations: 8, StdDev: .7}
	r, err := sampled(t.Context(), holed(0), a, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	phi, err := compute.Float64s(r.Phi)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.
	for j, w := range r.LogWeights.Weights() {
		mean += w * phi[2*j]
	}
	if r.Trace[0].NonFinite < 100 || math.Abs(mean+math.Sqrt(2/math.Pi)) > .05 || math.Abs(
		r.Evidence.Value-math.Log(math.Pi)) > .05 {
		t.Errorf("mean %v, evidence %+v, %+v", mean, r.Evidence, r.Trace[0])
	}
}

// K <= D with full covariances is shrunk, which is said; more draws are not.
func TestShrinkage(t *testing.T) {
	l := regression(5, 30, 1)
	a := pmcnet.PMC{Proposals: 6, Iterations: 4}
	for _, a.Draws = range []int{3, 6} {
		r, err := sampled(t.Context(), problem(l), a, goSettings(t))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(r.Warnings, ";")
		if a.Draws > 5 {
			if strings.Contains(said, "shrunk") {
				t.Errorf("%d draws: %s", a.Draws, said)
			}
			continue
		}
		if r.Trace[0].Replaced > 0 {
			t.Errorf("%+v", r.Trace[0])
		}
		says(t, "shrunk", errors.New(said), "rank 2 in 5 dimensions", "shrunk by 0.62")
	}
}

// In more than a thousand dimensions covariances are diagonal, unless full ones are asked for.
func TestCovarianceOfMany(t *testing.T) {
	const d = 1000 // and the intercept
	data := &dataset.Dataset{Name: "wide", X: mat.NewDense(5, d, nil), Y: []float64{1, 2, 3, 4, 6}, Target: "y"}
	for k := range d {
		data.Features = append(data.Features, fmt.Sprint("x", k))
		for i := range data.Y {
			data.X.(*mat.Dense).Set(i, k, float64((i*(k+1))%7))
		}
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 1}}
	a := pmcnet.PMC{Proposals: 2, Draws: 3, Iterations: 1, Start: pmcnet.FromPrior}
	r, err := fitted(t.Context(), model, a, dataset.Parts{Train: data}, goSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	if settings := string(r.Posterior.Provenance().Settings); !strings.Contains(settings, `"covariance":"diagonal"`) {
		t.Errorf("settings %s", settings)
	}
}
