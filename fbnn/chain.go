package fbnn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Chain samples the true posterior by one chain, without an emulator: the BNN-SGHMC and BNN-pCN with which the paper
// compares FBNN. It is the calibration of CES with more draws, which Observe and fit.Now see. If the context is
// cancelled, fit.Fit returns an error and no result; with a checkpoint the same call resumes.
type Chain struct {
	Kernel    mcmc.Kernel // as CES.Calibration; default mcmc.SGHMC
	Draws     int         // default 2000, at least 10
	Thin      int         // transitions from one draw to the next; default 10
	WarmUp    int         // transitions before the first draw; default 1000, mcmc.NoWarmUp: none
	BatchSize int         // rows of a mini-batch; default 50, or all rows if there are fewer
}

var _ fit.Taker = Chain{}

// Title implements fit.Method.
func (c Chain) Title() string { return fmt.Sprintf("a chain of %T on the true posterior", c.Kernel) }

// MarshalJSON writes the settings that determine the draws.
func (c Chain) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", c.Kernel), "kernel_settings": c.Kernel, "draws": c.Draws, "thin": c.Thin,
		"warm_up": c.WarmUp, "batch_size": c.BatchSize,
	})
}

// calibration is the first step of CES that makes these draws.
func (c Chain) calibration() CES {
	return CES{
		Calibration: c.Kernel, Pairs: c.Draws, PairsThin: c.Thin, PairsWarmUp: c.WarmUp, BatchSize: c.BatchSize,
		Emulates: LogLikelihood, // nothing is emulated: of a Source this is always possible
	}
}

// Takes implements fit.Taker.
func (Chain) Takes() fit.Takes { return inBlocks() }

// Prepare implements fit.Method.
func (c Chain) Prepare(j *fit.Job) (fit.Method, error) {
	c.Draws = cmp.Or(c.Draws, 2000)
	a, err := c.calibration().prepared(j)
	if err != nil {
		return nil, err
	}
	return Chain{Kernel: a.Calibration, Draws: a.Pairs, Thin: a.PairsThin, WarmUp: a.PairsWarmUp,
		BatchSize: a.BatchSize}, nil
}

// Run implements fit.Method.
func (c Chain) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	r, err := newCES(c.calibration(), j)
	if err != nil {
		return nil, err
	}
	defer r.truth.Close()
	result, phi, err := r.drawn(ctx, true)
	if err != nil {
		return nil, err
	}
	d := r.details
	chain := d.Calibration
	coordinate := func(i int) []float64 { return chain.Draws.Coordinate(i)[0] }
	if _, _, err := spread(phi, chain.Draws.Dim, c.Draws-c.Draws/5, coordinate); err != nil {
		return nil, err
	}
	d.Evaluations = r.calibrationCost()
	d.Evaluations.Full += r.spent.Full - r.Pairs // Phi at the draws is for the report, and not a cost of the chain
	d.Evaluations.FullGradients += r.spent.FullGradients
	d.Sampling = chain
	t := &d.Truth
	t.states, t.Emulated, t.RMS = c.Draws, math.NaN(), math.NaN()
	t.Calibration, t.calibrationStdDev = stat.PopMeanStdDev(phi, nil)
	t.True = t.Calibration
	if t.Prior, err = r.priorPotential(ctx); err != nil {
		return nil, err
	}
	result.Elapsed, result.Details = 0, []any{d}
	return result, r.ess(chain.Draws)
}

// Prior draws from the prior, without the data. Compare a chain with it to see whether the chain samples more than the
// prior.
type Prior struct {
	Draws int // default 2000, at least 10
}

var _ fit.Taker = Prior{}

// Title implements fit.Method.
func (Prior) Title() string { return "draws of the prior" }

// Takes implements fit.Taker.
func (Prior) Takes() fit.Takes { return inBlocks() }

// Prepare implements fit.Method.
func (p Prior) Prepare(j *fit.Job) (fit.Method, error) {
	if err := j.SampleAll(); err != nil {
		return nil, err
	}
	err := limits.Fill("fbnn: Prior", limits.Int("Draws", &p.Draws, 2000).From(fewestPairs))
	return p, err
}

// Run implements fit.Method.
func (p Prior) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	own, err := newJob(j)
	if err != nil {
		return nil, err
	}
	theta, err := own.initial(p.Draws)
	if err != nil {
		return nil, err
	}
	phi, err := own.potentials(ctx, own.problem, theta)
	if err != nil {
		return nil, err
	}
	d := &Details{SecondStage: math.NaN(), job: own}
	t := &d.Truth
	t.states, t.True, t.Emulated, t.RMS = p.Draws, stat.Mean(phi, nil), math.NaN(), math.NaN()
	t.Calibration, t.calibrationStdDev = stat.PopMeanStdDev(phi, nil)
	slices.Sort(phi)
	t.Prior = stat.Quantile(.5, stat.Empirical, phi, nil)
	t.minESS, t.medianESS = float64(p.Draws), float64(p.Draws)
	return &fit.Result{
		Draws: bayes.Draws{
			Phi:    compute.Floats(j.DType, theta.RawMatrix().Data, p.Draws, j.Bound.D),
			Chains: 1, LogWeights: bayes.EqualLogWeights(p.Draws),
		},
		Status: run.Completed, Approximation: "the prior", Details: []any{d},
	}, nil
}

// Potentials returns the true potential Phi = -log p(y | theta) and the emulated one at theta, [n, D], n numbers each.
// They show where the emulator is right. After Chain and Prior emulated is nil.
func (d *Details) Potentials(ctx context.Context, theta *mat.Dense) (truth, emulated []float64, err error) {
	if n, width := theta.Dims(); width != d.job.problem.Dim {
		return nil, nil, fmt.Errorf("fbnn: theta is [%d, %d], and there are %d parameters", n, width, d.job.problem.Dim)
	}
	if truth, err = d.job.potentials(ctx, d.job.problem, theta); err != nil || d.cheap.Target == nil {
		return truth, nil, err
	}
	emulated, err = d.job.potentials(ctx, d.cheap, theta)
	return truth, emulated, err
}

// potentials evaluates Phi of a problem at the rows of theta.
func (j *job) potentials(ctx context.Context, problem density.Problem, theta *mat.Dense) ([]float64, error) {
	e, err := newEvaluator(j, problem)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.potential(ctx, theta)
}
