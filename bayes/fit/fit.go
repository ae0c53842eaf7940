// Package fit joins a model with its data: it does what every sampler needs before its first step and after its last.
//
// New validates the data, binds the model to their widths, checks that the likelihood is for their task, and fits the
// scalers on the training part; From does the same for a trained posterior and further data, with the posterior's
// scalers. Data.Tensors gives the standardised data, Data.LogScale brings their scores into the target's units, and
// Data.Posterior makes a bayes.Posterior, with its provenance, from particles. Packages particles, train and pbnn use
// it; a sampler of your own can use it too.
package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/limits"
	"gobnn/bayes/tryout"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Data is a model and the data that it is fitted to, checked against each other. Its methods do not change it.
type Data struct {
	Owner string            // the name of the package that fits, with which error messages begin
	Bound *bayes.BoundModel // the model with the data's widths
	// Parts are the data, in raw units. Parts.Train is nil if the rows are held elsewhere (Held) or come from Source.
	Parts dataset.Parts
	// Source gives the rows of a training part that does not fit in memory, standardised after they were read once (see
	// streamed.go); nil if there is none.
	Source dataset.Source
	// Features and Target standardise the data: by the training part's means and standard deviations, or by those of
	// Trained.
	Features dataset.Scaler
	Target   dataset.Scaler
	Trained  *bayes.Posterior // the posterior that the fit continues from; nil if none

	raw  dataset.Source   // the source as it was given, not standardised
	hash string           // hash of the source's rows
	by   *dataset.Dataset // the rows that the scalers were fitted on; nil if these are of Trained
	held *bayes.Origin    // of the rows that Held has joined
}

// New joins a model with the data that it is to be trained on. The scalers are fitted on the training part alone, to
// its features and the target of a regression, unless Model.Scaling keeps them as they are. Errors wrap
// dataset.ErrMissingClass if a class has no row.
func New(owner string, model bayes.Model, parts dataset.Parts) (*Data, error) {
	if err := parts.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", owner, err)
	}
	d, err := unscaledData(owner, model, parts)
	if err != nil {
		return nil, err
	}
	if parts.Validation != nil {
		if err := d.checkTask(parts.Validation); err != nil {
			return nil, err
		}
	}
	d.Features, d.Target = model.Scalers(parts.Train)
	d.by = parts.Train
	return d, nil
}

// allByDefault is a model that does not say which parameters are stochastic with all weights and biases stochastic. It
// is for samplers whose algorithm does not ask for shared parameters.
func allByDefault(model bayes.Model) bayes.Model {
	if len(model.Stochastic.Selectors) == 0 {
		model.Stochastic = bayes.All()
	}
	return model
}

// Share joins a model with a part of the rows, while other parts are held elsewhere. The rows are not scaled, since the
// scalers would depend on all parts. A class may have no row. If the model does not say which parameters are stochastic
// all are.
func Share(owner string, model bayes.Model, rows *dataset.Dataset) (*Data, error) {
	if err := check(owner, rows); err != nil {
		return nil, err
	}
	return unscaledData(owner, allByDefault(model), dataset.Parts{Train: rows})
}

// bind is the model with the widths of the data, after a trial of what is a user's own in it.
func bind(model bayes.Model, inputs, outputs int) (*bayes.BoundModel, error) {
	bound, err := model.Bind(inputs, outputs)
	if err == nil {
		err = tryout.Model(bound)
	}
	return bound, err
}

func unscaledData(owner string, model bayes.Model, parts dataset.Parts) (*Data, error) {
	bound, err := bind(model, parts.Train.Dims(), parts.Train.Outputs())
	if err != nil {
		return nil, err
	}
	if err := model.Registered(); err != nil {
		return nil, err
	}
	d := &Data{
		Owner: owner, Bound: bound, Parts: parts,
		Features: dataset.NoScaler(bound.Inputs), Target: dataset.NoScaler(bound.Targets()),
	}
	if err := d.checkTask(parts.Train); err != nil {
		return nil, err
	}
	return d, d.withExtras(d.extras())
}

// extras are what the parts have beside features and targets.
func (d *Data) extras() dataset.Extras {
	extras := d.Parts.Train.Extras()
	if d.Parts.Validation != nil {
		extras = extras.With(d.Parts.Validation.Extras())
	}
	return extras
}

// withExtras lets the model take them.
func (d *Data) withExtras(extras dataset.Extras) error {
	bound, err := d.Bound.WithExtras(extras)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Owner, err)
	}
	d.Bound = bound
	return nil
}

