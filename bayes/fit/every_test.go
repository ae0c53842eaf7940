package fit_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/auto"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"
	"gobnn/fbnn"
	"gobnn/ohsmc"
	"gobnn/pbnn"
	"gobnn/pmcnet"
	"gobnn/pmcnet/annealed"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"
)

// method is one way to a posterior, by whichever package.
type method struct {
	name string
	fit.Method
	trains bool       // it has training curves
	within float64    // of the exact NLPD; 0: .05
	approx bool       // its draws are of something else than the posterior, however many they are
	silent bool       // it does not call Observe
	staged bool       // it observes a training, before which it has no posterior of its own
	after  fit.Method // trains the posterior that the Method continues; nil: none
}

// every is every method of every package.
func every() []method {
	points := baseline.Training{
		Epochs: 100, BatchSize: 20, Optimiser: train.Adam{Schedule: train.Exponential(.05, .5, 50)},
	}
	allRows := particles.Training{Particles: 200, Epochs: 60, ValidateEvery: 10}
	oneByOne := particles.Training{Particles: 200, Epochs: 3, ValidateEvery: 10}
	// Many chains with few draws: what a step takes here hardly depends on the number of chains.
	noisy := pbnn.Sampling{Chains: 12, Draws: 60, WarmUp: 60}
	few := mcmc.Chains{Draws: 60, WarmUp: 80}
	short := mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: .5}, Chains: 8, Draws: 40, WarmUp: 40}
	constant := train.Constant(.03)
	return []method{
		{name: "baseline: MLE", Method: baseline.MLE{Training: points}, trains: true, approx: true},
		{name: "baseline: MAP", Method: baseline.MAP{Training: points}, trains: true, approx: true},
		{name: "baseline: deep ensemble", Method: baseline.Ensemble{Training: points}, trains: true, approx: true},
		{name: "baseline: SAE", Method: baseline.SAE{Training: points}, trains: true, approx: true},
		{name: "baseline: MC dropout", Method: baseline.Dropout{Training: points}, trains: true, approx: true,
			within: .1}, // it drops a feature of two now and then
		{name: "baseline: SWAG", staged: true, Method: baseline.SWAG{Training: points}, trains: true, approx: true},
		{name: "baseline: VI", Method: baseline.VI{Training: points}, trains: true, approx: true},
		{name: "baseline: Laplace", staged: true, Method: baseline.Laplace{Training: points}, trains: true, approx: true},
		{name: "baseline: MAP-HMC", staged: true, Method: baseline.MAPHMC{Training: points, Chains: short}, trains: true},
		{name: "baseline: SGLD", staged: true, Method: baseline.SGLD{Training: points}, trains: true, approx: true},
		{name: "baseline: SGHMC", staged: true, Method: baseline.SGHMC{Training: points}, trains: true, approx: true},

		{name: "ohsmc: open horizon", trains: true, approx: true, Method: ohsmc.OpenHorizon{
			Training: allRows, Kernel: mcmc.RandomWalk{Variance: 1e-4},
		}},
		{name: "ohsmc: guided", trains: true, Method: ohsmc.Guided{Training: allRows, StepSize: constant}},
		{name: "ohsmc: guided, Langevin", trains: true, Method: ohsmc.Guided{
			Training: allRows, Proposal: ohsmc.Langevin{}, StepSize: constant,
		}},
		{name: "ohsmc: guided, HMC", trains: true, Method: ohsmc.Guided{
			Training: allRows, Proposal: ohsmc.HMC{Steps: 3}, StepSize: constant,
		}},
		{name: "ohsmc: SMC, sub-datasets", trains: true, Method: ohsmc.SMC{
			Training: oneByOne, Kernel: mcmc.RandomWalkMetropolis{StepSize: .5}, Moves: 2, Precondition: true,
		}},

		{name: "pbnn: penalty", Method: pbnn.Metropolis{Sampling: noisy, BatchSize: 10, Batches: 20, StepSize: .05}},
		{name: "pbnn: penalty, Langevin", Method: pbnn.Metropolis{
			Sampling: noisy, BatchSize: 10, Batches: 20, StepSize: .05, Proposal: pbnn.Langevin,
		}},
		{name: "pbnn: penalty, Langevin, tuned", Method: pbnn.Metropolis{
			Sampling: noisy, BatchSize: 20, Batches: 5, Proposal: pbnn.Langevin,
		}},
		{name: "pbnn: SGLD", approx: true, Method: pbnn.Unadjusted{
			Sampling: noisy, BatchSize: 20, Kernel: mcmc.SGLD{StepSize: 5e-4},
		}},
		{name: "pbnn: MALA", Method: pbnn.AllRows{Sampling: noisy, Kernel: mcmc.MALA{}}},

		{name: "pmcnet: PMCnet", Method: pmcnet.PMC{Proposals: 10, Draws: 20, Iterations: 5}},
		{name: "pmcnet: Annealed", Method: annealed.Annealed{
			SMC: smc.Tempered{Particles: 100, Moves: 1}, Draws: 500,
		}},
		{name: "fbnn: CES", Method: fbnn.CES{
			Pairs: 60, PairsWarmUp: 50, Draws: 100,
			Regressor: fbnn.Network{Hidden: []int{16}, Activations: []nn.Activation{nn.Tanh}, Epochs: 200},
		}},

		{name: "auto: Method", Method: auto.Method{Seconds: 1000}, approx: true, trains: true},
		{name: "mcmc: NUTS", Method: few},
		{name: "ohsmc: chains at the psi of SMC", Method: few, after: ohsmc.OpenHorizon{Training: particles.Training{
			Particles: 100, BatchSize: 20, Epochs: 5, ValidateEvery: 10,
		}}},
		{name: "smc: Tempered", Method: smc.Tempered{Particles: 200, Moves: 1}},
		{name: "smc: likelihood tempering", Method: smc.Tempered{
			Kernel: mcmc.RandomWalkMetropolis{}, Particles: 400,
		}},
	}
}

