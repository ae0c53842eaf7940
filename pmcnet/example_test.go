package pmcnet_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
)

// Kinds of glass by PMCnet: predictions by the weighted draws, and scores of
// single draws as the paper reports them. The result's warnings say whether the draws are the posterior's.
func ExampleFit() {
	ctx := context.Background()
	data := dataset.Glass()
	parts, err := data.Split(dataset.Fractions{Train: .6, Validation: .2, Test: .2}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10}, Activation: nn.Tanh},
		Likelihood: bayes.Categorical{}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}
	algorithm := pmcnet.PMC{
		Covariance: pmcnet.DiagonalCovariance, Weights: pmcnet.Tempered, Resampling: pmcnet.GlocalEvery(2),
		Start: pmcnet.FromPrior, StdDev: .5,
	}
	result, err := pmcnet.Fit(ctx, model, algorithm, parts, pmcnet.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		log.Fatal(err)
	}
	nlpd, err := metric.NLPD(prediction, parts.Test.Y) // of the weighted predictive mean
	if err != nil {
		log.Fatal(err)
	}
	scores, err := metric.ScoreDraws(prediction, parts.Test.Y, metric.DrawOptions{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("NLPD", nlpd)
	fmt.Println(scores[0])
	fmt.Println(result.Warnings)
}

// A log-density of one's own, here two independent Gaussians with the mass exp(1.5): the evidence is its integral.
func ExampleSample() {
	problem := mcmc.Problem{
		Dim: 2,
		Target: func(compute.Nodes, []*graph.Node) mcmc.Target {
			return mcmc.Density(func(phi *graph.Node) *graph.Node { // [J, 2] to [J]
				square := graph.ReduceSum(graph.Square(graph.AddScalar(phi, -1)), 1)
				return graph.AddScalar(graph.MulScalar(square, -.5), 1.5-math.Log(2*math.Pi))
			})
		},
		Initial: func(rng random.Stream, dtype compute.DType, proposals int) *graph.Node { // where the means begin
			return rng.Normal(dtype, proposals, 2)
		},
	}
	algorithm := pmcnet.PMC{Proposals: 20, StdDev: 1, Iterations: 10}
	result, err := pmcnet.Sample(context.Background(), problem, algorithm, pmcnet.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("log evidence %.1f, k-hat below .7: %v\n", result.Evidence.Value, result.KHat < pmcnet.MaxKHat)
	fmt.Printf("%d warnings, more than half of the %d draws count: %v\n", len(result.Warnings), result.LogWeights.Len(),
		result.ESS > 1000)
	// Output:
	// log evidence 1.5, k-hat below .7: true
	// 0 warnings, more than half of the 2000 draws count: true
}
