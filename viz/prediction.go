package viz

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// bandOf is [PredictiveBand] of a regression's predictive distribution at x, [Rows], noise included, with the mean
// functions of some particles.
func bandOf(x []float64, p bayes.Prediction, draws int, opt BandOptions) (*Figure, error) {
	mean, err := p.Mean()
	if err != nil {
		return nil, fmt.Errorf("viz: predictive band: %w", err)
	}
	stdDev, err := p.StdDev()
	if err != nil {
		return nil, fmt.Errorf("viz: predictive band: %w", err)
	}
	if draws < 0 {
		return nil, fmt.Errorf("viz: predictive band: draws = %d: the number of particles to draw must not be negative",
			draws)
	}
	for _, particle := range chosenParticles(p, draws) {
		one, err := p.Particle(particle)
		if err != nil {
			return nil, fmt.Errorf("viz: predictive band: %w", err)
		}
		means, err := one.Mean()
		if err != nil {
			return nil, fmt.Errorf("viz: predictive band: %w", err)
		}
		opt.draws = append(opt.draws, means)
	}
	return PredictiveBand(x, mean, stdDev, opt)
}

// probabilityBand is [PredictiveBand] of the probability of a class at x, [Rows]: its mean and standard deviation over
// the particles, with the functions of some.
func probabilityBand(x []float64, p bayes.Prediction, class, draws int, opt BandOptions) (*Figure, error) {
	mean, square := make([]float64, len(x)), make([]float64, len(x))
	chosen := chosenParticles(p, draws)
	for j := range p.Particles {
		alone, err := particleProbabilities(p, j, class)
		if err != nil {
			return nil, fmt.Errorf("viz: probability along a feature: %w", err)
		}
		for i, v := range alone {
			mean[i] += p.Weights[j] * v
			square[i] += p.Weights[j] * v * v
		}
		if slices.Contains(chosen, j) {
			opt.draws = append(opt.draws, alone)
		}
	}
	stdDev := make([]float64, len(x))
	for i := range stdDev {
		stdDev[i] = math.Sqrt(max(0, square[i]-mean[i]*mean[i]))
	}
	return PredictiveBand(x, mean, stdDev, opt)
}

// particleProbabilities are those that one particle gives a class, [Rows].
func particleProbabilities(p bayes.Prediction, particle, class int) ([]float64, error) {
	one, err := p.Particle(particle)
	if err != nil {
		return nil, err
	}
	alone, err := one.Probabilities()
	if err != nil {
		return nil, fmt.Errorf("particle %d: %w", particle, err)
	}
	return ofClass(alone, class), nil
}

// chosenParticles returns particles at even steps through the cumulated weights, so that heavy ones come more often.
func chosenParticles(p bayes.Prediction, draws int) []int {
	var chosen []int
	particle, cumulated := 0, p.Weights[0]
	for k := range draws {
		for (float64(k)+0.5)/float64(draws) > cumulated && particle < p.Particles-1 {
			particle++
			cumulated += p.Weights[particle]
		}
		chosen = append(chosen, particle)
	}
	return chosen
}

// DecisionMapOf is [DecisionMap] of the predictive probability of one class. The rows of the prediction are the points
// of the lattice, in the order of [Field.Points]. It also draws, for as many particles as draws says, the line where
// the probability of the class is 1/2; particles of large weight are chosen more often.
func DecisionMapOf(lattice Field, p bayes.Prediction, class, draws int, opt DecisionOptions) (*Figure, error) {
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, fmt.Errorf("viz: decision map: %w", err)
	}
	if class < 0 || class >= p.Classes() {
		return nil, fmt.Errorf("viz: decision map: class %d: the prediction has classes 0 to %d", class, p.Classes()-1)
	}
	if draws < 0 {
		return nil, fmt.Errorf("viz: decision map: draws = %d: the number of particles to draw must not be negative", draws)
	}
	for _, particle := range chosenParticles(p, draws) {
		alone, err := particleProbabilities(p, particle, class)
		if err != nil {
			return nil, fmt.Errorf("viz: decision map: %w", err)
		}
		opt.draws = append(opt.draws, alone)
	}
	if opt.ProbabilityLabel == "" {
		name := fmt.Sprintf("class %d", class)
		if class < len(opt.ClassNames) {
			name = opt.ClassNames[class]
		}
		opt.ProbabilityLabel = "predicted probability of " + name
	}
	lattice.Values = ofClass(probabilities, class)
	return DecisionMap(lattice, opt)
}

// ofClass is one column of probabilities, [Rows, Classes].
func ofClass(probabilities [][]float64, class int) []float64 {
	values := make([]float64, len(probabilities))
	for n, row := range probabilities {
		values[n] = row[class]
	}
	return values
}

// PredictedVsTrueOf shows a regression's predictive mean against the true targets, [Rows], in the target's own units,
// with its central 90 % interval, noise included. An interval that crosses the diagonal covers its target; the others
// have marks of their own, and the legend says how many rows are covered. Of several targets take one by
// bayes.Prediction.Of.
func PredictedVsTrueOf(truth []float64, p bayes.Prediction, frame Frame) (*Figure, error) {
	if k := p.Columns(); k > 1 { // they have different units, and so different axes
		return nil, fmt.Errorf("viz: predicted against true of %d targets: it is of one; take it by Prediction.Of", k)
	}
	err := p.ValidateTarget(truth)
	if err == nil && p.Censored != nil {
		err = errors.New("targets are censored, so that they are not known: take rows whose targets were seen")
	}
	if err != nil {
		return nil, fmt.Errorf("viz: predicted against true: %w", err)
	}
	mean, err := p.Mean()
	if err != nil {
		return nil, fmt.Errorf("viz: predicted against true: %w", err)
	}
	lower, upper, err := p.Interval(predictedLevel)
	if err != nil {
		return nil, fmt.Errorf("viz: predicted against true: %w", err)
	}
	return predictedVsTrue(truth, mean, lower, upper, frame)
}

// CalibrationCurveOf is [CalibrationCurve] of a regression on targets y, [Rows], at the levels 0.05, 0.1, ..., 0.95,
// with the band for as many rows.
func CalibrationCurveOf(p bayes.Prediction, y []float64, frame Frame) (*Figure, error) {
	curve, err := metric.CalibrationCurve(p, y, nil)
	if err != nil {
		return nil, fmt.Errorf("viz: calibration: %w", err)
	}
	var nominal, observed []float64
	for _, c := range curve {
		nominal, observed = append(nominal, c.Level), append(observed, c.Coverage.Value)
	}
	rows := p.Rows
	if bayes.IsCounted(p.Likelihood) {
		rows = 0 // no band: intervals of counts hold more than their level
		frame.Title = cmp.Or(frame.Title, "Calibration: intervals of counts hold more")
	}
	return CalibrationCurve(nominal, observed, rows, frame)
}
