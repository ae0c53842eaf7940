package study

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/pbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

// Figure 3 of "Penalty Bayesian Neural Networks": reliability on test rows. Section 5.2 says of it that only the last
// layer is stochastic, and that BNN and PBNN share the other layers. The paper leaves open how those are trained (here
// by MAP, jointly with the last layer), the activation, the prior, the sampler of the BNN, and where the regression's
// test rows lie.

// The methods. The third, with the whole network stochastic, contradicts the text but not the caption. For MNIST's
// 15910 parameters the distribution of n = 100 points is so wide that its chains, which begin at the mode, have not
// converged when they end: accuracy 0.90 on the test part; with five times as many moves 0.86 on the validation part.
const (
	lastLayerFull    = "BNN"
	lastLayerPenalty = "PBNN"
	wholePenalty     = "PBNN, all layers"
)

var reliabilityMethods = []string{lastLayerFull, lastLayerPenalty, wholePenalty}

// reliabilityVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const reliabilityVersion = 2

// reliabilityData is one row of the figure.
type reliabilityData struct {
	name    string
	network nn.MLP
	noise   bayes.Likelihood
	// parts are the data of a repetition: the mode is trained on the training part, and taken at the best validation if
	// there is a validation part; chains sample given the training part.
	parts func(seed uint64) (dataset.Parts, error)
	// beyond, if set, are test rows outside the range of the training rows.
	beyond     func(seed uint64) *dataset.Dataset
	mode       baseline.Training
	full       mcmc.Kernel    // of the posterior given all rows
	n, batches int            // n and M of the penalty
	draws      int            // default draws of each chain, after a warm-up half as long
	thin       map[string]int // moves for a draw, by method
	chains     int
	reps       int                            // default repetitions
	paper      map[string]map[string]Reported // by method and metric
}

// reliabilityWave is figure 2's regression, with one change: the last layer alone is stochastic.
var reliabilityWave = reliabilityData{
	name: "gapped_wave", network: nn.MLP{Hidden: []int{20}, Activation: nn.Tanh},
	noise: bayes.Gaussian{StdDev: penaltyNoise},
	parts: func(seed uint64) (parts dataset.Parts, err error) {
		parts.Train = must(dataset.GappedWave(2000, penaltyNoise, seed))
		parts.Test, err = dataset.GappedWave(500, penaltyNoise, seed+1000)
		return parts, err
	},
	beyond: gap,
	mode:   baseline.Training{Epochs: 200}, full: mcmc.HMC{},
	n: 5, batches: 5, thin: map[string]int{lastLayerFull: 100, lastLayerPenalty: 400, wholePenalty: 400}, chains: 4,
	draws: 100, reps: 5,
}

// gap is 500 rows of the wave's distribution, evenly over the gap in it.
func gap(seed uint64) *dataset.Dataset {
	const rows = 500
	rng := rand.New(rand.NewPCG(seed, 0x676170)) // "gap"
	xs := mat.NewDense(rows, 1, nil)
	d := &dataset.Dataset{Name: "gap", Features: []string{"x"}, Target: "y", X: xs,
		Y: make([]float64, rows)}
	for i := range rows {
		x := -1 + 2*(float64(i)+.5)/rows
		xs.Set(i, 0, x)
		d.Y[i] = dataset.GappedWaveMean(x) + penaltyNoise*rng.NormFloat64()
	}
	return d
}

