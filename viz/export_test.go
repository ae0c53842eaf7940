package viz

import "gobnn/bayes"

// What other packages reach by predictions, results and posteriors.
var (
	PredictedVsTrue  = predictedVsTrue
	TrainingCurves   = trainingCurves
	CalibrationCurve = calibrationCurve
)

// PredictiveBandOf is the band of a regression at x.
func PredictiveBandOf(x []float64, p bayes.Prediction, opt BandOptions) (*Figure, error) {
	mean, stdDev, draws, err := bandOf(p)
	if err != nil {
		return nil, err
	}
	opt.draws = draws
	return PredictiveBand(x, mean, stdDev, opt)
}

// PDF is the figure as PDF.
func (f *Figure) PDF() ([]byte, error) { return f.pdf() }

// ErrNotNotebook is of what is shown outside a notebook.
var ErrNotNotebook = errNotNotebook

// Drawn are the options of a band with functions of single particles.
func (o BandOptions) Drawn(draws ...[]float64) BandOptions {
	o.draws = draws
	return o
}

// Drawn are the options of a map with probabilities of single particles.
func (o DecisionOptions) Drawn(draws ...[]float64) DecisionOptions {
	o.draws = draws
	return o
}

// Noted are the options of a band with notes, of data from lo to hi.
func (o BandOptions) Noted(lo, hi float64, notes ...string) BandOptions {
	o.seen, o.notes = &span{lo, hi}, notes
	return o
}
