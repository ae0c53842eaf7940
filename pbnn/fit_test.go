package pbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// quick are a few draws of three chains.
var quick = Sampling{Chains: 3, Draws: 20, WarmUp: 10}

// short are the settings of a short run.
func short(t testing.TB) run.Settings {
	return run.Settings{Seed: 5, DType: compute.Float64, Engine: computetest.Go(t)}
}

// with is a sampler of this package with these chains and draws.
func with(s Sampling, of Sampler) Sampler {
	switch m := of.(type) {
	case Metropolis:
		m.Sampling = s
		return m
	case Unadjusted:
		m.Sampling = s
		return m
	case AllRows:
		m.Sampling = s
		return m
	case own:
		m.Sampling = s
		return m
	}
	return of
}

// result is a run's result with its details.
type result struct {
	*fit.Result
	*Details
	chains *mcmc.Details
}

// fitted is a fit that must succeed.
func fitted(t testing.TB, model bayes.Model, m fit.Method, data *dataset.Dataset, s run.Settings) result {
	t.Helper()
	r, d := fittest.Fit[*Details](t, model, m, dataset.Parts{Train: data}, s)
	return result{r, d, fit.Details[*mcmc.Details](r)}
}

// after is a context that ends when it has been asked so many times.
type after struct {
	context.Context
	left *int
}

func (c after) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A result has the target with its n, and what it cost, by the draws and a step.
func TestResult(t *testing.T) {
	data := fittest.Data(60)
	for _, c := range []struct {
		sampler Sampler
		target  Target
		step    float64 // rows a step
	}{
		{Metropolis{Target: TargetExpected{}, BatchSize: 6, Batches: 4, StepSize: .1}, TargetExpected{Points: 6}, 2 * 24},
		{Metropolis{Target: TargetFull{}, Batches: 3, Proposal: Langevin, StepSize: .01}, TargetFull{}, 4 * 3 * 60},
		{Unadjusted{Target: TargetExpected{Points: 9}, BatchSize: 6, Kernel: mcmc.SGLD{StepSize: .01}},
			TargetExpected{Points: 9}, 6},
		{Unadjusted{BatchSize: 6, Kernel: mcmc.SGHMC{LearningRate: 1e-4}}, TargetFull{}, 6},
		{AllRows{Target: TargetTempered{Points: 7}, Kernel: mcmc.MALA{StepSize: .1}}, TargetTempered{Points: 7}, 60},
		{AllRows{Target: TargetFullData{}, Kernel: mcmc.RandomWalkMetropolis{StepSize: .1}}, TargetFullData{}, 60},
		{AllRows{Target: TargetFullData{}, Kernel: mcmc.HMC{StepSize: .01, Steps: 5}}, TargetFullData{}, 5 * 60},
		{AllRows{Target: TargetFullData{}, Kernel: mcmc.SGLD{StepSize: 1e-4}}, TargetFullData{}, 60},
	} {
		r := fitted(t, line, with(quick, c.sampler), data, short(t))
		if got := r.Posterior.Provenance().Algorithm; !strings.Contains(got, c.target.String()) {
			t.Errorf("%T: %q, want of the target %v", c.sampler, got, c.target)
		}
		if power := r.Posterior.Provenance().Power(); power != c.target.EffectivePoints(60)/60 {
			t.Errorf("%T: the posterior's likelihood has the power %v, that of %v is another", c.sampler, power, c.target)
		}
		if got, want := r.chains.Evaluations, evaluations(r); got != want {
			t.Errorf("%T: evaluations %+v, want %+v", c.sampler, got, want)
		}
		passes := 20 * c.step / 60
		if math.Abs(r.RowsPerStep-c.step) > 1e-9 || math.Abs(r.Passes-passes) > 1e-9 {
			t.Errorf("%T: %v rows a step, %v passes; want %v and %v", c.sampler, r.RowsPerStep, r.Passes, c.step, passes)
		}
		if _, noisy := c.sampler.(Metropolis); (r.Noise > 0) != noisy {
			t.Errorf("%T: sigma^2 %v", c.sampler, r.Noise)
		}
	}
}

