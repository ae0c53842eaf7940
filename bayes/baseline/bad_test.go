package baseline

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// Every bad input is an error that names the value.
func TestBadInput(t *testing.T) {
	regression := split3(t, line(60))
	with := func(change func(*dataset.Dataset), c int) dataset.Parts {
		d := line(30)
		if c > 0 {
			d = classes(30, c)
		}
		change(d)
		return dataset.Parts{Train: d}
	}
	absent := with(func(d *dataset.Dataset) {
		for i := range d.Y {
			d.Y[i] = 2 * float64(i%2)
		}
	}, 3)
	oneClass := with(func(d *dataset.Dataset) { clear(d.Y) }, 3)
	oneOfTwo := with(func(d *dataset.Dataset) { clear(d.Y) }, 2)
	nanFeature := with(func(d *dataset.Dataset) { d.X.(*mat.Dense).Set(3, 1, math.NaN()) }, 0)
	model := func(likelihood bayes.Likelihood, prior bayes.Prior, stochastic bayes.Partition) bayes.Model {
		return bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}}, Likelihood: likelihood, Prior: prior, Stochastic: stochastic}
	}
	categorical := model(bayes.Categorical{}, nil, bayes.Layers(2))
	bernoulli := model(bayes.Bernoulli{}, nil, bayes.Layers(2))
	for _, c := range []struct {
		name     string
		model    bayes.Model
		method   fit.Method
		parts    dataset.Parts
		settings Settings
		want     []string
		is       error
	}{
		{"a class absent", categorical, MAP{}, absent, Settings{}, []string{`"class 1"`, "30 rows"}, dataset.ErrMissingClass},
		{"one class only", categorical, Ensemble{}, oneClass, Settings{}, []string{"30 rows", "one class"},
			dataset.ErrMissingClass},
		{"one of two classes", bernoulli, VI{}, oneOfTwo, Settings{}, []string{"one class", `"class 1"`},
			dataset.ErrMissingClass},
		{"an ensemble of one", small, Ensemble{Members: 1}, regression, Settings{}, []string{"Members is 1", "baseline.MAP"},
			nil},
		{"members", small, Ensemble{Members: -2}, regression, Settings{}, []string{"Members is -2"}, nil},
		{"SAE, chains", small, SAE{Chains: -1}, regression, Settings{}, []string{"SAE.Chains is -1"}, nil},
		{"SAE, members", small, SAE{Members: -2}, regression, Settings{}, []string{"SAE.Members is -2"}, nil},
		{"SAE, step", small, SAE{StepSize: math.NaN()}, regression, Settings{}, []string{"SAE.StepSize is NaN"}, nil},
		{"SAE, weight decay", small, SAE{}, regression, Settings{Optimiser: train.Adam{WeightDecay: .1}},
			[]string{"WeightDecay is 0.1", "anchors"}, nil},
		{"SAE, prior", model(bayes.Gaussian{}, bayes.Laplace{B: 1}, bayes.Layers(2)), SAE{}, regression, Settings{},
			[]string{"bayes.Laplace", "bayes.Normal"}, nil},
		{"NaN feature", small, MAP{}, nanFeature, Settings{}, []string{"row 3", `"b"`, "NaN"}, nil},
		{"likelihood", bernoulli, MAP{}, regression, Settings{}, []string{"Bernoulli", "regression"}, nil},
		{"unknown layer", model(bayes.Gaussian{}, nil, bayes.Layers(7)), MAP{}, regression, Settings{}, []string{"layer 7"},
			nil},
		{"epochs", small, MLE{}, regression, Settings{Epochs: -1}, []string{"Training.Epochs is -1"}, nil},
		{"batch", small, MLE{}, regression, Settings{BatchSize: 37}, []string{"BatchSize is 37", "36, the rows"}, nil},
		{"validate every", small, MLE{}, regression, Settings{ValidateEvery: -1}, []string{"ValidateEvery is -1"}, nil},
		{"patience", small, MLE{}, regression, Settings{Patience: -1}, []string{"Patience is -1"}, nil},
		{"learning rate", small, MLE{}, regression, Settings{Optimiser: train.Adam{Schedule: train.Constant(math.NaN())}},
			[]string{"learning rate is NaN"}, nil},
		{"unwritable folder", small, MLE{}, regression, Settings{Checkpoint: "bad_test.go/run"}, []string{"bad_test.go/run"},
			nil},
		{"dropout rate 1", small, Dropout{Rate: 1}, regression, Settings{}, []string{"Dropout.Rate is 1", "below 1"}, nil},
		{"dropout rate NaN", small, Dropout{Rate: math.NaN()}, regression, Settings{}, []string{"Dropout.Rate is NaN"}, nil},
		{"dropout rate below 0", small, Dropout{Rate: -.1}, regression, Settings{}, []string{"Dropout.Rate is -0.1"}, nil},
		{"masks", small, Dropout{Masks: -1}, regression, Settings{}, []string{"Dropout.Masks is -1"}, nil},
		{"dropout without weights", model(bayes.Gaussian{}, nil, bayes.Biases(1)), Dropout{}, regression, Settings{},
			[]string{"stochastic weights", "layer1/biases"}, nil},
		{"rank over the iterates", small, SWAG{Collect: 5, Rank: 6}, regression, Settings{},
			[]string{"SWAG.Rank is 6", "the epochs of Collect"}, nil},
		{"rank 1", small, SWAG{Rank: 1}, regression, Settings{}, []string{"SWAG.Rank is 1", "from 2"}, nil},
		{"collect", small, SWAG{Collect: 1}, regression, Settings{}, []string{"SWAG.Collect is 1"}, nil},
		{"SWAG's rate", small, SWAG{Rate: math.Inf(1)}, regression, Settings{}, []string{"SWAG.Rate is +Inf"}, nil},
		{"VI draws", small, VI{Draws: -1}, regression, Settings{}, []string{"VI.Draws is -1"}, nil},
		{"VI samples", small, VI{Samples: -1}, regression, Settings{}, []string{"VI.Samples is -1"}, nil},
		{"VI, weight decay", small, VI{}, regression, Settings{Optimiser: train.Adam{WeightDecay: .1}},
			[]string{"WeightDecay is 0.1", "sigma"}, nil},
		{"VI start", small, VI{InitialStdDev: -1}, regression, Settings{}, []string{"VI.InitialStdDev is -1"}, nil},
		{"structure", small, Laplace{Structure: "kfac"}, regression, Settings{}, []string{`kfac`, "\"kronecker\""}, nil},
		{"last layer shared", small, Laplace{Structure: lastLayerPrecision}, regression, Settings{},
			[]string{"last layer", `"full"`}, nil},
		{"Laplace of a Laplace prior", model(bayes.Gaussian{}, bayes.Laplace{}, bayes.Layers(2)), Laplace{}, regression,
			Settings{}, []string{"bayes.Laplace"}, nil},
		{"Laplace of the noise", model(bayes.Gaussian{Learn: true}, nil, bayes.Names("noise/log_scale")), Laplace{},
			regression, Settings{}, []string{"noise/log_scale"}, nil},
		{"kernel that moves freely", small, MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.SGLD{StepSize: .1}}}, regression,
			Settings{}, []string{"SGLD", "accepts"}, nil},
		{"kernel", small, MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.HMC{StepSize: -1}}}, regression, Settings{},
			[]string{"StepSize is -1"}, nil},
		{"chains", small, MAPHMC{Chains: mcmc.Chains{Chains: -1}}, regression, Settings{},
			[]string{"Chains.Chains is -1"}, nil},
		{"draws", small, MAPHMC{Chains: mcmc.Chains{Draws: -1}}, regression, Settings{}, []string{"Chains.Draws is -1"}, nil},
		{"a kernel beside SGLD's", small, SGLD{Chains: mcmc.Chains{Kernel: mcmc.MALA{}}}, regression, Settings{},
			[]string{"SGLD.Chains.Kernel is mcmc.MALA", "leave it out"}, nil},
		{"SGLD's step size", small, SGLD{StepSize: -1}, regression, Settings{}, []string{"SGLD.StepSize is -1"}, nil},
		{"friction", small, SGHMC{Friction: 1}, regression, Settings{}, []string{"Friction is 1"}, nil},
		{"warm-up", small, SGLD{Chains: mcmc.Chains{WarmUp: -5}}, regression, Settings{},
			[]string{"Chains.WarmUp is -5", "NoWarmUp"}, nil},
		{"thinning", small, SGHMC{Chains: mcmc.Chains{Thin: -2}}, regression, Settings{}, []string{"Chains.Thin is -2"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.settings.Engine = goEngine(t)
			_, err := Fit(context.Background(), c.model, c.method, c.parts, c.settings)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %q", err, c.is)
			}
		})
	}
}

