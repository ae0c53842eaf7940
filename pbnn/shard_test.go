package pbnn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/mat"
)

const (
	shardVariable = "PBNN_TEST_SHARD" // the number of the shard that this process is to be
	shardsOfLine  = 4
)

// TestMain makes the test's own program a shard where it is asked to be one: it prints its address and serves until its input ends.
func TestMain(m *testing.M) {
	if number := os.Getenv(shardVariable); number != "" {
		if err := beShard(number); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beShard(number string) error {
	i, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	engine, err := compute.Open("go:ops_sequential")
	if err != nil {
		return err
	}
	shard, err := NewShard(bayesianLine(), partOfLine(i), compute.Float64, engine)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it ends with the parent
		listener.Close()
	}()
	return Serve(listener, shard)
}

// partOfLine are the rows of one shard: 20, 30, 40 and 50 of the line's 140.
func partOfLine(i int) *dataset.Dataset {
	whole := line(140)
	from := 0
	for k := range i {
		from += 20 + 10*k
	}
	to := from + 20 + 10*i
	part := *whole
	part.X = mat.DenseCopyOf(whole.X.Slice(from, to, 0, 2))
	part.Y = whole.Y[from:to]
	return &part
}

// process is a shard in a process of its own.
func process(t *testing.T, i int) (shard *RemoteShard, kill func()) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", shardVariable, i))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	shard = Dial(strings.TrimSpace(address))
	t.Cleanup(func() {
		shard.Close()  //nolint:errcheck // it may be broken
		stdin.Close()  //nolint:errcheck // the process ends by it
		command.Wait() //nolint:errcheck // it may have been killed
	})
	return shard, func() { command.Process.Kill() } //nolint:errcheck // once
}