// evaluations are those that a result must count: a transition by mini-batches takes the log-densities at two places,
// and Langevin's two gradients; kernels that judge by all rows count passes.
func evaluations(r result) mcmc.Evaluations {
	transitions, gradients := 0, 0
	for _, c := range r.chains.Stats {
		transitions, gradients = transitions+c.Transitions, gradients+c.Gradients
	}
	switch s := r.Sampler.(type) {
	case Metropolis:
		e := mcmc.Evaluations{Partial: 2 * transitions, PartialShare: float64(s.BatchSize*s.Batches) / 60}
		if s.Proposal == Langevin {
			e.PartialGradients = 2 * transitions
		}
		return e
	case Unadjusted:
		return mcmc.Evaluations{PartialGradients: transitions, PartialShare: float64(s.BatchSize) / 60}
	case AllRows:
		if s.Kernel == (mcmc.Kernel)(mcmc.RandomWalkMetropolis{StepSize: .1}) {
			return mcmc.Evaluations{Full: transitions}
		}
	}
	return mcmc.Evaluations{FullGradients: gradients}
}

// The last layer only: the shared layers' features, computed once, give the same draws as the rows sent through them at
// each step would.
func TestPartialNetwork(t *testing.T) {
	data := fittest.Data(80)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{6}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(2)}
	_, err := fit.Fit(t.Context(), model, Metropolis{}, dataset.Parts{Train: data}, short(t))
	computetest.WantError(t, "shared parameters without a trained posterior", err, "fit.From")
	trained := fitted(t, model, baseline.MAP{Training: baseline.Training{Epochs: 3}}, data, short(t))
	sampler := Metropolis{Sampling: quick, Target: TargetExpected{}, BatchSize: 10, Batches: 5, StepSize: .2}
	fast := fitted(t, bayes.Model{}, fit.From{Trained: trained.Posterior, Method: sampler}, data, short(t))
	if b := fast.Posterior.Provenance().Before; b == nil || b.Algorithm != trained.Posterior.Provenance().Algorithm {
		t.Errorf("provenance %+v lacks the training", fast.Posterior.Provenance())
	}
	slow := fitted(t, bayes.Model{}, fit.From{Trained: trained.Posterior, Method: wholeRows{sampler}}, data, short(t))
	computetest.Near(t, "draws", fittest.Numbers(t, fast.Posterior), fittest.Numbers(t, slow.Posterior), 1e-9)
	if fast.Acceptance == 0 {
		t.Error("nothing is accepted")
	}
}

// wholeRows sends each row through the shared layers too, at each move.
type wholeRows struct{ Metropolis }

func (w wholeRows) Prepare(j *fit.Job) (fit.Method, error) {
	m, err := w.Metropolis.Prepare(j)
	if err == nil {
		w.Metropolis = m.(Metropolis)
	}
	return w, err
}

func (w wholeRows) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, w, w.Target)
}

func (w wholeRows) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, kernel, err := w.Metropolis.Problem(d)
	if err != nil {
		return problem, kernel, err
	}
	if problem.Data["features"] == nil {
		return problem, kernel, errors.New("the shared layers are not evaluated beforehand")
	}
	delete(problem.Data, "features")
	problem.Data["x"], _, _, err = d.tensors()
	return problem, kernel, err
}

