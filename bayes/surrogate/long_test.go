//go:build long

package surrogate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// network is f of the network 10-10-1 with parameters theta, [121], at x, [10].
func network(theta, x []float64) float64 {
	f := theta[120]
	for unit := range 10 {
		a := theta[100+unit]
		for k, v := range x {
			a += v * theta[unit*10+k]
		}
		f += math.Tanh(a) * theta[110+unit]
	}
	return f
}

// At 10 000 rows of y = f(x) + .3 eps a surrogate of 300 rows is so wrong that one trajectory in 20 is accepted: the
// means of f at 50 places are those of the target's gradient all the same, within four Monte Carlo errors of both.
// Accepted by the surrogate alone, which is no density, most are outside of that: its chains soon stand still.
func TestSurrogateExactLong(t *testing.T) {
	engine := computetest.XLA(t, "10 000 rows are slow on the Go backend")
	const n, chains = 10_000, 4
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}
	bound, err := model.Bind(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(18, 1))
	normals := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	truth, x, y, places := normals(bound.D), normals(10*n), normals(n), normals(10*50)
	for i := range y {
		y[i] = network(truth, x[10*i:10*i+10]) + .3*y[i]
	}
	problem := givenRows(t, engine, bound, compute.Floats(compute.Float32, x, n, 10),
		compute.Floats(compute.Float32, y, n))
	mode, err := findMode(t.Context(), problem, truth, engine)
	if err != nil {
		t.Fatal(err)
	}
	w, err := whitenedAt(t.Context(), problem, mode, engine)
	if err != nil {
		t.Fatal(err)
	}
	part, err := problem.part(300)
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.expand(t.Context(), engine, part)
	if err != nil {
		t.Fatal(err)
	}
	type moments struct{ mean, err float64 }
	sample := func(of density.Problem, kernel splitHMC, draws, warmUp int) (all [50]moments, acceptance float64) {
		r, err := chainsOf(t.Context(), of, mcmc.Chains{Kernel: kernel, Chains: chains, Draws: draws, WarmUp: warmUp},
			run.Settings{Seed: 5, Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			var f []float64
			for chain := range chains {
				for draw := range draws {
					f = append(f, network(r.Draws.At(chain, draw), places[10*i:10*i+10]))
				}
			}
			found, err := diag.OfSample(diag.Sample{Values: f, Chains: chains, Draws: draws, Parameters: 1})
			if err != nil {
				t.Fatal(err)
			}
			mean, sd := stat.MeanStdDev(f, nil)
			all[i] = moments{mean, sd / math.Sqrt(found.Rows[0].BulkESS)}
		}
		return all, acceptanceOf(r)
	}
	right, _ := sample(w.near(problem, nil, chains, compute.Float32), splitHMC{StepSize: .75, Steps: 2}, 10_000, 200)
	with := w.near(problem, c, chains, compute.Float32)
	kernel := splitHMC{StepSize: .75, Steps: 2, Jitter: .1, OnSurrogate: true, Share: .01}
	judged, acceptance := sample(with, kernel, 20_000, 200)
	if acceptance < .02 || acceptance > .2 {
		t.Errorf("acceptance %.3f, want .02 to .2", acceptance)
	}
	unjudged := with
	unjudged.Target = func(data compute.Nodes, inputs []*graph.Node) density.Target {
		target := with.Target(data, inputs).(surrogated)
		target.Target = target.cheap
		return target
	}
	alone, _ := sample(unjudged, kernel, 20_000, mcmc.NoWarmUp)
	outside := 0
	for i, want := range right {
		limit := 4 * math.Hypot(want.err, judged[i].err)
		if off := judged[i].mean - want.mean; math.Abs(off) > limit {
			t.Errorf("mean of f at place %d: %.5f, want %.5f within %.5f", i, judged[i].mean, want.mean, limit)
		}
		if !(math.Abs(alone[i].mean-want.mean) <= limit) {
			outside++
		}
	}
	if t.Logf("acceptance %.3f; by the surrogate alone %d means are outside", acceptance, outside); outside < 25 {
		t.Errorf("by the surrogate alone %d of 50 means are outside of four Monte Carlo errors, want at least half", outside)
	}
}
