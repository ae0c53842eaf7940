package pbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// quick are settings of a short run.
func quick(engine *compute.Engine) Settings {
	return Settings{Chains: 3, Draws: 20, WarmUp: 10, Seed: 5, DType: compute.Float64,
		Engine: engine}
}

// says is whether an error is there and has the words.
func says(err error, words string) bool { return err != nil && strings.Contains(err.Error(), words) }

// fitLine is Fit of bayesianLine.
func fitLine(sampler Sampler, data *dataset.Dataset, s Settings) (*Result, error) {
	return Fit(context.Background(), bayesianLine(), sampler, dataset.Parts{Train: data}, s)
}

func flat(t *testing.T, r *Result) []float64 {
	t.Helper()
	values, err := compute.Float64s(r.Chains.Draws.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	return values
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

// A result says what it is of: the target with its n, the sampler as it ran, what it cost, by the draws and a step.
func TestResult(t *testing.T) {
	engine := computetest.Go(t)
	data := line(60)
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
		{AllRows{Target: TargetFullData{}, Kernel: mcmc.ULA{StepSize: .01}}, TargetFullData{}, 60},
	} {
		r, err := fitLine(c.sampler, data, quick(engine))
		if err != nil {
			t.Fatal(err)
		}
		if r.Target() != c.target || !strings.Contains(r.Posterior.Provenance().Algorithm, c.target.String()) {
			t.Errorf("%T: target %v, %q; want %v", c.sampler, r.Target(), r.Posterior.Provenance().Algorithm, c.target)
		}
		if power := r.Posterior.Provenance().Power(); power != c.target.EffectivePoints(60)/60 {
			t.Errorf("%T: the posterior's likelihood has the power %v, that of %v is another", c.sampler, power, c.target)
		}
		if got, want := r.Chains.Evaluations, evaluations(r); got != want {
			t.Errorf("%T: evaluations %+v, want %+v", c.sampler, got, want)
		}
		passes := 20 * c.step / 60
		if math.Abs(r.RowsPerStep-c.step) > 1e-9 || math.Abs(r.Passes-passes) > 1e-9 {
			t.Errorf("%T: %v rows a step, %v passes; want %v and %v", c.sampler, r.RowsPerStep, r.Passes, c.step, passes)
		}
		if _, noisy := c.sampler.(Metropolis); (r.Noise > 0) != noisy {
			t.Errorf("%T: sigma^2 %v", c.sampler, r.Noise)
		}
		_, err = r.Posterior.Predict(context.Background(), data.X)
		if err != nil {
			t.Errorf("%T: prediction: %v", c.sampler, err)
		}
	}
}

// evaluations are those that a result must count: a transition by mini-batches takes the log-densities at two places,
// and Langevin's two gradients; of kernels that judge by all rows the numbers of passes say it.
func evaluations(r *Result) mcmc.Evaluations {
	transitions, gradients := 0, 0
	for _, c := range r.Chains.Stats {
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
	engine := computetest.Go(t)
	data := line(80)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{6}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(2)}
	if _, err := Fit(context.Background(), model, Metropolis{Target: TargetFull{}}, dataset.Parts{Train: data},
		quick(engine)); !says(err, "fit.From") {
		t.Errorf("shared parameters without a trained posterior: error %v", err)
	}
	trained, err := fit.Fit(context.Background(), model, baseline.MAP{Training: baseline.Training{Epochs: 3}},
		dataset.Parts{Train: data}, run.Settings{Seed: 2, DType: compute.Float64, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	sampler := Metropolis{Target: TargetExpected{}, BatchSize: 10, Batches: 5, StepSize: .2}
	fast, err := FitFrom(context.Background(), trained.Posterior, sampler, dataset.Parts{Train: data}, quick(engine))
	if err != nil {
		t.Fatal(err)
	}
	from := fast.Posterior.Provenance()
	if b := from.Before; b == nil || b.Algorithm != trained.Posterior.Provenance().Algorithm ||
		!strings.HasPrefix(from.Algorithm, "pbnn") {
		t.Errorf("provenance %+v does not say where the shared parameters came from", from)
	}
	if r := fast.Posterior; r.Chains() != fast.Chains.Draws.Chains || r.Evidence().Known() {
		t.Errorf("%d chains, evidence %v", r.Chains(), r.Evidence())
	}
	slow, err := FitFrom(context.Background(), trained.Posterior, wholeRows{sampler}, dataset.Parts{Train: data},
		quick(engine))
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "draws", flat(t, fast), flat(t, slow), 1e-9)
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
	engine := computetest.Go(t)
	data := line(100)
	s := quick(engine)
	s.WarmUp = 30
	base := Metropolis{Target: TargetFull{}, BatchSize: 5, Batches: 3, Estimate: WithinBatches, StepSize: .03, Noise: 1,
		MaxBatches: 400}
	for _, c := range []struct {
		name    string
		change  func(m *Metropolis)
		reached bool
		check   func(m Metropolis) bool
		long    bool
	}{
		{"raises M", func(*Metropolis) {}, true, func(m Metropolis) bool { return m.Batches > 3 && m.BatchSize == 5 }, true},
		{"capped", func(m *Metropolis) { m.MaxBatches = 6 }, false,
			func(m Metropolis) bool { return m.Batches == 6 && m.BatchSize == 5 }, false},
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
		r, err := Fit(context.Background(), asItIs(bayesianLine()), m, dataset.Parts{Train: data}, s)
		if err != nil && !errors.Is(err, mcmc.ErrStuck) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
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
	s := quick(computetest.Go(t))
	m := Metropolis{
		Target: TargetFull{}, BatchSize: 5, Batches: 3, Estimate: WithinBatches, StepSize: .03, Noise: 9, MaxBatches: 400,
	}
	whole, err := fitLine(m, line(200), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Adapted) < 2 {
		t.Fatalf("trials %+v: nothing is adapted", whole.Adapted)
	}
	for moves := 25; moves < 800; moves += 230 { // the trials of 200 steps uphill and 60 moves, and the run after them
		s.Checkpoint = filepath.Join(t.TempDir(), "chains")
		left := moves
		part, err := Fit(after{context.Background(), &left}, bayesianLine(), m, dataset.Parts{Train: line(200)}, s)
		if err == nil && part.Status != run.Cancelled || err != nil && !says(err, "cancelled in a trial") &&
			!says(err, "ended before all chains had a draw") {
			t.Errorf("cancelled after %d: error %v", moves, err)
		}
		resumed, err := fitLine(m, line(200), s)
		if err != nil {
			t.Errorf("cancelled after %d: %v", moves, err)
			continue
		}
		if !slices.Equal(flat(t, whole), flat(t, resumed)) || !slices.Equal(whole.Adapted, resumed.Adapted) {
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
	s := quick(computetest.Go(t))
	for _, c := range []struct{ sampler, other Sampler }{
		{Metropolis{BatchSize: 6, StepSize: .1}, Metropolis{BatchSize: 7, StepSize: .1}},
		{AllRows{Kernel: mcmc.MALA{StepSize: .1}},
			AllRows{Target: TargetTempered{Points: 3}, Kernel: mcmc.MALA{StepSize: .1}}},
	} {
		var compiled []int
		for i, sampler := range []Sampler{c.sampler, c.sampler, c.other} {
			s.Seed = uint64(i)
			data := line(30)
			data.Y[0] = float64(i)
			if _, err := fitLine(sampler, data, s); err != nil {
				t.Fatal(err)
			}
			compiled = append(compiled, s.Engine.Compiled())
		}
		if compiled[1] != compiled[0] || compiled[2] == compiled[1] {
			t.Errorf("%T: %d programs compiled", c.sampler, compiled)
		}
	}
}

// Twenty draws of a random walk are none of the posterior, and the result says so; those of a kernel that moves far
// are, as the exact posterior says elsewhere.
func TestWarnsOfChainsApart(t *testing.T) {
	const words = "the 3 chains disagree on predictions"
	settings := quick(computetest.Go(t))
	data := line(40)
	for _, c := range []struct {
		draws int
		walk  Sampler
		warns bool
	}{
		{20, Metropolis{Target: TargetFull{}, StepSize: 1e-3}, true},
		{200, AllRows{Target: TargetFullData{}, Kernel: mcmc.HMC{StepSize: .03, Steps: 5}}, false},
	} {
		settings.Draws, settings.WarmUp = c.draws, 10
		r, err := fitLine(c.walk, data, settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Warnings, "\n"); strings.Contains(got, words) != c.warns {
			t.Errorf("%T: warnings %q", c.walk, got)
		}
	}
}
