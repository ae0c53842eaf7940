package pbnn

import (
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/mcmc"
)

// This file has the warnings that make a result doubtful, and the errors of a run without a result.

// maxBias is the largest Result.Bias that gives no warning.
const maxBias = 0.1

// judgeNoise fills in Skewness, Bias and Warnings.
func (r *Result) judgeNoise() {
	m, ok := penalised(r.Sampler)
	if !ok || m.Rule == Naive {
		return
	}
	squared := 0.0
	for _, c := range r.Chains.Stats {
		squared += c.SquaredSkewness / float64(len(r.Chains.Stats))
	}
	r.Skewness = deltaSkewness(squared, m.Batches, m.Estimate)
	r.Bias = skewBias(r.Skewness, r.Noise, m.Estimate)
	if r.Bias > maxBias {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"the loss differences are not Gaussian: delta has a skewness of %.2g at sigma^2 = %.2g, by which acceptance "+
				"ratios are off by up to about %.0f %%: take a larger BatchSize (n) than %d, more Batches (M) than %d, or "+
				"smaller steps",
			r.Skewness, r.Noise, 100*math.Expm1(r.Bias), m.BatchSize, m.Batches))
	}
}

// explain adds an M and an n with which the chains would move to the error of chains that noise has stopped.
func explain(err error, sampler Sampler, rows int) error {
	stuck := (*mcmc.StuckError)(nil)
	m, ok := penalised(sampler)
	if !ok || !errors.As(err, &stuck) || stuck.Noise <= acceptableNoise {
		return fmt.Errorf("pbnn: %w", err)
	}
	batches, size := m.sizeFor(acceptableNoise, stuck.Noise, rows)
	larger := fmt.Sprintf("BatchSize (n) %d instead of %d", size, m.BatchSize)
	if m.Estimate != OneBatch { // whose noise does not fall with M
		larger = fmt.Sprintf("Batches (M) %d instead of %d, or with %s", batches, m.Batches, larger)
	}
	return fmt.Errorf("pbnn: the loss differences have a variance sigma^2 of %.3g, so that the penalty rejects nearly "+
		"all proposals; at this step size, %.3g, it would be about %g with %s: %w", stuck.Noise, stuck.StepSize,
		acceptableNoise, larger, err)
}

// approximation is the Approximation of a bayes.Provenance: what the draws are from if it is not the target. For a
// user's own sampler it is empty, since nothing is known.
func approximation(s Sampler) string {
	if m, ok := penalised(s); ok && m.Rule == Naive {
		return "wider than the target, by the noise of the mini-batches: the rule is " + string(Naive)
	}
	switch s := s.(type) {
	case Confidence:
		return fmt.Sprintf("about the target: each step is decided by a part of the rows, wrongly with a probability of up "+
			"to %g", s.Error)
	case Unadjusted:
		return fmt.Sprintf("where chains of %T go, which accept every step", s.Kernel)
	case AllRows:
		return mcmc.Approximation(s.Kernel)
	}
	return ""
}
