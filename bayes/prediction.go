package bayes

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/predictive"

	"gonum.org/v1/gonum/floats"
)

// Task is what a model predicts: what the data set says it is.
type Task = dataset.Task

// The tasks.
const (
	Regression           = dataset.Regression           // a real number
	BinaryClassification = dataset.BinaryClassification // one of two classes; one output, the logit of class 1
	Classification       = dataset.Classification       // one of C classes; C outputs, the logits
)

// Prediction holds what each weighted particle predicts for each row.
//
// The predictive distribution of row n is the mixture sum_j w_j p(y | f_j(x_n)): of Gaussians for regression, of class
// probabilities for classification. Particles of weight 0 are not looked at, whatever their outputs.
//
// The methods check the prediction first and return the error that [Prediction.Validate] does; those that serve one task only return an error
// for the others.
type Prediction struct {
	Task Task
	// Outputs of the network, [Particles, Rows, Width], row-major. Regression: the mean, in the target's own units.
	// BinaryClassification: the logit of class 1 (Width 1). Classification: the logits (Width C).
	Outputs                []float64
	Particles, Rows, Width int
	// Chains is how many Markov chains of equal length the particles are of, chain after chain; 0 if they are of none.
	Chains int
	// Weights of the particles, [Particles]; they sum to 1.
	Weights []float64
	// NoiseStdDev is the standard deviation of each particle's Gaussian noise, [Particles], in the target's own units; nil for classification.
	NoiseStdDev []float64
	// TargetMean and TargetStdDev are the target's mean and standard deviation over the training part: (y - TargetMean) /
	// TargetStdDev is the target in standardised units. 0 and 1 where the target was not standardised, and for classification; a
	// TargetStdDev of 0 is read as 1.
	TargetMean, TargetStdDev float64
}

// Classes is the number of classes C; 0 for regression.
func (p Prediction) Classes() int {
	switch p.Task {
	case BinaryClassification:
		return 2
	case Classification:
		return p.Width
	}
	return 0
}

// Mean is the predictive mean sum_j w_j f_j(x_n) of a regression, [Rows].
func (p Prediction) Mean() ([]float64, error) {
	if err := p.ready("Mean", true); err != nil {
		return nil, err
	}
	return p.mean(), nil
}

func (p Prediction) mean() []float64 {
	mean := make([]float64, p.Rows)
	for j, w := range p.normalisedWeights() {
		if w > 0 {
			floats.AddScaled(mean, w, p.Outputs[j*p.Rows:(j+1)*p.Rows])
		}
	}
	return mean
}

// StdDev is the standard deviation of the target under the predictive distribution of a regression, [Rows]: the spread of the particles and their noise,
// sqrt(sum_j w_j ((f_j - mean)^2 + s_j^2)).
func (p Prediction) StdDev() ([]float64, error) {
	if err := p.ready("StdDev", true); err != nil {
		return nil, err
	}
	noise := 0.0
	for j, w := range p.normalisedWeights() {
		if w > 0 {
			noise += w * p.NoiseStdDev[j] * p.NoiseStdDev[j]
		}
	}
	return p.spread(noise), nil
}

// EpistemicStdDev is the spread of the particles' means alone, without the noise, [Rows]: sqrt(sum_j w_j (f_j - mean)^2), for regression.
func (p Prediction) EpistemicStdDev() ([]float64, error) {
	if err := p.ready("EpistemicStdDev", true); err != nil {
		return nil, err
	}
	return p.spread(0), nil
}

// spread is the square root of the particles' variance and an added one.
func (p Prediction) spread(added float64) []float64 {
	mean := p.mean()
	spread := make([]float64, p.Rows)
	for j, w := range p.normalisedWeights() {
		if w == 0 {
			continue
		}
		for n, f := range p.Outputs[j*p.Rows : (j+1)*p.Rows] {
			spread[n] += w * (f - mean[n]) * (f - mean[n])
		}
	}
	for n, v := range spread {
		spread[n] = math.Sqrt(v + added)
	}
	return spread
}

// Quantile is the level-quantile of the predictive distribution of a regression, [Rows]: the y at which sum_j w_j Phi((y - f_j)/s_j) = level.
// It costs a few evaluations of that sum a row. level must lie strictly between 0 and 1.
func (p Prediction) Quantile(level float64) ([]float64, error) {
	quantiles, err := p.quantiles("Quantile", level)
	if err != nil {
		return nil, err
	}
	return quantiles[0], nil
}

// Interval is the central interval of a regression that holds the given probability, between the quantiles (1-level)/2 and (1+level)/2;
// lower and upper are [Rows]. level must lie strictly between 0 and 1.
func (p Prediction) Interval(level float64) (lower, upper []float64, err error) {
	if !(level > 0 && level < 1) {
		return nil, nil, fmt.Errorf("bayes: Prediction.Interval: level is %v: it must lie between 0 and 1", level)
	}
	quantiles, err := p.quantiles("Interval", (1-level)/2, 1-(1-level)/2)
	if err != nil {
		return nil, nil, err
	}
	return quantiles[0], quantiles[1], nil
}

