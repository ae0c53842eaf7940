package density_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

func linear(t testing.TB, features int) *bayes.BoundModel {
	t.Helper()
	bound, err := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(features, 1)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func numbersOf(t testing.TB, input any) []float64 {
	t.Helper()
	numbers, err := compute.Float64s(input.(*tensors.Tensor))
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// The mode and the Hessian by blocks of a source, the last of which is padded, are those of all rows in memory.
// SGLD with steps so small that its bias does not show has the posterior's mean, which is the mode, within five
// standard errors; and every row is in one mini-batch of an epoch, and counts as much as any other: the estimates of an
// epoch have the posterior as their mean.
func TestProblemBySource(t *testing.T) {
	const n, features = 230, 3
	ctx, engine := context.Background(), computetest.Go(t)
	bound := linear(t, features)
	source := dataset.Simulated{N: n, Features: features, Informative: 2, Noise: .5, Seed: 3}
	x, y := make([]float64, n*features), make([]float64, n)
	if err := source.Read(ctx, 0, x, y); err != nil {
		t.Fatal(err)
	}
	whole, err := density.NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, features),
		compute.Floats(compute.Float64, y, n), nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, err := density.NewSourceProblem(bound, source, nil,
		density.SourceSettings{BatchSize: 20, BlockRows: 50, Seed: 5, DType: compute.Float64})
	if err != nil {
		t.Fatal(err)
	}
	var found []*mcmc.Whitening
	for _, p := range []mcmc.Problem{whole, problem} {
		mode, err := mcmc.FindMode(ctx, p, mcmc.ModeSettings{Start: make([]float64, bound.D), Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		w, err := mcmc.NewWhitening(ctx, p, mode, mcmc.WhiteningSettings{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, w)
	}
	computetest.Near(t, "the mode", found[1].Mode, found[0].Mode, 1e-7)
	computetest.Near(t, "the log-density", []float64{found[1].LogDensity}, []float64{found[0].LogDensity}, 1e-9)
	computetest.Near(t, "the Hessian's factor", found[1].ToZ, found[0].ToZ, 1e-5)

	seen := map[float64]int{}
	perEpoch := 4*3 + 2 // four blocks of 50 rows and one of 30
	at := [][]float64{{.3, -.2, .5, .1}}
	gradient := computetest.Compile(t, engine, func(_ *graph.Graph, args []*graph.Node) []*graph.Node {
		value, gradient := problem.Target(nil, args[1:]).Gradient(args[0])
		return []*graph.Node{value, gradient}
	})
	mean := make([]float64, 1+bound.D)
	for move := range perEpoch {
		inputs, err := problem.HostInputs.Inputs(ctx, 2*perEpoch+move, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range slices.Concat(gradient(append([]any{at}, inputs...)...)...) {
			mean[i] += v / float64(perEpoch)
		}
		numbers := numbersOf(t, inputs[1])
		for i := range int(numbersOf(t, inputs[2])[0]) {
			seen[numbers[i]]++
		}
	}
	for _, v := range y {
		if seen[v] != 1 {
			t.Fatalf("a row is in %d mini-batches of an epoch", seen[v])
		}
	}
	exact := computetest.Run(t, engine, func(_ *graph.Graph, args []*graph.Node) []*graph.Node {
		value, gradient := whole.Target(compute.Nodes{"features": args[1], "y": args[2]}, nil).Gradient(args[0])
		return []*graph.Node{value, gradient}
	}, at, whole.Data["features"], whole.Data["y"])
	computetest.Near(t, "the mean over an epoch", mean, slices.Concat(exact...), 1e-9)

	r, err := mcmc.Sample(ctx, problem, mcmc.SGLD{StepSize: 2e-4}, mcmc.Settings{
		Chains: 4, Draws: 500, Thin: 4, WarmUp: 500, Seed: 1, Engine: engine, DType: compute.Float64,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Evaluations != (mcmc.Evaluations{PartialGradients: 8000, PartialShare: 20. / n}) {
		t.Errorf("evaluations %+v", r.Evaluations)
	}
	for k := range bound.D {
		mean := 0.0
		for _, chain := range r.Draws.Coordinate(k) {
			for _, v := range chain {
				mean += v / 2000
			}
		}
		// 8000 steps, which forget in 1/(2e-4/2 * 230/.25) = 11: about 360 effective draws of standard deviation .033
		if math.Abs(mean-found[0].Mode[k]) > 5*.033/math.Sqrt(360) {
			t.Errorf("coordinate %d: mean %.4f, want %.4f", k, mean, found[0].Mode[k])
		}
	}
}

// A checkpoint resumes with the source that it was made with, and not with another of the same type and size.
func TestCheckpointOfASource(t *testing.T) {
	settings := mcmc.Settings{
		Chains: 1, Draws: 5, WarmUp: mcmc.NoWarmUp, Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "run"),
	}
	sample := func(seed uint64) error {
		problem, err := density.NewSourceProblem(linear(t, 2), dataset.Simulated{N: 50, Features: 2, Seed: seed}, nil,
			density.SourceSettings{BatchSize: 10, BlockRows: 20, Chains: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = mcmc.Sample(t.Context(), problem, mcmc.SGLD{StepSize: 1e-4}, settings)
		return err
	}
	for _, seed := range []uint64{1, 1} {
		if err := sample(seed); err != nil {
			t.Fatal(err)
		}
	}
	if err := sample(2); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("another source: %v", err)
	}
}

// Many rows in memory are evaluated in blocks, the last of which is padded: with the same mode and Hessian.
func TestBlocksInMemory(t *testing.T) {
	const n = 2*8192 + 5
	engine := computetest.Go(t)
	bound := linear(t, 1)
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(i * i))
		y[i] = 1 + x[i]/2 + math.Cos(float64(i*i*i))
	}
	problem, err := density.NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, 1),
		compute.Floats(compute.Float64, y, n), nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if problem.Blocks == nil || problem.Blocks.Count != 3 {
		t.Fatalf("blocks: %+v", problem.Blocks)
	}
	whitening := func() *mcmc.Whitening {
		w, err := mcmc.NewWhitening(t.Context(), problem, []float64{.5, 1}, mcmc.WhiteningSettings{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	inBlocks := whitening()
	problem.Blocks = nil
	whole := whitening()
	computetest.Near(t, "the mode", inBlocks.Mode, whole.Mode, 1e-9)
	computetest.Near(t, "the Hessian's factor", inBlocks.ToZ, whole.ToZ, 1e-4)
}

// Where all weights are 0 a network's posterior has a saddle: of two tanh units, two directions fall. The Hessian of
// Gauss and Newton has there the prior's 1 and, in the last bias, n/s^2 of the rows.
func TestGaussNewton(t *testing.T) {
	const n = 40
	engine := computetest.Go(t)
	bound, err := bayes.Model{
		Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = (float64(i) - (n-1)/2.) / 10
	}
	line := compute.Floats(compute.Float64, x, n)
	problem, err := density.NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, 1), line, nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	find := func() *mcmc.Whitening {
		w, err := mcmc.NewWhitening(t.Context(), problem, make([]float64, 7), mcmc.WhiteningSettings{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := find()
	if w.Negative != 2 || !w.GaussNewton || len(w.Notes) != 1 ||
		!strings.Contains(w.Notes[0], "2 of 7 eigenvalues") || !strings.Contains(w.Notes[0], "Gauss and Newton") {
		t.Errorf("%+v", w)
	}
	want := make([]float64, 49)
	for i := range 7 {
		want[8*i] = 1
	}
	want[48] = math.Sqrt(1 + n/.25)
	computetest.Near(t, "the factor of the Hessian", w.ToZ, want, 1e-5)
	problem.Part = nil
	if w := find(); w.Negative != 2 || w.GaussNewton || !strings.Contains(w.Notes[0], "absolute value") {
		t.Errorf("without parts: %+v", w)
	}
}

// failing is a source that cannot be read from row 100 on, and has a NaN in row 60.
type failing struct{ dataset.Simulated }

var errDisk = errors.New("the disk is gone")

func (f failing) Read(ctx context.Context, from int, x, y []float64) error {
	if from+len(y) > 100 {
		return errDisk
	}
	err := f.Simulated.Read(ctx, from, x, y)
	if from <= 60 && from+len(y) > 60 {
		x[(60-from)*f.Features+1] = math.NaN()
	}
	return err
}

func TestSourceBadInput(t *testing.T) {
	ctx, engine := context.Background(), computetest.Go(t)
	bound := linear(t, 3)
	good := dataset.Simulated{N: 200, Features: 3}
	for want, c := range map[string]struct {
		source   dataset.Source
		settings density.SourceSettings
	}{
		"200 rows of 2 features": {dataset.Simulated{N: 200, Features: 2}, density.SourceSettings{}},
		"0 rows":                 {dataset.Simulated{Features: 3}, density.SourceSettings{}},
		"BatchSize 60":           {good, density.SourceSettings{BatchSize: 60, BlockRows: 50}},
		"BlockRows 201":          {good, density.SourceSettings{BlockRows: 201}},
	} {
		if _, err := density.NewSourceProblem(bound, c.source, nil, c.settings); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	problem, err := density.NewSourceProblem(bound, failing{good}, nil, density.SourceSettings{BlockRows: 50, BatchSize: 50})
	if err != nil {
		t.Fatal(err)
	}
	start := mcmc.ModeSettings{Start: make([]float64, bound.D), Engine: engine}
	if _, err := mcmc.FindMode(ctx, problem, start); err == nil || !strings.Contains(err.Error(), "row 60 of the source") {
		t.Errorf("a NaN: %v", err)
	}
	problem.Blocks.Count = 0
	if _, err := mcmc.FindMode(ctx, problem, start); err == nil || !strings.Contains(err.Error(), "Count 0") {
		t.Errorf("no blocks: %v", err)
	}
	good.Seed = 1
	problem, err = density.NewSourceProblem(bound, failing{good}, nil,
		density.SourceSettings{BatchSize: 100, BlockRows: 200})
	if err != nil {
		t.Fatal(err)
	}
	_, err = mcmc.Sample(ctx, problem, mcmc.SGLD{StepSize: 1e-4},
		mcmc.Settings{Draws: 4, WarmUp: mcmc.NoWarmUp, Engine: engine})
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "rows 0 to 199 of the source") {
		t.Errorf("a source that fails: %v", err)
	}
}
