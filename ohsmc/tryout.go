package ohsmc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/tryout"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
)

// A proposal whose LogRatio does not fit what Propose draws runs without an error, but its weights are wrong. So Guided
// first tries a proposal that is not the library's own on a known Gaussian posterior pi, on the Go backend. phi is
// drawn from a Gaussian mu that is wider than pi, and phi' by Propose. Then, for every L that is a density in phi, the
// weights
//
//	w = pi(phi') / mu(phi)  L(phi | phi') / q(phi' | phi)
//
// have mean 1, and phi' weighted by them has the mean and variance of pi. Both are tested. Since mu is wider than pi
// the weights of small steps have a finite variance, also those of a random walk. If the weights are too unequal, as
// for a proposal that takes large steps whatever its step size, their means are too uncertain. Then the only test is
// that the mean of min(w, triedCap) is not above 1.

// The sizes of the trial.
const (
	triedDims  = 2       // of pi, if the proposal takes that
	triedMost  = 1 << 15 // particles
	triedLeast = 1 << 8  // particles in many dimensions
	triedTotal = 1 << 21 // coordinates of all particles
	triedFew   = 64      // particles that are compared one by one
	triedCap   = 10.0
	triedESS   = .1 // the least effective sample size, over the number of particles, at which means are tested
)

// tryProposal returns an error if LogRatio of a proposal that is not this library's does not fit its Propose. It is
// tried in two dimensions. If it cannot be evaluated there, as one that has a setting for each of the model's
// parameters, it is tried in as many as the model has.
func (a Guided) tryProposal(dims int) error {
	switch a.Proposal.(type) {
	case RandomWalk, Langevin, HMC:
		return nil
	}
	t, err := a.newTrial(triedDims)
	if err != nil && dims > triedDims {
		t, err = a.newTrial(dims)
	}
	if err != nil {
		return fmt.Errorf("ohsmc: proposal %T cannot be tried: %w", a.Proposal, err)
	}
	if err := t.particles(); err != nil {
		return fmt.Errorf("ohsmc: proposal %T %w", a.Proposal, err)
	}
	if err := t.weights(); err != nil {
		return fmt.Errorf("ohsmc: proposal %T contradicts itself: %w: LogRatio must be log L(phi | phi') - log q(phi' | "+
			"phi), where q is the density of what Propose draws and L a density in phi, such as q from phi' back to phi, "+
			"each with its constants and the step size", a.Proposal, err)
	}
	return nil
}

// trial is a proposal on the posterior of a line through two points, whose coordinates are independent.
type trial struct {
	guided       Guided
	bound        *bayes.BoundModel
	engine       *compute.Engine
	x, y         []float64 // the two points
	mean, stdDev []float64 // of the posterior, [D]
	wider        float64   // standard deviations of mu divided by those of the posterior
	stepSize     float64
	few          []float64 // draws of mu, [triedFew, D], the first half of which are equal
	base         moved     // few after the proposal, with the random numbers of oneKey
}

// moved holds particles after a proposal.
type moved struct {
	phi, logWeights []float64 // [J, D] and [J]
}

// The keys of the streams that proposals are tried with.
const oneKey, otherKey = 1, 2

