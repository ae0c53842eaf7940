package mcmc_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"
)

// Twenty chains of Hamiltonian Monte Carlo on a Gaussian with standard deviation 3 and mean 1 in each of four
// coordinates. The warm-up chooses the step size and the scales; Jitter keeps trajectories from coming back to where
// they began, as they all would on a Gaussian.
func ExampleChains() {
	problem := density.Problem{
		Dim: 4,
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node { // [J, D] to [J]
				z := graph.DivScalar(graph.AddScalar(phi, -1), 3)
				return graph.MulScalar(graph.ReduceSum(graph.Square(z), 1), -0.5)
			})
		},
	}
	chains := mcmc.Chains{Kernel: mcmc.HMC{Steps: 5, Jitter: 0.5}, Chains: 20, Draws: 200, WarmUp: 200}
	result, err := fit.Sample(context.Background(), problem, chains, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	var draws []float64
	all := fit.Details[*mcmc.Details](result).Draws
	for _, chain := range all.Coordinate(0) {
		draws = append(draws, chain...)
	}
	mean, sd := stat.MeanStdDev(draws, nil)
	fmt.Printf("%s: %d chains of %d draws\n", result.Status, all.Chains, all.PerChain)
	fmt.Println(
		"mean near 1:", scalar.EqualWithinAbs(mean, 1, 0.2), " standard deviation near 3:", scalar.EqualWithinAbs(sd, 3, 0.2),
	)
	// Output:
	// completed: 20 chains of 200 draws
	// mean near 1: true  standard deviation near 3: true
}

// run.Watched calls a function of yours after each step: here it leaves the run as soon as every chain has 50 draws.
func ExampleChains_watched() {
	problem := density.Problem{Dim: 2, Target: func(compute.Nodes, []*graph.Node) density.Target {
		return density.Func(func(phi *graph.Node) *graph.Node { // [J, D] to [J]: a standard normal
			return graph.MulScalar(graph.ReduceSum(graph.Square(phi), 1), -0.5)
		})
	}}
	chains := mcmc.Chains{Kernel: mcmc.RandomWalkMetropolis{StepSize: 2}, Chains: 10, Draws: 1000, WarmUp: 100}
	ctx, leave := context.WithCancel(context.Background())
	watched := run.Watched(ctx, func(p run.Progress, _ run.Machine) {
		if p.Stage == "draws" && p.Step >= 10*50 { // draws of all chains together
			leave()
		}
	})
	result, err := fit.Sample(watched, problem, chains, run.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	details := fit.Details[*mcmc.Details](result)
	fmt.Println(details.WarmUpMoves, "moves of warm-up,", details.Draws.PerChain, "draws of a chain")
	// Output:
	// 100 moves of warm-up, 50 draws of a chain
}

// independence proposes from N(0, StdDev^2), wherever a particle is, and accepts by the ratio of Metropolis and
// Hastings.
type independence struct {
	StdDev float64 `json:"std_dev"`
}

// Traits implements mcmc.Kernel.
func (k independence) Traits() mcmc.Traits {
	return mcmc.Traits{Carries: mcmc.CarriesLogDensity, Exact: true}
}

func (k independence) Check(int) error {
	if !(k.StdDev > 0) {
		return fmt.Errorf("independence.StdDev is %v: it must be positive", k.StdDev)
	}
	return nil
}

func (k independence) Move(
	rng random.Stream, s mcmc.State, target density.Target, _ mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	z := rng.Named("proposal").Normal(s.Phi.DType(), s.Phi.Shape().Dimensions...)
	proposal := mcmc.State{Phi: graph.MulScalar(z, k.StdDev)}
	proposal.LogDensity = compute.Gate(target.LogDensity(proposal.Phi))
	// log p - log q, but for a constant
	logWeight := func(s mcmc.State) *graph.Node {
		logProposal := graph.MulScalar(graph.ReduceSum(graph.Square(s.Phi), 1), -0.5/(k.StdDev*k.StdDev))
		return graph.Sub(s.LogDensity, logProposal)
	}
	return mcmc.MetropolisHastings(rng, s, proposal, graph.Sub(logWeight(proposal), logWeight(s)))
}

// A kernel of one's own, on a Gaussian with mean 1 and standard deviation 1: an independence sampler. In a test,
// check.Kernel(t, independence{StdDev: 2}, check.Options{}) holds it to distributions of which everything is known.
func ExampleKernel() {
	problem := density.Problem{
		Dim: 1,
		Target: func(compute.Nodes, []*graph.Node) density.Target {
			return density.Func(func(phi *graph.Node) *graph.Node { // [J, D] to [J]
				return graph.MulScalar(graph.ReduceSum(graph.Square(graph.AddScalar(phi, -1)), 1), -0.5)
			})
		},
	}
	result, err := fit.Sample(context.Background(), problem, mcmc.Chains{
		Kernel: independence{StdDev: 2}, Chains: 20, Draws: 1000, WarmUp: 50,
	}, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	var draws []float64
	for _, chain := range fit.Details[*mcmc.Details](result).Draws.Coordinate(0) {
		draws = append(draws, chain...)
	}
	mean, sd := stat.MeanStdDev(draws, nil)
	fmt.Printf("mean %.1f, standard deviation %.1f, exact: %v\n", mean, sd, independence{}.Traits().Exact)
	// Output:
	// mean 1.0, standard deviation 1.0, exact: true
}
