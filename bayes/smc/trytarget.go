package smc

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Particles are weighed by one of a target's methods and moved by another. If these contradict each other nothing
// fails, but particles and log evidence belong to no distribution. So a user's own type of target is tried at draws
// from the prior, before the first step. A target made of a user's functions is tried for whether they keep particles
// apart. Cheap targets, on which a kernel such as mcmc.DelayedAcceptance moves, are tried too.

const triedTarget = 64 // draws

// identity is two expressions of a target's methods, [n], that must be equal, but for a constant.
type identity struct {
	left, right string
	a, b        *Node
}

// identitiesOf returns the identities that a target must satisfy at phi, [n, D].
func identitiesOf(t Factored, phi *Node) []identity {
	g, dtype := phi.Graph(), phi.DType()
	prior, likelihood := t.LogPrior(phi), t.LogLikelihood(phi)
	all := []identity{{"LogDensity", "LogPrior + LogLikelihood", t.LogDensity(phi), Add(prior, likelihood)}}
	for _, power := range []float64{0, .5, 1} {
		all = append(all, identity{
			fmt.Sprintf("Tempered(%v)", power), fmt.Sprintf("LogPrior + %v LogLikelihood", power),
			t.Tempered(Scalar(g, dtype, power)).LogDensity(phi), Add(prior, MulScalar(likelihood, power)),
		})
	}
	return all
}

// trial says which properties of a problem's target are tried.
type trial struct {
	target     Factored   // only its type counts
	apart      bool       // try whether it keeps particles apart
	foreign    bool       // try its methods against each other
	cheap      []string   // try these cheap targets of the kernel's: names, for errors
	identities []identity // of a foreign target, once runTrial has built them
}

// tryTarget is an error if the problem's target contradicts itself or mixes particles. The state has the problem's
// data, and its Start if there is one.
func (m *machine) tryTarget(state *compute.State) error {
	t, err := m.trialOf()
	if err != nil || !t.apart && len(t.cheap) == 0 {
		return err
	}
	record, err := m.runTrial(&t, state)
	if err != nil {
		return err
	}
	if record, err = mcmc.CheckTried(record, t.cheap...); err != nil || !t.apart {
		return err
	}
	for _, function := range []string{"LogPrior", "LogDensity"} {
		if err := tryout.CheckMixing(record, function); err != nil {
			return fmt.Errorf("target %T: %w", t.target, err)
		}
		record = record[2:]
	}
	n := len(record) / max(2*len(t.identities), 1)
	for _, i := range t.identities {
		if err := tryout.CheckIdentity(i.left, i.right, record[:n], record[n:2*n]); err != nil {
			return fmt.Errorf("target %T contradicts itself: %w", t.target, err)
		}
		record = record[2*n:]
	}
	return nil
}

// trialOf builds the target in a graph that is thrown away, to find out what there is to try.
func (m *machine) trialOf() (t trial, err error) {
	problem := m.problem
	refused := false // Initial gives another shape: the first step returns the error
	err = compute.Try(func() {
		g := graph.NewGraph(m.Engine.Backend(), "smc probe")
		defer g.Finalize()
		nodes := m.problem.Parameters(g)
		t.target = m.factored(nodes)
		phi := Parameter(g, "phi", shapes.Make(m.DType, triedTarget, problem.Dim))
		_, t.cheap = m.tryCheap(random.New(g, 0), nodes, phi)
		if problem.Start == nil {
			draws := problem.Initial(random.New(g, 0), m.DType, triedTarget)
			refused = !draws.Shape().Equal(phi.Shape())
		}
	})
	if err != nil || refused {
		return trial{}, err
	}
	t.foreign = tryout.Foreign(t.target)
	t.apart = t.foreign || madeOfFunctions(t.target)
	return t, nil
}

// runTrial evaluates the target at draws from the prior. The values are the record of mcmc.TryCheap, the records of
// tryout.Mixing for the log prior and the log-density, and the two sides of each identity. It also stores the
// identities in t.
func (m *machine) runTrial(t *trial, state *compute.State) ([]float64, error) {
	program, err := compute.NewProgram(m.Engine, "smc trial of the target", state.Names(), nil,
		func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			rng := random.FromKey(inputs[0])
			phi := nodes[startName]
			if phi == nil {
				phi = m.problem.Initial(rng.Named("initial"), m.DType, triedTarget)
			}
			phi = Slice(phi, AxisRange(0, min(triedTarget, phi.Shape().Dim(0))))
			target := m.factored(nodes)
			var record []*Node
			if trials, _ := m.tryCheap(rng, nodes, phi); trials != nil {
				record = append(record, trials)
			}
			if t.apart {
				record = append(record, tryout.Mixing(rng, target.LogPrior, phi, target.LogPrior(phi)),
					tryout.Mixing(rng, target.LogDensity, phi, target.LogDensity(phi)))
			}
			if t.foreign {
				t.identities = identitiesOf(target, phi)
			}
			for _, i := range t.identities {
				record = append(record, i.a, i.b)
			}
			return nil, Concatenate(record, 0)
		})
	if err != nil {
		return nil, err
	}
	defer program.Close()
	record, err := program.Run(state, random.KeyOf(m.Seed).Named("trial").Words())
	if err != nil {
		return nil, fmt.Errorf("trying the target: %w", err)
	}
	return record, nil
}

// tryCheap tries the cheap targets on which the kernel moves particles of the whole posterior.
func (m *machine) tryCheap(rng random.Stream, nodes compute.Nodes, phi *Node) (records *Node, names []string) {
	return mcmc.TryCheap(rng, m.Kernel, m.tempered(nodes, Scalar(phi.Graph(), m.DType, 1)), phi)
}

// madeOfFunctions says whether a target of the library's is one of a user's functions.
func madeOfFunctions(target density.Target) bool {
	switch target.(type) {
	case Posterior, *Posterior:
		return true
	}
	return false
}
