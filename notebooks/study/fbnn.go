package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/pictures"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/fbnn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// The experiments of Moslemi, Meng, Lan and Shahbaba 2024 (section 4). Tables A1 and A2 and figures 2 to 4, 6 and 7 are
// made of the same repetitions.
//
// Where the paper is silent or cannot be followed:
//
//   - It gives the number of each network's weights, and neither widths nor priors nor noise. Ours are 13-64-32-1,
//     11-10-10-1 and 14-60-30-1 of ReLU units, which have the paper's 3009, 241 and 2761, with the prior N(0, 0.3^2)
//     (the first layer's on the simulated sets is N(0, 0.03^2)) and a fixed noise, of standardised targets, of .25
//     (Boston) and .8 (wine). MNIST's 3961 are 784-5-5-1, of one output, and of no network 784-a-b-10 with an a above
//     4; ours is 784-5-10, of 3985.
//   - Splits are Gal's of Boston and red wine. Adult has its 14 columns as numbers, of categories their number; it and
//     MNIST have the first rows of the official training part, and the simulated sets are drawn anew for each
//     repetition. CelebA and SVHN have their official parts; the paper counts SVHN's 531 131 further pictures too, and
//     says nothing of a split.
//   - BNN-SGHMC has 2000 draws, every tenth step of a mini-batch after 1000, BNN-pCN keeps each step on all rows. The
//     first 200 of BNN-SGHMC, and the pairs of paper mode, are a chain's first transitions, without a warm-up.
//   - BNN-Lasso, the "Lasso approximation (MacKay 1992)", is the Laplace approximation, which MacKay's paper has and
//     section 2.6 describes in its place among the methods. Its coverage of f on the first split, .89, .42 and .88 on
//     the simulated set, wine and Boston, is near the paper's .87, .41 and .79; SGHMC with a Laplace prior gives .66,
//     .24 and .82. Its precision is Kronecker-factored, which is quick for all of these networks.

// fbnnSet is a data set of the paper.
type fbnnSet struct {
	name       string
	network    nn.MLP
	likelihood bayes.Likelihood
	raw        bool // features are not standardised
	parts      func(repetition int, full bool) (dataset.Parts, error)
	bigger     bool // with -full there are more rows
	brought    bool // by the user: not part of the project
	// streamed, if set, are the training rows where they are read in blocks; parts gives the others.
	streamed func(repetition, rows int) dataset.Source
}

// regression says which table a data set is of.
func (d fbnnSet) regression() bool { return d.likelihood.Task() == dataset.Regression }

// fbnnSets returns all data sets, in the paper's order.
func fbnnSets() []fbnnSet {
	relu := func(units ...int) nn.MLP { return nn.MLP{Hidden: units, Activation: nn.ReLU} }
	gal := func(name string) func(int, bool) (dataset.Parts, error) {
		return func(repetition int, _ bool) (dataset.Parts, error) {
			return dataset.MustLoad(name).PublishedSplit(dataset.Gal, repetition)
		}
	}
	brought := func(name, file, what string, task bayes.Likelihood) fbnnSet {
		return fbnnSet{name: name, network: relu(64, 32), likelihood: task, bigger: true, brought: true,
			parts: broughtParts(name, file, what, task.Task())}
	}
	nacc := "the data of the National Alzheimer's Coordinating Center, on request from naccdata.org"
	return []fbnnSet{
		{name: "simulated regression", network: relu(20, 10), likelihood: bayes.Gaussian{StdDev: .3}, bigger: true,
			parts: simulatedParts(simulateRegression)},
		{name: "simulated regression" + inBlocks, network: relu(20, 10), likelihood: bayes.Gaussian{StdDev: .3},
			parts: streamedTest, streamed: streamedRows},
		{name: "wine", network: relu(10, 10), likelihood: bayes.Gaussian{StdDev: .8}, parts: gal("wine_red")},
		{name: "boston", network: relu(64, 32), likelihood: bayes.Gaussian{StdDev: .25}, parts: gal("boston")},
		brought("NACC", "nacc_volume.csv", nacc, bayes.Gaussian{StdDev: .5}),
		brought("YearPredictionMSD", "year.csv", "UCI's table of 515 345 songs", bayes.Gaussian{StdDev: .8}),
		{name: "simulated classification", network: relu(20, 10), likelihood: bayes.Bernoulli{}, bigger: true,
			parts: simulatedParts(simulateClasses)},
		{name: "adult", network: relu(60, 30), likelihood: bayes.Bernoulli{}, bigger: true, parts: adultParts},
		{name: "MNIST", network: relu(5), likelihood: bayes.Categorical{}, raw: true, bigger: true,
			parts: publishedParts(digits, digitsRows)},
		brought("NACC diagnosis", "nacc_diagnosis.csv", nacc, bayes.Bernoulli{}),
		{name: "CelebA", network: relu(64, 32), likelihood: bayes.Bernoulli{}, bigger: true, brought: true,
			parts: publishedParts(attributes, math.MaxInt)},
		{name: "SVHN", network: relu(64, 32), likelihood: bayes.Categorical{}, raw: true, bigger: true, brought: true,
			parts: publishedParts(pictures.SVHN, math.MaxInt)},
	}
}

