package metric

import (
	"math"
	"slices"

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
	e := &ensemble{classCount: p.Classes(), targets: p.Columns(), discrete: bayes.IsCounted(p.Likelihood)}
	e.center, _ = p.Scale(0)
	for k := range e.targets {
		_, stdDev := p.Scale(k)
		e.scales = append(e.scales, stdDev)
		e.logScale += math.Log(stdDev)
	}
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

// withAndWithout turns sums over each group, [G], into the weighted mean over all particles and the means without each
// group, [1+G] (or [1]). The other groups are summed for each group again, since subtracting a dominating group
// from the total would lose precision.
func (e *ensemble) withAndWithout(groups []float64) []float64 {
	out := make([]float64, 1+e.replicates)
	out[0] = floats.Sum(groups)
	for g := range e.replicates {
		out[1+g] = (floats.Sum(groups[:g]) + floats.Sum(groups[g+1:])) / e.rest[g]
	}
	return out
}

// row is one row of a batch, with the summaries of its predictive distribution that several metrics share: nil until
// one asks for it. Each is [1+G]: its value by all particles, then the jackknife's replicates, by all but each of the G
// groups.
type row struct {
	*ensemble
	parts [][]stats.Distribution // [Targets][A], in standardised units
	ys    []float64              // [Targets], in standardised units
	y     float64                // the first target, in its own units
	above bool                   // the target is censored

	density       []float64 // log predictive density of y
	means         []float64
	particleMeans []float64 // [A]
	upTo, below   []float64 // P(Y <= y) and P(Y < y), stretched
	lower, upper  []float64 // ends of the central interval of the level
	level         float64
	own           []float64   // [Classes], of one particle
	probabilities [][]float64 // [Classes][1+G]
	stretched     [][]float64 // [Classes][1+G]
}

// newRow is row n of a batch, whose targets are y, [Targets].
func newRow(e *ensemble, p bayes.Prediction, n int, y []float64) *row {
	r := &row{ensemble: e, y: y[0], ys: p.StandardiseTarget(y), above: p.Censored != nil && p.Censored[n]}
	for k := range e.targets {
		parts := make([]stats.Distribution, len(e.alive))
		for i, j := range e.alive {
			parts[i] = p.Distribution(j, n, k)
		}
		r.parts = append(r.parts, parts)
	}
	return r
}

// logDensity is log sum_j w_j p(y | f_j).
func (r *row) logDensity() []float64 {
	if r.density != nil {
		return r.density
	}
	terms := slices.Clone(r.logs) // [A]
	for i := range terms {
		if r.above {
			terms[i] += bayes.LogSurvival(r.parts[0][i], r.ys[0])
			continue
		}
		for k, y := range r.ys {
			terms[i] += r.parts[k][i].LogProb(y)
		}
		terms[i] -= r.logScale
	}
	sums := make([]float64, r.groups)
	for g := range sums {
		sums[g] = floats.LogSumExp(terms[r.bounds[g]:r.bounds[g+1]])
	}
	r.density = append(r.density, floats.LogSumExp(sums))
	for g := range r.replicates {
		left := sums[g]
		sums[g] = math.Inf(-1)
		r.density = append(r.density, floats.LogSumExp(sums)-math.Log(r.rest[g]))
		sums[g] = left
	}
	return r.density
}

// mean is the predictive mean, in the target's own units.
func (r *row) mean() []float64 {
	if r.means == nil {
		means, sums := r.ofParticles(), make([]float64, r.groups)
		for g := range sums {
			from, to := r.bounds[g], r.bounds[g+1]
			sums[g] = floats.Dot(r.weights[from:to], means[from:to])
		}
		r.means = r.withAndWithout(sums)
	}
	return r.means
}

// ofParticles returns the particles' own means, [A], in the target's own units.
func (r *row) ofParticles() []float64 {
	if r.particleMeans == nil {
		for _, d := range r.parts[0] {
			r.particleMeans = append(r.particleMeans, r.center+r.scales[0]*d.Mean())
		}
	}
	return r.particleMeans
}

func (r *row) mixture() stats.Mixture {
	return stats.Mixture{Weights: r.weights, Parts: r.parts[0], Discrete: r.discrete}
}

// distribution is P(Y <= y) and P(Y < y), stretched.
func (r *row) distribution() (upTo, below []float64) {
	if r.upTo == nil {
		m, sums := r.mixture(), make([]float64, r.groups)
		m.CDF(r.ys[0], r.bounds, sums)
		r.upTo = r.withAndWithout(sums)
		stretch(r.upTo)
		r.below = r.upTo
		if r.discrete {
			m.CDF(r.ys[0]-1, r.bounds, sums)
			r.below = r.withAndWithout(sums)
			stretch(r.below)
		}
	}
	return r.upTo, r.below
}

// interval is the central interval of the level, in the target's own units.
func (r *row) interval(level float64) (lower, upper []float64) {
	if r.lower == nil || r.level != level {
		r.level, r.lower, r.upper = level, r.quantile((1-level)/2), r.quantile(1-(1-level)/2)
	}
	return r.lower, r.upper
}

// quantile is the p-quantile, [1+G], in the target's own units.
func (r *row) quantile(p float64) []float64 {
	m, out := r.mixture(), make([]float64, 1+r.replicates)
	out[0] = m.Quantile(p)
	if r.replicates > 0 {
		m.QuantilesWithout(p, out[0], r.bounds, r.rest, out[1:])
	}
	for g, v := range out {
		out[g] = r.center + r.scales[0]*v
	}
	return out
}

// classes returns the averaged probabilities of each class, [Classes][1+G].
func (r *row) classes() [][]float64 {
	if r.probabilities != nil {
		return r.probabilities
	}
	own := make([]float64, r.classCount)
	sums := make([]float64, len(own)*r.groups) // [Classes, G]
	for g := range r.groups {
		for i := r.bounds[g]; i < r.bounds[g+1]; i++ {
			stats.Probabilities(r.parts[0][i], own)
			for c, v := range own {
				sums[c*r.groups+g] += r.weights[i] * v
			}
		}
	}
	for c := range own {
		r.probabilities = append(r.probabilities, r.withAndWithout(sums[c*r.groups:(c+1)*r.groups]))
	}
	return r.probabilities
}

// predicted is the class of largest probability and that probability, the confidence, in replicate g of 1+G, by the
// stretched probabilities.
func (r *row) predicted(g int) (class int, confidence float64) {
	if r.stretched == nil {
		for c, p := range r.classes() {
			r.stretched = append(r.stretched, slices.Clone(p))
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

// predictedBy is the class of particle i's largest probability, and that probability.
func (r *row) predictedBy(i int) (class int, confidence float64) {
	if r.own == nil {
		r.own = make([]float64, r.classCount)
	}
	stats.Probabilities(r.parts[0][i], r.own)
	class = floats.MaxIdx(r.own)
	return class, r.own[class]
}
