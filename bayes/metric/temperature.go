package metric

import (
	"fmt"
	"math"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
)

// Temperature T calibrates predictions of classes: their probabilities become proportional to p_c^(1/T) (Guo, Pleiss,
// Sun and Weinberger 2017, On calibration of modern neural networks, section 4.2). Above 1 it makes them less
// confident, below 1 more. The predicted classes stay the same.
//
// It is the averaged probabilities that are raised, p = sum_j w_j p_j, and not those of each particle. Particles that
// disagree make the average less confident than each of them is, and often less than is right; then no temperature of
// each would make the average as confident as is right (Rahaman and Thiery 2021, Uncertainty quantification and deep
// ensembles).
type Temperature float64

// FitTemperature finds the temperature at which the calibrated prediction has the smallest NLPD. p predicts rows that
// the posterior was not trained on, such as the validation part, and y are their classes:
//
//	temperature, err := metric.FitTemperature(onValidation, parts.Validation.Y)
//	calibrated, err := temperature.Calibrate(onTest)
//
// There is none, and an error, if all rows are predicted right, when each smaller temperature is better, and if their
// classes are given no more probability than others, when each larger one is.
func FitTemperature(p bayes.Prediction, y []float64) (Temperature, error) {
	logs, err := logProbabilities(p)
	if err != nil {
		return 0, err
	}
	if err := p.ValidateTarget(y); err != nil {
		return 0, fmt.Errorf("metric: %w", err)
	}
	right := 0
	for n, l := range logs {
		if l[int(y[n])] == floats.Max(l) {
			right++
		}
	}
	if right == p.Rows {
		return 0, fmt.Errorf("metric: FitTemperature: all %d rows are predicted right, so that the smaller the temperature "+
			"the better: it takes rows that are not, such as more rows", p.Rows)
	}
	slope := func(inverse float64) (sum float64) { // of the NLPD by the inverse temperature, in which it is convex
		for n, l := range logs {
			raised := make([]float64, len(l))
			floats.AddScaled(raised, inverse, l)
			total := floats.LogSumExp(raised)
			for c, v := range raised {
				sum += math.Exp(v-total) * l[c]
			}
			sum -= l[int(y[n])]
		}
		return sum
	}
	if slope(0) >= 0 {
		return 0, fmt.Errorf("metric: FitTemperature: the classes of the %d rows are given no more probability than others, "+
			"so that the larger the temperature the better: is y in the order of the prediction's rows and classes?", p.Rows)
	}
	low, high := 1., 1. // bracket the inverse temperature
	for slope(high) < 0 {
		high *= 2
	}
	for slope(low) > 0 {
		low /= 2
	}
	for high/low > 1+1e-12 {
		if middle := math.Sqrt(low * high); slope(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return Temperature(2 / (low + high)), nil
}

// Calibrate is the calibrated prediction, of the same posterior as the one that the temperature was fitted on. It is
// one distribution for each row, as that of a single particle: its scores have no Monte Carlo error, and what measures
// how particles disagree, such as [MutualInformation], is to be taken of p.
func (t Temperature) Calibrate(p bayes.Prediction) (bayes.Prediction, error) {
	if !(t > 0) || math.IsInf(float64(t), 1) {
		return bayes.Prediction{}, fmt.Errorf("metric: calibrating with the temperature %v: it must be positive and finite",
			float64(t))
	}
	logs, err := logProbabilities(p)
	if err != nil {
		return bayes.Prediction{}, err
	}
	out := bayes.Prediction{Likelihood: pooled{}, Particles: 1, Rows: p.Rows, Width: p.Classes(), Weights: []float64{1},
		Warnings: p.Warnings}
	for _, l := range logs {
		floats.Scale(1/float64(t), l)
		out.Outputs = append(out.Outputs, l...)
	}
	if p.Task() == bayes.BinaryClassification {
		out.Likelihood, out.Width, out.Outputs = bayes.Bernoulli{}, 1, nil
		for _, l := range logs {
			out.Outputs = append(out.Outputs, l[1]-l[0])
		}
	}
	return out, nil
}

// pooled is Categorical for outputs that are logarithms of averaged probabilities: they have no Energy.
type pooled struct{ bayes.Categorical }

// logProbabilities are the logarithms of the averaged class probabilities, [Rows][Classes].
func logProbabilities(p bayes.Prediction) ([][]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("metric: %w", err)
	}
	if p.Task() == bayes.Regression {
		return nil, fmt.Errorf("metric: a temperature is for classification, but the prediction's Task is %v", p.Task())
	}
	e := newEnsemble(p)
	terms := make([][]float64, e.classCount) // [Classes][A]
	for c := range terms {
		terms[c] = make([]float64, len(e.alive))
	}
	logs := make([][]float64, p.Rows)
	for n := range logs {
		for i, j := range e.alive {
			d := p.Distribution(j, n, 0)
			for c := range terms {
				terms[c][i] = e.logs[i] + d.LogProb(float64(c))
			}
		}
		for c := range terms {
			logs[n] = append(logs[n], floats.LogSumExp(terms[c]))
		}
		if floats.HasNaN(logs[n]) || math.IsInf(floats.Min(logs[n]), -1) {
			return nil, fmt.Errorf("metric: the log-probabilities of the classes at row %d are %v: a temperature needs finite "+
				"ones", n, logs[n])
		}
	}
	return logs, nil
}
