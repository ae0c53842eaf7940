package smc_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/integrate/quad"
)

// A log-density of one's own: counts of four days are Poisson with rate exp(phi), and phi is N(0, 1) before. Prior and
// likelihood are given apart, each with its constants, since the evidence is the integral of their product; in one
// dimension quadrature has it too.
func ExampleTempered() {
	counts, constant := []float64{3, 5, 2, 4}, 0.
	total := 0.
	for _, y := range counts {
		total += y
		logFactorial, _ := math.Lgamma(y + 1)
		constant -= logFactorial
	}
	days := float64(len(counts))
	posterior := smc.Posterior{
		Prior: func(phi *graph.Node) *graph.Node { // [J, 1] to [J]
			square := graph.ReduceSum(graph.Square(phi), 1)
			return graph.AddScalar(graph.MulScalar(square, -0.5), -math.Log(2*math.Pi)/2)
		},
		Likelihood: func(phi *graph.Node) *graph.Node {
			logLik := graph.Sub(graph.MulScalar(phi, total), graph.MulScalar(graph.Exp(phi), days))
			return graph.AddScalar(graph.ReduceSum(logLik, 1), constant)
		},
	}
	problem := density.Problem{
		Dim:    1,
		Target: func(compute.Nodes, []*graph.Node) density.Target { return posterior },
		Initial: func(rng random.Stream, dtype compute.DType, particles int) *graph.Node { // draws from the prior
			return rng.Normal(dtype, particles, 1)
		},
	}
	method := smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Particles: 4000}
	result, err := fit.Sample(context.Background(), problem, method, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	exact := math.Log(quad.Fixed(func(phi float64) float64 {
		return math.Exp(-phi*phi/2-math.Log(2*math.Pi)/2) * math.Exp(total*phi-days*math.Exp(phi)+constant)
	}, -8, 8, 200, nil, 0))
	evidence := result.Draws.Evidence
	off := (evidence.Value - exact) / evidence.StdErr
	fmt.Printf("%s: log evidence %.0f, by quadrature %.2f\n", result.Status, evidence.Value, exact)
	fmt.Println("within .1:", evidence.StdErr < .1, " and within 4 of its standard errors:", math.Abs(off) < 4)
	// Output:
	// completed: log evidence -9, by quadrature -8.95
	// within .1: true  and within 4 of its standard errors: true
}
