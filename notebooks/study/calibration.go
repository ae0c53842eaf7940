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

// draw is observed frequency against predicted probability, of a classification with a standard error of each bin.
func (p *pooled) draw() (*viz.Figure, error) {
	observed := viz.Trace{Name: "observed", Series: viz.Series{Step: p.levels, Value: p.coverage}}
	for _, b := range p.bins {
		if b.Count == 0 {
			continue
		}
		se := math.Sqrt(b.Accuracy * (1 - b.Accuracy) / float64(b.Count))
		observed.Step, observed.Value = append(observed.Step, b.Confidence), append(observed.Value, b.Accuracy)
		observed.Lower = append(observed.Lower, b.Accuracy-se)
		observed.Upper = append(observed.Upper, b.Accuracy+se)
	}
	diagonal := []float64{0, 1}
	calibrated := viz.Trace{Name: "calibrated", Series: viz.Series{Step: diagonal, Value: diagonal}, Style: 8}
	return viz.Traces([]viz.Trace{observed, calibrated}, viz.TraceOptions{Frame: viz.Frame{Width: 330, Height: 330,
		XLabel: "predicted probability", YLabel: "observed frequency"}})
}