func (p Prediction) quantiles(method string, levels ...float64) ([][]float64, error) {
	if err := p.ready(method, true); err != nil {
		return nil, err
	}
	quantiles := make([][]float64, len(levels))
	for i, level := range levels {
		if !(level > 0 && level < 1) {
			return nil, fmt.Errorf("bayes: Prediction.%s: level is %v: it must lie between 0 and 1", method, level)
		}
		quantiles[i] = make([]float64, p.Rows)
	}
	var mixture predictive.Mixture
	var alive []int
	for j, w := range p.normalisedWeights() {
		if w > 0 {
			alive = append(alive, j)
			mixture.Weights = append(mixture.Weights, w)
			mixture.StdDevs = append(mixture.StdDevs, p.NoiseStdDev[j])
		}
	}
	mixture.Means = make([]float64, len(alive))
	for n := range p.Rows {
		for i, j := range alive {
			mixture.Means[i] = p.Outputs[j*p.Rows+n]
		}
		for i, level := range levels {
			quantiles[i][n] = mixture.Quantile(level)
		}
	}
	return quantiles, nil
}

// Probabilities are the class probabilities averaged over the particles, [Rows][Classes]: the softmax of each particle's logits,
// then the weighted mean. For a binary classification the second column is that of class 1.
func (p Prediction) Probabilities() ([][]float64, error) {
	if err := p.ready("Probabilities", false); err != nil {
		return nil, err
	}
	classes := p.Classes()
	all := make([]float64, p.Rows*classes)
	own := make([]float64, classes)
	for j, w := range p.normalisedWeights() {
		if w == 0 {
			continue
		}
		for n := range p.Rows {
			predictive.Probabilities(p.logits(j, n), own)
			floats.AddScaled(all[n*classes:(n+1)*classes], w, own)
		}
	}
	return slices.Collect(slices.Chunk(all, classes)), nil
}

// logits of particle j for row n, [Width].
func (p Prediction) logits(j, n int) []float64 {
	at := (j*p.Rows + n) * p.Width
	return p.Outputs[at : at+p.Width]
}

// Labels are the classes of largest averaged probability, [Rows]; of equal ones the first.
func (p Prediction) Labels() ([]int, error) {
	if err := p.ready("Labels", false); err != nil {
		return nil, err
	}
	probabilities, err := p.Probabilities()
	if err != nil {
		return nil, err
	}
	labels := make([]int, p.Rows)
	for n, row := range probabilities {
		labels[n] = floats.MaxIdx(row)
	}
	return labels, nil
}

// LogDensity is the log predictive density of each row's target, log sum_j w_j p(y_n | f_j(x_n)), [Rows]; for classification the
// log-probability of class y_n. It is computed in logs throughout, so it is finite however unlikely the target.
func (p Prediction) LogDensity(y []float64) ([]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := p.ValidateTarget(y); err != nil {
		return nil, err
	}
	density := make([]float64, p.Rows)
	weights, terms := p.normalisedWeights(), make([]float64, 0, p.Particles)
	for n := range p.Rows {
		terms = terms[:0]
		for j, w := range weights {
			if w == 0 {
				continue
			}
			term := math.Log(w)
			switch logits := p.logits(j, n); p.Task {
			case Regression:
				term += predictive.LogNormal(y[n], logits[0], p.NoiseStdDev[j])
			case BinaryClassification:
				term += predictive.LogBernoulli(int(y[n]), logits[0])
			case Classification:
				term += predictive.LogCategorical(int(y[n]), logits)
			}
			terms = append(terms, term)
		}
		density[n] = floats.LogSumExp(terms)
	}
	return density, nil
}

// Standardised is the prediction in standardised units: outputs less TargetMean and over TargetStdDev, the noise over TargetStdDev. The
// outputs are copied. A classification is returned as it is, and so is a regression whose target was not standardised.
func (p Prediction) Standardised() Prediction {
	scale := p.targetScale()
	if p.Task != Regression || (p.TargetMean == 0 && scale == 1) {
		return p
	}
	p.Outputs = p.StandardiseTarget(p.Outputs)
	noise := make([]float64, len(p.NoiseStdDev))
	for j, s := range p.NoiseStdDev {
		noise[j] = s / scale
	}
	p.NoiseStdDev = noise
	p.TargetMean, p.TargetStdDev = 0, 1
	return p
}

// StandardiseTarget is (y - TargetMean) / TargetStdDev, a new slice; a copy of y for classification.
func (p Prediction) StandardiseTarget(y []float64) []float64 {
	out := slices.Clone(y)
	if p.Task != Regression {
		return out
	}
	scale := p.targetScale()
	for n, v := range out {
		out[n] = (v - p.TargetMean) / scale
	}
	return out
}

func (p Prediction) targetScale() float64 {
	if p.TargetStdDev == 0 {
		return 1
	}
	return p.TargetStdDev
}

// Slice is the prediction of rows from to to-1. Weights and noise are shared with p, and so are the outputs if there is one particle or all rows are taken;
// else the outputs, which lie particle by particle, are copied.
func (p Prediction) Slice(from, to int) (Prediction, error) {
	if err := p.validateShape(); err != nil {
		return Prediction{}, err
	}
	if from < 0 || to > p.Rows || from >= to {
		return Prediction{}, fmt.Errorf("bayes: Prediction.Slice(%d, %d): the prediction has rows 0 to %d", from, to, p.Rows-1)
	}
	if p.Particles == 1 || to-from == p.Rows {
		p.Outputs = p.Outputs[from*p.Width : len(p.Outputs)-(p.Rows-to)*p.Width]
		p.Rows = to - from
		return p, nil
	}
	outputs := make([]float64, 0, p.Particles*(to-from)*p.Width)
	for j := range p.Particles {
		at := j * p.Rows * p.Width
		outputs = append(outputs, p.Outputs[at+from*p.Width:at+to*p.Width]...)
	}
	p.Outputs, p.Rows = outputs, to-from
	return p, nil
}
