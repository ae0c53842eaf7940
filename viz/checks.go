package viz

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/diag"

	"gonum.org/v1/gonum/stat"
)

// KHats shows the k-hat of each row of a leave-one-out cross-validation, above the threshold (diag.KHatThreshold of its
// draws) in another colour and shape. One of +Inf stands above all others. Rows without one, where no tail could be
// fitted, are left out and counted.
func KHats(loo diag.LOO, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Leave-one-out: influence of rows", "row", "Pareto k-hat", 640, 420)
	if err != nil {
		return nil, err
	}
	if len(loo.Rows) == 0 {
		return nil, fmt.Errorf("viz: k-hat of a LOO without rows: nothing to draw")
	}
	threshold := diag.KHatThreshold(loo.Draws)
	good := &dots{radius: 2.2, fill: blue}
	bad := &dots{radius: 3, shape: triangle, fill: vermillion}
	infinite, missing := 0, 0
	top := max(threshold, 1)
	for _, r := range loo.Rows {
		if finite(r.KHat) {
			top = max(top, r.KHat)
		}
	}
	for n, r := range loo.Rows {
		d, y := good, r.KHat
		switch {
		case math.IsInf(y, 1):
			infinite++
			d, y = bad, 1.15*top
		case !finite(y):
			missing++
			continue
		case y > threshold:
			d = bad
		}
		d.xs, d.ys = append(d.xs, float64(n)), append(d.ys, y)
	}
	if missing == len(loo.Rows) {
		return nil, fmt.Errorf("viz: none of %d rows has a k-hat: nothing to draw", missing)
	}
	x := span{-.5, float64(len(loo.Rows)) - .5}.widen(.015)
	a := newAxes(frame.XLabel, frame.YLabel, x, spanOf(good.ys, bad.ys, []float64{0, threshold}).widen(.05))
	limit := level(threshold, x, stroke(black, 1.2, dashed...))
	a.add(gridLines{}, limit, good, bad)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	if infinite > 0 {
		p.note(fmt.Sprintf("%d of %d rows have an infinite k-hat and stand at the top", infinite, len(loo.Rows)))
	}
	if missing > 0 {
		p.note(fmt.Sprintf("%d of %d rows have no k-hat", missing, len(loo.Rows)))
	}
	p.entry(fmt.Sprintf("%d rows", len(good.xs)), good)
	if len(bad.xs) > 0 {
		p.entry(fmt.Sprintf("%d rows above: not reliable", len(bad.xs)), bad)
	}
	p.entry("threshold "+number(threshold), limit)
	return newFigure(frame, p)
}

// PIT shows whether predictions are calibrated: the distribution function of probability integral transforms, such as
// the PIT of a diag.LOO's rows, minus that of the uniform distribution, which they have if the model is right. The band
// holds 95 % of calibrated models, over all its length at once (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant
// of Massart 1990, The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality). A curve that first rises above 0
// and then falls below it comes from predictions that are too narrow; the mirror image from too wide ones.
func PIT(values []float64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Calibration of predictions", "probability integral transform",
		"share below − uniform", 640, 420)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("viz: PIT of no rows: nothing to draw")
	}
	for n, v := range values {
		if !(v >= 0 && v <= 1) {
			return nil, fmt.Errorf("viz: PIT of row %d is %v: a probability is needed", n, v)
		}
	}
	sorted := slices.Sorted(slices.Values(values))
	size := float64(len(sorted))
	curve := &line{xs: []float64{0}, ys: []float64{0}, style: stroke(blue, 1.8)}
	most := 0. // the largest distance, that of Kolmogorov and Smirnov
	for i, v := range sorted {
		below, upTo := float64(i)/size-v, float64(i+1)/size-v
		curve.xs, curve.ys = append(curve.xs, v, v), append(curve.ys, below, upTo)
		most = max(most, math.Abs(below), math.Abs(upTo))
	}
	curve.xs, curve.ys = append(curve.xs, 1), append(curve.ys, 0)
	half := math.Sqrt(math.Log(2/.05) / (2 * size))
	band := &area{xs: []float64{0, 1}, lower: []float64{-half, -half}, upper: []float64{half, half},
		fill: tint(skyBlue, .7)}
	x := span{0, 1}
	reach := 1.1 * max(most, half)
	a := newAxes(frame.XLabel, frame.YLabel, x, span{-reach, reach})
	zero := level(0, x, stroke(black, 1, dashed...))
	a.add(band, gridLines{}, zero, curve)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	told := numbers(most, half)
	p.entry(fmt.Sprintf("%d rows, at most %s from uniform", len(sorted), told[0]), curve)
	p.entry(fmt.Sprintf("95 %% of calibrated models: ±%s", told[1]), band)
	return newFigure(frame, p)
}

