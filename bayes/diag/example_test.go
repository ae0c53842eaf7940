package diag_test

import (
	"fmt"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/diag"
)

// Four chains of 1000 draws: the first parameter mixes well, the second slowly, and of the third one chain has found
// another mode.
func Example() {
	const chains, draws = 4, 1000
	rng := rand.New(rand.NewPCG(1, 1))
	var values []float64
	for chain := range chains {
		slow, mode := 0.0, 0.0
		if chain == 3 {
			mode = 4
		}
		for range draws {
			slow = 0.98*slow + 0.2*rng.NormFloat64()
			values = append(values, rng.NormFloat64(), slow, mode+rng.NormFloat64())
		}
	}
	summary, err := diag.OfSample(diag.Sample{Values: values, Chains: chains, Draws: draws, Parameters: 3,
		Names: []string{"good", "slow", "mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(summary)
	// Output:
	// 4 chains, 1000 draws each, 3 parameters
	// parameter  mean       sd    MCSE mean  bulk ESS  tail ESS  R-hat
	// good       -0.005421  1     0.016      4053      4013      1.000
	// slow       -0.0363    1.02  0.18       31        57        1.126
	// mode       0.9965     2     0.88       7         28        1.522
	// R-hat is above 1.01 for 2 of 3 parameters, worst 1.522 for mode
	// bulk ESS is below 400 for 2 of 3 parameters, worst 7 for mode
	// tail ESS is below 400 for 2 of 3 parameters, worst 28 for mode
}

// Importance weights of a proposal N(0, s^2) for the target N(0, 1). A proposal that is too narrow misses the tails: k
// is 1 - s^2, and below 0 where the weights are bounded.
func ExamplePSIS() {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []float64{1.5, 0.4} {
		logWeights := make([]float64, 4000)
		for j := range logWeights {
			z := rng.NormFloat64()
			logWeights[j] = z*z/2 - s*s*z*z/2
		}
		weights, err := bayes.NewLogWeights(logWeights)
		if err != nil {
			fmt.Println(err)
			return
		}
		smoothed, err := diag.PSIS(weights, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("scale %v: k-hat %.1f, trust: %v\n", s, smoothed.KHat, smoothed.KHat < .7)
	}
	// Output:
	// scale 1.5: k-hat -1.7, trust: true
	// scale 0.4: k-hat 0.8, trust: false
}