// Batches, and after them BatchSize, rise until sigma^2 is below what is asked, or to their caps.
func TestAdapt(t *testing.T) {
	data, base := fittest.Data(100), Metropolis{
		Sampling: Sampling{Chains: 3, Draws: 20, WarmUp: 30}, BatchSize: 5, Batches: 3, Estimate: WithinBatches,
		StepSize: .03, Noise: 1, MaxBatches: 400,
	}
	for _, c := range []struct {
		name    string
		change  func(m *Metropolis)
		reached bool
		check   func(m Metropolis) bool
		long    bool
	}{
		{"raises M", func(*Metropolis) {}, true, func(m Metropolis) bool { return m.Batches > 3 && m.BatchSize == 5 }, true},
		{"capped", func(m *Metropolis) { m.MaxBatches = 4 }, false,
			func(m Metropolis) bool { return m.Batches == 4 && m.BatchSize == 5 }, false},
		{"raises n after M", func(m *Metropolis) { m.MaxBatches, m.MaxBatchSize = 4, 100 }, true,
			func(m Metropolis) bool { return m.Batches == 4 && m.BatchSize > 5 }, false},
		{"one batch: M is of no use", func(m *Metropolis) { m.Estimate, m.MaxBatchSize = OneBatch, 100 }, true,
			func(m Metropolis) bool { return m.Batches == 3 && m.BatchSize > 5 }, true},
		{"enough", func(m *Metropolis) { m.Noise = 1e6 }, true,
			func(m Metropolis) bool { return m.Batches == 3 && m.BatchSize == 5 }, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		m := base
		c.change(&m)
		r := fitted(t, fittest.Raw(line), m, data, short(t))
		last := r.Adapted[len(r.Adapted)-1]
		ran := r.Sampler.(Metropolis)
		if !c.check(ran) || (last.Noise <= m.Noise) != c.reached || last.Batches != ran.Batches ||
			last.BatchSize != ran.BatchSize {
			t.Errorf("%s: ran with M %d and n %d after %+v", c.name, ran.Batches, ran.BatchSize, r.Adapted)
		}
		t.Logf("%s: %+v", c.name, r.Adapted)
	}
}

// Wherever a run that adapts is cancelled, in a trial too, it goes on from its checkpoints to the same end: half a
// trial chooses nothing, and none is made again.
func TestAdaptResumes(t *testing.T) {
	s, data := short(t), dataset.Parts{Train: fittest.Data(200)}
	m := Metropolis{
		Sampling: quick, BatchSize: 5, Batches: 3, Estimate: WithinBatches, StepSize: .03, Noise: 9, MaxBatches: 400,
	}
	whole := fitted(t, line, m, data.Train, s)
	if len(whole.Adapted) < 2 {
		t.Fatalf("trials %+v: nothing is adapted", whole.Adapted)
	}
	for moves := 25; moves < 800; moves += 230 { // the trials of 200 steps uphill and 60 moves, and the run after them
		s.Checkpoint = filepath.Join(t.TempDir(), "chains")
		left := moves
		part, err := fit.Fit(after{t.Context(), &left}, line, m, data, s)
		if err == nil && part.Status != run.Cancelled || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d: error %v", moves, err)
		}
		resumed := fitted(t, line, m, data.Train, s)
		if !slices.Equal(fittest.Numbers(t, whole.Posterior), fittest.Numbers(t, resumed.Posterior)) ||
			!slices.Equal(whole.Adapted, resumed.Adapted) {
			t.Errorf("cancelled after %d: resumed after the trials %+v, whole after %+v", moves, resumed.Adapted, whole.Adapted)
		}
	}
	for number := range whole.Adapted {
		if _, err := os.Stat(fmt.Sprint(s.Checkpoint, ".trial", number+1)); err != nil {
			t.Errorf("trial %d is not kept: %v", number+1, err)
		}
	}
}

