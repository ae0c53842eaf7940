package bayes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
)

// tryPrior is an error if a scale of the prior is not positive, if draws of the prior do not have its density, or if
// the density of one coordinate, or of several together, does not integrate to 1.
func (b *BoundModel) tryPrior(engine *compute.Engine) error {
	for _, slot := range b.stochasticSlots() {
		if scale := b.Model.Prior.Scale(slot.Parameter); !(scale > 0) || !finite(scale) { // samplers begin with such steps
			return fmt.Errorf("bayes: the prior %T has the scale %v for %q: Scale must return a positive, finite number",
				b.Model.Prior, scale, slot.Name)
		}
	}
	if err := b.tryDraws(engine); err != nil {
		return err
	}
	if _, ok := b.Model.Prior.(HierarchicalPrior); ok { // whose coordinates are not independent
		if b.D > mostTogether {
			return nil
		}
		return b.tryTogether(engine, b.D)
	}
	if err := b.tryIntegrals(engine); err != nil {
		return err
	}
	independent, err := b.independent(engine)
	if err != nil {
		return err
	}
	if independent {
		return b.tryShares(engine)
	}
	for _, coordinates := range []int{2, min(b.D, mostTogether)} { // with heavy tails, two show more than many
		if err := b.tryTogether(engine, coordinates); err != nil {
			return err
		}
	}
	return nil
}

// How many numbers are drawn from a prior in total, the largest and smallest number of draws, and by how many standard
// errors the means may deviate: by more than that in fewer than one of 10^9 trials by chance.
const (
	triedNumbers   = 200_000
	triedMostDraws = 4096
	triedDraws     = 100
	triedErrors    = 7
)

// tryDraws is an error if draws of the prior do not have its density, or if this mixes particles. It tests the draws by
// Stein's identities, averaged over a parameter's coordinates: with s the gradient of the log-density, E[s_i] = 0 and
// E[phi_i s_i] = -1.
func (b *BoundModel) tryDraws(engine *compute.Engine) error {
	name := fmt.Sprintf("%T", b.Model.Prior)
	draws := min(triedMostDraws, max(triedDraws, triedNumbers/b.D))
	var moments [2][]float64 // the terms of E[s_i] and of 1 + E[phi_i s_i], averaged over a parameter, [parameters, draws]
	var own [2][]float64     // means and standard deviations of s_i over the draws, [D] each
	var density [3][]float64 // of four particles, of the first of them with three others, of the last with three others
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 1), compute.Float32, draws)
			logPrior := b.LogPrior(phi)
			if want := shapes.Make(compute.Float32, draws); !logPrior.Shape().Equal(want) {
				panic(fmt.Errorf("the log-density of %d particles is %s: it must be one number a particle, %s", draws,
					logPrior.Shape(), want))
			}
			score := graph.Gradient(graph.ReduceAllSum(logPrior), phi)[0]
			var shift, scale []*graph.Node
			for _, slot := range b.stochasticSlots() {
				shift = append(shift, graph.ReduceMean(slot.of(score), -1))
				scale = append(scale, graph.AddScalar(graph.ReduceMean(slot.of(graph.Mul(phi, score)), -1), 1))
			}
			of := func(from, to int) *graph.Node { return graph.Slice(phi, graph.AxisRange(from, to)) }
			mean := graph.ReduceMean(score, 0)
			stdDev := graph.Sqrt(graph.ReduceMean(graph.Square(graph.Sub(score, graph.ExpandAxes(mean, 0))), 0))
			return []*graph.Node{graph.Stack(shift, 0), graph.Stack(scale, 0), mean, stdDev, b.LogPrior(of(0, 4)),
				b.LogPrior(graph.Concatenate([]*graph.Node{of(0, 1), of(4, 7)}, 0)),
				b.LogPrior(graph.Concatenate([]*graph.Node{of(4, 7), of(3, 4)}, 0))}
		})
	}, &moments[0], &moments[1], &own[0], &own[1], &density[0], &density[1], &density[2])
	if err != nil {
		return fmt.Errorf("bayes: draws of prior %s and their log-density cannot be evaluated: %w", name, err)
	}
	for i, particle := range []int{0, 3} {
		if was, now := density[0][particle], density[1+i][particle]; !near(was, now) {
			return fmt.Errorf("bayes: the log-density of prior %s for a particle depends on the other particles: it was %.6g "+
				"and is %.6g; each particle is a network of its own: sum over its coordinates, the last axis", name, was, now)
		}
	}
	// The largest of D means deviates further by chance than one mean does, hence the larger bound. Coordinates are
	// checked one by one since shifts of opposite signs cancel in a parameter's mean.
	most := triedErrors + math.Sqrt(2*math.Log(float64(b.D)))
	for _, slot := range b.stochasticSlots() {
		for i := slot.Offset; i < slot.Offset+slot.Size(); i++ {
			if off := math.Abs(own[0][i]); !(off <= most*own[1][i]/math.Sqrt(float64(draws))+triedError) {
				return fmt.Errorf("bayes: prior %s contradicts itself: what Sample draws for number %d of %s does not have the "+
					"density of LogDensity (the gradient of the log-density at the draws should be 0 in the mean, and is "+
					"%.3g): make both the same distribution, of all numbers; %s", name, i-slot.Offset, slot.Name, own[0][i],
					bounded)
			}
		}
	}
	for i, slot := range b.stochasticSlots() {
		for m, wrong := range []string{"the gradient of the log-density at them should be 0 in the mean",
			"1 + phi times the gradient of the log-density should be 0 in the mean"} {
			mean, stdDev := stat.MeanStdDev(moments[m][i*draws:(i+1)*draws], nil)
			if off := math.Abs(mean); !(off <= triedErrors*stdDev/math.Sqrt(float64(draws))+triedError) {
				return fmt.Errorf("bayes: prior %s contradicts itself: what Sample draws for %s does not have the density of "+
					"LogDensity (%s, and is %.3g): make both the same distribution, of all numbers; %s", name, slot.Name, wrong,
					mean, bounded)
			}
		}
	}
	return nil
}