// fit runs the method.
func (m method) fit(
	ctx context.Context, model bayes.Model, parts dataset.Parts, settings run.Settings,
) (*fit.Result, error) {
	if m.after == nil {
		return fit.Fit(ctx, model, m.Method, parts, settings)
	}
	trained, err := fit.Fit(ctx, model, m.after, parts, run.Settings{Seed: settings.Seed, Engine: settings.Engine})
	if err != nil {
		return nil, err
	}
	from := fit.From{Trained: trained.Posterior, Method: m.Method}
	return fit.Fit(ctx, bayes.Model{}, from, parts, settings)
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

// exactEvidence is the log-density of all targets under that model: normal, with covariance X X' + sd^2 I.
func exactEvidence(t *testing.T, d *dataset.Dataset) float64 {
	t.Helper()
	covariance := mat.NewSymDense(d.Rows(), nil)
	for n := range d.Rows() {
		for m := range n + 1 {
			covariance.SetSym(n, m, 1+d.X.At(n, 0)*d.X.At(m, 0)+d.X.At(n, 1)*d.X.At(m, 1))
		}
		covariance.SetSym(n, n, covariance.At(n, n)+sd*sd)
	}
	exact, ok := distmv.NewNormal(make([]float64, d.Rows()), covariance, nil)
	if !ok {
		t.Fatal("the covariance is not positive definite")
	}
	return exact.LogProb(d.Y)
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
			steps, observed, last := 0, 0, run.Progress{}
			s := run.Settings{
				Seed: 3, Engine: computetest.Go(t), Progress: func(p run.Progress) { steps++; last = p },
				Observe: func(int, *bayes.Posterior) error { observed++; return nil },
			}
			result, err := m.fit(t.Context(), model, parts, s)
			if err != nil {
				t.Fatal(err)
			}
			p := result.Posterior
			if result.Status != run.Completed || p == nil || result.Elapsed <= 0 {
				t.Fatalf("%s, posterior %v, after %v", result.Status, p, result.Elapsed)
			}
			if steps == 0 || observed > 0 == m.silent {
				t.Errorf("Progress was called %d times, Observe %d times", steps, observed)
			}
			if last.Status != run.Completed || last.Remaining != 0 {
				t.Errorf("the last progress is %+v", last)
			}
			from, trained := p.Provenance(), parts.Train
			if of, ok := m.Method.(fit.Taker); ok && of.Takes().Validation {
				if trained, err = parts.Joined(); err != nil {
					t.Fatal(err)
				}
			}
			if from.DataHash != trained.Hash() || from.Rows != trained.Rows() || from.Seed != 3 ||
				from.Algorithm == "" ||
				from.Status != string(run.Completed) || from.Versions["backend"] == "" {
				t.Errorf("provenance %+v", from)
			}
			if m.approx != (from.Approximation != "") || from.Power() != 1 {
				t.Errorf("draws of %q, the likelihood's power %v", from.Approximation, from.Power())
			}
			chains := fit.Details[*mcmc.Details](result) != nil || fit.Details[*fbnn.Details](result) != nil
			if (p.Chains() > 0) != chains {
				t.Errorf("of %d chains", p.Chains())
			}
			if e := p.Evidence(); e.Known() {
				off, most := e.Value-exactEvidence(t, trained), 4*e.StdErr // a false alarm in 15 000 other seeds
				if math.IsNaN(most) {
					most = 2 // it says no standard error, and is off by 1 here
				}
				t.Logf("evidence %v, off by %.3f", e, off)
				if !(math.Abs(off) < most) {
					t.Errorf("evidence %v is off by %.3f, more than %.3f", e, off, most)
				}
			}
			prediction, err := p.Predict(t.Context(), parts.Test.X)
			if err != nil {
				t.Fatal(err)
			}
			nlpd, err := metric.NLPD(prediction, parts.Test.Y)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("NLPD %.4f, exact %.4f %v", nlpd.Value, exact, fit.Details[*auto.Details](result))
			if d, within := nlpd.Value-exact, cmp.Or(m.within, .05); math.Abs(d) > within {
				t.Errorf("NLPD %.4f is off by %.4f, more than %.2f", nlpd.Value, d, within)
			}
			if d, err := diag.Of(result); err != nil || d.Chains != p.Chains() || chains == math.IsNaN(d.RHat) {
				t.Errorf("diagnosis %v, %v", d, err)
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
			if kept := loaded.Provenance(); !slices.Equal(kept.Warnings, result.Warnings) {
				t.Errorf("warnings %q, kept %q", result.Warnings, kept.Warnings)
			}
			again, err := loaded.On(s.Engine).Predict(t.Context(), parts.Test.X)
			if err != nil || !slices.Equal(again.Outputs, prediction.Outputs) {
				t.Errorf("what was saved predicts otherwise (%v)", err)
			}
		})
	}
}

