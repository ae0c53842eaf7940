package study

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

// synthetic is one of the paper's synthetic problems (sections 4.2 and 4.3): 100 rows for each part, batches of 20.
type synthetic struct {
	data   string
	epochs int // the paper's
	model  bayes.Model
	draw   func(seed uint64) (*dataset.Dataset, error)
	panel  func(ctx context.Context, p *bayes.Posterior, train *dataset.Dataset, title string) (*viz.Figure, error)
}

var sinTanh = synthetic{
	data: "sin_tanh", epochs: 200,
	model: bayes.Model{
		Network:    nn.MLP{Hidden: []int{20, 10}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(2),
	},
	draw: func(seed uint64) (*dataset.Dataset, error) { return dataset.SinTanh(100, seed) },
	panel: func(ctx context.Context, p *bayes.Posterior, train *dataset.Dataset, title string) (*viz.Figure, error) {
		x := make([]float64, 200)
		for i := range x {
			x[i] = -6 + 12*float64(i)/199
		}
		prediction, err := p.Predict(ctx, mat.NewDense(len(x), 1, x))
		if err != nil {
			return nil, err
		}
		return viz.PredictiveBandOf(x, prediction, 20, viz.BandOptions{
			Frame:  viz.Frame{Title: title, XLabel: "x", YLabel: "y", Width: 440, Height: 380},
			TrainX: mat.Col(nil, 0, train.X), TrainY: train.Y, True: dataset.SinTanhMean,
		})
	},
}

var twoMoons = synthetic{
	data: "two_moons", epochs: 100,
	model: bayes.Model{
		Network:    nn.MLP{Hidden: []int{100, 20, 5}, Activation: nn.GELU},
		Likelihood: bayes.Bernoulli{}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(3),
	},
	draw: func(seed uint64) (*dataset.Dataset, error) { return dataset.TwoMoons(100, .3, seed) },
	panel: func(ctx context.Context, p *bayes.Posterior, train *dataset.Dataset, title string) (*viz.Figure, error) {
		lattice, err := viz.NewLattice(-2.2, 3.2, 60, -1.7, 2.2, 60)
		if err != nil {
			return nil, err
		}
		prediction, err := p.Predict(ctx, mat.NewDense(60*60, 2, lattice.Points()))
		if err != nil {
			return nil, err
		}
		classes := make([]int, train.Rows())
		for i, y := range train.Y {
			classes[i] = int(y)
		}
		return viz.DecisionMapOf(lattice, prediction, 1, viz.DecisionOptions{
			Frame:   viz.Frame{Title: title, Width: 460, Height: 400},
			PointsX: mat.Col(nil, 0, train.X), PointsY: mat.Col(nil, 1, train.X), Classes: classes, ClassNames: train.Classes,
		})
	},
}

// figure is a row of panels for each of some seeds, a panel for each of the paper's methods.
func (s synthetic) figure(seeds int) func(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	return func(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
		all := contenders(100)[:5]
		var names []string
		for _, c := range all {
			names = append(names, c.name)
		}
		methods, err := o.only(names, s.data)
		if err != nil {
			return nil, nil, err
		}
		epochs := s.epochs
		if o.Epochs > 0 {
			epochs = o.Epochs
		}
		b := newBench(s.model, 20, epochs, o.say)
		defer b.close()
		b.unscaled = true // the noise has variance 1 in the target's own units
		var panels []*viz.Figure
		for seed := range uint64(seeds) {
			var parts dataset.Parts
			for i, part := range []**dataset.Dataset{&parts.Train, &parts.Validation, &parts.Test} {
				if *part, err = s.draw(3*seed + uint64(i)); err != nil {
					return nil, nil, err
				}
			}
			for _, c := range all {
				if !methods[c.name] {
					continue
				}
				posterior, err := b.best(ctx, c, parts, seed)
				if err == nil && posterior == nil {
					err = fmt.Errorf("%s on %s: every attempt diverged", c.name, s.data)
				}
				if err != nil {
					return nil, nil, err
				}
				panel, err := s.panel(ctx, posterior, parts.Train, c.name)
				if err != nil {
					return nil, nil, err
				}
				panels = append(panels, panel)
				o.say("%s: %s, seed %d of %d", s.data, c.name, seed+1, seeds)
			}
		}
		fig, err := viz.Grid(seeds, len(methods), panels...)
		return fig, nil, err
	}
}
