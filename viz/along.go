package viz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// AlongOptions are the options of [Along]. Data, or else, of a single feature, From and To must be set.
type AlongOptions struct {
	BandOptions
	// Data are the training rows. They are drawn as points, unless TrainX is set: where a regression has other features,
	// which differ from row to row, as residuals on the curve (partial residuals; Larsen and McCleary 1972). Their
	// range, and a tenth of it on both sides, is the default of From and To. The other features are held at the row that
	// is nearest to the mean, in standard deviations. It exists: a category's columns are a 1 and zeros, not shares.
	Data *dataset.Dataset
	// From and To are the ends of the grid.
	From, To float64
	// Class is, of a classification, the class whose probability is drawn; empty: the last.
	Class string
}

// Along shows what a posterior predicts along one feature, given by its name, with the others held fixed, on a grid of
// 200 points: the predictive band, noise included, or of a classification the probability of a class, with its standard
// deviations over the particles, and the functions of 20 of them. The figure says at which row the others are held,
// and its ground is grey where the grid goes beyond the data.
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
	classifies := posterior.Model().Likelihood.Task() != dataset.Regression
	class := len(origin.Classes) - 1
	if classifies && opt.Class != "" {
		if class = slices.Index(origin.Classes, opt.Class); class < 0 {
			return nil, fmt.Errorf("viz: along %q: the option Class is %q, and the posterior has the classes %q", feature,
				opt.Class, origin.Classes)
		}
	}
	grid, xs, err := opt.grid(origin, column)
	if err != nil {
		return nil, fmt.Errorf("viz: along %q: %w", feature, err)
	}
	prediction, err := posterior.Predict(ctx, grid)
	if err != nil {
		return nil, fmt.Errorf("viz: along %q: %w", feature, err)
	}
	band := opt.BandOptions
	band.XLabel = cmp.Or(band.XLabel, feature)
	if classifies {
		band.within = &span{0, 1}
		band.YLabel = cmp.Or(band.YLabel, "probability of "+origin.Classes[class])
		band.Title = cmp.Or(band.Title, "Predicted probability and its standard deviations")
	}
	if band.YLabel == "" && len(origin.TargetNames) > 0 {
		band.YLabel = origin.TargetNames[0]
	}
	if opt.Data != nil {
		values := mat.Col(nil, column, opt.Data.X)
		band.seen = &span{floats.Min(values), floats.Max(values)}
		if band.TrainX == nil {
			band.TrainX, band.TrainY = values, opt.Data.Y
			if opt.Data.Censored != nil {
				band.TrainLabel = cmp.Or(band.TrainLabel, "seen or at least so much")
			}
			if e := opt.Data.Exposure; e != nil && len(opt.Data.Y) == len(e) { // the prediction is over an exposure of 1
				band.TrainY = floats.DivTo(make([]float64, len(e)), opt.Data.Y, e)
			}
		}
		if classifies && len(opt.Data.Y) == len(values) {
			band.TrainY = make([]float64, len(values))
			for i, y := range opt.Data.Y {
				if int(y) == class {
					band.TrainY[i] = 1
				}
			}
		}
	}
	if len(origin.FeatureNames) > 1 {
		band.notes = append(band.notes, opt.held())
	}
	var mean, stdDev []float64
	if classifies {
		mean, stdDev, band.draws, err = probabilityBand(prediction, class)
	} else {
		mean, stdDev, band.draws, err = bandOf(prediction)
	}
	if err == nil && opt.partial(origin) && !classifies {
		band.TrainLabel = cmp.Or(band.TrainLabel, "residuals of the training data")
		band.TrainX, band.TrainY, err = residualsOn(ctx, posterior, opt.Data, column, mat.Row(nil, 0, grid))
	}
	if err != nil {
		return nil, fmt.Errorf("viz: along %q: %w", feature, err)
	}
	return PredictiveBand(xs, mean, stdDev, band)
}

