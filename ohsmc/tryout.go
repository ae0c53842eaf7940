package ohsmc

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/tryout"

	. "github.com/gomlx/gomlx/core/graph"
)

// tryProposal returns an error if LogRatio of a proposal that is not this library's does not fit its Propose.
func (a Guided) tryProposal(dims int) error {
	switch a.Proposal.(type) {
	case RandomWalk, Langevin, HMC:
		return nil
	}
	engine, err := compute.Open(compute.GoBackend) // every build of the program has it
	if err != nil {
		return err
	}
	name := fmt.Sprintf("ohsmc: proposal %T", a.Proposal)
	return tryout.TryProposal(name, dims, func(dims int) (tryout.Proposal, error) { return a.onLine(engine, dims) })
}

// onLine is the proposal on the posterior of a line through two points, whose coordinates are independent, in chunks of
// half of the particles, as runs have them.
func (a Guided) onLine(engine *compute.Engine, dims int) (p tryout.Proposal, err error) {
	const at, noise = 2.0, 2.0 // the points are at x = (-at, 0, ..) and (at, 0, ..)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noise}, Stochastic: bayes.All()}
	bound, err := model.Bind(dims-1, 1)
	if err != nil {
		return p, err
	}
	x, y := make([]float64, 2*(dims-1)), []float64{1, 4}
	x[0], x[dims-1] = -at, at
	for i := range dims {
		precision, shift := 1.0, 0.0 // of the prior
		switch {
		case i == 0:
			precision, shift = precision+2*at*at/(noise*noise), at*(y[1]-y[0])/(noise*noise)
		case i == dims-1: // the bias
			precision, shift = precision+2/(noise*noise), (y[0]+y[1])/(noise*noise)
		}
		p.Mean, p.StdDev = append(p.Mean, shift/precision), append(p.StdDev, 1/math.Sqrt(precision))
	}
	p.Move = func(phi, excess []float64, key uint64, stepSize float64) (moved, logWeights []float64, err error) {
		count := len(excess)
		plan := density.NewPlan(bound, compute.Float32, density.Workload{Particles: count, Rows: 2, Chunk: count / 2})
		core := particles.Core{
			Bound: bound, Target: density.MiniBatch(density.Likelihood{Model: bound, Plan: plan}, 2),
		}
		a := &guided{Guided: a, Core: &core, posterior: core.Target}
		results, err := CallOnceN(engine.Backend(), func(in []*Node) []*Node {
			phi, excess, batch := in[0], in[1], density.Batch{X: in[2], Y: in[3]}
			current := density.At(a.posterior, nil, batch)
			rng := random.New(phi.Graph(), key)
			_, proposed, alive := a.propagate(rng, phi, excess, current, ConstAs(phi, stepSize))
			if !proposed.Phi.Shape().Equal(phi.Shape()) {
				panic(fmt.Errorf("Propose gives particles of shape %s for those of shape %s: it must keep the shape",
					proposed.Phi.Shape(), phi.Shape()))
			}
			weighed, _ := a.weigh(nil, alive, current.LogDensity(phi), proposed, batch)
			return []*Node{Identity(proposed.Phi), weighed.LogWeights}
		},
			compute.Floats(compute.Float32, phi, count, dims), compute.Floats(compute.Float32, excess, count),
			compute.Floats(compute.Float32, x, 2, dims-1), compute.Floats(compute.Float32, y, 2))
		if err != nil {
			return nil, nil, err
		}
		if moved, err = compute.Float64s(results[0]); err == nil {
			logWeights, err = compute.Float64s(results[1])
		}
		return moved, logWeights, err
	}
	return p, nil
}
