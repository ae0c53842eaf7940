package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/fbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Theorems 3.1 to 3.3 of Moslemi et al. 2024: an emulator can be made as exact as one likes, and the posterior's error,
// in Hellinger's distance, is then at most in proportion to the emulator's. Here both errors are known: a logistic
// regression of two weights, whose posterior is summed on a grid, beside the posterior of emulators from more and more
// pairs. For small errors 8 d^2 is the variance of Phi - Phi_e under the posterior, since an error that is the same
// everywhere changes nothing.

// theoremPairs are the numbers of pairs that the emulators learn from.
var theoremPairs = []int{10, 20, 40, 80, 160, 320}

// theoremVersion is part of the key of kept results.
const theoremVersion = 1

// theoremSide is the number of points along each side of the grid, from -theoremReach to it, in standard deviations of
// the prior.
const (
	theoremSide  = 81
	theoremReach = 4.
)

// theoremRows draws 40 rows of a logistic regression.
func theoremRows(repetition int) *dataset.Dataset {
	const rows = 40
	rng := rand.New(rand.NewPCG(uint64(repetition), 3))
	x, y := mat.NewDense(rows, 1, nil), make([]float64, rows)
	for n := range y {
		x.Set(n, 0, rng.NormFloat64())
		if rng.Float64() < 1/(1+math.Exp(-1.2*x.At(n, 0)+.4)) {
			y[n] = 1
		}
	}
	return &dataset.Dataset{Name: "logistic", Task: dataset.BinaryClassification, Features: []string{"x"}, Target: "y",
		Classes: []string{"0", "1"}, X: x, Y: y}
}

func theoremTrials(o Options) (all []*trial, err error) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Bernoulli{}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.All(), Scaling: bayes.Scaling{KeepFeatures: true}}
	for _, pairs := range theoremPairs {
		method := fbnn.CES{Pairs: pairs, PairsThin: 5, Draws: 100, PaperMode: true,
			Calibration: mcmc.PreconditionedCrankNicolson{Beta: .7},
			Regressor:   fbnn.Network{Hidden: []int{32}, Activations: []nn.Activation{nn.Tanh}, Epochs: 1000}}
		key := Key{Study: "fbnn.theorems", Data: "logistic", Method: fmt.Sprintf("%d pairs", pairs),
			Settings: map[string]any{"version": theoremVersion, "method": method, "side": theoremSide}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			result, err := fit.Fit(ctx, model, method, dataset.Parts{Train: theoremRows(repetition)},
				run.Settings{Seed: uint64(repetition)})
			failOn(ended(ctx, err))
			return posteriorErrors(ctx, fit.Details[*fbnn.Details](result))
		}
		all = append(all, &trial{Key: key, reps: o.extent(extent{reps: 5}, extent{reps: 20}).reps, run: run})
	}
	return all, nil
}

// posteriorErrors sums over the grid: the emulator's error in Phi, at most and as a standard deviation, both under the
// posterior, and the Hellinger distance of the posteriors, with 2 d^2 the integral of (sqrt p - sqrt p_e)^2.
func posteriorErrors(ctx context.Context, d *fbnn.Details) (Result, error) {
	theta := mat.NewDense(theoremSide*theoremSide, 2, nil)
	axis := floats.Span(make([]float64, theoremSide), -theoremReach, theoremReach)
	logPrior := make([]float64, theoremSide*theoremSide)
	for i, a := range axis {
		for j, b := range axis {
			theta.SetRow(i*theoremSide+j, []float64{a, b})
			logPrior[i*theoremSide+j] = -(a*a + b*b) / 2
		}
	}
	truth, emulated, err := d.Potentials(ctx, theta)
	failOn(err)
	p, q, off := make([]float64, len(truth)), make([]float64, len(truth)), make([]float64, len(truth))
	for k := range p {
		p[k], q[k], off[k] = logPrior[k]-truth[k], logPrior[k]-emulated[k], emulated[k]-truth[k]
	}
	logP, logQ := floats.LogSumExp(p), floats.LogSumExp(q)
	bhattacharyya := 0.
	for k := range p {
		bhattacharyya += math.Exp((p[k] - logP + q[k] - logQ) / 2)
		p[k] = math.Exp(p[k] - logP)
	}
	most := 0.
	for k, v := range off {
		if p[k] > theoremLeast*floats.Max(p) {
			most = max(most, math.Abs(v))
		}
	}
	return Result{Values: map[string]float64{"Hellinger distance": math.Sqrt(max(0, 1-bhattacharyya)),
		"std of the error of Phi": math.Sqrt(stat.PopVariance(off, p)), "largest error of Phi": most}}, nil
}

// theoremLeast bounds the region of the largest error: where the density is at least so much of the mode's.
const theoremLeast = 1e-3

// drawTheorems draws the posterior's error against the emulator's, a point for each repetition, with both axes
// logarithmic, beside the line of small errors, d = std/sqrt 8.
func drawTheorems(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var traces []viz.Trace
	ends := []float64{math.Inf(1), math.Inf(-1)}
	for _, t := range done {
		s := viz.Trace{Name: t.Method, NoLine: true}
		results := slices.SortedFunc(slices.Values(t.results), func(a, b Result) int {
			return cmp.Compare(a.Values["std of the error of Phi"], b.Values["std of the error of Phi"])
		})
		for _, r := range results {
			x := r.Values["std of the error of Phi"]
			s.Step, s.Value = append(s.Step, x), append(s.Value, r.Values["Hellinger distance"])
			ends[0], ends[1] = min(ends[0], x), max(ends[1], x)
		}
		traces = append(traces, s)
	}
	line := viz.Trace{Name: "std / √8", Style: 8, Series: viz.Series{Step: ends}}
	for _, x := range ends {
		line.Value = append(line.Value, x/math.Sqrt(8))
	}
	return viz.Traces(append(traces, line), viz.TraceOptions{LogX: true, LogY: true,
		Frame: viz.Frame{Title: "Theorem 3.3", XLabel: "std of Φ − Φe under the posterior",
			YLabel: "Hellinger distance of the posteriors", Width: 640, Height: 460}})
}
