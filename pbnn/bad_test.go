package pbnn

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/mat"
)

// Where noise lets nothing pass, the error says so, with the n and M that would do; and with them chains move.
func TestNoiseStopsChains(t *testing.T) {
	engine := computetest.Go(t)
	s := quick(engine)
	s.Draws = 100
	m := Metropolis{Target: TargetFull{}, BatchSize: 2, Batches: 2, Estimate: WithinBatches, StepSize: 1}
	_, err := Fit(context.Background(), asItIs(bayesianLine()), m, dataset.Parts{Train: line(100)}, s)
	var batches, size int
	if errors.Is(err, mcmc.ErrStuck) {
		advice := regexp.MustCompile(`Batches \(M\) (\d+) instead of 2, or with BatchSize \(n\) (\d+) instead of 2`)
		said := advice.FindStringSubmatch(err.Error())
		if len(said) == 3 {
			batches, _ = strconv.Atoi(said[1])
			size, _ = strconv.Atoi(said[2])
		}
	}
	if batches <= 2 || size <= 2 || size > 100 || !says(err, "sigma^2 of") {
		t.Fatalf("error %v", err)
	}
	stuck := &mcmc.StuckError{Noise: 50, StepSize: 1}
	err = explain(stuck, Metropolis{BatchSize: 10, Batches: 5, Estimate: OneBatch}, 100)
	if !says(err, "with BatchSize (n)") || says(err, "Batches (M)") {
		t.Errorf("more batches do not help OneBatch: error %v", err)
	}
	m.BatchSize, m.StepSize = size, .05 // at the step that stopped them no noise would be small enough for an acceptance
	s.Draws = 50
	if r, err := Fit(context.Background(), asItIs(bayesianLine()), m, dataset.Parts{Train: line(100)}, s); err != nil ||
		r.Noise > acceptableNoise {
		t.Errorf("with n %d: error %v", size, err)
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
		if batches, size := c.m.sizeFor(c.wanted, c.now, c.rows); batches != c.batches || size != c.size {
			t.Errorf("%+v: M %d and n %d, want %d and %d", c, batches, size, c.batches, c.size)
		}
	}
}

// A model whose densities overflow is not accepted, and counted.
func TestNonFinite(t *testing.T) {
	data := line(40)
	s := quick(computetest.Go(t))
	s.DType = compute.Float32
	m := Metropolis{Target: TargetFull{}, BatchSize: 10, Batches: 3, StepSize: 1e25}
	_, err := Fit(context.Background(), asItIs(bayesianLine()), m, dataset.Parts{Train: data}, s)
	var stuck *mcmc.StuckError
	if !errors.As(err, &stuck) || stuck.NonFinite == 0 || stuck.Accepted != 0 {
		t.Errorf("error %v", err)
	}
}

