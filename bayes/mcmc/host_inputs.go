package mcmc

import (
	"context"
	"fmt"
	"strings"

	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// inputs returns the given inputs, and the problem's for the next move.
func (r *sampling) inputs(ctx context.Context, first ...any) ([]any, error) {
	switch {
	case r.problem.Inputs != nil:
		return append(first, r.problem.Inputs(r.Move)...), nil
	case r.problem.HostInputs != nil:
		var carried map[string]*tensors.Tensor
		if !r.problem.HostInputs.OfMove {
			copies, err := r.state.Host(r.carrier.Names()...)
			if err != nil {
				return nil, fmt.Errorf("mcmc: %w", err)
			}
			carried = map[string]*tensors.Tensor{}
			for name, t := range copies {
				carried[strings.TrimPrefix(name, ownPrefix)] = t
				defer t.FinalizeAll() //nolint:errcheck // freeing a copy
			}
		}
		asked, err := r.problem.HostInputs.Inputs(ctx, r.Move, carried)
		if err != nil { // no chain has moved
			return nil, run.Stop(fmt.Errorf("mcmc: move %d could not be made: %w", r.Move, err))
		}
		first = append(first, asked...)
	}
	return first, nil
}