// CheckRowsAlike is an error if the rows have weights, exposures or censored targets, for a method that does not take
// them.
func (d *Data) CheckRowsAlike() error {
	if d.Bound.Extras == (dataset.Extras{}) {
		return nil
	}
	return fmt.Errorf("%s: the data have Weights, Exposure or Censored targets, which this method does not take: set "+
		"them to nil, or take another method, such as ohsmc.OpenHorizon or mcmc.Chains", d.Owner)
}

func check(owner string, data *dataset.Dataset) error {
	if data == nil {
		return fmt.Errorf("%s: there is no training part: the data are nil", owner)
	}
	if err := data.Validate(); err != nil {
		return fmt.Errorf("%s: %w", owner, err)
	}
	return nil
}

// of joins the model, the shared parameters and the standardisation of a trained posterior with data to continue on:
// the data that it was trained on, or others with the same features and classes in the same order. A class may have no
// row.
func of(owner string, trained *bayes.Posterior, data *dataset.Dataset) (*Data, error) {
	if trained == nil {
		return nil, fmt.Errorf("%s: there is no trained posterior: it is nil", owner)
	}
	if err := check(owner, data); err != nil {
		return nil, err
	}
	o := trained.Origin()
	d := &Data{Owner: owner, Bound: trained.Bound(), Features: o.Features, Target: o.Target, Trained: trained}
	d.Parts.Train = data
	if err := d.checkTask(data); err != nil {
		return nil, err
	}
	if data.Dims() != d.Bound.Inputs || data.Outputs() != d.Bound.Outputs {
		return nil, fmt.Errorf("%s: the posterior is of a network with %d features and %d outputs, but the data %q has "+
			"%d and %d",
			owner, d.Bound.Inputs, d.Bound.Outputs, data.Name, data.Dims(), data.Outputs())
	}
	if err := data.SameOrder(o.FeatureNames, o.TargetNames, o.Classes); err != nil {
		return nil, fmt.Errorf("%s: %w", owner, err)
	}
	if err := trained.CheckExposure(data); err != nil {
		return nil, fmt.Errorf("%s: %w", owner, err)
	}
	return d, d.withExtras(d.extras())
}

// Held joins a model with rows that are held elsewhere, such as by the shards of package pbnn/shards, for a network of
// so many inputs and outputs. Of the origin it takes the names, which may be unknown, and the provenance's Rows,
// DataHash and Extras. The rows are neither checked nor scaled, and Data has no tensors.
func Held(owner string, model bayes.Model, inputs, outputs int, of bayes.Origin) (*Data, error) {
	bound, err := bind(model, inputs, outputs)
	if err != nil {
		return nil, err
	}
	if err := model.Registered(); err != nil {
		return nil, err
	}
	d := &Data{
		Owner: owner, Bound: bound, held: &of,
		Features: dataset.NoScaler(bound.Inputs), Target: dataset.NoScaler(bound.Targets()),
	}
	return d, d.withExtras(of.Provenance.Extras)
}

// checkTask is an error if the likelihood is for another task than the data, or a target of a regression is outside its
// support.
func (d *Data) checkTask(data *dataset.Dataset) error {
	if want, have := d.Bound.Model.Likelihood.Task(), data.Task; want != have {
		return fmt.Errorf("%s: likelihood %T is for %v, but the data %q is for %v",
			d.Owner, d.Bound.Model.Likelihood, want, data.Name, have)
	}
	if data.Task != dataset.Regression {
		return nil
	}
	names := data.TargetNames()
	for i, y := range data.Y {
		if err := bayes.CheckTarget(d.Bound.Model.Likelihood, y); err != nil {
			return fmt.Errorf("%s: data %q: target %q of row %d %w",
				d.Owner, data.Name, names[i%len(names)], data.OriginalRow(i/len(names)), err)
		}
	}
	return nil
}

// LogScale is log p(standardised y) - log p(y) of a row: the sum over the targets of the logarithms of the standard
// deviations that they are divided by; 0 for targets that are kept as they are, such as classes and counts. The
// likelihood of the bound model is of standardised targets, so that LogScale is added to a mean of -log p before people
// see it: then it is in the target's units, as metric.NLPD is. Of censored targets it is the mean over the rows that
// are not, of the validation part if there is one. A training loss by weights is in no unit, but for weights of mean 1.
func (d *Data) LogScale() float64 {
	sum := 0.
	for _, s := range d.Target.StdDev {
		sum += math.Log(s)
	}
	if d.Bound != nil && d.Bound.Extras.Censored { // of whose rows there is no density
		judged := d.Parts.Validation
		if judged == nil {
			judged = d.Parts.Train
		}
		extra := judged.Extra(dataset.Extras{Censored: true, Weights: true})
		sum *= 1 - stat.Mean(extra[0], extra[1])
	}
	return sum
}