// partial says whether residuals stand for the targets: these depend on other features too.
func (opt AlongOptions) partial(of bayes.Origin) bool {
	d := opt.Data
	return len(of.FeatureNames) > 1 && opt.TrainX == nil && d.Censored == nil && d.Exposure == nil && len(d.Y) == d.Rows()
}

// residualsOn are the residuals of the data, of at most mostDots of its rows, beside the curve on which all rows have
// the other features of the row at.
func residualsOn(
	ctx context.Context, posterior *bayes.Posterior, data *dataset.Dataset, column int, at []float64,
) (x, y []float64, err error) {
	step := 1 + (data.Rows()-1)/mostDots
	own := mat.NewDense((data.Rows()-1)/step+1, data.Dims(), nil)
	held := mat.DenseCopyOf(own)
	y = make([]float64, own.RawMatrix().Rows)
	for i := range y {
		own.SetRow(i, mat.Row(nil, i*step, data.X))
		held.SetRow(i, at)
		held.Set(i, column, own.At(i, column))
		y[i] = data.Y[i*step]
	}
	for _, rows := range []struct {
		*mat.Dense
		sign float64
	}{{own, -1}, {held, 1}} {
		prediction, err := posterior.Predict(ctx, rows)
		if err != nil {
			return nil, nil, err
		}
		mean, err := prediction.Mean()
		if err != nil {
			return nil, nil, err
		}
		floats.AddScaled(y, rows.sign, mean)
	}
	return mat.Col(nil, column, own), y, nil
}

// alongPoints is the number of points of the grid.
const alongPoints = 200

// grid returns the points, [alongPoints, d], and their values in the given column.
func (opt AlongOptions) grid(of bayes.Origin, column int) (*mat.Dense, []float64, error) {
	dims := len(of.FeatureNames)
	if opt.Data != nil && (opt.Data.Dims() != dims || opt.Data.Rows() == 0) {
		return nil, nil, fmt.Errorf("the option Data has %d rows of %d features, the posterior %d features: set the "+
			"training rows", opt.Data.Rows(), opt.Data.Dims(), dims)
	}
	if opt.Data != nil {
		if err := opt.Data.SameOrder(of.FeatureNames, nil, of.Classes); err != nil {
			return nil, nil, err
		}
	}
	from, to := opt.From, opt.To
	if opt.Data == nil && (from == 0 && to == 0 || dims > 1) {
		return nil, nil, errors.New("the option Data is nil: set the training rows, whose range the grid takes and of " +
			"which one gives the other features their values, or, of a single feature, set From and To")
	}
	at := make([]float64, dims)
	if opt.Data != nil {
		mat.Row(at, central(opt.Data.X), opt.Data.X)
	}
	if from == 0 && to == 0 {
		values := mat.Col(nil, column, opt.Data.X)
		from, to = floats.Min(values), floats.Max(values)
		from, to = from-.1*(to-from), to+.1*(to-from)
	}
	if !(from < to) {
		return nil, nil, fmt.Errorf("the grid goes from %v to %v: set From below To", from, to)
	}
	xs := floats.Span(make([]float64, alongPoints), from, to)
	grid := mat.NewDense(alongPoints, dims, nil)
	for i, x := range xs {
		grid.SetRow(i, at)
		grid.Set(i, column, x)
	}
	return grid, xs, nil
}

// central is the row nearest to the mean of all, with each column in units of its standard deviation.
func central(x mat.Matrix) int {
	rows, columns := x.Dims()
	scaler := dataset.FitScaler(x)
	nearest, least := 0, math.Inf(1)
	row := make([]float64, columns)
	for i := range rows {
		distance := 0.
		for j, v := range mat.Row(row, i, x) {
			z := (v - scaler.Mean[j]) / scaler.StdDev[j]
			distance += z * z
		}
		if distance < least {
			nearest, least = i, distance
		}
	}
	return nearest
}

// held is the note on the row at which the other features are held.
func (opt AlongOptions) held() string {
	row := opt.Data.OriginalRow(central(opt.Data.X))
	return fmt.Sprintf("the other features are those of row %d of the data (counted from 0)", row)
}
