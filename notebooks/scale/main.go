// Command scale makes the numbers of SCALE.md on runs that are joined to one posterior: chains of a small network, or
// islands of SMC on a line whose evidence is known. It is what a program for a cluster looks like, too: it reads its
// data, and calls cluster.Fit, which sends it to the nodes.
//
//	go run ./notebooks/scale chains                            in this process
//	go run ./notebooks/scale -on ray chains                    on a cluster of this machine's processors
//	go run ./notebooks/scale -on ray://head:10001 islands      on one that runs
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/cluster"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/notebooks/program"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"
)

func main() {
	program.Main(func(ctx context.Context) error { return dispatch(ctx, os.Args[1:]) })
}

func dispatch(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	on := flags.String("on", "", "where: in this process, or as cluster.Options.On says")
	what, err := program.Parse(flags, `usage: go run ./notebooks/scale [-on ray] chains | islands

Makes the numbers of SCALE.md on chains that are joined, or on islands.
`, args)
	if err != nil {
		return err
	}
	if len(what) != 1 || what[0] != "chains" && what[0] != "islands" {
		return fmt.Errorf("scale: %q: it must be chains or islands", what)
	}
	folder, err := os.MkdirTemp("", "gobnn-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	o := cluster.Options{On: *on, Folder: filepath.Join(folder, what[0])}
	if what[0] == "chains" {
		return chains(ctx, o)
	}
	return islands(ctx, o)
}

// chains are twelve runs of four chains each, of a network with 161 parameters.
func chains(ctx context.Context, o cluster.Options) error {
	model := bayes.Model{Network: nn.MLP{Hidden: []int{20}}, Likelihood: bayes.Gaussian{StdDev: .5},
		Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All()}
	method := mcmc.Chains{Kernel: mcmc.HMC{Steps: 20}, Chains: 4, Draws: 500, WarmUp: 500}
	began := time.Now()
	result, err := cluster.Fit(ctx, o, 12, model, method, dataset.Parts{Train: dataset.MustLoad("yacht")},
		run.Settings{Seed: 1})
	if err != nil {
		return err
	}
	sum, err := digest(result.Posterior)
	if err != nil {
		return err
	}
	fmt.Printf("%.1f s: %d draws of %d chains, digest %s\n", time.Since(began).Seconds(), result.Posterior.Particles(),
		result.Posterior.Chains(), sum)
	fmt.Println(len(result.Warnings), "warnings")
	return nil
}

// digest is a hash over all draws, bit by bit.
func digest(p *bayes.Posterior) (string, error) {
	draws, err := p.Draws()
	if err != nil {
		return "", err
	}
	values, err := compute.Float64s(draws.Phi)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := binary.Write(sum, binary.LittleEndian, values); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.12x", sum.Sum(nil)), nil
}

// The line's noise, and the standard deviation of its prior.
const noise, prior = .5, 1.

// islands are sixteen of ten particles each, so few that their weights differ. Ladder and kernel are fixed, so that the
// evidence has no bias.
func islands(ctx context.Context, o cluster.Options) error {
	data, err := dataset.NoisyLine(200, noise, 1)
	if err != nil {
		return err
	}
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: noise},
		Prior: bayes.Normal{StdDev: prior}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepFeatures: true, KeepTarget: true}}
	method := smc.Tempered{Kernel: mcmc.PreconditionedCrankNicolson{Beta: .2}, Particles: 10, Moves: 5}
	for k := range 16 {
		method.Ladder = append(method.Ladder, math.Pow(.001, 1-float64(k+1)/16))
	}
	began := time.Now()
	result, err := cluster.Fit(ctx, o, 16, model, method, dataset.Parts{Train: data}, run.Settings{Seed: 1})
	if err != nil {
		return err
	}
	sum, err := digest(result.Posterior)
	if err != nil {
		return err
	}
	evidence := result.Posterior.Evidence()
	fmt.Printf("%.1f s: log evidence %.3f ± %.3f, exact %.3f, digest %s\n", time.Since(began).Seconds(), evidence.Value,
		evidence.StdErr, exact(data), sum)
	for _, m := range fit.Details[[]cluster.Meeting](result) {
		fmt.Printf("power %.4f: %.1f of 16 islands by their weights, of %.1f first ones, resampled: %v\n", m.Power, m.ESS,
			m.First, m.Resampled)
	}
	fmt.Println(len(result.Warnings), "warnings")
	return nil
}

// exact is the line's log evidence: slope and intercept are normal, and so are the targets, all together.
func exact(data *dataset.Dataset) float64 {
	n := data.Rows()
	covariance := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c := prior * prior * (1 + data.X.At(i, 0)*data.X.At(j, 0))
			if i == j {
				c += noise * noise
			}
			covariance.SetSym(i, j, c)
		}
	}
	normal, ok := distmv.NewNormal(make([]float64, n), covariance, nil)
	if !ok {
		return math.NaN()
	}
	return normal.LogProb(data.Y)
}
