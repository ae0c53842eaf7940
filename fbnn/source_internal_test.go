package fbnn

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
)

// some are rows of a task, three features and two targets or classes.
func some(task bayes.Task, rows, classes int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(5, 7))
	d := &dataset.Dataset{Name: "some", Task: task, X: mat.NewDense(rows, 3, nil), Features: []string{"a", "b", "c"}}
	for i := range rows {
		d.X.SetRow(i, []float64{2 * rng.NormFloat64(), rng.NormFloat64() + 3, rng.NormFloat64()})
		if task == bayes.Regression {
			d.Y = append(d.Y, d.X.At(i, 0)+rng.NormFloat64(), d.X.At(i, 1)-rng.NormFloat64())
		} else {
			d.Y = append(d.Y, float64(i%classes))
		}
	}
	if d.Targets = []string{"u", "v"}; task != bayes.Regression {
		d.Targets, d.Target, d.Classes = nil, "y", []string{"p", "q", "r"}[:classes]
	}
	return d
}

// From the same pairs a source that is read in blocks of 9 rows, of which the last has 4, gives the draws of the same
// rows in memory, bit by bit, and the same emulator, Phi, gradients, step and scores, to rounding.
func TestSourceAsInMemory(t *testing.T) {
	const rows = 40
	engine := computetest.Go(t)
	pcn := mcmc.PreconditionedCrankNicolson{}
	for name, c := range map[string]struct {
		likelihood bayes.Likelihood
		task       bayes.Task
		classes    int
		a          CES
	}{
		"outputs":        {bayes.Gaussian{StdDev: .5}, bayes.Regression, 0, CES{}},
		"learnt noise":   {bayes.Gaussian{Learn: true}, bayes.Regression, 0, CES{Emulates: LogLikelihood}},
		"two classes":    {bayes.Bernoulli{}, bayes.BinaryClassification, 2, CES{Emulates: LogLikelihood}},
		"three classes":  {bayes.Categorical{}, bayes.Classification, 3, CES{Chains: 3, Emulates: LogLikelihood}},
		"HMC's own step": {bayes.Gaussian{StdDev: .5}, bayes.Regression, 0, CES{Sampling: mcmc.HMC{Steps: 2}}},
		"uncorrected":    {bayes.Gaussian{StdDev: .5}, bayes.Regression, 0, CES{Uncorrected: true}},
	} {
		t.Run(name, func(t *testing.T) {
			model := bayes.Model{
				Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: c.likelihood,
				Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
			}
			ReadAtOnce(t, 9)
			settings := Settings{Engine: engine, DType: compute.Float64, Seed: 3}
			settings, err := settings.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			data := some(c.task, rows, c.classes)
			whole, err := newJob(model, dataset.Parts{Train: data}, settings)
			if err != nil {
				t.Fatal(err)
			}
			streamed, err := fit.Streamed("fbnn", model, dataset.RowsOf(data))
			if err != nil {
				t.Fatal(err)
			}
			if streamed, err = streamed.Examined(t.Context(), 9, nil); err != nil {
				t.Fatal(err)
			}
			inBlocks, err := newSourceJob(streamed, settings)
			if err != nil {
				t.Fatal(err)
			}
			c.a.Pairs, c.a.PairsThin, c.a.PairsWarmUp, c.a.Draws, c.a.Regressor = 60, 2, 100, 100, Linear{}
			c.a.BatchSize = 9
			if c.a.Sampling == nil {
				c.a.Sampling = pcn
			}
			var runs []*ces
			for _, job := range []*Job{whole, inBlocks} {
				prepared, err := c.a.Prepare(job)
				if err != nil {
					t.Fatal(err)
				}
				job.algorithm = prepared
				r := &ces{CES: prepared.(CES), Job: job, result: &Result{SecondStage: math.NaN()}}
				runs = append(runs, r)
				if r.truth, err = newEvaluator(job, job.Problem); err != nil {
					t.Fatal(err)
				}
				defer r.truth.Close()
				if len(runs) == 1 {
					if err := r.calibrate(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else { // from the same pairs, with Phi of its own
					r.result.Calibration, r.result.Pairs = runs[0].result.Calibration, runs[0].result.Pairs
					phi, err := r.truth.potential(t.Context(), runs[0].pairs.theta)
					if err != nil {
						t.Fatal(err)
					}
					if r.pairs, err = newPairs(runs[0].pairs.theta, phi); err != nil {
						t.Fatal(err)
					}
					near(t, "Phi of the pairs", phi, runs[0].pairs.phi)
					r.spent.Full += c.a.Pairs
				}
				cheap, outputs, err := r.emulate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := r.sample(t.Context(), cheap); err != nil {
					t.Fatal(err)
				}
				if err := r.compare(t.Context(), cheap, outputs); err != nil {
					t.Fatal(err)
				}
			}
			want, got := runs[0].result, runs[1].result
			wantPhi, _ := matrixOf(want.Phi)
			gotPhi, _ := matrixOf(got.Phi)
			if _, ok := c.a.Sampling.(mcmc.HMC); ok || c.a.Uncorrected { // its places depend on the emulator's rounding
				near(t, "the draws", gotPhi.RawMatrix().Data, wantPhi.RawMatrix().Data)
			} else if !mat.Equal(gotPhi, wantPhi) {
				t.Error("the draws differ")
			}
			near(t, "the result", numbersOf(got), numbersOf(want))
			if got.Evaluations != want.Evaluations {
				t.Errorf("evaluations %+v, want %+v", got.Evaluations, want.Evaluations)
			}
		})
	}
}

func numbersOf(r *Result) []float64 {
	e, u := r.Emulator.HeldOut, r.Truth
	stage := r.SecondStage
	if math.IsNaN(stage) {
		stage = -1
	}
	return []float64{
		e.R2, e.Phi, e.Gradient, u.True, u.Emulated, u.RMS, u.Prior, u.MedianESS, r.TrueBeta, r.StepSize, stage,
	}
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= 1e-6*(1+math.Abs(v))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], v)
		}
	}
}

