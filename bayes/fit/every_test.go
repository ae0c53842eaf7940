package fit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/exchange"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

// shared are the settings that every method of every package has, under these names.
type shared struct {
	Seed     uint64
	Engine   *compute.Engine
	Progress func(run.Progress)
	Observe  func(step int, now *bayes.Posterior) error
}

func (s shared) run() run.Settings {
	return run.Settings{Seed: s.Seed, Engine: s.Engine, Progress: s.Progress, Observe: s.Observe}
}

// with is a method with these settings of a training: of package ohsmc, or of baseline.
func with[Training any](m fit.Method, t Training) fit.Method {
	v := reflect.New(reflect.TypeOf(m)).Elem()
	v.Set(reflect.ValueOf(m))
	v.FieldByName("Training").Set(reflect.ValueOf(t))
	return v.Interface().(fit.Method)
}

// method is one way to a posterior, by whichever package.
type method struct {
	name     string
	fit      func(ctx context.Context, model bayes.Model, parts dataset.Parts, s shared) (fit.Fitted, error)
	chains   bool // its particles are of Markov chains
	trains   bool // it has training curves
	within   float64
	observed bool // it calls Observe
}

// every is every method of every package.
func every() []method {
	var all []method
	for name, m := range map[string]fit.Method{
		"MLE": baseline.MLE{}, "MAP": baseline.MAP{}, "deep ensemble": baseline.Ensemble{}, "SAE": baseline.SAE{},
		"MC dropout": baseline.Dropout{}, "SWAG": baseline.SWAG{}, "VI": baseline.VI{}, "Laplace": baseline.Laplace{},
		"MAP-HMC": baseline.MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .5}, Draws: 100, WarmUp: 100}},
		"SGLD":    baseline.SGLD{}, "SGHMC": baseline.SGHMC{},
	} {
		within := .05
		if name == "MC dropout" { // it drops a feature of two now and then
			within = .1
		}
		all = append(all, method{
			name: "baseline: " + name, chains: slices.Contains([]string{"MAP-HMC", "SGLD", "SGHMC"}, name), trains: true,
			within: within, observed: true, fit: by(with(m, baseline.Training{
				Epochs: 100, BatchSize: 20, Optimiser: train.Adam{Schedule: train.Exponential(.05, .5, 50)},
			})),
		})
	}
	for name, a := range map[string]fit.Method{ // with batches of all rows
		"open horizon":      ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: 1e-4}},
		"guided":            ohsmc.Guided{StepSize: train.Constant(.03)},
		"guided, Langevin":  ohsmc.Guided{Proposal: ohsmc.Langevin{}, StepSize: train.Constant(.03)},
		"guided, HMC":       ohsmc.Guided{Proposal: ohsmc.HMC{Steps: 3}, StepSize: train.Constant(.03)},
		"SMC, sub-datasets": ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: .5}, Moves: 2, Precondition: true},
	} {
		epochs := 60
		if _, ok := a.(ohsmc.SMC); ok {
			epochs = 4 // each goes through all rows, one by one
		}
		all = append(all, method{
			name: "ohsmc: " + name, trains: true, within: .05, observed: true,
			fit: func(ctx context.Context, model bayes.Model, parts dataset.Parts, s shared) (fit.Fitted, error) {
				return fitted(fit.Fit(ctx, model, with(a, ohsmc.Training{
					Particles: 300, Epochs: epochs, ValidateEvery: 10,
				}), parts, s.run()))
			},
		})
	}
	all = append(all, method{
		name: "ohsmc: chains at the psi of SMC", chains: true, within: .05, observed: true,
		fit: func(ctx context.Context, model bayes.Model, parts dataset.Parts, s shared) (fit.Fitted, error) {
			trained, err := fit.Fit(ctx, model, with(ohsmc.OpenHorizon{}, ohsmc.Training{
				Particles: 100, BatchSize: 20, Epochs: 5, ValidateEvery: 10,
			}), parts, run.Settings{Seed: s.Seed, Engine: s.Engine})
			if err != nil {
				return nil, err
			}
			chains := fit.From{Trained: trained.Posterior, Method: mcmc.Chains{Draws: 100, WarmUp: 150}}
			return fitted(fit.Fit(ctx, bayes.Model{}, chains, parts, s.run()))
		},
	})
	noisy := pbnn.Sampling{Draws: 150, Thin: 3, WarmUp: 300}
	for name, p := range map[string]fit.Method{
		"penalty": pbnn.Metropolis{Sampling: noisy, BatchSize: 40, Batches: 5, StepSize: .05},
		"penalty, Langevin": pbnn.Metropolis{Sampling: noisy, BatchSize: 40, Batches: 5, StepSize: .05,
			Proposal: pbnn.Langevin},
		"penalty, Langevin, tuned": pbnn.Metropolis{Sampling: noisy, BatchSize: 20, Batches: 5, Proposal: pbnn.Langevin},
		"Barker":                   pbnn.Barker{Sampling: noisy, BatchSize: 40, Batches: 5, StepSize: .05},
		"confidence":               pbnn.Confidence{Sampling: noisy, BatchSize: 10},
		"SGLD":                     pbnn.Unadjusted{Sampling: noisy, BatchSize: 20, Kernel: mcmc.SGLD{StepSize: 5e-4}},
		"MALA":                     pbnn.AllRows{Sampling: noisy, Kernel: mcmc.MALA{}},
	} {
		all = append(all, method{
			name: "pbnn: " + name, chains: true, within: .05, observed: true,
			fit: func(ctx context.Context, model bayes.Model, parts dataset.Parts, s shared) (fit.Fitted, error) {
				return fitted(fit.Fit(ctx, model, p, parts, s.run()))
			},
		})
	}
	return append(all,
		method{name: "mcmc: Chains", chains: true, within: .05, observed: true, fit: by(mcmc.Chains{
			Draws: 100, WarmUp: 150,
		})},
		method{name: "smc: Tempered", within: .05, observed: true, fit: by(smc.Tempered{Particles: 400, Moves: 2})},
		method{name: "smc: likelihood tempering", within: .05, observed: true, fit: by(smc.Tempered{
			Kernel: mcmc.RandomWalkMetropolis{}, Particles: 400,
		})},
		method{name: "smc: data tempering", within: .05, observed: true, fit: by(smc.Tempered{
			Kernel: mcmc.RandomWalkMetropolis{}, Particles: 400, Tempering: smc.DataTempering,
		})},
		method{name: "exchange: Replicas", within: .05, observed: true, fit: by(exchange.Replicas{
			Kernel: mcmc.HMC{Steps: 5}, Ladder: []float64{.005, .03, .15, .5, 1}, Sets: 8, WarmUp: 60, Sweeps: 60,
		})},
	)
}

