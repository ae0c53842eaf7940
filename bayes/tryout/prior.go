package tryout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
)

// drawn holds statistics of draws from a prior; s is the gradient of its log-density.
type drawn struct {
	moments [2][]float64 // the terms of E[s_i] and of 1 + E[phi_i s_i], averaged over a parameter, [parameters, draws]
	own     [2][]float64 // means and standard deviations of s_i over the draws, [D] each
	density [3][]float64 // of four particles, of the first of them with three others, of the last with three others
}

// tryPrior is an error if a scale of the prior is not positive, if draws of the prior do not have its density, or if
// the density of one coordinate, or of several together, does not integrate to 1.
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
	if p.joint { // whose coordinates are not independent
		if p.D > mostTogether {
			return nil
		}
		return p.tryTogether(p.D)
	}
	independent, err := p.independent()
	if err != nil {
		return err
	}
	if err := p.tryCoordinates(independent); err != nil || independent {
		return err
	}
	for _, coordinates := range []int{2, min(p.D, mostTogether)} { // with heavy tails, two show more than many
		if err := p.tryTogether(coordinates); err != nil {
			return err
		}
	}
	return nil
}

// The total count of numbers drawn from a prior, and the largest and smallest number of draws.
const (
	triedNumbers   = 200_000
	triedMostDraws = 4096
	triedDraws     = 100
)

// tryDraws returns an error if draws of the prior do not have its density, or if the density mixes particles. It tests
// the draws by Stein's identities, averaged over a parameter's coordinates: with s the gradient of the log-density,
// E[s_i] = 0 and E[phi_i s_i] = -1.
func (p *model) tryDraws() error {
	name := fmt.Sprintf("%T", p.Model.Prior)
	draws := min(triedMostDraws, max(triedDraws, triedNumbers/p.D))
	d, err := p.priorDraws(draws)
	if err != nil {
		return fmt.Errorf("bayes: draws of prior %s and their log-density cannot be evaluated: %w", name, err)
	}
	for i, particle := range []int{0, 3} {
		if was, now := d.density[0][particle], d.density[1+i][particle]; !near(was, now) {
			return fmt.Errorf("bayes: the log-density of prior %s for a particle depends on the other particles: it was %.6g "+
				"and is %.6g; each particle is a network of its own: sum over its coordinates, the last axis", name, was, now)
		}
	}
	// The largest of D means deviates further by chance than one mean does, hence the larger bound. Coordinates are
	// checked one by one since shifts of opposite signs cancel in a parameter's mean.
	most := chanceErrors + math.Sqrt(2*math.Log(float64(p.D)))
	for _, slot := range p.stochastic {
		for i := slot.Offset; i < slot.Offset+slot.Size(); i++ {
			if off := math.Abs(d.own[0][i]); !(off <= most*d.own[1][i]/math.Sqrt(float64(draws))+roundingError) {
				return fmt.Errorf("bayes: prior %s contradicts itself: what Sample draws for number %d of %s does not have the "+
					"density of LogDensity (the gradient of the log-density at the draws should be 0 in the mean, and is "+
					"%.3g): make both the same distribution, of all numbers; %s", name, i-slot.Offset, slot.Name, d.own[0][i],
					bounded)
			}
		}
	}
	for i, slot := range p.stochastic {
		for m, wrong := range []string{"the gradient of the log-density at them should be 0 in the mean",
			"1 + phi times the gradient of the log-density should be 0 in the mean"} {
			mean, stdDev := stat.MeanStdDev(d.moments[m][i*draws:(i+1)*draws], nil)
			if off := math.Abs(mean); !(off <= chanceErrors*stdDev/math.Sqrt(float64(draws))+roundingError) {
				return fmt.Errorf("bayes: prior %s contradicts itself: what Sample draws for %s does not have the density of "+
					"LogDensity (%s, and is %.3g): make both the same distribution, of all numbers; %s", name, slot.Name, wrong,
					mean, bounded)
			}
		}
	}
	return nil
}

