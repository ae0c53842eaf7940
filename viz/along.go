package viz

import (
	"context"
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// AlongOptions are the options of [Along].
type AlongOptions struct {
	BandOptions
	// Data, if set, are drawn as points, unless TrainX is set, and their range is the default of From and To.
	Data *dataset.Dataset
	// At are the values of all features, [d], at which the others are held; default the means of the training part.
	At []float64
	// From and To are the ends of the grid; both 0: Data's range, or three training standard deviations around the
	// mean.
	From, To float64
	// Points of the grid; 0: 200.
	Points int
	// Particles is how many particles' mean functions are drawn; 0: 20, -1: none.
	Particles int
}

// Along shows what a posterior predicts along one feature, given by its name, with the others held fixed: the
// predictive band of [PredictiveBandOf], noise included, on a grid.
func Along(ctx context.Context, posterior *bayes.Posterior, feature string, opt AlongOptions) (*Figure, error) {
	if posterior == nil || posterior.Bound() == nil {
		return nil, fmt.Errorf("viz: along %q of a posterior that is nil or empty: check the error of the function that "+
			"made it", feature)
	}
	origin := posterior.Origin()
	column := slices.Index(origin.FeatureNames, feature)
	if column < 0 {
		return nil, fmt.Errorf("viz: along %q: the posterior has the features %q", feature, origin.FeatureNames)
	}
	if posterior.Model().Likelihood.Task() != bayes.Regression {
		return nil, fmt.Errorf("viz: along %q: the posterior is of a classification: draw two features with "+
			"DecisionMapOf", feature)
	}
	grid, xs, err := opt.grid(origin.Features, column)
	if err != nil {
		return nil, fmt.Errorf("viz: along %q: %w", feature, err)
	}
	prediction, err := posterior.Predict(ctx, grid)
	if err != nil {
		return nil, fmt.Errorf("viz: along %q: %w", feature, err)
	}
	band := opt.BandOptions
	if band.XLabel == "" {
		band.XLabel = feature
	}
	if band.YLabel == "" && len(origin.TargetNames) > 0 {
		band.YLabel = origin.TargetNames[0]
	}
	if opt.Data != nil && band.TrainX == nil {
		band.TrainX, band.TrainY = mat.Col(nil, column, opt.Data.X), opt.Data.Y
	}
	particles := opt.Particles
	switch particles {
	case 0:
		particles = 20
	case -1:
		particles = 0
	}
	return PredictiveBandOf(xs, prediction, particles, band)
}

// grid are the points, [Points, d], and their values in the given column, [Points].
func (opt AlongOptions) grid(features dataset.Scaler, column int) (*mat.Dense, []float64, error) {
	dims, points, at := len(features.Mean), opt.Points, opt.At
	if points == 0 {
		points = 200
	}
	if points < 2 {
		return nil, nil, fmt.Errorf("Points = %d: a grid needs at least 2", opt.Points)
	}
	if at == nil {
		at = features.Mean
	}
	if len(at) != dims {
		return nil, nil, fmt.Errorf("the point At has %d values: the posterior has %d features", len(at), dims)
	}
	if opt.Data != nil && opt.Data.Dims() != dims {
		return nil, nil, fmt.Errorf("the option Data has %d features, the posterior %d", opt.Data.Dims(), dims)
	}
	from, to := opt.From, opt.To
	switch {
	case from != 0 || to != 0:
	case opt.Data != nil:
		values := mat.Col(nil, column, opt.Data.X)
		from, to = floats.Min(values), floats.Max(values)
	default:
		from, to = features.Mean[column]-3*features.StdDev[column], features.Mean[column]+3*features.StdDev[column]
	}
	if !(from < to) {
		return nil, nil, fmt.Errorf("the grid goes from %v to %v: set From below To", from, to)
	}
	xs := floats.Span(make([]float64, points), from, to)
	grid := mat.NewDense(points, dims, nil)
	for i, x := range xs {
		grid.SetRow(i, at)
		grid.Set(i, column, x)
	}
	return grid, xs, nil
}
