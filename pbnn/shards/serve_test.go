package shards

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// served is a shard behind Serve, in this process, and the error that Serve ends with.
func served(t *testing.T, shard Shard, settings Limits) Shard {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(listener, shard, settings) }()
	remote := Dial(listener.Addr().String(), nil)
	t.Cleanup(func() {
		remote.Close() //nolint:errcheck // it may be broken
		listener.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return remote
}

// question is one that the default limits let pass, to a shard of the line.
func question(change func(q *Request)) Request {
	q := Request{Chains: 1, Batches: 3, BatchSize: 6, From: make([]float64, 3), To: []float64{1, 2, 3}}
	change(&q)
	return q
}

// What the owner of the rows does not allow is refused, by the limit's name, in a process of its own as in this one;
// the shard goes on answering.
func TestServeLimits(t *testing.T) {
	inProcess, _ := process(t, 0)
	for _, c := range []struct {
		shard Shard
		words string
		q     Request
	}{
		{inProcess, "it is for 1000000000 mini-batches: a question may be for 1000",
			question(func(q *Request) { q.Batches = 1e9 })},
		{inProcess, "MinBatchSize is 4", question(func(q *Request) { q.BatchSize, q.Batches = 1, 1 })},
		{inProcess, "MinBatchSize is 4", question(func(q *Request) { q.BatchSize = -1 })},
		{inProcess, "may be about 1000000 rows", question(func(q *Request) { q.BatchSize, q.Batches = math.MaxInt, 1000 })},
		{inProcess, "may be for 1000", question(func(q *Request) {
			q.Chains = 1001
			q.From, q.To = make([]float64, 3003), make([]float64, 3003)
		})},
		{served(t, here(t, line, 0), Limits{}), "MinBatchSize is 5", question(func(q *Request) {
			q.BatchSize = 4
		})},
	} {
		_, err := c.shard.Differences(t.Context(), c.q)
		if computetest.WantError(t, "a question", err, c.words); !errors.Is(err, errRefused) {
			t.Errorf("error %v is not errRefused", err)
		}
		answer, err := c.shard.Differences(t.Context(), question(func(*Request) {}))
		if err != nil || len(answer.Values) != 3 || answer.Rows != 20 {
			t.Errorf("afterwards a good question has the answer %v, error %v", answer, err)
		}
	}
}

// A run whose mini-batches a shard refuses ends at once with the reason.
func TestRefusedRun(t *testing.T) {
	sampler, settings := overShards(t)
	shards := allLocal(t)
	refusing := &watched{Shard: served(t, shards[1], Limits{MinBatchSize: 10})}
	shards[1] = refusing
	_, err := over(t, line, sampler, shards, settings)
	computetest.WantError(t, "small mini-batches", err, "MinBatchSize is 10")
	if !errors.Is(err, errRefused) || refusing.asked.Load() != 1 {
		t.Errorf("after %d questions: error %v", refusing.asked.Load(), err)
	}
}

// A shard answers no more than 16 questions at once; what comes beyond may come again.
func TestServeQuestionsAtOnce(t *testing.T) {
	begun, goOn := make(chan struct{}, mostAtOnce+1), make(chan struct{})
	slow := &watched{Shard: here(t, line, 0), before: func(int) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}}
	shard := served(t, slow, Limits{})
	q := question(func(*Request) {})
	first := make(chan error, mostAtOnce)
	for range mostAtOnce {
		go func() {
			_, err := shard.Differences(t.Context(), q)
			first <- err
		}()
	}
	for range mostAtOnce {
		<-begun
	}
	_, err := shard.Differences(t.Context(), q)
	if computetest.WantError(t, "one beyond", err, "16 questions to answer already"); errors.Is(err, errRefused) {
		t.Errorf("one beyond: error %v", err)
	}
	close(goOn)
	for range mostAtOnce {
		if err := <-first; err != nil {
			t.Errorf("one of the first: error %v", err)
		}
	}
	if _, err := shard.Differences(t.Context(), q); err != nil {
		t.Errorf("after them: error %v", err)
	}
}

