package fbnn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Chain samples the true posterior by one chain, without an emulator: the BNN-SGHMC and BNN-pCN with which the paper
// compares FBNN. It is the calibration of CES with more draws. If the context is cancelled, Fit returns an error and no
// result; with Settings.Checkpoint the same call resumes.
type Chain struct {
	Kernel    mcmc.Kernel // as CES.Calibration; default mcmc.SGHMC
	Draws     int         // default 2000, at least 10
	Thin      int         // transitions from one draw to the next; default 10
	WarmUp    int         // transitions before the first draw; default 1000, mcmc.NoWarmUp: none
	BatchSize int         // rows of a mini-batch; default 50, or all rows if there are fewer
}

var _ Algorithm = Chain{}

// Title implements Algorithm.
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

// Prepare implements Algorithm.
func (c Chain) Prepare(job *Job) (Algorithm, error) {
	c.Draws = cmp.Or(c.Draws, 2000)
	prepared, err := c.calibration().Prepare(job)
	if err != nil {
		return nil, err
	}
	a := prepared.(CES)
	return Chain{Kernel: a.Calibration, Draws: a.Pairs, Thin: a.PairsThin, WarmUp: a.PairsWarmUp,
		BatchSize: a.BatchSize}, nil
}

// Sample implements Algorithm.
func (c Chain) Sample(ctx context.Context, job *Job) (*Result, error) {
	r := &ces{CES: c.calibration(), Job: job, result: &Result{Chains: 1, SecondStage: math.NaN()}}
	var err error
	if r.name, err = job.name(); err != nil {
		return nil, err
	}
	if r.truth, err = newEvaluator(job, job.Problem); err != nil {
		return nil, err
	}
	defer r.truth.Close()
	theta, phi, err := r.drawn(ctx)
	if err != nil {
		return nil, err
	}
	out := r.result
	chain := out.Calibration
	coordinate := func(i int) []float64 { return chain.Draws.Coordinate(i)[0] }
	if _, _, err := spread(phi, chain.Draws.Dim, c.Draws-c.Draws/5, coordinate); err != nil {
		return nil, err
	}
	out.Evaluations = r.calibrationCost()
	out.Evaluations.Full += r.spent.Full - r.Pairs // Phi at the draws is for the report, and not a cost of the chain
	out.Evaluations.FullGradients += r.spent.FullGradients
	out.Sampling, out.Phi, out.Status = chain, theta, chain.Status
	out.Warnings, out.job, out.Approximation = chain.Warnings, job, out.Pairs.Provenance().Approximation
	t := &out.Truth
	t.States, t.Emulated, t.RMS = c.Draws, math.NaN(), math.NaN()
	t.Calibration, t.CalibrationStdDev = stat.PopMeanStdDev(phi, nil)
	t.True = t.Calibration
	if t.Prior, err = r.priorPotential(ctx); err != nil {
		return nil, err
	}
	return out, r.ess(chain.Draws)
}

// Prior draws from the prior, without the data. Compare a chain with it to see whether the chain samples more than the
// prior.
type Prior struct {
	Draws int // default 2000, at least 10
}

var _ Algorithm = Prior{}

// Title implements Algorithm.
func (Prior) Title() string { return "draws of the prior" }

// Prepare implements Algorithm.
func (p Prior) Prepare(*Job) (Algorithm, error) {
	err := limits.Fill("fbnn: Prior", limits.Int("Draws", &p.Draws, 2000).From(fewestPairs))
	return p, err
}

// Sample implements Algorithm.
func (p Prior) Sample(ctx context.Context, job *Job) (*Result, error) {
	theta, err := initial(job, job.Problem, p.Draws)
	if err != nil {
		return nil, err
	}
	phi, err := potentialsOf(ctx, job, job.Problem, theta)
	if err != nil {
		return nil, err
	}
	out := &Result{Chains: 1, Approximation: "the prior", SecondStage: math.NaN(), job: job}
	out.Phi = compute.Floats(job.DType, theta.RawMatrix().Data, p.Draws, job.Problem.Dim)
	out.Status = run.Completed
	t := &out.Truth
	t.States, t.True, t.Emulated, t.RMS = p.Draws, stat.Mean(phi, nil), math.NaN(), math.NaN()
	t.Calibration, t.CalibrationStdDev = stat.PopMeanStdDev(phi, nil)
	slices.Sort(phi)
	t.Prior = stat.Quantile(.5, stat.Empirical, phi, nil)
	t.MinESS, t.MedianESS = float64(p.Draws), float64(p.Draws)
	return out, nil
}

// Potentials returns the true potential Phi = -log p(y | theta) and the emulated one at theta, [n, D], n numbers each.
// They show where the emulator is right. After Chain and Prior emulated is nil.
func (r *Result) Potentials(ctx context.Context, theta *mat.Dense) (truth, emulated []float64, err error) {
	if r.job == nil {
		return nil, nil, fmt.Errorf("fbnn: %T does not say what is emulated", r.Algorithm)
	}
	if n, d := theta.Dims(); d != r.job.Problem.Dim {
		return nil, nil, fmt.Errorf("fbnn: theta is [%d, %d], and there are %d parameters", n, d, r.job.Problem.Dim)
	}
	if truth, err = potentialsOf(ctx, r.job, r.job.Problem, theta); err != nil || r.cheap.Target == nil {
		return truth, nil, err
	}
	emulated, err = potentialsOf(ctx, r.job, r.cheap, theta)
	return truth, emulated, err
}

// potentialsOf evaluates Phi of a problem at the rows of theta.
func potentialsOf(ctx context.Context, job *Job, problem density.Problem, theta *mat.Dense) ([]float64, error) {
	e, err := newEvaluator(job, problem)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.potential(ctx, theta)
}