// model has a prior of .3 for all weights; of 1000 features .03 for the first layer's, whose outputs then have about
// the size that they have on the sets of 11 to 14 features.
func (d fbnnSet) model() bayes.Model {
	prior := bayes.Normal{StdDev: .3}
	if strings.HasPrefix(d.name, "simulated") {
		prior.PerLayer = map[int]float64{1: .03}
	}
	return bayes.Model{Network: d.network, Likelihood: d.likelihood, Prior: prior, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: d.raw}}
}

// The kinds of FBNN that a row can have. In the paper's, a prediction is the emulator's output. The second is the
// library's default. The third is for SGHMC, which has no accept/reject step for the default: the emulated posterior
// with predictions of the network.
const (
	inPaper     = ", paper mode"
	byLibrary   = ", default"
	uncorrected = ", uncorrected"
)

// fbnnMethod is a row of the tables.
type fbnnMethod struct {
	name      string
	algorithm fit.Method // of package baseline or fbnn
}

// streams says whether a method reads its rows in blocks: those of fbnn that begin with mini-batches.
func (m fbnnMethod) streams() bool {
	kernel := mcmc.Kernel(mcmc.SGHMC{})
	switch a := m.algorithm.(type) {
	case fbnn.Prior:
	case fbnn.Chain:
		kernel = a.Kernel
	case fbnn.CES:
		if a.Calibration != nil {
			kernel = a.Calibration
		}
	default:
		return false
	}
	return kernel.Traits().Carries == mcmc.CarriesNothing
}

// The baseline that the paper's speed-ups are of, and draws of the prior, for comparison.
const (
	fbnnBaseline = "BNN-SGHMC"
	priorRow     = "the prior"
)

// fbnnMethods returns the rows, each with the given number of draws: first the four of the paper's method.
func fbnnMethods(draws, epochs int) []fbnnMethod {
	sghmc, pcn := mcmc.SGHMC{}, mcmc.PreconditionedCrankNicolson{}
	kernels := map[string]mcmc.Kernel{"SGHMC": sghmc, "pCN": pcn}
	others := []fbnnMethod{
		{priorRow, fbnn.Prior{Draws: draws}},
		{"DNN", baseline.MLE{}}, {"Ensemble-DNN", baseline.Ensemble{Members: 5, Likelihood: true}},
		{"BNN-VI", baseline.VI{}}, {"BNN-Lasso", baseline.Laplace{Structure: baseline.KroneckerPrecision}},
		{"BNN-MC-Dropout", baseline.Dropout{}}, {"SWAG", baseline.SWAG{}},
		{fbnnBaseline, fbnn.Chain{Kernel: sghmc, Draws: fbnnPaperDraws}},
		{"BNN-SGHMC (first 200)", fbnn.Chain{Kernel: sghmc, Draws: 200, Thin: 1, WarmUp: mcmc.NoWarmUp}},
		{"BNN-pCN", fbnn.Chain{Kernel: pcn, Draws: draws, Thin: 1}},
		{"BNN-RNS-HMC", fbnn.CES{Emulates: fbnn.LogLikelihood, Regressor: fbnn.RandomNetwork{}, Draws: draws,
			Sampling: mcmc.HMC{Steps: 10}}},
	}
	var papers, ours []fbnnMethod
	for _, pair := range [][2]string{{"pCN", "SGHMC"}, {"pCN", "pCN"}, {"SGHMC", "SGHMC"}, {"SGHMC", "pCN"}} {
		name := fmt.Sprintf("FBNN (%s-%s)", pair[0], pair[1])
		a := fbnn.CES{Calibration: kernels[pair[0]], Sampling: kernels[pair[1]], Draws: draws}
		a.Regressor = fbnn.Network{Epochs: epochs}
		paper, own := a, fbnnMethod{name + byLibrary, a}
		paper.PaperMode, paper.Regressor = true, fbnn.Network{Hidden: []int{3, 32}, Activations: []nn.Activation{nn.ReLU},
			Epochs: epochs}
		if pair[1] == "SGHMC" {
			a.Uncorrected = true
			own = fbnnMethod{name + uncorrected, a}
		}
		papers, ours = append(papers, fbnnMethod{name + inPaper, paper}), append(ours, own)
	}
	return slices.Concat(papers, others, ours)
}

