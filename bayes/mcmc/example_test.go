package mcmc_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"
)

// Twenty chains of Hamiltonian Monte Carlo on a Gaussian with standard deviation 3 and mean 1 in each of four coordinates. The warm-up chooses the step
// size and the scales; Jitter keeps trajectories from coming back to where they began, as they all would on a Gaussian.
func ExampleSample() {
	problem := mcmc.Problem{
		Dim: 4,
		Target: func(compute.Nodes, []*graph.Node) mcmc.Target {
			return mcmc.Density(func(phi *graph.Node) *graph.Node { // [J, D] to [J]
				z := graph.DivScalar(graph.AddScalar(phi, -1), 3)
				return graph.MulScalar(graph.ReduceSum(graph.Square(z), 1), -0.5)
			})
		},
	}
	result, err := mcmc.Sample(context.Background(), problem, mcmc.HMC{Steps: 5, Jitter: 0.5}, mcmc.Settings{Chains: 20, Draws: 200, WarmUp: 200, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	var draws []float64
	for _, chain := range result.Draws.Coordinate(0) {
		draws = append(draws, chain...)
	}
	mean, sd := stat.MeanStdDev(draws, nil)
	fmt.Printf("%s: %d chains of %d draws\n", result.Status, result.Draws.Chains, result.Draws.PerChain)
	fmt.Println("mean near 1:", scalar.EqualWithinAbs(mean, 1, 0.2), " standard deviation near 3:", scalar.EqualWithinAbs(sd, 3, 0.2))
	// Output:
	// completed: 20 chains of 200 draws
	// mean near 1: true  standard deviation near 3: true
}
