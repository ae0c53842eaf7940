package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gobnn/bayes"
	"gobnn/bayes/cluster"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// Four runs of two chains each make a posterior of eight chains. Here they are made in the process; with On:
// "ray://head:10001" each is a task on a cluster, to which this program is sent, and gives the same bits.
func ExampleFit() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	model := bayes.Model{Network: nn.MLP{Hidden: []int{3}}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.All()}
	chains := mcmc.Chains{Kernel: mcmc.HMC{Steps: 5}, Chains: 2, Draws: 50, WarmUp: 50}
	result, err := cluster.Fit(context.Background(), cluster.Options{Folder: filepath.Join(folder, "chains")}, 4,
		model, chains, dataset.Parts{Train: dataset.MustLoad("yacht")}, run.Settings{Seed: 1})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Posterior.Particles(), "draws of", result.Posterior.Chains(), "chains")
	// Output: 400 draws of 8 chains
}
