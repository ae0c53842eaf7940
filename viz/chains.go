package viz

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gobnn/bayes/diag"

	"gonum.org/v1/plot/vg/draw"
)

// chainStyles tell up to four chains apart; more start again.
var chainStyles = []draw.LineStyle{stroke(blue, 1), stroke(vermillion, 1, dashed...), stroke(green, 1.2, dotted...),
	stroke(orange, 1, dashDot...)}

// chainValues returns the draws of a parameter, chain by chain.
func chainValues(values [][]float64) (draws int, err error) {
	if len(values) == 0 || len(values[0]) < 4 {
		return 0, fmt.Errorf("viz: %d chains: at least one of at least 4 draws is needed", len(values))
	}
	for k, c := range values {
		if len(c) != len(values[0]) {
			return 0, fmt.Errorf("viz: chain %d has %d draws, chain 0 has %d: they must be equally long", k, len(c),
				len(values[0]))
		}
		for i, v := range c {
			if !finite(v) {
				return 0, fmt.Errorf("viz: draw %d of chain %d is %v: it must be finite", i, k, v)
			}
		}
	}
	return len(values[0]), nil
}

// TraceRank shows whether chains of one parameter, [chains][draws], agree: their draws in order and, below, a histogram
// of the ranks of each chain's draws among all draws, in 20 bins (Vehtari et al. 2021, section 4.4). If chains agree
// all bins are about equally high; a chain that stays high or low samples another region. The title has R-hat. Chains
// are not weighted.
func TraceRank(values [][]float64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Chains", "draw", "value", 640, 520)
	if err != nil {
		return nil, err
	}
	draws, err := chainValues(values)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(values...)
	chains, err := diag.New(diag.Sample{Values: all, Chains: len(values), Draws: draws, Parameters: 1})
	if err != nil {
		return nil, fmt.Errorf("viz: %w", err)
	}
	row := chains.Summary().Rows[0]
	p := &panel{title: frame.Title}
	p.note(fmt.Sprintf("R-hat %s, ESS %s (bulk) and %s (tail)", decimals(row.RHat, 3), decimals(row.BulkESS, 0),
		decimals(row.TailESS, 0)))
	top := newAxes(frame.XLabel, frame.YLabel, span{0, float64(draws)}.widen(.015), spanOf(all).widen(.05))
	const bins = 20
	counts := rankCounts(values, bins)
	highest := 0.
	for _, c := range counts {
		highest = max(highest, slices.Max(c))
	}
	low := newAxes("rank among all draws", "draws", span{0, float64(len(all))}, span{0, 1.08 * highest})
	uniform := level(float64(draws)/bins, span{0, float64(len(all))}, stroke(black, 1))
	low.add(uniform)
	for k, c := range values {
		trace := newLine(nil, c, chainStyles[k%len(chainStyles)])
		trace.style.Width *= .8
		if draws > 300 {
			trace.style.Dashes = nil // dashes would break up a curve as dense as this
		}
		for i := range c {
			trace.pieces[0].xs = append(trace.pieces[0].xs, float64(i))
		}
		var ranks, heights []float64
		for b, n := range counts[k] {
			from, to := float64(b*len(all))/bins, float64((b+1)*len(all))/bins
			ranks, heights = append(ranks, from, to), append(heights, n, n)
		}
		steps := newLine(ranks, heights, chainStyles[k%len(chainStyles)])
		steps.style.Width = 1.6
		top.add(trace)
		low.add(steps)
		if k < len(chainStyles) {
			p.entry(fmt.Sprintf("chain %d", k+1), steps)
		}
	}
	if len(values) > len(chainStyles) {
		p.note(fmt.Sprintf("%d chains: colours repeat after %d", len(values), len(chainStyles)))
	}
	p.entry("if chains agree", uniform)
	p.axes = []*axes{top, low}
	return newFigure(frame, p)
}

// rankCounts counts the draws of each chain in each bin of ranks. Equal draws have their mean rank.
func rankCounts(values [][]float64, bins int) [][]float64 {
	sorted := slices.Sorted(slices.Values(slices.Concat(values...)))
	counts := make([][]float64, len(values))
	for k, c := range values {
		counts[k] = make([]float64, bins)
		for _, v := range c {
			first := sort.SearchFloat64s(sorted, v)
			last := first + sort.Search(len(sorted)-first, func(i int) bool { return sorted[first+i] > v })
			rank := float64(first+last-1) / 2
			counts[k][min(bins-1, int(rank*float64(bins)/float64(len(sorted))))]++
		}
	}
	return counts
}

// decimals is a number for a note; "–" if it is not known.
func decimals(v float64, digits int) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, v)
}
