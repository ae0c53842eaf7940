package mcmc

import (
	"context"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// badlyScaled is a Gaussian in ten dimensions whose standard deviations, sd, go from 0.1 to 30, with means of 1.
func badlyScaled() (problem Problem, sd []float64) {
	ones := make([]float64, 10)
	for k := range ones {
		ones[k] = 1
		sd = append(sd, .1*math.Pow(300, float64(k)/9))
	}
	return Problem{Name: "badly scaled", Dim: 10, Target: func(compute.Nodes, []*Node) Target {
		return Density(func(phi *Node) *Node {
			return MulScalar(ReduceSum(Square(Div(Sub(phi, row(phi, ones)), row(phi, sd))), 1), -.5)
		})
	}}, sd
}

func TestWarmUp(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		problem, sd := badlyScaled()
		for _, kernel := range []Tunable{RandomWalkMetropolis{}, MALA{}, HMC{Steps: 5}} {
			result, err := Sample(context.Background(), problem, kernel, Settings{Chains: 20, Draws: 200, WarmUp: 600, Seed: 3, DType: dtype, Engine: engine})
			if err != nil {
				t.Fatal(err)
			}
			mean := 0.0
			for _, c := range result.Chains {
				mean += c.Acceptance / float64(len(result.Chains))
			}
			if _, want := kernel.Tune(); math.Abs(mean-want) > .05 {
				t.Errorf("%T: mean acceptance %.3f, want %.3f", kernel, mean, want)
			}
			for k, scale := range result.Tuned.Scale {
				if math.Abs(math.Log(scale/sd[k])) > .15 {
					t.Errorf("%T: coordinate %d has scale %.3g, want %.3g", kernel, k, scale, sd[k])
				}
			}
		}
	})
}
