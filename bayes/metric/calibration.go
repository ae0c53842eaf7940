package metric

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
)

// defaultBins is the number of bins of the expected calibration error.
const defaultBins = 15

// ECE is the expected calibration error (Guo et al. 2017, eq. 3), for classification. Rows are put into bins of equal
// width by their confidence, the averaged probability of the predicted class. ECE is the mean over bins, weighted by
// their rows, of |accuracy - mean confidence|. Bin m of M holds confidences in ((m-1)/M, m/M]. bins is M; 0 means 15.
// Its sampling error is not given. It is biased upwards: a calibrated prediction has an ECE above 0 on finitely many
// rows.
func ECE(p bayes.Prediction, y []float64, bins int) (Estimate, error) { return one(newECE(bins), p, y) }

func newECE(bins int) *measure {
	if bins == 0 {
		bins = defaultBins
	}
	m := &measure{name: "ECE", tasks: classificationOnly, scorer: &expectedCalibrationError{bins: bins}}
	if bins < 1 {
		m.err = fmt.Errorf("metric: ECE with %d bins: there must be at least 1 (0 means %d)", bins, defaultBins)
	}
	return m
}

type expectedCalibrationError struct {
	bins   int
	counts [][]binCount // [1+G][bins]
	n      float64
}

type binCount struct{ rows, confidence, correct float64 }

func (a *expectedCalibrationError) start(replicates int) {
	a.counts = make([][]binCount, 1+replicates)
	for g := range a.counts {
		a.counts[g] = make([]binCount, a.bins)
	}
}

func (a *expectedCalibrationError) add(r *row) {
	for g, counts := range a.counts {
		class, confidence := r.predicted(g)
		b := &counts[binOf(confidence, a.bins)]
		b.rows++
		b.confidence += confidence
		b.correct += indicator(class == int(r.y))
	}
	a.n++
}

func binOf(confidence float64, bins int) int {
	return min(max(int(math.Ceil(confidence*float64(bins)))-1, 0), bins-1)
}

func (a *expectedCalibrationError) result() ([]float64, float64) {
	values := make([]float64, len(a.counts))
	for g, counts := range a.counts {
		for _, b := range counts {
			values[g] += math.Abs(b.correct-b.confidence) / a.n
		}
	}
	return values, math.NaN()
}

func (a *expectedCalibrationError) stretched() bool { return true }

// Bin is one bin of a reliability diagram: the rows whose confidence lies in (Lower, Upper].
type Bin struct {
	Lower, Upper float64
	Count        int
	Confidence   float64 // mean confidence; NaN if the bin is empty
	Accuracy     float64 // share of rows predicted rightly; NaN if the bin is empty
}

// ReliabilityDiagram is the data of a classification's reliability diagram: accuracy against confidence, in the bins of
// equal width that [ECE] averages over. bins is their number; 0 means 15.
func ReliabilityDiagram(p bayes.Prediction, y []float64, bins int) ([]Bin, error) {
	m := newECE(bins)
	if err := add(p, y, []*measure{m}); err != nil {
		return nil, err
	}
	counts := m.scorer.(*expectedCalibrationError).counts[0]
	diagram := make([]Bin, len(counts))
	for i, c := range counts {
		diagram[i] = Bin{
			Lower: float64(i) / float64(len(counts)), Upper: float64(i+1) / float64(len(counts)),
			Count: int(c.rows), Confidence: c.confidence / c.rows, Accuracy: c.correct / c.rows,
		}
	}
	return diagram, nil
}

// PoolBins pools two reliability diagrams with the same bins into the diagram of all rows together. nil is a diagram
// without rows.
func PoolBins(a, b []Bin) ([]Bin, error) {
	if a == nil || b == nil {
		return slices.Clone(append(a, b...)), nil
	}
	if len(a) != len(b) {
		return nil, fmt.Errorf("metric: pooling diagrams of %d and %d bins: they must have the same", len(a), len(b))
	}
	pooled := slices.Clone(a)
	for i, other := range b {
		p := &pooled[i]
		if p.Lower != other.Lower || p.Upper != other.Upper {
			return nil, fmt.Errorf("metric: pooling bin %d from %v to %v with one from %v to %v: they must be the same",
				i, p.Lower, p.Upper, other.Lower, other.Upper)
		}
		if p.Count == 0 {
			*p = other
			continue
		}
		if other.Count == 0 {
			continue
		}
		share := float64(other.Count) / float64(p.Count+other.Count)
		p.Confidence += share * (other.Confidence - p.Confidence)
		p.Accuracy += share * (other.Accuracy - p.Accuracy)
		p.Count += other.Count
	}
	return pooled, nil
}

// CalibrationPoint is the coverage of the central interval of one level.
type CalibrationPoint struct {
	Level    float64
	Coverage Estimate
}

// CalibrationCurve is the coverage of central intervals against their level, for regression: the diagonal if the
// prediction is calibrated, below it if it is over-confident. nil levels means 0.05, 0.1, ..., 0.95.
func CalibrationCurve(p bayes.Prediction, y []float64, levels []float64) ([]CalibrationPoint, error) {
	if levels == nil {
		for i := range 19 {
			levels = append(levels, float64(i+1)/20)
		}
	}
	var metrics []*measure
	for _, level := range levels {
		metrics = append(metrics, newCoverage(level))
	}
	if err := add(p, y, metrics); err != nil {
		return nil, err
	}
	curve := make([]CalibrationPoint, len(levels))
	for i, m := range metrics {
		coverage, err := m.estimate()
		if err != nil {
			return nil, err
		}
		curve[i] = CalibrationPoint{levels[i], coverage}
	}
	return curve, nil
}
