package study

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/ohsmc"
)

// table4Size is the extent to which Table 4 of Zhao et al. 2024 (section 4.4 and appendix D) is computed.
type table4Size struct {
	model     bayes.Model
	batch     int
	particles []int // J of OHSMC, a row each
	draws     int   // VB's, of each step
	collect   int   // epochs from whose ends SWAG has its Gaussian
	pictureSize
}

// The paper's size, and our default. The paper has J = 1000 and, for the seconds of section 4.4, 100. A step at J =
// 1000 takes some 30 s on two cores, a training 40 hours, so that J = 100 has a row beside it, and the default measures
// on fewer rows what J is worth. The paper does not say how often this experiment is repeated; those on UCI data are
// repeated ten times. It gives SWAG a rank of 100, which 50 iterates do not have.
var (
	table4Paper = table4Size{model: table4Model, batch: 100, particles: []int{1000, 100}, draws: 100, collect: 50,
		pictureSize: pictureSize{50_000, 10_000, 10_000, extent{reps: 10, epochs: 10}}}
	table4Reduced = table4Size{model: table4Model, batch: 20, particles: []int{25, 50, 100, 200}, draws: 10, collect: 6,
		pictureSize: pictureSize{3000, 500, 1000, extent{reps: 1, epochs: 6}}}
)

// table4Model is the paper's net; pixels are in [0, 1].
var table4Model = bayes.Model{
	Network: nn.CNN{Height: mnist.Side, Width: mnist.Side, Hidden: []int{256},
		Convolutions: []nn.Conv{{Filters: 32, Pool: 2}, {Filters: 64, Pool: 2}}},
	Likelihood: bayes.Categorical{},
	Prior:      bayes.Normal{StdDev: 1},
	Stochastic: bayes.Layers(1),
	Scaling:    bayes.Scaling{KeepFeatures: true},
}

// table4Version is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const table4Version = 2

// contenders returns the paper's methods with its settings.
func (size table4Size) contenders() []contender {
	of := func(name string, method fit.Method, particles int) contender {
		return contender{name, []attempt{{Method: method, Particles: particles, Rate: .002}}}
	}
	var all []contender
	for _, j := range size.particles {
		all = append(all, of(fmt.Sprintf("OHSMC, J = %d", j), ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: .01}}, j))
	}
	return append(all, of("SWAG", baseline.SWAG{Collect: size.collect, Rank: size.collect}, 0),
		of("VB", baseline.VI{Draws: size.draws, ZeroMean: true, InitialStdDev: 1}, 0))
}

// table4Trials returns the contenders' trials; the repetition is the seed of the split and of the method. The test part
// is from the makers' test set. Those of the paper's size take hours, two or more, and are made where Options name
// them.
func table4Trials(o Options) ([]*trial, error) {
	whole := table4Paper
	if !o.Full {
		whole.reps = 1
	}
	all := whole.trials(o)
	if o.Full {
		return all, nil
	}
	for _, t := range all {
		t.extraMethod = true
	}
	for _, t := range table4Reduced.trials(o) {
		t.Key.Method += fmt.Sprintf(", %d rows", table4Reduced.train)
		all = append(all, t)
	}
	return all, nil
}

func (size table4Size) trials(o Options) (all []*trial) {
	e := o.extent(size.extent, size.extent)
	b := newBench(size.model, size.batch, e.epochs, o.say)
	var split struct { // the last one, which the methods share
		dataset.Parts
		repetition int
	}
	for _, c := range size.contenders() {
		key := Key{Study: "ohsmc.table4", Data: "mnist", Method: c.name, Settings: map[string]any{
			"version": table4Version, "model": size.model, "rows": []int{size.train, size.validation, size.test},
			"batch": size.batch, "epochs": e.epochs, "attempts": c.attempts,
		}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			if split.Train == nil || split.repetition != repetition {
				parts := must(size.parts(digits, uint64(repetition)))
				split.Parts, split.repetition = parts, repetition
			}
			return b.scores(ctx, c, split.Parts, uint64(repetition))
		}
		all = append(all, &trial{Key: key, reps: e.reps, run: run, paper: c.paper("ohsmc.table4", "mnist")})
	}
	return all
}
