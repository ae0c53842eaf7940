package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/run"
	"gobnn/fbnn"
	"gobnn/viz"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// fbnnBars has a panel for each data set of the trials: a bar of one metric for each method, and the paper's number as
// a line. All panels of a grid have the same methods. Errors and speed-ups span powers of ten.
func fbnnBars(id, metricName string) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		cells := fbnnCells(id, []string{metricName})(done)
		var all panels
		for _, data := range distinct(cells, func(c Cell) string { return c.Data }) {
			all.add(barsOf(data, metricName, cells))
		}
		return all.grid(viz.GridOptions{Columns: 3, SharedY: true})
	}
}

// fbnnBoth returns the trials of both tables.
func fbnnBoth(o Options) ([]*trial, error) {
	regressions := must(fbnnTrials(true)(o))
	classifications, err := fbnnTrials(false)(o)
	return append(regressions, classifications...), err
}

// barsOf is the panel of a data set; what a method does not have there is not finite.
func barsOf(data, metricName string, cells []Cell) (*viz.Figure, error) {
	var names []string
	var values, marks []float64
	for _, method := range distinct(cells, func(c Cell) string { return c.Method }) {
		one := Cell{Ours: math.NaN()}
		if i := slices.IndexFunc(cells, func(c Cell) bool { return c.Data == data && c.Method == method }); i >= 0 {
			one = cells[i]
		}
		names, values, marks = append(names, shortName(method)), append(values, one.Ours), append(marks, known(one.Paper))
	}
	return viz.Bars(names, values, viz.BarOptions{Marks: marks, MarkName: "the paper's", Log: metricName != "accuracy",
		Frame: viz.Frame{Title: shown(data), XLabel: metricName, Width: 380, Height: 120 + 28*len(names)}})
}

// shortName is a method's on an axis.
func shortName(method string) string {
	return strings.NewReplacer("FBNN ", "", "BNN-", "", inPaper, " paper", uncorrected, " uncorr.", byLibrary,
		" default").Replace(method)
}

// The mixture of figure 1: 25 normals of equal weight, on a lattice.
const (
	mixtureSide  = 5
	mixtureStep  = 2.
	mixtureSigma = .35
)

// mixtureDensity is the log-density of the mixture, [J], without constants.
func mixtureDensity(phi *graph.Node) *graph.Node {
	var all []*graph.Node
	for i := range mixtureSide {
		for k := range mixtureSide {
			x, y := mixtureStep*float64(i-mixtureSide/2), mixtureStep*float64(k-mixtureSide/2)
			at := Const(phi.Graph(), [][]float64{{x, y}})
			off := Sub(phi, BroadcastToDims(ConvertDType(at, phi.DType()), phi.Shape().Dimensions...))
			all = append(all, MulScalar(ReduceSum(Square(off), 1), -.5/(mixtureSigma*mixtureSigma)))
		}
	}
	return Squeeze(compute.LogSumExp(Stack(all, 1), 1), 1)
}

// mixtureTrials returns the trials of SGHMC and pCN, with the paper's number of draws. Their prior is as wide as the
// mixture.
func mixtureTrials(Options) ([]*trial, error) {
	const draws = 200_000
	of := func(name string, kernel mcmc.Kernel) *trial {
		key := Key{Study: "fbnn.fig1", Data: "mixture", Method: name, Settings: map[string]any{"draws": draws,
			"kernel": kernel, "version": 1}}
		return &trial{Key: key, reps: 1, run: func(ctx context.Context, _ int) (Result, error) {
			return sampleMixture(ctx, kernel, draws)
		}}
	}
	return []*trial{of("SGHMC", mcmc.SGHMC{LearningRate: .01, Friction: .1}),
		of("pCN", mcmc.PreconditionedCrankNicolson{Beta: .3, StdDev: []float64{3, 3}})}, nil
}

