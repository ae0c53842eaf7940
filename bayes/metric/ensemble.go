package metric

import (
	"math"

	"gobnn/bayes"
	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
)

// maxGroups is the number of groups of the jackknife.
const maxGroups = 20

// ensemble is the part that all batches of one prediction share: the particles of positive weight, and their groups.
type ensemble struct {
	classCount int       // 0 for a regression
	alive      []int     // [A] particles of positive weight
	weights    []float64 // [A] sum to 1
	logs       []float64 // [A] log weights
	bounds     []int     // [G+1] group g is alive[bounds[g]:bounds[g+1]]
	rest       []float64 // [G] weight of all the others
	groups     int       // G
	targets    int
	discrete   bool      // the target is a count
	center     float64   // the first target's mean
	scales     []float64 // [Targets] standard deviations of the targets
	logScale   float64   // the sum of their logarithms
	// replicates is the number of leave-out values: G, or 0 if there is one particle.
	replicates int
}

func newEnsemble(p bayes.Prediction) *ensemble {
	e := &ensemble{classCount: p.Classes()}
	e.readScales(p)
	total := floats.Sum(p.Weights)
	for j, w := range p.Weights {
		if w == 0 {
			continue
		}
		e.alive = append(e.alive, j)
		e.weights = append(e.weights, w/total)
		e.logs = append(e.logs, math.Log(w/total))
	}
	groups := min(maxGroups, len(e.alive))
	for g := range groups + 1 {
		e.bounds = append(e.bounds, g*len(e.alive)/groups)
	}
	e.groups = groups
	for g := range groups {
		from, to := e.bounds[g], e.bounds[g+1]
		e.rest = append(e.rest, floats.Sum(e.weights[:from])+floats.Sum(e.weights[to:]))
	}
	if groups > 1 {
		e.replicates = groups
	}
	return e
}

// readScales reads the units of the targets.
func (e *ensemble) readScales(p bayes.Prediction) {
	e.targets = p.Columns()
	e.discrete = bayes.IsCounted(p.Likelihood)
	for k := range e.targets {
		mean, stdDev := p.Scale(k)
		if k == 0 {
			e.center = mean
		}
		e.scales = append(e.scales, stdDev)
		e.logScale += math.Log(stdDev)
	}
}

// withAndWithout turns sums over each group, [G], into the weighted mean over all particles and the means without each
// group: out is [1+G] (or [1]). The other groups are summed for each group again, since subtracting a dominating group
// from the total would lose precision.
func (e *ensemble) withAndWithout(groups, out []float64) {
	out[0] = floats.Sum(groups)
	for g := range e.replicates {
		out[1+g] = (floats.Sum(groups[:g]) + floats.Sum(groups[g+1:])) / e.rest[g]
	}
}

// row is one row of a batch, with the summaries of its predictive distribution that several metrics share. Each summary
// is [1+G]: its value by all particles, then the jackknife's replicates, by all but each of the G groups.
type row struct {
	*ensemble
	parts [][]stats.Distribution // [Targets][A], in standardised units
	ys    []float64              // [Targets], in standardised units
	y     float64                // the first target, in its own units
	above bool                   // the target is censored
	have  summary                // which summaries are computed for this row

	sums          []float64 // [G] scratch: sums over each group
	terms         []float64 // [A] scratch
	density       []float64 // [1+G] log predictive density of y
	means         []float64 // [1+G]
	particleMeans []float64 // [A]
	upTo, below   []float64 // [1+G] P(Y <= y) and P(Y < y), stretched
	lower, upper  []float64 // [1+G] ends of the central interval of the level
	level         float64
	probabilities [][]float64 // [Classes][1+G]
	stretched     [][]float64 // [Classes][1+G]
}

type summary int

const (
	haveDensity summary = 1 << iota
	haveMeans
	haveParticleMeans
	havePIT
	haveInterval
	haveProbabilities
	haveStretched
)

func newRow(e *ensemble) *row {
	size := 1 + e.replicates
	r := &row{ensemble: e, sums: make([]float64, e.groups), terms: make([]float64, len(e.alive)),
		particleMeans: make([]float64, len(e.alive))}
	for range e.targets {
		r.parts = append(r.parts, make([]stats.Distribution, len(e.alive)))
	}
	r.ys = make([]float64, e.targets)
	for _, s := range []*[]float64{&r.density, &r.means, &r.upTo, &r.below, &r.lower, &r.upper} {
		*s = make([]float64, size)
	}
	for range e.classCount {
		r.probabilities = append(r.probabilities, make([]float64, size))
		r.stretched = append(r.stretched, make([]float64, size))
	}
	return r
}

