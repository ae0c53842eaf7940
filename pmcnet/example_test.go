package pmcnet_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/pmcnet"
)

// The paper's algorithm on a linear model of seven weights, resampling globally in every second iteration as the
// authors' program does. k-hat says whether the weights can be trusted; where it is above .7 there is no evidence.
func ExampleFit() {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All()}
	algorithm := pmcnet.PMC{Resampling: pmcnet.GlocalEvery(2)}
	data := dataset.Parts{Train: dataset.Yacht()}
	result, err := pmcnet.Fit(context.Background(), model, algorithm, data, pmcnet.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, "with", result.Posterior.Particles(), "draws")
	fmt.Println("k-hat is at most .7:", result.KHat <= pmcnet.MaxKHat)
	fmt.Println("evidence with a standard error below .1:", result.Evidence.StdErr < .1)
	// Output:
	// completed with 5000 draws
	// k-hat is at most .7: true
	// evidence with a standard error below .1: true
}