// approximate says whether a method's draws are of something else than the posterior, however many they are.
func approximate(name string) bool {
	from, method, _ := strings.Cut(name, ": ")
	switch from {
	case "baseline":
		return method != "MAP-HMC"
	case "ohsmc": // with batches of all rows, of which the others have an evidence
		return method == "open horizon"
	case "pbnn":
		return method == "confidence" || method == "SGLD"
	}
	return false
}

// The results of a package as what all have in common: a nil pointer is nothing.
func fitted(r *fit.Result, err error) (fit.Fitted, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// by is a method of package fit.
func by(m fit.Method) func(context.Context, bayes.Model, dataset.Parts, shared) (fit.Fitted, error) {
	return func(ctx context.Context, model bayes.Model, parts dataset.Parts, s shared) (fit.Fitted, error) {
		return fitted(fit.Fit(ctx, model, m, parts, s.run()))
	}
}

// plane is y = 1.5 x_1 - x_2 + .5 + N(0, sd^2), in units in which nothing needs to be scaled.
func plane(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := mat.NewDense(rows, 2, nil), make([]float64, rows)
	for n := range y {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		x.SetRow(n, []float64{a, b})
		y[n] = 1.5*a - b + .5 + sd*rng.NormFloat64()
	}
	return &dataset.Dataset{Name: "plane", Features: []string{"a", "b"}, Target: "y", X: x, Y: y}
}

const sd = .5

// exactNLPD is that of the exact posterior predictive distribution of the linear model, all of whose parameters are
// N(0, 1) before.
func exactNLPD(t *testing.T, train, test *dataset.Dataset) float64 {
	t.Helper()
	design := func(d *dataset.Dataset, n int) *mat.VecDense {
		return mat.NewVecDense(3, []float64{d.X.At(n, 0), d.X.At(n, 1), 1})
	}
	precision, right := mat.NewSymDense(3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), mat.NewVecDense(3, nil)
	for n, y := range train.Y {
		precision.SymRankOne(precision, 1/(sd*sd), design(train, n))
		right.AddScaledVec(right, y/(sd*sd), design(train, n))
	}
	var covariance mat.Dense
	var mean mat.VecDense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	mean.MulVec(&covariance, right)
	sum := 0.0
	for n, y := range test.Y {
		x := design(test, n)
		variance := sd*sd + mat.Inner(x, &covariance, x)
		z := y - mat.Dot(x, &mean)
		sum += .5*math.Log(2*math.Pi*variance) + z*z/(2*variance)
	}
	return sum / float64(len(test.Y))
}

// Every method of every package fits one data set by one shape of call, and gives the same kind of result: a posterior
// that knows its data, its chains and where it came from, predicts about as well as the exact one, can be saved,
// diagnosed and drawn.
func TestEveryMethod(t *testing.T) {
	parts, err := plane(90).Split(dataset.Fractions{Train: .5, Validation: .2, Test: .3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	exact := exactNLPD(t, parts.Train, parts.Test)
	for _, m := range every() {
		t.Run(m.name, func(t *testing.T) {
			model := model
			if from, _, _ := strings.Cut(m.name, ": "); from == "baseline" || from == "pbnn" {
				model.Stochastic = bayes.Partition{} // stands for All
			}
			steps, observed := 0, 0
			s := shared{
				Seed: 3, Engine: computetest.Go(t), Progress: func(run.Progress) { steps++ },
				Observe: func(int, *bayes.Posterior) error { observed++; return nil },
			}
			result, err := m.fit(t.Context(), model, parts, s)
			if err != nil {
				t.Fatal(err)
			}
			common := result.Common()
			p := common.Posterior
			if common.Status != run.Completed || p == nil || common.Elapsed <= 0 {
				t.Fatalf("%s, posterior %v, after %v", common.Status, p, common.Elapsed)
			}
			if steps == 0 || (observed > 0) != m.observed {
				t.Errorf("Progress was called %d times, Observe %d times", steps, observed)
			}
			from := p.Provenance()
			if from.DataHash != parts.Train.Hash() || from.Rows != parts.Train.Rows() || from.Seed != 3 ||
				from.Algorithm == "" ||
				from.Status != string(run.Completed) || from.Versions["backend"] == "" {
				t.Errorf("provenance %+v", from)
			}
			if approximate(m.name) != (from.Approximation != "") || from.Power() != 1 {
				t.Errorf("draws of %q, the likelihood's power %v", from.Approximation, from.Power())
			}
			if (p.Chains() > 0) != m.chains {
				t.Errorf("of %d chains", p.Chains())
			}
			prediction, err := p.Predict(t.Context(), parts.Test.X)
			if err != nil {
				t.Fatal(err)
			}
			nlpd, err := metric.NLPD(prediction, parts.Test.Y)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("NLPD %.4f, exact %.4f", nlpd.Value, exact)
			if d := nlpd.Value - exact; math.Abs(d) > m.within {
				t.Errorf("NLPD %.4f is off by %.4f, more than %.2f", nlpd.Value, d, m.within)
			}
			if d, err := diag.Of(result); err != nil || d.Chains != p.Chains() || m.chains == math.IsNaN(d.RHat) {
				t.Errorf("diagnosis %v, %v", d, err)
			} else if _, counts := result.(diag.Evaluated); counts && m.chains == (d.PerEvaluation == nil) {
				t.Errorf("what its draws are worth for their evaluations: %v", d.PerEvaluation)
			}
			if _, err := viz.TrainingCurvesOf(result, viz.Frame{}); (err == nil) != m.trains {
				t.Errorf("training curves: %v", err)
			}
			file := filepath.Join(t.TempDir(), "posterior")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			loaded, err := bayes.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			again, err := loaded.On(s.Engine).Predict(t.Context(), parts.Test.X)
			if err != nil || !slices.Equal(again.Outputs, prediction.Outputs) {
				t.Errorf("what was saved predicts otherwise (%v)", err)
			}
		})
	}
}

// A context that is cancelled before is told of, by an error or by the status, and nothing panics; nor does bad data.
func TestEveryMethodRefuses(t *testing.T) {
	data := plane(50)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, m := range every() {
		s := shared{Engine: computetest.Go(t)}
		result, err := m.fit(cancelled, model, dataset.Parts{Train: data}, s)
		switch {
		case err != nil:
			if !strings.Contains(fmt.Sprint(err), "cancel") {
				t.Errorf("%s, cancelled: %v", m.name, err)
			}
		case result.Common().Status != run.Cancelled:
			t.Errorf("%s, cancelled: %s", m.name, result.Common().Status)
		}
		for want, bad := range map[string]dataset.Parts{"training part": {}, "row 3": {Train: spoilt(data)}} {
			if _, err := m.fit(t.Context(), model, bad, s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not say %q", m.name, err, want)
			}
		}
	}
}

// spoilt is a copy of data with a NaN in row 3.
func spoilt(data *dataset.Dataset) *dataset.Dataset {
	bad := *data
	bad.Y = slices.Clone(data.Y)
	bad.Y[3] = math.NaN()
	return &bad
}
