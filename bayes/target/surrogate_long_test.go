//go:build long

package target_test

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/diag"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/stat"
)

// surrogateData is the environment variable that names the file of 100 000 rows, made by numpy's default_rng(18): per
// layer W = standard_normal((in, out)), b = standard_normal(out), then x_test [50, 10], x [N, 10] and the noise [N].
const surrogateData = "GOBNN_SURROGATE_DATA"

// outputs are f at the test points, [draws of all chains] each, of the network 10-10-1.
func (s simulated) outputs(t testing.TB, draws *mcmc.Draws) [][]float64 {
	t.Helper()
	x, err := compute.Float64s(s.test)
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]float64, len(x)/10)
	for chain := range draws.Chains {
		for draw := range draws.PerChain {
			theta := draws.At(chain, draw)
			for row := range all {
				f := theta[120]
				for unit := range 10 {
					a := theta[100+unit]
					for k := range 10 {
						a += x[row*10+k] * theta[unit*10+k]
					}
					f += math.Tanh(a) * theta[110+unit]
				}
				all[row] = append(all[row], f)
			}
		}
	}
	return all
}

// ess is, for each output, the smaller ESS of q and of (q - mean)^2, at most the number of draws.
func ess(t testing.TB, chains int, outputs [][]float64) []float64 {
	t.Helper()
	var all []float64
	for _, q := range outputs {
		mean := stat.Mean(q, nil)
		values := make([]float64, 0, 2*len(q))
		for _, v := range q {
			values = append(values, v, (v-mean)*(v-mean))
		}
		c, err := diag.New(diag.Sample{Values: values, Chains: chains, Draws: len(q) / chains, Parameters: 2})
		if err != nil {
			t.Fatal(err)
		}
		least := float64(len(q))
		for parameter := range 2 {
			n, err := c.ESS(parameter, diag.Mean)
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, n)
		}
		all = append(all, least)
	}
	slices.Sort(all)
	return all
}

// At 100 000 rows a surrogate of 1000 pays: the numbers of an independent study, within its bands. Reference means of f
// are within four Monte Carlo errors of both.
func TestSurrogatesLong(t *testing.T) {
	path := os.Getenv(surrogateData)
	if path == "" {
		t.Skipf("%s names no file: it is safetensors with theta_true, x, y and x_test, as the comment there says",
			surrogateData)
	}
	engine := computetest.Engines(t)[0]
	if !engine.IsXLA() {
		t.Skip("100 000 rows are slow on the Go backend")
	}
	const chains = 4
	ctx := context.Background()
	s := readSimulated(t, path)
	n := float64(s.x.Shape().Dim(0))
	problem := s.problem(t, engine, chains)
	mode, err := mcmc.FindMode(ctx, problem, mcmc.ModeSettings{Start: s.truth, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	w, err := mcmc.NewWhitening(ctx, problem, mode, mcmc.WhiteningSettings{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("U(c) %.5f, decrement %.2g, Hessian %v with %d gradients", s.potential(w.LogDensity), w.Decrement, w.Elapsed,
		w.Gradients)
	if u := s.potential(w.LogDensity); math.Abs(u-49935.05527) > 1e-3 {
		t.Errorf("U(c) = %.5f, the reference 49935.05527", u)
	}
	run := func(name string, kernel mcmc.SplitHMC, problem mcmc.Problem, draws int) (perForward, perSecond float64) {
		r, err := mcmc.Sample(ctx, problem, kernel, mcmc.Settings{
			Chains: chains, Draws: draws, WarmUp: 20, Seed: 5, Engine: engine,
		})
		if err != nil {
			t.Fatal(err)
		}
		outputs := s.outputs(t, r.Draws)
		sizes := ess(t, chains, outputs)
		median := (sizes[24] + sizes[25]) / 2
		acceptance := 0.0
		for _, c := range r.Stats {
			acceptance += c.Acceptance / chains
		}
		perForward, perSecond = median/r.Evaluations.Forwards(), median/r.Sampling.Seconds()
		t.Logf("%-12s acceptance %.3f, ESS of f median %.0f, least %.0f of %d, %.4f a forward, %.1f a second (%v)", name,
			acceptance, median, sizes[0], chains*draws, perForward, perSecond, r.Sampling)
		if draws < 1000 {
			return perForward, perSecond
		}
		if acceptance < .84 || acceptance > .94 {
			t.Errorf("acceptance %.3f, want .84 to .94", acceptance)
		}
		if perForward < .45 || perForward > .8 {
			t.Errorf("ESS of the median f %.3f a forward, want .45 to .8", perForward)
		}
		for i, want := range []float64{2.62766, 1.72397, -8.67624, -8.86652, -5.19012} {
			own := ess(t, chains, outputs[i:i+1])[0]
			mean, sd := stat.MeanStdDev(outputs[i], nil)
			limit := 4 * math.Hypot(sd/math.Sqrt(own), .00035)
			if math.Abs(mean-want) > limit {
				t.Errorf("mean of f at test point %d: %.5f, want %.5f within %.5f", i, mean, want, limit)
			}
			if wantSD := []float64{.00941, .00838, .00713, .00860, .01347}[i]; math.Abs(sd/wantSD-1) > .1 {
				t.Errorf("sd of f at test point %d: %.5f, want %.5f", i, sd, wantSD)
			}
		}
		return perForward, perSecond
	}
	on, err := w.On(problem, chains, compute.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	bestForward, bestSecond := 0.0, 0.0
	for _, k := range []mcmc.SplitHMC{
		{StepSize: math.Pi / 2, Steps: 1}, {StepSize: 1.2, Steps: 1}, {StepSize: .75, Steps: 2}, {StepSize: .5, Steps: 3},
	} {
		f, sec := run("S0", k, on, 500)
		bestForward, bestSecond = max(bestForward, f), max(bestSecond, sec)
	}
	part, err := problem.Part(1000, mode)
	if err != nil {
		t.Fatal(err)
	}
	with, err := w.WithSurrogate(ctx, engine, problem, part, chains, compute.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	kernel := mcmc.SplitHMC{StepSize: .75, Steps: 2, Jitter: .1, OnSurrogate: true, Share: 1000 / n}
	f, sec := run("S1 "+part.Name, kernel, with, 1250)
	t.Logf("ratio to the best S0: %.2f a forward, %.2f a second", f/bestForward, sec/bestSecond)
	if f/bestForward < 3 || f/bestForward > 5 {
		t.Errorf("ratio to the best S0 a forward %.2f, want 3 to 5", f/bestForward)
	}
	if sec/bestSecond < 2.3 {
		t.Errorf("ratio to the best S0 a second %.2f, want at least 2.3", sec/bestSecond)
	}
}
