package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/viz"

	"gonum.org/v1/gonum/stat"
)

// Figures 1 and 6 of Millard et al. 2025, on its two regressions: a panel for each data set and batch size, a curve for
// each method.

// regressionStyles are the methods in the order of their colours.
var regressionStyles = []string{"Random Walk", "Langevin", "exact Langevin", "adapted HMC", "VI", "SGHMC", "NUTS"}

// lossPanels draws the validation loss, mean over the repetitions, along "epoch" or "seconds", all on one scale. A
// method has one colour in all figures, also where others are not asked for.
func lossPanels(along string) func(context.Context, Options, []*trial) (*viz.Figure, error) {
	return func(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
		var curves [][]viz.Trace
		groups := byDataSet(done)
		for _, group := range groups {
			var traces []viz.Trace
			for _, t := range group {
				if s := meanCurve(t.results, along); len(s.Value) > 0 {
					traces = append(traces, viz.Trace{Name: t.Method, Series: s,
						Style: slices.Index(regressionStyles, t.Method) + 1})
				}
			}
			if len(traces) == 0 {
				return nil, fmt.Errorf("%s: none of the methods that were asked for is validated along its way: ask for Random "+
					"Walk, Langevin or others of -methods", group[0].Data)
			}
			curves = append(curves, traces)
		}
		most := withoutPeaks(curves)
		var all panels
		for i, traces := range curves {
			all.add(viz.Traces(traces, viz.TraceOptions{Frame: viz.Frame{Title: shown(groups[i][0].Data), XLabel: along,
				YLabel: "validation loss [target²]", Width: 420, Height: 360}, Most: most}))
		}
		return all.grid(viz.GridOptions{Columns: 3, SharedY: true})
	}
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

// meanCurve is the validation loss, mean over repetitions, each by its latest validation, from the first point at which
// all have one to the end of the shortest. The first twentieth, where losses fall from the prior's, is left out.
func meanCurve(results []Result, along string) viz.Series {
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
			k := 0
			for k+1 < len(r.Series[along]) && r.Series[along][k+1] <= x {
				k++
			}
			losses = append(losses, r.Series["loss"][k])
		}
		s.Step, s.Value = append(s.Step, x), append(s.Value, stat.Mean(losses, nil))
	}
	return s
}
