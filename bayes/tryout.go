package bayes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/tryout"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"
)

// The methods of a user's own network, likelihood or prior must agree with each other: a likelihood's LogDensity, which
// trains, with its Predictive, which scores; a prior's Sample with its LogDensity; and a layer must treat every
// particle and every row independently. If they do not, nothing fails but all results are wrong. So Bind tries parts
// that are not the library's own on a few small numbers, on the Go backend, which takes some milliseconds.

// tryOut is an error if parts of the model that are not of this library contradict themselves.
func (b *BoundModel) tryOut(engine *compute.Engine) error {
	network, likelihood := tryout.Foreign(b.Model.Network), tryout.Foreign(b.Model.Likelihood)
	if network || likelihood {
		if err := b.tryNetwork(engine); err != nil {
			return err
		}
	}
	if tryout.Foreign(b.Model.Prior) {
		return b.tryPrior(engine)
	}
	return nil
}

// The numbers of particles and rows that a model is tried on, and the relative error allowed in float32.
const (
	triedParticles = 4 // two blocks of two
	triedRows      = 3
	triedError     = 2e-3
)

// tried are the results of network and likelihood for the particles and rows of a trial.
type tried struct {
	outputs []float64 // [J, Width, B]
	density []float64 // [J, B]
}

// tryNetwork tries the network and the likelihood with numbers from a standard normal distribution. Where the network's
// outputs are NaN for these, as a square root's are, smaller and positive numbers are tried too, since there is no
// distribution of NaN to take targets from.
func (b *BoundModel) tryNetwork(engine *compute.Engine) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		scale    float64
		positive bool
	}{{1, false}, {.05, false}, {1, true}, {.05, true}} {
		unusual, err := b.tryNumbers(engine, func(scale float64, n int) []float64 {
			values := make([]float64, n)
			for i := range values {
				if values[i] = c.scale * scale * rng.NormFloat64(); c.positive {
					values[i] = math.Abs(values[i])
				}
			}
			return values
		})
		if err != nil || !unusual {
			return err
		}
	}
	return nil
}

// tryNumbers evaluates a few particles and rows, and then again with other values in all rows but one, in all particles
// but one, with the rows in reverse order, and with another block size. Outputs and log-densities of what was kept must
// stay the same, and the log-densities must agree with Predictive; unusual says that this was not tried, since an
// output is NaN. draw gives so many numbers of about the given scale.
func (b *BoundModel) tryNumbers(
	engine *compute.Engine, draw func(scale float64, n int) []float64,
) (unusual bool, err error) {
	phi, psi := draw(.5, triedParticles*b.D), draw(.3, b.W)
	x, y := draw(1, triedRows*b.Inputs), make([]float64, triedRows*b.Targets())
	first, err := b.evaluate(engine, 1, phi, psi, x, y)
	if err != nil {
		return false, err
	}
	unusual = floats.HasNaN(first.outputs)
	distributions := b.predictives(first.outputs, phi, psi)
	if !unusual {
		if err := b.tryTargets(y, distributions); err != nil {
			return false, err
		}
	}
	base, err := b.evaluate(engine, 1, phi, psi, x, y)
	if err != nil {
		return false, err
	}
	const (
		byRow            = "depends on the other rows of the batch"
		apart            = "each row must be evaluated apart, since the likelihood is their product"
		byParticle       = "depends on the other particles"
		own              = "each particle is a network of its own"
		lastRow, lastOne = triedRows - 1, triedParticles - 1
	)
	// only is for what must stay as it was at some places, and may change at others.
	only := func(same func(j, row int) bool) func(j, row int) int {
		return func(j, row int) int {
			if same(j, row) {
				return row
			}
			return -1
		}
	}
	for _, other := range []struct {
		block       int
		phi, x, y   []float64
		now         func(j, row int) int // the row where particle j must give what it gave for this one; -1: nowhere
		wrong, cure string
	}{
		{1, phi, slices.Concat(x[:b.Inputs], draw(1, lastRow*b.Inputs)), y,
			only(func(_, row int) bool { return row == 0 }), byRow, apart},
		{1, phi, slices.Concat(draw(1, lastRow*b.Inputs), x[lastRow*b.Inputs:]), y,
			only(func(_, row int) bool { return row == lastRow }), byRow, apart},
		{1, phi, backwards(x, b.Inputs), backwards(y, b.Targets()), func(_, row int) int { return lastRow - row },
			"depends on the place of a row in its batch", "a row must have the same answer wherever it stands"},
		{1, slices.Concat(phi[:b.D], draw(.5, lastOne*b.D)), x, y,
			only(func(j, _ int) bool { return j == 0 }), byParticle, own},
		{1, slices.Concat(draw(.5, lastOne*b.D), phi[lastOne*b.D:]), x, y,
			only(func(j, _ int) bool { return j == lastOne }), byParticle, own},
		{2, phi, x, y, func(_, row int) int { return row }, "depends on how the particles are laid out (see nn.Block)",
			"values per particle are [J/c, width, rows, c] for any c, and parameters [J/c, ..., c]: use Value.Full"},
	} {
		again, err := b.evaluate(engine, other.block, other.phi, psi, other.x, other.y)
		if err != nil {
			return false, err
		}
		for _, part := range []struct {
			name     string
			was, now []float64
		}{
			{fmt.Sprintf("the output of network %T", b.Model.Network), base.outputs, again.outputs},
			{fmt.Sprintf("the LogDensity of likelihood %T", b.Model.Likelihood), base.density, again.density},
		} {
			for i, was := range part.was {
				row := i % triedRows
				there := other.now(i/(len(part.was)/triedParticles), row)
				if there < 0 {
					continue
				}
				if now := part.now[i-row+there]; !near(was, now) {
					return false, fmt.Errorf("bayes: %s %s: it was %.6g and is %.6g; %s", part.name, other.wrong, was, now,
						other.cure)
				}
			}
		}
	}
	if unusual {
		return true, nil
	}
	return false, b.tryDensity(base.density, y, distributions)
}

