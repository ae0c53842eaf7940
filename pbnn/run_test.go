package pbnn

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
)

// quick are settings of a short run.
func quick(engine *compute.Engine) Settings {
	return Settings{Settings: mcmc.Settings{Chains: 3, Draws: 20, WarmUp: 10, Seed: 5, DType: compute.Float64, Engine: engine}}
}

func flat(t *testing.T, r *Result) []float64 {
	t.Helper()
	values, err := compute.Float64s(r.Chains.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// A run that is cancelled and goes on from its checkpoint ends at the same bits as one that is not; other mini-batches, targets or models are refused.
func TestCheckpoint(t *testing.T) {
	engine := computetest.Go(t)
	data := line(60)
	for i, proposal := range Proposals() {
		if i > 0 && testing.Short() {
			return
		}
		sampler := Metropolis{Target: TargetExpected{}, BatchSize: 6, Batches: 4, Proposal: proposal, StepSize: .1}
		s := quick(engine)
		s.Draws = 1500 // longer than it takes to the second report
		whole, err := Sample(context.Background(), bayesianLine(), data, sampler, s)
		if err != nil {
			t.Fatal(err)
		}
		s.Checkpoint = filepath.Join(t.TempDir(), "chains")
		s.CheckpointEvery = 30 * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		s.Progress = func(p mcmc.Progress) {
			if p.Draws >= 15 {
				cancel()
			}
		}
		part, err := Sample(ctx, bayesianLine(), data, sampler, s)
		if err != nil {
			t.Fatal(err)
		}
		if part.Chains.Status != mcmc.Cancelled {
			t.Errorf("%s: status %s: nothing is resumed", proposal, part.Chains.Status)
		}
		s.Progress = nil
		resumed, err := Sample(context.Background(), bayesianLine(), data, sampler, s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(flat(t, whole), flat(t, resumed)) || resumed.Chains.Status != mcmc.Completed || resumed.Noise != whole.Noise {
			t.Errorf("%s: the resumed run differs", proposal)
		}
		other := sampler
		other.Batches = 5
		wider := bayesianLine()
		wider.Prior = bayes.Normal{StdDev: 2}
		for _, c := range []struct {
			model   bayes.Model
			sampler Metropolis
		}{{bayesianLine(), other}, {bayesianLine(), Metropolis{Target: TargetFull{}, BatchSize: 6, Batches: 4, Proposal: proposal, StepSize: .1}}, {wider, sampler}} {
			if _, err := Sample(context.Background(), c.model, data, c.sampler, s); err == nil {
				t.Errorf("%s: another run's checkpoint is taken", proposal)
			}
		}
	}
}

// A cancelled run with a draw of each chain gives what it has; one without, an error.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := quick(computetest.Go(t))
	s.Draws = 1_000_000
	s.Progress = func(p mcmc.Progress) {
		if p.Draws > 30 {
			cancel()
		}
	}
	sampler := Metropolis{Target: TargetExpected{}, BatchSize: 5, Batches: 4, StepSize: .1}
	r, err := Sample(ctx, bayesianLine(), line(50), sampler, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Chains.Status != mcmc.Cancelled || r.Posterior.Particles() != 3*r.Chains.Draws.PerChain || r.Posterior.Provenance.Status != "cancelled" {
		t.Errorf("status %s, %d particles of %d draws", r.Chains.Status, r.Posterior.Particles(), r.Chains.Draws.PerChain)
	}
	if _, err := Sample(ctx, bayesianLine(), line(50), sampler, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the first draw: error %v", err)
	}
}

// A result says what it is of: the target with its n, the sampler as it ran, what it cost.
func TestResult(t *testing.T) {
	engine := computetest.Go(t)
	data := line(60)
	for _, c := range []struct {
		sampler Sampler
		target  Target
		passes  float64
	}{
		{Metropolis{Target: TargetExpected{}, BatchSize: 6, Batches: 4, StepSize: .1}, TargetExpected{N: 6}, 20 * 2 * 24 / 60.},
		{Metropolis{Target: TargetFull{}, Proposal: Langevin, StepSize: .01}, TargetFull{}, 20 * 4 * 10},
		{Unadjusted{Target: TargetExpected{N: 9}, BatchSize: 6, Kernel: mcmc.SGLD{StepSize: .01}}, TargetExpected{N: 9}, 2},
		{AllRows{Target: TargetTempered{N: 7}, Kernel: mcmc.MALA{StepSize: .1}}, TargetTempered{N: 7}, 20},
		{AllRows{Target: TargetFullData{}, Kernel: mcmc.ULA{StepSize: .01}}, TargetFullData{}, 20},
	} {
		r, err := Sample(context.Background(), bayesianLine(), data, c.sampler, quick(engine))
		if err != nil {
			t.Fatal(err)
		}
		if r.Target != c.target || math.Abs(r.Passes-c.passes) > 1e-9 || !strings.Contains(r.Posterior.Provenance.Algorithm, c.target.String()) {
			t.Errorf("%T: target %v, %v passes, %q; want %v and %v", c.sampler, r.Target, r.Passes, r.Posterior.Provenance.Algorithm, c.target, c.passes)
		}
		if _, judged := c.sampler.(Metropolis); judged != (r.Noise > 0) {
			t.Errorf("%T: sigma^2 %v", c.sampler, r.Noise)
		}
		_, err = r.Posterior.Predict(context.Background(), data.X)
		if err != nil {
			t.Errorf("%T: prediction: %v", c.sampler, err)
		}
	}
}

// The last layer only: the shared layers' features, computed once, give the same draws as the rows sent through them at each step would.
func TestPartialNetwork(t *testing.T) {
	engine := computetest.Go(t)
	data := line(80)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{6}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.Layers(2)}
	if _, err := Sample(context.Background(), model, data, Metropolis{Target: TargetFull{}}, quick(engine)); err == nil || !strings.Contains(err.Error(), "SampleFrom") {
		t.Errorf("shared parameters without a trained posterior: error %v", err)
	}
	trained, err := baseline.Fit(context.Background(), model, baseline.MAP{}, dataset.Parts{Train: data}, baseline.Settings{Epochs: 3, Seed: 2, DType: compute.Float64, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	sampler := Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 5, StepSize: .2}
	fast, err := SampleFrom(context.Background(), trained.Posterior, data, sampler, quick(engine))
	if err != nil {
		t.Fatal(err)
	}
	d := &prepared{bound: trained.Posterior.Bound(), data: data, rows: data.Rows(), standard: trained.Posterior.Features, scaler: trained.Posterior.Target, settings: quick(engine), trained: trained.Posterior}
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	if d.features == nil {
		t.Fatal("the shared layers are not evaluated beforehand")
	}
	d.features = nil
	whole, err := sampler.prepared(data.Rows())
	if err != nil {
		t.Fatal(err)
	}
	problem, kernel, err := whole.problem(d)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := mcmc.Sample(context.Background(), problem, kernel, d.settings.Settings)
	if err != nil {
		t.Fatal(err)
	}
	values, err := compute.Float64s(slow.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "draws", flat(t, fast), values, 1e-9)
	if fast.Acceptance == 0 {
		t.Error("nothing is accepted")
	}
}

// Batches, and after them BatchSize, rise until sigma^2 is below what is asked, or to their caps.
func TestAdapt(t *testing.T) {
	engine := computetest.Go(t)
	data := line(200)
	s := quick(engine)
	s.WarmUp, s.Unscaled = 60, true
	base := Metropolis{Target: TargetFull{}, BatchSize: 5, Batches: 3, Estimate: WithinBatches, StepSize: .03, Noise: 5, MaxBatches: 400}
	for _, c := range []struct {
		name    string
		change  func(m *Metropolis)
		reached bool
		check   func(m Metropolis) bool
		long    bool
	}{
		{"raises M", func(*Metropolis) {}, true, func(m Metropolis) bool { return m.Batches > 3 && m.BatchSize == 5 }, true},
		{"capped", func(m *Metropolis) { m.MaxBatches = 6 }, false, func(m Metropolis) bool { return m.Batches == 6 && m.BatchSize == 5 }, false},
		{"raises n after M", func(m *Metropolis) { m.MaxBatches, m.MaxBatchSize = 4, 200 }, true, func(m Metropolis) bool { return m.Batches == 4 && m.BatchSize > 5 }, false},
		{"one batch: M is of no use", func(m *Metropolis) { m.Estimate, m.MaxBatchSize = OneBatch, 200 }, true, func(m Metropolis) bool { return m.Batches == 3 && m.BatchSize > 5 }, true},
		{"enough", func(m *Metropolis) { m.Noise = 1e6 }, true, func(m Metropolis) bool { return m.Batches == 3 && m.BatchSize == 5 }, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		m := base
		c.change(&m)
		r, err := Sample(context.Background(), bayesianLine(), data, m, s)
		if err != nil && !errors.Is(err, mcmc.ErrStuck) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		last := r.Adapted[len(r.Adapted)-1]
		ran := r.Sampler.(Metropolis)
		if !c.check(ran) || last.Enough != c.reached || last.Batches != ran.Batches || last.BatchSize != ran.BatchSize {
			t.Errorf("%s: ran with M %d and n %d after %+v", c.name, ran.Batches, ran.BatchSize, r.Adapted)
		}
		t.Logf("%s: %+v", c.name, r.Adapted)
	}
}

// Where noise lets nothing pass, the error says so, with the n and M that would do; and with them chains move.
func TestNoiseStopsChains(t *testing.T) {
	engine := computetest.Go(t)
	s := quick(engine)
	s.Draws, s.Unscaled = 400, true
	m := Metropolis{Target: TargetFull{}, BatchSize: 2, Batches: 2, Estimate: WithinBatches, StepSize: 1}
	_, err := Sample(context.Background(), bayesianLine(), line(300), m, s)
	if !errors.Is(err, mcmc.ErrStuck) || !strings.Contains(err.Error(), "Batches (M)") || !strings.Contains(err.Error(), "BatchSize (n)") {
		t.Fatalf("error %v", err)
	}
	for _, c := range []struct {
		m             Metropolis
		wanted, now   float64
		rows          int
		batches, size int
	}{
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: MeanOfBatches}, 1, 8, 1_000_000, 40, 80},
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: OneBatch}, 1, 8, 1_000_000, 5, 80},
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: MeanOfBatches}, 1, 9, 20, 45, 18}, // (1/n - 1/20) = (1/10 - 1/20)/9
	} {
		if batches, size := c.m.toReach(c.wanted, c.now, c.rows); batches != c.batches || size != c.size {
			t.Errorf("%+v: M %d and n %d, want %d and %d", c, batches, size, c.batches, c.size)
		}
	}
}

