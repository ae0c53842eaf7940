package smc_test

import (
	"math"
	"math/rand/v2"
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
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// normals are draws of the prior of check.Line made on the host, [J, 3].
func normals(seed uint64, particles int) *tensors.Tensor {
	r := rand.New(rand.NewPCG(seed, 7))
	flat := make([]float64, 3*particles)
	for i := range flat {
		flat[i] = r.NormFloat64()
	}
	return compute.Floats(compute.Float64, flat, particles, 3)
}

// Particles that begin at Problem.Start have, in every bit, the result of a run whose Initial has drawn the same
// numbers, with kernels that begin with the log-density of these draws or with gradients there, and waste-free chains;
// all starts of one shape share the compiled programs.
func TestStart(t *testing.T) {
	const particles = 100
	engine := computetest.Go(t)
	for _, method := range []smc.Tempered{
		{Kernel: mcmc.RandomWalkMetropolis{}, Particles: particles, Moves: 2},
		{Kernel: mcmc.MALA{}, Particles: particles, Moves: 2, WasteFree: 2, Ladder: []float64{.1, 1}},
	} {
		s := run.Settings{Engine: engine, DType: compute.Float64}
		started := linear(check.Line())
		started.Initial = nil
		for seed := range uint64(2) {
			table, err := compute.Float64s(normals(seed, 4096)) // as many as are tried
			if err != nil {
				t.Fatal(err)
			}
			drawn := linear(check.Line())
			drawn.Initial = func(rng random.Stream, dtype compute.DType, n int) *graph.Node {
				return graph.Reshape(graph.ConvertDType(graph.Const(rng.Graph(), table[:3*n]), dtype), n, 3)
			}
			want, err := fit.Sample(t.Context(), drawn, method, s)
			if err != nil {
				t.Fatal(err)
			}
			before := engine.Compiled()
			started.Start = compute.Floats(compute.Float64, table[:3*particles], particles, 3)
			got, err := fit.Sample(t.Context(), started.Keyed("test", t.Name()), method, s)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			if made := engine.Compiled() - before; made > 0 && seed > 0 || made == 0 && seed == 0 {
				t.Errorf("%T: start %d compiled %d times", method.Kernel, seed, made)
			}
		}
	}
}

// Particles that are clearly no draws of LogPrior, such as those of a posterior, are refused: the evidence would be
// wrong in silence. Where they lie in some order all of them are looked at, and of a Folded target none is.
func TestStartIsNoDraw(t *testing.T) {
	of := func(particles int, edit func(i int, z float64) float64) *tensors.Tensor {
		flat, err := compute.Float64s(normals(1, particles))
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range flat {
			flat[i] = edit(i, z)
		}
		return compute.Floats(compute.Float64, flat, particles, 3)
	}
	const particles = 10_000
	none := func(_ int, z float64) float64 { return z }
	posterior := func(_ int, z float64) float64 { return 2 + z/5 }
	for _, c := range []struct {
		what   string
		start  *tensors.Tensor
		folded bool
		says   string
	}{
		{"draws of the prior", of(particles, none), false, ""},
		{"draws of a posterior", of(particles, posterior), false, "Problem.Start and the target's LogPrior are different"},
		{"few draws of a posterior", of(500, posterior), false, "leave it out"},
		{"the second half of a posterior", of(particles, func(i int, z float64) float64 {
			if i < 3*particles/2 {
				return z
			}
			return posterior(i, z)
		}), false, "Problem.Start and"},
		{"positive draws", of(particles, func(_ int, z float64) float64 { return math.Abs(z) }), false, "Problem.Start and"},
		{"one image of each draw", of(particles, func(_ int, z float64) float64 { return math.Abs(z) }), true, ""},
	} {
		problem := linear(check.Line())
		problem.Initial, problem.Start = nil, c.start
		if target := problem.Target; c.folded {
			problem.Target = func(data compute.Nodes, inputs []*graph.Node) density.Target {
				return folded{target(data, inputs).(smc.Posterior)}
			}
		}
		_, err := fit.Sample(t.Context(), problem,
			smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Particles: c.start.Shape().Dim(0), Moves: 1},
			run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.says)
		}
	}
}

// folded is a target whose particles may begin at one image each.
type folded struct{ smc.Posterior }

func (folded) Folded() {}
