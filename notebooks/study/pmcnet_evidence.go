package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The benchmark of Javid, Handley, Hobson and Lasenby ("Compromise-free Bayesian neural networks", arXiv 2004.12211,
// 2020). It has ten halves of boston, with features and target standardised by the training half. The likelihood is a
// Gaussian of variance 1, and the prior N(0, 1) for every weight and bias; or precisions of all of these have Gamma
// priors. They publish the log of the mean of Z over the ten splits, by nested sampling, and the test mean squared
// error of the posterior's mean. Their order of biases does not change Z.

// evidenceRow is a network, with the numbers that they publish for it.
type evidenceRow struct {
	name    string
	network nn.MLP
	learnt  bool // the precisions
	logZ    Reported
	loss    float64
}

func row(name string, activation nn.Activation, logZ, se, loss float64, hidden ...int) evidenceRow {
	return evidenceRow{name, nn.MLP{Hidden: hidden, Activation: activation}, false, Reported{logZ, se}, loss}
}

func learntRow(name string, logZ, se, loss float64, hidden ...int) evidenceRow {
	r := row(name+learntName, nn.Tanh, logZ, se, loss, hidden...)
	r.learnt = true
	return r
}

// evidenceRows are their rows: linear is the analytic one. Of those with learnt precisions they have several priors;
// these have two for each layer, one of its weights and one of its biases.
var evidenceRows = []evidenceRow{
	row(linearRow, nn.Tanh, -294.16, .11, .3415),
	row("tanh 2", nn.Tanh, -286.75, .12, .2746, 2),
	row("tanh 4", nn.Tanh, -287.61, .11, .2711, 4),
	row("tanh 8", nn.Tanh, -291.26, .11, 0, 8), // whose loss is not known
	row("tanh 2-2", nn.Tanh, -289.02, .13, .2773, 2, 2),
	row("tanh 4-4", nn.Tanh, -289.18, .10, .2722, 4, 4),
	row("tanh 2-2-2-2", nn.Tanh, -291.49, .13, .2749, 2, 2, 2, 2),
	row("tanh 4-4-4-4", nn.Tanh, -290.34, .21, .2724, 4, 4, 4, 4),
	row("ReLU 2", nn.ReLU, -278.73, .13, .2526, 2),
	row("ReLU 8", nn.ReLU, -287.74, .14, .2216, 8),
	row("ReLU 4-4", nn.ReLU, -281.92, .13, .2311, 4, 4),
	row("ReLU 2-2-2", nn.ReLU, -280.53, .15, .2558, 2, 2, 2),
	row("ReLU 2-2-2-2", nn.ReLU, -281.74, .13, .2589, 2, 2, 2, 2),
	row("ReLU 4-4-4-4", nn.ReLU, -282.29, .14, .2387, 4, 4, 4, 4),
	learntRow(linearRow, -202.12, .14, .3418),
	learntRow("tanh 2", -141.35, .33, .2090, 2),
	learntRow("tanh 4", -121.86, 1.06, .1982, 4),
	learntRow("tanh 2-2", -130.96, .48, .2042, 2, 2),
	learntRow("tanh 4-4", -115.37, 1.74, .1791, 4, 4),
}

const (
	linearRow  = "linear"
	learntName = ", learnt" // ends the names of rows with learnt precisions
)

// evidenceLong lists the rows that -full or -data must ask for: they took 340 to 2230 seconds each, all others together
// 2290.
var evidenceLong = []string{"tanh 4-4-4-4", "ReLU 4-4-4-4", "tanh 2" + learntName, "tanh 4" + learntName,
	"tanh 2-2" + learntName, "tanh 4-4" + learntName}

// The estimators, which stand beside each other: tempered SMC from the prior, weighted draws of a mixture fitted to its
// particles, SMC from that mixture, and for the linear model the exact value.
const (
	byTempering  = string(annealed.BySMC)
	byImportance = string(annealed.ByImportance)
	byBridge     = string(annealed.ByBridge)
	byCholesky   = "exact"
)

var evidenceMethods = []string{byTempering, byImportance, byBridge}

// evidenceVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const evidenceVersion = 7

// splits of the benchmark.
const evidenceSplits = 10

// evidenceTrials has a trial for each row, which keeps its runs one by one.
func evidenceTrials(o Options) (all []*trial, err error) {
	if o.Epochs > 0 {
		return nil, errors.New("pmcnet.evidence trains nothing: leave out -epochs")
	}
	for _, r := range evidenceRows {
		quick, whole := r.algorithms()
		key := Key{"pmcnet.evidence", r.name, "row", []any{evidenceVersion, r.model(), quick, whole}}
		all = append(all, &trial{Key: key, reps: max(1, o.Reps),
			run:      func(ctx context.Context, repetition int) (Result, error) { return r.run(ctx, o, repetition) },
			extraSet: !o.Full && slices.Contains(evidenceLong, r.name)})
	}
	return all, nil
}

// evidenceCells are those of the rows.
func evidenceCells(done []*trial) (cells []Cell) {
	for _, t := range done {
		at := slices.IndexFunc(evidenceRows, func(r evidenceRow) bool { return r.name == t.Data })
		cells = append(cells, evidenceRows[at].cells(t.results)...)
	}
	return cells
}

// model is the row's.
func (r evidenceRow) model() bayes.Model {
	m := bayes.Model{Network: r.network, Likelihood: bayes.Gaussian{StdDev: 1}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.All()}
	if r.learnt {
		m.Likelihood, m.Prior = bayes.Gaussian{StdDev: 1, Learn: true}, bayes.LearntPrecision{ByWidth: true}
		m.Stochastic = m.Stochastic.And(bayes.Names("noise/log_scale"))
	}
	return m
}

// fewUnits is the largest number of units in one hidden layer for which a mixture of two components covers all images
// of the posterior. With eight units the bridge's log evidence was 2 too low.
const fewUnits = 4

// mixture returns the mixture and bridge that whole runs add to SMC; false where no mixture fits.
func (r evidenceRow) mixture() (a annealed.Annealed, fits bool) {
	hidden := r.network.Hidden
	return annealed.Annealed{Components: 2, Bridge: annealed.BridgeAlways}, len(hidden) == 0 ||
		len(hidden) == 1 && hidden[0] <= fewUnits
}

// algorithms returns the algorithms of the runs. Quick runs, by SMC alone, show which splits decide the mean. Whole
// runs add a mixture and a bridge where a mixture fits. Where none does, they are like the quick run, which is the
// first of them, and compiled with it. Waste-free chains are quickest, but must be long enough in networks of several
// hidden layers. There chains of 10 places gave log evidences .2 to .4 below those of replica exchange, which this
// library had once, in the mean of 176 runs. Chains of 30 places from 6000 particles gave no difference (24 runs; their
// distances to it are 1.36 combined errors, root mean square). Nor do 3000 particles in the recorded rows (1.1 combined
// errors); 1800 gave .18 below. Where the noise is learnt the posterior is narrow, and a chain of 20 places does not
// forget where it began: two runs of two tanh units differed by 2 in their bridges, and by 7 in a quick run, 8 of its
// errors. So there particles are moved until they forget. A mixture has a fixed number of components, so that the
// bridge is compiled once.
func (r evidenceRow) algorithms() (quick smc.Tempered, whole fit.Method) {
	mixed, fits := r.mixture()
	kernel := mcmc.HMC{Steps: 5}
	quick, large := smc.Tempered{Particles: 1000, WasteFree: 10}, smc.Tempered{Particles: 3000, WasteFree: 20}
	switch {
	case r.learnt:
		kernel, quick, large = mcmc.HMC{Steps: 10}, smc.Tempered{Particles: 500}, smc.Tempered{Particles: 2000}
	case !fits:
		quick = smc.Tempered{Particles: 3000, WasteFree: 30}
		large = quick
	}
	quick.Kernel, large.Kernel = kernel, kernel
	mixed.SMC = large
	if fits {
		return quick, mixed
	}
	return quick, large
}

// run is a repetition of the row.
func (r evidenceRow) run(ctx context.Context, o Options, repetition int) (Result, error) {
	runs, seconds := r.repeat(ctx, o, repetition)
	values := map[string]float64{"seconds": seconds}
	for _, method := range evidenceMethods {
		e, _ := runs.of(method)
		values[method], values[method+" error"] = e.value, e.se
	}
	var losses, khats []float64
	for k, some := range runs.whole {
		if len(some) == 0 {
			some = []Result{runs.quick[k]}
		}
		loss := 0.
		for _, one := range some {
			loss += one.Values["loss"] / float64(len(some))
			khats = append(khats, one.Values["k-hat"])
		}
		losses = append(losses, loss)
	}
	values["loss"], values["k-hat"] = stat.Mean(losses, nil), floats.Max(khats)
	if len(r.network.Hidden) == 0 {
		values[byCholesky], values[byCholesky+" error"] = r.exact().value, math.NaN() // there is none
	}
	return Result{Values: values}, nil
}

// repeat is a repetition of the row, and its seconds: each split has a quick run, those that count a whole one, and
// then those where it helps most others, until the standard error is small enough.
func (r evidenceRow) repeat(ctx context.Context, o Options, repetition int) (runs *evidenceRuns, seconds float64) {
	quick, whole := r.algorithms()
	store := keeper(ctx)
	runs = &evidenceRuns{}
	once := func(one evidenceRun, number int) Result {
		one.seed = uint64(100000*repetition + 1000*one.split + number)
		one.say = func(warning string) { o.say("%s, split %d, %s: %s", r.name, one.split+1, one.kind, warning) }
		one.algorithm = whole
		if one.kind == quickRun { // which is as rough as it is quick
			one.algorithm, one.say = quick, func(string) {}
		}
		key := Key{Study: "pmcnet.evidence", Data: r.name,
			Method: fmt.Sprintf("split %d, %s %d of repetition %d", one.split+1, one.kind, number+1, repetition+1),
			Settings: map[string]any{
				"version": evidenceVersion, "model": r.model(), "settings": one.algorithm,
			}}
		results := must(store.Repeat(ctx, key, 1, func(ctx context.Context, _ int) (Result, error) {
			return one.run(ctx, r.model())
		}))
		seconds += results[0].Seconds
		return results[0]
	}
	for split := range evidenceSplits {
		runs.quick[split] = once(evidenceRun{kind: quickRun, split: split}, 0)
		if reflect.DeepEqual(quick, whole) {
			runs.whole[split] = append(runs.whole[split], runs.quick[split])
		}
	}
	for {
		split, se, more := runs.next(r.within())
		if !more {
			if se > 0 {
				o.say("%s: a standard error is still %.3f, with the runs that a row may have", r.name, se)
			}
			return runs, seconds
		}
		one := once(evidenceRun{kind: wholeRun, split: split}, len(runs.whole[split]))
		runs.whole[split] = append(runs.whole[split], one)
	}
}

// evidenceRun is a run on a split.
type evidenceRun struct {
	kind      evidenceKind
	split     int
	algorithm fit.Method
	seed      uint64
	say       func(warning string)
}

// run gives what the algorithm estimates of log Z, with the standard errors, and the test loss.
func (r evidenceRun) run(ctx context.Context, model bayes.Model) (Result, error) {
	parts := must(dataset.MustLoad("boston").PublishedSplit(dataset.Javid, r.split))
	result, err := fit.Fit(ctx, model, r.algorithm, dataset.Parts{Train: parts.Train}, run.Settings{Seed: r.seed})
	failOn(ended(ctx, err))
	found := fit.Details[*annealed.Details](result)
	if found == nil { // SMC alone
		found = &annealed.Details{SMCEvidence: result.Draws.Evidence, ImportanceEvidence: unknownEvidence,
			BridgeEvidence: unknownEvidence, KHat: math.NaN()}
	}
	out := Result{Values: map[string]float64{}}
	r.annealed(out.Values, found)
	out.Values["loss"] = r.loss(ctx, *result, parts)
	return out, nil
}

var unknownEvidence = bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}

