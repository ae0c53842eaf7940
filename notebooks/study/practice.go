package study

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/auto"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/notebooks/study/practice"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/pmcnet"
	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// What methods give who sets nothing: each with its own defaults and the model of bayes.ModelFor, on the tables of
// package practice, each fit stopped after the seconds of the default method. Beside them stand ten networks trained by
// Adam, and other packages' methods as recorded.

// practiceVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings. The default method has since been given all rows at its end, what the budget leaves it for training,
// shorter steps, and networks with the prior beside the others; Laplace the proposed likelihood; and guided weighs by
// the batch alone.
func practiceVersion(method string) int {
	switch {
	case strings.HasPrefix(method, ownDefault):
		return 6
	case method == "Laplace" || method == "guided":
		return 2
	}
	return 1
}

// The default method, the ensemble that it is to beat, and the same with the default's proposed model.
const (
	ownDefault  = "auto"
	tenNetworks = "ten networks"
	tenProposed = "ten networks (proposed model)"
)

// practiceCPUs are those that a fit has: its seconds count.
const practiceCPUs = 2

// practiceMethod is a method with its own defaults.
type practiceMethod struct {
	name    string
	method  fit.Method
	seconds float64 // what a fit may take, compilation included
}

// practiceMethods have the seconds of the default method.
var practiceMethods = []practiceMethod{
	{ownDefault, auto.Method{}, 60},
	{tenNetworks, networks(10), 60},
	{tenProposed, proposed{networks(10)}, 60},
	{"MAP", baseline.MAP{}, 60},
	{"Laplace", baseline.Laplace{}, 60},
	{"SWAG", baseline.SWAG{}, 60},
	{"VI", baseline.VI{}, 60},
	{"SGHMC", baseline.SGHMC{}, 60},
	{"OHSMC", ohsmc.OpenHorizon{}, 60},
	{"guided", ohsmc.Guided{}, 60},
	{"penalty", pbnn.Metropolis{}, 60},
	{"NUTS", mcmc.Chains{}, 60},
	{"PMCnet", pmcnet.PMC{}, 60},
}

// growing are the default method with a growing budget, and ensembles of growing size.
func growing(seconds ...float64) (all []practiceMethod) {
	for _, s := range seconds {
		all = append(all, practiceMethod{fmt.Sprintf("%s %v s", ownDefault, s), auto.Method{Seconds: s}, 2 * s})
	}
	most := slices.Max(seconds)
	for _, members := range []int{10, 40} {
		all = append(all, practiceMethod{fmt.Sprintf("%d networks", members), networks(members), most})
	}
	return all
}

// galTrials are the default method and ten networks on Gal's splits.
func galTrials(o Options) ([]*trial, error) {
	gal := func(t practice.Table) bool { return t.Half == practice.Reported && t.Published == dataset.Gal }
	all, err := practiceTrials(1, practiceMethods[:2], gal)(o)
	for _, t := range all {
		t.paper = reportedIn("practice", t.Data)[t.Method]
	}
	return all, err
}

// benchmarkTrials are the trials on one table of bde's benchmark; the longest budget stands beside their numbers.
func benchmarkTrials(name string, reps int, methods []practiceMethod) func(o Options) ([]*trial, error) {
	return func(o Options) ([]*trial, error) {
		all, err := practiceTrials(reps, methods, func(t practice.Table) bool { return t.Name == name })(o)
		for _, t := range all {
			if strings.HasPrefix(t.Method, ownDefault) {
				t.paper = reportedIn("practice", name)[ownDefault]
			}
		}
		return all, err
	}
}

// networks are an ensemble trained by Adam.
func networks(members int) baseline.Ensemble {
	return baseline.Ensemble{Members: members, Training: train.Training{Epochs: 200}}
}

// proposed is an ensemble with the proposed model, as the other methods have it.
type proposed struct{ baseline.Ensemble }

