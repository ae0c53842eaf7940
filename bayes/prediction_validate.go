package bayes

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Validate returns an error if lengths do not fit the shape, if a weight is negative or not finite, if the weights do not sum to 1 within 1e-6, if a noise
// is not positive, or if an output of a particle of positive weight is not finite.
func (p Prediction) Validate() error {
	if err := p.validateShape(); err != nil {
		return err
	}
	sum := 0.0
	for j, w := range p.Weights {
		if !(w >= 0) || !finite(w) {
			return fmt.Errorf("bayes: Prediction: the weight of particle %d is %v: weights must be finite and not negative", j, w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("bayes: Prediction: the weights sum to %v: divide them by it", sum)
	}
	if p.Task == Regression {
		for j, s := range p.NoiseStdDev {
			if p.Weights[j] > 0 && (!(s > 0) || !finite(s)) {
				return fmt.Errorf("bayes: Prediction: NoiseStdDev of particle %d is %v: it must be positive and finite", j, s)
			}
		}
		if s := p.TargetStdDev; !(s >= 0) || !finite(s) || !finite(p.TargetMean) {
			return fmt.Errorf("bayes: Prediction: TargetMean is %v and TargetStdDev %v: use 0 and 1 if the target was not standardised", p.TargetMean, s)
		}
	}
	return p.validateOutputs()
}

func (p Prediction) validateShape() error {
	switch p.Task {
	case Regression, BinaryClassification:
		if p.Width != 1 {
			return fmt.Errorf("bayes: Prediction: Width is %d: a prediction with Task %v has 1 output", p.Width, p.Task)
		}
	case Classification:
		if p.Width < 2 {
			return fmt.Errorf("bayes: Prediction: Width is %d: a prediction with Task %v has at least 2 outputs, one a class", p.Width, p.Task)
		}
	default:
		return fmt.Errorf("bayes: Prediction: unknown Task %v", p.Task)
	}
	if p.Particles < 1 || p.Rows < 1 {
		return fmt.Errorf("bayes: Prediction: Particles is %d and Rows %d: there must be at least 1 of each", p.Particles, p.Rows)
	}
	if want := p.Particles * p.Rows * p.Width; len(p.Outputs) != want {
		return fmt.Errorf("bayes: Prediction: %d outputs, but Particles x Rows x Width = %d x %d x %d = %d",
			len(p.Outputs), p.Particles, p.Rows, p.Width, want)
	}
	if len(p.Weights) != p.Particles {
		return fmt.Errorf("bayes: Prediction: %d weights for %d particles", len(p.Weights), p.Particles)
	}
	if p.Task == Regression && len(p.NoiseStdDev) != p.Particles {
		return fmt.Errorf("bayes: Prediction: %d values of NoiseStdDev for %d particles", len(p.NoiseStdDev), p.Particles)
	}
	return nil
}

func (p Prediction) validateOutputs() error {
	bad, first := 0, -1
	stride := p.Rows * p.Width
	for j, w := range p.Weights {
		if w == 0 {
			continue
		}
		for i, v := range p.Outputs[j*stride : (j+1)*stride] {
			if !finite(v) {
				if bad++; bad == 1 {
					first = j*stride + i
				}
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("bayes: Prediction: %d of %d outputs are not finite, the first %v at particle %d, row %d",
			bad, len(p.Outputs), p.Outputs[first], first/stride, first%stride/p.Width)
	}
	return nil
}

// ValidateTarget returns an error unless y, [Rows], fits the prediction: one finite value a row, or for classification the index of a class.
func (p Prediction) ValidateTarget(y []float64) error {
	if len(y) != p.Rows {
		return fmt.Errorf("bayes: y has %d values, but the prediction has %d rows", len(y), p.Rows)
	}
	for n, v := range y {
		if !finite(v) {
			return fmt.Errorf("bayes: y of row %d is %v: it must be finite", n, v)
		}
		if c := p.Classes(); c > 0 && (v != math.Trunc(v) || v < 0 || v >= float64(c)) {
			return fmt.Errorf("bayes: y of row %d is %v: it must be the index of a class, a whole number from 0 to %d", n, v, c-1)
		}
	}
	return nil
}

// ready is an error if the prediction is not valid, or is not a regression (not a classification) where the method needs one.
func (p Prediction) ready(method string, regression bool) error {
	if (p.Task == Regression) != regression {
		need := "classification"
		if regression {
			need = "regression"
		}
		return fmt.Errorf("bayes: Prediction.%s is for %s, but Task is %v", method, need, p.Task)
	}
	return p.Validate()
}

// normalisedWeights are the weights divided by their sum, which is 1 only within a tolerance.
func (p Prediction) normalisedWeights() []float64 {
	weights := slices.Clone(p.Weights)
	floats.Scale(1/floats.Sum(weights), weights)
	return weights
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