// bounded says why a prior whose density ends at a bound is refused, and what to do instead: kernels that accept or
// reject would stay within the bound, but the moves of ohsmc.OpenHorizon, the normal distributions of VI and Laplace,
// and the steps of SGLD do not.
const bounded = "a density that ends at a bound, such as a uniform's or a half-normal's, is not taken, since " +
	"not every method would stay within it: take a Normal of the same scale, or a layer of your own that uses a " +
	"bounded function of its parameter, such as tanh or softplus, and give the parameter a prior on all numbers"

// tryIntegrals is an error if the density of one coordinate, of each of the scales that the parameters have, ends at a
// bound or does not integrate to 1.
func (b *BoundModel) tryIntegrals(engine *compute.Engine) error {
	whole := map[float64]bool{} // scales that are checked
	for _, slot := range b.stochasticSlots() {
		scale := b.Model.Prior.Scale(slot.Parameter)
		if whole[scale] {
			continue
		}
		whole[scale] = true
		below, ends, err := b.integrate(engine, scale)
		if err != nil {
			return fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for one coordinate: %w", b.Model.Prior,
				err)
		}
		if !math.IsNaN(ends) {
			return fmt.Errorf("bayes: the density of prior %T for one coordinate of %s, whose scale is %v, ends at about %.4g: "+
				"%s", b.Model.Prior, slot.Name, scale, ends, bounded)
		}
		if total := below[len(below)-1]; !(math.Abs(total-1) <= .02) {
			return fmt.Errorf("bayes: the density of prior %T integrates to %.4g for one coordinate of %s, whose scale is %v, "+
				"and not to 1: subtract the logarithm of the integral from LogDensity, since the evidence needs a normalised "+
				"density", b.Model.Prior, total, slot.Name, scale)
		}
	}
	return nil
}

// How many draws of a coordinate tryShares takes, and by how much their share below a number may differ from the
// density's integral up to it: by more in fewer than one of 10^9 trials by chance (Massart 1990), and 0.01 for the
// integral's own error.
const triedShares = 100_000

var shareError = math.Sqrt(math.Log(2e9)/(2*triedShares)) + .01

// tryShares is an error if the share of a coordinate's draws below some number is not what the density says. A mixture
// of a narrow and a wide part, for instance, whose draws take the parts with other weights, differs hardly in the means
// of tryDraws, to which the narrow part's gradients add much noise.
func (b *BoundModel) tryShares(engine *compute.Engine) error {
	tried := map[float64]bool{}
	for _, slot := range b.stochasticSlots() {
		scale := b.Model.Prior.Scale(slot.Parameter)
		if tried[scale] {
			continue
		}
		tried[scale] = true
		below, _, err := b.integrate(engine, scale)
		var draws []float64
		if err == nil {
			err = onHost(func() ([]*tensors.Tensor, error) {
				return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
					rng := random.New(g, 4)
					return []*graph.Node{b.Model.Prior.Sample(rng, compute.Float32, triedShares, []float64{scale})}
				})
			}, &draws)
		}
		if err != nil {
			return fmt.Errorf("bayes: prior %T cannot be drawn from for one coordinate: %w", b.Model.Prior, err)
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
					"%.3g, and by LogDensity it is %.3f: make both the same distribution", b.Model.Prior, slot.Name, have, edge,
					want)
			}
		}
	}
	return nil
}

// priorCells is the number of cells, from -Inf to Inf, in which a density of one coordinate is integrated.
const priorCells = 20_001

