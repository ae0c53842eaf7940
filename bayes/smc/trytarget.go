package smc

import (
	"fmt"
	"math"
	"sync/atomic"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/median"
	"gobnn/bayes/internal/tryout"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Particles are weighed by one of a target's methods and moved by another. If these contradict each other, nothing
// fails, but particles and log evidence are those of no distribution. So a target of a type that is not the library's
// is tried at draws from the prior, before the first step, and one made of a user's functions is tried for whether
// these keep particles apart. So are the cheap targets on which a kernel such as mcmc.DelayedAcceptance moves.

const (
	triedTarget    = 64   // draws
	triedDifferent = 1e-4 // the allowed error, over the size of the log-densities, and as much in itself
)

// identity is two expressions of a target's methods, [n], that must be equal, but for a constant.
type identity struct {
	left, right string
	a, b        *Node
}

// identitiesOf are those of a target, at phi, [n, D].
func identitiesOf(target mcmc.Target, tempering Tempering, phi *Node, block int) []identity {
	g, dtype := phi.Graph(), phi.DType()
	if tempering == LikelihoodTempering {
		t := target.(Factored)
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
	t := target.(Sequential)
	first := func(n int) *Node { return t.FirstRows(Scalar(g, dtype, float64(n))).LogDensity(phi) }
	rows := t.Rows()
	block = min(block, rows)
	sum := t.LogPrior(phi)
	all := []identity{
		{"LogDensity", fmt.Sprintf("FirstRows(%d)", rows), t.LogDensity(phi), first(rows)},
		{"FirstRows(0)", "LogPrior", first(0), sum},
	}
	for from := 0; from < min(3*block, rows); from += block {
		n := min(from+block, rows)
		sum = Add(sum, t.LogLikelihoodOf(phi, Scalar(g, dtypes.Int32, from), block))
		all = append(all, identity{fmt.Sprintf("FirstRows(%d)", n),
			fmt.Sprintf("LogPrior + LogLikelihoodOf for the first %d rows", n), first(n), sum})
	}
	return all
}

// tryOnce is tryTarget unless it is done; without an error it is done.
func (m *machine) tryOnce(done *atomic.Bool, state *compute.State) error {
	if done.Load() {
		return nil
	}
	if err := m.tryTarget(state); err != nil {
		return err
	}
	done.Store(true)
	return nil
}

// tryTarget is an error if the problem's target contradicts itself or mixes particles. The state has the problem's
// data, and its Start if there is one.
func (m *machine) tryTarget(state *compute.State) error {
	problem := m.sampler.Problem
	var target mcmc.Target
	var cheap []string // names of cheap targets, for errors
	refused := false   // what Initial draws has another shape, of which the first step tells
	err := compute.Try(func() {
		g := graph.NewGraph(m.engine.Backend(), "smc probe")
		defer g.Finalize()
		nodes := m.parameters(g)
		target = m.target(nodes)
		_, cheap = m.tryCheap(random.New(g, 0), nodes, Parameter(g, "phi", shapes.Make(m.DType, triedTarget, problem.Dim)))
		if problem.Start == nil {
			draws := problem.Initial(random.New(g, 0), m.DType, triedTarget)
			refused = !draws.Shape().Equal(shapes.Make(m.DType, triedTarget, problem.Dim))
		}
	})
	if err != nil || refused {
		return err
	}
	foreign := tryout.Foreign(target)
	apart := foreign || madeOfFunctions(target)
	if !apart && len(cheap) == 0 {
		return nil
	}
	var identities []identity
	program, err := compute.NewProgram(m.engine, "smc trial of the target", state.Names(), nil,
		func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			rng := random.FromKey(inputs[0])
			phi := nodes[startName]
			if phi == nil {
				phi = problem.Initial(rng.Named("initial"), m.DType, triedTarget)
			}
			phi = Slice(phi, AxisRange(0, min(triedTarget, phi.Shape().Dim(0))))
			target := m.target(nodes)
			var record []*Node
			if trials, _ := m.tryCheap(rng, nodes, phi); trials != nil {
				record = append(record, trials)
			}
			if apart {
				prior := target.(interface{ LogPrior(phi *Node) *Node }).LogPrior
				record = append(record, tryout.Mixing(rng, prior, phi, prior(phi)),
					tryout.Mixing(rng, target.LogDensity, phi, target.LogDensity(phi)))
			}
			if foreign {
				identities = identitiesOf(target, m.Tempering, phi, m.Block)
			}
			for _, i := range identities {
				record = append(record, i.a, i.b)
			}
			return nil, Concatenate(record, 0)
		})
	if err != nil {
		return err
	}
	defer program.Close()
	record, err := program.Run(state, random.KeyOf(m.Seed).Named("trial").Words())
	if err != nil {
		return fmt.Errorf("trying the target: %w", err)
	}
	if record, err = mcmc.CheckTried(record, cheap...); err != nil || !apart {
		return err
	}
	for _, function := range []string{"LogPrior", "LogDensity"} {
		if err := tryout.CheckMixing(record, function); err != nil {
			return fmt.Errorf("target %T: %w", target, err)
		}
		record = record[2:]
	}
	n := len(record) / max(2*len(identities), 1)
	for _, i := range identities {
		if err := i.check(record[:n], record[n:2*n]); err != nil {
			return fmt.Errorf("target %T contradicts itself: %w", target, err)
		}
		record = record[2*n:]
	}
	return nil
}

// tryCheap tries the cheap targets on which the kernel moves particles of the whole posterior.
func (m *machine) tryCheap(rng random.Stream, nodes compute.Nodes, phi *Node) (records *Node, names []string) {
	end := 1.
	if m.Tempering == DataTempering {
		end = float64(m.sequential(nodes).Rows())
	}
	return mcmc.TryCheap(rng, m.sampler.Kernel, m.tempered(nodes, Scalar(phi.Graph(), m.DType, end)), phi)
}

// madeOfFunctions says whether a target of the library's is one of a user's functions.
func madeOfFunctions(target mcmc.Target) bool {
	switch target.(type) {
	case Posterior, RowPosterior, *Posterior, *RowPosterior:
		return true
	}
	return false
}

// check is an error if the two sides, [n] each, differ by more than a constant in most draws.
func (i identity) check(a, b []float64) error {
	var differences, sizes []float64
	for n := range a {
		if difference := a[n] - b[n]; !math.IsNaN(difference) && !math.IsInf(difference, 0) {
			differences, sizes = append(differences, difference), append(sizes, math.Abs(a[n])+math.Abs(b[n]))
		}
	}
	if len(differences) < 2 || len(differences) < len(a)/4 {
		return nil // hardly any draw has a density: the first step says so
	}
	middle := median.Of(differences)
	for n, d := range differences {
		differences[n] = math.Abs(d - middle)
	}
	off, allowed := median.Of(differences), triedDifferent*(1+median.Of(sizes))
	if off <= allowed {
		return nil
	}
	return fmt.Errorf("%s and %s differ by more than a constant: between draws of the prior their difference changes by "+
		"%.3g, where rounding allows %.2g; particles are moved by the one and weighed by the other, so they must be the "+
		"same (smc.Posterior and smc.RowPosterior make both of the same functions)", i.left, i.right, off, allowed)
}
