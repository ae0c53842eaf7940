package bayes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/stats"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// predictRows is the number of rows in one evaluation. All blocks have this shape, so there is one compilation.
const predictRows = 1024

// Predict evaluates every particle of positive weight on raw features x, [N, d], such as Dataset.X, and returns the
// outputs of all, [A, N, Width], where A is the number of these particles. The columns of x must be in the order of
// Origin().FeatureNames: a matrix has no names, so Predict cannot check it. A file of new rows that is read with
// dataset.CSVOptions.Like is in that order.
//
// Prediction.Warnings names features that lie far from the training part, for instance because they are in other units
// or were standardised already, for which it takes at least 10 rows, and rows with a value that is far beyond all
// training rows. Both need a model that standardises its features. For such a model the warnings also name features
// that were constant in training and have another value in x, such as a category that no training row had. The data say
// nothing about the effect of such a feature.
//
// Of rows with an Exposure or Censored targets take Prediction.OfRows before it is compared with their targets.
//
// If the outputs do not fit in memory, use PredictBatches, whose parts have no such warnings. The first prediction for
// a number of rows, or below 256 for a power of two that is not less, compiles a program, which the posterior keeps.
//
// It may be called by several goroutines at a time, such as those of a service: single rows are evaluated on all
// processors, and do not wait for a prediction of many. The last digits of a row's outputs may depend on how many rows
// are predicted in the call, but not on other calls.
func (p *Posterior) Predict(ctx context.Context, x mat.Matrix) (Prediction, error) {
	if err := p.checkFeatures(x); err != nil {
		return Prediction{}, err
	}
	rows, _ := x.Dims()
	if p.origin.Extractor != nil {
		features, err := p.origin.Extractor.Extract(ctx, x, nil)
		if err != nil {
			return Prediction{}, fmt.Errorf("bayes: %w", err)
		}
		return p.OfFeatures().Predict(ctx, features)
	}
	warnings := p.Unlike(&dataset.Dataset{X: x})
	var whole Prediction
	for part, err := range p.PredictBatches(ctx, x, predictRows) {
		if err != nil {
			return Prediction{}, err
		}
		if whole.Outputs == nil {
			whole = part
			whole.Warnings = warnings
			if part.Rows == rows {
				return whole, nil
			}
			whole.Rows = 0
			whole.Outputs = make([]float64, part.Particles*rows*part.Width)
		}
		for j := range part.Particles {
			copy(whole.Outputs[(j*rows+whole.Rows)*part.Width:], part.Outputs[j*part.Rows*part.Width:(j+1)*part.Rows*part.Width])
		}
		whole.Rows += part.Rows
	}
	return whole, nil
}

// Unlike says in what the features of rows are unlike those of the training part, so that predictions of these rows are
// doubtful, as Prediction.Warnings does; rows are named by their original numbers.
func (p *Posterior) Unlike(rows *dataset.Dataset) []string {
	if p.origin.Extractor != nil { // Predict says it of the features
		return nil
	}
	return slices.Concat(p.newValues(rows.X), p.farFeatures(rows))
}

// namedFeatures is the largest number of features that a warning names. An error of too many or too few features names
// all of a table's, up to listedFeatures, and not all of a picture's pixels.
const (
	namedFeatures  = 3
	listedFeatures = 100
)