// backwards are rows of so many numbers in reverse order.
func backwards(x []float64, columns int) []float64 {
	var out []float64
	for row := len(x)/columns - 1; row >= 0; row-- {
		out = append(out, x[row*columns:(row+1)*columns]...)
	}
	return out
}

// near says whether two numbers are equal up to rounding in float32.
func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= triedError*(1+math.Abs(b))
}

// evaluate evaluates network and likelihood for phi, [J, D], psi, [W], x, [B, d], and y, [B, K], with the particles in
// blocks of the given size.
func (b *BoundModel) evaluate(engine *compute.Engine, block int, phi, psi, x, y []float64) (tried, error) {
	targets := []int{triedRows}
	if b.Targets() > 1 {
		targets = append(targets, b.Targets())
	}
	args := []any{
		compute.Floats(compute.Float32, phi, triedParticles, b.D), compute.Floats(compute.Float32, x, triedRows, b.Inputs),
		compute.Floats(compute.Float32, y, targets...),
	}
	if b.W > 0 {
		args = append(args, compute.Floats(compute.Float32, psi, b.W))
	}
	var t tried
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(in []*graph.Node) []*graph.Node {
			var shared *graph.Node
			if b.W > 0 {
				shared = in[3]
			}
			params := b.Unpack(nn.Block(in[0], block), shared, nil)
			outputs := b.Suffix(params, b.Prefix(params, in[1]))
			byParticle := func(x *graph.Node, width int) *graph.Node { // to [J, width * B]
				x = graph.Reshape(x, x.Shape().Dim(0), width*triedRows, -1)
				return nn.Unblock(graph.BroadcastToDims(x, triedParticles/block, width*triedRows, block), triedParticles)
			}
			return []*graph.Node{byParticle(outputs.Full(), b.Width), byParticle(b.LogDensity(params, outputs, in[2]), 1)}
		}, args...)
	}, &t.outputs, &t.density)
	if err != nil {
		return t, fmt.Errorf("bayes: %T and %T cannot be evaluated for %d particles in blocks of %d: %w",
			b.Model.Network, b.Model.Likelihood, triedParticles, block, err)
	}
	return t, nil
}

