package ohsmc_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/ohsmc"

	"github.com/gomlx/gomlx/core/graph"
)

// crankNicolson is a proposal of one's own: phi' = sqrt(1 - h^2) phi + h z, z standard normal. It leaves N(0, I) as
// it is, forwards and backwards, so q serves as its own backward kernel: log L - log q is log N(phi; 0, I) - log
// N(phi'; 0, I).
type crankNicolson struct{}

func (crankNicolson) NeedsGradient() bool { return false }

func (crankNicolson) Check() error { return nil }

func (crankNicolson) Propose(
	rng random.Stream, from mcmc.State, _ density.Target, stepSize *graph.Node,
) ohsmc.Proposed {
	z := rng.Normal(from.Phi.DType(), from.Phi.Shape().Dimensions...)
	shrink := graph.Sqrt(graph.OneMinus(graph.Square(stepSize)))
	phi := graph.Add(graph.Mul(from.Phi, shrink), graph.Mul(z, stepSize))
	norm := func(phi *graph.Node) *graph.Node { return graph.ReduceSum(graph.Square(phi), 1) }
	ratio := graph.MulScalar(graph.Sub(norm(phi), norm(from.Phi)), .5) // [J]
	return ohsmc.Proposed{Phi: phi, LogRatio: func(of density.Evaluated, _ *graph.Node) *graph.Node {
		return of.Of(ratio) // of the particles that are evaluated
	}}
}

// A proposal of one's own for Guided, which keeps to a standard normal prior.
func ExampleProposal() {
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Layers(3),
	}
	guided := ohsmc.Guided{
		Training: particles.Training{Particles: 100, BatchSize: 20, Epochs: 20, ValidateEvery: 10},
		Proposal: crankNicolson{}, StepSize: train.Constant(.1),
	}
	result, err := fit.Fit(context.Background(), model, guided, parts, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	training := fit.Details[*particles.Details](result)
	first, last := training.Validated[0].NLPD, training.Best.NLPD
	fmt.Println(result.Status, "after", training.Steps, "steps; the validation NLPD fell:", last < first-.2)
	// Output:
	// completed after 200 steps; the validation NLPD fell: true
}
