package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// pmcnetFigure makes a figure of the panels of each data set's trials, in the given number of columns.
func pmcnetFigure(
	columns int, draw func(all *panels, group []*trial),
) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		var all panels
		for _, group := range byDataSet(done) {
			draw(&all, group)
		}
		return all.grid(viz.GridOptions{Columns: columns})
	}
}

// falsePositives at which ROC curves are kept.
func falsePositives() []float64 {
	return floats.Span(make([]float64, pmcnetPoints), 0, 1)
}

// drawEnvelopes is a panel for each method: the mean ROC curve of the draws, and outlines of the 80, 95 and 99 %
// envelopes, of the first repetition.
func drawEnvelopes(all *panels, group []*trial) {
	for _, t := range group {
		one := t.results[0]
		traces := []viz.Trace{{Name: "mean", Series: viz.Series{Step: falsePositives(), Value: one.Series["ROC"]}}}
		for _, level := range []string{"80 %", "95 %", "99 %"} {
			back := slices.Clone(one.Series["ROC "+level+" high"])
			at := falsePositives()
			slices.Reverse(back)
			slices.Reverse(at)
			traces = append(traces, viz.Trace{Name: level, Series: viz.Series{Step: append(falsePositives(), at...),
				Value: slices.Concat(one.Series["ROC "+level+" low"], back)}})
		}
		traces = append(traces, chance)
		all.add(viz.Traces(traces, viz.TraceOptions{Frame: rocFrame(t.Method + ", " + shown(t.Data)), Outlines: true}))
	}
}

// chance is the ROC curve of a coin. It makes both axes of all panels go from 0 to 1.
var chance = viz.Trace{Name: "chance", Series: viz.Series{Step: []float64{0, 1}, Value: []float64{0, 1}}, Style: 8}

func rocFrame(title string) viz.Frame {
	return viz.Frame{Title: title, XLabel: "false positive rate", YLabel: "true positive rate", Width: 400, Height: 380}
}

// drawROC is the mean ROC curve of each method's draws with the 95 % envelope shaded, in the first repetition; MLE and
// MAP, of one draw, have a curve alone. There is a panel of the paper's methods, and one of ours beside PMCnet, since
// more than eight curves cannot be told apart.
func drawROC(all *panels, group []*trial) {
	ours, before := []string{pmcTempered, pmcAnnealed}, len(all.figures)
	for _, part := range []struct {
		title string
		shows func(method string) bool
	}{
		{"the paper's methods", func(m string) bool { return !slices.Contains(ours, m) }},
		{"PMCnet and ours", func(m string) bool { return m == pmcPaper || slices.Contains(ours, m) }},
	} {
		var traces []viz.Trace
		own := false // a curve that is in no panel before
		for _, t := range group {
			m, one := t.Method, t.results[0].Series
			if curve := one["ROC"]; curve != nil && part.shows(m) {
				traces = append(traces, viz.Trace{Name: m, Series: viz.Series{Step: falsePositives(), Value: curve},
					Lower: one["ROC 95 % low"], Upper: one["ROC 95 % high"],
					Style: slices.Index(pmcRivals, m)%(chance.Style-1) + 1}) // PMCnet has one in both panels
				own = own || len(all.figures) == before || m != pmcPaper
			}
		}
		if !own {
			continue
		}
		traces = append(traces, chance)
		frame := rocFrame(shown(group[0].Data) + ": " + part.title)
		frame.Width, frame.Height = 520, 460
		all.add(viz.Traces(traces, viz.TraceOptions{Frame: frame}))
	}
}

// drawIterations is a panel of AUC and one of accuracy against the iteration, mean over repetitions.
func drawIterations(all *panels, group []*trial) {
	for _, score := range []string{"AUC", "accuracy"} {
		var traces []viz.Trace
		for _, t := range group {
			var mean []float64
			count := 0.
			for _, r := range t.results {
				one := r.Series[score+" by iteration"]
				if mean == nil {
					mean = make([]float64, len(one))
				}
				if len(one) == len(mean) {
					floats.Add(mean, one)
					count++
				}
			}
			if len(mean) > 0 {
				floats.Scale(1/count, mean)
				traces = append(traces, viz.Trace{Name: t.Method, Series: viz.Series{Value: mean}})
			}
		}
		all.add(viz.Traces(traces, viz.TraceOptions{Frame: viz.Frame{
			Title: score + ", " + shown(group[0].Data), XLabel: "iteration",
			YLabel: score + ", mean over draws", Width: 410, Height: 380}}))
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
			title := fmt.Sprintf("%s, mean near %.1f", t.Method, mean)
			rows.add(outputPanel(title, t.results[0].Series[fmt.Sprintf("outputs %d", k)]))
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
// repetition.
func drawConfusion(all *panels, group []*trial) {
	for _, t := range group {
		flat := t.results[0].Series["confusion"]
		if flat == nil {
			continue
		}
		var counts [][]float64
		for row := range slices.Chunk(flat, int(math.Sqrt(float64(len(flat))))) {
			counts = append(counts, row)
		}
		all.add(viz.Confusion(counts, nil, viz.Frame{Title: t.Method + ", " + shown(t.Data), Width: 270, Height: 280}))
	}
}

// drawErrors shows the distribution of the test rows' squared errors by method: a violin, whose width is the density of
// their logarithm, and within it a box from the lower to the upper quartile with the median across.
func drawErrors(all *panels, group []*trial) {
	var traces []viz.Trace
	for i, t := range group {
		quantiles := t.results[0].Series["squared errors"]
		if quantiles == nil {
			continue
		}
		logs := make([]float64, len(quantiles))
		for k, q := range quantiles {
			logs[k] = math.Log10(max(q, 1e-12))
		}
		outline := violin(float64(i+1), logs)
		for k, v := range outline.Value {
			outline.Value[k] = math.Pow(10, v)
		}
		traces = append(traces, viz.Trace{Name: t.Method, Series: outline})
	}
	all.add(viz.Traces(traces, viz.TraceOptions{Outlines: true, LogY: true, Frame: viz.Frame{
		Title: "squared errors, " + shown(group[0].Data), XLabel: "method, in the legend's order",
		YLabel: "squared error of a test row, standardised", Width: 800, Height: 460}}))
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
