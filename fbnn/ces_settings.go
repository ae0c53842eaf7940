package fbnn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// This file is the settings of CES: how they are named and kept, their defaults and their checks.

// Title implements fit.Method.
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

// MarshalJSON writes the settings that determine the draws. The four zeros stand for settings that there were: kept
// results of studies are found by this text.
func (a CES) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"calibration": fmt.Sprintf("%T", a.Calibration), "calibration_settings": a.Calibration, "pairs": a.Pairs,
		"pairs_thin": a.PairsThin, "pairs_warm_up": a.PairsWarmUp, "batch_size": a.BatchSize, "emulates": a.Emulates,
		"regressor": fmt.Sprintf("%T", a.Regressor), "regressor_settings": a.Regressor,
		"sampling": fmt.Sprintf("%T", a.Sampling), "sampling_settings": a.Sampling, "chains": a.Chains, "draws": a.Draws,
		"uncorrected": a.Uncorrected, "paper_mode": a.PaperMode, "rank": 0, "thin": 0, "transitions": 0, "check": 0,
	})
}

// inBlocks is for methods that read the rows of a Source in blocks.
func inBlocks() fit.Takes { return fit.Takes{RowsAtOnce: blockRows} }

// Takes implements fit.Taker.
func (CES) Takes() fit.Takes { return inBlocks() }

// Prepare implements fit.Method.
func (a CES) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := a.prepared(j)
	if err != nil {
		return nil, err
	}
	return prepared, nil
}

func (a CES) prepared(j *fit.Job) (CES, error) {
	if err := j.CheckRowsAlike(); err != nil {
		return a, err
	}
	if err := j.SampleAll(); err != nil {
		return a, err
	}
	rows, d := j.Rows(), j.Bound.D
	a.Emulates = cmp.Or(a.Emulates, networkOutputs)
	if a.Regressor == nil {
		a.Regressor = Network{}
	}
	thin, warmUp := 10, 1000
	if a.PaperMode {
		thin, warmUp = 1, mcmc.NoWarmUp
	}
	if err := limits.Fill("fbnn: CES",
		limits.Int("Pairs", &a.Pairs, 200).From(fewestPairs),
		limits.Int("PairsThin", &a.PairsThin, thin).From(1),
		limits.Int("PairsWarmUp", &a.PairsWarmUp, warmUp).From(1).Or(mcmc.NoWarmUp, "mcmc.NoWarmUp"),
		limits.Int("BatchSize", &a.BatchSize, min(50, rows)).Between(1, rows).Because("the rows of the training part"),
		limits.Int("Chains", &a.Chains, 1).From(1),
		limits.Int("Draws", &a.Draws, 2000).From(4),
		limits.Field("Emulates", a.Emulates, a.Emulates == networkOutputs || a.Emulates == LogLikelihood,
			fmt.Sprintf("one of %q", []Emulated{networkOutputs, LogLikelihood})),
		limits.Field("PaperMode", a.PaperMode, !a.PaperMode || a.Emulates == networkOutputs,
			"left out with CES.Emulates of the log-likelihood, which has no outputs to predict by"),
	); err != nil {
		return a, err
	}
	a.Calibration = ready(a.Calibration, mcmc.SGHMC{}, j)
	a.Sampling = ready(a.Sampling, mcmc.PreconditionedCrankNicolson{}, j)
	if err := a.checkSource(j); err != nil {
		return a, err
	}
	if err := mcmc.Check(a.Calibration, d, a.PairsWarmUp > 0); err != nil {
		return a, fmt.Errorf("fbnn: CES.Calibration: %w", err)
	}
	sampling := a.Sampling
	if k, ok := a.unstepped(); ok {
		k.StepSize = largestStep // the step size is chosen once there is an emulator
		sampling = k
	}
	if err := mcmc.Check(sampling, d, false); err != nil {
		return a, fmt.Errorf("fbnn: CES.Sampling: %w", err)
	}
	if a.corrected() {
		if err := (mcmc.DelayedAcceptance{Inner: sampling}).Check(d); err != nil {
			return a, fmt.Errorf("fbnn: CES.Sampling cannot be corrected by the true posterior: set CES.Uncorrected, or "+
				"take another kernel: %w", err)
		}
	}
	var err error
	a.Regressor, err = a.Regressor.prepare()
	return a, err
}

// ready is a kernel, or the given one if it is nil, with the learning rate of an SGHMC and the prior's scales of a pCN
// filled in.
func ready(k, byDefault mcmc.Kernel, j *fit.Job) mcmc.Kernel {
	if k == nil {
		k = byDefault
	}
	switch k := k.(type) {
	case mcmc.SGHMC:
		k.LearningRate = cmp.Or(k.LearningRate, .001/float64(j.Rows()))
		return k
	case mcmc.PreconditionedCrankNicolson:
		if len(k.StdDev) == 0 {
			k.StdDev = j.Bound.Scales()
		}
		return k
	}
	return k
}

// corrected says whether draws are accepted or rejected by the true posterior.
func (a CES) corrected() bool { return !a.Uncorrected && !a.PaperMode }

// unstepped is the sampling's HMC, if its step size is to be chosen by what the true posterior accepts.
func (a CES) unstepped() (mcmc.HMC, bool) {
	k, ok := a.Sampling.(mcmc.HMC)
	return k, ok && k.StepSize == 0 && a.corrected()
}
