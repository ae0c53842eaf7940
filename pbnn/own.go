package pbnn

import (
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Checks of a Sampler and of a Target, which may be a user's own.

// prepared is the sampler with its settings filled in. It returns an error if the sampler or its target does not keep
// to what its interface demands.
func prepared(s Sampler, rows int) (Sampler, error) {
	if s == nil {
		return nil, errors.New("pbnn: there is no sampler: take Metropolis, Barker, Confidence, Unadjusted or AllRows")
	}
	ready, err := s.Prepare(rows)
	if err != nil {
		return nil, err
	}
	if ready == nil {
		return nil, fmt.Errorf("pbnn: %T.Prepare gives no sampler", s)
	}
	of := ready.Sampled()
	if of == nil {
		return nil, fmt.Errorf("pbnn: %T.Sampled gives no target", s)
	}
	if err := of.Check(rows); err != nil {
		return nil, err
	}
	points, perMove := of.EffectivePoints(rows), ready.RowsPerMove(rows)
	return ready, limits.Check(fmt.Sprintf("pbnn: %T", s),
		limits.Field("RowsPerMove", perMove, perMove >= 1, "at least 1"),
		limits.Field("Sampled.EffectivePoints", points, points > 0 && !math.IsInf(points, 1), "positive and finite"),
	)
}

// approximation is the Approximation of a bayes.Provenance: what the draws are from if it is not the target. For a
// user's own sampler it is empty, since nothing is known.
func approximation(s Sampler) string {
	switch s := s.(type) {
	case Metropolis:
		if s.Rule == Naive {
			return "wider than the target, by the noise of the mini-batches: the rule is " + string(Naive)
		}
	case Confidence:
		return fmt.Sprintf("about the target: each step is decided by a part of the rows, wrongly with a probability of up "+
			"to %g", s.Error)
	case Unadjusted:
		return fmt.Sprintf("where chains of %T go, which accept every step", s.Kernel)
	case AllRows:
		return mcmc.Approximation(s.Kernel)
	}
	return ""
}

// problemOf is a prepared sampler's problem and kernel; an error if they would not sample the model's parameters given
// the rows.
func (d *Data) problemOf(s Sampler) (mcmc.Problem, mcmc.Kernel, error) {
	problem, kernel, err := s.Problem(d)
	if err != nil {
		return problem, nil, err
	}
	switch s.(type) {
	case Metropolis, Barker, Confidence, Unadjusted, AllRows: // tests hold them to it
		return problem, kernel, nil
	}
	switch {
	case kernel == nil:
		err = fmt.Errorf("pbnn: %T.Problem gives no kernel", s)
	case problem.Target == nil || problem.Dim != d.Bound.D:
		err = fmt.Errorf("pbnn: %T.Problem gives a problem of %d dimensions, or without a target, for a model of %d "+
			"stochastic parameters: take one that Data.MiniBatches or Data.AllRows makes", s, problem.Dim, d.Bound.D)
	default:
		err = d.mustSeeRows(s, problem, kernel)
	}
	return problem, kernel, err
}

// mustSeeRows returns an error if the state after a move depends on no data except the shared parameters. It builds a
// move in a graph of its own and searches the inputs that the state is computed from.
func (d *Data) mustSeeRows(s Sampler, problem mcmc.Problem, kernel mcmc.Kernel) error {
	if err := kernel.Check(d.Bound.D); err != nil {
		return fmt.Errorf("pbnn: %T: %w", s, err)
	}
	sees := false
	err := compute.Try(func() {
		g := graph.NewGraph(d.Sampling.Engine.Backend(), "pbnn probe")
		defer g.Finalize()
		rows := map[*graph.Node]bool{}
		target := problem.Target(d.parameters(g, problem, rows))
		phi := graph.Parameter(g, "phi", shapes.Make(d.Sampling.DType, d.Sampling.Chains, d.Bound.D))
		tuning := mcmc.Tuning{StepSize: graph.Parameter(g, "step size", shapes.Make(d.Sampling.DType))}
		state := mcmc.Start(kernel, random.New(g, 0), phi, target)
		next, _ := kernel.Move(random.New(g, 1), state, target, tuning)
		from := []*graph.Node{next.Phi}
		for _, own := range next.Auxiliary {
			from = append(from, own)
		}
		sees = reach(from, rows)
	})
	if err != nil {
		return fmt.Errorf("pbnn: building a move of %T: %w", s, err)
	}
	if !sees {
		return fmt.Errorf("pbnn: %T never sees the data: no move of its kernel, %T, depends on them", s, kernel)
	}
	return nil
}

// parameters are the problem's data and inputs as parameters of a graph; rows gets all but the shared parameters.
func (d *Data) parameters(
	g *graph.Graph, problem mcmc.Problem, rows map[*graph.Node]bool,
) (data compute.Nodes, inputs []*graph.Node) {
	data = compute.Nodes{}
	for name, t := range problem.Data {
		data[name] = graph.Parameter(g, "data/"+name, t.Shape())
		if t != d.psi {
			rows[data[name]] = true
		}
	}
	var blank []any
	switch {
	case problem.HostInputs != nil:
		blank = problem.HostInputs.Blank
	case problem.Inputs != nil:
		blank = problem.Inputs(0)
	}
	for i, v := range blank {
		t, ok := v.(*tensors.Tensor)
		if !ok {
			var err error
			if t, err = tensors.FromAnyValue(v); err != nil {
				panic(fmt.Errorf("input %d: %w", i, err))
			}
		}
		input := graph.Parameter(g, fmt.Sprint("input ", i), t.Shape())
		inputs, rows[input] = append(inputs, input), true
	}
	return data, inputs
}

// reach says whether any of the wanted nodes is among those that the given ones are computed from.
func reach(from []*graph.Node, wanted map[*graph.Node]bool) bool {
	seen := map[*graph.Node]bool{}
	for len(from) > 0 {
		node := from[len(from)-1]
		from = from[:len(from)-1]
		if wanted[node] {
			return true
		}
		if node != nil && !seen[node] {
			seen[node] = true
			from = append(from, node.Inputs()...)
		}
	}
	return false
}