// Rows is the number of rows of the training part, N.
func (d *Data) Rows() int {
	switch {
	case d.Source != nil:
		return d.Source.Rows()
	case d.held != nil:
		return d.held.Provenance.Rows
	}
	return d.Parts.Train.Rows()
}

// rowsHash identifies the training part.
func (d *Data) rowsHash() string {
	switch {
	case d.Source != nil:
		return d.hash
	case d.held != nil:
		return d.held.Provenance.DataHash
	}
	return d.Parts.Train.Hash()
}

// checkHash is an error if the training part has another hash than the one that it must have.
func (d *Data) checkHash(want string) error {
	if have := d.rowsHash(); have != want {
		return fmt.Errorf("%s: the training rows have the hash %s, and those of Parts.TrainHash %s: give this machine the "+
			"same rows", d.Owner, have, want)
	}
	return nil
}

// With is the same data with another model, such as one with another partition or prior.
func (d *Data) With(model bayes.Model) (*Data, error) {
	bound, err := bind(model, d.Bound.Inputs, d.Bound.Outputs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Owner, err)
	}
	other := *d
	if other.Bound, err = bound.WithExtras(d.Bound.Extras); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Owner, err)
	}
	return &other, nil
}

// Whole is the data with a model whose every parameter is stochastic.
func (d *Data) Whole() (*Data, error) {
	var all []string
	for _, slot := range d.Bound.Slots {
		all = append(all, slot.Name)
	}
	model := d.Bound.Model
	model.Stochastic = bayes.Names(all...)
	return d.With(model)
}

// Tensors returns a part's standardised features, [N, d], and target, [N], or [N, K] for K targets, on the host. They
// belong to the caller. If the data have Weights, Exposure or Censored targets y has their columns behind the targets
// (bayes.BoundModel.WithExtras); the weights of a validation part are divided by their mean. The features of
// dataset.Pixels stay bytes: bayes.Numbers makes numbers of them in a graph.
func (d *Data) Tensors(dtype compute.DType, part *dataset.Dataset) (x, y *tensors.Tensor, err error) {
	if part == nil {
		return nil, nil, fmt.Errorf("%s: there are no rows to make tensors of: the part is nil", d.Owner)
	}
	target := d.Target.ApplyFlat(part.Y)
	if pixels, ok := part.X.(*dataset.Pixels); ok && d.Features.IsIdentity() {
		all := make([]byte, 0, part.Rows()*part.Dims())
		for i := range part.Rows() {
			all = append(all, pixels.Bytes(i)...)
		}
		x = tensors.FromFlatDataAndDimensions(all, part.Rows(), part.Dims())
	} else {
		scaled, err := d.Features.Apply(part.X)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Owner, err)
		}
		if dtype != compute.Float64 {
			if err := d.checkFloat32(part, "feature", part.Features, scaled.RawMatrix().Data); err != nil {
				return nil, nil, err
			}
		}
		x = compute.Floats(dtype, scaled.RawMatrix().Data, part.Rows(), part.Dims())
	}
	if dtype != compute.Float64 {
		if err := d.checkFloat32(part, "target", part.TargetNames(), target); err != nil {
			return nil, nil, err
		}
	}
	columns := d.Bound.Targets()
	if extras := d.Bound.Extras; extras != (dataset.Extras{}) {
		target, columns = d.withColumns(target, part), columns+extras.Columns()
	}
	shape := []int{part.Rows()}
	if columns > 1 {
		shape = append(shape, columns)
	}
	return x, compute.Floats(dtype, target, shape...), nil
}

// withColumns puts a part's further columns behind its targets.
func (d *Data) withColumns(targets []float64, part *dataset.Dataset) (all []float64) {
	extra := part.Extra(d.Bound.Extras)
	if d.Bound.Extras.Weights && part != d.Parts.Train { // so that a mean over rows is the weighted one
		weights := extra[len(extra)-1]
		floats.Scale(1/stat.Mean(weights, nil), weights)
	}
	each := len(targets) / part.Rows()
	for i := range part.Rows() {
		all = append(all, targets[i*each:(i+1)*each]...)
		for _, column := range extra {
			all = append(all, column[i])
		}
	}
	return all
}