// newValues is a warning, or none, of features of x, [N, d], that were constant in training and have other values here.
// No weight of theirs was learnt: it is as in the prior, or, if it is shared, where the training began.
func (p *Posterior) newValues(x mat.Matrix) (warnings []string) {
	rows, _ := x.Dims()
	scale := p.origin.Features
	var features []string
	affected := map[int]bool{} // rows
	for k := range scale.Constant {
		first := -1
		for i := range rows {
			if scale.Differs(k, x.At(i, k)) {
				affected[i] = true
				if first < 0 {
					first = i
				}
			}
		}
		if first >= 0 {
			v, was := x.At(first, k), scale.Mean[k]
			features = append(features, fmt.Sprintf("%s, such as %s (%s in training)", p.featureName(k), rounded(v, v-was),
				rounded(was, v-was)))
		}
	}
	if features == nil {
		return nil
	}
	if more := len(features) - namedFeatures; more > 0 {
		features = append(features[:namedFeatures], fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("%d of the %d rows have other values than all training rows in features that were "+
		"constant there: %s: nothing was learnt about their effect, and the predictions have weights from the prior or, if "+
		"these are shared, from the start of training; train with rows in which they vary, or leave them out",
		len(affected), rows, strings.Join(features, "; "))}
}

// A feature is far from the training part if the median distance of at least fewestRows rows from its training mean is
// above farAway training standard deviations. For normal features with the training mean and standard deviation the
// median is 0.7; for any other distribution with these two it is at most the root of 2. A single value is beyond the
// training part if its distance is above the root of the number of training rows, which no training row's can be, or
// above leastBeyond if these are few, or mostBeyond if they are many.
const (
	farAway                 = 4
	fewestRows              = 10
	leastBeyond, mostBeyond = 10, 100
)

// farFeatures returns a warning for each feature that lies far from the training part, or beyond it in some rows.
func (p *Posterior) farFeatures(data *dataset.Dataset) (warnings []string) {
	x := data.X
	rows, dims := x.Dims()
	scale := p.origin.Features
	if len(scale.Mean) != dims || p.bound.Model.Scaling.KeepFeatures { // which leaves them unknown
		return nil
	}
	beyond := float64(mostBeyond)
	if n := p.origin.Provenance.Rows; n > 0 {
		beyond = min(max(math.Sqrt(float64(n)), leastBeyond), mostBeyond)
	}
	column, distances := make([]float64, rows), make([]float64, rows)
	for k := range dims {
		if scale.Constant != nil && scale.Constant[k] { // it has no standard deviation: see newValues
			continue
		}
		mean, stdDev := scale.Mean[k], scale.StdDev[k]
		far, lost, first := 0, 0, -1 // rows in which the feature is far, and beyond; the first of these
		for i, v := range mat.Col(column, k, x) {
			distances[i] = math.Abs(v-mean) / stdDev
			if distances[i] > farAway {
				far++
			}
			if distances[i] > beyond {
				if lost++; lost == 1 {
					first = i
				}
			}
		}
		switch {
		case rows >= fewestRows && 2*far > rows: // the median is far
			warnings = append(warnings, fmt.Sprintf("half of the %d rows have a value in %s that is more than %.3g training "+
				"standard deviations (%.4g) from its training mean (%s): check its unit, and that it is not standardised "+
				"already; else the prediction is an extrapolation", rows, p.featureName(k), stats.Median(distances), stdDev,
				rounded(mean, stdDev)))
		case lost > 0:
			warnings = append(warnings, fmt.Sprintf("%d of the %d rows are beyond all training rows in %s, such as row %d with "+
				"%s, %.3g training standard deviations from the mean (%s): check the value; else the prediction is an "+
				"extrapolation", lost, rows, p.featureName(k), data.OriginalRow(first), rounded(column[first], stdDev),
				distances[first], rounded(mean, stdDev)))
		}
	}
	return warnings
}

// rounded is a number with four digits, or more where a standard deviation asks for them.
func rounded(v, stdDev float64) string { return fmt.Sprintf("%.*g", dataset.Digits(v, stdDev, 4), v) }

// PredictBatches yields the predictions for x, [N, d], in order, at most `rows` rows at a time. It stops at the first
// error, or when the context is cancelled, which it yields as an error.
func (p *Posterior) PredictBatches(ctx context.Context, x mat.Matrix, rows int) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		if err := p.predictBatches(ctx, x, rows, func(part Prediction) bool { return yield(part, nil) }); err != nil {
			yield(Prediction{}, err)
		}
	}
}

func (p *Posterior) predictBatches(ctx context.Context, x mat.Matrix, rows int, yield func(Prediction) bool) error {
	if err := p.checkFeatures(x); err != nil {
		return err
	}
	if rows < 1 {
		return fmt.Errorf("bayes: predicting %d rows at a time: it must be at least 1", rows)
	}
	if p.origin.Extractor != nil {
		of := p.OfFeatures()
		return p.extracted(ctx, x, rows, func(features *mat.Dense) error {
			return of.predictBatches(ctx, features, rows, yield)
		})
	}
	block, err := p.blocks(x)
	if err != nil {
		return err
	}
	engine, err := p.origin.Engine.Or()
	if err != nil {
		return err
	}
	total, _ := x.Dims()
	most := p.bound.rowsAtOnce(p.phi.DType())
	if p.expansionPoint != nil {
		most = min(most, linearisedRows(p.bound, p.phi.DType()))
	}
	if rows = min(rows, total); rows < paddedRows { // so that requests of changing sizes share few programs
		rows = 1 << bits.Len(uint(rows-1))
	}
	rows = min(rows, most)
	for from := 0; from < total; from += rows {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("bayes: prediction stopped at row %d of %d: %w", from, total, err)
		}
		count := min(rows, total-from)
		part, err := p.predictBlock(ctx, engine, block(from, count, rows), count)
		if err != nil {
			return fmt.Errorf("bayes: predicting rows %d to %d: %w", from, from+count-1, err)
		}
		if !yield(part) {
			return nil
		}
	}
	return nil
}

