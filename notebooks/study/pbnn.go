package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Figures 1, 2 and 4 of "Penalty Bayesian Neural Networks". The paper names neither the functions behind its data nor
// its networks and priors: those are ours.

// penaltyRun is a panel: a sampler, and how long its chains are.
type penaltyRun struct {
	name    string
	sampler fit.Method
	thin    int
}

// Default draws of each chain, instead of Options.Epochs; the warm-up has half as many moves. Repetitions differ in the
// random numbers of the chains alone: their standard error is the error of finitely many draws.
const (
	penaltyDraws  = 500
	penaltyChains = 8
	penaltyReps   = 3
)

// penaltyVersion is part of the key of kept results: it changes when the code gives other numbers, or keeps others, for
// the same settings.
const penaltyVersion = 1

// slowTimes is how many times the moves of the others SGLD of the smaller step gets, so that its steps add up to those
// of the larger one: chains as long as the others' do not agree with each other.
const slowTimes = 100

// penaltyNoise is the standard deviation of the wave's noise, small beside the epistemic uncertainty as in the paper.
const penaltyNoise = .1

var (
	penaltyLineModel = bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}
	penaltyWaveModel = bayes.Model{Network: nn.MLP{Hidden: []int{20}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: penaltyNoise}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}

	penaltyFull = penaltyRun{"BNN on all rows", pbnn.AllRows{Target: pbnn.TargetFullData{}, Kernel: mcmc.HMC{}}, 1}
	penaltyFive = penaltyRun{"PBNN, n = 5, M = 5",
		pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 5, Batches: 5}, 40}
	penaltyTen = penaltyRun{"PBNN, n = 10, M = 5",
		pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 10, Batches: 5}, 40}
	penaltyNaive = penaltyRun{"no penalty, n = 10",
		pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: 10, Batches: 1, Estimate: pbnn.WithinBatches,
			Rule: pbnn.Naive}, 40}
	penaltyTempers = penaltyRun{"tempered, n = 5",
		pbnn.AllRows{Target: pbnn.TargetTempered{Points: 5}, Kernel: mcmc.HMC{Acceptance: .95}}, 4}
)

// penaltySGLD is SGLD on mini-batches of 5 with the paper's step eta, with so many times the moves of the others.
func penaltySGLD(eta float64, times int) penaltyRun {
	name := "SGLD, n = 5, eta = " + strings.Replace(strconv.FormatFloat(eta, 'e', -1, 64), "e-0", "e-", 1)
	if times > 1 {
		name += fmt.Sprintf(", %d times the moves", times)
	}
	return penaltyRun{name,
		pbnn.Unadjusted{Target: pbnn.TargetExpected{}, BatchSize: 5, Kernel: mcmc.SGLD{StepSize: 2 * eta}}, 40 * times}
}

// penaltyTrials returns the samplers' trials, with each chain from its own mode. The cells have the mean epistemic
// standard deviation over the plotted range, acceptance, sigma^2, the bias by the noise's skewness, and the median
// R-hat of the predictions.
func penaltyTrials(o Options, id string, model bayes.Model, data *dataset.Dataset, runs []penaltyRun) (all []*trial) {
	draws := cmp.Or(o.Epochs, penaltyDraws)
	_, grid := penaltyGrid(data)
	modes := onceStarts(o, model, data)
	for _, r := range runs {
		settings := strings.Replace(fmt.Sprintf("%#v", r.sampler), fmt.Sprintf("Sampling:%#v, ", pbnn.Sampling{}), "", 1)
		key := Key{Study: id, Data: data.Name, Method: r.name,
			Settings: []any{penaltyVersion, model, settings, draws, r.thin, penaltyChains, data.Hash()}}
		sample := func(ctx context.Context, repetition int) (Result, error) {
			start := modes(ctx)
			chains := pbnn.Sampling{Chains: penaltyChains, Draws: draws, Thin: r.thin, WarmUp: max(20, draws*r.thin/2)}
			result, err := fit.Fit(ctx, bayes.Model{}, fit.From{Trained: start, Method: withSettings(r.sampler, chains)},
				dataset.Parts{Train: data}, run.Settings{Seed: uint64(repetition + 1)})
			failOn(ended(ctx, err))
			for _, w := range result.Warnings {
				o.say("%s: %s: %s", id, r.name, w)
			}
			return bandOf(ctx, result, grid, draws), nil
		}
		all = append(all, &trial{Key: key, reps: cmp.Or(o.Reps, penaltyReps), run: sample})
	}
	return all
}

// The series of standard deviations: of the prediction with its noise, and without.
const (
	noisyBand     = "std"
	epistemicBand = "epistemic std"
)

// penaltyPanels has a band for each sampler, of its first repetition, of the standard deviations of that name.
func penaltyPanels(
	done []*trial, data *dataset.Dataset, truth func(float64) float64, columns int, band string,
) (*viz.Figure, error) {
	x, _ := penaltyGrid(data)
	grid := viz.GridOptions{Columns: columns, SharedX: true, SharedY: true}
	return inPanels(done, grid, func(t *trial) (*viz.Figure, error) {
		of := t.results[0].Series
		return viz.PredictiveBand(x, of["mean"], of[band], penaltyBand(shown(t.Method), data, truth))
	})
}