// reliabilityDigits is MNIST, the paper's net of 20 units, n = 100 and M = 10. A sixth of the makers' training part is
// for validation: the activation and the epoch at which the training of the shared layer ends were chosen there. The
// test part is the makers' 10000 rows.
var reliabilityDigits = reliabilityData{
	name: "mnist", network: nn.MLP{Hidden: []int{20}, Activation: nn.ReLU}, noise: bayes.Categorical{},
	parts: func(seed uint64) (dataset.Parts, error) {
		train, test, err := digits()
		failOn(err)
		parts, err := train.Split(dataset.Fractions{Train: 5. / 6, Validation: 1. / 6}, seed)
		parts.Test = test
		return parts, err
	},
	mode: baseline.Training{Epochs: 10, BatchSize: 100, Optimiser: train.Adam{Schedule: train.Constant(.003)}},
	full: mcmc.HMC{},
	n:    100, batches: 10, thin: map[string]int{lastLayerFull: 4, lastLayerPenalty: 1000, wholePenalty: 40}, chains: 4,
	draws: 50, reps: 3,
	paper: map[string]map[string]Reported{lastLayerFull: {"accuracy": {Value: .936}},
		lastLayerPenalty: {"accuracy": {Value: .932}}},
}

// model is a method's model.
func (d reliabilityData) model(method string) bayes.Model {
	m := bayes.Model{Network: d.network, Likelihood: d.noise, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(len(d.network.Hidden) + 1)}
	if method == wholePenalty {
		m.Stochastic = bayes.All()
	}
	return m
}

// sampler is a method's sampler: a random walk as in Algorithm 1 for the last layer, Langevin's proposal (section 6.2)
// for thousands of parameters.
func (d reliabilityData) sampler(method string) fit.Method {
	m := pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: d.n, Batches: d.batches}
	switch method {
	case lastLayerFull:
		return pbnn.AllRows{Target: pbnn.TargetFullData{}, Kernel: d.full}
	case wholePenalty:
		m.Proposal = pbnn.Langevin
	}
	return m
}

// repetition is the data and modes that methods share in one repetition, made when a method's result is not kept.
type repetition struct {
	reliabilityData
	seed  uint64
	parts dataset.Parts
	modes map[bool]*bayes.Posterior // true: all layers are stochastic
}

// mode is the posterior at which a method's chains start, with the shared layers of the last layer's methods.
func (r *repetition) mode(ctx context.Context, o Options, method string) (*bayes.Posterior, error) {
	if r.parts.Train == nil {
		parts := must(r.reliabilityData.parts(r.seed))
		r.parts, r.modes = parts, map[bool]*bayes.Posterior{}
	}
	whole := method == wholePenalty
	if r.modes[whole] != nil {
		return r.modes[whole], nil
	}
	begun := time.Now()
	model := r.model(method)
	model.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	mode := baseline.MAP{Training: r.reliabilityData.mode}
	result, err := fit.Fit(ctx, model, mode, r.parts, run.Settings{Seed: r.seed})
	failOn(ended(ctx, err))
	o.say("%s: mode for %s, %.1f s", r.name, method, time.Since(begun).Seconds())
	r.modes[whole] = result.Posterior
	return result.Posterior, nil
}

// sample runs a method's chains and scores them on the test part, and beyond the data if there are such rows.
func (r *repetition) sample(ctx context.Context, o Options, method string) (Result, error) {
	mode := must(r.mode(ctx, o, method))
	draws := cmp.Or(o.Epochs, r.draws)
	chains := pbnn.Sampling{
		Chains: r.chains, Draws: draws, Thin: r.thin[method], WarmUp: max(1, draws*r.thin[method]/2),
	}
	result, err := fit.Fit(ctx, bayes.Model{}, fit.From{Trained: mode, Method: withSettings(r.sampler(method), chains)},
		dataset.Parts{Train: r.parts.Train}, run.Settings{Seed: r.seed})
	failOn(ended(ctx, err))
	for _, w := range result.Warnings {
		o.say("%s, %s: %s", r.name, method, w)
	}
	found := fit.Details[*pbnn.Details](result)
	out := Result{Values: map[string]float64{"acceptance": found.Acceptance, "sigma^2": found.Noise,
		"skewness bias": found.Bias}, Series: map[string][]float64{}}
	failOn(r.score(ctx, result.Posterior, r.parts.Test, "", out))
	some := firstOf(r.parts.Test, 200)
	out.Values["R-hat"] = medianRHat(must(result.Posterior.Predict(ctx, some.X)), draws)
	if r.beyond != nil {
		err = r.score(ctx, result.Posterior, r.beyond(r.seed), inGap, out)
	}
	return out, err
}

