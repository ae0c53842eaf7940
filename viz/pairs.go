package viz

import (
	"fmt"
	"math"
	"strings"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// PairsOptions are the options of [Pairs].
type PairsOptions struct {
	// Title of the whole; empty: "Pairs of parameters". Its width is a notebook's, and each row is as high as wide.
	Title string
	// Weights of the draws, such as bayes.Posterior.LogWeights; the zero value: equal.
	Weights bayes.LogWeights
	// Divergent says at which draws a transition diverged, which often is where a posterior is narrow, such as
	// slices.Concat of mcmc.Draws.Divergent; nil: not known.
	Divergent []bool
}

// mostPairs is how many parameters fit side by side into a notebook.
const mostPairs = 6

// Pairs is the pair matrix of 2 to 6 parameters: on the diagonal their histograms, below it the draws of each pair,
// above it the correlation. Weights count in all of them. values are the draws of each parameter, [parameters][draws];
// a draw with a value that is not finite is left out, and counted.
func Pairs(names []string, values [][]float64, opt PairsOptions) (*Figure, error) {
	if len(values) < 2 || len(values) > mostPairs || len(names) != len(values) {
		return nil, fmt.Errorf("viz: pairs of %d parameters with %d names: from 2 to %d parameters, each with a name",
			len(values), len(names), mostPairs)
	}
	rows, dropped, err := pairRows(names, values, opt)
	if err != nil {
		return nil, err
	}
	n := len(values)
	spans := make([]span, n)
	for k := range n {
		spans[k] = spanOf(rows[k]).widen(.04)
	}
	g := &grid{cols: n}
	var crosses *dots
	for row := range n {
		for col := range n {
			p := &panel{}
			var a *axes
			switch {
			case row == col:
				h, err := histogram(rows[row], rows[n], 0)
				if err != nil {
					return nil, err
				}
				h.fill, h.edge = histogramFill, stroke(white, .4)
				a = newAxes(names[col], names[row], spans[col], span{0, 1.08 * floats.Max(h.y1)})
				a.add(h)
				a.plot.Y.Tick.Marker, a.plot.Y.Label.Text = plot.ConstantTicks(nil), ""
			case row > col:
				a = newAxes(names[col], names[row], spans[col], spans[row])
				cloud := [][]float64{rows[col], rows[row], rows[n]}
				points, _ := particleDots(cloud, spans[col], spans[row])
				points.fill, points.edge.Width = pairsFill, 0
				for i := range points.radii {
					points.radii[i] *= .6
				}
				a.add(gridLines{}, points)
				if opt.Divergent != nil {
					crosses = &dots{shape: cross, radius: 3, fill: vermillion}
					for i, diverged := range rows[n+1] {
						if diverged > 0 {
							crosses.xs, crosses.ys = append(crosses.xs, cloud[0][i]), append(crosses.ys, cloud[1][i])
						}
					}
					a.add(crosses)
				}
			default:
				a = newAxes(names[col], names[row], spans[col], spans[row])
				r := stat.Correlation(rows[col], rows[row], rows[n])
				middle := &forestText{x: (spans[col].lo + spans[col].hi) / 2, y: (spans[row].lo + spans[row].hi) / 2,
					text: strings.ReplaceAll(decimals(math.Round(100*r)/100+0, 2), "-", "−")} // no −0.00
				a.add(middle)
				a.plot.X.Tick.Marker, a.plot.Y.Tick.Marker = plot.ConstantTicks(nil), plot.ConstantTicks(nil)
			}
			if row < n-1 {
				silence(&a.plot.X)
			}
			if col > 0 {
				silence(&a.plot.Y)
			}
			a.framed()
			p.axes = []*axes{a}
			g.cells = append(g.cells, p)
		}
	}
	top := &panel{title: opt.Title}
	if top.title == "" {
		top.title = "Pairs of parameters"
	}
	top.note(droppedNote(dropped))
	draws := fmt.Sprintf("%d draws", len(rows[0]))
	if opt.Weights.Len() > 0 {
		draws += ", ESS " + number(1/floats.Dot(rows[n], rows[n]))
	}
	top.entry(draws, &bars{fill: histogramFill}, &dots{radius: 2, fill: pairsFill})
	if crosses != nil {
		top.entry(fmt.Sprintf("%d divergent", len(crosses.xs)), crosses)
	}
	g.legend = top
	height := NotebookWidth + int(g.header(points(NotebookWidth))*pixelsPerInch/vg.Inch)
	return newFigure(Frame{Width: NotebookWidth, Height: height}, g)
}

// pairsFill is the colour of a draw; many lie on each other.
var pairsFill = withAlpha(blue, .35)

// pairRows are the draws that are finite and have a weight, [parameters], their weights, which sum to 1, and 1 where a
// transition diverged.
func pairRows(names []string, values [][]float64, opt PairsOptions) (rows [][]float64, dropped int, err error) {
	var columns []column
	for k, v := range values {
		columns = append(columns, column{names[k], v})
	}
	draws := len(values[0])
	if opt.Weights.Len() > 0 && opt.Weights.Len() != draws || opt.Divergent != nil && len(opt.Divergent) != draws {
		return nil, 0, fmt.Errorf("viz: %d Weights and %d Divergent of %d draws: each draw must have one", opt.Weights.Len(),
			len(opt.Divergent), draws)
	}
	weights, diverged := make([]float64, draws), make([]float64, draws)
	if opt.Weights.Len() > 0 {
		weights = opt.Weights.Weights()
	} else {
		floats.AddConst(1/float64(draws), weights)
	}
	for j := range draws {
		if opt.Divergent != nil && opt.Divergent[j] {
			diverged[j] = 1
		}
	}
	columns = append(columns, column{"Weights", weights}, column{"Divergent", diverged})
	if rows, dropped, err = finiteRows(columns...); err != nil {
		return nil, 0, err
	}
	last := len(values)
	total := floats.Sum(rows[last])
	if !(total > 0) {
		return nil, 0, fmt.Errorf("viz: none of %d draws is finite, within ±%v, and has a weight: nothing to draw", draws,
			largest)
	}
	floats.Scale(1/total, rows[last])
	return rows, dropped, nil
}
