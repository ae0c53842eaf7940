package surrogate_test

import (
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/surrogate"

	"github.com/gomlx/gomlx/core/graph"
)

// A density near the Gaussian of its mode, with scales that differ by a thousand: Sample finds the mode and the
// coordinates in which all scales are one.
func ExampleSample() {
	problem := density.Problem{Dim: 2, Target: func(compute.Nodes, []*graph.Node) density.Target {
		return density.Func(func(phi *graph.Node) *graph.Node {
			scales := graph.Const(phi.Graph(), [][]float32{{1000, 1}})
			z := graph.Mul(phi, graph.BroadcastToDims(graph.ConvertDType(scales, phi.DType()), phi.Shape().Dimensions...))
			return graph.MulScalar(graph.ReduceSum(graph.Square(z), 1), -.5)
		})
	}}
	result, err := surrogate.Sample(context.Background(), surrogate.Problem{Problem: problem}, surrogate.Settings{
		Settings: mcmc.Settings{Draws: 100, WarmUp: 10, DType: compute.Float64},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("steps of %.2f, accepted with probability %.2f\n", result.Kernel.StepSize, result.Stats[0].Acceptance)
	fmt.Printf("one standard deviation is %.3f and %.3f\n", result.Whitening.ToTheta[0], result.Whitening.ToTheta[3])
	fmt.Println("evaluations:", result.Evaluations.FullGradients, "gradients")
	// Output:
	// steps of 1.57, accepted with probability 1.00
	// one standard deviation is 0.001 and 1.000
	// evaluations: 400 gradients
}
