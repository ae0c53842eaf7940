package baseline

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
)

// Every method fits classes too, with a shared part of the network, and a validation after each epoch; its posterior
// predicts 100 particles, or as many as it should. A line, with all parameters stochastic, is tested in bayes/fit.
func TestClasses(t *testing.T) {
	short := Training{Epochs: 4, BatchSize: 8}
	kernel := mcmc.HMC{StepSize: .02, Steps: 3}
	for _, c := range []struct {
		method    fit.Method
		particles int
	}{
		{MLE{short}, 1}, {MAP{short}, 1}, {Ensemble{Training: short, Members: 3}, 3},
		{SAE{Training: short, Chains: 2, Members: 3}, 6}, {Dropout{Training: short}, 100}, {SWAG{Training: short}, 100},
		{VI{Training: short}, 100}, {VI{Training: short, ZeroMean: true}, 100}, {Laplace{Training: short}, 100},
		{MAPHMC{Training: short, Chains: mcmc.Chains{Kernel: kernel, Chains: 2, Draws: 5, WarmUp: 5}}, 10},
		{SGLD{Training: short}, 100}, {SGHMC{Training: short}, 100},
	} {
		for count, likelihood := range map[int]bayes.Likelihood{2: bayes.Bernoulli{}, 3: bayes.Categorical{}} {
			model := fittest.Small
			model.Likelihood = likelihood
			parts, err := classes(60, count).Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
			if err != nil {
				t.Fatal(err)
			}
			result, details := fitted(t, model, c.method, parts, run.Settings{})
			if result.Status != run.Completed || result.Posterior.Particles() != c.particles || details.Steps < 20 ||
				len(details.Trace) != details.Steps || len(details.Validated) != 4 || math.IsNaN(details.Best[0].NLPD) {
				t.Errorf("%T of %d classes: %s with %d particles, %+v", c.method, count, result.Status,
					result.Posterior.Particles(), details)
			}
			scores, err := metric.Of(t.Context(), result.Posterior, parts.Test)
			if err != nil || math.IsNaN(scores[0].Value) {
				t.Errorf("%T of %d classes: %+v, %v", c.method, count, scores, err)
			}
		}
	}
}

// Members of an ensemble differ, and each is what it would be alone, with its patience and its own best validation; the
// first is that of MAP with the same seed. In an ensemble of another size they are the same.
func TestMembersAreAlone(t *testing.T) {
	const members, within = 3, 1e-9
	parts := fittest.Parts(t, 60)
	settings := run.Settings{Seed: 5, Engine: computetest.Go(t), DType: compute.Float64}
	training := Training{Epochs: 30, BatchSize: 8, ValidateEvery: 1, Patience: 2,
		Optimiser: train.Adam{Schedule: train.Constant(.1)}}
	j, prepared := fittest.Job(t, fittest.Small, MAP{training}, parts, settings)
	together, err := newPoints(j, prepared.Training, members, true)
	if err != nil {
		t.Fatal(err)
	}
	width := together.whole.D
	starts := computetest.Run(t, settings.Engine, func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
		return []*graph.Node{together.Initial(random.New(g, settings.Seed).Named("initial"))}
	})[0]
	all, _ := trained(t, j, prepared.Training, together, nil)
	differ := false
	for m := range members {
		alone, err := newPoints(j, prepared.Training, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		one, result := trained(t, j, prepared.Training, alone, starts[m*width:(m+1)*width])
		if one.Best[0].Step != all.Best[m].Step {
			t.Errorf("member %d is best after step %d, alone after %d", m, all.Best[m].Step, one.Best[0].Step)
		}
		differ = differ || result.Status == run.StoppedEarly && one.Steps < all.Steps
		computetest.Near(t, fmt.Sprint("member ", m), all.Theta[m*width:(m+1)*width], one.Theta, within)
		if m > 0 && math.Abs(all.Theta[0]-all.Theta[m*width]) < 1e-3 {
			t.Errorf("member %d is member 0", m)
		}
	}
	if !differ {
		t.Error("no member stopped before the others: this tests no patience")
	}
	_, point := fitted(t, fittest.Small, MAP{training}, parts, settings)
	_, pair := fitted(t, fittest.Small, Ensemble{Training: training, Members: 2}, parts, settings)
	computetest.Near(t, "MAP", point.Theta, all.Theta[:width], within)
	computetest.Near(t, "of two", pair.Theta[width:], all.Theta[width:2*width], within)
}

