package shards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
)

const (
	shardVariable = "PBNN_TEST_SHARD" // the number of the shard that this process is to be
	shardsOfLine  = 4
)

// TestMain makes the test's own program a shard where it is asked to be one: it prints its address and serves until its
// input ends.
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
	shard, err := New(line, partOfLine(i), compute.Float64, engine)
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
	whole := fittest.Data(140)
	from := 0
	for k := range i {
		from += 20 + 10*k
	}
	to := from + 20 + 10*i
	part := *whole
	part.X = mat.DenseCopyOf(whole.X.(*mat.Dense).Slice(from, to, 0, 2))
	part.Y = whole.Y[from:to]
	return &part
}

// process is a shard in a process of its own.
func process(t *testing.T, i int) (shard Shard, kill func()) {
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

func here(t *testing.T, model bayes.Model, i int) Shard {
	t.Helper()
	return hereOf(t, model, partOfLine(i))
}

func hereOf(t *testing.T, model bayes.Model, data *dataset.Dataset) Shard {
	t.Helper()
	shard, err := New(model, data, compute.Float64, computetest.Go(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shard.Close() }) //nolint:errcheck // it is local
	return shard
}

func allLocal(t *testing.T) []Shard {
	var shards []Shard
	for i := range shardsOfLine {
		shards = append(shards, here(t, line, i))
	}
	return shards
}

func overShards(t *testing.T) (pbnn.Metropolis, run.Settings) {
	return pbnn.Metropolis{
		Sampling: pbnn.Sampling{Chains: 3, Draws: 60, WarmUp: 5}, Target: pbnn.TargetExpected{}, BatchSize: 5, Batches: 5,
		StepSize: .15,
	}, run.Settings{Seed: 8, DType: compute.Float64, Engine: computetest.Go(t)}
}

// Four shards in four processes give the draws of four in this one, to the bit. When one dies, the run stops with the
// draws before, and goes on from its checkpoint with another in its place to the same bits as if nothing had been.
func TestShardsInProcesses(t *testing.T) {
	sampler, settings := overShards(t)
	want, err := over(t, line, sampler, allLocal(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	if want.Acceptance < .1 || want.Noise == 0 || want.Sampler.(Metropolis).Target != (pbnn.TargetExpected{Points: 20}) ||
		want.Posterior.Provenance().Rows != 140 {
		t.Errorf("acceptance %v, sigma^2 %v, target %v, %d rows", want.Acceptance, want.Noise, want.Sampler,
			want.Posterior.Provenance().Rows)
	}
	const rows = 2. * 5 * 5 * shardsOfLine
	if math.Abs(want.RowsPerStep-rows) > 1e-9 ||
		math.Abs(want.Passes-60*rows/140) > 1e-9 {
		t.Errorf("%v rows a step, %v passes: want %v rows", want.RowsPerStep, want.Passes, rows)
	}
	var shards []Shard
	kills := make([]func(), shardsOfLine)
	for i := range shardsOfLine {
		var shard Shard
		shard, kills[i] = process(t, i)
		shards = append(shards, shard)
	}
	got, err := over(t, line, sampler, shards, settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fittest.Numbers(t, got.Posterior), fittest.Numbers(t, want.Posterior)) {
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
	part, err := over(t, line, sampler, dying, settings)
	if computetest.WantError(t, "a shard dies", err, "shard 2"); part == nil {
		t.Fatal("no result")
	}
	n := part.chains.Draws.PerChain
	if part.Status != run.Stopped || n == 0 || n >= 60 {
		t.Errorf("status %s with %d draws", part.Status, n)
	}
	for chain := range 3 {
		if !slices.Equal(part.chains.Draws.At(chain, n-1), want.chains.Draws.At(chain, n-1)) ||
			part.chains.Stats[chain].Transitions != n {
			t.Errorf("chain %d: %d transitions for %d draws, or another last draw", chain,
				part.chains.Stats[chain].Transitions, n)
		}
	}
	changed := partOfLine(2)
	changed.Y = append([]float64{changed.Y[0] + 1}, changed.Y[1:]...)
	others := []Shard{shards[0], shards[1], hereOf(t, line, changed), shards[3]}
	_, err = over(t, line, sampler, others, settings)
	if !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("a checkpoint goes on with other data: error %v", err)
	}
	shards[2], _ = process(t, 2)
	resumed, err := over(t, line, sampler, shards, settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(fittest.Numbers(t, resumed.Posterior), fittest.Numbers(t, want.Posterior)) {
		t.Error("the resumed draws differ")
	}
}

func TestShardBadInput(t *testing.T) {
	good, settings := overShards(t)
	with := func(change func(*pbnn.Metropolis)) pbnn.Metropolis { m := good; change(&m); return m }
	wider := line
	wider.Prior = bayes.Normal{StdDev: 2}
	single, err := New(line, partOfLine(0), compute.Float32, computetest.Go(t))
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	differs := described{here(t, line, 1), func(d *Description) { d.Extras.Weights = true }}
	for words, c := range map[string]struct {
		shards  []Shard
		sampler pbnn.Metropolis
		refused bool
	}{
		"there is no shard": {nil, good, false},
		"shard 1 has":       {[]Shard{here(t, line, 0), here(t, wider, 1)}, good, true},
		"shard 0 has":       {[]Shard{single}, good, true},
		"shard 1 has extra": {[]Shard{here(t, line, 0), differs}, good, true},
		"shards 1 and 2 have the same 30 rows": {[]Shard{here(t, line, 0), here(t, line, 1), here(t, line, 1)}, good,
			true},
		"BatchSize is 21": {allLocal(t), with(func(m *pbnn.Metropolis) { m.BatchSize = 21 }), false},
		"Proposal is Langevin: it must be a random walk over shards": {allLocal(t),
			with(func(m *pbnn.Metropolis) { m.Proposal = pbnn.Langevin }), false},
		"Estimate is within batches: it must be MeanOfBatches or OneBatch": {allLocal(t),
			with(func(m *pbnn.Metropolis) { m.Estimate = pbnn.WithinBatches }), false},
		"Noise is 1: it must be 0 over shards": {allLocal(t), with(func(m *pbnn.Metropolis) { m.Noise = 1 }), false},
		"connect":                              {[]Shard{Dial("127.0.0.1:1")}, good, false},
	} {
		_, err := over(t, line, c.sampler, c.shards, settings)
		computetest.WantError(t, words, err, strings.TrimSuffix(words, " extra"))
		if errors.Is(err, errShard) != c.refused {
			t.Errorf("error %v is errShard: %v", err, !c.refused)
		}
	}
	shard := here(t, line, 0)
	q := Request{Chains: 1, Batches: 3, BatchSize: 4, From: make([]float64, 3), To: []float64{1, 2, 3}}
	first, err := shard.Differences(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []func(*Request){func(q *Request) { q.Shard = 1 }, func(q *Request) { q.Move = 1 },
		func(q *Request) { q.Seed = 1 }} {
		o := q
		other(&o)
		if second, err := shard.Differences(t.Context(), o); err != nil ||
			slices.Equal(first.Values, second.Values) {
			t.Errorf("%+v: the same rows as for another, or error %v", o, err)
		}
	}
	three := make([]float64, 3)
	for words, q := range map[string]Request{
		"Request.From has 0 numbers for 0 chains": {},
		"Request.From has 3 numbers for 2 chains": {Chains: 2, Batches: 2, BatchSize: 3, From: three, To: three},
		"Request.To has 2 numbers for 1 chains":   {Chains: 1, Batches: 2, BatchSize: 3, From: three, To: three[:2]},
		"2 mini-batches of 21 rows: the shard has 20": {
			Chains: 1, Batches: 2, BatchSize: 21, From: three, To: three,
		},
		"0 mini-batches of 2 rows": {Chains: 1, BatchSize: 2, From: three, To: three},
	} {
		_, err := shard.Differences(t.Context(), q)
		computetest.WantError(t, words, err, words)
	}
	partial := line
	partial.Network, partial.Stochastic = nn.MLP{Hidden: []int{6}}, bayes.Layers(2)
	_, err = New(partial, partOfLine(0), 0, computetest.Go(t))
	computetest.WantError(t, "a shard of a model with shared parameters", err, "shared numbers")
	bad := partOfLine(0)
	bad.X.(*mat.Dense).Set(7, 1, math.NaN())
	for words, data := range map[string]*dataset.Dataset{"data are nil": nil, "NaN": bad} {
		_, err := New(line, data, 0, computetest.Go(t))
		computetest.WantError(t, words, err, words)
	}
}

// described is a shard whose description is changed, as that of one that knows no names.
type described struct {
	Shard
	change func(*Description)
}

func (d described) Describe(ctx context.Context) (Description, error) {
	description, err := d.Shard.Describe(ctx)
	d.change(&description)
	return description, err
}

// Shards whose features, targets or classes stand in another order are refused, over a connection too, with both orders
// and the cure. Names that are not there, or are others, are not compared; those that are there are the posterior's.
func TestShardOrder(t *testing.T) {
	two, classes := line, line
	classes.Likelihood = bayes.Bernoulli{}
	part := func(i int, change func(d *dataset.Dataset)) *dataset.Dataset {
		d := partOfLine(i)
		change(d)
		return d
	}
	features := func(names ...string) func(*dataset.Dataset) {
		return func(d *dataset.Dataset) { d.Features = names }
	}
	targets := func(names ...string) func(*dataset.Dataset) {
		return func(d *dataset.Dataset) {
			d.Targets, d.Y = names, make([]float64, 2*d.Rows())
			d.Y[0] = float64(d.Rows())
		}
	}
	labels := func(names ...string) func(*dataset.Dataset) {
		return func(d *dataset.Dataset) {
			d.Task, d.Classes, d.Y = dataset.BinaryClassification, names, make([]float64, d.Rows())
		}
	}
	all := func(*Description) {}
	none := func(d *Description) { d.Features, d.Targets, d.Classes = nil, nil, nil }
	for name, c := range map[string]struct {
		model   bayes.Model
		changes []func(*dataset.Dataset) // of each shard's rows
		names   []func(*Description)     // of each shard; nil: all
		words   []string                 // nil: no error
		origin  [3][]string              // the posterior's names
	}{
		"the same": {two, []func(*dataset.Dataset){features("a", "b"), features("a", "b")}, nil, nil,
			[3][]string{{"a", "b"}, {"y"}, nil}},
		"features": {two, []func(*dataset.Dataset){features("a", "b"), features("b", "a")}, nil,
			[]string{`shard 1 beside shard 0`, `["b" "a"]`, `["a" "b"]`, "CSVOptions.Like"}, [3][]string{}},
		"features of the third, as the first has none": {two,
			[]func(*dataset.Dataset){features("a", "b"), features("a", "b"), features("b", "a")},
			[]func(*Description){none, all, all}, []string{`shard 2 beside shard 1`}, [3][]string{}},
		"targets": {two, []func(*dataset.Dataset){targets("y", "z"), targets("z", "y")}, nil,
			[]string{`shard 1 beside shard 0`, `["z" "y"]`, `["y" "z"]`, "name the targets"}, [3][]string{}},
		"classes": {classes, []func(*dataset.Dataset){labels("no", "yes"), labels("yes", "no")}, nil,
			[]string{`shard 1 beside shard 0`, `["yes" "no"]`, `["no" "yes"]`, "CSVOptions.Classes"}, [3][]string{}},
		"no names of classes": {classes, []func(*dataset.Dataset){labels("no", "yes"), labels("yes", "no")},
			[]func(*Description){none, none}, nil, [3][]string{nil, nil, {"0", "1"}}},
		"names of one": {two, []func(*dataset.Dataset){features("a", "b"), features("b", "a")},
			[]func(*Description){none, all}, nil, [3][]string{{"b", "a"}, {"y"}, nil}},
		"targets of one, the last without a name": {two, []func(*dataset.Dataset){targets("y", ""), targets("", "y")},
			[]func(*Description){all, none}, nil, [3][]string{{"a", "b"}, {"y", ""}, nil}},
		"renamed": {two, []func(*dataset.Dataset){features("a", "b"), features("a", "c")}, nil, nil,
			[3][]string{{"a", "b"}, {"y"}, nil}},
		"too many names": {two, []func(*dataset.Dataset){features("a", "b")},
			[]func(*Description){func(d *Description) { d.Features = []string{"a", "b", "c"} }},
			[]string{"the names that the shards describe", `["a" "b" "c"]`}, [3][]string{}},
	} {
		sampler, settings := overShards(t)
		sampler.Draws = 5
		var shards []Shard
		for i, change := range c.changes {
			shard := hereOf(t, c.model, part(i, change))
			if c.names != nil {
				shard = described{shard, c.names[i]}
			}
			if i == 1 {
				shard = served(t, shard)
			}
			shards = append(shards, shard)
		}
		got, err := over(t, c.model, sampler, shards, settings)
		if c.words != nil {
			if computetest.WantError(t, name, err, c.words...); !errors.Is(err, errShard) {
				t.Errorf("%s: error %v is not errShard", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o := got.Posterior.Origin()
		if names := [3][]string{o.FeatureNames, o.TargetNames, o.Classes}; !reflect.DeepEqual(names, c.origin) {
			t.Errorf("%s: the posterior has the names %q, want %q", name, names, c.origin)
		}
	}
}

// Where the noise of the shards' mini-batches lets nothing pass, the error states the n and M that would do.
func TestNoiseStopsShards(t *testing.T) {
	sampler, settings := overShards(t)
	sampler.Draws, sampler.Target, sampler.BatchSize, sampler.Batches, sampler.StepSize = 400, nil, 2, 10, 3
	_, err := over(t, line, sampler, allLocal(t), settings)
	computetest.WantError(t, "loud", err, "Batches (M)", "instead of 2")
	if !errors.Is(err, mcmc.ErrStuck) {
		t.Error(err)
	}
}

// A warm-up chooses the step size, and scales.
func TestWarmUpOverShards(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	_, settings := overShards(t)
	r, err := over(t, line, pbnn.Metropolis{
		Sampling: pbnn.Sampling{Chains: 3, Draws: 150, WarmUp: 150}, Target: pbnn.TargetExpected{Points: 10}, BatchSize: 10,
		Batches: 12,
	}, allLocal(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	if tuned := r.chains.Tuned; math.Abs(r.Acceptance-.234) > .15 || tuned.StepSize == 0 || len(tuned.Scale) != 3 ||
		slices.Max(tuned.Scale) < 1.05*slices.Min(tuned.Scale) {
		t.Errorf("acceptance %.3f, want .234, with %+v", r.Acceptance, tuned)
	}
}
