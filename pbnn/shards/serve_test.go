package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// served is a shard behind Serve, in this process, and the error that Serve ends with.
func served(t *testing.T, shard Shard) Shard {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(listener, shard) }()
	remote := Dial(listener.Addr().String())
	t.Cleanup(func() {
		remote.Close() //nolint:errcheck // it may be broken
		listener.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return remote
}

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

// question is one that Serve lets pass, to a shard of the line.
func question(change func(q *Request)) Request {
	q := Request{Chains: 1, Batches: 3, BatchSize: 6, From: make([]float64, 3), To: []float64{1, 2, 3}}
	change(&q)
	return q
}

// What could reveal a row, or block the shard, is refused, in a process of its own as in this one; the shard goes on
// answering.
func TestServeLimits(t *testing.T) {
	inProcess, _ := process(t, 0)
	for _, c := range []struct {
		shard Shard
		words string
		q     Request
	}{
		{inProcess, "1000000000 mini-batches of 6 rows, and may be", question(func(q *Request) { q.Batches = 1e9 })},
		{inProcess, "have -1 rows, and must have at least 5", question(func(q *Request) { q.BatchSize = -1 })},
		{inProcess, "on 1000000 rows in all", question(func(q *Request) { q.BatchSize, q.Batches = math.MaxInt, 1000 })},
		{inProcess, "for 1000 chains on", question(func(q *Request) {
			q.Chains = 1001
			q.From, q.To = make([]float64, 3003), make([]float64, 3003)
		})},
		{served(t, here(t, line, 0)), "have 4 rows, and must have at least 5", question(func(q *Request) {
			q.BatchSize = 4
		})},
	} {
		_, err := c.shard.Differences(t.Context(), c.q)
		computetest.WantError(t, "a question", err, c.words)
		answer, err := c.shard.Differences(t.Context(), question(func(*Request) {}))
		if err != nil || len(answer.Values) != 3 || answer.Rows != 20 {
			t.Errorf("afterwards a good question has the answer %v, error %v", answer, err)
		}
	}
}

// A question of (2^64 + 4)/5 chains of 5 coordinates has 4 numbers modulo 2^64: it is refused, not compiled.
func TestShardCountsDoNotOverflow(t *testing.T) {
	network := line
	network.Network = nn.MLP{Hidden: []int{1}, Activation: nn.Tanh}
	shard, err := New(network, fittest.Data(20), compute.Float64, computetest.Go(t))
	if err != nil {
		t.Fatal(err)
	}
	defer shard.Close()
	const chains = 3689348814741910324
	if count := chains; shard.(*local).bound.D != 5 || count*5 != 4 {
		t.Fatalf("%d chains of 5 coordinates are %d", count, count*5)
	}
	q := Request{Chains: chains, Batches: 1, BatchSize: 5, From: make([]float64, 4), To: make([]float64, 4)}
	_, err = shard.Differences(t.Context(), q)
	computetest.WantError(t, "too many chains", err, "Request.From has 4")
}

// The answers are those of plain loops over the rows that are drawn, also where the last blocks of rows and chains are
// padded, and the same bits again.
func TestShardAnswers(t *testing.T) {
	data := fittest.Data(3000)
	shard := hereOf(t, line, data)
	density := func(phi []float64, row int32) float64 { // up to a constant
		residual := data.Y[row] - phi[2]
		for k, v := range mat.Row(nil, int(row), data.X) {
			residual -= phi[k] * v
		}
		return -residual * residual / (2 * noiseStdDev * noiseStdDev)
	}
	for _, chains := range []int{1, 4, 5} {
		for _, shape := range [][2]int{{1, 1}, {3, 6}, {5, 100}, {1, 3000}, {7, 900}} {
			q := Request{Seed: 3, Shard: 2, Move: 10 + shape[0], Chains: chains, Batches: shape[0], BatchSize: shape[1]}
			for i := range 3 * chains {
				q.From, q.To = append(q.From, float64(i%5)/10), append(q.To, float64(i%7)/10)
			}
			key := random.KeyOf(3).Named("shard").At(2).Named("move").At(uint32(q.Move))
			rows := key.Named("rows").Subsets(shape[0], 3000, shape[1])
			want := make([]float64, chains*shape[0])
			for j := range chains {
				from, to := q.From[3*j:][:3], q.To[3*j:][:3]
				for i, row := range rows {
					want[j*shape[0]+i/shape[1]] += density(to, row) - density(from, row)
				}
			}
			got, err := shard.Differences(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			computetest.Near(t, fmt.Sprintf("%d chains, %v rows", chains, shape), got.Values, want, 1e-9)
			again, err := shard.Differences(t.Context(), q)
			if err != nil || !slices.Equal(again.Values, got.Values) {
				t.Errorf("asked again: %v, %v, before %v", err, again.Values, got.Values)
			}
		}
	}
}

// Answers that are not finite reject their proposals, which the chains count.
func TestNonFiniteAnswers(t *testing.T) {
	sampler, settings := overShards(t)
	shards := allLocal(t)
	shards[2] = &watched{Shard: shards[2], after: func(asked int, answer Answer) Answer {
		if asked > 10 && asked <= 14 {
			answer.Values[0], answer.Values[7] = math.NaN(), math.Inf(1) // of chains 0 and 1
		}
		return answer
	}}
	result, err := over(t, line, sampler, shards, settings)
	if err != nil {
		t.Fatal(err)
	}
	for chain, want := range []int{4, 4, 0} {
		if got := result.chains.Stats[chain].NonFinite; got != want {
			t.Errorf("chain %d: %d proposals rejected for it, want %d", chain, got, want)
		}
	}
}

// A shard that fails, is late or gives another number of differences stops the run before that step.
func TestShardFails(t *testing.T) {
	usual := timeout
	defer func() { timeout = usual }()
	timeout = 2 * time.Second
	for name, shard := range map[string]*watched{
		"broken": {before: func(asked int) error {
			if asked > 20 {
				return errors.New("broken")
			}
			return nil
		}},
		"deadline": {before: func(asked int) error {
			if asked > 20 {
				time.Sleep(timeout + 200*time.Millisecond)
			}
			return nil
		}},
		"gives 14 numbers, not 15": {after: func(asked int, answer Answer) Answer {
			if asked > 20 {
				answer.Values = answer.Values[1:]
			}
			return answer
		}},
	} {
		sampler, settings := overShards(t)
		shards := allLocal(t)
		shard.Shard = shards[1]
		shards[1] = shard
		got, err := over(t, line, sampler, shards, settings)
		if computetest.WantError(t, name, err, "shard 1", name); got == nil {
			t.Fatal("no result")
		}
		if n := got.chains.Draws.PerChain; got.Status != run.Stopped || n != 15 || shard.asked.Load() != 21 {
			t.Errorf("%s: status %s with %d draws after %d questions", name, got.Status, n, shard.asked.Load())
		}
	}
}

// A shard that answers from other rows than it described, by number or by hash, ends the run before the step, at once;
// the draws before it stay. So does a process that was begun anew with another's rows.
func TestShardWithOtherRows(t *testing.T) {
	other, _ := process(t, 3)
	for name, after := range map[string]func(Answer) Answer{
		"number": func(a Answer) Answer { a.Rows++; return a },
		"hash":   func(a Answer) Answer { a.Hash = "other"; return a },
		"process": func(a Answer) Answer {
			q := Request{Chains: 3, Batches: 5, BatchSize: 5, From: make([]float64, 9), To: make([]float64, 9)}
			o, err := other.Differences(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			return o
		},
	} {
		sampler, settings := overShards(t)
		shards := allLocal(t)
		changed := &watched{Shard: shards[1], after: func(asked int, answer Answer) Answer {
			if asked > 20 {
				return after(answer)
			}
			return answer
		}}
		shards[1] = changed
		result, stopped := over(t, line, sampler, shards, settings)
		if result == nil {
			t.Fatal(stopped)
		}
		computetest.WantError(t, name, stopped, "shard 1 answers from", "described 30 rows")
		if !errors.Is(stopped, errShard) {
			t.Errorf("%s: stopped by %v", name, stopped)
		}
		if n := result.chains.Draws.PerChain; result.Status != run.Stopped || n != 15 || changed.asked.Load() != 21 {
			t.Errorf("%s: status %s with %d draws after %d questions", name, result.Status, n, changed.asked.Load())
		}
	}
}
