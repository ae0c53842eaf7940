package study

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/pbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Figures 1, 2 and 4 of "Penalty Bayesian Neural Networks". The paper names neither the functions behind its data nor its networks and priors: those are ours.

// penaltyRun is a panel: a sampler, and how long its chains are.
type penaltyRun struct {
	name    string
	sampler pbnn.Sampler
	thin    int
}

// Draws of each chain where Options.Epochs does not say how many; the warm-up is half as long as they take.
const (
	penaltyDraws  = 500
	penaltyChains = 8
)

// penaltyNoise is the standard deviation of the wave's noise, small beside the epistemic uncertainty as in the paper.
const penaltyNoise = .1

var (
	penaltyLineModel = bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}
	penaltyWaveModel = bayes.Model{Network: nn.MLP{Hidden: []int{20}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: penaltyNoise}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}

	penaltyFull    = penaltyRun{"BNN on all rows", pbnn.AllRows{Target: pbnn.TargetFullData{}, Kernel: mcmc.MALA{}}, 10}
	penaltyFive    = penaltyRun{"PBNN n = 5 M = 5", pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 5, Batches: 5}, 40}
	penaltyTen     = penaltyRun{"PBNN n = 10 M = 5", pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 10, Batches: 5}, 40}
	penaltyNaive   = penaltyRun{"no penalty n = 10", pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: 10, Batches: 1, Estimate: pbnn.WithinBatches, Rule: pbnn.Naive}, 40}
	penaltyTempers = penaltyRun{"tempered n = 5", pbnn.AllRows{Target: pbnn.TargetTempered{N: 5}, Kernel: mcmc.MALA{}}, 10}
)

// penaltySGLD is SGLD on mini-batches of 5 with the paper's step eta.
func penaltySGLD(eta float64) penaltyRun {
	return penaltyRun{fmt.Sprintf("SGLD n = 5 eta = %g", eta), pbnn.Unadjusted{Target: pbnn.TargetExpected{}, BatchSize: 5, Kernel: mcmc.SGLD{StepSize: 2 * eta}}, 40}
}

// penaltyPanels runs those that are asked for, chains that begin at the mode, a panel and cells for each: mean epistemic standard deviation over the plotted range, acceptance, sigma^2 and the bias that its skewness makes.
func penaltyPanels(ctx context.Context, o Options, id string, model bayes.Model, data *dataset.Dataset, truth func(float64) float64, runs []penaltyRun, first ...*viz.Figure) (*viz.Figure, []Cell, error) {
	var names []string
	for _, r := range runs {
		names = append(names, r.name)
	}
	methods, err := o.only(names, data.Name)
	if err != nil {
		return nil, nil, err
	}
	// From the prior some chains would stay where their noise lets nothing pass.
	mode, err := baseline.Fit(ctx, model, baseline.MAP{}, dataset.Parts{Train: data}, baseline.Settings{Epochs: 200, Unscaled: true, Seed: 1})
	if err != nil {
		return nil, nil, err
	}
	x, grid := penaltyGrid(data)
	panels := first
	var cells []Cell
	for _, r := range runs {
		if !methods[r.name] {
			continue
		}
		draws := penaltyDraws
		if o.Epochs > 0 {
			draws = o.Epochs
		}
		result, err := pbnn.SampleFrom(ctx, mode.Posterior, data, r.sampler, pbnn.Settings{Settings: mcmc.Settings{
			Chains: penaltyChains, Draws: draws, Thin: r.thin, WarmUp: draws * r.thin / 2, Seed: 1,
		}})
		if err != nil {
			return nil, cells, fmt.Errorf("%s: %w", r.name, err)
		}
		if ctx.Err() != nil {
			return nil, cells, context.Cause(ctx)
		}
		prediction, err := result.Posterior.Predict(ctx, grid)
		if err != nil {
			return nil, cells, err
		}
		spread, err := prediction.EpistemicStdDev()
		if err != nil {
			return nil, cells, err
		}
		panel, err := viz.PredictiveBandOf(x, prediction, 0, penaltyBand(r.name, data, truth))
		if err != nil {
			return nil, cells, err
		}
		panels = append(panels, panel)
		seconds := result.Chains.Elapsed.Seconds()
		for _, c := range []struct {
			metric string
			value  float64
		}{{"epistemic std", stat.Mean(spread, nil)}, {"acceptance", result.Acceptance}, {"sigma^2", result.Noise}, {"skewness bias", result.Bias}} {
			cells = append(cells, Cell{Study: id, Data: data.Name, Method: r.name, Metric: c.metric, Ours: c.value, SE: math.NaN(), Reps: 1, Seconds: seconds})
		}
		o.say("%s: %s, %.1f s, acceptance %.2f", id, r.name, seconds, result.Acceptance)
		for _, w := range result.Warnings {
			o.say("%s: %s: %s", id, r.name, w)
		}
	}
	columns := min(2, len(panels))
	if len(panels) == 3 {
		columns = 3
	}
	fig, err := viz.Grid((len(panels)+columns-1)/columns, columns, panels...)
	return fig, cells, err
}

