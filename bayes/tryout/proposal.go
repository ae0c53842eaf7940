package tryout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// A proposal of weighted particles whose log-ratio does not fit what it draws runs without an error, but its weights
// are wrong. So it is first tried on a known Gaussian posterior pi. phi is drawn from a Gaussian mu that is wider than
// pi, and phi' by the proposal. Then, for every L that is a density in phi, the weights
//
//	w = pi(phi') / mu(phi)  L(phi | phi') / q(phi' | phi)
//
// have mean 1, and phi' weighted by them has the mean and variance of pi. Both are tested. Since mu is wider than pi
// the weights of small steps have a finite variance, also those of a random walk. If the weights are too unequal, as
// for a proposal that takes large steps whatever its step size, their means are too uncertain. Then the only test is
// that the mean of min(w, weightCap) is not above 1.

// The sizes of the trial of a proposal.
const (
	fewDims        = 2       // of pi, if the proposal takes that
	mostProposed   = 1 << 15 // particles
	leastProposed  = 1 << 8  // particles in many dimensions
	numbersMoved   = 1 << 21 // coordinates of all particles
	comparedByOne  = 64      // particles that are compared one by one
	weightCap      = 10.0
	leastProposals = .1 // the least effective sample size, over the number of particles, at which means are tested
)

// Proposal is a proposal on a Gaussian posterior pi whose coordinates are independent.
type Proposal struct {
	Mean, StdDev []float64 // of pi, [D]
	// Move proposes particles, [J, D], with the random numbers of a key, and weighs them by pi, where the logarithms of
	// their weights, [J], were those of excess before. It gives phi', [J, D], and log-weights, [J].
	Move func(phi, excess []float64, key uint64, stepSize float64) (moved, logWeights []float64, err error)
}

// TryProposal returns an error if the log-ratio of a proposal does not fit what it proposes. on gives it in some
// dimensions: it is tried in two. If it cannot be evaluated there, as one that has a setting for each of a model's
// parameters, it is tried in as many as the model has. name begins the error.
func TryProposal(name string, dims int, on func(dims int) (Proposal, error)) error {
	t, err := newProposal(fewDims, on)
	if err != nil && dims > fewDims {
		t, err = newProposal(dims, on)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be tried: %w", name, err)
	}
	if err := t.particles(); err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	if err := t.weights(); err != nil {
		return fmt.Errorf("%s contradicts itself: %w: LogRatio must be log L(phi | phi') - log q(phi' | phi), where q is "+
			"the density of what Propose draws and L a density in phi, such as q from phi' back to phi, each with its "+
			"constants and the step size", name, err)
	}
	return nil
}

// proposal is a proposal on trial.
type proposal struct {
	Proposal
	d        int
	wider    float64 // standard deviations of mu divided by those of pi
	stepSize float64
	few      []float64 // draws of mu, [comparedByOne, D], the first half of which are equal
	base     moved     // few after the proposal, with the random numbers of oneKey
}

// moved holds particles after a proposal.
type moved struct {
	phi, logWeights []float64 // [J, D] and [J]
}

// The keys of the streams that proposals are tried with.
const oneKey, otherKey = 1, 2

// newProposal returns an error if the proposal cannot be evaluated in so many dimensions. In many the steps, and the
// excess of mu's width, are such that the weights vary as in two.
func newProposal(dims int, on func(dims int) (Proposal, error)) (*proposal, error) {
	of, err := on(dims)
	if err != nil {
		return nil, err
	}
	less := math.Sqrt(2 / float64(dims))
	t := &proposal{Proposal: of, d: dims, stepSize: .4 * less, wider: math.Sqrt(1 + .8*less)}
	t.few = t.draws(1, comparedByOne)
	for j := range comparedByOne / 2 {
		copy(t.few[j*dims:(j+1)*dims], t.few)
	}
	t.base, err = t.move(t.few, oneKey, 1)
	return t, err
}

// draws returns particles from mu, [J, D].
func (t *proposal) draws(seed uint64, particles int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	phi := make([]float64, 0, particles*t.d)
	for range particles {
		for i, m := range t.Mean {
			phi = append(phi, m+t.wider*t.StdDev[i]*rng.NormFloat64())
		}
	}
	return phi
}