// fbnnVersion is part of the key of kept results: it changes when the code gives other numbers for the same settings.
const fbnnVersion = 3

// The draws of each chain, and the epochs of all training: of a run as it is, and of the paper's.
const (
	fbnnDraws, fbnnPaperDraws   = 400, 2000
	fbnnEpochs, fbnnPaperEpochs = 200, 1000
)

// fbnnTrials returns the trials of a table: of the regressions, or of the classifications. What a user would have to
// bring is left out unless it is asked for.
func fbnnTrials(regression bool) func(o Options) ([]*trial, error) {
	return func(o Options) ([]*trial, error) {
		var all []*trial
		e := o.extent(extent{3, fbnnEpochs}, extent{3, fbnnPaperEpochs})
		draws := fbnnDraws
		if o.Full {
			draws = fbnnPaperDraws
		}
		for _, d := range fbnnSets() {
			if d.regression() != regression {
				continue
			}
			reported := reportedIn("fbnn", strings.TrimSuffix(d.name, inBlocks))
			for _, m := range fbnnMethods(draws, e.epochs) {
				if d.streamed != nil && !m.streams() {
					continue
				}
				decides := map[string]any{
					"version": fbnnVersion, "model": d.model(), "method": fmt.Sprintf("%T", m.algorithm), "settings": m.algorithm,
					"epochs": e.epochs, "more rows": o.Full && d.bigger,
				}
				rows := 0
				if d.streamed != nil {
					if rows = streamedFew; o.Full {
						rows = streamedAll
					}
					decides["rows"] = rows
				}
				run := func(ctx context.Context, repetition int) (Result, error) {
					parts := must(d.parts(repetition, o.Full))
					r := fbnnRun{fbnnSet: d, method: m, epochs: e.epochs, seed: uint64(repetition), parts: parts, rows: rows,
						say: o.say}
					return r.repetition(ctx)
				}
				all = append(all, &trial{Key: Key{Study: "fbnn", Data: d.name, Method: m.name, Settings: decides}, reps: e.reps,
					run: run, paper: reported[m.name], extraSet: d.brought || d.streamed != nil && !o.Full})
			}
		}
		return all, nil
	}
}

// fbnnOf returns a table's trials of some methods on some data sets. Only the first of the sets is drawn unless others
// are asked for. If sets is nil it returns the trials on all sets that fit into memory.
func fbnnOf(regression bool, sets []string, methods ...string) func(o Options) ([]*trial, error) {
	return func(o Options) ([]*trial, error) {
		some, err := fbnnTrials(regression)(o)
		some = slices.DeleteFunc(some, func(t *trial) bool {
			return sets != nil && !slices.Contains(sets, t.Data) || !slices.Contains(methods, t.Method) ||
				strings.HasSuffix(t.Data, inBlocks)
		})
		for _, t := range some {
			t.extraSet = t.extraSet || sets != nil && t.Data != sets[0]
		}
		return some, err
	}
}

// fbnnSetOf is the data set of that name.
func fbnnSetOf(name string) fbnnSet {
	all := fbnnSets()
	return all[slices.IndexFunc(all, func(d fbnnSet) bool { return d.name == name })]
}

// fbnnRun is one repetition.
type fbnnRun struct {
	fbnnSet
	method fbnnMethod
	epochs int
	seed   uint64
	parts  dataset.Parts
	rows   int // of a set in blocks
	say    func(format string, args ...any)
}

// fbnnFit is the result of a method.
type fbnnFit struct {
	posterior *bayes.Posterior
	predict   func(ctx context.Context, x mat.Matrix) (bayes.Prediction, error)
	own       *fbnn.Details // nil of a baseline
	warnings  []string
	seconds   float64
}

