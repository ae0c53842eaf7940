package fbnn

import (
	"context"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// This file holds what is different if the rows do not fit into memory.

// blockRows is the largest number of rows of a source that are read at once; a variable for the tests.
var blockRows = 4096

// job is a fit.Job with the posterior of all parameters to evaluate.
type job struct {
	*fit.Job
	// problem is the posterior given all rows; of a Source it is estimated from mini-batches. Its Initial draws from the
	// prior, and its Climb moves uphill from there.
	problem density.Problem
	blocks  *density.Blocks // of all rows of a Source; nil of rows in memory
}

func newJob(j *fit.Job) (*job, error) {
	own := &job{Job: j}
	var err error
	if j.Source != nil {
		own.problem, own.blocks = own.byBatches(1, compute.Float64)
	} else {
		own.problem, err = j.Density(atOnce)
	}
	return own, err
}

// widest is the number of features above which the climb before the calibration takes shorter steps. Adam changes all
// weights of a unit by about the same amount, so the change of the unit's input grows with the number of features. With
// 1000 features and the usual rate .1 it was some 80, after which all ReLU units were dead (0 for all rows).
const widest = 100.

// byBatches is the posterior estimated from mini-batches of a source, and the blocks of all rows.
func (j *job) byBatches(size int, dtype compute.DType) (density.Problem, *density.Blocks) {
	problem, blocks := density.NewSourceProblem(j.Bound, j.Source, density.SourceSettings{
		BatchSize: size, BlockRows: min(blockRows, j.Rows()), DType: dtype, Seed: j.Seed,
	})
	problem.Climb = &density.Climb{}
	problem.Climb.Rate = .1 * min(1, widest/float64(j.Bound.Inputs))
	return problem, blocks
}

// reader returns standardised rows from a given number on: it fills x, [n, d], and y, [n, K].
func (j *job) reader() (func(ctx context.Context, from int, x, y []float64) error, error) {
	if j.Source != nil {
		return j.Source.Read, nil
	}
	scaled, err := j.Features.Apply(j.Parts.Train.X)
	if err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	y := j.Target.ApplyFlat(j.Parts.Train.Y)
	allY, err := compute.Float64s(compute.Floats(j.DType, y, len(y))) // as the sampler has them
	if err != nil {
		return nil, fmt.Errorf("fbnn: %w", err)
	}
	allX := scaled.RawMatrix().Data
	return func(_ context.Context, from int, x, y []float64) error {
		copy(x, allX[from*j.Bound.Inputs:])
		copy(y, allY[from*j.Bound.Targets():])
		return nil
	}, nil
}

// checkSource is an error if a setting is impossible for rows that do not fit into memory.
func (a CES) checkSource(j *fit.Job) error {
	switch {
	case j.Source == nil:
		return nil
	case a.Calibration.Traits().Carries != mcmc.CarriesNothing:
		return fmt.Errorf("fbnn: CES.Calibration is %T, each move of which takes all %d rows: of a Source the calibration "+
			"is by mini-batches: take mcmc.SGHMC or mcmc.SGLD", a.Calibration, j.Rows())
	case a.BatchSize > blockRows:
		return fmt.Errorf("fbnn: CES.BatchSize is %d: of a Source a mini-batch is of one block: take at most %d",
			a.BatchSize, blockRows)
	case a.Emulates == networkOutputs && knownNoise(j.Bound) == 0:
		return fmt.Errorf("fbnn: CES.Emulates is %q: the likelihood %T would need the outputs of all %d rows in memory: "+
			"of a Source take fbnn.LogLikelihood", a.Emulates, j.Bound.Model.Likelihood, j.Rows())
	}
	return nil
}
