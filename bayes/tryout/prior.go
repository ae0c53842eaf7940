package tryout

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
)

// tryPrior is an error if a scale of the prior is not positive, if draws of the prior do not have its density, or if
// the density of one coordinate, or of two together, does not integrate to 1.
func (p *model) tryPrior() error {
	for _, slot := range p.stochastic {
		if scale := p.scale(slot); !(scale > 0) || math.IsInf(scale, 1) { // samplers begin with such steps
			return fmt.Errorf("bayes: the prior %T has the scale %v for %q: Scale must return a positive, finite number",
				p.Model.Prior, scale, slot.Name)
		}
	}
	if err := p.tryDraws(); err != nil {
		return err
	}
	independent, err := p.independent()
	if err != nil {
		return err
	}
	tried := map[float64]bool{} // scales
	for _, slot := range p.stochastic {
		if tried[p.scale(slot)] {
			continue
		}
		tried[p.scale(slot)] = true
		if err := p.tryCoordinate(slot, independent); err != nil {
			return err
		}
	}
	if independent || p.D == 1 {
		return nil
	}
	return p.tryTwo()
}

// The total count of numbers drawn from a prior, and the largest and smallest number of draws.
const (
	triedNumbers   = 200_000
	triedMostDraws = 4096
	triedDraws     = 100
)

// tryDraws returns an error if draws of the prior do not have its density, or if the density mixes particles. It tests
// the draws by Stein's identities: with s the gradient of the log-density, E[s_i] = 0, for each coordinate and averaged
// over a parameter's, and E[phi_i s_i] = -1, averaged over a parameter's coordinates.
func (p *model) tryDraws() error {
	draws := min(triedMostDraws, max(triedDraws, triedNumbers/p.D))
	const from, to = 4, 8 // particles whose density is evaluated alone, too
	var phi, score, density, alone []float64
	err := p.onHost(func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		phi := p.SamplePrior(random.New(g, 1), compute.Float32, draws)
		logPrior := p.LogPrior(phi)
		if want := shapes.Make(compute.Float32, draws); !logPrior.Shape().Equal(want) {
			panic(fmt.Errorf("the log-density of %d particles is %s: it must be one number a particle, %s", draws,
				logPrior.Shape(), want))
		}
		return []*graph.Node{phi, graph.Gradient(graph.ReduceAllSum(logPrior), phi)[0], logPrior,
			p.LogPrior(graph.Slice(phi, graph.AxisRange(from, to)))}
	}, nil, &phi, &score, &density, &alone)
	if err != nil {
		return fmt.Errorf("bayes: draws of prior %T and their log-density cannot be evaluated: %w", p.Model.Prior, err)
	}
	for j := from; j < to; j++ {
		if was, now := density[j], alone[j-from]; !near(was, now) {
			return fmt.Errorf("bayes: the log-density of prior %T for a particle depends on the other particles: it was %.6g "+
				"and is %.6g; each particle is a network of its own: sum over its coordinates, the last axis", p.Model.Prior, was,
				now)
		}
	}
	// The largest of D means deviates further by chance than one mean does, hence the larger bound. Coordinates are
	// checked one by one since shifts of opposite signs cancel in a parameter's mean.
	most := chanceErrors + math.Sqrt(2*math.Log(float64(p.D)))
	for _, slot := range p.stochastic {
		size := slot.Size()
		one, shift, scale := make([]float64, draws), make([]float64, draws), make([]float64, draws)
		for i := range size {
			for j := range draws {
				at := j*p.D + slot.Offset + i
				one[j] = score[at]
				shift[j] += score[at] / float64(size)
				scale[j] += (1 + phi[at]*score[at]) / float64(size)
			}
			if err := p.checkStein(fmt.Sprintf("number %d of %s", i, slot.Name), steinShift, one, most); err != nil {
				return err
			}
		}
		if err := p.checkStein(slot.Name, steinShift, shift, chanceErrors); err != nil {
			return err
		}
		if err := p.checkStein(slot.Name, steinScale, scale, chanceErrors); err != nil {
			return err
		}
	}
	return nil
}

// What is 0 in the mean over draws that have the density.
const (
	steinShift = "the gradient of the log-density at the draws"
	steinScale = "1 + phi times the gradient of the log-density"
)