// fit runs the method.
func (r fbnnRun) fit(ctx context.Context) (*fbnnFit, error) {
	train := dataset.Parts{Train: r.parts.Train}
	if of, ok := r.method.algorithm.(fit.Taker); ok && of.Takes().RowsAtOnce > 0 && r.streamed != nil {
		train = dataset.Parts{Source: r.streamed(int(r.seed), r.rows)}
	}
	begun := time.Now()
	method := withSettings(r.method.algorithm, baseline.Training{Epochs: r.epochs})
	result, err := fit.Fit(ctx, r.model(), method, train, run.Settings{Seed: r.seed})
	if err := ended(ctx, err); err != nil {
		return nil, err // perhaps it diverged
	}
	f := &fbnnFit{
		own: fit.Details[*fbnn.Details](result), posterior: result.Posterior, predict: result.Posterior.Predict,
		warnings: result.Warnings,
	}
	if strings.HasSuffix(r.method.name, inPaper) {
		f.predict = f.own.Predict
	}
	f.seconds = time.Since(begun).Seconds()
	return f, nil
}

// repetition fits the method and scores it. A method that cannot go on, such as delayed acceptance that never accepts,
// or an emulated chain whose states run away, has the NLPD of no prediction, and says why.
func (r fbnnRun) repetition(ctx context.Context) (Result, error) {
	out, err := r.scored(ctx)
	for _, of := range []error{baseline.ErrDiverged, mcmc.ErrStuck, fbnn.ErrEmulator, bayes.ErrNotFinite} {
		if errors.Is(err, of) {
			r.say("%s, %s, repetition %d: %v", r.name, r.method.name, r.seed+1, err)
			return diverged(), nil
		}
	}
	return out, err
}

func (r fbnnRun) scored(ctx context.Context) (out Result, err error) {
	defer caught(&err)
	f := must(r.fit(ctx))
	for _, w := range f.warnings {
		r.say("%s, %s, repetition %d: %s", r.name, r.method.name, r.seed+1, w)
	}
	out = Result{Values: map[string]float64{"seconds of a fit": f.seconds, "warnings": float64(len(f.warnings))},
		Series: map[string][]float64{}}
	p := must(f.predict(ctx, r.parts.Test.X))
	r.score(p, out, "")
	r.outline(p, out)
	if strings.HasSuffix(r.method.name, inPaper) {
		r.score(must(f.posterior.Predict(ctx, r.parts.Test.X)), out, ofNetwork)
	}
	if f.own == nil {
		r.potential(ctx, f, out)
	} else {
		r.chain(f, p, out)
	}
	return out, nil
}

// ofNetwork ends the names of scores of the network's own predictions, where "the prediction" is the emulator's.
const ofNetwork = " of the network"

// score adds the scores of a prediction of the test part.
func (r fbnnRun) score(p bayes.Prediction, out Result, suffix string) {
	y := r.parts.Test.Y
	scores := []scorer{{"NLPD", metric.NLPD, y}}
	if r.regression() {
		covered := func(p bayes.Prediction, y []float64) (metric.Estimate, error) { return metric.Coverage(p, y, .95) }
		scores = append(scores, scorer{"MSE", metric.MSE, y}, scorer{"coverage of y", covered, y})
		out.Values["coverage of f"+suffix] = coveredByMeans(p, y, .95)
	} else {
		scores = append(scores, scorer{"accuracy", metric.Accuracy, y}, scorer{"ECE", metric.ECE, y})
	}
	for name, v := range scoresBy(scores, p) {
		out.Values[name+suffix] = v
	}
}

// coveredByMeans is the share of targets within the central interval of the particles' means, without the noise: what
// the paper's coverage probability is of, as its numbers show.
func coveredByMeans(p bayes.Prediction, y []float64, level float64) float64 {
	lower, upper := meanInterval(p, level)
	covered := 0.
	for n, v := range y {
		if v >= lower[n] && v <= upper[n] {
			covered += 1 / float64(len(y))
		}
	}
	return covered
}

// meanInterval is the central interval of the particles' means, for each row.
func meanInterval(p bayes.Prediction, level float64) (lower, upper []float64) {
	all := must(p.ParticleMeans())
	m := make([]float64, p.Particles)
	for n := range p.Rows {
		for j := range m {
			m[j] = all[j*p.Rows+n]
		}
		slices.Sort(m)
		lower = append(lower, stat.Quantile((1-level)/2, stat.Empirical, m, nil))
		upper = append(upper, stat.Quantile((1+level)/2, stat.Empirical, m, nil))
	}
	return lower, upper
}