// mixtureFigure draws the draws over the mixture, beside as many that are independent.
func mixtureFigure(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	lattice := must(viz.NewLattice(-5.5, 5.5, 111, -5.5, 5.5, 111))
	density := lattice.Fill(func(x, y float64) float64 {
		sum := 0.
		for i := range mixtureSide {
			for k := range mixtureSide {
				dx, dy := x-mixtureStep*float64(i-mixtureSide/2), y-mixtureStep*float64(k-mixtureSide/2)
				sum += math.Exp(-(dx*dx + dy*dy) / (2 * mixtureSigma * mixtureSigma))
			}
		}
		return math.Log(sum)
	})
	rng := rand.New(rand.NewPCG(1, 25))
	exact := &trial{Key: Key{Method: "target, independent draws"}, results: []Result{{Series: map[string][]float64{}}}}
	for range mixtureKept {
		for _, name := range []string{"x", "y"} {
			mode := mixtureStep * float64(rng.IntN(mixtureSide)-mixtureSide/2)
			exact.results[0].Series[name] = append(exact.results[0].Series[name], mode+mixtureSigma*rng.NormFloat64())
		}
	}
	of := append([]*trial{exact}, done...)
	return inPanels(of, viz.GridOptions{Columns: 3, SharedY: true}, func(t *trial) (*viz.Figure, error) {
		return viz.ParticleScatter(t.results[0].Series["x"], t.results[0].Series["y"], viz.ParticleOptions{
			LogDensity: density, Masses: []float64{.9}, Label: "draws",
			Frame: viz.Frame{Title: t.Method, XLabel: "u₁", YLabel: "u₂", Width: 275, Height: 340}})
	})
}

// mixtureKept is the number of draws that are kept for the figure.
const mixtureKept = 2000

// sampleMixture is one chain from the middle, and how much of the mixture it has seen.
func sampleMixture(ctx context.Context, kernel mcmc.Kernel, draws int) (Result, error) {
	out := Result{Values: map[string]float64{}, Series: map[string][]float64{}}
	target := func(compute.Nodes, []*graph.Node) density.Target { return density.Func(mixtureDensity) }
	problem := density.Problem{Name: "mixture of 25 normals", Dim: 2, Target: target}
	result, err := fit.Sample(ctx, problem, mcmc.Chains{
		Kernel: kernel, Chains: 1, Draws: draws, WarmUp: mcmc.NoWarmUp,
	}, run.Settings{Seed: 1})
	failOn(ended(ctx, err))
	r := fit.Details[*mcmc.Details](result)
	var share [mixtureSide][mixtureSide]float64
	for i := range draws {
		at := r.Draws.At(0, i)
		place := func(v float64) int {
			return min(mixtureSide-1, max(0, int(math.Round(v/mixtureStep))+mixtureSide/2))
		}
		share[place(at[0])][place(at[1])] += 1 / float64(draws)
		if i%(draws/mixtureKept) == 0 {
			out.Series["x"], out.Series["y"] = append(out.Series["x"], at[0]), append(out.Series["y"], at[1])
		}
	}
	visited, off := 0., 0.
	for _, row := range share {
		for _, v := range row {
			off += math.Abs(v-1./(mixtureSide*mixtureSide)) / 2
			if v > 0 {
				visited++
			}
		}
	}
	out.Values["modes visited"], out.Values["distance of the shares"] = visited, off
	return out, ended(ctx, nil)
}

// planeTrials returns the trials of figure 5: true and emulated log-likelihood over the plane of the two leading
// principal components of the pairs, about their mean, with the pairs; and along the draws, where the failure shows.
func planeTrials(o Options) (all []*trial, err error) {
	methods := fbnnMethods(fbnnDraws, fbnnEpochs)
	named := func(name string) fbnnMethod {
		return methods[slices.IndexFunc(methods, func(m fbnnMethod) bool { return m.name == name })]
	}
	m, other := named("FBNN (SGHMC-pCN)"+inPaper), named("FBNN (SGHMC-pCN)"+byLibrary)
	for _, name := range []string{"simulated regression", "boston", "wine"} {
		d := fbnnSetOf(name)
		key := Key{Study: "fbnn.fig5", Data: name, Method: m.name, Settings: map[string]any{"version": fbnnVersion,
			"model": d.model(), "settings": m.algorithm, "other": other.algorithm}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			parts := must(d.parts(repetition, false))
			return fbnnRun{fbnnSet: d, method: m, parts: parts, say: o.say}.plane(ctx, other)
		}
		all = append(all, &trial{Key: key, reps: 1, run: run, extraSet: name != "simulated regression"})
	}
	return all, nil
}

