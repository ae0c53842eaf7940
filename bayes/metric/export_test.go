package metric

import "gobnn/bayes"

var (
	ScoredDraws = &scoredDraws
	Usual       = usual
	Add         = add
	TableOf     = table
	NewROC      = newROC
)

// One is the score of a single batch.
func One(m *measure, p bayes.Prediction, y []float64) (Estimate, error) { return one(m, p, y) }

func EnergyScore(p bayes.Prediction, y []float64, seed uint64) (Estimate, error) {
	return one(newEnergyScore(seed), p, y)
}
func CRPS(p bayes.Prediction, y []float64) (Estimate, error)  { return one(newCRPS(), p, y) }
func Brier(p bayes.Prediction, y []float64) (Estimate, error) { return one(newBrier(), p, y) }
func Width(p bayes.Prediction, y []float64, level float64) (Estimate, error) {
	return one(newWidth(level), p, y)
}
func IntervalScore(p bayes.Prediction, y []float64, level float64) (Estimate, error) {
	return one(newIntervalScore(level), p, y)
}
