package fbnn

import (
	"math"
	"math/rand/v2"
	"testing"

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
func some(task dataset.Task, rows, classes int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(5, 7))
	d := &dataset.Dataset{Name: "some", Task: task, X: mat.NewDense(rows, 3, nil), Features: []string{"a", "b", "c"}}
	for i := range rows {
		d.X.(*mat.Dense).SetRow(i, []float64{2 * rng.NormFloat64(), rng.NormFloat64() + 3, rng.NormFloat64()})
		if task == dataset.Regression {
			d.Y = append(d.Y, d.X.At(i, 0)+rng.NormFloat64(), d.X.At(i, 1)-rng.NormFloat64())
		} else {
			d.Y = append(d.Y, float64(i%classes))
		}
	}
	if d.Targets = []string{"u", "v"}; task != dataset.Regression {
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
		task       dataset.Task
		classes    int
		a          CES
	}{
		"outputs":        {bayes.Gaussian{StdDev: .5}, dataset.Regression, 0, CES{}},
		"learnt noise":   {bayes.Gaussian{Learn: true}, dataset.Regression, 0, CES{Emulates: LogLikelihood}},
		"two classes":    {bayes.Bernoulli{}, dataset.BinaryClassification, 2, CES{Emulates: LogLikelihood}},
		"three classes":  {bayes.Categorical{}, dataset.Classification, 3, CES{Chains: 3, Emulates: LogLikelihood}},
		"ordered":        {bayes.Ordinal{}, dataset.Classification, 3, CES{Emulates: LogLikelihood}},
		"HMC's own step": {bayes.Gaussian{StdDev: .5}, dataset.Regression, 0, CES{Sampling: mcmc.HMC{Steps: 2}}},
		"uncorrected":    {bayes.Gaussian{StdDev: .5}, dataset.Regression, 0, CES{Uncorrected: true}},
	} {
		t.Run(name, func(t *testing.T) {
			model := bayes.Model{
				Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: c.likelihood,
				Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
			}
			ReadAtOnce(t, 9)
			settings := run.Settings{Engine: engine, DType: compute.Float64, Seed: 3}
			data := some(c.task, rows, c.classes)
			c.a.Pairs, c.a.PairsThin, c.a.PairsWarmUp, c.a.Draws, c.a.Regressor = 60, 2, 100, 100, linear{}
			c.a.BatchSize = 9
			if c.a.Sampling == nil {
				c.a.Sampling = pcn
			}
			var runs []*ces
			var results []*fit.Result
			for _, parts := range []dataset.Parts{{Train: data}, {Source: dataset.RowsOf(data)}} {
				r := begun(t, model, c.a, parts, settings)
				runs = append(runs, r)
				if len(runs) == 1 {
					if err := r.calibrate(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else { // from the same pairs, with Phi of its own
					r.details.Calibration = runs[0].details.Calibration
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
				result, err := r.sample(t.Context(), cheap)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, result)
				if err := r.compare(t.Context(), result, cheap, outputs); err != nil {
					t.Fatal(err)
				}
			}
			want, got := runs[0].details, runs[1].details
			wantPhi, _ := matrixOf(results[0].Draws.Phi)
			gotPhi, _ := matrixOf(results[1].Draws.Phi)
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

func numbersOf(r *Details) []float64 {
	e, u := r.HeldOut, r.Truth
	stage := r.SecondStage
	if math.IsNaN(stage) {
		stage = -1
	}
	return []float64{
		e.R2, e.Phi, e.Gradient, u.True, u.Emulated, u.RMS, u.Prior, u.medianESS, r.trueBeta, r.stepSize, stage,
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
