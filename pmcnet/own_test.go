package pmcnet_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
)

// honest are the honest weights as weights of one's own, and equal ones are all the same.
type honest struct{}

func (honest) Title() string                                { return "honest" }
func (honest) Weigh(l *graph.Node) (adapt, out *graph.Node) { return l, l }

type equal struct{}

func (equal) Title() string { return "equal" }
func (equal) Weigh(l *graph.Node) (adapt, out *graph.Node) {
	return graph.ZerosLike(l), graph.ZerosLike(l)
}

type flat struct{}

func (flat) Title() string                                { return "flat" }
func (flat) Weigh(l *graph.Node) (adapt, out *graph.Node) { return graph.ReduceAllSum(l), l }

// The honest weights as weights of one's own give the same draws, bit for bit; equal ones leave the draws with equal
// weights, but the evidence, k-hat and effective sample size those of the honest weights; and the result says so.
func TestOwnWeights(t *testing.T) {
	engine := computetest.Go(t)
	parts := dataset.Parts{Train: dataset.Yacht()}
	linear := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All()}
	run := func(a pmcnet.PMC) *pmcnet.Result {
		t.Helper()
		a.Proposals, a.Draws, a.Iterations, a.Start = 4, 12, 3, pmcnet.FromPrior
		r, err := pmcnet.Fit(t.Context(), linear, a, parts, pmcnet.Settings{Seed: 1, Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	draws := func(r *pmcnet.Result) []float64 {
		t.Helper()
		phi, err := compute.Float64s(r.Phi)
		if err != nil {
			t.Fatal(err)
		}
		return phi
	}
	plain, own, same := run(pmcnet.PMC{}), run(pmcnet.PMC{Own: honest{}}), run(pmcnet.PMC{Own: equal{}})
	if !slices.Equal(draws(plain), draws(own)) || plain.ESS != own.ESS {
		t.Error("honest weights of one's own give other draws")
	}
	if slices.Equal(draws(plain), draws(same)) {
		t.Error("equal weights give the same draws as honest ones")
	}
	if e := same.LogWeights.EffectiveSampleSize(); e < 47.999 || same.ESS > 40 {
		t.Errorf("effective sample sizes: %v of 48 by equal weights, %v by honest ones", e, same.ESS)
	}
	if !strings.Contains(strings.Join(same.Warnings, ";"), `weights of your own, "equal"`) {
		t.Errorf("warnings %q", same.Warnings)
	}
	for _, c := range []struct {
		a    pmcnet.PMC
		says string
	}{
		{pmcnet.PMC{Own: equal{}, Weights: pmcnet.Tempered}, "left out with PMC.Own"},
		{pmcnet.PMC{Own: flat{}, Proposals: 4, Draws: 12, Start: pmcnet.FromPrior}, "not of the shape"},
	} {
		_, err := pmcnet.Fit(t.Context(), linear, c.a, parts, pmcnet.Settings{Engine: engine})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one that says %q", err, c.says)
		}
	}
}

// power are the honest weights to a power that its title leaves out.
type power struct{ Of float64 }

func (power) Title() string { return "power" }
func (p power) Weigh(l *graph.Node) (adapt, out *graph.Node) {
	l = graph.MulScalar(l, p.Of)
	return l, l
}

// Weights of one's own that share a title but not their fields share neither compiled programs nor a checkpoint.
func TestOwnWeightsOfOneTitle(t *testing.T) {
	linear := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All()}
	data := dataset.Parts{Train: dataset.Yacht()}
	file := filepath.Join(t.TempDir(), "run")
	trainer := pmcnet.NewTrainer(linear)
	defer trainer.Close()
	train := func(of float64, file string) (*pmcnet.Result, error) {
		return trainer.Fit(t.Context(), pmcnet.PMC{Own: power{of}, Proposals: 4, Draws: 12, Iterations: 2,
			Start: pmcnet.FromPrior}, data, pmcnet.Settings{Seed: 1, Engine: computetest.Go(t), Checkpoint: file})
	}
	one, err := train(1, file)
	if err != nil {
		t.Fatal(err)
	}
	half, err := train(.5, "")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := one.LogWeights.EffectiveSampleSize(), half.LogWeights.EffectiveSampleSize(); a == b {
		t.Errorf("powers 1 and .5 of the weights both have an effective sample size of %v: they share a program", a)
	}
	if _, err := train(.5, file); err == nil || !strings.Contains(err.Error(), "own weights") {
		t.Errorf("a run with another power went on from the checkpoint: %v", err)
	}
}

// powered are weights by a function of one's own.
type powered struct {
	of func(l *graph.Node) *graph.Node
}

func (powered) Title() string                                  { return "powered" }
func (p powered) Weigh(l *graph.Node) (adapt, out *graph.Node) { return p.of(l), p.of(l) }

// A Sampler does not take two functions of one literal, which capture different numbers, for the same weights.
func TestOwnFunctions(t *testing.T) {
	sampler := pmcnet.Sampler{Problem: problem(check.Line())}
	defer sampler.Close()
	ess := func(power float64) float64 {
		own := powered{func(l *graph.Node) *graph.Node { return graph.MulScalar(l, power) }}
		r, err := sampler.Sample(t.Context(), pmcnet.PMC{Own: own, Proposals: 4, Draws: 12, Iterations: 2}, goSettings(t))
		if err != nil {
			t.Fatal(err)
		}
		weights := 0.
		for j := range r.LogWeights.Len() {
			weights += math.Exp(2 * r.LogWeights.At(j))
		}
		return 1 / weights
	}
	if whole, none := ess(1), ess(0); !(whole < 40) || math.Abs(none-48) > 1e-9 {
		t.Errorf("the honest weights are worth %v draws of 48, and their powers of 0 %v", whole, none)
	}
}