// practiceModel is the proposed model. An ensemble has what people take who know of heteroscedastic noise, and for the
// algorithms of ohsmc the second layer is stochastic.
func practiceModel(data *dataset.Dataset, method fit.Method) (bayes.Model, error) {
	model, err := bayes.ModelFor(data)
	switch method.(type) {
	case ohsmc.OpenHorizon, ohsmc.Guided:
		model.Stochastic = bayes.Layers(2)
	case baseline.Ensemble:
		model = bayes.Model{Network: nn.MLP{Hidden: []int{50, 20, 5}}, Likelihood: model.Likelihood}
		if data.Task == dataset.Regression {
			model.Likelihood = bayes.Heteroscedastic{}
		}
	}
	return model, err
}

// practiceTrials returns the trials of methods on tables, a split each repetition, and other packages' scores.
func practiceTrials(
	reps int, methods []practiceMethod, chosen func(practice.Table) bool,
) func(o Options) ([]*trial, error) {
	return func(o Options) (all []*trial, err error) {
		peers := must(practice.LoadPeers())
		for _, table := range practice.Tables {
			if !chosen(table) {
				continue
			}
			for _, m := range methods {
				key := Key{Study: "practice", Data: table.Name, Method: m.name, Settings: map[string]any{
					"version": practiceVersion(m.name), "method": m.method, "seconds": m.seconds}}
				run := func(ctx context.Context, repetition int) (Result, error) {
					parts := must(table.Split(uint64(repetition + 1)))
					return m.scores(ctx, o, parts, uint64(repetition))
				}
				all = append(all, &trial{Key: key, reps: cmp.Or(o.Reps, reps), run: run, cpus: practiceCPUs})
			}
			scores := map[string][]Result{}
			for _, row := range peers.Rows {
				if row.Data == table.Name {
					scores[row.Method] = append(scores[row.Method], peerResult(row))
				}
			}
			for _, name := range slices.Sorted(maps.Keys(scores)) {
				run := func(_ context.Context, repetition int) (Result, error) { return scores[name][repetition], nil }
				all = append(all, &trial{Key: Key{Study: "practice", Data: table.Name, Method: name, Settings: scores[name]},
					reps: min(cmp.Or(o.Reps, reps), len(scores[name])), run: run})
			}
		}
		return all, nil
	}
}

// scores fits within the time and scores the test part, in units of the training target's standard deviation. A method
// that diverges, or has no posterior by then, has an infinite NLPD.
func (m practiceMethod) scores(ctx context.Context, o Options, parts dataset.Parts, seed uint64) (Result, error) {
	model := must(practiceModel(parts.Train, m.method))
	begun := time.Now()
	within, end := context.WithTimeout(ctx, time.Duration(m.seconds*float64(time.Second)))
	defer end()
	fitted, err := fit.Fit(within, model, m.method, parts, run.Settings{Seed: seed})
	seconds := time.Since(begun).Seconds()
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case err != nil && within.Err() == nil && !diverges(err):
		return Result{}, err
	case err != nil:
		o.say("%s, %s: %v", parts.Train.Name, m.name, err)
		return Result{Values: map[string]float64{"NLPD": math.Inf(1), "seconds": seconds}}, nil
	}
	prediction := must(fitted.Posterior.Predict(ctx, parts.Test.X))
	y := prediction.StandardiseTarget(parts.Test.Y)
	prediction = prediction.Standardised()
	r := Result{Values: map[string]float64{"seconds": seconds},
		Series: map[string][]float64{"log density": must(prediction.LogDensity(y))}}
	for _, s := range must(metric.Scores(prediction, y)) {
		r.Values[s.Name] = s.Value
	}
	if prediction.Task() == dataset.Regression {
		r.Values["coverage 90 %"] = must(metric.Coverage(prediction, y, .9)).Value
		r.Values[unitsMetric] = r.Values["NLPD"] + math.Log(fitted.Posterior.Origin().Target.StdDev[0])
		r.Values[oneNormalMetric] = oneNormal(prediction, y)
	}
	if d := fit.Details[*auto.Details](fitted); d != nil {
		r.Values["gain by sampling"] = d.Added.Value
	}
	return r, nil
}

