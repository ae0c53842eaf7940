package shards

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gobnn/bayes/compute"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// asking asks the shards for what a move needs.
type asking struct {
	*federation
	pbnn.Metropolis
	seed   uint64
	chains int     // J
	perRow float64 // points/N
}

// differences asks the shards for the differences of a move's mini-batches, given what the chains carry: flat [J, M].
func (a *asking) differences(
	ctx context.Context, move int, carried map[string]*tensors.Tensor,
) ([]float64, error) {
	q := Request{Seed: a.seed, Move: move, Batches: a.Batches, BatchSize: a.BatchSize, Chains: a.chains}
	var err error
	if q.From, err = compute.Float64s(carried["phi"]); err != nil {
		return nil, err
	}
	if q.To, err = compute.Float64s(carried["proposal"]); err != nil {
		return nil, err
	}
	return a.ask(ctx, q, a.perRow/float64(a.BatchSize))
}

// ask puts a question to all shards at once and adds up their answers, each multiplied by the shard's number of rows
// and scale.
func (f *federation) ask(ctx context.Context, q Request, scale float64) ([]float64, error) {
	numbers := q.Chains * q.Batches
	answers, errs := make([]Answer, len(f.shards)), make([]error, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		all.Go(func() {
			q := q
			q.Shard = i
			answers[i], errs[i] = inTime(ctx, i, func(ctx context.Context) (Answer, error) { return shard.Differences(ctx, q) })
			if errs[i] == nil {
				errs[i] = f.accept(i, answers[i], numbers)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sums := make([]float64, numbers)
	for i, answer := range answers {
		floats.AddScaled(sums, scale*float64(f.rows[i]), answer.Values)
	}
	return sums, nil
}

// accept is an error if an answer of shard i has another number of numbers, or is from other rows than the shard
// described.
func (f *federation) accept(i int, answer Answer, numbers int) error {
	if answer.Rows != f.rows[i] || answer.Hash != f.hashes[i] {
		return fmt.Errorf("%w: shard %d answers from %d rows (hash %q), but described %d rows (hash %q): begin anew with "+
			"the rows that it has, or give it back those that it had",
			errShard, i, answer.Rows, answer.Hash, f.rows[i], f.hashes[i])
	}
	if len(answer.Values) != numbers {
		return fmt.Errorf("shards: shard %d gives %d numbers, not %d", i, len(answer.Values), numbers)
	}
	return nil
}

// timeout is the longest wait for a shard's answer; a test sets it.
var timeout = 30 * time.Second

// inTime is the answer of shard i to a question, if it comes in time.
func inTime[Reply any](
	ctx context.Context, i int, question func(context.Context) (Reply, error),
) (reply Reply, err error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if reply, err = question(within); err != nil && ctx.Err() != nil {
		return reply, ctx.Err()
	}
	if err != nil {
		return reply, fmt.Errorf("shards: shard %d: %w", i, err)
	}
	return reply, nil
}