// LOOPIT is [PIT] of each row given all others, from a leave-one-out cross-validation of a regression with one target.
// The band of PIT assumes independent values, and those of several targets of a row are not.
func LOOPIT(loo diag.LOO, frame Frame) (*Figure, error) {
	var values []float64
	for n, r := range loo.Rows {
		if r.PIT == nil {
			return nil, fmt.Errorf("viz: LOO-PIT: row %d has no PIT: take diag.NewLOOForPosterior or NewLOOForPrediction of a "+
				"regression", n)
		}
		if k := len(r.PIT); k > 1 {
			return nil, fmt.Errorf("viz: LOO-PIT of %d targets, which depend on each other within a row: call PIT with "+
				"Rows[n].PIT[k] of all rows n for one target k", k)
		}
		values = append(values, r.PIT...)
	}
	if frame.Title == "" {
		frame.Title = "Leave-one-out PIT"
	}
	return PIT(values, frame)
}

// PredictiveCheckOptions are the options of [PredictiveCheck].
type PredictiveCheckOptions struct {
	Frame
	// Draws of whole data sets from the predictive distribution; 0: 50. Each data set is drawn from one particle, chosen
	// with probability equal to its weight.
	Draws int
	Seed  uint64
}

// PredictiveCheck is the posterior predictive check of a regression: the distribution function of the targets y beside
// those of data sets that the model draws for the same rows. Where y's function leaves the others, the model does not
// generate such data. The legend says in which share of drawn data sets the mean and the standard deviation are smaller
// than those of y (Gelman, Meng and Stern 1996); a share near 0 or 1 shows a misfit.
func PredictiveCheck(p bayes.Prediction, y []float64, opt PredictiveCheckOptions) (*Figure, error) {
	frame, err := opt.fill("Posterior predictive check", "target", "share of rows below", 640, 420)
	if err != nil {
		return nil, err
	}
	if opt.Draws == 0 {
		opt.Draws = 50
	}
	if opt.Draws < 1 || opt.Draws > 1000 {
		return nil, fmt.Errorf("viz: Draws = %d: from 1 to 1000 data sets can be drawn", opt.Draws)
	}
	if p.Task() != bayes.Regression || p.Columns() != 1 {
		return nil, fmt.Errorf("viz: predictive check of %d targets, %v: it is of the one target of a regression; take "+
			"Prediction.Of for one of several, and Reliability for classes", p.Columns(), p.Task())
	}
	if err := p.ValidateTarget(y); err != nil {
		return nil, fmt.Errorf("viz: predictive check: %w", err)
	}
	if len(y) < 2 {
		return nil, fmt.Errorf("viz: predictive check of %d row: its standard deviation needs at least 2", len(y))
	}
	sets, err := p.Sample(opt.Draws, opt.Seed)
	if err != nil {
		return nil, fmt.Errorf("viz: predictive check: %w", err)
	}
	mean, stdDev := stat.MeanStdDev(y, nil)
	lowerMean, lowerSD := 0, 0
	drawn := &paths{style: stroke(tint(skyBlue, .35), .6)}
	for _, set := range sets {
		m, s := stat.MeanStdDev(set, nil)
		if m < mean {
			lowerMean++
		}
		if s < stdDev {
			lowerSD++
		}
		xs, ys := stairs(set)
		drawn.lines = append(drawn.lines, polyline{xs, ys})
	}
	xs, ys := stairs(y)
	own := &line{xs: xs, ys: ys, style: stroke(black, 2)}
	x := spanOf(append(sets, y)...).widen(.015)
	a := newAxes(frame.XLabel, frame.YLabel, x, span{-.02, 1.02})
	a.add(gridLines{}, drawn, own)
	panel := &panel{title: frame.Title, axes: []*axes{a}}
	panel.entry(fmt.Sprintf("%d data sets drawn", len(sets)), drawn)
	panel.entry(fmt.Sprintf("%d rows: P(smaller mean) = %s, P(smaller sd) = %s", len(y),
		number(float64(lowerMean)/float64(len(sets))), number(float64(lowerSD)/float64(len(sets)))), own)
	return newFigure(frame, panel)
}

// stairs is the distribution function of values, as a line from 0 to 1.
func stairs(values []float64) (xs, ys []float64) {
	sorted := slices.Sorted(slices.Values(values))
	for i, v := range sorted {
		xs = append(xs, v, v)
		ys = append(ys, float64(i)/float64(len(sorted)), float64(i+1)/float64(len(sorted)))
	}
	return xs, ys
}