// predictives gives the likelihood's Predictive for a particle, a row and a target of a trial.
func (b *BoundModel) predictives(outputs, phi, psi []float64) func(j, row, target int) Distribution {
	own := make([][]float64, triedParticles)
	for _, p := range b.Model.Likelihood.Parameters(b.Outputs) {
		for _, slot := range b.Slots {
			for j := range own {
				if slot.Name != p.Name {
					continue
				}
				values := psi
				if slot.Stochastic {
					values = phi[j*b.D : (j+1)*b.D]
				}
				own[j] = append(own[j], values[slot.Offset:slot.Offset+slot.Size()]...)
			}
		}
	}
	return func(j, row, target int) Distribution {
		values := make([]float64, b.Width)
		for w := range values {
			values[w] = outputs[(j*b.Width+w)*triedRows+row]
		}
		return b.Model.Likelihood.Predictive(values, append([]float64{}, own[j]...), target)
	}
}

// tryTargets fills y with quantiles of particle 0's distributions, and is an error if the methods of one of these
// contradict each other.
func (b *BoundModel) tryTargets(y []float64, distributions func(j, row, target int) Distribution) error {
	for row := range triedRows {
		for k := range b.Targets() {
			d := distributions(0, row, k)
			if err := b.tryDistribution(d); err != nil {
				return fmt.Errorf("bayes: the Predictive of likelihood %T contradicts itself: %w", b.Model.Likelihood, err)
			}
			levels := [triedRows]float64{.2, .5, .8}
			if support(b.Model.Likelihood) == Counts {
				levels[triedRows-1] = .9999 // a count above 1, whose factorial's logarithm is not 0
			}
			y[row*b.Targets()+k] = d.Quantile(levels[row])
		}
	}
	return nil
}

// tryDistribution is an error if a distribution's quantiles, probabilities, density, mean and variance contradict each
// other.
func (b *BoundModel) tryDistribution(d Distribution) error {
	const tolerance = 1e-3
	discrete := b.classes() > 0 || support(b.Model.Likelihood) == Counts
	width := d.Quantile(.75) - d.Quantile(.25)
	for _, p := range []float64{.05, .3, .7, .95} {
		q := d.Quantile(p)
		if b.classes() > 0 && (q < 0 || q >= float64(b.classes()) || q != math.Trunc(q)) {
			return fmt.Errorf("Quantile(%v) is %v, which is none of %d classes", p, q, b.classes())
		}
		if b.classes() == 0 {
			if err := CheckTarget(b.Model.Likelihood, q); err != nil {
				return fmt.Errorf("Quantile(%v) %w", p, err)
			}
		}
		step := 1.0 // CDF at q is compared with CDF one step below and above
		if !discrete {
			step = .01 * width
		}
		below, at, above := d.CDF(q-step), d.CDF(q), d.CDF(q+step)
		if !(at >= p-tolerance) || !(below <= p+tolerance) {
			return fmt.Errorf("Quantile(%v) is %.6g, where CDF goes from %.6g to %.6g", p, q, below, at)
		}
		if s := d.Survival(q); !(math.Abs(at+s-1) <= tolerance) {
			return fmt.Errorf("at %.6g CDF is %.6g and Survival %.6g, which do not sum to 1", q, at, s)
		}
		density, slope := math.Exp(d.LogProb(q)), at-below
		if !discrete {
			slope = (above - below) / (2 * step)
		}
		if (discrete || width > 0) && !(math.Abs(density-slope) <= .02*slope+tolerance/10) {
			return fmt.Errorf("at %.6g LogProb is %.6g, but the logarithm of the slope of CDF is %.6g", q, d.LogProb(q),
				math.Log(slope))
		}
	}
	if b.classes() > 0 {
		return nil // the mean and variance of a class index are not used
	}
	mean, variance := quantileMoments(d, 2000)
	_, rough := quantileMoments(d, 500)
	stdDev, light := math.Sqrt(variance), variance <= 1.02*rough // else the tails hold too much of the variance
	// (Where there is no variance, NaN is right.)
	if have := d.Variance(); have < .8*variance || light && !(have <= 1.25*variance) {
		return fmt.Errorf("Variance is %.6g, but the variance that its quantiles give is %.6g", have, variance)
	}
	if have := d.Mean(); light && !(math.Abs(have-mean) <= .05*stdDev) {
		return fmt.Errorf("Mean is %.6g, but the mean that its quantiles give is %.6g", have, mean)
	}
	return nil
}