// inGap ends the names of scores and series beyond the data.
const inGap = " in the gap"

// reliabilityScores are the scores kept of a prediction, besides calibrationOf's series.
var reliabilityScores = []string{"NLPD", "accuracy", "ECE", "RMSE"}

// score adds the scores on rows, their names ending as given.
func (r *repetition) score(
	ctx context.Context, p *bayes.Posterior, rows *dataset.Dataset, ending string, out Result,
) error {
	prediction := must(p.Predict(ctx, rows.X))
	table := must(metric.Scores(prediction, rows.Y))
	for _, s := range table {
		if slices.Contains(reliabilityScores, s.Name) {
			out.Values[s.Name+ending] = s.Value
		}
	}
	series := must(calibrationOf(prediction, rows.Y))
	for name, values := range series {
		out.Series[name+ending] = values
	}
	if prediction.Task() == dataset.Regression {
		own := &pooled{}
		failOn(own.add(Result{Series: series}))
		out.Values["mean |coverage - level|"+ending] = own.gap()
		out.Values["coverage of 50 % intervals"+ending] = own.coverage[slices.Index(own.levels, .5)]
	}
	return nil
}

// reliabilityTrials returns the trials of the methods on the data sets.
func reliabilityTrials(sets ...reliabilityData) func(o Options) ([]*trial, error) {
	return func(o Options) (all []*trial, err error) {
		for _, d := range sets {
			repetitions := make([]*repetition, cmp.Or(o.Reps, d.reps))
			for i := range repetitions {
				repetitions[i] = &repetition{reliabilityData: d, seed: uint64(i) + 1}
			}
			for _, method := range reliabilityMethods {
				key := Key{Study: "pbnn.fig3", Data: d.name, Method: method, Settings: map[string]any{
					"version": reliabilityVersion, "model": d.model(method), "sampler": d.sampler(method), "epochs": d.mode.Epochs,
					"batch":     d.mode.BatchSize,
					"optimiser": d.mode.Optimiser, "chains": d.chains, "draws": cmp.Or(o.Epochs, d.draws), "thin": d.thin[method],
				}}
				run := func(ctx context.Context, i int) (Result, error) { return repetitions[i].sample(ctx, o, method) }
				all = append(all, &trial{Key: key, reps: len(repetitions), run: run, paper: d.paper[method]})
			}
		}
		return all, nil
	}
}

// reliabilityFigure has a row for each data set, with a panel for each method, and a further row for the regression
// beyond its data.
func reliabilityFigure(sets ...reliabilityData) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		var all panels
		methods := distinct(done, (*trial).method)
		grid := viz.GridOptions{Columns: len(methods), ColumnNames: methods, SharedX: true, SharedY: true}
		for _, group := range byDataSet(done) {
			d := sets[slices.IndexFunc(sets, func(d reliabilityData) bool { return d.name == group[0].Data })]
			for _, ending := range d.endings() {
				grid.RowNames = append(grid.RowNames, shown(d.name)+ending)
				for _, t := range group {
					all.add(reliabilityPanel(ending, t.results))
				}
			}
		}
		return all.grid(grid)
	}
}

// endings returns the suffixes in the names of scores and series: none for the test rows, and inGap for rows beyond the
// data.
func (d reliabilityData) endings() []string {
	if d.beyond == nil {
		return []string{""}
	}
	return []string{"", inGap}
}

// reliabilityPanel pools the repetitions' series whose names end so.
func reliabilityPanel(ending string, results []Result) (*viz.Figure, error) {
	all := &pooled{}
	for _, r := range results {
		own := Result{Series: map[string][]float64{}}
		for _, name := range []string{"rows", "level", "coverage", "bin", "confidence", "accuracy"} {
			own.Series[name] = r.Series[name+ending]
		}
		failOn(all.add(own))
	}
	return all.draw()
}