func emulatedPlane(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var all panels
	for _, t := range done {
		drawPlane(&all, t.Data, t.results[0])
	}
	return all.grid(viz.GridOptions{Columns: 2})
}

// planeSide is the number of points of a side of the lattice.
const planeSide = 21

// plane evaluates both potentials over the plane, and along the draws.
func (r fbnnRun) plane(ctx context.Context, other fbnnMethod) (Result, error) {
	f := must(r.fit(ctx))
	result := f.own
	pairs := result.Calibration.Draws
	theta := mat.NewDense(pairs.PerChain, pairs.Dim, nil)
	for i := range pairs.PerChain {
		theta.SetRow(i, pairs.At(0, i))
	}
	mean, axes, scores := principal(theta)
	out := Result{Values: map[string]float64{}, Series: map[string][]float64{"u1": scores[0], "u2": scores[1]}}
	across := func(u []float64) []float64 {
		lo, hi := floats.Min(u), floats.Max(u)
		return floats.Span(make([]float64, planeSide), lo-.25*(hi-lo), hi+.25*(hi-lo))
	}
	out.Series["x"], out.Series["y"] = across(scores[0]), across(scores[1])
	points := mat.NewDense(planeSide*planeSide, pairs.Dim, nil)
	for i, y := range out.Series["y"] {
		for k, x := range out.Series["x"] {
			row := points.RawRowView(i*planeSide + k)
			copy(row, mean)
			floats.AddScaled(row, x, axes[0])
			floats.AddScaled(row, y, axes[1])
		}
	}
	var err error
	out.Series["true"], out.Series["emulated"], err = result.Potentials(ctx, points)
	failOn(err)
	along(ctx, f.own, out, inPaper)
	own := r
	own.method = other
	f = must(own.fit(ctx))
	along(ctx, f.own, out, byLibrary)
	t := result.Truth
	out.Values["Phi"], out.Values["emulated Phi"], out.Values["Phi of the prior"] = t.True, t.Emulated, t.Prior
	out.Values["Phi of the pairs"] = t.Calibration
	out.Values["R2 of held-out pairs"] = result.HeldOut.R2
	return out, nil
}

// along keeps both potentials at draws of a chain, in their order.
func along(ctx context.Context, result *fbnn.Details, out Result, suffix string) {
	chain := result.Sampling.Draws
	theta := mat.NewDense(min(200, chain.PerChain), chain.Dim, nil)
	for i := range theta.RawMatrix().Rows {
		theta.SetRow(i, chain.At(0, i*chain.PerChain/theta.RawMatrix().Rows))
	}
	var err error
	out.Series["true Phi"+suffix], out.Series["emulated Phi"+suffix], err = result.Potentials(ctx, theta)
	failOn(err)
}

// principal returns the mean of the rows, the two leading axes, of length one, and the rows' scores along them.
func principal(rows *mat.Dense) (mean []float64, axes, scores [][]float64) {
	n, d := rows.Dims()
	mean = make([]float64, d)
	for i := range n {
		floats.AddScaled(mean, 1/float64(n), rows.RawRowView(i))
	}
	centred := mat.DenseCopyOf(rows)
	for i := range n {
		floats.Sub(centred.RawRowView(i), mean)
	}
	var svd mat.SVD
	svd.Factorize(centred, mat.SVDThin)
	var v mat.Dense
	svd.VTo(&v)
	for k := range 2 {
		axis := mat.Col(nil, k, &v)
		var along mat.VecDense
		along.MulVec(centred, mat.NewVecDense(d, axis))
		axes, scores = append(axes, axis), append(scores, slices.Clone(along.RawVector().Data))
	}
	return mean, axes, scores
}

