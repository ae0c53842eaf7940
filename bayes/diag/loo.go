package diag

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// LOO estimates how well a model predicts rows that it has not seen. It leaves out one row after the other without
// fitting again: leave-one-out cross-validation by Pareto smoothed importance sampling (Vehtari, Gelman and Gabry 2017,
// Practical Bayesian model evaluation, Statistics and Computing 27). The posterior without row n has the particles of
// the whole posterior, with the weight w_j of particle j divided by p(y_n | theta_j). [PSIS] smooths these weights row
// by row.
type LOO struct {
	// ELPD is the sum over rows of the log predictive density of a row given all others, in nats, and StdErr its standard
	// error for rows drawn anew: sqrt(N) times the rows' standard deviation; NaN for a single row.
	ELPD, StdErr float64
	// Parameters is the effective number of parameters, p_loo: the log predictive density of the rows by the posterior
	// given all rows, minus ELPD.
	Parameters float64
	Rows       []LOORow // of each row, in the order of the data

	Warnings []string

	draws   int       // the number of those whose weight is not 0
	targets []float64 // the rows' targets, by which Compare sees that models predict other rows; nil: not known
}

// LOORow is a row's part of a [LOO].
type LOORow struct {
	ELPD float64 // log p(y_n | the other rows)
	// KHat is the shape of the tail of the row's weights: above .7, or less for fewer than 2000 draws, the row has so much
	// influence on the posterior that ELPD is unreliable; +Inf where one draw has all the weight, NaN where no tail can be
	// fitted, as where all weights are equal.
	KHat float64

	parameters float64 // log p(y_n | all rows) - ELPD
}

const (
	leastLOODraws = 30  // with 30 draws the tail has six
	fewEffective  = 100 // draws: of fewer the result is doubtful
)

// NewLOOForPosterior computes LOO for a posterior and its training rows. If the posterior's likelihood has a power, as
// with pbnn.TargetTempered, leaving out a row removes its likelihood to that power. Warnings say why the result may be
// unreliable. k-hat may be too large in some rows, few draws effective, or more parameters effective than the model
// has. The draws may be from an approximation. Or parameters were trained and not drawn: these were fitted to every
// row, and do not change when a row is left out.
//
// It is an error if columns or classes of the rows are in another order than the posterior's, or if the rows are not
// the training rows.
func NewLOOForPosterior(ctx context.Context, p *bayes.Posterior, train *dataset.Dataset) (LOO, error) {
	if p == nil || train == nil {
		return LOO{}, errors.New("diag: NewLOOForPosterior needs a posterior and the rows that it was given")
	}
	o := p.Origin()
	if err := train.SameOrder(o.FeatureNames, o.TargetNames, o.Classes); err != nil {
		return LOO{}, fmt.Errorf("diag: %w", err)
	}
	if train.Weights != nil {
		return LOO{}, errors.New("diag: the training rows have Weights, and leaving out a row of any weight is not " +
			"defined: score rows held back by metric.Of")
	}
	from := o.Provenance
	known := from.DataHash != ""
	if given := train.Hash(); known && given != from.DataHash {
		if read, err := dataset.Examine(ctx, dataset.RowsOf(train), 0, nil); err != nil || read.Hash != from.DataHash {
			return LOO{}, fmt.Errorf("%w: those have the hash %.12s, the %d rows of %q have %.12s: give the training part "+
				"itself; rows that it has not seen are scored by metric.Of", errOtherRows, from.DataHash, train.Rows(),
				train.Name, given)
		} // the provenance has the hash by Examine if the rows were a dataset.Source
	}
	prediction, err := p.Predict(ctx, train.X)
	if err != nil {
		return LOO{}, fmt.Errorf("diag: %w", err)
	}
	if prediction, err = prediction.OfRows(train); err != nil {
		return LOO{}, fmt.Errorf("diag: %w", err)
	}
	l, err := looForPrediction(prediction, train.Y, from.Power())
	if err != nil {
		return LOO{}, err
	}
	warn := func(format string, args ...any) { l.Warnings = append(l.Warnings, fmt.Sprintf(format, args...)) }
	if a := from.Approximation; a != "" {
		warn("the draws are not from the posterior, which leave-one-out assumes, but of %s: compare such models on rows "+
			"held back", a)
	}
	if !known {
		warn("the posterior does not know the hash of its training rows: it was not checked that they are these %d",
			train.Rows())
	}
	trained, all := 0, 0
	for _, s := range p.Bound().Slots {
		all += s.Size()
		if !s.Stochastic {
			trained += s.Size()
		}
	}
	if trained > 0 {
		warn("%d of %d parameters were trained, not drawn: they were fitted to every row and do not change when it is left "+
			"out, so that ELPD is too high; compare such models on rows held back", trained, all)
	}
	if l.Parameters > float64(all) {
		warn("the effective number of parameters, %.1f, is above the model's %d: the draws are not from the posterior, as "+
			"of chains that disagree (diag.Of), or the model does not describe these rows", l.Parameters, all)
	}
	return l, nil
}

