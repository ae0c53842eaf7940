package bayes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/internal/tryout"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The methods of a user's own network, likelihood or prior must agree with each other: a likelihood's LogDensity, which
// trains, with its Predictive, which scores; a prior's Sample with its LogDensity; and a layer must treat every
// particle and every row independently. If they do not, nothing fails but all results are wrong. So Bind tries parts
// that are not the library's own on a few small numbers, on the Go backend, which takes some milliseconds. A prior is
// tried in tryout_prior.go.

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
	if err := b.tryDensity(base.density, y, distributions); err != nil || !tryout.Foreign(b.Model.Likelihood) {
		return false, err
	}
	far := b.tails(y, distributions)
	if base, err = b.evaluate(engine, 1, phi, psi, x, far); err != nil {
		return false, err
	}
	return false, b.tryDensity(base.density, far, distributions)
}

// tails are targets in the tails of particle 0's distributions; those of y where these are so heavy that a square would
// overflow float32.
func (b *BoundModel) tails(y []float64, distributions func(j, row, target int) Distribution) []float64 {
	const most = 1e9
	far := slices.Clone(y)
	for row := range triedRows {
		for k := range b.Targets() {
			levels := [triedRows]float64{.001, .999, .01}
			if q := distributions(0, row, k).Quantile(levels[row]); math.Abs(q) <= most {
				far[row*b.Targets()+k] = q
			}
		}
	}
	return far
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
	if classes := b.classes(); classes > 0 {
		p := make([]float64, classes)
		stats.Probabilities(d, p)
		if sum := floats.Sum(p); !(math.Abs(sum-1) <= tolerance) {
			return fmt.Errorf("by LogProb the probabilities of %d classes sum to %.6g, and not to 1", classes, sum)
		}
	}
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