// bounded says why a prior whose density ends at a bound is refused, and what to do instead. Kernels that accept or
// reject would stay within the bound. The moves of ohsmc.OpenHorizon, the normal distributions of VI and Laplace, and
// the steps of SGLD do not.
const bounded = "a density that ends at a bound, such as a uniform's or a half-normal's, is not taken, since " +
	"not every method would stay within it: take a Normal of the same scale, or a layer of your own that uses a " +
	"bounded function of its parameter, such as tanh or softplus, and give the parameter a prior on all numbers"

// The number of draws of a coordinate that are counted, and the largest difference between their share below a number
// and the density's integral up to it. By chance fewer than one of 10^9 trials exceed it (Massart 1990). It includes
// 0.01 for the integral's own error.
const triedShares = 100_000

var shareError = math.Sqrt(math.Log(2e9)/(2*triedShares)) + .01

// tryCoordinates is an error if the density of one coordinate, of each of the scales that the parameters have, ends at
// a bound or does not integrate to 1. With shares it is one, too, if the share of a coordinate's draws below some
// number is not what the density says. A mixture of a narrow and a wide part, for instance, whose draws take the parts
// with other weights, differs hardly in the means of tryDraws, to which the narrow part's gradients add much noise.
func (p *model) tryCoordinates(shares bool) error {
	prior, tried := p.Model.Prior, map[float64]bool{} // scales
	for _, slot := range p.stochastic {
		scale := p.scale(slot)
		if tried[scale] {
			continue
		}
		tried[scale] = true
		below, ends, err := p.integrate(scale)
		if err != nil {
			return fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for one coordinate: %w", prior, err)
		}
		if !math.IsNaN(ends) {
			return fmt.Errorf("bayes: the density of prior %T for one coordinate of %s, whose scale is %v, ends at about %.4g: "+
				"%s", prior, slot.Name, scale, ends, bounded)
		}
		if total := below[len(below)-1]; !(math.Abs(total-1) <= .02) {
			return fmt.Errorf("bayes: the density of prior %T integrates to %.4g for one coordinate of %s, whose scale is %v, "+
				"and not to 1: subtract the logarithm of the integral from LogDensity, since the evidence needs a normalised "+
				"density", prior, total, slot.Name, scale)
		}
		if !shares {
			continue
		}
		draws, err := p.priorSample(4, triedShares, []float64{scale})
		if err != nil {
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
	}
	return nil
}

// priorCells is the number of cells, from -Inf to Inf, in which a density of one coordinate is integrated.
const priorCells = 20_001

// integrate returns the integral of the prior's density of one coordinate up to the end of each cell, by the midpoint
// rule at scale tan(u). ends is the place where the density ends, NaN if it does not. It ends where it is not finite at
// two points in succession, next to one at which it is above exp(-50) of its largest value. (Far out a log-density may
// overflow, and it may be -Inf at one point.)
func (p *model) integrate(scale float64) (below []float64, ends float64, err error) {
	const points = priorCells
	at, weights := make([]float64, points), make([]float64, points)
	for i := range at {
		u := math.Pi * ((float64(i)+.5)/points - .5)
		at[i] = scale * math.Tan(u)
		weights[i] = scale * math.Pi / (points * math.Pow(math.Cos(u), 2))
	}
	logDensity, err := p.logPrior(at, []float64{scale})
	if err != nil {
		return nil, 0, err
	}
	ends = math.NaN()
	below = make([]float64, points)
	for i, l := range logDensity {
		below[i] = weights[i] * math.Exp(l)
	}
	floats.CumSum(below, below)
	missing := func(i int) bool { return math.IsNaN(logDensity[i]) || math.IsInf(logDensity[i], -1) }
	const least = -50
	peak := math.Inf(-1)
	for i, l := range logDensity {
		if !missing(i) {
			peak = max(peak, l)
		}
	}
	for i := 2; i < points-2; i++ {
		if !missing(i) && logDensity[i] > peak+least &&
			(missing(i+1) && missing(i+2) || missing(i-1) && missing(i-2)) {
			ends = at[i]
		}
	}
	return below, ends, nil
}

// independent says whether the log-density of all coordinates is the sum of those of each alone, at a few draws: then
// it is normalised if they are.
func (p *model) independent() (bool, error) {
	together, alone, err := p.priorAlone(triedParticles)
	if err != nil {
		return false, fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for single coordinates: %w",
			p.Model.Prior, err)
	}
	return allNear(together, alone), nil
}

