package tryout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The numbers of particles and rows that a network is tried on.
const (
	triedParticles = 4 // two blocks of two
	triedRows      = 3
)

// tryNetwork returns an error if the network or the likelihood contradicts itself. It takes numbers from a standard
// normal distribution. Where the network's outputs are NaN for these, as a square root's are, smaller and positive
// numbers are tried too, since there is no distribution of NaN to take targets from.
func (n *model) tryNetwork() error {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		scale    float64
		positive bool
	}{{1, false}, {.05, false}, {1, true}, {.05, true}} {
		unusual, err := n.tryNumbers(func(scale float64, size int) []float64 {
			values := make([]float64, size)
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

// tryNumbers evaluates a few particles and rows. It evaluates them again with other values in all rows but one, with
// other values in all particles but one, with the rows backwards, and with another block size. The outputs and
// log-densities of the unchanged row, or particle, must stay the same, and log-densities must agree with Predictive.
// unusual says that this was not tried, since an output is NaN. draw returns n numbers of about the given scale.
func (n *model) tryNumbers(draw func(scale float64, n int) []float64) (unusual bool, err error) {
	phi, psi := draw(.5, triedParticles*n.D), draw(.3, n.W)
	x, y := draw(1, triedRows*n.Inputs), make([]float64, triedRows*n.targets)
	first, err := n.evaluate(1, phi, psi, x, y)
	if err != nil {
		return false, err
	}
	unusual = floats.HasNaN(first.outputs)
	distributions := n.predictives(first.outputs, phi, psi)
	if !unusual {
		if err := n.tryTargets(y, distributions); err != nil {
			return false, err
		}
	}
	base, err := n.evaluate(1, phi, psi, x, y)
	if err != nil {
		return false, err
	}
	const kept = 1 // the row, or the particle, that stays as it is; before and after it there are others
	others := func(values []float64, scale float64, size int) []float64 {
		all := draw(scale, len(values))
		copy(all[kept*size:(kept+1)*size], values[kept*size:])
		return all
	}
	for _, other := range []struct {
		block       int
		phi, x, y   []float64
		stays       func(j, row int) bool // where outputs and densities must stay as they were
		wrong, cure string
	}{
		{1, phi, others(x, 1, n.Inputs), y, func(_, row int) bool { return row == kept },
			"depends on the other rows of the batch", "each row must be evaluated apart, since the likelihood is their product"},
		{1, others(phi, .5, n.D), x, y, func(j, _ int) bool { return j == kept },
			"depends on the other particles", "each particle is a network of its own"},
		{1, phi, backwards(x, n.Inputs), backwards(y, n.targets), nil,
			"depends on the place of a row in its batch", "a row must have the same answer wherever it stands"},
		{2, phi, x, y, func(int, int) bool { return true }, "depends on how the particles are laid out (see nn.Block)",
			"values per particle are [J/c, width, rows, c] for any c, and parameters [J/c, ..., c]: use Value.Full"},
	} {
		again, err := n.evaluate(other.block, other.phi, psi, other.x, other.y)
		if err != nil {
			return false, err
		}
		for _, part := range []struct {
			name     string
			was, now []float64
		}{
			{fmt.Sprintf("the output of network %T", n.Model.Network), base.outputs, again.outputs},
			{fmt.Sprintf("the LogDensity of likelihood %T", n.Model.Likelihood), base.density, again.density},
		} {
			for i, was := range part.was {
				row := i % triedRows
				there := row
				if other.stays == nil {
					there = triedRows - 1 - row // of the rows backwards
				} else if !other.stays(i/(len(part.was)/triedParticles), row) {
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
	if err := n.tryDensity(base.density, y, distributions); err != nil || !Foreign(n.Model.Likelihood) {
		return false, err
	}
	far := n.tails(y, distributions)
	if base, err = n.evaluate(1, phi, psi, x, far); err != nil {
		return false, err
	}
	return false, n.tryDensity(base.density, far, distributions)
}

// tails returns targets in the tails of particle 0's distributions. Where a tail is so heavy that a square would
// overflow float32, it keeps the target of y.
func (n *model) tails(y []float64, distributions func(j, row, target int) stats.Distribution) []float64 {
	const most = 1e9
	far := slices.Clone(y)
	for row := range triedRows {
		for k := range n.targets {
			levels := [triedRows]float64{.001, .999, .01}
			if q := distributions(0, row, k).Quantile(levels[row]); math.Abs(q) <= most {
				far[row*n.targets+k] = q
			}
		}
	}
	return far
}

// backwards reverses the order of rows of `columns` numbers each.
func backwards(x []float64, columns int) []float64 {
	var out []float64
	for row := len(x)/columns - 1; row >= 0; row-- {
		out = append(out, x[row*columns:(row+1)*columns]...)
	}
	return out
}

// tryTargets fills y with quantiles of particle 0's distributions, and is an error if the methods of one of these
// contradict each other.
func (n *model) tryTargets(y []float64, distributions func(j, row, target int) stats.Distribution) error {
	for row := range triedRows {
		for k := range n.targets {
			d := distributions(0, row, k)
			if err := n.tryDistribution(d); err != nil {
				return fmt.Errorf("bayes: the Predictive of likelihood %T contradicts itself: %w", n.Model.Likelihood, err)
			}
			levels := [triedRows]float64{.2, .5, .8}
			if n.counts {
				levels[triedRows-1] = .9999 // a count above 1, whose factorial's logarithm is not 0
			}
			y[row*n.targets+k] = d.Quantile(levels[row])
		}
	}
	return nil
}

// tryDistribution is an error if a distribution's quantiles, probabilities, density, mean and variance contradict each
// other.
func (n *model) tryDistribution(d stats.Distribution) error {
	const tolerance = 1e-3
	if classes := n.classes; classes > 0 {
		p := make([]float64, classes)
		stats.Probabilities(d, p)
		if sum := floats.Sum(p); !(math.Abs(sum-1) <= tolerance) {
			return fmt.Errorf("by LogProb the probabilities of %d classes sum to %.6g, and not to 1", classes, sum)
		}
	}
	discrete := n.classes > 0 || n.counts
	width := d.Quantile(.75) - d.Quantile(.25)
	for _, p := range []float64{.05, .3, .7, .95} {
		q := d.Quantile(p)
		if n.classes > 0 && (q < 0 || q >= float64(n.classes) || q != math.Trunc(q)) {
			return fmt.Errorf("Quantile(%v) is %v, which is none of %d classes", p, q, n.classes)
		}
		if n.classes == 0 {
			if err := bayes.CheckTarget(n.Model.Likelihood, q); err != nil {
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
	if n.classes > 0 {
		return nil // the mean and variance of a class index are not used
	}
	mean, variance := quantileMoments(d, 2000)
	_, rough := quantileMoments(d, 500)
	stdDev, light := math.Sqrt(variance), variance <= 1.02*rough // else the tails hold too much of the variance
	// (Where there is no variance, NaN is right.)
	if have := d.Variance(); have < .8*variance || light && !(have <= 1.25*variance) {
		return fmt.Errorf("its Variance is %.6g, but the variance that its quantiles give is %.6g", have, variance)
	}
	if have := d.Mean(); light && !(math.Abs(have-mean) <= .05*stdDev) {
		return fmt.Errorf("its Mean is %.6g, but the mean that its quantiles give is %.6g", have, mean)
	}
	return nil
}

// quantileMoments returns the mean and variance of a distribution's n quantiles at (i + 1/2)/n.
func quantileMoments(d stats.Distribution, n int) (mean, variance float64) {
	quantiles := make([]float64, n)
	for i := range quantiles {
		quantiles[i] = d.Quantile((float64(i) + .5) / float64(n))
	}
	return stat.PopMeanVariance(quantiles, nil)
}

// tryDensity is an error if the log-density, [J, B], differs from Predictive's, summed over targets.
func (n *model) tryDensity(density, y []float64, distributions func(j, row, target int) stats.Distribution) error {
	targets := n.targets
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
					n.Model.Likelihood, at, have, want)
			}
		}
	}
	return nil
}
