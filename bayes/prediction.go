package bayes

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
)

// Prediction holds what each weighted particle predicts for each row.
//
// The predictive distribution of a row is the mixture sum_j w_j p(y | f_j(x_n)) of the distributions that the
// likelihood makes of the particles' outputs. Particles of weight 0 are ignored, whatever their outputs.
//
// The methods check the prediction first and return the error that [Prediction.Validate] does; a method that is defined
// for one task only returns an error for the others. Numbers for each row and target are [Rows, Targets], row-major:
// with one target, one number for each row.
type Prediction struct {
	// Likelihood makes the outputs' distribution.
	Likelihood Likelihood
	// Outputs of the network, [Particles, Rows, Width], row-major, in the units that the model was trained in.
	Outputs                []float64
	Particles, Rows, Width int
	// Size is the number of targets of a regression, or of classes of a Classification; 0 is read as one target, and as
	// Width classes.
	Size int
	// Chains is the number of Markov chains that the particles come from, of equal length and one after another; 0 if they
	// are not from chains.
	Chains int
	// Weights of the particles, [Particles]; they sum to 1.
	Weights []float64
	// Own are the values of the likelihood's own parameters, such as a learnt noise, [Particles, P]; nil if it has
	// none.
	Own []float64
	// Target standardises each target as in training: (y - Mean) / StdDev. Its zero value leaves targets as they are,
	// and so do classifications.
	Target dataset.Scaler
	// Censored says for which rows LogDensity is log P(target > y), [Rows], see dataset.Dataset.Censored; nil: for
	// none.
	Censored []bool
	// Warnings say what makes the whole prediction doubtful, such as a feature in other units than in training.
	Warnings []string

	only int // 1 + the index of the target, if of one alone (see Of); 0: all
	// overOne says that the counts are over an exposure of 1, by a model that was given the rows' own (see WithExposure).
	overOne bool
}

// Task is the task of the likelihood.
func (p Prediction) Task() dataset.Task { return p.Likelihood.Task() }

// Classes is the number of classes C; 0 for regression.
func (p Prediction) Classes() int {
	switch p.Task() {
	case dataset.BinaryClassification:
		return 2
	case dataset.Classification:
		return cmp.Or(p.Size, p.Width)
	}
	return 0
}

// Columns is the number of targets in the results: Size, or 1 after Of and for classification.
func (p Prediction) Columns() int {
	if p.only > 0 || p.Task() != dataset.Regression {
		return 1
	}
	return max(p.Size, 1)
}

// target is the index of column k in the likelihood's order of targets.
func (p Prediction) target(k int) int {
	if p.only > 0 {
		return p.only - 1
	}
	return k
}

// Of is the prediction of one target alone, counted from 0: its marginal distribution.
func (p Prediction) Of(target int) (Prediction, error) {
	if target < 0 || target >= p.Columns() {
		return Prediction{}, fmt.Errorf("bayes: Prediction.Of(%d): the prediction has targets 0 to %d", target, p.Columns()-1)
	}
	p.only = 1 + p.target(target)
	return p, nil
}

// WithExposure is the prediction of counts over the given exposures, [Rows], as dataset.Dataset.Exposure, where a
// prediction is over an exposure of 1; nil leaves it as it is.
func (p Prediction) WithExposure(exposure []float64) (Prediction, error) {
	if exposure == nil {
		return p, nil
	}
	if err := p.Validate(); err != nil {
		return Prediction{}, err
	}
	if !takesExposure(p.Likelihood) {
		return Prediction{}, fmt.Errorf("bayes: Prediction.WithExposure: the likelihood %T has no mean that an exposure "+
			"could multiply, as bayes.Poisson has", p.Likelihood)
	}
	if len(exposure) != p.Rows {
		return Prediction{}, fmt.Errorf("bayes: Prediction.WithExposure of %d exposures: the prediction has %d rows",
			len(exposure), p.Rows)
	}
	p.Outputs, p.overOne = slices.Clone(p.Outputs), false
	for n, e := range exposure {
		if !(e > 0) || math.IsInf(e, 1) {
			return Prediction{}, fmt.Errorf("bayes: Prediction.WithExposure: the exposure of row %d is %v: it must be above 0, "+
				"and finite", n, e)
		}
		for j := range p.Particles {
			floats.AddConst(math.Log(e), p.outputs(j, n))
		}
	}
	return p, nil
}

// OfRows is the prediction of these rows, with their exposures, and knows which of their targets are censored.
func (p Prediction) OfRows(rows *dataset.Dataset) (Prediction, error) {
	p, err := p.WithExposure(rows.Exposure)
	p.Censored = rows.Censored
	return p, err
}

// Scale is the mean and the standard deviation that a target was standardised by; 0 and 1 if it was not.
func (p Prediction) Scale(k int) (mean, stdDev float64) {
	if k = p.target(k); len(p.Target.Mean) == 0 || p.Task() != dataset.Regression {
		return 0, 1
	}
	return p.Target.Mean[k], p.Target.StdDev[k]
}

