package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// pmcnetFigure makes a figure of the panels of each data set's trials, in the given number of columns; of several these
// share their axes.
func pmcnetFigure(
	columns int, draw func(all *panels, group []*trial),
) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		var all panels
		for _, group := range byDataSet(done) {
			draw(&all, group)
		}
		return all.grid(viz.GridOptions{Columns: columns, SharedX: columns > 1, SharedY: columns > 1})
	}
}

// falsePositives at which ROC curves are kept.
func falsePositives() []float64 {
	return floats.Span(make([]float64, pmcnetPoints), 0, 1)
}

// drawEnvelopes is a panel for each method: the mean ROC curve of the draws within the 80, 95 and 99 % envelopes, of
// the first repetition, up to a half of false positives, since all is near 1 from there on.
func drawEnvelopes(all *panels, group []*trial) {
	const half = pmcnetPoints/2 + 1
	for _, t := range group {
		one := t.results[0].Series
		if one["ROC"] == nil {
			continue // it diverged
		}
		curve := viz.Series{Step: falsePositives()[:half], Value: one["ROC"][:half]}
		var traces []viz.Trace
		for i, level := range []string{"99 %", "95 %", "80 %"} {
			traces = append(traces, viz.Trace{Name: level, Series: curve, NoLine: true, Style: 6 + i,
				Lower: one["ROC "+level+" low"][:half], Upper: one["ROC "+level+" high"][:half]})
		}
		traces = append(traces, viz.Trace{Name: "mean", Series: curve, Style: 1})
		all.add(viz.Traces(traces, viz.TraceOptions{Frame: rocFrame(t.Method + ", " + shown(t.Data))}))
	}
}

// chance is the ROC curve of a coin. It makes both axes of all panels go from 0 to 1.
var chance = viz.Trace{Name: "chance", Series: viz.Series{Step: []float64{0, 1}, Value: []float64{0, 1}}, Style: 8}

func rocFrame(title string) viz.Frame {
	return viz.Frame{Title: title, XLabel: "false positive rate", YLabel: "true positive rate", Width: 400, Height: 320}
}

// drawROC is a panel for each method: the mean ROC curve of its draws with the 95 % envelope, in the first repetition,
// beside that of MLE; MLE and MAP, of one draw, have a curve alone.
func drawROC(all *panels, group []*trial) {
	var rows panels
	var mle []float64
	for _, t := range group {
		one := t.results[0].Series
		if one["ROC"] == nil {
			continue // it diverged
		}
		curve := viz.Series{Step: falsePositives(), Value: one["ROC"]}
		traces := []viz.Trace{{Name: "95 % of the draws", Series: curve, NoLine: true, Style: 8,
			Lower: one["ROC 95 % low"], Upper: one["ROC 95 % high"]}, {Name: "their mean", Series: curve, Style: 1}}
		if t.Method == "MLE" {
			mle = one["ROC"]
		}
		if mle != nil {
			traces = append(traces, viz.Trace{Name: "MLE", Series: viz.Series{Step: falsePositives(), Value: mle}, Style: 2})
		}
		rows.add(viz.Traces(traces, viz.TraceOptions{Frame: rocFrame(t.Method)}))
	}
	all.add(rows.grid(viz.GridOptions{Columns: 3, SharedX: true, SharedY: true}))
}

// drawIterations has a row of AUC and one of accuracy against the iteration, a panel for each method: the mean over
// repetitions with a band of a standard error to each side, beside the first method's, PMCnet, and the number that the
// paper has for this.
func drawIterations(all *panels, group []*trial) {
	for _, score := range []string{"AUC", "accuracy"} {
		var row panels
		var first viz.Series
		for _, t := range group {
			trace := viz.Trace{Name: "mean ± standard error", Style: 1}
			for i := range t.results[0].Series[score+" by iteration"] {
				var values []float64
				for _, r := range t.results {
					if one := r.Series[score+" by iteration"]; i < len(one) {
						values = append(values, one[i])
					}
				}
				mean, se := meanSE(values)
				trace.Value = append(trace.Value, mean)
				if len(t.results) > 1 {
					trace.Lower, trace.Upper = append(trace.Lower, mean-se), append(trace.Upper, mean+se)
				}
			}
			if len(trace.Value) == 0 {
				continue // all diverged
			}
			traces := []viz.Trace{trace}
			if first.Value == nil {
				first = trace.Series
			}
			traces = append(traces, viz.Trace{Name: group[0].Method, Series: first, Style: 2})
			row.add(viz.Traces(traces, viz.TraceOptions{Truth: group[0].paper[score].Value, TruthName: "the paper's PMCnet",
				Frame: viz.Frame{Title: t.Method, XLabel: "iteration", YLabel: score + ", " + shown(t.Data), Width: 300,
					Height: 290}}))
		}
		all.add(row.grid(viz.GridOptions{Columns: 5, SharedX: true, SharedY: true}))
	}
}

// outputMeans are the predictive means near which each method's test rows of drawOutputs lie.
var outputMeans = []float64{.1, .4, .6, .9}

// drawOutputs has a column for each method and a row for each of four test rows: the histogram of the sampled outputs,
// in 10 bins, and the beta density with their mean and variance.
func drawOutputs(all *panels, group []*trial) {
	group = slices.DeleteFunc(slices.Clone(group), func(t *trial) bool {
		return t.results[0].Series["outputs 0"] == nil // it diverged
	})
	if len(group) == 0 {
		return
	}
	var rows panels
	for k, mean := range outputMeans {
		for _, t := range group {
			title, draws := fmt.Sprintf("%s, mean near %.1f", t.Method, mean), t.results[0].Series[fmt.Sprintf("outputs %d", k)]
			if _, spread := betaOf(stat.MeanVariance(draws, nil)); !spread { // they are all one draw
				title += ", ESS 1"
			}
			rows.add(outputPanel(title, draws))
		}
	}
	all.add(rows.grid(viz.GridOptions{Columns: len(group)}))
}