// A pass over the rows of a source that takes long is reported, each two seconds at most, with what remains; a quick
// one, or one over rows in memory, is not.
func TestReadingIsReported(t *testing.T) {
	const rows, blocks = 1000, 100
	source := dataset.Simulated{N: rows, Features: 2}
	for _, c := range []struct {
		name    string
		source  dataset.Source
		block   time.Duration // that a block takes
		reports int
		last    run.Progress
	}{
		{"slow", source, time.Second, blocks / 2, run.Progress{
			Stage: "reading: Phi", Step: rows, Steps: rows, Elapsed: blocks * time.Second}},
		{"quick", source, time.Millisecond, 0, run.Progress{}},
		{"in memory", nil, time.Second, 0, run.Progress{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []run.Progress
			job := &Job{Data: &fit.Data{Source: c.source}, Settings: Settings{
				Progress: func(p run.Progress) { got = append(got, p) },
			}}
			read := job.reading("Phi")
			for i := range blocks {
				time.Sleep(c.block)
				read((i + 1) * rows / blocks)
			}
			if len(got) != c.reports {
				t.Fatalf("%s: %d reports, want %d: %+v", c.name, len(got), c.reports, got)
			}
			if c.reports == 0 {
				return
			}
			if last := got[len(got)-1]; !reflect.DeepEqual(last, c.last) {
				t.Errorf("%s: the last report is %+v, want %+v", c.name, last, c.last)
			}
			first := got[0]
			if want := c.last.Elapsed - first.Elapsed; (first.Remaining - want).Abs() > time.Microsecond {
				t.Errorf("%s: %v remain after %v, want %v", c.name, first.Remaining, first.Elapsed, want)
			}
		})
	}
}
