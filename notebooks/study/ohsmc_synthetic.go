package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/ohsmc"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

// synthetic is one of the paper's synthetic problems (sections 4.2 and 4.3): 100 rows for each part, batches of 20.
type synthetic struct {
	study  string // its table
	data   string
	epochs int // the paper's
	model  bayes.Model
	draw   func(seed uint64) (*dataset.Dataset, error)
	score  func(p bayes.Prediction, test *dataset.Dataset) map[string]float64
	// panel shows a posterior and, as the paper does, the test rows. Its frame has a title and a size.
	panel func(ctx context.Context, p *bayes.Posterior, parts dataset.Parts, frame viz.Frame) (*viz.Figure, error)
}

var sinTanh = synthetic{
	study: "ohsmc.table1", data: "sin_tanh", epochs: 200,
	model: bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 10}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(2),
	},
	score: scoreSinTanh,
	draw:  func(seed uint64) (*dataset.Dataset, error) { return dataset.SinTanh(100, seed) },
	panel: func(ctx context.Context, p *bayes.Posterior, parts dataset.Parts, frame viz.Frame) (*viz.Figure, error) {
		frame.XLabel, frame.YLabel = "x", "y"
		return viz.Along(ctx, p, parts.Train.Features[0], viz.AlongOptions{From: -7, To: 7, Data: parts.Train,
			BandOptions: viz.BandOptions{
				TrainX: mat.Col(nil, 0, parts.Test.X), TrainY: parts.Test.Y, TrainLabel: "test data",
				Frame: frame, True: dataset.SinTanhMean,
			}})
	},
}