// read takes row n of a batch, whose targets are y, [Targets].
func (r *row) read(p bayes.Prediction, n int, y []float64) {
	r.have = 0
	r.y = y[0]
	r.above = p.Censored != nil && p.Censored[n]
	copy(r.ys, p.StandardiseTarget(y))
	for k, parts := range r.parts {
		for i, j := range r.alive {
			parts[i] = p.Distribution(j, n, k)
		}
	}
}

// need reports whether a summary is still to be computed for this row, and marks it as computed.
func (r *row) need(s summary) bool {
	missing := r.have&s == 0
	r.have |= s
	return missing
}

// logDensity is log sum_j w_j p(y | f_j).
func (r *row) logDensity() []float64 {
	if !r.need(haveDensity) {
		return r.density
	}
	for i, l := range r.logs {
		if r.above {
			r.terms[i] = l + bayes.LogSurvival(r.parts[0][i], r.ys[0])
			continue
		}
		for k, y := range r.ys {
			l += r.parts[k][i].LogProb(y)
		}
		r.terms[i] = l - r.logScale
	}
	for g := range r.sums {
		r.sums[g] = floats.LogSumExp(r.terms[r.bounds[g]:r.bounds[g+1]])
	}
	r.density[0] = floats.LogSumExp(r.sums)
	for g := range r.replicates {
		left := r.sums[g]
		r.sums[g] = math.Inf(-1)
		r.density[1+g] = floats.LogSumExp(r.sums) - math.Log(r.rest[g])
		r.sums[g] = left
	}
	return r.density
}

// mean is the predictive mean, in the target's own units.
func (r *row) mean() []float64 {
	if r.need(haveMeans) {
		means := r.ofParticles()
		for g := range r.sums {
			from, to := r.bounds[g], r.bounds[g+1]
			r.sums[g] = floats.Dot(r.weights[from:to], means[from:to])
		}
		r.withAndWithout(r.sums, r.means)
	}
	return r.means
}

// ofParticles returns the particles' own means, [A], in the target's own units.
func (r *row) ofParticles() []float64 {
	if r.need(haveParticleMeans) {
		for i, d := range r.parts[0] {
			r.particleMeans[i] = r.center + r.scales[0]*d.Mean()
		}
	}
	return r.particleMeans
}

func (r *row) mixture() stats.Mixture {
	return stats.Mixture{Weights: r.weights, Parts: r.parts[0], Discrete: r.discrete}
}

// distribution is P(Y <= y) and P(Y < y), stretched.
func (r *row) distribution() (upTo, below []float64) {
	if r.need(havePIT) {
		m := r.mixture()
		m.CDF(r.ys[0], r.bounds, r.sums)
		r.withAndWithout(r.sums, r.upTo)
		stretch(r.upTo)
		copy(r.below, r.upTo)
		if r.discrete {
			m.CDF(r.ys[0]-1, r.bounds, r.sums)
			r.withAndWithout(r.sums, r.below)
			stretch(r.below)
		}
	}
	return r.upTo, r.below
}

// interval is the central interval of the level, in the target's own units.
func (r *row) interval(level float64) (lower, upper []float64) {
	if r.need(haveInterval) || r.level != level {
		r.level = level
		m := r.mixture()
		for _, end := range []struct {
			p   float64
			out []float64
		}{{(1 - level) / 2, r.lower}, {1 - (1-level)/2, r.upper}} {
			end.out[0] = m.Quantile(end.p)
			if r.replicates > 0 {
				m.QuantilesWithout(end.p, end.out[0], r.bounds, r.rest, end.out[1:])
			}
			for g, v := range end.out {
				end.out[g] = r.center + r.scales[0]*v
			}
		}
	}
	return r.lower, r.upper
}

// classes returns the averaged probabilities of each class, [Classes][1+G].
func (r *row) classes() [][]float64 {
	if !r.need(haveProbabilities) {
		return r.probabilities
	}
	own := make([]float64, len(r.probabilities))
	sums := make([]float64, len(own)*r.groups) // [Classes, G]
	for g := range r.sums {
		for i := r.bounds[g]; i < r.bounds[g+1]; i++ {
			stats.Probabilities(r.parts[0][i], own)
			for c, v := range own {
				sums[c*r.groups+g] += r.weights[i] * v
			}
		}
	}
	for c, out := range r.probabilities {
		r.withAndWithout(sums[c*r.groups:(c+1)*r.groups], out)
	}
	return r.probabilities
}

// predicted is the class of largest probability and that probability, the confidence, in replicate g of 1+G, by the
// stretched probabilities.
func (r *row) predicted(g int) (class int, confidence float64) {
	if r.need(haveStretched) {
		for c, p := range r.classes() {
			copy(r.stretched[c], p)
			stretch(r.stretched[c])
		}
	}
	for c, p := range r.stretched {
		if p[g] > r.stretched[class][g] {
			class = c
		}
	}
	return class, min(r.stretched[class][g], 1)
}