// badData are data that nothing can be sampled with, by what the error must say.
func badData(t *testing.T) map[string]*dataset.Dataset {
	with := func(change func(d *dataset.Dataset)) *dataset.Dataset {
		d := line(30)
		change(d)
		return d
	}
	return map[string]*dataset.Dataset{
		"data":                                   nil,
		"[0, 0]: there must be at least one row": with(func(d *dataset.Dataset) { d.X, d.Y = &mat.Dense{}, nil }),
		"NaN":                                    with(func(d *dataset.Dataset) { d.X.(*mat.Dense).Set(7, 1, math.NaN()) }),
		"row 9":                                  with(func(d *dataset.Dataset) { d.Y[9] = math.NaN() }),
		"+Inf":                                   with(func(d *dataset.Dataset) { d.Y[11] = math.Inf(1) }),
		"one target a row":                       with(func(d *dataset.Dataset) { d.Y = d.Y[1:] }),
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
		{"TargetExpected.Points is -3", with(func(m *Metropolis) { m.Target = TargetExpected{Points: -3} })},
		{"StepSize is -1", with(func(m *Metropolis) { m.StepSize = -1 })},
		{"StepSize is NaN", with(func(m *Metropolis) { m.StepSize = math.NaN() })},
		{`Proposal is jump: it must be "random walk" or "Langevin"`, with(func(m *Metropolis) { m.Proposal = "jump" })},
		{`Rule is lenient: it must be "penalty, corrected`, with(func(m *Metropolis) { m.Rule = "lenient" })},
		{`Estimate is median: it must be "mean of batches", "one`, with(func(m *Metropolis) { m.Estimate = "median" })},
		{"Noise is -1", with(func(m *Metropolis) { m.Noise = -1 })},
		{"Noise is NaN", with(func(m *Metropolis) { m.Noise = math.NaN() })},
		{"MaxBatches is 2", with(func(m *Metropolis) { m.MaxBatches = 2 })},
		{"MaxBatchSize is 40", with(func(m *Metropolis) { m.MaxBatchSize = 40 })},
		{"StepSize is 0", with(func(m *Metropolis) { m.StepSize = 0 })}, // there is no warm-up
		{"Unadjusted.BatchSize is -1", Unadjusted{Target: TargetFull{}, BatchSize: -1, Kernel: mcmc.SGLD{StepSize: 1}}},
		{"Unadjusted.Kernel is <nil>", Unadjusted{Target: TargetFull{}}},
		{"Unadjusted.Kernel is mcmc.MALA: it must take every step",
			Unadjusted{Target: TargetFull{}, Kernel: mcmc.MALA{StepSize: 1}}},
		{"pbnn.Unadjusted never sees the data: its kernel, mcmc.RandomWalk, does not ask",
			Unadjusted{Target: TargetFull{}, Kernel: mcmc.RandomWalk{}}},
		{"pbnn.Unadjusted never sees the data: its kernel, mcmc.OrnsteinUhlenbeck",
			Unadjusted{Target: TargetFull{}, Kernel: mcmc.OrnsteinUhlenbeck{}}},
		{"pbnn.AllRows never sees the data", AllRows{Target: TargetFullData{}, Kernel: mcmc.RandomWalk{}}},
		{"Unadjusted.BatchSize is 99", Unadjusted{Target: TargetFull{}, BatchSize: 99, Kernel: mcmc.SGLD{StepSize: 1}}},
		{"AllRows.Kernel is not set", AllRows{Target: TargetFullData{}}},
		{"TargetTempered.Points is 0", AllRows{Target: TargetTempered{}, Kernel: mcmc.MALA{StepSize: 1}}},
	} {
		s := quick(engine)
		s.WarmUp = mcmc.NoWarmUp
		if _, err := fitLine(c.sampler, data, s); !says(err, c.says) {
			t.Errorf("error %v does not say %q", err, c.says)
		}
	}
	for words, data := range badData(t) {
		for _, sampler := range []Sampler{
			good,
			Unadjusted{Target: TargetFull{}, Kernel: mcmc.SGLD{StepSize: 1}},
			AllRows{Target: TargetFullData{}, Kernel: mcmc.MALA{}},
		} {
			if _, err := fitLine(sampler, data, quick(engine)); !says(err, words) {
				t.Errorf("%T: error %v does not say %q", sampler, err, words)
			}
		}
	}
	_, err := FitFrom(context.Background(), nil, good, dataset.Parts{Train: data}, quick(engine))
	if !says(err, "there is no trained posterior") {
		t.Errorf("no posterior: error %v", err)
	}
	classes := bayesianLine()
	classes.Likelihood = bayes.Bernoulli{}
	_, err = Fit(context.Background(), classes, good, dataset.Parts{Train: data}, quick(engine))
	if !says(err, "likelihood bayes.Bernoulli is for binary classification") || !says(err, `"line" is for regression`) {
		t.Errorf("a likelihood for classes with a regression: error %v", err)
	}
	learnt := bayesianLine()
	learnt.Likelihood = bayes.Gaussian{Learn: true}
	_, err = Fit(context.Background(), learnt, good, dataset.Parts{Train: data}, quick(engine))
	if err != nil {
		t.Errorf("a learnt noise, which is sampled too: error %v", err)
	}
	s := quick(engine)
	s.Checkpoint = filepath.Join(t.TempDir(), "missing", "folder", "file")
	if _, err := fitLine(good, data, s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: error %v", err)
	}
}

// What is 0 is what the settings' comments say, and is told.
func TestDefaults(t *testing.T) {
	for _, c := range []struct{ sampler, want Sampler }{
		{
			Metropolis{Target: TargetExpected{}, StepSize: .1},
			Metropolis{Target: TargetExpected{Points: 12}, BatchSize: 12, Batches: 10, Proposal: RandomWalk,
				Estimate: MeanOfBatches, Rule: Corrected, StepSize: .1, MaxBatches: 100, MaxBatchSize: 12},
		},
		{Unadjusted{Kernel: mcmc.SGLD{StepSize: .01}},
			Unadjusted{Target: TargetFull{}, BatchSize: 12, Kernel: mcmc.SGLD{StepSize: .01}}},
		{AllRows{Kernel: mcmc.HMC{StepSize: .01}},
			AllRows{Target: TargetFullData{}, Kernel: mcmc.HMC{StepSize: .01}}},
	} {
		s := quick(computetest.Go(t))
		s.Draws, s.WarmUp = 2, 1
		r, err := fitLine(c.sampler, line(12), s)
		if err != nil {
			t.Fatal(err)
		}
		want := Settings{Chains: 3, Draws: 2, Thin: 1, WarmUp: 1}.with(c.want)
		if r.Sampler != want {
			t.Errorf("%+v ran as %+v, want %+v", c.sampler, r.Sampler, want)
		}
	}
}
