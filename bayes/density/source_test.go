package density_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

func linear(t testing.TB, features int) *bayes.BoundModel {
	t.Helper()
	bound := computetest.Must(bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}.Bind(features, 1))
	return bound
}

func numbersOf(t testing.TB, input any) []float64 {
	t.Helper()
	numbers := computetest.Must(compute.Float64s(input.(*tensors.Tensor)))
	return numbers
}

// The sum over the blocks of a source, the last of which is padded, is the posterior of all rows in memory.
// SGLD with steps so small that its bias does not show has the posterior's mean within five
// standard errors; and every row is in one mini-batch of an epoch, and counts as much as any other: the estimates of an
// epoch have the posterior as their mean.
func TestProblemBySource(t *testing.T) {
	const n, features = 230, 3
	ctx, engine := context.Background(), computetest.Go(t)
	bound := linear(t, features)
	source := dataset.Simulated{N: n, Features: features, Noise: .5, Seed: 3}
	x, y := make([]float64, n*features), make([]float64, n)
	computetest.NoError(t, source.Read(ctx, 0, x, y))
	whole, err := density.NewProblem(engine, bound, compute.Floats(compute.Float64, x, n, features),
		compute.Floats(compute.Float64, y, n), nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, blocks := density.NewSourceProblem(bound, source,
		density.SourceSettings{BatchSize: 20, BlockRows: 50, Seed: 5, DType: compute.Float64})
	seen := map[float64]int{}
	perEpoch := 4*3 + 2 // four blocks of 50 rows and one of 30
	at := [][]float64{{.3, -.2, .5, .1}}
	gradient := computetest.Compile(t, engine, func(_ *graph.Graph, args []*graph.Node) []*graph.Node {
		value, gradient := problem.Target(nil, args[1:]).Gradient(args[0])
		return []*graph.Node{value, gradient}
	})
	mean := make([]float64, 1+bound.D)
	for move := range perEpoch {
		inputs := computetest.Must(problem.HostInputs.Inputs(ctx, 2*perEpoch+move, nil))
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
	evaluator := computetest.Must(density.NewEvaluator("test", engine, density.Problem{}, blocks, compute.Float64, false))
	defer evaluator.Close()
	sum := computetest.Must(evaluator.At(ctx, "all", mat.NewDense(1, bound.D, at[0]), 1,
		func(target density.Target, _ compute.Nodes, phi *graph.Node) *graph.Node {
			value, gradient := target.Gradient(phi)
			return graph.Concatenate([]*graph.Node{graph.ExpandAxes(value, 1), gradient}, 1)
		}))
	computetest.Near(t, "the sum over all blocks", sum, slices.Concat(exact...), 1e-9)

	result := computetest.Must(fit.Sample(ctx, problem, mcmc.Chains{
		Kernel: mcmc.SGLD{StepSize: 2e-4}, Chains: 4, Draws: 500, Thin: 4, WarmUp: 500,
	}, run.Settings{Seed: 1, Engine: engine, DType: compute.Float64}))
	r := fit.Details[*mcmc.Details](result)
	if r.Evaluations != (mcmc.Evaluations{PartialGradients: 8000, PartialShare: 20. / n}) {
		t.Errorf("evaluations %+v", r.Evaluations)
	}
	// The posterior's mean, of N(0, 1) and a noise of 1/2: (Z'Z/s^2 + I)^-1 Z'y/s^2, Z with a last column of 1.
	z := mat.NewDense(n, bound.D, nil)
	for i := range n {
		z.SetRow(i, append(slices.Clone(x[i*features:(i+1)*features]), 1))
	}
	var precision mat.Dense
	precision.Mul(z.T(), z)
	precision.Scale(4, &precision)
	for i := range bound.D {
		precision.Set(i, i, precision.At(i, i)+1)
	}
	var pull, want mat.VecDense
	pull.MulVec(z.T(), mat.NewVecDense(n, y))
	pull.ScaleVec(4, &pull)
	computetest.NoError(t, want.SolveVec(&precision, &pull))
	for k := range bound.D {
		mean := 0.0
		for _, chain := range r.Draws.Coordinate(k) {
			for _, v := range chain {
				mean += v / 2000
			}
		}
		// 8000 steps, which forget in 1/(2e-4/2 * 230/.25) = 11: about 360 effective draws of standard deviation .033
		if math.Abs(mean-want.AtVec(k)) > 5*.033/math.Sqrt(360) {
			t.Errorf("coordinate %d: mean %.4f, want %.4f", k, mean, want.AtVec(k))
		}
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
	settings := density.SourceSettings{BlockRows: 50, BatchSize: 50, DType: compute.Float32}
	_, blocks := density.NewSourceProblem(bound, failing{good}, settings)
	evaluator := computetest.Must(density.NewEvaluator("test", engine, density.Problem{}, blocks, compute.Float64, false))
	defer evaluator.Close()
	if _, err := evaluator.At(ctx, "all", mat.NewDense(1, bound.D, nil), 1,
		func(target density.Target, _ compute.Nodes, phi *graph.Node) *graph.Node {
			return target.LogDensity(phi)
		},
	); err == nil || !strings.Contains(err.Error(), "row 60 of the source") {
		t.Errorf("a NaN: %v", err)
	}
	good.Seed = 1
	problem, _ := density.NewSourceProblem(bound, failing{good},
		density.SourceSettings{BatchSize: 100, BlockRows: 200, DType: compute.Float32})
	_, err := fit.Sample(ctx, problem, mcmc.Chains{
		Kernel: mcmc.SGLD{StepSize: 1e-4}, Draws: 4, WarmUp: mcmc.NoWarmUp,
	}, run.Settings{Engine: engine})
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "rows 0 to 199 of the source") {
		t.Errorf("a source that fails: %v", err)
	}
}
