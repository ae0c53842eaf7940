package bayes

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
)

// Validate returns an error if lengths do not fit the shape, if a weight is negative, if the weights do not sum to 1
// within 1e-6, or if an output of a particle of positive weight is not finite.
func (p Prediction) Validate() error {
	if err := p.validateShape(); err != nil {
		return err
	}
	sum := 0.0
	for j, w := range p.Weights {
		if !(w >= 0) {
			return fmt.Errorf("bayes: Prediction: the weight of particle %d is %v: weights must not be negative", j, w)
		}
		sum += w
	}
	if !(math.Abs(sum-1) <= 1e-6) {
		return fmt.Errorf("bayes: Prediction: the weights sum to %v: divide them by it", sum)
	}
	return p.validateOutputs()
}

// checkCounts returns an error, whose text continues a phrase, if counts are standardised: the numbers that a
// likelihood for counts predicts would be shifted and stretched, and no count would have a density.
func checkCounts(l Likelihood, target dataset.Scaler) error {
	for k := range target.Mean {
		if m, s := target.Mean[k], target.StdDev[k]; IsCounted(l) && (m != 0 || s != 1) {
			return fmt.Errorf("Origin.Target standardises target %d by mean %v and standard deviation %v, but %T is for "+
				"counts, which stay as they are: leave Target empty", k, m, s, l)
		}
	}
	return nil
}

func (p Prediction) validateShape() error {
	if p.Likelihood == nil {
		return errNoLikelihood
	}
	size, of := max(p.Size, 1), "targets"
	switch p.Task() {
	case dataset.Classification:
		if size, of = p.Classes(), "classes"; size < 2 {
			return fmt.Errorf("bayes: Prediction: Size is %d, where 0 is read as Width, %d, but %T is for at least 2 classes: "+
				"set it to their number", p.Size, p.Width, p.Likelihood)
		}
	case dataset.BinaryClassification:
		if size > 1 {
			return fmt.Errorf("bayes: Prediction: Size is %d, but %v has one target: leave it 0", size, p.Task())
		}
	}
	if want := p.Likelihood.Outputs(size); p.Width != want {
		return fmt.Errorf("bayes: Prediction: Width is %d: %T takes %d outputs for %d %s", p.Width, p.Likelihood, want, size,
			of)
	}
	own := 0
	for _, parameter := range p.Likelihood.Parameters(size) {
		own += parameter.Size()
	}
	for _, c := range []struct {
		what      string
		have, per int
		of        string
	}{
		{"outputs", len(p.Outputs), p.Rows * p.Width, "Particles x Rows x Width"},
		{"weights", len(p.Weights), 1, "Particles"},
		{"values in Own", len(p.Own), own, "Particles x the likelihood's parameters"},
	} {
		if want := p.Particles * c.per; c.have != want || p.Particles < 1 || p.Rows < 1 {
			return fmt.Errorf("bayes: Prediction: %d %s, but %s is %d, of %d Particles and %d Rows", c.have, c.what, c.of, want,
				p.Particles, p.Rows)
		}
	}
	if p.Censored != nil && len(p.Censored) != p.Rows {
		return fmt.Errorf("bayes: Prediction: Censored has %d values, but there are %d rows: give one for each, or nil",
			len(p.Censored), p.Rows)
	}
	if a, b := len(p.Target.Mean), len(p.Target.StdDev); a != b || a > 0 && p.Task() == dataset.Regression && a != size {
		return fmt.Errorf("bayes: Prediction: Target has %d means and %d standard deviations, but there are %d targets", a, b,
			size)
	}
	return nil
}

// ErrNotFinite says that a network's outputs are NaN or infinite, as those of a chain that diverges.
var ErrNotFinite = errors.New("outputs are not finite")

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
		return fmt.Errorf("bayes: Prediction: %d of %d %w, the first %v at particle %d, row %d",
			bad, len(p.Outputs), ErrNotFinite, p.Outputs[first], first/stride, first%stride/p.Width)
	}
	return nil
}

// ValidateTarget returns the error of Validate, or one unless y, [Rows, Targets], fits the prediction: finite values
// that the likelihood takes, or for classification the index of a class for each row.
func (p Prediction) ValidateTarget(y []float64) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.overOne {
		return errors.New("bayes: y cannot be compared with a prediction of counts over an exposure of 1, by a model of " +
			"counts over exposures: take Prediction.OfRows of the rows, or WithExposure")
	}
	targets := p.Columns()
	if len(y) != p.Rows*targets {
		return fmt.Errorf("bayes: y has %d values, but the prediction has %d rows of %d targets", len(y), p.Rows, targets)
	}
	for i, v := range y {
		n := i / targets
		if err := CheckTarget(p.Likelihood, v); err != nil {
			return fmt.Errorf("bayes: y of row %d %w", n, err)
		}
		if c := p.Classes(); c > 0 && (v != math.Trunc(v) || v < 0 || v >= float64(c)) {
			return fmt.Errorf("bayes: y of row %d is %v: it must be the index of a class, a whole number from 0 to %d",
				n, v, c-1)
		}
	}
	return nil
}

// ready is an error if the prediction is not valid, or is not of the task that the method is for.
func (p Prediction) ready(method string, regression bool) error {
	if p.Likelihood == nil {
		return errNoLikelihood
	}
	if (p.Task() == dataset.Regression) != regression {
		need := "classification"
		if regression {
			need = "regression"
		}
		return fmt.Errorf("bayes: Prediction.%s is for %s, but Task is %v", method, need, p.Task())
	}
	return p.Validate()
}

// normalisedWeights returns the weights divided by their sum, which is 1 only within a tolerance.
func (p Prediction) normalisedWeights() []float64 {
	weights := slices.Clone(p.Weights)
	floats.Scale(1/floats.Sum(weights), weights)
	return weights
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
