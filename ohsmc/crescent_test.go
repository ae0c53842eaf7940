package ohsmc

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// crescent is the model of Zhao et al. 2024, section 4.1, as a network of one layer: f = phi_1/psi + (phi_0^2 +
// psi^2)/2 whatever the features. psi begins at 0.1.
type crescent struct{}

func (c crescent) Layers(int, int) ([]nn.Layer, error) { return []nn.Layer{c}, nil }

func init() { bayes.Register(crescent{}) }

func (crescent) Parameters() []nn.Parameter {
	var parameters []nn.Parameter
	for i, name := range []string{"phi0", "phi1", "psi less 0.1"} {
		parameters = append(parameters, nn.Parameter{Name: name, Layer: i + 1, Kind: nn.Biases, Shape: []int{1}, FanIn: 1,
			FanOut: 1})
	}
	return parameters
}

func (crescent) Apply(leaves nn.Params, h nn.Value) nn.Value {
	psi := graph.ExpandAxes(graph.AddScalar(leaves["psi less 0.1"].Node, 0.1), 0, -1) // [1, 1, 1]
	phi0, phi1 := leaves["phi0"].Node, leaves["phi1"].Node                            // [J/c, 1, c]
	f := graph.Add(graph.Div(phi1, psi), graph.MulScalar(graph.Add(graph.Square(phi0), graph.Square(psi)), 0.5))
	return nn.Value{Node: graph.BroadcastToDims(graph.ExpandAxes(f, 2), f.Shape().Dim(0), 1, h.Node.Shape().Dim(1),
		f.Shape().Dim(2)), PerParticle: true}
}

// logEvidence is log p(y; psi) but for a constant: phi_1 is integrated analytically, phi_0 by the trapezoidal rule.
func (crescent) logEvidence(y []float64, psi float64) float64 {
	mean, variance := stat.Mean(y, nil), 1/float64(len(y))+1/(psi*psi)
	sum := 0.0
	for i := -4000; i <= 4000; i++ {
		phi0 := float64(i) * .002
		d := mean - (phi0*phi0+psi*psi)/2
		sum += math.Exp(-phi0*phi0/4 - d*d/(2*variance))
	}
	return math.Log(sum) - math.Log(variance)/2
}

// On the paper's crescent the algorithms find the psi that maximises the evidence, which lies near the true 1 (figure
// 1): SMC on all of 15 rows here, SGSMC on batches of 10 of 100 and OHSMC in TestCrescentLong. The maximum is flat: the
// tolerance of 0.15 is where the log evidence has fallen by 0.02 (0.03 of 15 rows); six seeds came to 0.08 of it.
func TestCrescent(t *testing.T) {
	kernel := mcmc.RandomWalkMetropolis{StepSize: 1}
	learnCrescent(t, 15, SMC{Training: crescentTraining(300, 15, 40, 1), Kernel: kernel, Moves: 2, Precondition: true})
}

// crescentTraining has a learning rate that falls by 4 % in so many steps: the paper's 10, and 1 for the 40 steps of
// SMC.
func crescentTraining(count, batch, epochs, every int) particles.Training {
	return particles.Training{Particles: count, BatchSize: batch, Epochs: epochs,
		Optimiser: train.Adam{Schedule: train.Exponential(.1, .96, every)}}
}

func learnCrescent(t *testing.T, rows int, method fit.Method) {
	t.Helper()
	model := fittest.Raw(bayes.Model{
		Network: crescent{}, Likelihood: bayes.Gaussian{StdDev: 1},
		Prior:      bayes.Normal{PerLayer: map[int]float64{1: math.Sqrt2, 2: 1}},
		Stochastic: bayes.Names("phi0", "phi1"),
	})
	data, err := dataset.Crescent(rows, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	best, maximum := math.Inf(-1), 0.0
	for psi := .05; psi < 3; psi += .005 {
		if v := (crescent{}).logEvidence(data.Y, psi); v > best {
			best, maximum = v, psi
		}
	}
	result, _ := fitted(t, model, method, dataset.Parts{Train: data}, run.Settings{})
	shift, _, err := result.Posterior.Parameter("psi less 0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%T: psi %.3f, the evidence's maximum is at %.3f", method, shift[0]+.1, maximum)
	if psi := shift[0] + .1; math.Abs(psi-maximum) > .15 {
		t.Errorf("%T: psi %.3f, the evidence's maximum is at %.3f", method, psi, maximum)
	}
}
