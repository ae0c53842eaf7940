package exchange_test

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/exchange"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// settings are a method's and its run's in one, as the tests of this package write them.
type settings struct {
	Ladder                     []float64
	Sets, WarmUp, Sweeps, Thin int
	Seed                       uint64
	DType                      compute.DType
	Engine                     *compute.Engine
	Checkpoint                 string
	CheckpointEvery            time.Duration
}

// result is a run's result with its details.
type result struct {
	*fit.Result
	*exchange.Details
	Phi                            *tensors.Tensor
	LogEvidence, LogEvidenceStdErr float64
}

func sample(ctx context.Context, problem density.Problem, kernel mcmc.Kernel, s settings) (*result, error) {
	r, err := fit.Sample(ctx, problem, exchange.Replicas{
		Kernel: kernel, Ladder: s.Ladder, Sets: s.Sets, WarmUp: s.WarmUp, Sweeps: s.Sweeps, Thin: s.Thin,
	}, run.Settings{
		Seed: s.Seed, DType: s.DType, Engine: s.Engine, Checkpoint: s.Checkpoint, CheckpointEvery: s.CheckpointEvery,
	})
	if r == nil {
		return nil, err
	}
	return &result{
		Result: r, Details: fit.Details[*exchange.Details](r), Phi: r.Draws.Phi,
		LogEvidence: r.Draws.Evidence.Value, LogEvidenceStdErr: r.Draws.Evidence.StdErr,
	}, err
}

// sampler samples one problem repeatedly, and compiles it once.
type sampler struct {
	Problem density.Problem
	Kernel  mcmc.Kernel
	number  uint64
}

var samplers atomic.Uint64

func (s *sampler) Sample(ctx context.Context, with settings) (*result, error) {
	if s.number == 0 {
		s.number = samplers.Add(1)
	}
	return sample(ctx, s.Problem.Keyed("test", s.number), s.Kernel, with)
}

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
