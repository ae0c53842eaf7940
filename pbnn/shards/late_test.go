package shards

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gobnn/bayes/run"
)

// watched is a shard at whose door something happens: before gets the number of the question.
type watched struct {
	Shard
	asked  atomic.Int32
	before func(asked int) error
	after  func(asked int, answer Answer) Answer
}

func (w *watched) Differences(ctx context.Context, q Request) (Answer, error) {
	asked := int(w.asked.Add(1))
	if w.before != nil {
		if err := w.before(asked); err != nil {
			return Answer{}, err
		}
	}
	answer, err := w.Shard.Differences(ctx, q)
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if w.after != nil {
		answer = w.after(asked, answer)
	}
	return answer, err
}

// A shard that fails or is late now and then is asked again, and nothing is counted twice: the draws are the same. One
// that goes on failing, or gives another number of differences, stops the run.
func TestShardRetries(t *testing.T) {
	sampler, settings := overShards(t)
	want, err := over(t, line, sampler, allLocal(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	usual := timeout
	defer func() { timeout = usual }()
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		shard   *watched
		timeout time.Duration
		stops   bool
	}{
		{name: "fails now and then", shard: &watched{before: func(asked int) error {
			if asked%7 == 0 {
				return broken
			}
			return nil
		}}},
		{name: "is late once", timeout: 2 * time.Second, shard: &watched{before: func(asked int) error {
			if asked == 20 {
				time.Sleep(2200 * time.Millisecond)
			}
			return nil
		}}},
		{name: "fails for good", stops: true, shard: &watched{before: func(asked int) error {
			if asked > 20 {
				return broken
			}
			return nil
		}}},
		{name: "gives too few numbers", stops: true, shard: &watched{after: func(asked int, answer Answer) Answer {
			if asked > 20 {
				answer.Values = answer.Values[1:]
			}
			return answer
		}}},
	} {
		shards := allLocal(t)
		c.shard.Shard = shards[1]
		shards[1] = c.shard
		timeout = cmp.Or(c.timeout, usual)
		got, err := over(t, line, sampler, shards, settings)
		if (err != nil) != c.stops || got == nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.stops {
			if got.Status != run.Stopped || got.chains.Draws.PerChain == 0 || got.chains.Draws.PerChain >= 60 ||
				int(c.shard.asked.Load()) != 20+3 {
				t.Errorf("%s: status %s with %d draws after %d questions", c.name, got.Status, got.chains.Draws.PerChain,
					c.shard.asked.Load())
			}
			continue
		}
		if !slices.Equal(got.flat(t), want.flat(t)) || got.Noise != want.Noise {
			t.Errorf("%s: the draws differ", c.name)
		}
	}
}