// annealed puts in log Z by SMC, importance sampling and the bridge with their errors, NaN where there is none, and
// k-hat.
func (r evidenceRun) annealed(values map[string]float64, said *annealed.Details) {
	importance := said.ImportanceEvidence
	if !(said.KHat <= pmcnet.MaxKHat) || said.ESS < 100 {
		importance = unknownEvidence
	}
	if said.NoBridge != "" {
		r.say("no bridge: " + said.NoBridge)
	}
	for method, e := range map[string]bayes.Evidence{
		byTempering: said.SMCEvidence, byImportance: importance, byBridge: said.BridgeEvidence,
	} {
		values[method], values[method+" error"] = e.Value, e.StdErr
	}
	values["k-hat"] = said.KHat
}

// loss is the mean squared error of the posterior's mean on the test half, standardised; it says what makes the
// posterior doubtful.
func (r evidenceRun) loss(ctx context.Context, result fit.Result, parts dataset.Parts) float64 {
	for _, w := range result.Warnings {
		r.say(w)
	}
	p := must(result.Posterior.Predict(ctx, parts.Test.X))
	return must(metric.MSE(p.Standardised(), p.StandardiseTarget(parts.Test.Y))).Value
}

// cells returns the estimates beside the published one, and their differences in combined standard errors.
func (r evidenceRow) cells(results []Result) (cells []Cell) {
	found := map[string][]estimate{}
	var losses, khats, seconds []float64
	for _, one := range results {
		for _, method := range append(slices.Clone(evidenceMethods), byCholesky) {
			_, known := one.Values[method]
			if known && (method != byCholesky || len(found[method]) == 0) { // which is the same in each
				found[method] = append(found[method], estimateOf(one, method))
			}
		}
		losses, khats = append(losses, one.Values["loss"]), append(khats, one.Values["k-hat"])
		seconds = append(seconds, one.Values["seconds"])
	}
	commits := distinct(results, func(one Result) string { return cmp.Or(one.Commit, "unknown") })
	add := func(method, name string, v, se float64, reps int, paper *Reported) {
		c := Cell{Study: "pmcnet.evidence", Data: r.name, Method: method, Metric: name, Ours: v, SE: se, Reps: reps,
			Seconds: floats.Sum(seconds), Commit: strings.Join(commits, ", ")}
		if paper != nil && paper.Value != 0 {
			c.Paper = &paper.Value
			if paper.SE > 0 {
				c.PaperSE = &paper.SE
			}
		}
		cells = append(cells, c)
	}
	mean := map[string]estimate{}
	for _, method := range evidenceMethods {
		mean[method] = estimate{math.NaN(), math.NaN()}
	}
	for _, method := range append(slices.Clone(evidenceMethods), byCholesky) {
		all := found[method]
		if len(all) == 0 {
			continue
		}
		e := all[0]
		if len(all) > 1 { // the spread of the runs says more than what they state
			var values []float64
			for _, one := range all {
				values = append(values, one.value)
			}
			e.value, e.se = meanSE(values)
		}
		mean[method] = e
		if !math.IsNaN(e.value) {
			add(method, "log Z", e.value, e.se, len(all), &r.logZ)
		}
		if len(all) > 1 {
			stated := 0.
			for _, one := range all {
				stated += one.se * one.se / float64(len(all))
			}
			add(method, "standard deviation of log Z over the repetitions", e.se*math.Sqrt(float64(len(all))), math.NaN(),
				len(all), nil)
			add(method, "standard error of log Z that a repetition states", math.Sqrt(stated), math.NaN(), len(all), nil)
		}
	}
	apart := func(a, b estimate) float64 { return (a.value - b.value) / math.Hypot(a.se, b.se) }
	published := estimate{r.logZ.Value, r.logZ.SE}
	for _, method := range evidenceMethods {
		if d := apart(mean[method], published); !math.IsNaN(d) && r.logZ.Value != 0 {
			add(method, "difference to the published log Z [combined errors]", d, math.NaN(), len(found[method]), nil)
		}
	}
	for _, method := range evidenceMethods[1:] {
		if d := apart(mean[method], mean[byTempering]); !math.IsNaN(d) {
			add(method, "difference to SMC [combined errors]", d, math.NaN(), len(found[method]), nil)
		}
	}
	loss := Reported{Value: r.loss}
	add(byTempering, "loss", stat.Mean(losses, nil), math.NaN(), len(found[byTempering]), &loss)
	if k := floats.Max(khats); !math.IsNaN(k) { // there was a mixture
		add(byImportance, "k-hat, largest of the splits", k, math.NaN(), len(found[byImportance]), nil)
	}
	return cells
}