// newTrial makes a trial in dims dimensions. It returns an error if the proposal cannot be evaluated there.
func (a Guided) newTrial(dims int) (*trial, error) {
	const at, noise = 2.0, 2.0 // the points are at x = (-at, 0, ..) and (at, 0, ..)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noise}, Stochastic: bayes.All()}
	bound, err := model.Bind(dims-1, 1)
	if err != nil {
		return nil, err
	}
	t := &trial{guided: a, bound: bound, y: []float64{1, 4}, x: make([]float64, 2*(dims-1))}
	if t.engine, err = compute.Open(compute.GoBackend); err != nil { // every build of the program has it
		return nil, err
	}
	t.x[0], t.x[dims-1] = -at, at
	// In high dimensions the steps, and the excess of mu's width, are such that the weights vary as in two.
	t.stepSize = .4 * math.Sqrt(2/float64(dims))
	t.wider = math.Sqrt(1 + .8*math.Sqrt(2/float64(dims)))
	for i := range dims {
		precision, shift := 1.0, 0.0 // of the prior
		switch {
		case i == 0:
			precision, shift = precision+2*at*at/(noise*noise), at*(t.y[1]-t.y[0])/(noise*noise)
		case i == dims-1: // the bias
			precision, shift = precision+2/(noise*noise), (t.y[0]+t.y[1])/(noise*noise)
		}
		t.mean, t.stdDev = append(t.mean, shift/precision), append(t.stdDev, 1/math.Sqrt(precision))
	}
	t.few = t.draws(1, triedFew)
	for j := range triedFew / 2 {
		copy(t.few[j*dims:(j+1)*dims], t.few)
	}
	t.base, err = t.move(t.few, oneKey, 1)
	return t, err
}

// draws returns particles from mu, [J, D].
func (t *trial) draws(seed uint64, particles int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	phi := make([]float64, 0, particles*len(t.mean))
	for range particles {
		for i, m := range t.mean {
			phi = append(phi, m+t.wider*t.stdDev[i]*rng.NormFloat64())
		}
	}
	return phi
}

// excess is log pi(phi) - log mu(phi), [J].
func (t *trial) excess(phi []float64) []float64 {
	d := len(t.mean)
	out := make([]float64, len(phi)/d)
	for j := range out {
		for i, m := range t.mean {
			z := (phi[j*d+i] - m) / t.stdDev[i]
			out[j] += math.Log(t.wider) - z*z/2*(1-1/(t.wider*t.wider))
		}
	}
	return out
}