// outputs of particle j for row n, [Width].
func (p Prediction) outputs(j, n int) []float64 {
	at := (j*p.Rows + n) * p.Width
	return p.Outputs[at : at+p.Width]
}

// own returns particle j's values of the likelihood's own parameters.
func (p Prediction) own(j int) []float64 {
	each := len(p.Own) / p.Particles
	return p.Own[j*each : (j+1)*each]
}

// Distribution is the distribution of a target given one particle, in standardised units, (y - Mean) / StdDev of
// Target.
func (p Prediction) Distribution(particle, row, target int) Distribution {
	return p.Likelihood.Predictive(p.outputs(particle, row), p.own(particle), p.target(target))
}

// ParticleMeans returns the means that each particle predicts, [Particles, Rows, Targets], in the targets' own units,
// for regression.
func (p Prediction) ParticleMeans() ([]float64, error) {
	if err := p.ready("ParticleMeans", true); err != nil {
		return nil, err
	}
	targets := p.Columns()
	means := make([]float64, 0, p.Particles*p.Rows*targets)
	for j := range p.Particles {
		for n := range p.Rows {
			for k := range targets {
				own, err := finiteMean("ParticleMeans", p.Distribution(j, n, k), j, n)
				if err != nil {
					return nil, err
				}
				mean, stdDev := p.Scale(k)
				means = append(means, mean+stdDev*own)
			}
		}
	}
	return means, nil
}

// finiteMean is the mean of the distribution that a particle predicts at a row; an error if there is none.
func finiteMean(method string, d Distribution, particle, row int) (float64, error) {
	mean := d.Mean()
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return 0, fmt.Errorf("bayes: Prediction.%s: the mean of particle %d at row %d is %v: its distribution has none, as "+
			"Student's t up to one degree of freedom, or the features of that row lie far outside the training rows; "+
			"take Quantile", method, particle, row, mean)
	}
	return mean, nil
}

// Mean is the predictive mean of a regression, [Rows, Targets], in the targets' own units.
func (p Prediction) Mean() ([]float64, error) {
	mean, _, _, err := p.moments("Mean")
	return mean, err
}

// StdDev returns the predictive standard deviation of a regression's targets, [Rows, Targets]. It combines the spread
// of the particles' means with the noise around them: sqrt(sum_j w_j ((f_j - mean)^2 + s_j^2)).
func (p Prediction) StdDev() ([]float64, error) {
	_, epistemic, noise, err := p.moments("StdDev")
	if err != nil {
		return nil, err
	}
	for i, v := range noise {
		epistemic[i] = math.Sqrt(epistemic[i] + v)
	}
	return epistemic, nil
}

// EpistemicStdDev is the standard deviation of the particles' means alone, without the noise, [Rows, Targets]:
// sqrt(sum_j w_j (f_j - mean)^2), for regression.
func (p Prediction) EpistemicStdDev() ([]float64, error) {
	_, epistemic, _, err := p.moments("EpistemicStdDev")
	for i, v := range epistemic {
		epistemic[i] = math.Sqrt(v)
	}
	return epistemic, err
}

// moments returns the predictive mean, the variance of the particles' means and the mean of their variances, [Rows,
// Targets] each.
func (p Prediction) moments(method string) (mean, epistemic, noise []float64, err error) {
	if err := p.ready(method, true); err != nil {
		return nil, nil, nil, err
	}
	targets := p.Columns()
	size := p.Rows * targets
	mean, epistemic, noise = make([]float64, size), make([]float64, size), make([]float64, size)
	weights := p.normalisedWeights()
	for k := range targets {
		center, stdDev := p.Scale(k)
		for n := range p.Rows {
			at, total := n*targets+k, 0.0
			for j, w := range weights { // Welford's recurrence, weighted (West 1979)
				if w == 0 {
					continue
				}
				d := p.Distribution(j, n, k)
				own, err := finiteMean(method, d, j, n)
				if err != nil {
					return nil, nil, nil, err
				}
				total += w
				delta := own - mean[at]
				mean[at] += delta * w / total
				epistemic[at] += w * delta * (own - mean[at])
				noise[at] += w * d.Variance()
			}
			mean[at] = center + stdDev*mean[at]
			epistemic[at] *= stdDev * stdDev
			noise[at] *= stdDev * stdDev
		}
	}
	return mean, epistemic, noise, nil
}

// Quantile is the level-quantile of the predictive distribution of a regression, [Rows, Targets]: the smallest y at
// which sum_j w_j P_j(Y <= y) >= level. level must lie strictly between 0 and 1.
func (p Prediction) Quantile(level float64) ([]float64, error) {
	quantiles, err := p.quantiles("Quantile", level)
	if err != nil {
		return nil, err
	}
	return quantiles[0], nil
}

