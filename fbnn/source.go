package fbnn

import (
	"context"
	"fmt"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// This file holds what is different if the rows do not fit into memory.

// blockRows is the largest number of rows of a source that are read at once; a variable for the tests.
var blockRows = 4096

// FitSource is Fit for rows that do not fit into memory, such as those of a file or a dataset.Simulated: it reads at
// most 4096 rows at a time. The source is read once to compute means and standard deviations and to find faults
// (fit.Data.Examined); a row that differs later ends the run with an error that wraps dataset.ErrChanged. The
// calibration takes mini-batches from few blocks, and so must have a kernel for mini-batches, mcmc.SGHMC or mcmc.SGLD.
// Phi, gradients and the inner products of the pairs' outputs are sums over all blocks, and so is each evaluation of
// the true posterior in the second accept/reject step. Put the rows in random order.
//
// The outputs are emulated only for a regression with known noise: other likelihoods would need the outputs of all rows
// at once, so that CES.Emulates must be LogLikelihood. Draws and pairs are in memory.
//
// The true posterior is evaluated in float64, whatever Settings.DType is, since differences of sums over millions of
// rows decide on acceptance. The posterior's features have no names, and its classes are numbers.
func FitSource(
	ctx context.Context, model bayes.Model, algorithm Algorithm, source dataset.Source, settings Settings,
) (*Result, error) {
	begun := time.Now()
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	data, err := fit.Streamed("fbnn", fit.AllByDefault(model), source)
	if err != nil {
		return nil, err
	}
	if settings.Engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if algorithm == nil {
		algorithm = CES{}
	}
	job, err := newSourceJob(data, settings)
	if err != nil {
		return nil, err
	}
	if _, err = prepared(algorithm, job); err != nil { // faults are reported before hours of reading
		return nil, err
	}
	if data, err = data.Examined(ctx, blockRows, job.reading("checking all rows")); err != nil {
		return nil, err
	}
	if job, err = newSourceJob(data, settings); err != nil {
		return nil, err
	}
	job.begun = begun
	return job.fit(ctx, algorithm)
}

// newSourceJob is the job of a model, all of whose parameters become stochastic, with the rows of a source.
func newSourceJob(data *fit.Data, settings Settings) (*Job, error) {
	data, err := data.Whole()
	if err != nil {
		return nil, err
	}
	job := &Job{Settings: settings, Data: data}
	job.Problem, job.blocks, err = job.byBatches(1, compute.Float64)
	return job, err
}

// widest is the number of features above which the climb before the calibration takes shorter steps. Adam changes all
// weights of a unit by about the same amount, so the change of the unit's input grows with the number of features. With
// 1000 features and the usual rate .1 it was some 80, after which all ReLU units were dead (0 for all rows).
const widest = 100.

// byBatches is the posterior estimated from mini-batches of a source, and the blocks of all rows.
func (j *Job) byBatches(size int, dtype compute.DType) (density.Problem, *density.Blocks, error) {
	problem, blocks, err := density.NewSourceProblem(j.Data.Bound, j.Data.Source, density.SourceSettings{
		BatchSize: size, BlockRows: min(blockRows, j.Data.Rows()), Chains: 1, DType: dtype, Seed: j.Seed,
	})
	if err != nil {
		return problem, nil, fmt.Errorf("fbnn: %w", err)
	}
	problem.Climb = density.NewClimb(j.Data.Bound)
	problem.Climb.Rate = .1 * min(1, widest/float64(j.Data.Bound.Inputs))
	return problem, blocks, nil
}

// reader returns standardised rows from a given number on: it fills x, [n, d], and y, [n, K].
func (j *Job) reader() (func(ctx context.Context, from int, x, y []float64) error, error) {
	if j.Data.Source != nil {
		return j.Data.Source.Read, nil
	}
	xs, ys, err := j.Data.Tensors(j.DType, j.Data.Parts.Train)
	if err != nil {
		return nil, err
	}
	allX, err := compute.Float64s(xs)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	allY, err := compute.Float64s(ys)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	return func(_ context.Context, from int, x, y []float64) error {
		copy(x, allX[from*j.Data.Bound.Inputs:])
		copy(y, allY[from*j.Data.Bound.Targets():])
		return nil
	}, nil
}

// perReport is the least time between two reports of a pass over the rows of a source.
const perReport = 2 * time.Second

// reading reports a pass over all rows of a source, as a stage "reading: " and what for: the result is to be called
// after each block with the number of rows so far. Quick passes, and those over rows in memory, are not reported.
func (j *Job) reading(what string) func(rows int) {
	if j.Progress == nil || j.Data.Source == nil {
		return func(int) {}
	}
	began := time.Now()
	last := began
	return func(rows int) {
		if time.Since(last) < perReport {
			return
		}
		last = time.Now()
		elapsed, all := last.Sub(began), j.Data.Rows()
		j.Progress(run.Progress{
			Stage: "reading: " + what, Step: rows, Steps: all, Elapsed: elapsed,
			Remaining: time.Duration(float64(elapsed) / float64(rows) * float64(all-rows)),
		})
	}
}

// checkSource is an error if a setting is impossible for rows that do not fit into memory.
func (a CES) checkSource(job *Job) error {
	switch {
	case job.Data.Source == nil:
		return nil
	case a.Calibration.Carries() != mcmc.CarriesNothing:
		return fmt.Errorf("fbnn: CES.Calibration is %T, each move of which takes all %d rows: of a Source the calibration "+
			"is by mini-batches: take mcmc.SGHMC or mcmc.SGLD", a.Calibration, job.Data.Rows())
	case a.BatchSize > blockRows:
		return fmt.Errorf("fbnn: CES.BatchSize is %d: of a Source a mini-batch is of one block: take at most %d",
			a.BatchSize, blockRows)
	case a.Emulates == Outputs && knownNoise(job.Data.Bound) == 0:
		return fmt.Errorf("fbnn: CES.Emulates is %q: the likelihood %T would need the outputs of all %d rows in memory: "+
			"of a Source take fbnn.LogLikelihood", a.Emulates, job.Data.Bound.Model.Likelihood, job.Data.Rows())
	}
	return nil
}