// Training that diverges is an error that names the learning rate.
func TestDivergence(t *testing.T) {
	data := line(30)
	for n := range data.Y {
		data.Y[n] *= 1e17 // squares over the noise's variance overflow in float32
	}
	model := small
	model.Likelihood = bayes.Gaussian{StdDev: 1e-3}
	model.Scaling.KeepTarget = true
	_, err := Fit(t.Context(), model, MAP{}, dataset.Parts{Train: data}, Settings{Epochs: 2, Engine: goEngine(t)})
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "0.01") {
		t.Errorf("error %v", err)
	}
}

// A member without a finite gradient stays where it is and is counted, and the others are as without it.
func TestMemberWithoutGradient(t *testing.T) {
	j, prepared := jobOf(t, small, MAP{}, dataset.Parts{Train: line(30)},
		Settings{Epochs: 3, BatchSize: 10, Engine: goEngine(t), DType: compute.Float64})
	var ends [][]float64
	for _, first := range []float64{.5, 1e300} {
		p, err := newPoints(j, prepared.Training, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		start := make([]float64, 2*p.whole.D)
		for i := range start {
			start[i] = math.Sin(float64(i))
			if i < p.whole.D {
				start[i] = first
			}
		}
		end, _ := trained(t, j, prepared.Training, p, start)
		if rejected := end.Trace[2].Rejected; (rejected == 1) != (first == 1e300) {
			t.Errorf("%d members of two stayed, with the first at %v", rejected, first)
		}
		if (end.Theta[0] == first) != (first == 1e300) {
			t.Errorf("the first member is at %v, it began at %v", end.Theta[0], first)
		}
		ends = append(ends, end.Theta[p.whole.D:])
	}
	for i := range ends[0] {
		if ends[0][i] != ends[1][i] {
			t.Fatal("the second member depends on the first")
		}
	}
}

// unregistered is a network of a user's own that bayes.Register does not know.
type unregistered struct{ nn.MLP }

// A network that cannot be written is an error that says what to do.
func TestUnregisteredNetwork(t *testing.T) {
	model := bayes.Model{Network: unregistered{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Layers(1)}
	_, err := Fit(t.Context(), model, MAP{}, dataset.Parts{Train: line(30)}, Settings{Epochs: 1, Engine: goEngine(t)})
	if err == nil || !strings.Contains(err.Error(), "unregistered") || !strings.Contains(err.Error(), "bayes.Register") {
		t.Errorf("error %v", err)
	}
}
