package viz

import (
	"fmt"
	"slices"
	"sort"

	"gobnn/bayes"
	"gobnn/bayes/diag"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg/draw"
)

// chainStyles tell up to four chains apart; more start again.
var chainStyles = []draw.LineStyle{stroke(blue, 1), stroke(vermillion, 1, dashed...), stroke(green, 1.2, dotted...),
	stroke(orange, 1, dashDot...)}

// chainValues are the draws of a parameter, chain by chain.
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
// are not weighted: draw weighted particles with [Marginal].
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
	top.add(gridLines{})
	uniform := level(float64(draws)/bins, span{0, float64(len(all))}, stroke(black, 1))
	low.add(gridLines{}, uniform)
	for k, c := range values {
		trace := &line{style: chainStyles[k%len(chainStyles)]}
		trace.style.Width *= .8
		if draws > 300 {
			trace.style.Dashes = nil // dashes would break up a curve as dense as this
		}
		for i, v := range c {
			trace.xs, trace.ys = append(trace.xs, float64(i)), append(trace.ys, v)
		}
		steps := &line{style: chainStyles[k%len(chainStyles)]}
		steps.style.Width = 1.6
		for b, n := range counts[k] {
			from, to := float64(b*len(all))/bins, float64((b+1)*len(all))/bins
			steps.xs, steps.ys = append(steps.xs, from, to), append(steps.ys, n, n)
		}
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

// rankCounts are how many draws of each chain are in each bin of ranks; equal draws have their mean rank.
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

// ESSEvolution shows whether the effective sample size of a parameter's chains grows with the number of draws, as it
// should: the bulk and tail ESS of the first n draws at 20 values of n, and diag.MinESS. values are [chains][draws].
func ESSEvolution(values [][]float64, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Effective sample size along the chains", "draws of all chains", "effective draws", 640, 420)
	if err != nil {
		return nil, err
	}
	draws, err := chainValues(values)
	if err != nil {
		return nil, err
	}
	var totals, bulk, tail []float64
	for k := range 20 {
		n := draws * (k + 1) / 20
		if n < 4 {
			continue
		}
		var first []float64
		for _, c := range values {
			first = append(first, c[:n]...)
		}
		chains, err := diag.New(diag.Sample{Values: first, Chains: len(values), Draws: n, Parameters: 1})
		if err != nil {
			return nil, fmt.Errorf("viz: %w", err)
		}
		row := chains.Summary().Rows[0]
		totals, bulk, tail = append(totals, float64(len(first))), append(bulk, row.BulkESS), append(tail, row.TailESS)
	}
	var traces []Trace
	for _, t := range []Trace{{Name: "bulk ESS", Series: Series{totals, bulk}},
		{Name: "tail ESS", Series: Series{totals, tail}}} {
		if slices.ContainsFunc(t.Value, finite) {
			traces = append(traces, t)
		}
	}
	enough := fmt.Sprintf("enough: %d", diag.MinESS)
	return Traces(traces, TraceOptions{Frame: frame, Truth: diag.MinESS, TruthName: enough})
}

// Energy shows whether momenta carry a Hamiltonian sampler over all of the posterior: the distribution of the energy
// about its mean and, as a line, that of its change from one draw to the next, from energies [chains][draws], such as
// those of mcmc.Draws.Energies. Where the second is much narrower the chain moves slowly; the legend has the smallest
// E-BFMI of the chains, which should be above 0.3 (Betancourt 2016, Diagnosing suboptimal cotangent disintegrations,
// section 4). divergent says which transitions diverged, in the same shape, as mcmc.Draws.Divergent does; nil: not
// known. Their energies are marked at the bottom of the figure.
func Energy(values [][]float64, divergent [][]bool, frame Frame) (*Figure, error) {
	frame, err := frame.fill("Energy", "energy − its mean", "density", 640, 420)
	if err != nil {
		return nil, err
	}
	draws, err := chainValues(values)
	if err != nil {
		return nil, err
	}
	if divergent != nil && len(divergent) != len(values) {
		return nil, fmt.Errorf("viz: divergent has %d chains, energies %d", len(divergent), len(values))
	}
	mean := stat.Mean(slices.Concat(values...), nil)
	var about, jumps []float64
	diverged := &dots{shape: cross, radius: 3.4, fill: vermillion}
	least := 0.
	for k, c := range values {
		if divergent != nil && len(divergent[k]) != draws {
			return nil, fmt.Errorf("viz: divergent has %d transitions of chain %d, of %d", len(divergent[k]), k, draws)
		}
		squares := 0.
		for i, v := range c {
			about = append(about, v-mean)
			if i > 0 {
				jumps = append(jumps, v-c[i-1])
				squares += (v - c[i-1]) * (v - c[i-1])
			}
			if divergent != nil && divergent[k][i] {
				diverged.xs = append(diverged.xs, v-mean)
			}
		}
		variance := stat.Variance(c, nil)
		if variance == 0 {
			return nil, fmt.Errorf("viz: all energies of chain %d are %v: nothing to compare", k, c[0])
		}
		// As mcmc.ChainStats.EnergyBFMI: the mean of squared changes over the variance.
		if bfmi := squares / float64(draws-1) / variance; k == 0 || bfmi < least {
			least = bfmi
		}
	}
	each := func(xs []float64) (*bars, error) {
		xs, weights, _, err := weighted(xs, bayes.LogWeights{})
		if err != nil {
			return nil, err
		}
		return histogram(xs, weights, 0)
	}
	marginal, err := each(about)
	if err != nil {
		return nil, err
	}
	transition, err := each(jumps)
	if err != nil {
		return nil, err
	}
	marginal.fill, marginal.edge = histogramFill, stroke(white, .4)
	steps := &line{style: stroke(black, 1.6)}
	for i := range transition.x0 {
		steps.xs = append(steps.xs, transition.x0[i], transition.x1[i])
		steps.ys = append(steps.ys, transition.y1[i], transition.y1[i])
	}
	top := spanOf(marginal.y1, transition.y1).hi
	for range diverged.xs {
		diverged.ys = append(diverged.ys, -.02*top)
	}
	x := spanOf(marginal.x0, marginal.x1, transition.x0, transition.x1).widen(.02)
	a := newAxes(frame.XLabel, frame.YLabel, x, span{-.04 * top, 1.05 * top})
	a.add(gridLines{}, marginal, steps, diverged)
	p := &panel{title: frame.Title, axes: []*axes{a}}
	p.entry("energy", marginal)
	p.entry(fmt.Sprintf("change between draws, least E-BFMI %s", number(least)), steps)
	if divergent != nil {
		p.entry(fmt.Sprintf("%d divergent transitions", len(diverged.xs)), diverged)
	}
	return newFigure(frame, p)
}