// bandOf is a repetition: the predictions on the grid, and the chains' diagnostics.
func bandOf(ctx context.Context, result *fit.Result, grid *mat.Dense, draws int) Result {
	prediction := must(result.Posterior.Predict(ctx, grid))
	found := fit.Details[*pbnn.Details](result)
	return Result{
		Values: map[string]float64{"epistemic std": stat.Mean(must(prediction.EpistemicStdDev()), nil),
			"acceptance": found.Acceptance,
			"sigma^2":    found.Noise, "skewness bias": found.Bias, "R-hat": medianRHat(prediction, draws)},
		Series: map[string][]float64{"mean": must(prediction.Mean()), noisyBand: must(prediction.StdDev()),
			epistemicBand: must(prediction.EpistemicStdDev())},
	}
}

// penaltyStarts is a mode for each chain: members of a deep ensemble, trained for 200 epochs, or fewer if asked for.
// The full posterior has many modes, and no chain goes from one to another: chains that all begin at one mode would
// show that mode's width only, and chains from the prior can get stuck where noise rejects every proposal.
func penaltyStarts(ctx context.Context, o Options, model bayes.Model, data *dataset.Dataset) *bayes.Posterior {
	epochs := min(200, cmp.Or(o.Epochs, 200))
	model.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	modes := baseline.Ensemble{Training: baseline.Training{Epochs: epochs}, Members: penaltyChains}
	r, err := fit.Fit(ctx, model, modes, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	failOn(ended(ctx, err))
	return r.Posterior
}

// onceStarts returns penaltyStarts, trained at the first call. A study whose repetitions are all kept does not train
// them.
func onceStarts(o Options, model bayes.Model, data *dataset.Dataset) func(context.Context) *bayes.Posterior {
	var modes *bayes.Posterior
	return func(ctx context.Context) *bayes.Posterior {
		if modes == nil {
			modes = penaltyStarts(ctx, o, model, data)
		}
		return modes
	}
}

// medianRHat is the median R-hat of the predictions over all places: how well chains agree. NaN for fewer than 4 draws.
func medianRHat(prediction bayes.Prediction, draws int) float64 {
	if draws < 4 {
		return math.NaN()
	}
	var all []float64
	for _, r := range must(diag.OfPrediction(prediction)).Rows {
		all = append(all, r.RHat)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// penaltyGrid has 200 places over the range of the data, extended by half of it on both sides.
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

// lineNoise is the standard deviation of the line's noise.
const lineNoise = .5

func penaltyLine() (*dataset.Dataset, error) { return dataset.NoisyLine(20, lineNoise, 1) }

// lineTrials returns the trials of figure 1: Bayesian linear regression, exactly and by Metropolis with one mini-batch
// of 2 rows, its variance by 19 others, with penalty and without.
func lineTrials(o Options) ([]*trial, error) {
	data := must(penaltyLine())
	by := func(rule pbnn.Rule) pbnn.Metropolis {
		return pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: 2, Batches: 20, Estimate: pbnn.OneBatch, Rule: rule,
			StepSize: .03}
	}
	exact := &trial{Key: Key{Study: "pbnn.fig1", Data: data.Name, Method: "exact",
		Settings: []any{penaltyVersion, data.Hash()}}, reps: 1,
		run: func(context.Context, int) (Result, error) {
			x, _ := penaltyGrid(data)
			mean, std := exactLine(data, x)
			return Result{Values: map[string]float64{"epistemic std": stat.Mean(std, nil)},
				Series: map[string][]float64{"mean": mean, epistemicBand: std}}, nil
		}}
	return append([]*trial{exact}, penaltyTrials(o, "pbnn.fig1", penaltyLineModel, data, []penaltyRun{
		{"with penalty", by(pbnn.Corrected), 100}, {"without penalty", by(pbnn.Naive), 100},
	})...), nil
}

func penaltyFig1(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	data := must(penaltyLine())
	return penaltyPanels(done, data, nil, 3, epistemicBand)
}

// exactLine is the mean and standard deviation of the line w x + b at x where y ~ N(w x + b, lineNoise^2) with
// w, b ~ N(0, 1) (Bishop 2006, eq. 3.53, 3.54 and 3.59 without the noise).
func exactLine(data *dataset.Dataset, x []float64) (center, spread []float64) {
	precision, right := mat.NewSymDense(2, []float64{1, 0, 0, 1}), mat.NewVecDense(2, nil)
	for i, y := range data.Y {
		row := mat.NewVecDense(2, []float64{data.X.At(i, 0), 1})
		precision.SymRankOne(precision, 1/(lineNoise*lineNoise), row)
		right.AddScaledVec(right, y/(lineNoise*lineNoise), row)
	}
	var factor mat.Cholesky
	factor.Factorize(precision) // with the identity in it, it is positive definite
	var mean, solved mat.VecDense
	failOn(factor.SolveVecTo(&mean, right))
	for _, at := range x {
		row := mat.NewVecDense(2, []float64{at, 1})
		failOn(factor.SolveVecTo(&solved, row))
		center = append(center, mat.Dot(row, &mean))
		spread = append(spread, math.Sqrt(mat.Dot(row, &solved)))
	}
	return center, spread
}

// waveTrials returns the trials of figures 2 and 4.
func waveTrials(id string, runs ...penaltyRun) func(o Options) ([]*trial, error) {
	return func(o Options) ([]*trial, error) {
		data := must(dataset.GappedWave(2000, penaltyNoise, 1))
		return penaltyTrials(o, id, penaltyWaveModel, data, runs), nil
	}
}

func penaltyWave(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	data := must(dataset.GappedWave(2000, penaltyNoise, 1))
	return penaltyPanels(done, data, dataset.GappedWaveMean, max(2, (len(done)+1)/2), noisyBand)
}
