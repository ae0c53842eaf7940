package annealed_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet/annealed"

	"gonum.org/v1/gonum/mat"
)

// Twelve points of a curve that bends: is a straight line enough? The evidence of a linear model and that of a network
// with two hidden units say how probable each is, given the data. Each run has two estimates of the evidence or three,
// and says which it takes. Particles walk at random: for so few weights that is enough, and the programs, which have no
// gradients, are compiled in half the time.
func Example() {
	const n = 12
	x, y := mat.NewDense(n, 1, nil), make([]float64, n)
	for i := range n {
		v := -2 + 4*float64(i)/(n-1)
		x.Set(i, 0, v)
		y[i] = math.Sin(2 * v)
	}
	data := &dataset.Dataset{Name: "curve", Task: dataset.Regression, X: x, Y: y, Features: []string{"x"}, Target: "y"}
	method := annealed.Annealed{SMC: smc.Tempered{Kernel: mcmc.RandomWalkMetropolis{}, Particles: 1000}, Draws: 2000}
	var logEvidence []float64
	for _, hidden := range [][]int{nil, {2}} {
		model := bayes.Model{
			Network:    nn.MLP{Hidden: hidden, Activation: nn.Tanh},
			Likelihood: bayes.Gaussian{StdDev: .5},
			Prior:      bayes.Normal{StdDev: 1},
			Stochastic: bayes.All(),
		}
		parts := dataset.Parts{Train: data}
		result, err := fit.Fit(context.Background(), model, method, parts, run.Settings{Seed: 1})
		if err != nil {
			log.Fatal(err)
		}
		said := fit.Details[*annealed.Details](result) // both estimates, and why one of them is the result
		evidence := result.Posterior.Evidence()
		fmt.Println(result.Status, "with a standard error below .2:", evidence.StdErr < .2)
		apart := math.Abs(evidence.Value - said.SMCEvidence.Value)
		fmt.Println("the SMC's is the same within errors:", apart < 4*math.Hypot(evidence.StdErr, said.SMCEvidence.StdErr))
		logEvidence = append(logEvidence, evidence.Value)
	}
	fmt.Println("the network is more probable by a factor above 10:", logEvidence[1]-logEvidence[0] > math.Log(10))
	// Output:
	// completed with a standard error below .2: true
	// the SMC's is the same within errors: true
	// completed with a standard error below .2: true
	// the SMC's is the same within errors: true
	// the network is more probable by a factor above 10: true
}
