package fbnn

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// This file is the settings of CES: how they are named and kept, their defaults and their checks.

// Title implements Algorithm.
func (a CES) Title() string {
	name := fmt.Sprintf("FBNN(%s-%s)", kernelName(a.Calibration), kernelName(a.Sampling))
	switch {
	case a.PaperMode:
		name += ", in the paper's mode"
	case a.Uncorrected:
		name += ", uncorrected"
	default:
		name += ", with delayed acceptance"
	}
	return name + ": calibration, emulation, sampling (Algorithm 3)"
}

func kernelName(k mcmc.Kernel) string {
	switch k.(type) {
	case mcmc.SGHMC:
		return "SGHMC"
	case mcmc.PreconditionedCrankNicolson:
		return "pCN"
	}
	return fmt.Sprintf("%T", k)
}

// MarshalJSON writes the settings that determine the draws.
func (a CES) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"calibration": fmt.Sprintf("%T", a.Calibration), "calibration_settings": a.Calibration, "pairs": a.Pairs,
		"pairs_thin": a.PairsThin, "pairs_warm_up": a.PairsWarmUp, "batch_size": a.BatchSize, "emulates": a.Emulates,
		"rank": a.Rank, "regressor": fmt.Sprintf("%T", a.Regressor), "regressor_settings": a.Regressor,
		"sampling": fmt.Sprintf("%T", a.Sampling), "sampling_settings": a.Sampling, "chains": a.Chains, "draws": a.Draws,
		"thin": a.Thin, "transitions": a.Transitions, "uncorrected": a.Uncorrected, "paper_mode": a.PaperMode,
		"check": a.Check,
	})
}

// Prepare implements Algorithm.
func (a CES) Prepare(job *Job) (Algorithm, error) {
	rows, d := job.Data.Rows(), job.Data.Bound.D
	byDefault(&a.Pairs, 200)
	byDefault(&a.PairsThin, 10)
	byDefault(&a.PairsWarmUp, 1000)
	byDefault(&a.BatchSize, min(50, rows, job.mostBatch()))
	byDefault(&a.Emulates, Outputs)
	byDefault(&a.Rank, max(1, a.Pairs-1))
	byDefault(&a.Chains, 1)
	byDefault(&a.Draws, 2000)
	byDefault(&a.Thin, 1)
	byDefault(&a.Transitions, 1)
	byDefault(&a.Check, 100)
	if a.Regressor == nil {
		a.Regressor = Network{}
	}
	if a.Calibration == nil {
		a.Calibration = mcmc.SGHMC{}
	}
	if a.Sampling == nil {
		a.Sampling = mcmc.PreconditionedCrankNicolson{}
	}
	if s, ok := a.Calibration.(mcmc.SGHMC); ok && s.LearningRate == 0 {
		s.LearningRate = .001 / float64(rows)
		a.Calibration = s
	}
	if s, ok := a.Sampling.(mcmc.SGHMC); ok && s.LearningRate == 0 {
		s.LearningRate = .001 / float64(rows)
		a.Sampling = s
	}
	a.Calibration, a.Sampling = byPrior(a.Calibration, job), byPrior(a.Sampling, job)
	if err := a.check(rows); err != nil {
		return nil, err
	}
	if err := a.checkSource(job); err != nil {
		return nil, err
	}
	if err := mcmc.Check(a.Calibration, d, a.PairsWarmUp > 0); err != nil {
		return nil, fmt.Errorf("fbnn: CES.Calibration: %w", err)
	}
	sampling := a.Sampling
	if k, ok := a.unstepped(); ok {
		k.StepSize = largestStep // the step size is chosen once there is an emulator
		sampling = k
	}
	if err := mcmc.Check(sampling, d, false); err != nil {
		return nil, fmt.Errorf("fbnn: CES.Sampling: %w", err)
	}
	if a.corrected() {
		if err := a.delayed(sampling, nil, 0).Check(d); err != nil {
			return nil, fmt.Errorf("fbnn: CES.Sampling cannot be corrected by the true posterior: set CES.Uncorrected, or "+
				"take another kernel: %w", err)
		}
	}
	regressor, err := a.Regressor.Prepare(d)
	if err == nil && regressor == nil {
		err = fmt.Errorf("fbnn: CES.Regressor: %T.Prepare gives no regressor", a.Regressor)
	}
	a.Regressor = regressor
	return a, err
}

func byDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// byPrior gives a pCN the prior's scales, if it has none.
func byPrior(k mcmc.Kernel, job *Job) mcmc.Kernel {
	if p, ok := k.(mcmc.PreconditionedCrankNicolson); ok && len(p.StdDev) == 0 {
		p.StdDev = job.Data.Bound.Scales()
		return p
	}
	return k
}

// check is an error that names a setting that is out of bounds.
func (a CES) check(rows int) error {
	return limits.Check("fbnn: CES",
		limits.Field("Pairs", a.Pairs, a.Pairs >= fewestPairs, fmt.Sprintf("at least %d (0: 200)", fewestPairs)),
		limits.Field("PairsThin", a.PairsThin, a.PairsThin >= 1, "at least 1 (0: 10)"),
		limits.Field("PairsWarmUp", a.PairsWarmUp, a.PairsWarmUp >= 1 || a.PairsWarmUp == mcmc.NoWarmUp,
			"at least 1, or mcmc.NoWarmUp (0: 1000)"),
		limits.Field("BatchSize", a.BatchSize, a.BatchSize >= 1 && a.BatchSize <= rows,
			fmt.Sprintf("from 1 to the %d rows of the training part (0: 50)", rows)),
		limits.Field("Emulates", a.Emulates, a.Emulates == Outputs || a.Emulates == LogLikelihood,
			fmt.Sprintf("one of %q", []Emulated{Outputs, LogLikelihood})),
		limits.Field("Rank", a.Rank, a.Rank >= 1, "at least 1 (0: all)"),
		limits.Field("Chains", a.Chains, a.Chains >= 1, "at least 1 (0: 1)"),
		limits.Field("Draws", a.Draws, a.Draws >= 4, "at least 4 (0: 2000)"),
		limits.Field("Thin", a.Thin, a.Thin >= 1, "at least 1 (0: 1)"),
		limits.Field("Transitions", a.Transitions, a.Transitions >= 1, "at least 1 (0: 1)"),
		limits.Field("Transitions", a.Transitions, a.Transitions == 1 || a.corrected(),
			"left out where nothing is corrected: take CES.Thin"),
		limits.Field("Check", a.Check, a.Check >= 100, "at least 100 (0: 100)"),
		limits.Field("Check", a.Check, a.Check <= max(100, a.Chains*a.Draws), "at most the draws"),
		limits.Field("PaperMode", a.PaperMode, !a.PaperMode || a.Emulates == Outputs,
			"left out with CES.Emulates of the log-likelihood, which has no outputs to predict by"),
	)
}

// corrected says whether draws are accepted or rejected by the true posterior.
func (a CES) corrected() bool { return !a.Uncorrected && !a.PaperMode }

// unstepped is the sampling's HMC, if its step size is to be chosen by what the true posterior accepts.
func (a CES) unstepped() (mcmc.HMC, bool) {
	k, ok := a.Sampling.(mcmc.HMC)
	return k, ok && k.StepSize == 0 && a.corrected()
}

// delayed is the sampling kernel with its correction.
func (a CES) delayed(
	inner mcmc.Kernel, cheap func(density.Target) density.Target, share float64,
) mcmc.DelayedAcceptance {
	return mcmc.DelayedAcceptance{Inner: inner, Transitions: a.Transitions, Cheap: cheap, Share: share}
}
