package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"gobnn/viz"

	"gonum.org/v1/gonum/stat"
)

// Figures 1 to 7 of Millard et al. 2025: a panel for each data set and batch size, a curve for each method.

// regressionStyles are the methods in the order of their colours.
var regressionStyles = []string{"Random Walk", "Langevin", "exact Langevin", "adapted HMC", "VI", "SGHMC", "NUTS"}

// lossPanels draws the validation loss of regressions, mean over the repetitions, all on one scale. A method has one
// colour in all figures, also where others are not asked for.
func lossPanels(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	all := must(curvePanels(done, "epoch", "loss", "validation loss [target²]"))
	return all.grid(viz.GridOptions{Columns: 3, SharedY: true})
}

// picturePanels draws the validation loss of classifications along "epoch" or "seconds", and below it the accuracy.
func picturePanels(along string) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		columns := len(byDataSet(done))
		loss := must(curvePanels(done, along, "loss", "validation loss"))
		accuracy := must(curvePanels(done, along, "accuracy", "validation accuracy"))
		loss.figures, loss.err = append(loss.figures, accuracy.figures...), cmp.Or(loss.err, accuracy.err)
		return loss.grid(viz.GridOptions{Columns: columns})
	}
}

// curvePanels draws the series called `of`, a panel for each data set and batch size.
func curvePanels(done []*trial, along, of, label string) (all panels, err error) {
	var curves [][]viz.Trace
	groups := byDataSet(done)
	for _, group := range groups {
		var traces []viz.Trace
		for _, t := range group {
			if s := meanCurve(t.results, along, of); len(s.Value) > 0 {
				traces = append(traces, viz.Trace{Name: t.Method, Series: s, Style: methodStyle(t.Method)})
			}
		}
		if len(traces) == 0 {
			return all, fmt.Errorf("%s: none of the methods that were asked for is validated along its way: ask for Random "+
				"Walk, Langevin or others of -methods", group[0].Data)
		}
		curves = append(curves, traces)
	}
	most := withoutPeaks(curves)
	for i, traces := range curves {
		all.add(viz.Traces(traces, viz.TraceOptions{Frame: viz.Frame{Title: shown(groups[i][0].Data), XLabel: along,
			YLabel: label, Width: 420, Height: 360}, Most: most}))
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

// withoutPeaks is the highest value within twice the median of its panel, since a single bad mini-batch would squeeze
// the rest of all panels into lines.
func withoutPeaks(panels [][]viz.Trace) (most float64) {
	for _, traces := range panels {
		var all []float64
		for _, t := range traces {
			all = append(all, t.Value...)
		}
		slices.Sort(all)
		limit := 2 * all[len(all)/2]
		for _, v := range all {
			if v <= limit {
				most = max(most, v)
			}
		}
	}
	return most
}

// curvePoints is the number of points of a mean curve.
const curvePoints = 200

// meanCurve is a series of validations, mean over repetitions, each along lines from validation to validation, from the
// first point at which all have one to the end of the shortest. The first twentieth, where losses fall from the
// prior's, is left out.
func meanCurve(results []Result, along, of string) viz.Series {
	begin, end := 0., math.Inf(1)
	for _, r := range results {
		at := r.Series[along]
		if len(at) == 0 {
			return viz.Series{}
		}
		begin, end = max(begin, at[0]), min(end, at[len(at)-1])
	}
	begin = max(begin, min(end/20, end-1e-9))
	var s viz.Series
	for i := range curvePoints {
		x := begin + (end-begin)*float64(i)/(curvePoints-1)
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
		s.Step, s.Value = append(s.Step, x), append(s.Value, stat.Mean(losses, nil))
	}
	return s
}