// quantileMoments are the mean and variance of a distribution's n quantiles at (i + 1/2)/n.
func quantileMoments(d Distribution, n int) (mean, variance float64) {
	quantiles := make([]float64, n)
	for i := range quantiles {
		quantiles[i] = d.Quantile((float64(i) + .5) / float64(n))
	}
	return stat.PopMeanVariance(quantiles, nil)
}

// tryDensity is an error if the log-density, [J, B], differs from Predictive's, summed over targets.
func (b *BoundModel) tryDensity(density, y []float64, distributions func(j, row, target int) Distribution) error {
	targets := b.Targets()
	for j := range triedParticles {
		for row := range triedRows {
			want, at := 0.0, y[row*targets:(row+1)*targets]
			for k, v := range at {
				want += distributions(j, row, k).LogProb(v)
			}
			if have := density[j*triedRows+row]; !near(have, want) {
				return fmt.Errorf("bayes: likelihood %T contradicts itself: for the targets %.6g and the same outputs "+
					"LogDensity is %.6g and the sum of Predictive's LogProb %.6g: the model would predict by another "+
					"distribution than it is trained with; make both the same, with all constants, which the evidence needs",
					b.Model.Likelihood, at, have, want)
			}
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

// tryPrior is an error if draws of the prior do not have its density, or if the density of one coordinate, or of
// several together, does not integrate to 1. It tests the draws by Stein's identities, averaged over a parameter's
// coordinates: with s the gradient of the log-density, E[s_i] = 0 and E[phi_i s_i] = -1.
func (b *BoundModel) tryPrior(engine *compute.Engine) error {
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
	if _, ok := b.Model.Prior.(HierarchicalPrior); ok { // whose coordinates are not independent
		if b.D > mostTogether {
			return nil
		}
		return b.tryTogether(engine, b.D)
	}
	whole := map[float64]bool{} // scales that are checked
	for _, slot := range b.stochasticSlots() {
		scale := b.Model.Prior.Scale(slot.Parameter)
		if whole[scale] {
			continue
		}
		whole[scale] = true
		below, ends, err := b.integrate(engine, scale)
		if err != nil {
			return fmt.Errorf("bayes: the log-density of prior %s cannot be evaluated for one coordinate: %w", name, err)
		}
		if !math.IsNaN(ends) {
			return fmt.Errorf("bayes: the density of prior %s for one coordinate of %s, whose scale is %v, ends at about %.4g: "+
				"%s", name, slot.Name, scale, ends, bounded)
		}
		if total := below[len(below)-1]; !(math.Abs(total-1) <= .02) {
			return fmt.Errorf("bayes: the density of prior %s integrates to %.4g for one coordinate of %s, whose scale is %v, "+
				"and not to 1: subtract the logarithm of the integral from LogDensity, since the evidence needs a normalised "+
				"density", name, total, slot.Name, scale)
		}
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

// bounded says why a prior whose density ends at a bound is refused, and what to do instead: kernels that accept or
// reject would stay within the bound, but the moves of ohsmc.OpenHorizon, the normal distributions of VI and Laplace,
// and the steps of SGLD do not.
const bounded = "a density that ends at a bound, such as a uniform's or a half-normal's, is not taken, since " +
	"not every method would stay within it: take a Normal of the same scale, or a layer of your own that uses a " +
	"bounded function of its parameter, such as tanh or softplus, and give the parameter a prior on all numbers"

// How many draws of a coordinate tryShares takes, and by how much their share below a number may differ from the
// density's integral up to it: by more in fewer than one of 10^9 trials by chance (Massart 1990), and 0.01 for the
// integral's own error.
const triedShares = 100_000

var shareError = math.Sqrt(math.Log(2e9)/(2*triedShares)) + .01

// tryShares is an error if the share of a coordinate's draws below some number is not what the density says. A mixture
// of a narrow and a wide part, for instance, whose draws take the parts with other weights, differs hardly in the means
// of tryPrior, to which the narrow part's gradients add much noise.
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

// onHost calls a graph and copies its results; a panic while the graph is built becomes an error.
func onHost(call func() ([]*tensors.Tensor, error), into ...*[]float64) (err error) {
	failed := compute.Try(func() {
		var results []*tensors.Tensor
		if results, err = call(); err != nil {
			return
		}
		for i, values := range into {
			if *values, err = compute.Float64s(results[i]); err != nil {
				return
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}