func outputPanel(title string, draws []float64) (*viz.Figure, error) {
	const bins = 10
	counts := make([]float64, bins)
	for _, v := range draws {
		counts[min(int(v*bins), bins-1)] += bins / float64(len(draws))
	}
	steps := viz.Series{}
	add := func(x, y float64) { steps.Step, steps.Value = append(steps.Step, x), append(steps.Value, y) }
	for i, c := range counts {
		at := float64(i) / bins
		for _, corner := range [][2]float64{{at, 0}, {at, c}, {at + 1./bins, c}, {at + 1./bins, 0}} {
			add(corner[0], corner[1])
		}
	}
	traces := []viz.Trace{{Name: fmt.Sprintf("%d draws", len(draws)), Series: steps}}
	mean, variance := stat.MeanVariance(draws, nil)
	if b, ok := betaOf(mean, variance); ok {
		fitted := viz.Series{}
		for k := 1; k < 200; k++ {
			x := float64(k) / 200
			fitted.Step, fitted.Value = append(fitted.Step, x), append(fitted.Value, min(b.Prob(x), 1.5*slices.Max(counts)))
		}
		traces = append(traces, viz.Trace{Name: "beta density", Series: fitted})
	}
	return viz.Traces(traces, viz.TraceOptions{Outlines: true, Frame: viz.Frame{Title: title,
		XLabel: "probability of class 1", YLabel: "density", Width: 400, Height: 340}})
}

// betaOf is the beta distribution with a mean and variance; there is none where the variance is 0, as of draws that are
// all the same, or too large.
func betaOf(mean, variance float64) (distuv.Beta, bool) {
	if !(variance > 1e-12) || variance >= mean*(1-mean) {
		return distuv.Beta{}, false
	}
	size := mean*(1-mean)/variance - 1
	return distuv.Beta{Alpha: mean * size, Beta: (1 - mean) * size}, true
}

// drawConfusion is a panel for each method: the confusion matrix of the weighted predictive mean, in the first
// repetition. Digits are called so; other classes are counted from 1, as in the paper.
func drawConfusion(all *panels, group []*trial) {
	var rows panels
	columns := 5
	for _, t := range group {
		flat := t.results[0].Series["confusion"]
		if flat == nil {
			continue
		}
		var counts [][]float64
		var names []string
		classes := int(math.Sqrt(float64(len(flat))))
		for row := range slices.Chunk(flat, classes) {
			counts = append(counts, row)
			names = append(names, strconv.Itoa(len(counts)))
		}
		if classes == 10 { // digits, whose counts need room
			columns, names = 3, nil
		}
		rows.add(viz.Confusion(counts, names, viz.Frame{Title: t.Method, YLabel: "true class, " + shown(t.Data), Width: 270,
			Height: 310}))
	}
	all.add(rows.grid(viz.GridOptions{Columns: columns, SharedX: true, SharedY: true}))
}

// drawErrors shows the distribution of the test rows' squared errors by method: a violin, whose width is the density of
// their logarithm, and within it a box from the lower to the upper quartile with the median across.
func drawErrors(all *panels, group []*trial) {
	var traces []viz.Trace
	var names []string
	for _, t := range group {
		quantiles := t.results[0].Series["squared errors"]
		if quantiles == nil {
			continue
		}
		names = append(names, t.Method)
		logs := make([]float64, len(quantiles))
		for k, q := range quantiles {
			logs[k] = math.Log10(max(q, 1e-12))
		}
		outline := violin(float64(len(names)), logs)
		for k, v := range outline.Value {
			outline.Value[k] = math.Pow(10, v)
		}
		traces = append(traces, viz.Trace{Name: t.Method, Series: outline})
	}
	all.add(viz.Traces(traces, viz.TraceOptions{Outlines: true, LogY: true, XNames: names,
		Frame: viz.Frame{Title: "squared errors, " + shown(group[0].Data), XLabel: "method",
			YLabel: "squared error of a test row, in the target's own units, squared", Width: 800, Height: 460}}))
}

// violin is the outline of the density of values, ascending quantiles, about x, and then the box.
func violin(x float64, quantiles []float64) viz.Series {
	const half, points = .4, 60
	last := len(quantiles) - 1
	lo, hi := quantiles[last/50], quantiles[last]
	width := max(1e-6, 1.06*stat.StdDev(quantiles, nil)*math.Pow(float64(len(quantiles)), -.2))
	var density []float64
	at := floats.Span(make([]float64, points), lo, max(hi, lo+1e-6))
	for _, y := range at {
		sum := 0.
		for _, q := range quantiles {
			sum += math.Exp(-.5 * (y - q) * (y - q) / (width * width))
		}
		density = append(density, sum)
	}
	floats.Scale(half/slices.Max(density), density)
	var s viz.Series
	add := func(dx, y float64) { s.Step, s.Value = append(s.Step, x+dx), append(s.Value, y) }
	for k := range points {
		add(density[k], at[k])
	}
	for k := points - 1; k >= 0; k-- {
		add(-density[k], at[k])
	}
	const box = .08
	lower, middle, upper := quantiles[last/4], quantiles[last/2], quantiles[3*last/4]
	for _, p := range [][2]float64{{0, at[0]}, {0, lower}, {-box, lower}, {-box, middle}, {box, middle}, {-box, middle},
		{-box, upper}, {box, upper}, {box, lower}, {0, lower}} {
		add(p[0], p[1])
	}
	return s
}
