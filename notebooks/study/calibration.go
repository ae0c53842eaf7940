package study

import (
	"cmp"
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

// ece is the expected calibration error of the pooled bins; NaN without any.
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

// gap is the mean distance of the coverage from its level; NaN without any.
func (p *pooled) gap() float64 {
	if p.levels == nil {
		return math.NaN()
	}
	sum := 0.0
	for i, c := range p.coverage {
		sum += math.Abs(c-p.levels[i]) / float64(len(p.levels))
	}
	return sum
}

// The metrics of calibrationPage's cells.
const (
	pooledECE   = "ECE of pooled repetitions"
	coverageGap = "mean |coverage - level|"
)

// cells are the calibration on a data set, of as many repetitions.
func (p *pooled) cells(data, method string, reps int, seconds float64) (cells []Cell) {
	c := Cell{Study: "ohsmc.calibration", Data: data, Method: method, SE: math.NaN(), Reps: reps, Seconds: seconds}
	if p.bins != nil {
		c.Metric, c.Ours = pooledECE, p.ece()
		cells = append(cells, c)
	}
	if p.levels != nil {
		c.Metric, c.Ours = coverageGap, p.gap()
		cells = append(cells, c)
	}
	return cells
}

// calibrationPage is about the calibration of each method of Table 8: on all classifications together and on all
// regressions together. The cells have each method's numbers, on each data set and on all together; drawCalibration
// chooses the panels. The repetitions are Table 8's own.
func calibrationPage(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	pools, reps := map[string]*pooled{}, 0
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
		reps = max(reps, len(results))
		cells = append(cells, own.cells(key.Data, key.Method, len(results), seconds)...)
		return nil
	})
	if err != nil {
		return nil, cells, err
	}
	names, err := o.SelectMethods(contenderNames())
	if err != nil {
		return nil, cells, err
	}
	for _, name := range names {
		if p := pools[name]; p != nil {
			cells = append(cells, p.cells("all together", name, reps, 0)...)
		}
	}
	fig, err := drawCalibration(names, pools)
	return fig, cells, err
}

// drawCalibration has three panels of many methods: the coverage that is nearest to its level, and the reliability with
// the least and with the greatest ECE; the cells have the numbers of all. On data of one kind, or of one method, it has
// the two panels that there are.
func drawCalibration(names []string, pools map[string]*pooled) (*viz.Figure, error) {
	sorted := func(of func(*pooled) float64) (some []string) {
		for _, name := range names {
			if p := pools[name]; p != nil && !math.IsNaN(of(p)) {
				some = append(some, name)
			}
		}
		slices.SortStableFunc(some, func(a, b string) int { return cmp.Compare(of(pools[a]), of(pools[b])) })
		return some
	}
	ends := func(some []string) []string {
		if len(some) > 2 {
			return []string{some[0], some[len(some)-1]}
		}
		return some
	}
	regressions, classifications := ends(sorted((*pooled).gap)), ends(sorted((*pooled).ece))
	if len(classifications) > 0 && len(regressions) > 0 {
		regressions = regressions[:1]
	}
	var panels []*viz.Figure
	for _, name := range regressions {
		panel, err := drawCoverage(name, pools[name])
		if err != nil {
			return nil, err
		}
		panels = append(panels, panel)
	}
	for _, name := range classifications {
		panel, err := drawReliability(name, pools[name])
		if err != nil {
			return nil, err
		}
		panels = append(panels, panel)
	}
	if len(panels) == 0 {
		return nil, fmt.Errorf("calibration: every attempt of a method diverged: leave it out (-methods)")
	}
	return viz.Grid(viz.GridOptions{Columns: len(panels)}, panels...)
}

func drawCoverage(name string, p *pooled) (*viz.Figure, error) {
	return viz.CalibrationCurve(p.levels, p.coverage, 0, viz.Frame{Title: name + ": intervals", Width: 330, Height: 360})
}

func drawReliability(name string, p *pooled) (*viz.Figure, error) {
	return viz.Reliability(p.bins, viz.Frame{Title: name, Width: 330, Height: 450})
}