// A model whose densities overflow is not accepted, and counted.
func TestNonFinite(t *testing.T) {
	data := line(40)
	s := quick(computetest.Go(t))
	s.DType, s.Unscaled = compute.Float32, true
	m := Metropolis{Target: TargetFull{}, BatchSize: 10, Batches: 3, StepSize: 1e25}
	_, err := Sample(context.Background(), bayesianLine(), data, m, s)
	var stuck *mcmc.StuckError
	if !errors.As(err, &stuck) || stuck.NonFinite == 0 || stuck.Accepted != 0 {
		t.Errorf("error %v", err)
	}
}

func TestBadInput(t *testing.T) {
	engine := computetest.Go(t)
	good := Metropolis{Target: TargetFull{}, BatchSize: 5, Batches: 4, StepSize: .1}
	with := func(change func(*Metropolis)) Sampler { m := good; change(&m); return m }
	data := line(30)
	for _, c := range []struct {
		says    string
		sampler Sampler
	}{
		{"BatchSize is 31", with(func(m *Metropolis) { m.BatchSize = 31 })},
		{"BatchSize is -1", with(func(m *Metropolis) { m.BatchSize = -1 })},
		{"Batches is -2", with(func(m *Metropolis) { m.Batches = -2 })},
		{"Batches is 1", with(func(m *Metropolis) { m.Batches = 1 })},
		{"BatchSize is 1", with(func(m *Metropolis) { m.BatchSize, m.Estimate = 1, WithinBatches })},
		{"Metropolis.Target", with(func(m *Metropolis) { m.Target = nil })},
		{"TargetExpected.N is -3", with(func(m *Metropolis) { m.Target = TargetExpected{N: -3} })},
		{"StepSize is -1", with(func(m *Metropolis) { m.StepSize = -1 })},
		{"StepSize is NaN", with(func(m *Metropolis) { m.StepSize = math.NaN() })},
		{"Proposal", with(func(m *Metropolis) { m.Proposal = "jump" })},
		{"Rule", with(func(m *Metropolis) { m.Rule = "lenient" })},
		{"Estimate", with(func(m *Metropolis) { m.Estimate = "median" })},
		{"Noise is -1", with(func(m *Metropolis) { m.Noise = -1 })},
		{"Noise is NaN", with(func(m *Metropolis) { m.Noise = math.NaN() })},
		{"MaxBatches is 2", with(func(m *Metropolis) { m.MaxBatches = 2 })},
		{"MaxBatchSize is 40", with(func(m *Metropolis) { m.MaxBatchSize = 40 })},
		{"StepSize is 0", with(func(m *Metropolis) { m.StepSize = 0 })}, // there is no warm-up
		{"Unadjusted.Target", Unadjusted{Kernel: mcmc.SGLD{StepSize: 1}}},
		{"Unadjusted.Kernel", Unadjusted{Target: TargetFull{}}},
		{"Unadjusted.Kernel", Unadjusted{Target: TargetFull{}, Kernel: mcmc.MALA{StepSize: 1}}},
		{"Unadjusted.BatchSize is 99", Unadjusted{Target: TargetFull{}, BatchSize: 99, Kernel: mcmc.SGLD{StepSize: 1}}},
		{"AllRows.Target", AllRows{Kernel: mcmc.MALA{StepSize: 1}}},
		{"AllRows.Kernel", AllRows{Target: TargetFullData{}}},
		{"TargetTempered.N is 0", AllRows{Target: TargetTempered{}, Kernel: mcmc.MALA{StepSize: 1}}},
		{"no sampler", nil},
	} {
		s := quick(engine)
		s.WarmUp = mcmc.NoWarmUp
		if _, err := Sample(context.Background(), bayesianLine(), data, c.sampler, s); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v does not say %q", err, c.says)
		}
	}
	if _, err := Sample(context.Background(), bayesianLine(), nil, good, quick(engine)); err == nil {
		t.Error("no data: no error")
	}
	if _, err := SampleFrom(context.Background(), nil, data, good, quick(engine)); err == nil {
		t.Error("no posterior: no error")
	}
	classes := bayesianLine()
	classes.Likelihood = bayes.Bernoulli{}
	if _, err := Sample(context.Background(), classes, data, good, quick(engine)); err == nil {
		t.Error("a likelihood for classes with a regression: no error")
	}
	s := quick(engine)
	s.Checkpoint = filepath.Join(t.TempDir(), "missing", "folder", "file")
	if _, err := Sample(context.Background(), bayesianLine(), data, good, s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: error %v", err)
	}
}