var twoMoons = synthetic{
	study: "ohsmc.table2", data: "two_moons", epochs: 100,
	model: bayes.Model{
		Network:    nn.MLP{Hidden: []int{100, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Bernoulli{}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(3),
	},
	score: scoreTwoMoons,
	draw:  func(seed uint64) (*dataset.Dataset, error) { return drawMoons(100, .3, seed), nil },
	panel: func(ctx context.Context, p *bayes.Posterior, parts dataset.Parts, frame viz.Frame) (*viz.Figure, error) {
		test := parts.Test
		frame.XLabel, frame.YLabel = "x₁", "x₂"
		lattice := must(viz.NewLattice(-2.2, 3.2, 100, -1.7, 2.2, 100))
		prediction := must(p.Predict(ctx, mat.NewDense(100*100, 2, lattice.Points())))
		classes := make([]int, test.Rows())
		for i, y := range test.Y {
			classes[i] = int(y)
		}
		return viz.DecisionMapOf(lattice, prediction, 1, viz.DecisionOptions{
			Frame:   frame,
			PointsX: mat.Col(nil, 0, test.X), PointsY: mat.Col(nil, 1, test.X), Classes: classes, ClassNames: test.Classes,
		})
	},
}

// The scores of Table 1 against the true function, at the test rows: the mean of the particles' RMSEs, which is the
// paper's score, and the RMSE of the predictive mean.
const (
	trueParticleRMSE = "particle RMSE to the truth"
	trueRMSE         = "RMSE to the truth"
)

func scoreSinTanh(p bayes.Prediction, test *dataset.Dataset) map[string]float64 {
	truth := make([]float64, test.Rows())
	for i := range truth {
		truth[i] = dataset.SinTanhMean(test.X.At(i, 0))
	}
	return scoresBy([]scorer{{"NLPD", metric.NLPD, test.Y}, {trueParticleRMSE, metric.ParticleRMSE, truth},
		{trueRMSE, metric.RMSE, truth}}, p)
}

func scoreTwoMoons(p bayes.Prediction, test *dataset.Dataset) map[string]float64 {
	return scoresBy(append(particleScorers(test.Y), scorer{"NLPD", metric.NLPD, test.Y},
		scorer{"ECE", metric.ECE, test.Y}, scorer{"accuracy", metric.Accuracy, test.Y}), p)
}

// scorer is a score and the targets that it is taken against.
type scorer struct {
	name    string
	metric  func(p bayes.Prediction, y []float64) (metric.Estimate, error)
	against []float64
}

func scoresBy(scorers []scorer, p bayes.Prediction) map[string]float64 {
	values := map[string]float64{}
	for _, s := range scorers {
		values[s.name] = must(s.metric(p, s.against)).Value
	}
	return values
}

// syntheticRows is the size of each part, syntheticBatch the paper's mini-batch.
const (
	syntheticRows  = 100
	syntheticBatch = 20
)

// parts returns the three parts of one repetition.
func (s synthetic) parts(repetition uint64) (parts dataset.Parts, err error) {
	for i, part := range []**dataset.Dataset{&parts.Train, &parts.Validation, &parts.Test} {
		if *part, err = s.draw(3*repetition + uint64(i)); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

// unscaled is the model without scaling: the noise has variance 1 in the target's own units.
func (s synthetic) unscaled() bayes.Model {
	model := s.model
	model.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	return model
}

// bench validates after each batch, as the paper does.
func (s synthetic) bench(o Options) *bench {
	b := newBench(s.unscaled(), syntheticBatch, s.extent(o, "", false).epochs, o.say)
	b.batchly = true
	return b
}

// paperMethods are the first contenders.
const paperMethods = 5

// syntheticPaperReps are the paper's repetitions.
const syntheticPaperReps = 100

// extent of a contender: by default the paper's methods are repeated 30 times, but SGSMC-HMC, which costs ten times as
// much as the others, and the methods that the paper does not have, ten times.
func (s synthetic) extent(o Options, method string, extra bool) extent {
	reps := 30
	if method == "SGSMC-HMC" || extra {
		reps = 10
	}
	return o.extent(extent{reps, s.epochs}, extent{syntheticPaperReps, s.epochs})
}

// syntheticVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const syntheticVersion = 3

// trials returns the contenders' trials; the repetition is the seed of the data and of the method. By default they are
// the paper's.
func (s synthetic) trials(o Options) ([]*trial, error) {
	b := s.bench(o)
	moves := sgsmcFewMoves
	if o.Full {
		moves = sgsmcPaperMoves
	}
	var all []*trial
	for i, c := range syntheticContenders(moves) {
		extra := i > paperMethods // the first after them is the paper's SWAG by the authors' program
		key := Key{Study: s.study, Data: s.data, Method: c.name, Settings: map[string]any{
			"version": syntheticVersion, "model": s.model, "rows": syntheticRows, "batch": syntheticBatch, "epochs": b.epochs,
			"attempts": c.attempts,
		}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			parts := must(s.parts(uint64(repetition)))
			posterior := must(b.best(ctx, c, parts, uint64(repetition)))
			if posterior == nil {
				return diverged(), nil
			}
			r := Result{Values: s.score(must(posterior.Predict(ctx, parts.Test.X)), parts.Test)}
			if repetition < drawnSeeds {
				r.Series = thinned(posterior)
			}
			return r, nil
		}
		all = append(all, &trial{Key: key, reps: s.extent(o, c.name, extra).reps, run: run, extraMethod: extra,
			paper: c.paper(s.study, s.data)})
	}
	return all, nil
}

// The moves of SGSMC before each datum: the paper's, and those where there are many repetitions or seeds.
const (
	sgsmcPaperMoves = 10
	sgsmcFewMoves   = 3
)

// syntheticContenders returns the paper's methods with its settings (appendices A and B), one attempt each, and the
// others with those that Table 8 has.
func syntheticContenders(moves int) []contender {
	chain := leapfrog
	chain.Chains, chain.Draws, chain.WarmUp = 1, 1000, 2000
	printed := map[string]attempt{
		"MAP-HMC": {Method: baseline.MAPHMC{Chains: chain}},
		"OHSMC":   {Method: ohsmc.OpenHorizon{Kernel: mcmc.RandomWalk{Variance: .01}}, Particles: 1000},
		"SGSMC-HMC": {
			Method:    ohsmc.SMC{Kernel: mcmc.RandomWalkMetropolis{StepSize: math.Sqrt(.05)}, Moves: moves},
			Particles: 1000, Chains: &chain,
		},
		"SWAG": {Method: baseline.SWAG{Collect: 200, Rank: 100, Samples: 1000}},
		"VB":   {Method: baseline.VI{Draws: 100, Samples: 1000, ZeroMean: true, InitialStdDev: 1}},
	}
	all := slices.Insert(contenders(syntheticRows), paperMethods, authorsSWAG(200, 100))
	for i, c := range all {
		if a, ok := printed[c.name]; ok {
			a.Rate = .01
			all[i].attempts = []attempt{a}
		}
	}
	return all
}

// drawnSeeds are the first repetitions, whose posteriors are kept for the figures: the paper shows five.
const drawnSeeds = 5

// drawnParticles is how many particles of each are kept.
const drawnParticles = 100

// thinned has particles of a posterior as series, chosen at equal steps of the weights' sum, so that they weigh alike.
func thinned(p *bayes.Posterior) map[string][]float64 {
	draws := must(p.Draws())
	all, phi := must(compute.Float64s(draws.Phi)), []float64(nil)
	weights, d := p.LogWeights().Weights(), p.Bound().D
	j, sum := 0, weights[0]
	for k := range drawnParticles {
		for j < len(weights)-1 && sum < (float64(k)+.5)/drawnParticles {
			j++
			sum += weights[j]
		}
		phi = append(phi, all[j*d:(j+1)*d]...)
	}
	return map[string][]float64{"phi": phi, "psi": must(compute.Float64s(draws.Psi))}
}

// restored is the posterior of a repetition's particles.
func (s synthetic) restored(r Result, train *dataset.Dataset) *bayes.Posterior {
	bound := must(s.unscaled().Bind(train.Dims(), 1))
	return must(bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, r.Series["phi"], drawnParticles, bound.D),
		Psi: compute.Floats(compute.Float64, r.Series["psi"], bound.W), LogWeights: bayes.EqualLogWeights(drawnParticles),
	}, bayes.Origin{FeatureNames: train.Features, TargetNames: train.TargetNames(), Classes: train.Classes}))
}

// first are the table's trials, for a figure of the first repetition.
func (s synthetic) first(o Options) ([]*trial, error) {
	all, err := s.trials(o)
	for _, t := range all {
		t.reps = 1
	}
	return all, err
}

// several are those of the paper's methods, for a figure of three repetitions, or in full the paper's five.
func (s synthetic) several(o Options) ([]*trial, error) {
	all, err := s.trials(o)
	for i, t := range all {
		t.reps = min(o.extent(extent{reps: 3}, extent{reps: drawnSeeds}).reps, drawnSeeds)
		t.extraMethod = i >= paperMethods
	}
	return all, err
}

// figure has a panel for each method, in rows of three; of several repetitions a row each.
func (s synthetic) figure(ctx context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	var all panels
	grid := viz.GridOptions{Columns: 3, SharedX: true, SharedY: true}
	frame := viz.Frame{Width: 290, Height: 320}
	seeds := len(done[0].results)
	if seeds > 1 {
		grid.Columns, frame.Width, frame.Height = len(done), 240, 270
		for _, t := range done {
			grid.ColumnNames = append(grid.ColumnNames, t.Method)
		}
	}
	for seed := range seeds {
		parts := must(s.parts(uint64(seed)))
		for _, t := range done {
			r := t.results[seed]
			if r.Series == nil {
				return nil, fmt.Errorf("%s on %s: every attempt diverged", t.Method, s.data)
			}
			frame.Title = t.Method
			all.add(s.panel(ctx, s.restored(r, parts.Train), parts, frame))
		}
		if seeds > 1 {
			grid.RowNames = append(grid.RowNames, fmt.Sprintf("seed %d", seed))
		}
	}
	return all.grid(grid)
}
