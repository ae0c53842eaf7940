package fbnn

import (
	"cmp"
	"context"
	"fmt"
	"strings"
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

// FitSource is Fit for rows that do not fit into memory, such as those of a file or a dataset.Simulated: it reads at
// most Settings.BlockRows rows at a time. The source is read once to compute means and standard deviations and to find
// faults (fit.Data.Examined); a row that differs later ends the run with an error that wraps dataset.ErrChanged. The
// calibration takes mini-batches from few blocks, and so must have a kernel for mini-batches, mcmc.SGHMC or mcmc.SGLD.
// Phi, gradients and the inner products of the pairs' outputs are sums over all blocks, and so is each evaluation of
// the true posterior in the second accept/reject step. Put the rows in random order.
//
// Result.Memory is the estimated largest memory of the run. If it is more than Settings.Memory, FitSource returns an
// error before it reads a row. All likelihoods but that of a regression with known noise need the outputs of all rows
// at once: then these must fit into Settings.Memory, or CES.Emulates must be LogLikelihood.
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
	settings.BlockRows = cmp.Or(settings.BlockRows, 8192)
	settings.Memory = cmp.Or(settings.Memory, defaultMemory)
	if source != nil && source.Rows() > 0 {
		settings.BlockRows = min(settings.BlockRows, source.Rows())
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
	if job.algorithm, err = prepared(algorithm, job); err != nil { // faults are reported before hours of reading
		return nil, err
	}
	memory, err := job.checkMemory()
	if err != nil {
		return nil, err
	}
	if settings.Progress != nil {
		settings.Progress(run.Progress{
			Stage: "reading", Scores: []run.Score{{Name: "GiB at most", Value: gibibytes(memory)}},
		})
	}
	if data, err = data.Examined(ctx, settings.BlockRows, job.reading("checking all rows")); err != nil {
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
		BatchSize: size, BlockRows: j.BlockRows, Chains: 1, DType: dtype, Seed: j.Seed,
	})
	if err != nil {
		return problem, nil, fmt.Errorf("fbnn: %w", err)
	}
	problem.Climb = density.NewClimb(j.Data.Bound)
	problem.Climb.Rate = .1 * min(1, widest/float64(j.Data.Bound.Inputs))
	return problem, blocks, nil
}