// planeKinds names what a potential is by.
var planeKinds = map[string]string{"true": "network", "emulated": "emulator"}

// drawPlane draws the panels of a data set: the two log-likelihoods over the plane with the pairs, and both along the
// draws of paper mode and of the default. The plane shows s = 1 - log10(1 + Phi - least) / most, where least is the
// lowest Phi on the lattice and most the greatest of these logarithms: Phi itself spans four powers of ten.
func drawPlane(all *panels, name string, r Result) {
	least := min(floats.Min(r.Series["true"]), floats.Min(r.Series["emulated"]))
	most := math.Log10(1 + max(floats.Max(r.Series["true"]), floats.Max(r.Series["emulated"])) - least)
	for _, kind := range []string{"true", "emulated"} {
		values := make([]float64, len(r.Series[kind]))
		for i, v := range r.Series[kind] {
			values[i] = min(1, max(0, 1-math.Log10(1+v-least)/most))
		}
		all.add(viz.DecisionMap(viz.Field{X: r.Series["x"], Y: r.Series["y"], Values: values}, viz.DecisionOptions{
			PointsX: r.Series["u1"], PointsY: r.Series["u2"], Classes: make([]int, len(r.Series["u1"])),
			ClassNames:       []string{"pairs"},
			ProbabilityLabel: "fit s, from 0 (the worst) to 1 (the best)",
			Frame: viz.Frame{Title: shown(name) + ": fit by the " + planeKinds[kind],
				XLabel: "first principal component of the pairs", YLabel: "second principal component", Width: 410,
				Height: 450}}))
	}
	for _, suffix := range []string{inPaper, byLibrary} { // draws may fit better than the plane does anywhere
		for _, kind := range []string{"true Phi", "emulated Phi"} {
			least = min(least, floats.Min(r.Series[kind+suffix]))
		}
	}
	for _, suffix := range []string{inPaper, byLibrary} {
		var traces []viz.Trace
		for _, kind := range []string{"true Phi", "emulated Phi"} {
			t := viz.Trace{Name: shown(kind)}
			for i, v := range r.Series[kind+suffix] {
				t.Step, t.Value = append(t.Step, float64(i)), append(t.Value, 1+v-least)
			}
			traces = append(traces, t)
		}
		all.add(viz.Traces(traces, viz.TraceOptions{
			Truth: 1 + r.Values["Phi of the prior"] - least, TruthName: "prior's median", LogY: true,
			Frame: viz.Frame{Title: shown(name) + suffix, XLabel: "draw", YLabel: "1 + Φ − least", Width: 410,
				Height: 360}}))
	}
}

// bandMethods lists the methods of figure 6.
var bandMethods = []string{fbnnBaseline, "FBNN (SGHMC-pCN)" + inPaper, "FBNN (SGHMC-pCN)" + byLibrary}

// alongFeature is figure 6: along the first principal component of the features the targets, the predictive mean and
// the 95 % interval of f, by BNN-SGHMC and by FBNN. The panels of a data set stand in a row, with one y-scale.
func alongFeature(_ context.Context, o Options, done []*trial) (*viz.Figure, error) {
	var rows panels
	for _, group := range byDataSet(done) {
		parts := must(fbnnSetOf(group[0].Data).parts(0, o.Full))
		grid := viz.GridOptions{Columns: len(bandMethods), SharedY: true}
		rows.add(inPanels(group, grid, func(t *trial) (*viz.Figure, error) {
			return drawAlong(shown(t.Data)+": "+shortName(t.Method), parts.Test.X, parts.Test.Y, t.results[0])
		}))
	}
	return rows.grid(viz.GridOptions{Columns: 1})
}