// Methods that read a Source in blocks find from it what they find from rows in memory, but for the order of the rows,
// which moves the point at which an ascent ends, and go on from a checkpoint to the same bits.
func TestEveryMethodOfSource(t *testing.T) {
	parts, err := plane(90).Split(dataset.Fractions{Train: .5, Validation: .2, Test: .3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	exact := exactNLPD(t, parts.Train, parts.Test)
	streamed := dataset.Parts{Source: dataset.RowsOf(parts.Train), Validation: parts.Validation}
	for _, m := range every() {
		if of, ok := m.Method.(fit.Taker); !ok || of.Takes().RowsAtOnce == 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			s := run.Settings{Seed: 3, Engine: computetest.Go(t)}
			result, err := m.fit(t.Context(), model, streamed, s)
			if err != nil {
				t.Fatal(err)
			}
			prediction, err := result.Posterior.Predict(t.Context(), parts.Test.X)
			if err != nil {
				t.Fatal(err)
			}
			nlpd, err := metric.NLPD(prediction, parts.Test.Y)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("NLPD %.4f, exact %.4f", nlpd.Value, exact)
			if d, within := nlpd.Value-exact, 2*cmp.Or(m.within, .05); math.Abs(d) > within {
				t.Errorf("NLPD %.4f is off by %.4f, more than %.2f", nlpd.Value, d, within)
			}
			if !m.trains {
				return
			}
			s.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.Observe, s.ObserveEvery = func(int, *bayes.Posterior) error { cancel(); return nil }, 7
			if half, err := m.fit(ctx, model, streamed, s); err == nil && half.Status != run.Cancelled {
				t.Fatalf("cancelled: %s", half.Status)
			}
			s.Observe = nil
			again, err := m.fit(t.Context(), model, streamed, s)
			if err != nil {
				t.Fatal(err)
			}
			resumed, err := again.Posterior.Predict(t.Context(), parts.Test.X)
			if err != nil || !slices.Equal(resumed.Outputs, prediction.Outputs) {
				t.Errorf("what was resumed predicts otherwise (%v)", err)
			}
		})
	}
}