// move proposes particles, [J, D], with the random numbers of a key, and weighs them, in chunks of J/2 as runs do. The
// step size is multiplied by a factor.
func (t *trial) move(phi []float64, key uint64, factor float64) (m moved, err error) {
	defer func() { // of any kind: a proposal may index beyond the coordinates that the trial has
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	count := len(phi) / len(t.mean)
	work := density.Workload{Particles: count, Rows: 2, Chunk: count / 2}
	plan, err := density.NewPlan(t.bound, compute.Float32, work)
	if err != nil {
		return moved{}, err
	}
	core := particles.Core{
		Bound: t.bound, Target: density.MiniBatch(density.Likelihood{Model: t.bound, Plan: plan}, 2),
	}
	a := &guided{Guided: t.guided, Core: &core, posterior: core.Target}
	results, err := CallOnceN(t.engine.Backend(), func(in []*Node) []*Node {
		phi, excess, batch := in[0], in[1], density.Batch{X: in[2], Y: in[3]}
		current := density.At(a.posterior, nil, batch)
		rng, stepSize := random.New(phi.Graph(), key), ConstAs(phi, factor*t.stepSize)
		_, proposed, alive := a.propagate(rng, phi, excess, current, stepSize)
		if !proposed.Phi.Shape().Equal(phi.Shape()) {
			panic(fmt.Errorf("Propose gives particles of shape %s for those of shape %s: it must keep the shape",
				proposed.Phi.Shape(), phi.Shape()))
		}
		weighed, _ := a.weigh(nil, alive, current.LogDensity(phi), proposed, batch)
		return []*Node{Identity(proposed.Phi), weighed.LogWeights}
	},
		compute.Floats(compute.Float32, phi, count, len(t.mean)),
		compute.Floats(compute.Float32, t.excess(phi), count),
		compute.Floats(compute.Float32, t.x, 2, len(t.mean)-1), compute.Floats(compute.Float32, t.y, 2))
	if err != nil {
		return moved{}, err
	}
	if m.phi, err = compute.Float64s(results[0]); err == nil {
		m.logWeights, err = compute.Float64s(results[1])
	}
	return m, err
}

// particles returns an error if a particle's phi' or weight depends on other particles, or if phi' is not drawn by
// random numbers of the stream, different ones for each particle.
func (t *trial) particles() error {
	d := len(t.mean)
	rows := func(m moved, from, to int) []float64 {
		return slices.Concat(m.phi[from*d:to*d], m.logWeights[from:to])
	}
	// With other particles between the first and the last.
	const last = triedFew - 1
	phi := slices.Concat(t.few[:d], t.draws(2, triedFew-2), t.few[last*d:])
	other, err := t.move(phi, oneKey, 1)
	if err != nil {
		return err
	}
	for _, j := range []int{0, last} {
		was, now := rows(t.base, j, j+1), rows(other, j, j+1)
		if !tryout.AllNear(was, now) {
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
	if tryout.AllNear(t.base.phi, again.phi) { // a map, which must be the same for all
		if first := t.base.phi[:d]; !tryout.AllNear(t.base.phi[:triedFew/2*d], repeat(first, triedFew/2)) {
			return fmt.Errorf("draws by numbers that are the same in each step: two streams give the same phi', which differ " +
				"between particles at the same phi; draw all random numbers from rng")
		}
		return nil
	}
	if first := again.phi[:d]; tryout.AllNear(again.phi[:triedFew/2*d], repeat(first, triedFew/2)) {
		return fmt.Errorf("draws the same numbers for all particles: %d at the same phi all move to %.6g, so that copies "+
			"never part; draw a row for each particle, as rng.Normal(dtype, J, D)", triedFew/2, first)
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
func (t *trial) weights() error {
	d := len(t.mean)
	particles := min(triedMost, max(triedLeast, triedTotal/d))
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
			capped[j] = min(weights[j], triedCap)
		}
		with := fmt.Sprintf("on a known posterior of %d dimensions, with %d particles and step size %.3g", d, particles,
			factor*t.stepSize)
		if none > 0 {
			with += fmt.Sprintf(" (%d have weight 0, as where phi' or LogRatio is NaN)", none)
		}
		if mean, stdErr := tryout.Mean(capped); mean-1 > tryout.Errors*stdErr+tryout.Error {
			return fmt.Errorf("%s, the weights should be 1 in the mean, but even if none counts for more than %v they are "+
				"%.4g +- %.2g", with, triedCap, mean, stdErr)
		}
		sum := floats.Sum(weights)
		if !(sum*sum >= triedESS*float64(particles)*floats.Dot(weights, weights)) && sum > 0 {
			continue
		}
		mean, stdErr := tryout.Mean(weights)
		if !(math.Abs(mean-1) <= tryout.Errors*stdErr+tryout.Error) {
			return fmt.Errorf("%s, the weights should be 1 in the mean, and are %.4g +- %.2g", with, mean, stdErr)
		}
		// The largest of D means deviates further by chance than one does.
		most := tryout.Errors + math.Sqrt(2*math.Log(float64(d)))
		shift, square := make([]float64, particles), make([]float64, particles)
		for i := range d {
			for j, w := range weights {
				if shift[j], square[j] = 0, 0; w > 0 {
					z := (m.phi[j*d+i] - t.mean[i]) / t.stdDev[i]
					shift[j], square[j] = w*z, w*(z*z-1)
				}
			}
			for _, moment := range []struct {
				name  string
				terms []float64
			}{{"mean", shift}, {"variance", square}} {
				off, stdErr := tryout.Mean(moment.terms)
				if !(math.Abs(off) <= most*stdErr+tryout.Error) {
					return fmt.Errorf("%s, the weighted phi' miss the %s of the posterior in coordinate %d by %.4g +- %.2g (in "+
						"units of its standard deviation, or variance)", with, moment.name, i, off, stdErr)
				}
			}
		}
		return nil
	}
	return nil
}
