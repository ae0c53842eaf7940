package study

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/viz"
)

// calibrationOf is the calibration of a prediction of the test part, as the series of a repetition: the bins of
// confidence of a classification, or the coverage of a regression's central intervals at each level, and the number of
// rows.
func calibrationOf(p bayes.Prediction, y []float64) (map[string][]float64, error) {
	series := map[string][]float64{"rows": {float64(p.Rows)}}
	add := func(name string, v float64) { series[name] = append(series[name], v) }
	if p.Task() == dataset.Regression {
		curve, err := metric.CalibrationCurve(p, y)
		for _, c := range curve {
			add("level", c.Level)
			add("coverage", c.Coverage.Value)
		}
		return series, err
	}
	bins, err := metric.ReliabilityDiagram(p, y)
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
		if p.bins == nil {
			p.bins = make([]metric.Bin, len(counts))
		}
		if len(p.bins) != len(counts) {
			return fmt.Errorf("pooling reliability diagrams of %d and %d bins", len(p.bins), len(counts))
		}
		for i, n := range counts {
			b := &p.bins[i]
			b.Lower, b.Upper = float64(i)/float64(len(counts)), float64(i+1)/float64(len(counts))
			switch {
			case n == 0 && b.Count == 0:
				b.Confidence, b.Accuracy = math.NaN(), math.NaN()
			case b.Count == 0:
				b.Count, b.Confidence, b.Accuracy = int(n), confidence[i], accuracy[i]
			case n > 0:
				share := n / (float64(b.Count) + n)
				b.Confidence += share * (confidence[i] - b.Confidence)
				b.Accuracy += share * (accuracy[i] - b.Accuracy)
				b.Count += int(n)
			}
		}
		return nil
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

func drawCoverage(name string, p *pooled) (*viz.Figure, error) {
	return viz.CalibrationCurve(p.levels, p.coverage, 0, viz.Frame{Title: name + ": intervals", Width: 330, Height: 360})
}

func drawReliability(name string, p *pooled) (*viz.Figure, error) {
	return viz.Reliability(p.bins, viz.Frame{Title: name, Width: 330, Height: 450})
}
