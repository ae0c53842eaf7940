package pmcnet_test

import (
	"context"
	"fmt"
	"log"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/pmcnet"
)

// The paper's algorithm on a linear model of seven weights, resampling globally in every second iteration as the
// authors' program does. k-hat says whether the weights can be trusted; where it is above .7 there is no evidence.
func ExamplePMC() {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}}
	parts := dataset.Parts{Train: dataset.MustLoad("yacht")}
	method := pmcnet.PMC{Resampling: pmcnet.GlocalEvery(2)}
	result, err := fit.Fit(context.Background(), model, method, parts, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	posterior := result.Posterior
	fmt.Println(result.Status, "with", posterior.Particles(), "draws")
	fmt.Println("k-hat is at most .7:", fit.Details[*pmcnet.Details](result).KHat <= pmcnet.MaxKHat)
	fmt.Println("evidence with a standard error below .1:", posterior.Evidence().StdErr < .1)
	// Output:
	// completed with 5000 draws
	// k-hat is at most .7: true
	// evidence with a standard error below .1: true
}
