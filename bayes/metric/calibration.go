package metric

import (
	"math"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
)

// binCount is the number of bins of the expected calibration error, M.
const binCount = 15

// ECE is the expected calibration error (Guo et al. 2017, eq. 3), for classification. Rows are put into bins of equal
// width by their confidence, the averaged probability of the predicted class. ECE is the mean over bins, weighted by
// their rows, of |accuracy - mean confidence|. Bin m of M = 15 holds confidences in ((m-1)/M, m/M]. Its sampling error
// is not given. It is biased upwards: a calibrated prediction has an ECE above 0 on finitely many rows.
func ECE(p bayes.Prediction, y []float64) (Estimate, error) { return one(newECE(), p, y) }

func newECE() *measure {
	return &measure{name: "ECE", tasks: classificationOnly, stretched: true, scorer: &expectedCalibrationError{}}
}

type expectedCalibrationError struct {
	counts [][binCount]counts // [1+G]
	n      float64
}

type counts struct{ rows, confidence, correct float64 }

func (a *expectedCalibrationError) add(r *row) {
	if a.counts == nil {
		a.counts = make([][binCount]counts, 1+r.replicates)
	}
	for g := range a.counts {
		class, confidence := r.predicted(g)
		b := &a.counts[g][binOf(confidence)]
		b.rows++
		b.confidence += confidence
		b.correct += indicator(class == int(r.y))
	}
	a.n++
}

// binOf is the bin of a confidence, from 0.
func binOf(confidence float64) int {
	return min(max(int(math.Ceil(confidence*binCount))-1, 0), binCount-1)
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

// ParticleECE is the weighted mean over particles of each particle's own [ECE], with its own predicted classes and
// confidences, for classification. The paper of OHSMC reports it as ECE. Its sampling error is not given.
func ParticleECE(p bayes.Prediction, y []float64) (Estimate, error) {
	return one(&measure{name: "particle ECE", tasks: classificationOnly, scorer: &particleMean{
		width: binCount,
		count: func(r *row, i int, gaps []float64) { // of each bin, the right rows less the sum of confidences
			class, confidence := r.predictedBy(i)
			gaps[binOf(confidence)] += indicator(class == int(r.y)) - confidence
		},
		score: func(gaps []float64, rows float64) float64 { return floats.Norm(gaps, 1) / rows },
	}}, p, y)
}

// Bin is one bin of a reliability diagram: the rows whose confidence lies in (Lower, Upper].
type Bin struct {
	Lower, Upper float64
	Count        int
	Confidence   float64 // mean confidence; NaN if the bin is empty
	Accuracy     float64 // share of rows predicted rightly; NaN if the bin is empty
}

// ReliabilityDiagram is the data of a classification's reliability diagram: accuracy against confidence, in the bins of
// equal width that [ECE] averages over.
func ReliabilityDiagram(p bayes.Prediction, y []float64) ([]Bin, error) {
	m := newECE()
	if err := add(p, y, []*measure{m}); err != nil {
		return nil, err
	}
	counts := m.scorer.(*expectedCalibrationError).counts[0]
	diagram := make([]Bin, binCount)
	for i, c := range counts {
		diagram[i] = Bin{
			Lower: float64(i) / binCount, Upper: float64(i+1) / binCount,
			Count: int(c.rows), Confidence: c.confidence / c.rows, Accuracy: c.correct / c.rows,
		}
	}
	return diagram, nil
}

// CalibrationPoint is the coverage of the central interval of one level.
type CalibrationPoint struct {
	Level    float64
	Coverage Estimate
}

// CalibrationCurve is the coverage of central intervals against their level, 0.05, 0.1, ..., 0.95, for regression: the
// diagonal if the prediction is calibrated, below it if it is over-confident.
func CalibrationCurve(p bayes.Prediction, y []float64) ([]CalibrationPoint, error) {
	curve := make([]CalibrationPoint, 19)
	var metrics []*measure
	for i := range curve {
		curve[i].Level = float64(i+1) / 20
		metrics = append(metrics, newCoverage(curve[i].Level))
	}
	if err := add(p, y, metrics); err != nil {
		return nil, err
	}
	for i, m := range metrics {
		var err error
		if curve[i].Coverage, err = m.estimate(); err != nil {
			return nil, err
		}
	}
	return curve, nil
}
