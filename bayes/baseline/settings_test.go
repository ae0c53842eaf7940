package baseline

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
)

// A setting that is wrong, or a model that a method cannot take, is an error that names it, before anything runs.
func TestRefusedSettings(t *testing.T) {
	with := func(likelihood bayes.Likelihood, prior bayes.Prior, stochastic bayes.Partition) bayes.Model {
		return bayes.Model{Network: nn.MLP{Hidden: []int{5, 3}}, Likelihood: likelihood, Prior: prior, Stochastic: stochastic}
	}
	small := fittest.Small
	decays := Training{Optimiser: train.Adam{WeightDecay: .1}}
	for _, c := range []struct {
		model  bayes.Model
		method fit.Method
		words  []string
	}{
		{small, MLE{Training{BatchSize: 37}}, []string{"baseline: Training.BatchSize is 37", "36, the rows"}},
		{small, Ensemble{Members: 1}, []string{"Members is 1", "baseline.MAP"}},
		{small, SAE{Chains: -1}, []string{"SAE.Chains is -1"}},
		{small, SAE{Members: -2}, []string{"SAE.Members is -2"}},
		{small, SAE{StepSize: math.NaN()}, []string{"SAE.StepSize is NaN"}},
		{small, SAE{Training: decays}, []string{"WeightDecay is 0.1", "anchors"}},
		{with(bayes.Gaussian{}, laplacePrior{}, bayes.Layers(2)), SAE{}, []string{"laplacePrior", "bayes.Normal"}},
		{small, Dropout{Rate: 1}, []string{"Dropout.Rate is 1", "below 1"}},
		{small, Dropout{Masks: -1}, []string{"Dropout.Masks is -1"}},
		{with(bayes.Gaussian{}, nil, bayes.Names("layer1/biases")), Dropout{},
			[]string{"stochastic weights", "layer1/biases"}},
		{small, SWAG{Collect: 5, Rank: 6}, []string{"SWAG.Rank is 6", "the epochs of Collect"}},
		{small, SWAG{Collect: 1}, []string{"SWAG.Collect is 1"}},
		{small, SWAG{Rate: math.Inf(1)}, []string{"SWAG.Rate is +Inf"}},
		{small, VI{Draws: -1}, []string{"VI.Draws is -1"}},
		{small, VI{InitialStdDev: -1}, []string{"VI.InitialStdDev is -1"}},
		{small, VI{Training: decays}, []string{"WeightDecay is 0.1", "sigma"}},
		{small, Laplace{Structure: "kfac"}, []string{"kfac", `"kronecker"`}},
		{with(bayes.Gaussian{}, nil, bayes.Names("layer1/biases")), Laplace{Structure: KroneckerPrecision},
			[]string{"layer1/biases", "the others of its layer are shared"}},
		{small, Laplace{Structure: lastLayerPrecision}, []string{"last layer", `"full"`}},
		{with(bayes.Gaussian{}, laplacePrior{}, bayes.Layers(2)), Laplace{}, []string{"laplacePrior"}},
		{with(bayes.Gaussian{Learn: true}, nil, bayes.Names("noise/log_scale")), Laplace{}, []string{"noise/log_scale"}},
		{small, MAPHMC{Chains: mcmc.Chains{Kernel: mcmc.SGLD{StepSize: .1}}}, []string{"SGLD", "accepts"}},
		{small, MAPHMC{Chains: mcmc.Chains{Draws: -1}}, []string{"Chains.Draws is -1"}},
		{small, SGLD{Chains: mcmc.Chains{Kernel: mcmc.MALA{}}}, []string{"SGLD.Chains.Kernel is mcmc.MALA", "leave it out"}},
		{small, SGLD{StepSize: -1}, []string{"SGLD.StepSize is -1"}},
		{small, SGHMC{LearningRate: -1}, []string{"SGHMC.LearningRate is -1"}},
		{small, SGLD{Chains: mcmc.Chains{WarmUp: -5}}, []string{"Chains.WarmUp is -5", "NoWarmUp"}},
	} {
		_, err := fit.Fit(t.Context(), c.model, c.method, fittest.Parts(t, 60), run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, c.words[0], err, c.words...)
	}
	// A prior whose hyperparameters are integrated out has a density, but no mode of use.
	joint := with(bayes.Gaussian{}, bayes.LearntPrecision{}, bayes.All())
	for _, m := range []fit.Method{
		MLE{}, MAP{}, Ensemble{}, SAE{}, Dropout{}, SWAG{}, Laplace{}, MAPHMC{}, SGLD{}, SGHMC{},
	} {
		_, err := fit.Fit(t.Context(), joint, m, fittest.Parts(t, 60), run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, m.Title(), err, "LearntPrecision", "baseline.VI")
	}
}

// Training that diverges is an error that names the learning rate, and so are chains that go to where the density is
// not finite.
func TestDivergence(t *testing.T) {
	data := fittest.Data(30)
	for n := range data.Y {
		data.Y[n] *= 1e17 // squares over the noise's variance overflow in float32
	}
	model := fittest.Line(1e-3)
	model.Scaling.KeepTarget = true
	few, chains := Training{Epochs: 2, BatchSize: 8}, mcmc.Chains{Chains: 3, Draws: 2, WarmUp: 50, Thin: 25}
	for _, c := range []struct {
		model  bayes.Model
		method fit.Method
		data   *dataset.Dataset
		word   string
	}{
		{model, MAP{few}, data, "0.01"},
		{fittest.Small, SGLD{Training: few, StepSize: 1e4, Chains: chains}, fittest.Data(40), "step size"},
		{fittest.Small, SGHMC{Training: few, LearningRate: 1e4, Chains: chains}, fittest.Data(40), "step size"},
	} {
		_, err := fit.Fit(t.Context(), c.model, c.method, dataset.Parts{Train: c.data},
			run.Settings{Engine: computetest.Go(t)})
		computetest.WantError(t, c.method.Title(), err, c.word)
		if !errors.Is(err, ErrDiverged) {
			t.Error(err)
		}
	}
}

// A member without a finite gradient stays where it is and is counted, and the others are as without it.
func TestMemberWithoutGradient(t *testing.T) {
	j, prepared := fittest.Job(t, fittest.Small, MAP{Training{Epochs: 3, BatchSize: 10}},
		dataset.Parts{Train: fittest.Data(30)}, run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	var ends [][]float64
	for _, first := range []float64{.5, 1e300} {
		p, err := newPoints(j, prepared.Training, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		start := slices.Concat(slices.Repeat([]float64{first}, p.whole.D), wavy(p.whole.D, 1))
		end, _ := trained(t, j, prepared.Training, p, start)
		if stays := first == 1e300; (end.Trace[2].Rejected == 1) != stays || (end.Theta[0] == first) != stays {
			t.Errorf("%d members of two stayed, the first at %v, where it began at %v", end.Trace[2].Rejected, end.Theta[0],
				first)
		}
		ends = append(ends, end.Theta[p.whole.D:])
	}
	if !slices.Equal(ends[0], ends[1]) {
		t.Error("the second member depends on the first")
	}
}