// errOtherRows says that rows are not those that a posterior was given.
var errOtherRows = errors.New("diag: these are not the rows that the posterior was given")

// looForPrediction is LOO from a prediction of the rows that the posterior was trained on, and their targets y, [Rows,
// Targets], where the likelihood has a power. If the particles are from Markov chains, their relative efficiency is the
// mean over rows of the ESS of p(y_n | theta_j), divided by the number of particles.
func looForPrediction(p bayes.Prediction, y []float64, power float64) (LOO, error) {
	if err := p.ValidateTarget(y); err != nil {
		return LOO{}, fmt.Errorf("diag: %w", err)
	}
	w, err := bayes.NewLogWeights(logs(p.Weights))
	if err != nil {
		return LOO{}, fmt.Errorf("diag: %w", err)
	}
	logLikelihood := make([]float64, 0, p.Particles*p.Rows)
	for j, w := range p.Weights {
		if w == 0 { // its outputs need not be finite, and are not looked at
			logLikelihood = append(logLikelihood, slices.Repeat([]float64{math.Inf(-1)}, p.Rows)...)
			continue
		}
		own, err := p.Particle(j)
		if err != nil {
			return LOO{}, fmt.Errorf("diag: %w", err)
		}
		density, err := own.LogDensity(y)
		if err != nil {
			return LOO{}, fmt.Errorf("diag: %w", err)
		}
		logLikelihood = append(logLikelihood, density...)
	}
	efficiency := 1.
	if p.Chains == 0 {
		// Copies of a draw have the same log-likelihood of every row, as after resampling, which hides that few
		// draws carry the weight.
		if weights, different := merge(logLikelihood, w.Weights()); different < len(weights) {
			if w, err = bayes.NewLogWeights(logs(weights)); err != nil {
				return LOO{}, fmt.Errorf("diag: %w", err)
			}
		}
	}
	if p.Chains > 0 {
		if efficiency, err = likelihoodEfficiency(logLikelihood, p); err != nil {
			return LOO{}, err
		}
	}
	l, err := newLOO(logLikelihood, p.Rows, w, power, efficiency)
	l.targets = slices.Clone(y)
	return l, err
}

func logs(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Log(v)
	}
	return out
}

// likelihoodEfficiency is the mean over rows of the ESS of a row's likelihood, divided by the number of draws.
func likelihoodEfficiency(logLikelihood []float64, p bayes.Prediction) (float64, error) {
	draws, err := drawsOf(p.Weights, p.Chains)
	if err != nil {
		return 0, err
	}
	largest := slices.Repeat([]float64{math.Inf(-1)}, p.Rows)
	for i, v := range logLikelihood {
		largest[i%p.Rows] = max(largest[i%p.Rows], v)
	}
	values := make([]float64, len(logLikelihood))
	for i, v := range logLikelihood {
		values[i] = math.Exp(v - largest[i%p.Rows])
	}
	chains, err := chainsIn(Sample{Values: values, Chains: p.Chains, Draws: draws, Parameters: p.Rows})
	if err != nil {
		return 0, fmt.Errorf("diag: likelihoods of the rows: %w", err)
	}
	sum, own := 0., newWorkspace(chains)
	for n := range p.Rows {
		if err := own.load(n); err != nil {
			return 0, fmt.Errorf("diag: likelihoods of the rows: %w", err)
		}
		sum += own.meanESS() / float64(p.Particles)
	}
	return sum / float64(p.Rows), nil
}

