package pbnn

import (
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
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

// problemOf is a prepared sampler's problem and kernel; an error if the kernel would not sample the model's parameters.
func (d *Data) problemOf(s Sampler) (density.Problem, mcmc.Kernel, error) {
	problem, kernel, err := s.Problem(d)
	switch {
	case err != nil:
	case kernel == nil:
		err = fmt.Errorf("pbnn: %T.Problem gives no kernel", s)
	case !kernel.UsesTarget():
		err = fmt.Errorf("pbnn: %T never sees the data: its kernel, %T, does not ask its target", s, kernel)
	case problem.Target == nil || problem.Dim != d.Bound.D:
		err = fmt.Errorf("pbnn: %T.Problem gives a problem of %d dimensions, or without a target, for a model of %d "+
			"stochastic parameters: take one that Data.MiniBatches or Data.AllRows makes", s, problem.Dim, d.Bound.D)
	}
	return problem, kernel, err
}