// The most coordinates whose density together is integrated, and how many of their draws are taken at most.
const (
	mostTogether      = 32
	mostTogetherDraws = 8192
)

// tryTogether returns an error if the prior's density f of the first n coordinates together clearly does not integrate
// to 1. It compares f at draws of the prior p = f/Z with f at draws of a normal distribution q fitted to other draws of
// it: E_q[f/(f + q)] = Z E_p[q/(f + q)] for any q (bridge sampling: Meng and Wong 1996). The averaged terms lie in [0,
// 1], so an empirical Bernstein bound (Maurer and Pontil 2009, Theorem 4) holds for the means, whatever the
// distributions. It refuses fewer than one in 10^9 right priors. Where f and q have little in common, both means are
// near 0 and nothing is found.
func (p *model) tryTogether(n int) error {
	failed := func(err error) error {
		return fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for %d coordinates: %w", p.Model.Prior, n,
			err)
	}
	scales := p.scales()[:n]
	all, err := p.priorSample(3, 2*mostTogetherDraws, scales) // [2 J, n]
	if err != nil {
		return failed(err)
	}
	ofPrior := all[mostTogetherDraws*n:]
	q, ok := fittedNormal(all[:mostTogetherDraws*n], n)
	if !ok {
		return nil // there is no normal distribution to compare with
	}
	ofNormal := make([]float64, 0, len(ofPrior))
	for range mostTogetherDraws {
		ofNormal = append(ofNormal, q.Rand(nil)...)
	}
	var means, errs [2]float64
	for i, phi := range [][]float64{ofPrior, ofNormal} {
		logF, err := p.logPrior(phi, scales)
		if err != nil {
			return failed(err)
		}
		terms := make([]float64, len(logF))
		for j, l := range logF {
			log := l - q.LogProb(phi[j*n:(j+1)*n]) // of f/q
			if i == 1 {
				log = -log
			}
			if terms[j] = 1 / (1 + math.Exp(log)); math.IsNaN(log) {
				terms[j] = 0
			}
		}
		const bound = 22.8 // log(2/delta) for 4 delta = 1e-9: two means, each above or below
		mean, variance := stat.MeanVariance(terms, nil)
		count := float64(len(terms))
		means[i], errs[i] = mean, math.Sqrt(2*variance*bound/count)+7*bound/(3*(count-1))
	}
	if math.Abs(means[1]-means[0]) <= errs[0]+errs[1]+roundingError {
		return nil
	}
	return fmt.Errorf("bayes: the density of prior %T integrates to about %.3g for %d coordinates together, and not to "+
		"1: subtract the logarithm of the integral from LogDensity, with its part for every coordinate and, where they are "+
		"correlated, half the logarithm of the determinant of their covariance, since the evidence needs a normalised "+
		"density", p.Model.Prior, means[1]/means[0], n)
}

// fittedNormal returns a normal distribution with the mean and covariance of draws, [J, n]. The largest and smallest
// numbers of each coordinate are first clipped to its quantiles of 2% and 98%, or heavy tails would decide all. It is
// false if the distribution has no density.
func fittedNormal(draws []float64, n int) (*distmv.Normal, bool) {
	x := mat.NewDense(len(draws)/n, n, slices.Clone(draws))
	mean := make([]float64, n)
	for k := range mean {
		column := mat.Col(nil, k, x)
		sorted := slices.Sorted(slices.Values(column))
		low, high := stat.Quantile(.02, stat.Empirical, sorted, nil), stat.Quantile(.98, stat.Empirical, sorted, nil)
		for j, v := range column {
			column[j] = min(max(v, low), high)
		}
		x.SetCol(k, column)
		mean[k] = stat.Mean(column, nil)
	}
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, x, nil)
	return distmv.NewNormal(mean, &covariance, rand.NewPCG(3, 4))
}