// weighsWithin is twice what methods are allowed elsewhere, since half of a mini-batch tells nothing. By equal weights
// the NLPD would be off by several nats.
const weighsWithin = .1

// Every method goes by the rows' weights, or refuses them: beside each row stands one with another target, of weight 0.
func TestEveryMethodWeighs(t *testing.T) {
	parts, err := plane(90).Split(dataset.Fractions{Train: .5, Validation: .2, Test: .3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	exact := exactNLPD(t, parts.Train, parts.Test)
	both := make([]int, 0, 2*parts.Train.Rows())
	for i := range parts.Train.Rows() {
		both = append(both, i, i)
	}
	if parts.Train, err = parts.Train.Subset(both); err != nil {
		t.Fatal(err)
	}
	for i := range both {
		parts.Train.Weights = append(parts.Train.Weights, float64(i%2))
		parts.Train.Y[i] += 4 * float64(1-i%2)
	}
	model := bayes.Model{
		Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true},
	}
	for _, m := range every() {
		t.Run(m.name, func(t *testing.T) {
			result, err := m.fit(t.Context(), model, parts, run.Settings{Seed: 3, Engine: computetest.Go(t)})
			if strings.HasPrefix(m.name, "fbnn") {
				if err == nil || !strings.Contains(err.Error(), "which this method does not take") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			scores, err := metric.Of(t.Context(), result.Posterior, parts.Test)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("NLPD %.4f, exact %.4f", scores[0].Value, exact)
			if d := scores[0].Value - exact; math.Abs(d) > weighsWithin {
				t.Errorf("NLPD %.4f is off by %.4f, more than %.2f", scores[0].Value, d, weighsWithin)
			}
			if result.Posterior.Evidence().Known() {
				t.Errorf("weighted rows have the evidence %v", result.Posterior.Evidence())
			}
		})
	}
}

// A context that is cancelled before is told of, by an error or by the status, and nothing panics. Bad data are
// refused, and so are devices that there are not, or that a method does not use. Progress has the end in each case.
func TestEveryMethodRefuses(t *testing.T) {
	data := plane(50)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: sd}, Stochastic: bayes.All()}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, m := range every() {
		var last run.Status
		s := run.Settings{Engine: computetest.Go(t), Progress: func(p run.Progress) { last = p.Status }}
		ended := func(want run.Status) {
			if last != want && m.after == nil { // else it is the training that was refused
				t.Errorf("%s: progress ends with %q, want %q", m.name, last, want)
			}
		}
		result, err := m.fit(cancelled, model, dataset.Parts{Train: data}, s)
		ended(run.Cancelled)
		switch {
		case err != nil:
			if !strings.Contains(fmt.Sprint(err), "cancel") {
				t.Errorf("%s, cancelled: %v", m.name, err)
			}
		case result.Status != run.Cancelled:
			t.Errorf("%s, cancelled: %s", m.name, result.Status)
		}
		two := s
		two.Devices = 2 // the Go backend has one
		if _, err := m.fit(t.Context(), model, dataset.Parts{Train: data}, two); err == nil ||
			!strings.Contains(err.Error(), "Settings.Devices is 2") {
			t.Errorf("%s, two devices: %v", m.name, err)
		}
		for want, bad := range map[string]dataset.Parts{"training part": {}, "row 3": {Train: spoilt(data)}} {
			if _, err := m.fit(t.Context(), model, bad, s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not say %q", m.name, err, want)
			}
			ended(run.Stopped)
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
