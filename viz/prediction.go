package viz

import (
	"cmp"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg/draw"
)

// drawnParticles is the number of particles whose functions are drawn.
const drawnParticles = 20

// bandOf are what [PredictiveBand] shows of a regression: the predictive mean and standard deviation, noise included,
// and the mean functions of some particles, each [Rows].
func bandOf(p bayes.Prediction) (mean, stdDev []float64, draws [][]float64, err error) {
	if mean, err = p.Mean(); err != nil {
		return nil, nil, nil, err
	}
	if stdDev, err = p.StdDev(); err != nil {
		return nil, nil, nil, err
	}
	for _, particle := range chosenParticles(p) {
		one, err := p.Particle(particle)
		if err != nil {
			return nil, nil, nil, err
		}
		alone, err := one.Mean()
		if err != nil {
			return nil, nil, nil, err
		}
		draws = append(draws, alone)
	}
	return mean, stdDev, draws, nil
}

// probabilityBand is bandOf of the probability of a class: its mean and standard deviation over the particles, with the
// functions of some.
func probabilityBand(p bayes.Prediction, class int) (mean, stdDev []float64, draws [][]float64, err error) {
	mean, stdDev = make([]float64, p.Rows), make([]float64, p.Rows)
	all := make([][]float64, p.Particles)
	for j := range all {
		if all[j], err = particleProbabilities(p, j, class); err != nil {
			return nil, nil, nil, err
		}
	}
	at := make([]float64, p.Particles)
	for i := range mean {
		for j := range at {
			at[j] = all[j][i]
		}
		mean[i], stdDev[i] = stat.PopMeanStdDev(at, p.Weights)
	}
	for _, j := range chosenParticles(p) {
		draws = append(draws, all[j])
	}
	return mean, stdDev, draws, nil
}

// particleProbabilities are those that one particle gives a class, [Rows].
func particleProbabilities(p bayes.Prediction, particle, class int) (values []float64, err error) {
	one, err := p.Particle(particle)
	if err != nil {
		return nil, err
	}
	alone, err := one.Probabilities()
	if err != nil {
		return nil, fmt.Errorf("particle %d: %w", particle, err)
	}
	for _, row := range alone {
		values = append(values, row[class])
	}
	return values, nil
}

// chosenParticles returns particles at even steps through the cumulated weights, so that heavy ones come more often.
func chosenParticles(p bayes.Prediction) []int {
	var chosen []int
	particle, cumulated := 0, p.Weights[0]
	for k := range drawnParticles {
		for (float64(k)+0.5)/drawnParticles > cumulated && particle < p.Particles-1 {
			particle++
			cumulated += p.Weights[particle]
		}
		chosen = append(chosen, particle)
	}
	return chosen
}

// DecisionMapOf is [DecisionMap] of the predictive probability of one class. The rows of the prediction are the points
// of the lattice, in the order of [Field.Points]. It also draws, for 20 particles, the line where the probability of
// the class is 1/2; particles of large weight are chosen more often.
func DecisionMapOf(lattice Field, p bayes.Prediction, class int, opt DecisionOptions) (*Figure, error) {
	if class < 0 || class >= p.Classes() {
		return nil, fmt.Errorf("viz: decision map: class %d: the prediction has %d classes", class, p.Classes())
	}
	var err error
	if lattice.Values, _, opt.draws, err = probabilityBand(p, class); err != nil {
		return nil, fmt.Errorf("viz: decision map: %w", err)
	}
	opt.ProbabilityLabel = cmp.Or(opt.ProbabilityLabel, "predicted probability of "+opt.className(class))
	return DecisionMap(lattice, opt)
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

// CalibrationCurveOf shows whether the intervals of a regression on targets y, [Rows], can be believed: the share of
// targets that central intervals cover against their nominal level, 0.05, 0.1, ..., 0.95. Below the diagonal the model
// is overconfident. In the band 95 % of the observations of a calibrated model fall, for independent rows, by the
// normal approximation to the binomial.
func CalibrationCurveOf(p bayes.Prediction, y []float64, frame Frame) (*Figure, error) {
	curve, err := metric.CalibrationCurve(p, y)
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
	return calibrationCurve(nominal, observed, rows, frame)
}

// predictedLevel is the probability of the intervals.
const predictedLevel = 0.9

// maxIntervals is the largest number of interval bars in one figure: with more rows only some have bars, chosen at even
// steps by target, and the others are faint points.
const maxIntervals = 300

// predictedVsTrue is the figure of predictions with their intervals from lower to upper, all equally long.
func predictedVsTrue(truth, predicted, lower, upper []float64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Predicted and true", "true target", "predicted target", 520, 520)
	if err != nil {
		return nil, err
	}
	rows, dropped, err := finiteRows(column{"truth", truth}, column{"predicted", predicted}, column{"lower", lower},
		column{"upper", upper})
	if err != nil {
		return nil, err
	}
	for i := range lower {
		if lower[i] > upper[i] {
			return nil, fmt.Errorf("viz: interval %d is from %v to %v: lower must not exceed upper", i, lower[i], upper[i])
		}
	}
	sortRows(rows)
	t, m, lo, hi := rows[0], rows[1], rows[2], rows[3]
	n := len(t)
	every := max(1, (n+maxIntervals-1)/maxIntervals)
	inside := &dots{radius: 2.4, fill: blue, halo: .5}
	outside := &dots{shape: draw.PyramidGlyph{}, radius: 3.6, fill: vermillion, halo: .5}
	insideBars := &line{style: stroke(tint(blue, 0.45), 1), upright: true}
	outsideBars := &line{style: stroke(tint(vermillion, 0.3), 1), upright: true}
	faintInside := &dots{radius: 1, fill: tint(skyBlue, 0.45)}
	faintOutside := &dots{radius: 1.2, fill: tint(vermillion, 0.55)}
	covered, chosen := 0, 0
	var ends []float64 // of the bars
	for i := range t {
		points, bar, faint := outside, outsideBars, faintOutside
		if lo[i] <= t[i] && t[i] <= hi[i] {
			points, bar, faint = inside, insideBars, faintInside
			covered++
		}
		if i%every != 0 {
			faint.xs, faint.ys = append(faint.xs, t[i]), append(faint.ys, m[i])
			continue
		}
		chosen++
		points.xs, points.ys = append(points.xs, t[i]), append(points.ys, m[i])
		bar.add([]float64{t[i], t[i]}, []float64{lo[i], hi[i]})
		ends = append(ends, lo[i], hi[i])
	}

	// One range for both axes: the diagonal is at 45 degrees.
	both := spanOf(t, m, ends)
	a := newAxes(frame.XLabel, frame.YLabel, both.widen(0.03), both.widen(0.03))
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	if every > 1 {
		p.note(fmt.Sprintf("intervals of %d of the %d rows, others faint", chosen, n))
	}
	corners := []float64{both.lo, both.hi}
	diagonal := newLine(corners, corners, stroke(black, 1.2, dashed...))
	a.add(faintInside, faintOutside, insideBars, outsideBars, inside, outside, diagonal)
	p.entry(fmt.Sprintf("inside the %s %% interval: %.1f %% of %d rows", number(100*predictedLevel),
		100*float64(covered)/float64(n), n), insideBars, inside)
	if covered < n {
		p.entry("outside", outsideBars, outside)
	}
	p.entry("predicted = true", diagonal)
	return newFigure(frame, p)
}