// checkFloat32 is an error if one of values, [N, names], is too large for float32, or if float32 cannot tell the
// training rows' apart. Standardised training data never are; unscaled data may be, and so may other rows of a column
// that is constant in training.
func (d *Data) checkFloat32(part *dataset.Dataset, what string, names []string, values []float64) error {
	for i, v := range values {
		if !(math.Abs(v) <= limits.Float32) {
			row, column := i/len(names), i%len(names)
			return fmt.Errorf("%s: data %q: %s %q of row %d is %v after scaling: beyond %g its square overflows float32; "+
				"standardise it (Model.Scaling), give it in another unit, or compute in Float64",
				d.Owner, part.Name, what, names[column], part.OriginalRow(row), v, limits.Float32)
		}
	}
	if part != d.Parts.Train {
		return nil
	}
	if what == "target" {
		if err := d.checkOutliers(); err != nil {
			return err
		}
	}
	for column, name := range names {
		var all []float64
		largest := 0.
		for i := column; i < len(values); i += len(names) {
			all, largest = append(all, values[i]), max(largest, math.Abs(values[i]))
		}
		stdDev := math.Sqrt(stat.PopVariance(all, nil))
		if spacing := largest * compute.Epsilon(compute.Float32); spacing > coarsest*stdDev && stdDev > 1e-14*largest {
			return fmt.Errorf("%s: data %q: numbers of float32 near %s %q are %.2g apart, and its standard deviation is %.2g, "+
				"so that rows become equal: standardise it (Model.Scaling), subtract a constant, or compute in Float64",
				d.Owner, part.Name, what, name, spacing, stdDev)
		}
	}
	return nil
}

// checkOutliers is an error if a few targets are so far from the others that these, scaled with them, become equal in
// float32. Folds are scaled by all rows: so the row may be one that the fold leaves out.
func (d *Data) checkOutliers() error {
	if d.by == nil || d.Target.IsIdentity() {
		return nil
	}
	names := d.by.TargetNames()
	for column, name := range names {
		var all []float64
		for i := column; i < len(d.by.Y); i += len(names) {
			all = append(all, d.by.Y[i])
		}
		sorted := slices.Sorted(slices.Values(all))
		median := sorted[len(sorted)/2]
		far := func(a, b float64) int { return cmp.Compare(math.Abs(a-median), math.Abs(b-median)) }
		slices.SortFunc(sorted, far)
		worst := slices.Index(all, sorted[len(sorted)-1])
		_, spread := stat.PopMeanStdDev(sorted[:len(sorted)-(len(sorted)+99)/100], nil) // without one in a hundred
		if spacing := math.Abs(median-d.Target.Mean[column]) * compute.Epsilon(compute.Float32); spread > 0 &&
			spacing > coarsest*spread {
			return fmt.Errorf("%s: data %q: target %q of row %d is %v, and most others are near %.4g: scaled together these "+
				"become equal in float32; if the value is a mistake correct it, or leave out the row", d.Owner, d.by.Name, name,
				d.by.OriginalRow(worst), all[worst], median)
		}
	}
	return nil
}

// coarsest is the largest spacing of float32 numbers that a column may have, in its standard deviations.
const coarsest = 0.01

// Posterior makes a posterior of particles, with the model, the scalers, the names of the data and the provenance. The
// caller gives Algorithm, Status, Seed and Settings of the provenance; the rest is filled in. Of weighted rows there is
// no evidence. The engine is the one that computed the particles, and will predict.
func (d *Data) Posterior(draws bayes.Draws, from bayes.Provenance, engine *compute.Engine) (*bayes.Posterior, error) {
	origin := bayes.Origin{}
	from.Extras = d.Bound.Extras
	if d.Parts.Train != nil { // and not of the validation part
		from.Extras = d.Parts.Train.Extras()
	}
	if from.Extras.Weights { // the density is of no data that could have come
		draws.Evidence = bayes.Evidence{}
	}
	if data := d.Parts.Train; data != nil {
		origin.FeatureNames, origin.TargetNames, origin.Classes = data.Features, data.TargetNames(), data.Classes
		from.Data, from.DataHash, from.Rows = data.Name, data.Hash(), data.Rows()
		from.Trained, from.Percentages = data.RowSet(), data.Percentages
	}
	if d.Source != nil {
		from.Data, from.DataHash, from.Rows = fmt.Sprintf("rows of %T", d.raw), d.hash, d.Rows()
		if named, ok := d.raw.(dataset.Named); ok {
			origin.FeatureNames, origin.TargetNames = named.Names()
		}
	}
	if of := d.held; of != nil {
		origin.FeatureNames, origin.TargetNames, origin.Classes = of.FeatureNames, of.TargetNames, of.Classes
		from.DataHash, from.Rows = of.Provenance.DataHash, of.Provenance.Rows
	}
	if d.Trained != nil { // the names are the network's
		before := d.Trained.Provenance()
		origin, from.Before = d.Trained.Origin(), &before
	}
	origin.Features, origin.Target, origin.Provenance, origin.Engine = d.Features, d.Target, from, engine
	p, err := bayes.NewPosterior(d.Bound, draws, origin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Owner, err)
	}
	return p, nil
}
