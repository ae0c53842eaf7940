package metric

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/internal/predictive"

	"gonum.org/v1/gonum/floats"
)

// maxGroups is the number of groups of the jackknife.
const maxGroups = 20

// ensemble is what all batches of one prediction share: the particles of positive weight, and their groups.
type ensemble struct {
	first   bayes.Prediction // without outputs: what later batches must agree with
	alive   []int            // [A] particles of positive weight
	weights []float64        // [A] sum to 1
	logs    []float64        // [A] log weights
	noise   []float64        // [A] nil for classification
	bounds  []int            // [G+1] group g is alive[bounds[g]:bounds[g+1]]
	rest    []float64        // [G] weight of all the others
	groups  int              // G
	// replicates is how many leave-out values there are: G, or 0 if there is one particle.
	replicates int
}

func newEnsemble(p bayes.Prediction) *ensemble {
	e := &ensemble{first: p}
	e.first.Outputs = nil
	e.first.Weights, e.first.NoiseStdDev = slices.Clone(p.Weights), slices.Clone(p.NoiseStdDev)
	total := floats.Sum(p.Weights)
	for j, w := range p.Weights {
		if w == 0 {
			continue
		}
		e.alive = append(e.alive, j)
		e.weights = append(e.weights, w/total)
		e.logs = append(e.logs, math.Log(w/total))
		if p.Task == bayes.Regression {
			e.noise = append(e.noise, p.NoiseStdDev[j])
		}
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

// same is an error unless p is of the same particles as the batches before.
func (e *ensemble) same(p bayes.Prediction) error {
	f := e.first
	if p.Task != f.Task || p.Particles != f.Particles || p.Width != f.Width {
		return fmt.Errorf("metric: this batch has Task %v, %d particles and %d outputs, those before Task %v, %d particles and %d outputs",
			p.Task, p.Particles, p.Width, f.Task, f.Particles, f.Width)
	}
	for j := range f.Weights {
		if p.Weights[j] != f.Weights[j] {
			return fmt.Errorf("metric: in this batch particle %d has weight %v, in those before %v: all batches must be of the same particles",
				j, p.Weights[j], f.Weights[j])
		}
	}
	for j := range f.NoiseStdDev {
		if p.NoiseStdDev[j] != f.NoiseStdDev[j] {
			return fmt.Errorf("metric: in this batch particle %d has noise %v, in those before %v: all batches must be of the same particles, in the same units",
				j, p.NoiseStdDev[j], f.NoiseStdDev[j])
		}
	}
	return nil
}

// withAndWithout turns sums over each group, [G], into the weighted mean over all particles and the means without each group: out is [1+G] (or [1]). Sums over
// the others are formed anew for each group, since a difference from the total would lose its digits where one group dominates.
func (e *ensemble) withAndWithout(groups, out []float64) {
	out[0] = floats.Sum(groups)
	for g := range e.replicates {
		out[1+g] = (floats.Sum(groups[:g]) + floats.Sum(groups[g+1:])) / e.rest[g]
	}
}

// row is one row of a batch, with the summaries of its predictive distribution that several metrics share. Each summary holds the value of
// all particles first, then, without each group, G more: [1+G].
type row struct {
	*ensemble
	outputs []float64 // [A, Width]
	y       float64
	have    summary // which of those below are of this row

	parts         []float64 // [G] scratch: sums over each group
	terms         []float64 // [A] scratch
	density       []float64 // [1+G] log predictive density of y
	means         []float64 // [1+G]
	pit           []float64 // [1+G] predictive distribution function at y, stretched
	lower, upper  []float64 // [1+G] ends of the central interval of the level
	level         float64
	probabilities [][]float64 // [Classes][1+G]
	stretched     [][]float64 // [Classes][1+G]
}

type summary int

const (
	haveDensity summary = 1 << iota
	haveMeans
	havePIT
	haveInterval
	haveProbabilities
	haveStretched
)

func newRow(e *ensemble) *row {
	size := 1 + e.replicates
	r := &row{ensemble: e, outputs: make([]float64, len(e.alive)*e.first.Width)}
	r.parts, r.terms = make([]float64, e.groups), make([]float64, len(e.alive))
	for _, s := range []*[]float64{&r.density, &r.means, &r.pit, &r.lower, &r.upper} {
		*s = make([]float64, size)
	}
	for range e.first.Classes() {
		r.probabilities = append(r.probabilities, make([]float64, size))
		r.stretched = append(r.stretched, make([]float64, size))
	}
	return r
}

// read takes row n of a batch.
func (r *row) read(p bayes.Prediction, n int, y float64) {
	r.y, r.have = y, 0
	for i, j := range r.alive {
		at := (j*p.Rows + n) * p.Width
		copy(r.outputs[i*p.Width:(i+1)*p.Width], p.Outputs[at:at+p.Width])
	}
}

// need reports whether a summary is still to be computed for this row, and marks it as there.
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
	w := r.first.Width
	for i, l := range r.logs {
		logits := r.outputs[i*w : (i+1)*w]
		switch r.first.Task {
		case bayes.Regression:
			l += predictive.LogNormal(r.y, logits[0], r.noise[i])
		case bayes.BinaryClassification:
			l += predictive.LogBernoulli(int(r.y), logits[0])
		case bayes.Classification:
			l += predictive.LogCategorical(int(r.y), logits)
		}
		r.terms[i] = l
	}
	for g := range r.parts {
		r.parts[g] = floats.LogSumExp(r.terms[r.bounds[g]:r.bounds[g+1]])
	}
	r.density[0] = floats.LogSumExp(r.parts)
	for g := range r.replicates {
		left := r.parts[g]
		r.parts[g] = math.Inf(-1)
		r.density[1+g] = floats.LogSumExp(r.parts) - math.Log(r.rest[g])
		r.parts[g] = left
	}
	return r.density
}

// mean is the predictive mean.
func (r *row) mean() []float64 {
	if r.need(haveMeans) {
		for g := range r.parts {
			from, to := r.bounds[g], r.bounds[g+1]
			r.parts[g] = floats.Dot(r.weights[from:to], r.outputs[from:to])
		}
		r.withAndWithout(r.parts, r.means)
	}
	return r.means
}

func (r *row) mixture() predictive.Mixture {
	return predictive.Mixture{Weights: r.weights, Means: r.outputs, StdDevs: r.noise}
}

// distribution is P(Y <= y), stretched.
func (r *row) distribution() []float64 {
	if r.need(havePIT) {
		r.mixture().CDF(r.y, r.bounds, r.parts)
		r.withAndWithout(r.parts, r.pit)
		stretch(r.pit)
	}
	return r.pit
}

// interval is the central interval of the level.
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
		}
	}
	return r.lower, r.upper
}

// classes are the averaged probabilities of each class, [Classes][1+G].
func (r *row) classes() [][]float64 {
	if !r.need(haveProbabilities) {
		return r.probabilities
	}
	w := r.first.Width
	own := make([]float64, len(r.probabilities))
	sums := make([]float64, len(own)*r.groups) // [Classes, G]
	for g := range r.parts {
		for i := r.bounds[g]; i < r.bounds[g+1]; i++ {
			predictive.Probabilities(r.outputs[i*w:(i+1)*w], own)
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

// predicted is the class of largest probability and that probability, the confidence, in replicate g of 1+G, whose leave-out values are stretched.
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
