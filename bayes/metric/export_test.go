package metric

import "gobnn/bayes"

// Batch is a batch with exported fields.
type Batch struct {
	Prediction bayes.Prediction
	Y          []float64
}

// Evaluate gives batches to measures.
func Evaluate(batches func(yield func(Batch, error) bool), measures ...*measure) (Table, error) {
	return evaluate(func(yield func(batch, error) bool) {
		batches(func(b Batch, err error) bool { return yield(batch{b.Prediction, b.Y}, err) })
	}, measures...)
}

var (
	ScoredDraws = &scoredDraws
	Usual       = usual
	NewRMSE     = newRMSE
	NewROC      = newROC
)

// One is the score of a single batch.
func One(m *measure, p bayes.Prediction, y []float64) (Estimate, error) { return one(m, p, y) }

func CRPS(p bayes.Prediction, y []float64) (Estimate, error)  { return one(newCRPS(), p, y) }
func Brier(p bayes.Prediction, y []float64) (Estimate, error) { return one(newBrier(), p, y) }
func Width(p bayes.Prediction, y []float64, level float64) (Estimate, error) {
	return one(newWidth(level), p, y)
}
func IntervalScore(p bayes.Prediction, y []float64, level float64) (Estimate, error) {
	return one(newIntervalScore(level), p, y)
}
