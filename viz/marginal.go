package viz

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/diag"

	"gonum.org/v1/gonum/floats"
)

// hdiMass is that of highest-density intervals, as in ArviZ.
const hdiMass = .94

// Marginal shows the draws of one parameter, or of one prediction: a histogram whose area is 1, their mean, and their
// highest-density interval of 94 % ([diag.HDI]) as a bar at its foot. The draws' weights, such as
// bayes.Posterior.LogWeights, count in all three; the zero value: equal ones.
func Marginal(values []float64, w bayes.LogWeights, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Posterior", "value", "density", 640, 420)
	if err != nil {
		return nil, err
	}
	xs, weights, dropped, err := weighted(values, w)
	if err != nil {
		return nil, err
	}
	logs := make([]float64, len(weights))
	mean, squares := 0., 0.
	for j, w := range weights {
		logs[j] = math.Log(w)
		mean += w * xs[j]
		squares += w * w
	}
	mean = min(max(mean, floats.Min(xs)), floats.Max(xs)) // by rounding it may lie beyond
	kept, err := bayes.NewLogWeights(logs)
	if err != nil {
		return nil, fmt.Errorf("viz: %w", err)
	}
	lower, upper, err := diag.HDI(xs, kept, hdiMass)
	if err != nil {
		return nil, fmt.Errorf("viz: %w", err)
	}
	h := histogram(xs, weights)
	h.fill, h.edge = tint(blue, .55), stroke(white, .4)
	x := spanOf(h.x0, h.x1)
	top := floats.Max(h.y1)
	a := newAxes(frame.XLabel, frame.YLabel, x.widen(.02), span{-.06 * top, 1.06 * top})
	foot := -.03 * top
	bar := &line{xs: []float64{lower, upper}, ys: []float64{foot, foot}, style: stroke(black, 3.5)}
	middle := &line{xs: []float64{mean, mean}, ys: []float64{0, 1.06 * top}, style: stroke(blue, 1.6)}
	a.add(gridLines{}, h, bar, middle)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.note(droppedNote(dropped))
	draws := fmt.Sprintf("%d draws", len(xs))
	if w.Len() > 0 {
		draws += ", ESS " + number(1/squares)
	}
	p.entry(draws, h)
	told := numbers(mean, lower, upper)
	p.entry("mean "+told[0], middle)
	p.entry(fmt.Sprintf("%s %% HDI: %s to %s", number(100*hdiMass), told[1], told[2]), bar)
	return newFigure(frame, p)
}

// weighted are the finite values of positive weight, with their weights, which sum to 1, and how many other values of
// positive weight there were.
func weighted(values []float64, w bayes.LogWeights) (xs, weights []float64, dropped int, err error) {
	if len(values) == 0 {
		return nil, nil, 0, fmt.Errorf("viz: no draws: nothing to draw")
	}
	if w.Len() > 0 && w.Len() != len(values) {
		return nil, nil, 0, fmt.Errorf("viz: %d Weights of %d draws: each must have one", w.Len(), len(values))
	}
	for j, v := range values {
		weight := 1.
		if w.Len() > 0 {
			weight = math.Exp(w.At(j))
		}
		switch {
		case weight == 0:
		case finite(v):
			xs, weights = append(xs, v), append(weights, weight)
		default:
			dropped++
		}
	}
	if len(xs) == 0 {
		return nil, nil, 0, fmt.Errorf("viz: none of %d draws is finite, within ±%v, and has a weight: nothing to draw",
			len(values), largest)
	}
	floats.Scale(1/floats.Sum(weights), weights)
	return xs, weights, dropped, nil
}

// histogram is one of weighted values, whose weights sum to 1, as a density, with as many bins as twice the cube root
// of the effective number of draws (Rice's rule), from 8 to 60.
func histogram(xs, weights []float64) *bars {
	bins := int(min(60, max(8, 2*math.Cbrt(1/floats.Dot(weights, weights)))))
	s := spanOf(xs)
	width := (s.hi - s.lo) / float64(bins)
	b := &bars{y0: make([]float64, bins), y1: make([]float64, bins)}
	for i := range bins {
		b.x0, b.x1 = append(b.x0, s.lo+float64(i)*width), append(b.x1, s.lo+float64(i+1)*width)
	}
	for j, v := range xs {
		b.y1[min(bins-1, int((v-s.lo)/width))] += weights[j] / width
	}
	return b
}
