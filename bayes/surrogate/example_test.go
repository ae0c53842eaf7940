package surrogate_test

import (
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/surrogate"

	"github.com/gomlx/gomlx/core/graph"
)

// A density near the Gaussian of its mode, with scales that differ by a thousand: the run finds the mode and the
// coordinates in which all scales are one, and so takes a quarter turn for a step.
func ExampleChains() {
	problem := density.Problem{Dim: 2, Target: func(compute.Nodes, []*graph.Node) density.Target {
		return density.Func(func(phi *graph.Node) *graph.Node {
			scales := graph.Const(phi.Graph(), [][]float32{{1000, 1}})
			z := graph.Mul(phi, graph.BroadcastToDims(graph.ConvertDType(scales, phi.DType()), phi.Shape().Dimensions...))
			return graph.MulScalar(graph.ReduceSum(graph.Square(z), 1), -.5)
		})
	}}
	result, err := fit.Sample(context.Background(), problem, surrogate.Chains{Draws: 100, WarmUp: 10},
		run.Settings{DType: compute.Float64})
	if err != nil {
		fmt.Println(err)
		return
	}
	details := fit.Details[*surrogate.Details](result)
	fmt.Printf("steps of %.2f, accepted with probability %.2f\n", details.StepSize, details.Chains.Stats[0].Acceptance)
	fmt.Println("evaluations:", details.Chains.Evaluations.FullGradients, "gradients")
	// Output:
	// steps of 1.57, accepted with probability 1.00
	// evaluations: 400 gradients
}