// A second run of a sampler, with another seed and other rows of the same number, compiles nothing; with other
// mini-batches it does.
func TestProgramsAreKept(t *testing.T) {
	s := short(t)
	for _, c := range []struct{ sampler, other Sampler }{
		{Metropolis{BatchSize: 6, StepSize: .1}, Metropolis{BatchSize: 7, StepSize: .1}},
		{AllRows{Kernel: mcmc.MALA{StepSize: .1}},
			AllRows{Target: TargetTempered{Points: 3}, Kernel: mcmc.MALA{StepSize: .1}}},
	} {
		var compiled []int
		for i, sampler := range []Sampler{c.sampler, c.sampler, c.other} {
			s.Seed = uint64(i)
			data := fittest.Data(30)
			data.Y[0] = float64(i)
			fitted(t, line, with(quick, sampler), data, s)
			compiled = append(compiled, s.Engine.Compiled())
		}
		if compiled[1] != compiled[0] || compiled[2] == compiled[1] {
			t.Errorf("%T: %d programs compiled", c.sampler, compiled)
		}
	}
}

// Where noise lets nothing pass, the error states the n and M that would do; and with them chains move.
func TestNoiseStopsChains(t *testing.T) {
	data := dataset.Parts{Train: fittest.Data(100)}
	m := Metropolis{Sampling: Sampling{Chains: 3, Draws: 100, WarmUp: 10}, BatchSize: 2, Batches: 2,
		Estimate: WithinBatches, StepSize: 1}
	_, err := fit.Fit(t.Context(), fittest.Raw(line), m, data, short(t))
	computetest.WantError(t, "loud", err, "sigma^2 of")
	advice := regexp.MustCompile(`Batches \(M\) (\d+) instead of 2, or with BatchSize \(n\) (\d+) instead of 2`)
	found := advice.FindStringSubmatch(err.Error())
	if len(found) != 3 || !errors.Is(err, mcmc.ErrStuck) {
		t.Fatalf("error %v", err)
	}
	size, _ := strconv.Atoi(found[2])
	if size <= 2 || size > 100 {
		t.Fatalf("error %v", err)
	}
	// At the step that stopped them no noise would be small enough for an acceptance.
	m.BatchSize, m.StepSize, m.Draws = size, .05, 50
	if r := fitted(t, fittest.Raw(line), m, data.Train, short(t)); r.Noise > acceptableNoise {
		t.Errorf("with n %d: sigma^2 %v", size, r.Noise)
	}
	stuck := &mcmc.StuckError{Noise: 50, StepSize: 1}
	err = explain(stuck, Metropolis{BatchSize: 10, Batches: 5, Estimate: OneBatch}, 100)
	if computetest.WantError(t, "OneBatch", err, "with BatchSize (n)"); strings.Contains(err.Error(), "Batches (M)") {
		t.Errorf("more batches do not help OneBatch: error %v", err)
	}
	for _, c := range []struct {
		m             Metropolis
		now           float64
		rows          int
		batches, size int
	}{
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: MeanOfBatches}, 8, 1_000_000, 40, 80},
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: OneBatch}, 8, 1_000_000, 5, 80},
		{Metropolis{BatchSize: 10, Batches: 5, Estimate: MeanOfBatches}, 9, 20, 45, 18}, // (1/n - 1/20) = (1/10 - 1/20)/9
	} {
		if batches, size := c.m.sizeFor(1, c.now, c.rows); batches != c.batches || size != c.size {
			t.Errorf("%+v: M %d and n %d, want %d and %d", c, batches, size, c.batches, c.size)
		}
	}
}

// Proposals where densities overflow are not accepted, and counted.
func TestNonFinite(t *testing.T) {
	s := short(t)
	s.DType = compute.Float32
	_, err := fit.Fit(t.Context(), fittest.Raw(line),
		Metropolis{Sampling: quick, BatchSize: 10, Batches: 3, StepSize: 1e25}, dataset.Parts{Train: fittest.Data(40)}, s)
	if !errors.Is(err, mcmc.ErrStuck) || strings.Contains(err.Error(), " 0 proposals were not finite") {
		t.Errorf("error %v", err)
	}
}