// outline keeps what figures 6 and 7 draw: of a regression the means and the intervals of f by row, of two classes the
// probability of class 1, and the gap that the paper's ECE seems to be.
func (r fbnnRun) outline(p bayes.Prediction, out Result) {
	if r.regression() {
		out.Series["mean"] = must(p.Mean())
		out.Series["lower"], out.Series["upper"] = meanInterval(p, .95)
		return
	}
	if p.Classes() != 2 {
		return
	}
	for _, v := range must(p.Probabilities()) {
		out.Series["probability"] = append(out.Series["probability"], v[1])
	}
	out.Values["gap to P(y = 1)"] = gapToProbability(out.Series["probability"], r.parts.Test.Y)
}

// gapToProbability is the mean of |accuracy - mean P(y = 1)| over ten bins of equal width, weighted by their rows: an
// ECE that takes the probability of class 1 for the confidence in the class that is predicted.
func gapToProbability(probability, y []float64) float64 {
	const bins = 10
	var right, sum, count [bins]float64
	for n, v := range probability {
		k := min(int(v*bins), bins-1)
		count[k]++
		sum[k] += v
		if (v > .5) == (y[n] == 1) {
			right[k]++
		}
	}
	gap := 0.
	for k := range bins {
		gap += math.Abs(right[k]-sum[k]) / float64(len(y))
	}
	return gap
}

// potential adds Phi of a baseline's particles: the mean of -log p(y | theta) over at most 100 of them. Draws of SWAG's
// Gaussian are independent, so that its effective sample size is their number.
func (r fbnnRun) potential(ctx context.Context, f *fbnnFit, out Result) {
	p := must(f.posterior.Predict(ctx, r.parts.Train.X))
	p, y := p.Standardised(), p.StandardiseTarget(r.parts.Train.Y)
	for _, s := range must(metric.ScoreDraws(p, y, 1)) {
		if s.Name == "NLPD" {
			out.Values["Phi"] = s.Mean() * float64(len(y))
		}
	}
	if _, swag := r.method.algorithm.(baseline.SWAG); swag { // the one of these whose ESS the paper has
		v, draws := out.Values, float64(f.posterior.Particles())
		v["ESS, least"], v["ESS, median"], v["ESS, most"] = draws, draws, draws
		v[essOfSeconds] = draws / v["seconds of a fit"]
	}
}

// chain adds what is known of draws of a chain: effective sizes, the true potential, evaluations.
func (r fbnnRun) chain(f *fbnnFit, p bayes.Prediction, out Result) {
	v, result := out.Values, f.own
	v["Phi"], v["Phi of the prior"] = result.Truth.True, result.Truth.Prior
	e := result.Evaluations
	v["full evaluations"] = float64(e.Full) + 3*float64(e.FullGradients)
	v["emulated evaluations"] = float64(e.Partial) + 3*float64(e.PartialGradients)
	if !math.IsNaN(result.SecondStage) {
		v["second stage"] = result.SecondStage
	}
	if !math.IsNaN(result.Truth.Emulated) {
		v["emulated Phi"] = result.Truth.Emulated
	}
	v["ESS, least"], v["ESS, median"], v["ESS, most"] = effective(must(diag.OfPosterior(f.posterior)), nil)
	v["ESS of f, least"], v["ESS of f, median"], _ = effective(must(diag.OfPrediction(p)), p.Outputs)
	v[essOfSeconds] = v["ESS, least"] / v["seconds of a fit"]
	if spent := v["full evaluations"]; spent > 0 {
		v["least ESS in 1000 full evaluations"] = 1000 * v["ESS, least"] / spent
	}
}

// effective returns the least, the median and the largest rank-normalised effective sample size. A column that is
// constant over the draws, [draws, parameters], such as the output of an emulator whose units are dead, counts 0
// effective draws. Package diag would count all draws.
func effective(s diag.Summary, draws []float64) (least, median, most float64) {
	var all []float64
	count := len(s.Rows)
	for i, r := range s.Rows {
		if len(draws) == count*s.Chains*s.Draws && constant(draws, i, count) {
			all = append(all, 0)
			continue
		}
		if !math.IsNaN(r.BulkESS) {
			all = append(all, r.BulkESS)
		}
	}
	if len(all) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	slices.Sort(all)
	return all[0], stat.Quantile(.5, stat.Empirical, all, nil), all[len(all)-1]
}

// constant says whether column i has the same value in all rows.
func constant(values []float64, i, columns int) bool {
	for k := i; k < len(values); k += columns {
		if values[k] != values[i] {
			return false
		}
	}
	return true
}
