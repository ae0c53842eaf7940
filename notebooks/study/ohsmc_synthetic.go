package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
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
		return viz.Along(ctx, p, parts.Train.Features[0], viz.AlongOptions{From: -6, To: 6, Data: parts.Train,
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
		lattice := must(viz.NewLattice(-2.2, 3.2, 60, -1.7, 2.2, 60))
		prediction := must(p.Predict(ctx, mat.NewDense(60*60, 2, lattice.Points())))
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
	return scoresBy([]scorer{{"NLPD", metric.NLPD, test.Y}, {"ECE", metric.ECE, test.Y},
		{"accuracy", metric.Accuracy, test.Y}}, p)
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

// bench has a model without scaling: the noise has variance 1 in the target's own units. As in the paper it validates
// after each batch.
func (s synthetic) bench(o Options) *bench {
	model := s.model
	model.Scaling = bayes.Scaling{KeepFeatures: true, KeepTarget: true}
	b := newBench(model, syntheticBatch, s.extent(o).epochs, o.say)
	b.batchly = true
	return b
}

// paperMethods are the first contenders.
const paperMethods = 5

// The default repetitions, and the paper's.
const (
	syntheticReps      = 10
	syntheticPaperReps = 100
)

func (s synthetic) extent(o Options) extent {
	return o.extent(extent{syntheticReps, s.epochs}, extent{syntheticPaperReps, s.epochs})
}

// syntheticVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const syntheticVersion = 2

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
		key := Key{Study: s.study, Data: s.data, Method: c.name, Settings: map[string]any{
			"version": syntheticVersion, "model": s.model, "rows": syntheticRows, "batch": syntheticBatch, "epochs": b.epochs,
			"attempts": c.attempts,
		}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			parts := must(s.parts(uint64(repetition)))
			prediction, found, err := b.predicted(ctx, c, parts, uint64(repetition))
			if !found {
				return diverged(), err
			}
			return Result{Values: s.score(prediction, parts.Test)}, nil
		}
		all = append(all, &trial{Key: key, reps: s.extent(o).reps, run: run, paper: reportedIn(s.study, s.data)[c.name],
			extraMethod: i >= paperMethods})
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
	all := contenders(syntheticRows)
	for i, c := range all {
		if a, ok := printed[c.name]; ok {
			a.Rate = .01
			all[i].attempts = []attempt{a}
		}
	}
	return all
}

// figure is a row of panels for each of some seeds, or rows of three for a single one, a panel for each method, by
// default the paper's.
func (s synthetic) figure(seeds int) func(ctx context.Context, o Options, _ []*trial) (*viz.Figure, error) {
	return func(ctx context.Context, o Options, _ []*trial) (*viz.Figure, error) {
		if _, err := chosen("data set", o.Data, []string{s.data}); err != nil {
			return nil, err
		}
		names := must(chosen("method", o.Methods, contenderNames()))
		if len(o.Methods) == 0 {
			names = names[:paperMethods]
		}
		moves := sgsmcPaperMoves
		if seeds > 1 && !o.Full {
			moves = sgsmcFewMoves
		}
		some := slices.DeleteFunc(syntheticContenders(moves), func(c contender) bool {
			return !slices.Contains(names, c.name)
		})
		b := s.bench(o)
		var all panels
		for seed := range uint64(seeds) {
			parts := must(s.parts(seed))
			for _, c := range some {
				c.attempts = c.attempts[:1]
				posterior, err := b.best(ctx, c, parts, seed)
				if err == nil && posterior == nil {
					err = fmt.Errorf("%s on %s: every attempt diverged", c.name, s.data)
				}
				if err != nil {
					return nil, err
				}
				frame := viz.Frame{Title: c.name, Width: 440, Height: 380}
				if seeds > 1 {
					frame.Width, frame.Height = 240, 270
				}
				all.add(s.panel(ctx, posterior, parts, frame))
				o.say("%s: %s, seed %d of %d", s.data, c.name, seed+1, seeds)
			}
		}
		grid := viz.GridOptions{Columns: 3, SharedX: true, SharedY: true}
		if seeds > 1 {
			grid.Columns = len(some)
			for _, c := range some {
				grid.ColumnNames = append(grid.ColumnNames, c.name)
			}
			for seed := range seeds {
				grid.RowNames = append(grid.RowNames, fmt.Sprintf("seed %d", seed))
			}
		}
		return all.grid(grid)
	}
}