// penaltyGrid is 200 places over the data and half as far again on both sides.
func penaltyGrid(data *dataset.Dataset) ([]float64, *mat.Dense) {
	lo, hi := mat.Min(data.X), mat.Max(data.X)
	x := make([]float64, 200)
	for i := range x {
		x[i] = lo + (hi-lo)*(2*float64(i)/199-.5)
	}
	return x, mat.NewDense(len(x), 1, x)
}

// penaltyBand shows at most 200 of the training points.
func penaltyBand(title string, data *dataset.Dataset, truth func(float64) float64) viz.BandOptions {
	shown := min(200, data.Rows())
	return viz.BandOptions{
		Frame:  viz.Frame{Title: title, XLabel: "x", YLabel: "y", Width: 440, Height: 380},
		TrainX: mat.Col(nil, 0, data.X)[:shown], TrainY: data.Y[:shown], True: truth,
	}
}

// penaltyFig1 is Bayesian linear regression: the analytic band (Bishop 2006, eq. 3.53 and 3.59), and those of Metropolis by one mini-batch of 2 rows, its variance by 19 others, with penalty and without.
func penaltyFig1(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	data, err := dataset.NoisyLine(20, .5, 1)
	if err != nil {
		return nil, nil, err
	}
	x, _ := penaltyGrid(data)
	center, spread, err := exactLine(data, .5, x)
	if err != nil {
		return nil, nil, err
	}
	exact, err := viz.PredictiveBand(x, center, spread, penaltyBand("exact", data, nil))
	if err != nil {
		return nil, nil, err
	}
	by := func(rule pbnn.Rule) pbnn.Metropolis {
		return pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: 2, Batches: 20, Estimate: pbnn.OneBatch, Rule: rule, StepSize: .03}
	}
	fig, cells, err := penaltyPanels(ctx, o, "pbnn.fig1", penaltyLineModel, data, nil, []penaltyRun{
		{"with penalty", by(pbnn.Corrected), 100}, {"without penalty", by(pbnn.Naive), 100},
	}, exact)
	for i, s := range spread {
		spread[i] = math.Sqrt(s*s - .25)
	}
	return fig, append(cells, Cell{Study: "pbnn.fig1", Data: data.Name, Method: "exact", Metric: "epistemic std", Ours: stat.Mean(spread, nil), SE: math.NaN(), Reps: 1}), err
}

// exactLine is the predictive mean and standard deviation at x of y ~ N(w x + b, noise^2) with w, b ~ N(0, 1).
func exactLine(data *dataset.Dataset, noise float64, x []float64) (center, spread []float64, err error) {
	precision, right := mat.NewSymDense(2, []float64{1, 0, 0, 1}), mat.NewVecDense(2, nil)
	for i, y := range data.Y {
		row := mat.NewVecDense(2, []float64{data.X.At(i, 0), 1})
		precision.SymRankOne(precision, 1/(noise*noise), row)
		right.AddScaledVec(right, y/(noise*noise), row)
	}
	var factor mat.Cholesky
	if !factor.Factorize(precision) {
		return nil, nil, fmt.Errorf("%s: the posterior's precision is not positive definite", data.Name)
	}
	var weights, solved mat.VecDense
	if err := factor.SolveVecTo(&weights, right); err != nil {
		return nil, nil, err
	}
	for _, at := range x {
		row := mat.NewVecDense(2, []float64{at, 1})
		if err := factor.SolveVecTo(&solved, row); err != nil {
			return nil, nil, err
		}
		center = append(center, mat.Dot(row, &weights))
		spread = append(spread, math.Sqrt(noise*noise+mat.Dot(row, &solved)))
	}
	return center, spread, nil
}

func penaltyWave(ctx context.Context, o Options, id string, runs ...penaltyRun) (*viz.Figure, []Cell, error) {
	data, err := dataset.GappedWave(2000, penaltyNoise, 1)
	if err != nil {
		return nil, nil, err
	}
	return penaltyPanels(ctx, o, id, penaltyWaveModel, data, dataset.GappedWaveMean, runs)
}

func penaltyFig2(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	return penaltyWave(ctx, o, "pbnn.fig2", penaltyFull, penaltyFive, penaltyNaive, penaltyTen)
}

func penaltyFig4(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	return penaltyWave(ctx, o, "pbnn.fig4", penaltySGLD(1e-4), penaltySGLD(1e-6), penaltyTempers, penaltyFive)
}
