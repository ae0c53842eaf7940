package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Particles are weighed by one of a target's methods and moved by another. If these contradict each other nothing
// fails, but particles and log evidence belong to no distribution. So a user's own type of target is tried at draws
// from the prior, before the first step. A target made of a user's functions is tried for whether they keep particles
// apart. Surrogates, on which a kernel such as mcmc.DelayedAcceptance moves, are tried too.

const triedTarget = 64 // draws

// trialOf tries the problem's target, and cheap ones, at phi, [n, D].
func (m *machine) trialOf(rng random.Stream, nodes compute.Nodes, phi *Node) (t tryout.Trial) {
	g, target := phi.Graph(), m.factored(nodes)
	t.Surrogates(rng, m.tempered(nodes, Scalar(g, m.DType, 1)), phi)
	foreign := tryout.Foreign(target)
	if !foreign && !madeOfFunctions(target) {
		return t
	}
	name := fmt.Sprintf("target %T", target)
	prior, whole := target.LogPrior(phi), target.LogDensity(phi)
	t.Apart(rng, name, "LogPrior", target.LogPrior, phi, prior)
	t.Apart(rng, name, "LogDensity", target.LogDensity, phi, whole)
	if !foreign {
		return t
	}
	likelihood := target.LogLikelihood(phi)
	t.Identity(name, "LogDensity", "LogPrior + LogLikelihood", whole, Add(prior, likelihood))
	for _, power := range []float64{0, .5, 1} {
		t.Identity(name, fmt.Sprintf("Tempered(%v)", power), fmt.Sprintf("LogPrior + %v LogLikelihood", power),
			target.Tempered(Scalar(g, m.DType, power)).LogDensity(phi), Add(prior, MulScalar(likelihood, power)))
	}
	return t
}

// tryTarget is an error if the problem's target contradicts itself or mixes particles. The state has the problem's
// data, and its Start if there is one.
func (m *machine) tryTarget(state *compute.State) error {
	none := false
	err := compute.Try(func() { // in a graph that is thrown away: is there anything to try?
		g := graph.NewGraph(m.Engine.Backend(), "smc probe")
		defer g.Finalize()
		phi := Parameter(g, "phi", shapes.Make(m.DType, triedTarget, m.problem.Dim))
		trial := m.trialOf(random.New(g, 0), m.problem.Parameters(g), phi)
		none = trial.Numbers() == nil
		if m.problem.Start == nil { // of another shape: the first step returns the error
			none = none || !m.problem.Initial(random.New(g, 0), m.DType, triedTarget).Shape().Equal(phi.Shape())
		}
	})
	if err != nil || none {
		return err
	}
	var trial tryout.Trial
	program, err := compute.NewProgram(m.Engine, "smc trial of the target", state.Names(), nil,
		func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			rng := random.FromKey(inputs[0])
			phi := nodes[startName]
			if phi == nil {
				phi = m.problem.Initial(rng.Named("initial"), m.DType, triedTarget)
			}
			trial = m.trialOf(rng, nodes, Slice(phi, AxisRange(0, min(triedTarget, phi.Shape().Dim(0)))))
			return nil, trial.Numbers()
		})
	if err != nil {
		return err
	}
	defer program.Close()
	numbers, err := program.Run(state, random.KeyOf(m.Seed).Named("trial").Words())
	if err != nil {
		return fmt.Errorf("trying the target: %w", err)
	}
	return trial.Check(numbers)
}

// madeOfFunctions says whether a target of the library's is one of a user's functions.
func madeOfFunctions(target density.Target) bool {
	switch target.(type) {
	case Posterior, *Posterior:
		return true
	}
	return false
}