// drawAlong draws running means over an eighth of the rows, in the order of the first principal component, with bands:
// of the targets their mean's 95 % interval, of f the means of its interval's ends.
func drawAlong(title string, x mat.Matrix, y []float64, r Result) (*viz.Figure, error) {
	standard := mat.DenseCopyOf(x)
	rows, features := x.Dims()
	for k := range features {
		column := mat.Col(nil, k, x)
		mean, sd := stat.MeanStdDev(column, nil)
		for i := range rows {
			standard.Set(i, k, (column[i]-mean)/max(sd, 1e-9))
		}
	}
	_, _, scores := principal(standard)
	order := make([]int, rows)
	at := slices.Clone(scores[0])
	floats.Argsort(at, order)
	window := max(3, rows/8)
	target, f := viz.Trace{Name: "target"}, viz.Trace{Name: "f"}
	for i := 0; i+window <= rows; i += max(1, window/8) {
		running := func(values []float64) (mean, sd float64) {
			var some []float64
			for _, k := range order[i : i+window] {
				some = append(some, values[k])
			}
			return stat.MeanStdDev(some, nil)
		}
		mean, sd := running(y)
		half := 1.96 * sd / math.Sqrt(float64(window))
		target.Value, target.Lower = append(target.Value, mean), append(target.Lower, mean-half)
		target.Upper = append(target.Upper, mean+half)
		mean, _ = running(r.Series["mean"])
		lower, _ := running(r.Series["lower"])
		upper, _ := running(r.Series["upper"])
		f.Value, f.Lower, f.Upper = append(f.Value, mean), append(f.Lower, lower), append(f.Upper, upper)
		target.Step = append(target.Step, stat.Mean(at[i:i+window], nil))
	}
	f.Step = target.Step
	return viz.Traces([]viz.Trace{target, f}, viz.TraceOptions{Frame: viz.Frame{Title: title,
		XLabel: "first principal component", YLabel: "y, running mean", Width: 275, Height: 330}})
}

// frequencyMethods lists the methods of figure 7.
var frequencyMethods = append(slices.Clone(bandMethods), "Ensemble-DNN", "BNN-VI", "BNN-pCN")

// equalFrequency is figure 7: reliability diagrams in bins of as many rows, with the ECE of these and that of bins of
// equal width, which the tables have.
func equalFrequency(_ context.Context, o Options, done []*trial) (*viz.Figure, error) {
	done = slices.DeleteFunc(slices.Clone(done), func(t *trial) bool {
		return len(t.results) == 0 || len(t.results[0].Series["probability"]) == 0 // it diverged
	})
	return inPanels(done, viz.GridOptions{Columns: 3}, func(t *trial) (*viz.Figure, error) {
		parts := must(fbnnSetOf(t.Data).parts(0, o.Full))
		title := fmt.Sprintf("%s: ECE = %.3f with equal widths; here", shortName(t.Method), t.results[0].Values["ECE"])
		return viz.Reliability(equalBins(t.results[0].Series["probability"], parts.Test.Y, 10),
			viz.Frame{Title: title, Width: 275, Height: 400})
	})
}

// equalBins returns bins with equal numbers of rows, by the confidence in the predicted class. Rows of the same
// confidence may make bins without a width, which are joined with the next, or at the end with the one before.
func equalBins(probability, y []float64, bins int) (out []metric.Bin) {
	order := make([]int, len(y))
	confidence := make([]float64, len(y))
	for n, v := range probability {
		confidence[n] = max(v, 1-v)
	}
	sorted := slices.Clone(confidence)
	floats.Argsort(sorted, order)
	from, lower := 0, sorted[0]-1e-9
	for b := range bins {
		to := (b + 1) * len(y) / bins
		if to <= from || b < bins-1 && (sorted[to-1] <= lower || sorted[to-1] == sorted[len(y)-1]) {
			continue
		}
		one := metric.Bin{Lower: max(0, lower), Upper: min(1, sorted[to-1]), Count: to - from}
		for _, n := range order[from:to] {
			one.Confidence += confidence[n] / float64(one.Count)
			if (probability[n] > .5) == (y[n] == 1) {
				one.Accuracy += 1 / float64(one.Count)
			}
		}
		if one.Upper > one.Lower {
			out = append(out, one)
			from, lower = to, one.Upper
		}
	}
	return out
}