// oneNormal is the mean of -log N(y; m, s^2) with the prediction's mean and standard deviation, as some benchmarks
// score.
func oneNormal(p bayes.Prediction, y []float64) float64 {
	mean, deviation := must(p.Mean()), must(p.StdDev())
	sum := 0.
	for n, value := range y {
		sum -= distuv.Normal{Mu: mean[n], Sigma: deviation[n]}.LogProb(value)
	}
	return sum / float64(len(y))
}

// peerResult has another package's recorded scores.
func peerResult(s practice.PeerScore) Result {
	values := map[string]float64{"NLPD": s.NLPD, "seconds": s.Seconds}
	if s.RMSE > 0 {
		values["RMSE"], values["CRPS"], values["coverage 90 %"] = s.RMSE, s.CRPS, s.Coverage90
	} else {
		values["accuracy"], values["Brier"] = s.Accuracy, s.Brier
	}
	return Result{Values: values}
}

// The cells of all tables together.
const (
	allTables  = "all tables"
	rankMetric = "mean rank by NLPD"
)

// practiceCells are the mean ranks of the methods over the tables, and against ten networks, of both models, the number
// of splits on which a method is worse by more than the standard error of the paired difference over the test rows;
// then the cells of each table.
func practiceCells(id string) func(done []*trial) []Cell {
	return func(done []*trial) (cells []Cell) {
		ranks := practiceRanks(done)
		for _, name := range distinct(done, (*trial).method) {
			some := slices.DeleteFunc(slices.Clone(done), func(t *trial) bool { return t.Method != name })
			whole := Cells(some[0].Key, some[0].results[:1], nil)[0]
			whole.Study, whole.Data, whole.Metric = id, allTables, rankMetric
			whole.Ours, whole.SE = meanSE(ranks[name])
			whole.Reps = len(ranks[name])
			cells = append(cells, whole)
			for _, rival := range []string{tenNetworks, tenProposed} {
				if worse, splits := worseThan(rival, some, done); splits > 0 && name != rival {
					whole.Metric, whole.Reps = "splits worse than "+rival, splits
					whole.Ours, whole.SE = float64(worse), math.NaN()
					cells = append(cells, whole)
				}
			}
		}
		for _, t := range done {
			cells = append(cells, only(t.cells(id), practiceMetrics)...)
		}
		return cells
	}
}

// unitsMetric is the NLPD of the target in its own units.
const unitsMetric = "NLPD, own units"

// The metrics of bde's benchmark, whose LPPD is the NLPD with the other sign, and of Gal's splits.
var (
	benchmarkMetrics = []string{"RMSE", oneNormalMetric, "NLPD", "CRPS", "coverage 90 %", "seconds"}
	galMetrics       = []string{unitsMetric, "RMSE", "coverage 90 %", "seconds"}
)

func confirming(t practice.Table) bool { return t.Half == practice.Confirm }

var practiceMetrics = []string{"NLPD", oneNormalMetric, "RMSE", "CRPS", "accuracy", "coverage 90 %", "seconds"}

// practiceRanks are each method's ranks by NLPD, a table's mean over its splits counting once; equal ones share theirs.
func practiceRanks(done []*trial) map[string][]float64 {
	ranks := map[string][]float64{}
	for _, group := range byDataSet(done) {
		splits := len(slices.MinFunc(group, func(a, b *trial) int { return len(a.results) - len(b.results) }).results)
		for _, t := range group {
			sum := 0.
			for split := range splits {
				own := t.results[split].Values["NLPD"]
				sum++
				for _, other := range group {
					if v := other.results[split].Values["NLPD"]; v < own {
						sum++
					} else if other != t && v == own {
						sum += .5
					}
				}
			}
			ranks[t.Method] = append(ranks[t.Method], sum/float64(splits))
		}
	}
	return ranks
}

