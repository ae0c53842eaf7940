package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Figures 1 to 7 of Millard et al. 2025: a panel for each data set and batch size, a curve for each method.

// regressionStyles are the methods in the order of their colours.
var regressionStyles = []string{"Random Walk", "Langevin", "exact Langevin", "adapted HMC", "VI", "SGHMC", "NUTS"}

// lossPanels draws the validation loss of regressions, mean and standard error over the repetitions, all on one scale.
// Each is a median of five epochs: after a single bad batch a loss is up to fifty times that of the epochs beside it.
// A method has one colour in all figures, also where others are not asked for.
func lossPanels(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var smooth []*trial
	for _, t := range done {
		own := *t
		own.results = nil
		for _, r := range t.results {
			own.results = append(own.results, Result{Series: map[string][]float64{
				"epoch": r.Series["epoch"], "loss": runningMedian(r.Series["loss"], 5)}})
		}
		smooth = append(smooth, &own)
	}
	all := must(curvePanels(smooth, "epoch", "loss", viz.TraceOptions{LogY: true,
		Frame: viz.Frame{YLabel: "validation loss [target²]"}}))
	return all.grid(viz.GridOptions{Columns: 3, SharedY: true})
}

// runningMedian is the median of `window` values, an odd number, around each value, fewer at the ends.
func runningMedian(values []float64, window int) (medians []float64) {
	for i := range values {
		around := slices.Sorted(slices.Values(values[max(0, i-window/2):min(i+window/2+1, len(values))]))
		medians = append(medians, around[(len(around)-1)/2])
	}
	return medians
}

// picturePanels draws the validation loss of classifications along "epoch" or "seconds", and below it the accuracy,
// each on one scale.
func picturePanels(along string) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		var rows []*viz.Figure
		for _, of := range []string{"loss", "accuracy"} {
			row := must(curvePanels(done, along, of, viz.TraceOptions{LogY: of == "loss",
				Frame: viz.Frame{YLabel: "validation " + of}}))
			rows = append(rows, must(row.grid(viz.GridOptions{Columns: 3, SharedY: true})))
		}
		return viz.Grid(viz.GridOptions{Columns: 3 - min(2, len(byDataSet(done)))}, rows...)
	}
}

// curvePanels draws the series called `of`, a panel for each data set and batch size.
func curvePanels(done []*trial, along, of string, opt viz.TraceOptions) (all panels, err error) {
	for _, group := range byDataSet(done) {
		var traces []viz.Trace
		for _, t := range group {
			if curve := meanCurve(t.results, along, of); len(curve.Value) > 0 {
				curve.Name, curve.Style = t.Method, methodStyle(t.Method)
				traces = append(traces, curve)
			}
		}
		if len(traces) == 0 {
			return all, fmt.Errorf("%s: none of the methods that were asked for is validated along its way: ask for Random "+
				"Walk, Langevin or others of -methods", group[0].Data)
		}
		opt.Title, opt.XLabel, opt.Width, opt.Height = shown(group[0].Data), along, 420, 360
		opt.Points = len(traces[0].Value) <= 30
		all.add(viz.Traces(traces, opt))
	}
	return all, nil
}

// methodStyle is a method's colour.
func methodStyle(method string) int { return slices.Index(regressionStyles, method) + 1 }

// drawDetection draws the ROC curves of Figure 5, mean over the repetitions.
func drawDetection(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var traces []viz.Trace
	for _, t := range done {
		if s := meanROC(t.results); len(s.Value) > 0 {
			traces = append(traces, viz.Trace{Name: t.Method, Series: s, Style: methodStyle(t.Method)})
		}
	}
	frame := rocFrame("MNIST and FashionMNIST: by energy")
	frame.Width, frame.Height = 520, 460
	return viz.Traces(append(traces, chance), viz.TraceOptions{Frame: frame})
}

// meanROC is the true positive rate at each of falsePositives, mean over repetitions.
func meanROC(results []Result) (s viz.Series) {
	for k, at := range falsePositives() {
		var rates []float64
		for _, r := range results {
			if curve := r.Series["true positive rate"]; curve != nil { // none of one that diverged
				rates = append(rates, curve[k])
			}
		}
		if len(rates) > 0 {
			s.Step, s.Value = append(s.Step, at), append(s.Value, stat.Mean(rates, nil))
		}
	}
	return s
}

// curvePoints is the number of points of a mean curve whose repetitions were validated at different times.
const curvePoints = 200

// meanCurve is a series of validations, mean over repetitions, with a standard error above and below if there are
// several: at the validations, if all have the same, or else along lines from validation to validation, from the first
// point at which all have one to the end of the shortest. The first twentieth, where losses fall from the prior's, is
// left out.
func meanCurve(results []Result, along, of string) (t viz.Trace) {
	begin, end := 0., math.Inf(1)
	for _, r := range results {
		at := r.Series[along]
		if len(at) == 0 {
			return viz.Trace{}
		}
		begin, end = max(begin, at[0]), min(end, at[len(at)-1])
	}
	begin = max(begin, min(end/20, end-1e-9))
	first := results[0].Series[along]
	points := slices.DeleteFunc(slices.Clone(first), func(x float64) bool { return x < begin })
	if slices.ContainsFunc(results, func(r Result) bool { return !slices.Equal(r.Series[along], first) }) {
		points = floats.Span(make([]float64, curvePoints), begin, end)
	}
	for _, x := range points {
		var losses []float64
		for _, r := range results {
			at, values := r.Series[along], r.Series[of]
			k := max(1, min(sort.SearchFloat64s(at, x), len(at)-1))
			if len(at) == 1 || at[k] == at[k-1] {
				losses = append(losses, values[min(k, len(at)-1)])
				continue
			}
			share := max(0, min((x-at[k-1])/(at[k]-at[k-1]), 1))
			losses = append(losses, values[k-1]+share*(values[k]-values[k-1]))
		}
		mean, se := meanSE(losses)
		t.Step, t.Value = append(t.Step, x), append(t.Value, mean)
		if len(losses) > 1 {
			t.Lower, t.Upper = append(t.Lower, mean-se), append(t.Upper, mean+se)
		}
	}
	return t
}