// checkStein returns an error if the terms, which should be 0 in the mean, are further off than `most` standard
// errors.
func (p *model) checkStein(of, what string, terms []float64, most float64) error {
	mean, stdErr := meanOf(terms)
	if math.Abs(mean) <= most*stdErr+roundingError {
		return nil
	}
	return fmt.Errorf("bayes: prior %T contradicts itself: what Sample draws for %s does not have the density of "+
		"LogDensity (%s should be 0 in the mean, and is %.3g): make both the same distribution, of all numbers; %s",
		p.Model.Prior, of, what, mean, bounded)
}

// bounded says why a prior whose density ends at a bound is refused, and what to do instead. Kernels that accept or
// reject would stay within the bound. The moves of ohsmc.OpenHorizon, the normal distributions of VI and Laplace, and
// the steps of SGLD do not.
const bounded = "a density that ends at a bound, such as a uniform's or a half-normal's, is not taken, since " +
	"not every method would stay within it: take a Normal of the same scale, or a layer of your own that uses a " +
	"bounded function of its parameter, such as tanh or softplus, and give the parameter a prior on all numbers"

// some is the place of a parameter that has only so many of a slot's numbers.
func some(slot bayes.Slot, numbers int) bayes.Slot {
	slot.Offset, slot.Shape = 0, []int{numbers}
	return slot
}

// logPrior is the log-density, [J], of phi, [J, n], under the prior of some numbers of parameters.
func (p *model) logPrior(phi []float64, slots ...bayes.Slot) (logDensity []float64, err error) {
	n := 0
	for _, slot := range slots {
		n += slot.Size()
	}
	err = p.onHost(func(_ *graph.Graph, in []*graph.Node) []*graph.Node {
		return []*graph.Node{p.Model.Prior.LogDensity(in[0], slots)}
	}, []any{compute.Floats(compute.Float32, phi, len(phi)/n, n)}, &logDensity)
	if err != nil {
		return nil, fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for %d coordinates: %w", p.Model.Prior,
			n, err)
	}
	return logDensity, nil
}

// independent says whether the log-density of all coordinates is the sum of those of each alone, at a few draws: then
// it is normalised if they are.
func (p *model) independent() (bool, error) {
	var together, alone []float64
	err := p.onHost(func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		phi := p.SamplePrior(random.New(g, 2), compute.Float32, triedParticles)
		var parts []*graph.Node
		for _, slot := range p.stochastic {
			each := graph.Slice(phi, graph.AxisRange(), graph.AxisRange(slot.Offset, slot.Offset+slot.Size()))
			each = p.Model.Prior.LogDensity(graph.Reshape(each, -1, 1), []bayes.Slot{some(slot, 1)})
			parts = append(parts, graph.Reshape(each, triedParticles, -1))
		}
		return []*graph.Node{p.LogPrior(phi), graph.ReduceSum(graph.Concatenate(parts, 1), 1)}
	}, nil, &together, &alone)
	if err != nil {
		return false, fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for single coordinates: %w",
			p.Model.Prior, err)
	}
	return allNear(together, alone), nil
}

// The number of draws of a coordinate that are counted, and the largest difference between their share below a number
// and the density's integral up to it. By chance fewer than one of 10^9 trials exceed it (Massart 1990). It includes
// 0.01 for the integral's own error.
const triedShares = 100_000

var shareError = math.Sqrt(math.Log(2e9)/(2*triedShares)) + .01