// integrate is the integral of the prior's density of one coordinate up to the end of each cell, by the midpoint rule
// at scale tan(u), and where the density ends, NaN if it does not: where it is not finite at two points in succession,
// next to one at which it is above exp(-50) of its largest value. (Far out a log-density may overflow, and it may be
// -Inf at one point.)
func (b *BoundModel) integrate(engine *compute.Engine, scale float64) (below []float64, ends float64, err error) {
	const points = priorCells
	at, weights := make([]float64, points), make([]float64, points)
	for i := range at {
		u := math.Pi * ((float64(i)+.5)/points - .5)
		at[i] = scale * math.Tan(u)
		weights[i] = scale * math.Pi / (points * math.Pow(math.Cos(u), 2))
	}
	logDensity, err := b.logPriorOf(engine, at, []float64{scale})
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

// logPriorOf is the log-density, [J], of phi, [J, n], under the prior of n coordinates of the given scales; of all
// coordinates where the prior is hierarchical.
func (b *BoundModel) logPriorOf(engine *compute.Engine, phi, scales []float64) (logDensity []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(phi *graph.Node) []*graph.Node {
			if _, ok := b.Model.Prior.(HierarchicalPrior); ok {
				return []*graph.Node{b.LogPrior(phi)}
			}
			return []*graph.Node{b.Model.Prior.LogDensity(phi, scales)}
		}, compute.Floats(compute.Float32, phi, len(phi)/len(scales), len(scales)))
	}, &logDensity)
	return logDensity, err
}

// independent says whether the log-density of all coordinates is the sum of those of each alone, at a few draws: then
// it is normalised if they are.
func (b *BoundModel) independent(engine *compute.Engine) (bool, error) {
	var together, alone []float64
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 2), compute.Float32, triedParticles)
			var parts []*graph.Node
			for _, slot := range b.stochasticSlots() {
				each := graph.Reshape(slot.of(phi), -1, 1)
				each = b.Model.Prior.LogDensity(each, []float64{b.Model.Prior.Scale(slot.Parameter)})
				parts = append(parts, graph.Reshape(each, triedParticles, -1))
			}
			return []*graph.Node{b.LogPrior(phi), graph.ReduceSum(graph.Concatenate(parts, 1), 1)}
		})
	}, &together, &alone)
	if err != nil {
		return false, fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for single coordinates: %w",
			b.Model.Prior, err)
	}
	for j := range together {
		if !near(together[j], alone[j]) {
			return false, nil
		}
	}
	return true, nil
}

// The most coordinates whose density together is integrated, and how many of their draws are taken at most.
const (
	mostTogether      = 32
	mostTogetherDraws = 8192
)

// tryTogether is an error if the prior's density f of the first so many coordinates together does not integrate to 1,
// as far as this can be told. It compares f at draws of the prior p = f/Z with f at draws of a normal distribution q
// fitted to other draws of it: E_q[f/(f + q)] = Z E_p[q/(f + q)] for any q (bridge sampling: Meng and Wong 1996). What
// is averaged lies in [0, 1], so that the means are known to an empirical Bernstein bound (Maurer and Pontil 2009,
// Theorem 4), whatever the distributions: fewer than one in 10^9 right priors are refused. Where f and q have little in
// common, both means are near 0 and nothing is found.
func (b *BoundModel) tryTogether(engine *compute.Engine, n int) error {
	failed := func(err error) error {
		return fmt.Errorf("bayes: the log-density of prior %T cannot be evaluated for %d coordinates: %w", b.Model.Prior, n,
			err)
	}
	scales := b.Scales()[:n]
	var all []float64 // [2 J, n]
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			rng := random.New(g, 3)
			if _, ok := b.Model.Prior.(HierarchicalPrior); ok {
				return []*graph.Node{b.SamplePrior(rng, compute.Float32, 2*mostTogetherDraws)}
			}
			return []*graph.Node{b.Model.Prior.Sample(rng, compute.Float32, 2*mostTogetherDraws, scales)}
		})
	}, &all)
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
		logF, err := b.logPriorOf(engine, phi, scales)
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
	if math.Abs(means[1]-means[0]) <= errs[0]+errs[1]+triedError {
		return nil
	}
	return fmt.Errorf("bayes: the density of prior %T integrates to about %.3g for %d coordinates together, and not to "+
		"1: subtract the logarithm of the integral from LogDensity, with its part for every coordinate and, where they are "+
		"correlated, half the logarithm of the determinant of their covariance, since the evidence needs a normalised "+
		"density", b.Model.Prior, means[1]/means[0], n)
}

// fittedNormal is a normal distribution with the mean and covariance of draws, [J, n], whose largest and smallest
// numbers are drawn in to the quantiles of 2% and 98% of their coordinate, since those of heavy tails would decide all;
// false if it has no density.
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