// A setting that is wrong is an error that names it and its value, before anything runs.
func TestRefusedSettings(t *testing.T) {
	of := func(change func(*Metropolis)) Sampler {
		m := Metropolis{BatchSize: 5, Batches: 4, StepSize: .1}
		change(&m)
		return m
	}
	for words, sampler := range map[string]Sampler{
		"BatchSize is 31":                      of(func(m *Metropolis) { m.BatchSize = 31 }),
		"Batches is 1":                         of(func(m *Metropolis) { m.Batches = 1 }),
		"BatchSize is 1":                       of(func(m *Metropolis) { m.BatchSize, m.Estimate = 1, WithinBatches }),
		"TargetExpected.EffectivePoints is -3": of(func(m *Metropolis) { m.Target = TargetExpected{Points: -3} }),
		"StepSize is NaN":                      of(func(m *Metropolis) { m.StepSize = math.NaN() }),
		"StepSize is 0":                        of(func(m *Metropolis) { m.StepSize = 0 }), // there is no warm-up
		`Proposal is jump: it must be "`:       of(func(m *Metropolis) { m.Proposal = "jump" }),
		`Rule is lenient: it must be "`:        of(func(m *Metropolis) { m.Rule = "lenient" }),
		`Estimate is median: it must`:          of(func(m *Metropolis) { m.Estimate = "median" }),
		"Noise is NaN":                         of(func(m *Metropolis) { m.Noise = math.NaN() }),
		"MaxBatches is 2":                      of(func(m *Metropolis) { m.MaxBatches = 2 }),
		"MaxBatchSize is 40":                   of(func(m *Metropolis) { m.MaxBatchSize = 40 }),
		"Unadjusted.BatchSize is 99":           Unadjusted{BatchSize: 99, Kernel: mcmc.SGLD{StepSize: 1}},
		"Unadjusted.Kernel is <nil>":           Unadjusted{},
		"Unadjusted.Kernel is mcmc.MALA: it must take every step":  Unadjusted{Kernel: mcmc.MALA{StepSize: 1}},
		"pbnn.Unadjusted never sees the data: its kernel, mcmc.Ra": Unadjusted{Kernel: mcmc.RandomWalk{}},
		"pbnn.AllRows never sees the data":                         AllRows{Kernel: mcmc.RandomWalk{}},
		"AllRows.Kernel is not set":                                AllRows{},
		"TargetTempered.EffectivePoints is 0":                      AllRows{Target: TargetTempered{}, Kernel: mcmc.MALA{}},
	} {
		sampler = with(Sampling{Chains: 3, Draws: 20, WarmUp: mcmc.NoWarmUp}, sampler)
		_, err := fit.Fit(t.Context(), line, sampler, dataset.Parts{Train: fittest.Data(30)}, short(t))
		computetest.WantError(t, words, err, words)
	}
}

// What is 0 is what the settings' comments state.
func TestDefaults(t *testing.T) {
	for sampler, want := range map[Sampler]Sampler{
		Metropolis{Target: TargetExpected{}, StepSize: .1}: Metropolis{Target: TargetExpected{Points: 12}, BatchSize: 12,
			Batches: 10, Proposal: randomWalk, Estimate: MeanOfBatches, Rule: Corrected, StepSize: .1, MaxBatches: 100,
			MaxBatchSize: 12},
		Unadjusted{Kernel: mcmc.SGLD{StepSize: .01}}: Unadjusted{Target: TargetFull{}, BatchSize: 12,
			Kernel: mcmc.SGLD{StepSize: .01}},
		AllRows{Kernel: mcmc.HMC{StepSize: .01}}: AllRows{Target: TargetFullData{}, Kernel: mcmc.HMC{StepSize: .01}},
	} {
		r := fitted(t, line, with(Sampling{Chains: 3, Draws: 2, WarmUp: 1}, sampler), fittest.Data(12), short(t))
		if want = with(Sampling{3, 2, 1, 1}, want); r.Sampler != want {
			t.Errorf("%+v ran as %+v, want %+v", sampler, r.Sampler, want)
		}
	}
}