// newLOO is LOO from log-likelihoods log p(y_n | theta_j), [J, rows], row-major, of draws with weights w, for a
// posterior whose likelihood has the given power. efficiency is the draws' ESS over J, and 1 for independent draws. The
// error names the first log-likelihood, of a draw whose weight is not 0, that is not finite.
func newLOO(logLikelihood []float64, rows int, w bayes.LogWeights, power, efficiency float64) (LOO, error) {
	draws := len(w)
	var alive []int
	for j := range draws {
		if w[j] > math.Inf(-1) {
			alive = append(alive, j)
		}
	}
	if len(alive) < leastLOODraws {
		return LOO{}, fmt.Errorf("diag: LOO of %d draws with weight above 0: a tail needs at least %d",
			len(alive), leastLOODraws)
	}
	bad, firstRow, firstDraw := 0, 0, 0
	for _, j := range alive {
		for n, v := range logLikelihood[j*rows : (j+1)*rows] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				if bad++; bad == 1 {
					firstRow, firstDraw = n, j
				}
			}
		}
	}
	if bad > 0 {
		return LOO{}, fmt.Errorf("%w: %d of %d log-likelihoods, the first that of row %d and draw %d, %v: a row to which a "+
			"draw gives density 0 cannot be left out by weights", errNonFinite, bad, len(alive)*rows, firstRow, firstDraw,
			logLikelihood[firstDraw*rows+firstRow])
	}
	l := LOO{Rows: make([]LOORow, rows), draws: len(alive)}
	failed := make([]error, rows)
	each(rows, func() func(int) {
		return func(n int) { l.Rows[n], failed[n] = leaveOut(n, logLikelihood, rows, w, power, alive, efficiency) }
	})
	if err := errors.Join(failed...); err != nil {
		return LOO{}, err
	}
	elpd := make([]float64, rows)
	for n, r := range l.Rows {
		elpd[n] = r.ELPD
		l.Parameters += r.parameters
	}
	l.ELPD = floats.Sum(elpd)
	l.StdErr = math.Sqrt(float64(rows) * stat.Variance(elpd, nil)) // NaN for one row
	l.warn(w, efficiency)
	return l, nil
}

// leaveOut computes the LOORow of row n.
func leaveOut(
	n int, logLikelihood []float64, rows int, w bayes.LogWeights, power float64, alive []int, efficiency float64,
) (LOORow, error) {
	ratios, seen, own := make([]float64, len(alive)), make([]float64, len(alive)), make([]float64, len(alive))
	for i, j := range alive {
		own[i] = logLikelihood[j*rows+n]
		ratios[i], seen[i] = w[j]-power*own[i], w[j]+own[i]
	}
	raw, err := bayes.NewLogWeights(ratios)
	if err != nil {
		return LOORow{}, fmt.Errorf("diag: row %d: %w", n, err)
	}
	smoothed, err := PSIS(raw, efficiency)
	switch {
	case errors.Is(err, ErrNoTail):
		smoothed = Smoothed{KHat: math.NaN(), LogWeights: raw}
	case err != nil:
		return LOORow{}, fmt.Errorf("diag: row %d: %w", n, err)
	}
	for i := range own {
		own[i] += smoothed.LogWeights[i]
	}
	r := LOORow{ELPD: floats.LogSumExp(own), KHat: smoothed.KHat}
	r.parameters = floats.LogSumExp(seen) - r.ELPD
	return r, nil
}

// warn adds warnings for what makes the result doubtful.
func (l *LOO) warn(w bayes.LogWeights, efficiency float64) {
	threshold := kHatThreshold(l.draws)
	worst, above, none := 0, 0, 0
	for n, r := range l.Rows {
		if math.IsNaN(r.KHat) {
			none++
		} else if !(l.Rows[worst].KHat >= r.KHat) {
			worst = n
		}
		if r.KHat > threshold {
			above++
		}
	}
	if above > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("k-hat is above %.2f in %d of %d rows, worst %.2f in row %d: their ELPD "+
			"is unreliable, and mostly too high; fit again without these rows, or score rows held back", threshold, above,
			len(l.Rows), l.Rows[worst].KHat, worst))
	}
	if none > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("in %d of %d rows no tail of the weights can be fitted: few draws differ",
			none, len(l.Rows)))
	}
	if len(l.Rows) == 1 {
		l.Warnings = append(l.Warnings, "of a single row ELPD has no standard error: how much it would differ for another "+
			"row is not known; take more rows")
	}
	if ess := min(efficiency*w.EffectiveSampleSize(), float64(l.draws)); ess < fewEffective {
		l.Warnings = append(l.Warnings, fmt.Sprintf("only %.0f of %d draws are effective: take more", ess, l.draws))
	}
}