// One checkpoint of MAP serves the methods that begin with it, which do not train it again; another method's run is
// refused.
func TestStartsFromMAP(t *testing.T) {
	training, parts := Training{Epochs: 5, BatchSize: 8}, fittest.Parts(t, 60)
	settings := run.Settings{Engine: computetest.Go(t), Checkpoint: filepath.Join(t.TempDir(), "map")}
	before, _ := fitted(t, fittest.Small, MAP{training}, parts, settings)
	settings.Progress = func(p run.Progress) {
		if p.Stage == "training" && p.Step < p.Steps {
			t.Error("MAP is trained again")
		}
	}
	fitted(t, fittest.Small, Laplace{Training: training}, parts, settings)
	fitted(t, fittest.Small, SWAG{Training: training}, parts, settings)
	again, _ := fitted(t, fittest.Small, MAP{training}, parts, settings)
	if !slices.Equal(fittest.Numbers(t, again.Posterior), fittest.Numbers(t, before.Posterior)) {
		t.Error("the checkpoint of MAP is another now")
	}
	settings.Progress = nil
	if _, err := fit.Fit(t.Context(), fittest.Small, MLE{training}, parts, settings); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("another method: %v", err)
	}
}

// A validation part whose NLPD overflows chooses nothing: the parameters are those of a training without it, of which a
// warning informs; so does one of patience without a validation part, which stops nothing.
func TestWarnsOfValidation(t *testing.T) {
	model, parts := fittest.Small, fittest.Parts(t, 60)
	model.Likelihood = bayes.Gaussian{StdDev: .01}
	method := MAP{Training{Epochs: 3, BatchSize: 8, Patience: 5}}
	want, _ := fitted(t, model, method, dataset.Parts{Train: parts.Train}, run.Settings{})
	parts.Validation.Y[0] = 9e17
	r, _ := fitted(t, model, method, parts, run.Settings{})
	if !slices.Equal(fittest.Numbers(t, r.Posterior), fittest.Numbers(t, want.Posterior)) {
		t.Error("the parameters are not the last")
	}
	for text, warnings := range map[string][]string{
		"of 1 members 1 never had a finite NLPD": r.Warnings, "Training.Patience is 5": want.Warnings,
	} {
		if !strings.Contains(strings.Join(warnings, "\n"), text) {
			t.Errorf("warnings %q without %q", warnings, text)
		}
	}
}

// A second stage goes on from the training that it follows. With another validation part, which chooses other
// parameters of the training, nothing of the first run's second stage is taken, although their checkpoints are in one
// folder.
func TestSecondStageIsOfItsTraining(t *testing.T) {
	parts, training := fittest.Parts(t, 60), Training{Epochs: 30, BatchSize: 8, ValidateEvery: 1}
	other := dataset.Parts{Train: parts.Train, Validation: parts.Test}
	few := mcmc.Chains{Kernel: mcmc.HMC{StepSize: .02, Steps: 3}, Chains: 2, Draws: 5, WarmUp: 5}
	for _, method := range []fit.Method{
		SWAG{Training: training, Collect: 3}, SAE{Training: training, Chains: 2, Members: 2},
		MAPHMC{Training: training, Chains: few},
	} {
		settings := run.Settings{Checkpoint: filepath.Join(t.TempDir(), "run-*")}
		want, _ := fitted(t, fittest.Small, method, other, run.Settings{})
		_, first := fitted(t, fittest.Small, method, parts, settings)
		got, second := fitted(t, fittest.Small, method, other, settings)
		if first.Best[0].Step == second.Best[0].Step {
			t.Errorf("%T: both trainings are best at step %d: this tests little", method, first.Best[0].Step)
		}
		if !slices.Equal(fittest.Numbers(t, got.Posterior), fittest.Numbers(t, want.Posterior)) {
			t.Errorf("%T: with checkpoints of another run beside it the posterior is another", method)
		}
	}
}

// What is compiled is compiled once for other seeds, splits of the same sizes and learning rates.
func TestCompiledOnce(t *testing.T) {
	settings := run.Settings{Engine: computetest.Go(t)}
	few := mcmc.Chains{Kernel: mcmc.HMC{StepSize: .01, Steps: 3}, Draws: 2, WarmUp: 2}
	var compiled []int
	for i, rate := range []float64{.01, .03} {
		training := Training{Epochs: 3, BatchSize: 8, Optimiser: train.Adam{Schedule: train.Constant(rate)}}
		settings.Seed = uint64(i)
		parts := fittest.Parts(t, 60)
		for n := range parts.Train.Y {
			parts.Train.Y[n] += rate // other rows each time
		}
		for _, method := range []fit.Method{
			MAP{training}, VI{Training: training}, SWAG{Training: training}, MAPHMC{Training: training, Chains: few},
			SGLD{Training: training, StepSize: .01},
		} {
			fitted(t, fittest.Small, method, parts, settings)
		}
		compiled = append(compiled, settings.Engine.Compiled())
	}
	if compiled[1] != compiled[0] {
		t.Errorf("%d programs were compiled again", compiled[1]-compiled[0])
	}
}
