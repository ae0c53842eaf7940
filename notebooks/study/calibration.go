package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/metric"
	"gobnn/viz"
)

// calibrationOf is the calibration of a prediction of the test part, as the series of a repetition: the bins of
// confidence of a classification, or the coverage of a regression's central intervals at each level, and the number of
// rows.
func calibrationOf(p bayes.Prediction, y []float64) (map[string][]float64, error) {
	series := map[string][]float64{"rows": {float64(p.Rows)}}
	add := func(name string, v float64) { series[name] = append(series[name], v) }
	if p.Task() == bayes.Regression {
		curve, err := metric.CalibrationCurve(p, y, nil)
		for _, c := range curve {
			add("level", c.Level)
			add("coverage", c.Coverage.Value)
		}
		return series, err
	}
	bins, err := metric.ReliabilityDiagram(p, y, 0)
	for _, b := range bins {
		add("bin", float64(b.Count))
		add("confidence", b.Confidence)
		add("accuracy", b.Accuracy)
	}
	return series, err
}

// pooled is the calibration of one method over all repetitions.
type pooled struct {
	bins     []metric.Bin // of classifications, all rows of all repetitions
	levels   []float64    // of regressions
	coverage []float64    // at each level, the mean over rows
	rows     float64      // of the regressions
}

func (p *pooled) add(r Result) error {
	if counts := r.Series["bin"]; len(counts) > 0 {
		confidence, accuracy := r.Series["confidence"], r.Series["accuracy"]
		bins := make([]metric.Bin, len(counts))
		for i, n := range counts {
			bins[i] = metric.Bin{
				Lower: float64(i) / float64(len(counts)), Upper: float64(i+1) / float64(len(counts)),
				Count: int(n), Confidence: confidence[i], Accuracy: accuracy[i],
			}
		}
		var err error
		p.bins, err = metric.PoolBins(p.bins, bins)
		return err
	}
	levels, coverage := r.Series["level"], r.Series["coverage"]
	if len(levels) == 0 { // every attempt diverged
		return nil
	}
	rows := r.Series["rows"][0]
	if p.levels == nil {
		p.levels, p.coverage = levels, make([]float64, len(levels))
	}
	if !slices.Equal(levels, p.levels) {
		return fmt.Errorf("coverage at the levels %v cannot be pooled with that at %v", levels, p.levels)
	}
	for i, c := range coverage {
		p.coverage[i] = (p.coverage[i]*p.rows + c*rows) / (p.rows + rows)
	}
	p.rows += rows
	return nil
}

// ece is the expected calibration error of the pooled bins.
func (p *pooled) ece() float64 {
	gap, rows := 0.0, 0.0
	for _, b := range p.bins {
		if b.Count > 0 {
			gap += float64(b.Count) * math.Abs(b.Accuracy-b.Confidence)
			rows += float64(b.Count)
		}
	}
	return gap / rows
}

// gap is the mean distance of the coverage from its level.
func (p *pooled) gap() float64 {
	sum := 0.0
	for i, c := range p.coverage {
		sum += math.Abs(c-p.levels[i]) / float64(len(p.levels))
	}
	return sum
}

// calibrationPage is a reliability diagram, of all classifications together, and the coverage against its level, of all
// regressions together, for each method of Table 8. The repetitions are Table 8's own. The cells have each data set's
// own numbers.
func calibrationPage(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	pools := map[string]*pooled{}
	var cells []Cell
	err := eachOfTable8(ctx, o, func(key Key, _ map[string]Reported, results []Result) error {
		if len(results) == 0 {
			return nil
		}
		if pools[key.Method] == nil {
			pools[key.Method] = &pooled{}
		}
		own := &pooled{}
		seconds := 0.0
		for _, r := range results {
			seconds += r.Seconds
			for _, p := range []*pooled{own, pools[key.Method]} {
				if err := p.add(r); err != nil {
					return fmt.Errorf("%s, %s: %w", key.Data, key.Method, err)
				}
			}
		}
		c := Cell{Study: "ohsmc.calibration", Data: key.Data, Method: key.Method, SE: math.NaN(), Reps: len(results),
			Seconds: seconds}
		if own.bins != nil {
			c.Metric, c.Ours = "ECE of pooled repetitions", own.ece()
			cells = append(cells, c)
		} else if own.levels != nil {
			c.Metric, c.Ours = "mean |coverage - level|", own.gap()
			cells = append(cells, c)
		}
		return nil
	})
	if err != nil {
		return nil, cells, err
	}
	names, err := o.SelectMethods(contenderNames())
	if err != nil {
		return nil, cells, err
	}
	fig, err := drawCalibration(names, pools)
	return fig, cells, err
}

// drawCalibration has a row of panels with the coverage of the first methods, below it a row with their reliability,
// and so on for the next methods.
func drawCalibration(names []string, pools map[string]*pooled) (*viz.Figure, error) {
	lines := evenly(names, 3)
	var rows []*viz.Figure
	for _, some := range lines {
		for _, draw := range []func(name string, p *pooled) (*viz.Figure, error){drawCoverage, drawReliability} {
			var line []*viz.Figure
			for _, name := range some {
				p := pools[name]
				if p == nil {
					p = &pooled{}
				}
				fig, err := draw(name, p)
				if err != nil {
					return nil, err
				}
				if fig != nil {
					line = append(line, fig)
				}
			}
			if len(line) < len(some) { // not all methods were run on data of this kind
				continue
			}
			row, err := viz.Grid(viz.GridOptions{Columns: len(lines[0])}, line...)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("calibration: every attempt of a method diverged: leave it out (-methods)")
	}
	return viz.Grid(viz.GridOptions{Columns: 1}, rows...)
}

// evenly are the names in as few lines of at most so many as they need, of which the last are shorter by one: a panel
// alone in its line would have the legend to itself, and less room for its data.
func evenly(names []string, most int) (lines [][]string) {
	for len(names) > 0 {
		left := (len(names) + most - 1) / most
		n := (len(names) + left - 1) / left
		lines, names = append(lines, names[:n]), names[n:]
	}
	return lines
}

func drawCoverage(name string, p *pooled) (*viz.Figure, error) {
	if p.levels == nil {
		return nil, nil
	}
	return viz.CalibrationCurve(p.levels, p.coverage, viz.CalibrationOptions{Frame: viz.Frame{Title: name + ": intervals",
		Width: 330, Height: 360}})
}

func drawReliability(name string, p *pooled) (*viz.Figure, error) {
	if p.bins == nil {
		return nil, nil
	}
	return viz.Reliability(p.bins, viz.ReliabilityOptions{Frame: viz.Frame{Title: name, Width: 330, Height: 450}})
}
