package viz

import (
	"fmt"
	"slices"

	"gobnn/bayes"

	"gonum.org/v1/gonum/stat"
)

// checkedSets is how many data sets a predictive check draws.
const checkedSets = 50

// PredictiveCheck is the posterior predictive check of a regression: the distribution function of the targets y beside
// those of 50 data sets that the model draws for the same rows, each from one particle, chosen with probability equal
// to its weight. Where y's function leaves the others, the model does not generate such data. The legend says in which
// share of drawn data sets the mean and the standard deviation are smaller than those of y (Gelman, Meng and Stern
// 1996); a share near 0 or 1 shows a misfit.
func PredictiveCheck(p bayes.Prediction, y []float64, seed uint64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Posterior predictive check", "target", "share of rows below", 640, 420)
	if err != nil {
		return nil, err
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
	sets, err := p.Sample(checkedSets, seed)
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