// mostBatch is the largest size of a mini-batch.
func (j *Job) mostBatch() int {
	if j.Data.Source != nil {
		return j.BlockRows
	}
	return j.Data.Rows()
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

// slowReading is how long a pass over the rows of a source takes that is worth telling of.
const slowReading = 2 * time.Second

// reading reports a pass over all rows of a source, as a stage "reading: " and what for: the result is to be called
// after each block with the number of rows so far. Quick passes, and those over rows in memory, are not reported.
func (j *Job) reading(what string) func(rows int) {
	if j.Progress == nil || j.Data.Source == nil {
		return func(int) {}
	}
	began, all := time.Now(), j.Data.Rows()
	told := began.Add(slowReading - perReport)
	return func(rows int) {
		now := time.Now()
		last := rows >= all && now.Sub(began) > slowReading
		if now.Sub(told) < perReport && !last {
			return
		}
		told = now
		elapsed := now.Sub(began)
		j.Progress(run.Progress{
			Stage: "reading: " + what, Step: rows, Steps: all, Elapsed: elapsed,
			Remaining: time.Duration(float64(elapsed) / float64(rows) * float64(all-rows)),
		})
	}
}

// perReport is the least time between two reports of progress.
const perReport = 100 * time.Millisecond

// checkSource is an error if a setting is impossible for rows that do not fit into memory.
func (a CES) checkSource(job *Job) error {
	if job.Data.Source == nil {
		return nil
	}
	if a.Calibration.Carries() != mcmc.CarriesNothing {
		return fmt.Errorf("fbnn: CES.Calibration is %T, each move of which takes all %d rows: of a Source the calibration "+
			"is by mini-batches: take mcmc.SGHMC or mcmc.SGLD", a.Calibration, job.Data.Rows())
	}
	if a.BatchSize > job.BlockRows {
		return fmt.Errorf("fbnn: CES.BatchSize is %d: of a Source a mini-batch is of one block: take at most "+
			"Settings.BlockRows, %d", a.BatchSize, job.BlockRows)
	}
	return nil
}

// share is a part of the memory that a run takes.
type share struct {
	of    string
	bytes int64
}

// ofPrograms is the memory that the process takes otherwise: the library, XLA, its compiler and compiled programs, and
// the activations of a chunk of particles (compute.NewPlan).
const ofPrograms = 640 << 20

// needing is an Algorithm that can say how much memory it takes for a job.
type needing interface{ memory(job *Job) []share }

// checkMemory is the memory of a run whose rows do not fit into memory, and an error if it is more than
// Settings.Memory.
func (j *Job) checkMemory() (int64, error) {
	if j.Data.Source == nil {
		return 0, nil
	}
	const float = 8
	row := int64(j.Data.Bound.Inputs + j.Data.Bound.Targets())
	// A block as it is read, padded, as a tensor and on the device; one of the calibration; and one of the previous block.
	shares := []share{
		{"the programs and their activations", ofPrograms},
		{fmt.Sprintf("blocks of %d rows", j.BlockRows), 6 * float * row * int64(j.BlockRows)},
	}
	if a, ok := j.algorithm.(needing); ok {
		shares = append(shares, a.memory(j)...)
	}
	total, parts := int64(0), []string{}
	for _, s := range shares {
		total += s.bytes
		parts = append(parts, fmt.Sprintf("%.3g GiB for %s", gibibytes(s.bytes), s.of))
	}
	if total > j.Memory {
		return total, fmt.Errorf("fbnn: the run would take %.3g GiB of memory, and Settings.Memory is %.3g GiB: %s; read "+
			"fewer rows at once (Settings.BlockRows), keep fewer draws or pairs, or, where the outputs of all rows are the "+
			"most, emulate the log-likelihood (CES.Emulates)", gibibytes(total), gibibytes(j.Memory),
			strings.Join(parts, ", "))
	}
	return total, nil
}

func gibibytes(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// memory implements needing.
func (a CES) memory(job *Job) []share {
	const float = 8
	bound, size := job.Data.Bound, int64(job.DType.Size())
	d, pairs := int64(bound.D), int64(a.Pairs)
	shares := []share{
		// theta: raw, standardised, for the emulator and for a Gaussian process; and inner products
		{fmt.Sprintf("%d pairs", pairs), float * pairs * (5*d + 6*pairs)},
		drawn(job, a.Chains*a.Draws),
		{"the emulator", a.ofRegressor(job.Data.Bound.D, size)},
	}
	if a.Emulates == LogLikelihood {
		return shares
	}
	shares = append(shares, share{"the pairs' outputs of some rows", 3 * (float + size) * mostOutputs})
	if knownNoise(bound) == 0 { // see anyHead
		outputs := int64(bound.Width) * int64(job.Data.Rows())
		rank := min(int64(a.Rank), pairs-pairs/5-1)
		shares = append(shares, share{
			fmt.Sprintf("the components of the outputs of all %d rows, which this likelihood needs",
				job.Data.Rows()),
			outputs * ((rank+2)*(float+2*size) + 3*size*int64(max(a.Chains, atOnce))),
		})
	}
	return shares
}

// ofRegressor is the approximate memory that learning the emulator takes beside the pairs: its weights in float64 and
// on the device before and after a step, and Adam's moments. A regressor of your own is assumed to be like the default.
func (a CES) ofRegressor(d int, size int64) int64 {
	width := int64(32)
	switch r := a.Regressor.(type) {
	case Network:
		if len(r.Hidden) > 0 {
			width = int64(r.Hidden[0])
		}
	case RandomNetwork:
		width = int64(r.Units)
	}
	return int64(d) * width * (2*8 + 6*size)
}

// memory implements needing.
func (c Chain) memory(job *Job) []share {
	return []share{drawn(job, c.Draws)}
}

// memory implements needing.
func (p Prior) memory(job *Job) []share {
	s := drawn(job, p.Draws)
	s.bytes += 8 * int64(p.Draws) * int64(job.Data.Bound.D) // in float64
	return []share{s}
}

// drawn is the memory of draws: as the chains keep them, in the result, on the way there or to a checkpoint, and copies
// that wait for garbage collection.
func drawn(job *Job, draws int) share {
	each := int64(draws) * int64(job.Data.Bound.D)
	return share{fmt.Sprintf("%d draws", draws), each * 5 * int64(job.DType.Size())}
}