// blocks returns the function that makes a tensor, [rows, d], of count rows of x from one on, padded by zeros:
// standardised, or the bytes of pictures.
func (p *Posterior) blocks(x mat.Matrix) (func(from, count, rows int) *tensors.Tensor, error) {
	_, dims := x.Dims()
	if pixels, ok := x.(*dataset.Pixels); ok && p.origin.Features.IsIdentity() {
		return func(from, count, rows int) *tensors.Tensor {
			padded := make([]byte, rows*dims)
			for i := range count {
				copy(padded[i*dims:], pixels.Bytes(from+i))
			}
			return tensors.FromFlatDataAndDimensions(padded, rows, dims)
		}, nil
	}
	scaled, err := p.origin.Features.Apply(x)
	if err != nil {
		return nil, err
	}
	return func(from, count, rows int) *tensors.Tensor {
		padded := make([]float64, rows*dims)
		copy(padded, scaled.RawMatrix().Data[from*dims:(from+count)*dims])
		return compute.Floats(p.phi.DType(), padded, rows, dims)
	}, nil
}

// activationBytes is the most that the activations of one particle may take in a prediction, such as those of a
// hundred pictures in a ResNet20. Of more, fewer rows are predicted at a time.
const activationBytes = 512 << 20

// paddedRows is the number of rows below which they are padded to a power of two.
const paddedRows = 256

// rowsAtOnce is the number of rows that are predicted at a time at most.
func (b *BoundModel) rowsAtOnce(dtype compute.DType) int {
	const held = 2 // tensors of a layer's size at a time
	width := max(b.PrefixWidth(), b.SuffixWidth())
	return max(activationBytes/(held*width*int(dtype.Size())), 1)
}

// predictBlock predicts the first count of standardised rows, [rows, d], with the program compiled for this shape.
func (p *Posterior) predictBlock(
	ctx context.Context, engine *compute.Engine, x *tensors.Tensor, count int,
) (Prediction, error) {
	defer runtime.KeepAlive(p.evaluators) // its programs are freed when it is collected
	return p.evaluators.last.predict(ctx, p, engine, x, count)
}

// checkFeatures returns an error unless x, [N, d], has as many features as the model, all finite.
func (p *Posterior) checkFeatures(x mat.Matrix) error {
	if x == nil || x == mat.Matrix((*mat.Dense)(nil)) {
		return errors.New("bayes: there is nothing to predict at: x is nil")
	}
	total, dims := x.Dims()
	if want := p.origin.columns(p.bound); dims != want {
		names, more := p.origin.FeatureNames, ""
		if len(names) > listedFeatures {
			names, more = names[:namedFeatures], fmt.Sprintf(" and %d more", len(names)-namedFeatures)
		}
		return fmt.Errorf("bayes: x has shape [%d, %d], but the model was trained on %d features %v%s; read the rows of a "+
			"file into these by dataset.CSVOptions.Like; pictures must have the training part's height, width and channels",
			total, dims, want, names, more)
	}
	if _, bytes := x.(*dataset.Pixels); bytes {
		return nil
	}
	row := make([]float64, dims)
	for i := range total {
		for k, v := range mat.Row(row, i, x) {
			if !finite(v) {
				return fmt.Errorf("bayes: x at row %d, %s is %v: replace or drop it", i, p.featureName(k), v)
			}
		}
	}
	return nil
}

func (p *Posterior) featureName(column int) string {
	if column < len(p.origin.FeatureNames) {
		return fmt.Sprintf("column %q", p.origin.FeatureNames[column])
	}
	return fmt.Sprintf("column %d", column)
}

// clones clones tensors of a posterior; nil for those that it does not have. Each computation needs its own: a tensor
// that has been on a device stays bound to it, but the posterior's tensors must serve all devices.
func clones(of ...*tensors.Tensor) (all []*tensors.Tensor, err error) {
	all = make([]*tensors.Tensor, len(of))
	for i, t := range of {
		if t == nil {
			continue
		}
		if all[i], err = t.LocalClone(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func shapeOf(like *tensors.Tensor, dims []int) shapes.Shape {
	return shapes.Make(like.DType(), dims...)
}

// copyColumns copies columns of each of `rows` rows between matrices of the given widths and of one type.
func copyColumns(
	to *tensors.Tensor, toWidth, toColumn int, from *tensors.Tensor, fromWidth, fromColumn, rows, columns int,
) error {
	return copyBytes(to, from, func(target, source []byte, size int) {
		for r := range rows {
			copy(target[(r*toWidth+toColumn)*size:][:columns*size], source[(r*fromWidth+fromColumn)*size:])
		}
	})
}

// copyRows copies the picked rows of a matrix of the given width, one after another.
func copyRows(to, from *tensors.Tensor, picked []int, width int) error {
	return copyBytes(to, from, func(target, source []byte, size int) {
		for i, r := range picked {
			copy(target[i*width*size:][:width*size], source[r*width*size:])
		}
	})
}

// copyBytes calls each with the bytes of two tensors of one type, and the size of an element.
func copyBytes(to, from *tensors.Tensor, each func(target, source []byte, size int)) error {
	if to.DType() != from.DType() {
		return fmt.Errorf("parameters of types %s and %s do not go together", to.DType(), from.DType())
	}
	var inner error
	err := to.MutableBytes(func(target []byte) {
		inner = from.ConstBytes(func(source []byte) { each(target, source, int(to.DType().Size())) })
	})
	return errors.Join(err, inner)
}