// move proposes particles, [J, D]. The step size is multiplied by a factor.
func (t *proposal) move(phi []float64, key uint64, factor float64) (m moved, err error) {
	defer func() { // of any kind: a proposal may index beyond the coordinates that the trial has
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	excess := make([]float64, len(phi)/t.d) // log pi(phi) - log mu(phi)
	for j := range excess {
		for i, mean := range t.Mean {
			z := (phi[j*t.d+i] - mean) / t.StdDev[i]
			excess[j] += math.Log(t.wider) - z*z/2*(1-1/(t.wider*t.wider))
		}
	}
	m.phi, m.logWeights, err = t.Move(phi, excess, key, factor*t.stepSize)
	return m, err
}

// particles returns an error if a particle's phi' or weight depends on other particles, or if phi' is not drawn by
// random numbers of the stream, different ones for each particle.
func (t *proposal) particles() error {
	d := t.d
	rows := func(m moved, from, to int) []float64 {
		return slices.Concat(m.phi[from*d:to*d], m.logWeights[from:to])
	}
	// With other particles between the first and the last.
	const last = comparedByOne - 1
	phi := slices.Concat(t.few[:d], t.draws(2, comparedByOne-2), t.few[last*d:])
	other, err := t.move(phi, oneKey, 1)
	if err != nil {
		return err
	}
	for _, j := range []int{0, last} {
		was, now := rows(t.base, j, j+1), rows(other, j, j+1)
		if !allNear(was, now) {
			return fmt.Errorf("moves or weighs a particle by where the other particles are: phi' and its log-weight were %.6g "+
				"and are %.6g, from the same phi with the same random numbers: phi' must be drawn from q(. | phi), each "+
				"particle for itself", was, now)
		}
	}
	// With other random numbers.
	again, err := t.move(t.few, otherKey, 1)
	if err != nil {
		return err
	}
	if allNear(t.base.phi, again.phi) { // a map, which must be the same for all
		if first := t.base.phi[:d]; !allNear(t.base.phi[:comparedByOne/2*d], repeat(first, comparedByOne/2)) {
			return fmt.Errorf("draws by numbers that are the same in each step: two streams give the same phi', which differ " +
				"between particles at the same phi; draw all random numbers from rng")
		}
		return nil
	}
	if first := again.phi[:d]; allNear(again.phi[:comparedByOne/2*d], repeat(first, comparedByOne/2)) {
		return fmt.Errorf("draws the same numbers for all particles: %d at the same phi all move to %.6g, so that copies "+
			"never part; draw a row for each particle, as rng.Normal(dtype, J, D)", comparedByOne/2, first)
	}
	return nil
}

// repeat returns a row repeated the given number of times.
func repeat(row []float64, times int) (out []float64) {
	for range times {
		out = append(out, row...)
	}
	return out
}

// weights returns an error if the weights do not have mean 1, or if phi' weighted by them does not have the mean and
// variance of pi. If the weights are too unequal for these tests, a quarter of the step size is tried.
func (t *proposal) weights() error {
	d := t.d
	particles := min(mostProposed, max(leastProposed, numbersMoved/d))
	phi := t.draws(3, particles)
	for _, factor := range []float64{1, .25} {
		m, err := t.move(phi, oneKey, factor)
		if err != nil {
			return err
		}
		weights, capped, none := make([]float64, particles), make([]float64, particles), 0
		for j, l := range m.logWeights {
			if weights[j] = math.Exp(l); weights[j] == 0 {
				none++
			}
			capped[j] = min(weights[j], weightCap)
		}
		with := fmt.Sprintf("on a known posterior of %d dimensions, with %d particles and step size %.3g", d, particles,
			factor*t.stepSize)
		if none > 0 {
			with += fmt.Sprintf(" (%d have weight 0, as where phi' or LogRatio is NaN)", none)
		}
		if mean, stdErr := meanOf(capped); mean-1 > chanceErrors*stdErr+roundingError {
			return fmt.Errorf("%s, the weights should be 1 in the mean, but even if none counts for more than %v they are "+
				"%.4g +- %.2g", with, weightCap, mean, stdErr)
		}
		sum := floats.Sum(weights)
		if !(sum*sum >= leastProposals*float64(particles)*floats.Dot(weights, weights)) && sum > 0 {
			continue
		}
		mean, stdErr := meanOf(weights)
		if !(math.Abs(mean-1) <= chanceErrors*stdErr+roundingError) {
			return fmt.Errorf("%s, the weights should be 1 in the mean, and are %.4g +- %.2g", with, mean, stdErr)
		}
		// The largest of D means deviates further by chance than one does.
		most := chanceErrors + math.Sqrt(2*math.Log(float64(d)))
		shift, square := make([]float64, particles), make([]float64, particles)
		for i := range d {
			for j, w := range weights {
				if shift[j], square[j] = 0, 0; w > 0 {
					z := (m.phi[j*d+i] - t.Mean[i]) / t.StdDev[i]
					shift[j], square[j] = w*z, w*(z*z-1)
				}
			}
			for _, moment := range []struct {
				name  string
				terms []float64
			}{{"mean", shift}, {"variance", square}} {
				off, stdErr := meanOf(moment.terms)
				if !(math.Abs(off) <= most*stdErr+roundingError) {
					return fmt.Errorf("%s, the weighted phi' miss the %s of the posterior in coordinate %d by %.4g +- %.2g (in "+
						"units of its standard deviation, or variance)", with, moment.name, i, off, stdErr)
				}
			}
		}
		return nil
	}
	return nil
}
