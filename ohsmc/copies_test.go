package ohsmc

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
)

// The first weighing leaves copies of a few particles. Steps too short to take them apart are warned of, although all
// weights are equal; longer ones are not, and their mean gradient is what the effective sample size promises. Where the
// target changes, or there is no gradient, it is not known.
func TestGuidedWarnsOfCopies(t *testing.T) {
	line := fittest.Line(.3)
	learnt := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .3, Learn: true}, Stochastic: bayes.All()}
	for _, c := range []struct {
		name     string
		model    bayes.Model
		proposal Proposal
		stepSize float64
		batch    int
		steps    int
		want     string // warned, quiet or unknown
	}{
		{"Langevin, short", line, Langevin{}, .005, 30, 20, "warned"},
		{"paper's form, short", line, Langevin{PaperForm: true}, .001, 30, 20, "warned"},
		{"HMC, short", line, HMC{}, .001, 30, 15, "warned"},
		{"Langevin", line, Langevin{}, .045, 30, 80, "quiet"},
		{"HMC", line, HMC{}, .04, 30, 30, "quiet"},
		{"random walk", line, RandomWalk{}, .001, 30, 10, "unknown"},
		{"batches", line, Langevin{}, .005, 15, 10, "unknown"},
		{"noise learnt", learnt, Langevin{}, .005, 30, 10, "unknown"},
	} {
		method := Guided{
			Training: particles.Training{Particles: 500, BatchSize: c.batch, Epochs: c.steps * c.batch / 30},
			Proposal: c.proposal, StepSize: train.Constant(c.stepSize),
		}
		result, details := fitted(t, c.model, method, dataset.Parts{Train: fittest.Data(30)},
			run.Settings{DType: compute.Float64})
		last := details.Trace[len(details.Trace)-1]
		t.Logf("%s: ESS %.0f, mean gradient %.2f", c.name, last.ESS, last.MeanGradient)
		got := "quiet"
		switch {
		case math.IsNaN(last.MeanGradient):
			got = "unknown"
		case strings.Contains(strings.Join(result.Warnings, " "), "the mean gradient of the log-density"):
			got = "warned"
		}
		if got != c.want || last.ESS < 250 && c.want != "unknown" {
			t.Errorf("%s: %s with a mean gradient of %.2f and an ESS of %.0f, want %s: %q", c.name, got, last.MeanGradient,
				last.ESS, c.want, result.Warnings)
		}
	}
}

// Of two coordinates with the weighted mean gradients 1 and 1/2 and the mean squares 3 and 1, where 1/ESS = 3/8, the
// squares are 8/9 and 2/3. Resampling adds the error of 3 draws, 1/3: 24/51 and 18/51.
func TestMeanGradient(t *testing.T) {
	for resampled, want := range map[float64]float64{
		0: math.Sqrt((8./9 + 2./3) / 2), 1: math.Sqrt((24./51 + 18./51) / 2),
	} {
		got := computetest.Run(t, computetest.Go(t), func(g *graph.Graph, _ []*graph.Node) []*graph.Node {
			gradient := graph.Const(g, [][]float64{{1, 1}, {3, 1}, {-1, -1}})
			weights := graph.Log(graph.Const(g, []float64{.5, .25, .25}))
			return []*graph.Node{meanGradient(gradient, weights, weights, graph.Const(g, resampled))}
		})[0]
		computetest.Near(t, "mean gradient", got, []float64{want}, 1e-6)
	}
}