// Interval is the central interval of a regression with the given probability, between the quantiles (1-level)/2 and
// (1+level)/2; lower and upper are [Rows, Targets]. level must lie strictly between 0 and 1.
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
	targets := p.Columns()
	quantiles := make([][]float64, len(levels))
	for i, level := range levels {
		if !(level > 0 && level < 1) {
			return nil, fmt.Errorf("bayes: Prediction.%s: level is %v: it must lie between 0 and 1", method, level)
		}
		quantiles[i] = make([]float64, p.Rows*targets)
	}
	mixture := stats.Mixture{Discrete: IsCounted(p.Likelihood)}
	var alive []int
	for j, w := range p.normalisedWeights() {
		if w > 0 {
			alive, mixture.Weights = append(alive, j), append(mixture.Weights, w)
		}
	}
	mixture.Parts = make([]stats.Distribution, len(alive))
	for k := range targets {
		mean, stdDev := p.Scale(k)
		for n := range p.Rows {
			for i, j := range alive {
				mixture.Parts[i] = p.Distribution(j, n, k)
			}
			for i, level := range levels {
				quantiles[i][n*targets+k] = mean + stdDev*mixture.Quantile(level)
			}
		}
	}
	return quantiles, nil
}

// Probabilities returns the class probabilities averaged over the particles, [Rows][Classes]: the weighted mean of each
// particle's. For a binary classification the second column holds the probability of class 1.
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
			stats.Probabilities(p.Distribution(j, n, 0), own)
			floats.AddScaled(all[n*classes:(n+1)*classes], w, own)
		}
	}
	return slices.Collect(slices.Chunk(all, classes)), nil
}

// Labels returns the classes of largest averaged probability, [Rows]; the first of them if several are equal.
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

// LogDensity is the log predictive density of each row's targets, log sum_j w_j p(y_n | f_j(x_n)), [Rows], where y is
// [Rows, Targets]. It is the joint density of a row's targets, which are independent given a particle. For
// classification it is the log-probability of class y_n, and for a row that is Censored that of a target above y_n. It
// is computed in logs throughout, so that it does not underflow for unlikely targets.
func (p Prediction) LogDensity(y []float64) ([]float64, error) {
	if err := p.ValidateTarget(y); err != nil {
		return nil, err
	}
	density := make([]float64, p.Rows)
	weights, terms := p.normalisedWeights(), make([]float64, 0, p.Particles)
	for n := range p.Rows {
		terms = terms[:0]
		for j, w := range weights {
			if w > 0 {
				terms = append(terms, math.Log(w)+p.particleLogDensity(j, n, y))
			}
		}
		density[n] = floats.LogSumExp(terms)
	}
	return density, nil
}

// particleLogDensity is log p(y_n | f_j(x_n)) of row n's targets, of y, [Rows, Targets].
func (p Prediction) particleLogDensity(j, n int, y []float64) float64 {
	sum := 0.0
	targets := p.Columns()
	for k := range targets {
		mean, stdDev := p.Scale(k)
		z, d := (y[n*targets+k]-mean)/stdDev, p.Distribution(j, n, k)
		if p.Censored != nil && p.Censored[n] {
			sum += LogSurvival(d, z)
		} else {
			sum += d.LogProb(z) - math.Log(stdDev)
		}
	}
	return sum
}

// LogSurvival is log P(Y > y).
func LogSurvival(d Distribution, y float64) float64 {
	if s := d.Survival(y); s > 0 {
		return math.Log(s)
	}
	if n, ok := d.(normal); ok { // whose tail is below the least number from 38 standard deviations on
		z := (y - n.mean) / n.stdDev
		fraction := z // as in logNormalSurvival
		for i := tailTerms; i > 0; i-- {
			fraction = z + float64(i)/fraction
		}
		return -.5*z*z - math.Log(fraction) - .5*math.Log(2*math.Pi)
	}
	return math.Inf(-1)
}

// Standardised is the prediction in standardised units, (y - Mean) / StdDev of each target. A classification is
// returned as it is, and so is a regression whose targets were not standardised.
func (p Prediction) Standardised() Prediction {
	p.Target = dataset.Scaler{}
	return p
}

// StandardiseTarget standardises y, [Rows, Targets], into a new slice; for classification it is a copy.
func (p Prediction) StandardiseTarget(y []float64) []float64 {
	out := slices.Clone(y)
	targets := p.Columns()
	for i, v := range out {
		mean, stdDev := p.Scale(i % targets)
		out[i] = (v - mean) / stdDev
	}
	return out
}

// Particle is the prediction of one particle alone, with weight 1. Its outputs are shared with p.
func (p Prediction) Particle(j int) (Prediction, error) {
	if err := p.validateShape(); err != nil {
		return Prediction{}, err
	}
	if j < 0 || j >= p.Particles {
		return Prediction{}, fmt.Errorf("bayes: Prediction.Particle(%d): the prediction has particles 0 to %d",
			j, p.Particles-1)
	}
	p.Own = p.own(j)
	stride := p.Rows * p.Width
	p.Outputs = p.Outputs[j*stride : (j+1)*stride]
	p.Particles, p.Chains, p.Weights = 1, 0, []float64{1}
	return p, nil
}

var errNoLikelihood = errors.New("bayes: Prediction: there is no Likelihood: set it, it says what the outputs mean")