// worseThan counts the splits on which a method's trials, one of each table, are worse than a rival.
func worseThan(rival string, some, done []*trial) (worse, splits int) {
	for _, t := range some {
		i := slices.IndexFunc(done, func(o *trial) bool { return o.Data == t.Data && o.Method == rival })
		if i < 0 {
			continue
		}
		for k, r := range t.results[:min(len(t.results), len(done[i].results))] {
			own, other := r.Series["log density"], done[i].results[k].Series["log density"]
			if math.IsInf(r.Values["NLPD"], 1) {
				worse, splits = worse+1, splits+1
			} else if len(own) > 0 && len(own) == len(other) {
				splits++
				if mean, stdErr := meanSE(floats.SubTo(make([]float64, len(own)), other, own)); mean > stdErr {
					worse++
				}
			}
		}
	}
	return worse, splits
}

// ranksFigure has a bar for each method's mean rank, and a mark beyond which a rank differs from the default's: the
// critical difference at 5 % of Bonferroni and Dunn, for comparisons of all with one (Demsar 2006).
func ranksFigure(cells []Cell) (*viz.Figure, error) {
	ranks := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Metric != rankMetric })
	own := slices.IndexFunc(ranks, func(c Cell) bool { return c.Method == ownDefault })
	if own < 0 || len(ranks) < 2 {
		return nil, fmt.Errorf("practice: the figure compares %s with other methods: -methods must name both", ownDefault)
	}
	k, tables := float64(len(ranks)), float64(ranks[own].Reps)
	critical := distuv.UnitNormal.Quantile(1-.025/(k-1)) * math.Sqrt(k*(k+1)/(6*tables))
	var names []string
	var values, marks []float64
	for _, c := range ranks {
		names, values, marks = append(names, shown(c.Method)), append(values, c.Ours), append(marks, ranks[own].Ours+critical)
	}
	return viz.Bars(names, values, viz.BarOptions{Marks: marks, MarkName: "worse than auto beyond",
		Frame: viz.Frame{Title: fmt.Sprintf("Mean rank by NLPD over %v tables", tables), XLabel: "mean rank"}})
}

// oneNormalMetric is the score of bde's benchmark.
const oneNormalMetric = "NLL of one normal"

// secondsFigure has the NLL of one normal of the default method against its seconds, of ensembles against theirs, of
// other packages, whose predictions are one normal each, and of the benchmark's own.
func secondsFigure(cells []Cell) (*viz.Figure, error) {
	at := map[[2]string]float64{}
	for _, c := range cells {
		at[[2]string{c.Method, c.Metric}] = c.Ours
	}
	var traces []viz.Trace
	add := func(name string, seconds, value float64) {
		i := slices.IndexFunc(traces, func(t viz.Trace) bool { return t.Name == name })
		if i < 0 {
			i, traces = len(traces), append(traces, viz.Trace{Name: name})
		}
		traces[i].Step, traces[i].Value = append(traces[i].Step, seconds), append(traces[i].Value, value)
	}
	methods := distinct(cells, func(c Cell) string { return c.Method })
	slices.SortStableFunc(methods, func(a, b string) int {
		return cmp.Compare(at[[2]string{a, "seconds"}], at[[2]string{b, "seconds"}])
	})
	for _, method := range methods {
		kind := shown(method)
		value, is := at[[2]string{method, oneNormalMetric}]
		if !is {
			value = at[[2]string{method, "NLPD"}]
		}
		if strings.HasPrefix(kind, ownDefault+" ") {
			kind = ownDefault
		} else if strings.HasSuffix(kind, " networks") {
			kind = "networks"
		}
		add(kind, at[[2]string{method, "seconds"}], value)
	}
	reported := reportedIn("practice", cells[0].Data)[ownDefault]
	add("bde, on ten cores", reported["seconds"].Value, reported[oneNormalMetric].Value)
	frame := viz.Frame{Title: shown(cells[0].Data), XLabel: "seconds", YLabel: oneNormalMetric}
	return viz.Traces(traces, viz.TraceOptions{Frame: frame, LogX: true, Points: true})
}
