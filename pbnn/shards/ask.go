package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"gobnn/bayes/compute"
	"gobnn/pbnn"

	"github.com/gomlx/gomlx/core/tensors"
)

// asking asks the shards for what a move needs.
type asking struct {
	*federation
	pbnn.Metropolis
	seed   uint64
	chains int     // J
	perRow float64 // points/N
}

// inputs asks the shards for the inputs of a move, given what the chains carry. Of Langevin's two moves the first needs
// the gradients at the chains' places, the second those at the proposals, on the same rows, and the differences. An
// input that is not needed is nil.
func (a *asking) inputs(
	ctx context.Context, move int, carried map[string]*tensors.Tensor,
) (differences, gradients []float64, err error) {
	values := map[string][]float64{}
	for name, t := range carried {
		if values[name], err = compute.Float64s(t); err != nil {
			return nil, nil, err
		}
	}
	q := Request{
		Seed: a.seed, Move: move, Batches: a.Batches, BatchSize: a.BatchSize, Chains: a.chains, From: values["phi"],
	}
	size, ofGradients := len(q.From), a.perRow/float64(q.Batches*q.BatchSize)
	if a.Proposal == pbnn.Langevin && !slices.ContainsFunc(values["proposed"], func(v float64) bool { return v != 0 }) {
		gradients, err = a.ask(ctx, Shard.Gradients, q, size, ofGradients)
		return nil, gradients, err
	}
	q.To = values["proposal"]
	back := q // the gradients at the proposals
	back.Move, back.From = move-1, q.To
	var all sync.WaitGroup
	var other error
	if a.Proposal == pbnn.Langevin {
		all.Go(func() { gradients, other = a.ask(ctx, Shard.Gradients, back, size, ofGradients) })
	}
	differences, err = a.ask(ctx, Shard.Differences, q, q.Chains*q.Batches, a.perRow/float64(q.BatchSize))
	all.Wait()
	return differences, gradients, errors.Join(err, other)
}

// ask puts a question to all shards at once and adds up their answers, each multiplied by the shard's number of rows
// and scale. numbers is the length that an answer must have.
func (f *federation) ask(
	ctx context.Context, method func(Shard, context.Context, Request) (Answer, error),
	q Request, numbers int, scale float64,
) ([]float64, error) {
	answers, errs := make([]Answer, len(f.shards)), make([]error, len(f.shards))
	var all sync.WaitGroup
	for i, shard := range f.shards {
		all.Go(func() {
			q := q
			q.Shard = i
			answers[i], errs[i] = again(ctx, f, i, func(ctx context.Context) (Answer, error) {
				answer, err := method(shard, ctx, q)
				if err != nil {
					return answer, err
				}
				return answer, f.accept(i, answer, numbers)
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sums := make([]float64, numbers)
	for i, answer := range answers {
		for k, v := range answer.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				f.nonFinite[i].Add(1)
			}
			sums[k] += scale * float64(f.rows[i]) * v
		}
	}
	return sums, nil
}

// accept is an error if an answer of shard i has another number of numbers, or is from other rows than the shard
// described.
func (f *federation) accept(i int, answer Answer, numbers int) error {
	if answer.Rows != f.rows[i] || answer.Hash != f.hashes[i] {
		return fmt.Errorf("%w: shard %d answers from %d rows (hash %q), but described %d rows (hash %q): begin anew with "+
			"the rows that it has, or give it back those that it had",
			ErrShard, i, answer.Rows, answer.Hash, f.rows[i], f.hashes[i])
	}
	if len(answer.Values) != numbers {
		return fmt.Errorf("it gives %d numbers, not %d", len(answer.Values), numbers)
	}
	return nil
}

// timeout is the longest wait for a shard's answer; a test sets it.
var timeout = 30 * time.Second

const (
	retries    = 2                     // how often a shard that fails or is late is asked again in a step
	retryPause = 20 * time.Millisecond // before it is asked again the first time; doubled each time
)

// again asks shard i until it answers in time, at most `retries` more times, and not after an error that would repeat.
func again[Reply any](
	ctx context.Context, f *federation, i int, once func(context.Context) (Reply, error),
) (reply Reply, err error) {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		inTime, cancel := context.WithTimeout(ctx, timeout)
		reply, err = once(inTime)
		cancel()
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return reply, ctx.Err()
		}
		if attempt > retries || errors.Is(err, ErrShard) || errors.Is(err, ErrRefused) {
			return reply, fmt.Errorf("shards: shard %d of %d failed at attempt %d: %w", i, len(f.shards), attempt, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return reply, ctx.Err()
		}
		pause *= 2
	}
}