func local(t *testing.T, model bayes.Model, i int) Shard {
	t.Helper()
	shard, err := NewShard(model, partOfLine(i), compute.Float64, computetest.Go(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shard.Close)
	return shard
}

func allLocal(t *testing.T) []Shard {
	var shards []Shard
	for i := range shardsOfLine {
		shards = append(shards, local(t, bayesianLine(), i))
	}
	return shards
}

func overShards(t *testing.T) (Metropolis, ShardSettings) {
	return Metropolis{Target: TargetExpected{}, BatchSize: 4, Batches: 5, StepSize: .15},
		ShardSettings{Timeout: 20 * time.Second, Settings: mcmc.Settings{Chains: 3, Draws: 60, WarmUp: 5, Seed: 8, DType: compute.Float64, Engine: computetest.Go(t)}}
}

// Four shards in four processes give the draws of four in this one, to the bit. When one dies, the run stops with the draws before, and goes on from its checkpoint with another
// in its place to the same bits as if nothing had been.
func TestShardsInProcesses(t *testing.T) {
	sampler, settings := overShards(t)
	want, err := SampleShards(context.Background(), bayesianLine(), allLocal(t), sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
	if want.Acceptance < .1 || want.Noise == 0 || want.Target != (TargetExpected{N: 16}) || want.Posterior.Provenance.Rows != 140 {
		t.Errorf("acceptance %v, sigma^2 %v, target %v, %d rows", want.Acceptance, want.Noise, want.Target, want.Posterior.Provenance.Rows)
	}
	var shards []Shard
	kills := make([]func(), shardsOfLine)
	for i := range shardsOfLine {
		var shard *RemoteShard
		shard, kills[i] = process(t, i)
		shards = append(shards, shard)
	}
	got, err := SampleShards(context.Background(), bayesianLine(), shards, sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(flat(t, got), flat(t, want)) {
		t.Error("the draws over processes differ from those in one")
	}

	settings.Checkpoint = filepath.Join(t.TempDir(), "chains")
	dying := slices.Clone(shards)
	dying[2] = &watched{Shard: shards[2], before: func(asked int) error {
		if asked == 30 {
			kills[2]()
		}
		return nil
	}}
	part, err := SampleShards(context.Background(), bayesianLine(), dying, sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
	n := part.Chains.Draws.PerChain
	if part.Chains.Status != mcmc.Stopped || part.Chains.Stopped == nil || !strings.Contains(part.Chains.Stopped.Error(), "shard 2") || n == 0 || n >= 60 {
		t.Errorf("status %s with %d draws, because %v", part.Chains.Status, n, part.Chains.Stopped)
	}
	for chain := range 3 {
		if !slices.Equal(part.Chains.Draws.At(chain, n-1), want.Chains.Draws.At(chain, n-1)) || part.Chains.Chains[chain].Transitions != n {
			t.Errorf("chain %d: %d transitions for %d draws, or another last draw", chain, part.Chains.Chains[chain].Transitions, n)
		}
	}
	if _, err := SampleShards(context.Background(), bayesianLine(), []Shard{shards[0], shards[1], local(t, bayesianLine(), 1), shards[3]}, sampler, settings); err == nil {
		t.Error("a checkpoint goes on with other data")
	}
	shards[2], _ = process(t, 2)
	resumed, err := SampleShards(context.Background(), bayesianLine(), shards, sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(flat(t, resumed), flat(t, want)) {
		t.Error("the resumed draws differ")
	}
}

// watched is a shard at whose door something happens: before gets the number of the question.
type watched struct {
	Shard
	asked  atomic.Int32
	before func(asked int) error
	after  func(asked int, answer []float64) []float64
}

func (w *watched) Differences(ctx context.Context, q Question) ([]float64, error) {
	asked := int(w.asked.Add(1))
	if w.before != nil {
		if err := w.before(asked); err != nil {
			return nil, err
		}
	}
	answer, err := w.Shard.Differences(ctx, q)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if w.after != nil {
		answer = w.after(asked, answer)
	}
	return answer, err
}

// A shard that fails or is late now and then is asked again, and nothing is counted twice: the draws are the same. One that goes on failing, or gives another number of differences, stops the run.
func TestShardRetries(t *testing.T) {
	sampler, settings := overShards(t)
	want, err := SampleShards(context.Background(), bayesianLine(), allLocal(t), sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
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
		{name: "gives too few differences", stops: true, shard: &watched{after: func(asked int, answer []float64) []float64 {
			if asked > 20 {
				return answer[1:]
			}
			return answer
		}}},
	} {
		shards := allLocal(t)
		c.shard.Shard = shards[1]
		shards[1] = c.shard
		s := settings
		if c.timeout > 0 {
			s.Timeout = c.timeout
		}
		got, err := SampleShards(context.Background(), bayesianLine(), shards, sampler, s)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.stops {
			if got.Chains.Status != mcmc.Stopped || got.Chains.Draws.PerChain == 0 || got.Chains.Draws.PerChain >= 60 || int(c.shard.asked.Load()) != 20+3 {
				t.Errorf("%s: status %s with %d draws after %d questions", c.name, got.Chains.Status, got.Chains.Draws.PerChain, c.shard.asked.Load())
			}
			continue
		}
		if !slices.Equal(flat(t, got), flat(t, want)) || got.Noise != want.Noise {
			t.Errorf("%s: the draws differ", c.name)
		}
	}
}

// Chains over shards have the law of the whole data: the same test as TestExactOnALine's.
func TestShardsAreExact(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	data := line(140)
	sampler, settings := overShards(t)
	sampler.StepSize = step(1, 16)
	settings.Chains, settings.Draws, settings.Thin, settings.WarmUp = 8, 2000, 2, 400
	result, err := SampleShards(context.Background(), bayesianLine(), allLocal(t), sampler, settings)
	if err != nil {
		t.Fatal(err)
	}
	mean, covariance := exact(data, 16)
	p, what := worst(result.Chains.Draws, mean, covariance)
	t.Logf("p %.2g: %s; sigma^2 %.2f, acceptance %.2f", p, what, result.Noise, result.Acceptance)
	if p < 1e-3 {
		t.Errorf("%s, p %.2g", what, p)
	}
}

func TestShardBadInput(t *testing.T) {
	good, settings := overShards(t)
	with := func(change func(*Metropolis)) Metropolis { m := good; change(&m); return m }
	wider := bayesianLine()
	wider.Prior = bayes.Normal{StdDev: 2}
	single, err := NewShard(bayesianLine(), partOfLine(0), compute.Float32, computetest.Go(t))
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	for _, c := range []struct {
		says    string
		shards  []Shard
		sampler Metropolis
		refused bool
	}{
		{"there is no shard", nil, good, false},
		{"shard 1 has", []Shard{local(t, bayesianLine(), 0), local(t, wider, 1)}, good, true},
		{"shard 0 has", []Shard{single}, good, true},
		{"BatchSize is 21", allLocal(t), with(func(m *Metropolis) { m.BatchSize = 21 }), false},
		{"Proposal", allLocal(t), with(func(m *Metropolis) { m.Proposal = Langevin }), false},
		{"Estimate", allLocal(t), with(func(m *Metropolis) { m.Estimate = WithinBatches }), false},
		{"Batches is 1", allLocal(t), with(func(m *Metropolis) { m.Batches = 1 }), false},
		{"Noise", allLocal(t), with(func(m *Metropolis) { m.Noise = 1 }), false},
		{"Target", allLocal(t), with(func(m *Metropolis) { m.Target = nil }), false},
		{"connect", []Shard{Dial("127.0.0.1:1")}, good, false},
	} {
		_, err := SampleShards(context.Background(), bayesianLine(), c.shards, c.sampler, settings)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrShard) != c.refused {
			t.Errorf("error %v does not say %q, or is ErrShard: %v", err, c.says, errors.Is(err, ErrShard))
		}
	}
	shard := local(t, bayesianLine(), 0)
	q := Question{Chains: 1, Batches: 3, BatchSize: 4, From: make([]float64, 3), To: []float64{1, 2, 3}}
	first, err := shard.Differences(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []func(*Question){func(q *Question) { q.Shard = 1 }, func(q *Question) { q.Move = 1 }, func(q *Question) { q.Seed = 1 }} {
		o := q
		other(&o)
		if second, err := shard.Differences(context.Background(), o); err != nil || slices.Equal(first, second) {
			t.Errorf("%+v: the same rows as for another, or error %v", o, err)
		}
	}
	for _, q := range []Question{
		{}, {Chains: 1, Batches: 2, BatchSize: 3, From: make([]float64, 3), To: make([]float64, 2)},
		{Chains: 1, Batches: 2, BatchSize: 21, From: make([]float64, 3), To: make([]float64, 3)}, {Chains: 1, BatchSize: 2, From: make([]float64, 3), To: make([]float64, 3)},
	} {
		if _, err := shard.Differences(context.Background(), q); err == nil {
			t.Errorf("%+v: no error", q)
		}
	}
	if _, err := NewShard(bayesianLine(), nil, 0, nil); err == nil {
		t.Error("a shard without data: no error")
	}
}