// tryCoordinate is an error if the density of one coordinate of a parameter ends at a bound or does not integrate to 1.
// With shares it is one, too, if the share of a coordinate's draws below some number is not what the density says. A
// mixture of a narrow and a wide part, for instance, whose draws take the parts with other weights, differs hardly in
// the means of tryDraws, to which the narrow part's gradients add much noise.
func (p *model) tryCoordinate(slot bayes.Slot, shares bool) error {
	prior, scale := p.Model.Prior, p.scale(slot)
	at, weights := cells(priorCells, scale)
	logDensity, err := p.logPrior(at, some(slot, 1))
	if err != nil {
		return err
	}
	if ends := endOf(at, logDensity); !math.IsNaN(ends) {
		return fmt.Errorf("bayes: the density of prior %T for one coordinate of %s, whose scale is %v, ends at about %.4g: "+
			"%s", prior, slot.Name, scale, ends, bounded)
	}
	below := make([]float64, priorCells) // the integral up to the end of each cell
	for i, l := range logDensity {
		below[i] = weights[i] * math.Exp(l)
	}
	floats.CumSum(below, below)
	if total := below[len(below)-1]; !(math.Abs(total-1) <= .02) {
		return fmt.Errorf("bayes: the density of prior %T integrates to %.4g for one coordinate of %s, whose scale is %v, "+
			"and not to 1: subtract the logarithm of the integral from LogDensity, since the evidence needs a normalised "+
			"density", prior, total, slot.Name, scale)
	}
	if !shares {
		return nil
	}
	var draws []float64
	if err := p.onHost(func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		return []*graph.Node{prior.Sample(random.New(g, 4), compute.Float32, triedShares, []bayes.Slot{some(slot, 1)})}
	}, nil, &draws); err != nil {
		return fmt.Errorf("bayes: prior %T cannot be drawn from for one coordinate: %w", prior, err)
	}
	slices.Sort(draws)
	count := 0
	for i, want := range below {
		edge := scale * math.Tan(math.Pi*(float64(i+1)/priorCells-.5))
		for count < len(draws) && draws[count] <= edge {
			count++
		}
		if have := float64(count) / triedShares; !(math.Abs(have-want) <= shareError) {
			return fmt.Errorf("bayes: prior %T contradicts itself: of what Sample draws for %s a share of %.3f lies below "+
				"%.3g, and by LogDensity it is %.3f: make both the same distribution", prior, slot.Name, have, edge, want)
		}
	}
	return nil
}

// The numbers of cells, from -Inf to Inf, in which a density of one coordinate is integrated, and for each of two.
const (
	priorCells = 20_001
	twoCells   = 301
)

// cells returns the middles and the weights of the cells of an integral from -Inf to Inf, by the midpoint rule at scale
// tan(u).
func cells(points int, scale float64) (at, weights []float64) {
	at, weights = make([]float64, points), make([]float64, points)
	for i := range at {
		u := math.Pi * ((float64(i)+.5)/float64(points) - .5)
		at[i] = scale * math.Tan(u)
		weights[i] = scale * math.Pi / (float64(points) * math.Pow(math.Cos(u), 2))
	}
	return at, weights
}

// endOf is the place where a density ends, NaN if it does not. It ends where it is not finite at two points in
// succession, next to one at which it is above exp(-50) of its largest value. (Far out a log-density may overflow, and
// it may be -Inf at one point.)
func endOf(at, logDensity []float64) float64 {
	const least = -50
	missing := func(i int) bool { return math.IsNaN(logDensity[i]) || math.IsInf(logDensity[i], -1) }
	peak := math.Inf(-1)
	for i, l := range logDensity {
		if !missing(i) {
			peak = max(peak, l)
		}
	}
	for i := 2; i < len(at)-2; i++ {
		if !missing(i) && logDensity[i] > peak+least &&
			(missing(i+1) && missing(i+2) || missing(i-1) && missing(i-2)) {
			return at[i]
		}
	}
	return math.NaN()
}

// tryTwo is an error if the density of the first two coordinates together, which are not independent, does not
// integrate to 1: the constant for one coordinate may be there, and that of their dependence be missing.
func (p *model) tryTwo() error {
	slots := []bayes.Slot{some(p.stochastic[0], 2)}
	if p.stochastic[0].Size() == 1 {
		slots = []bayes.Slot{some(p.stochastic[0], 1), some(p.stochastic[1], 1)}
		slots[1].Offset = 1
	}
	scales := bayes.Scales(p.Model.Prior, slots)
	x, ofX := cells(twoCells, scales[0])
	y, ofY := cells(twoCells, scales[1])
	var at []float64
	for _, a := range x {
		for _, b := range y {
			at = append(at, a, b)
		}
	}
	logDensity, err := p.logPrior(at, slots...)
	if err != nil {
		return err
	}
	total := 0.
	for i, l := range logDensity {
		if !math.IsNaN(l) {
			total += ofX[i/twoCells] * ofY[i%twoCells] * math.Exp(l)
		}
	}
	if math.Abs(total-1) <= .05 {
		return nil
	}
	return fmt.Errorf("bayes: the density of prior %T integrates to about %.3g for two coordinates together, and not to "+
		"1: subtract the logarithm of the integral from LogDensity, with its part for every coordinate and, where they are "+
		"correlated, half the logarithm of the determinant of their covariance, since the evidence needs a normalised "+
		"density", p.Model.Prior, total)
}