func TestServeBadSettings(t *testing.T) {
	config := func(auth tls.ClientAuthType) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{{}}, ClientAuth: auth}
	}
	for words, s := range map[string]Limits{
		"MinBatchSize is 1: it must be from 2":                               {MinBatchSize: 1},
		"MinBatchSize is 21: it must be from 2 to 20, the rows of the shard": {MinBatchSize: 21},
		"no certificate": {TLS: &tls.Config{}},
		"ClientAuth is NoClientCert: it must be RequireAndVerifyClientCert": {TLS: config(tls.NoClientCert)},
		"ClientAuth is RequireAnyClientCert":                                {TLS: config(tls.RequireAnyClientCert)},
		"ClientCAs is nil":                                                  {TLS: config(tls.RequireAndVerifyClientCert)},
	} {
		computetest.WantError(t, words, Serve(nil, here(t, line, 0), s), words)
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

// However many shapes questions have, a shard compiles at most six programs. The answers are those of plain loops
// over the rows that are drawn, also where the last blocks of rows and chains are padded, and the same bits again.
func TestShardCompilesFewPrograms(t *testing.T) {
	data := fittest.Data(3000)
	shard := hereOf(t, line, data).(*local)
	density := func(phi []float64, row int32) float64 { // up to a constant
		residual := data.Y[row] - phi[2]
		for k, v := range mat.Row(nil, int(row), data.X) {
			residual -= phi[k] * v
		}
		return -residual * residual / (2 * noiseStdDev * noiseStdDev)
	}
	asked := 0
	for _, chains := range []int{1, 4, 5, 32, 40} {
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
			asked++
		}
	}
	if made := shard.programs.Made(); made != 6 {
		t.Errorf("%d programs were compiled for %d questions, want 6", made, asked)
	}
}

// Answers that are not finite reject their proposals, and a warning has how many there were, and that the other
// shards had none.
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
	want := "have 8 numbers that are NaN or infinite, by shard [0 0 8 0]"
	if warnings := result.Result.Warnings; !strings.Contains(strings.Join(warnings, "; "), want) {
		t.Errorf("warnings %q lack %q", warnings, want)
	}
	for chain, want := range []int{4, 4, 0} {
		if got := result.chains.Stats[chain].NonFinite; got != want {
			t.Errorf("chain %d: %d proposals rejected for it, want %d", chain, got, want)
		}
	}

	// One that answers nothing else stops all chains: the error names it.
	shards = allLocal(t)
	shards[1] = &watched{Shard: shards[1], after: func(_ int, answer Answer) Answer {
		for k := range answer.Values {
			answer.Values[k] = math.NaN()
		}
		return answer
	}}
	sampler.Draws = 400
	_, err = over(t, line, sampler, shards, settings)
	if computetest.WantError(t, "nothing but NaN", err, "by shard [0 "); !errors.Is(err, mcmc.ErrStuck) {
		t.Error(err)
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
			q := Request{Chains: 3, Batches: 5, BatchSize: 4, From: make([]float64, 9), To: make([]float64, 9)}
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

// A shard that has failed is left alone for a while before it is asked again.
func TestRetriesPause(t *testing.T) {
	var times []time.Time
	f := &federation{shards: make([]Shard, 1)}
	_, err := again(t.Context(), f, 0, func(context.Context) (int, error) {
		times = append(times, time.Now())
		return 0, errors.New("broken")
	})
	computetest.WantError(t, "broken", err, "shard 0 of 1 failed at attempt 3: broken")
	if len(times) != 3 {
		t.Fatalf("%d attempts", len(times))
	}
	if first, second := times[1].Sub(times[0]), times[2].Sub(times[1]); first < retryPause || second < 2*retryPause {
		t.Errorf("pauses of %v and %v", first, second)
	}
}
