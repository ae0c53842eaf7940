package pbnn

import (
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
)

// Details are what a run of a Sampler has found besides its draws: fit.Details[*pbnn.Details](result).
type Details struct {
	Sampler Sampler // as it ran, defaults and adapted settings filled in
	// Noise is the mean sigma^2 of all proposals of all chains; 0 for samplers that have no sigma^2.
	Noise float64
	// Skewness is the absolute skewness of delta, estimated from the d_i of all proposals of a Metropolis: 0 for Gaussian
	// noise, which the penalty assumes. It is also 0 if it is not estimated: for M below 3, the rule Naive and other
	// samplers.
	Skewness float64
	// Bias is the largest error that Skewness causes in the logarithm of an acceptance ratio, to first order (see
	// derivations.md): at 0.1 the ratio is wrong by about a tenth.
	Bias float64
	// Acceptance is the mean probability of acceptance over all chains; NaN for samplers that accept everything.
	Acceptance float64
	// Passes is the cost of a chain's draws, in passes over the likelihoods of all N rows: use it to compare samplers at
	// equal cost. The losses of a row at one theta count as one evaluation of the row, its gradient as another.
	// Evaluations of a chain that only waits for the others count too. The climb to the start, the warm-up and the trials
	// in Adapted do not.
	Passes float64
	// RowsPerStep is the mean number of row evaluations in a transition, counted in the same way over the draws, but
	// without those of waiting chains: the cost of a chain that runs alone.
	RowsPerStep float64
	// Adapted lists the trials that chose Batches and BatchSize, if Metropolis.Noise asked for them.
	Adapted []Trial
}

// maxBias is the largest Details.Bias that gives no warning.
const maxBias = 0.1

// of fills in all numbers from the chains, given N, and returns doubts.
func (d *Details) of(chains *mcmc.Details, rows int) (all fit.Doubts) {
	squared, moves, transitions := 0.0, 0, 0
	for _, c := range chains.Stats {
		each := float64(len(chains.Stats))
		d.Noise += c.Noise / each
		d.Acceptance += c.Acceptance / each
		if s := c.Extra[skewnessName]; !math.IsNaN(s) { // 0 where no sample has one
			squared += s / each
		}
		moves += max(c.Gradients, c.Transitions) // 0 for kernels with one move a transition
		transitions += c.Transitions
	}
	e := chains.Evaluations
	evaluated := float64(rows) * (float64(e.Full+e.FullGradients) + e.PartialShare*float64(e.Partial+e.PartialGradients))
	d.RowsPerStep = evaluated / float64(transitions)
	d.Passes = evaluated / float64(moves) * float64(chains.Moves) / float64(rows)

	m, ok := penalised(d.Sampler)
	if !ok || m.Rule == Naive {
		return nil
	}
	d.Skewness = deltaSkewness(squared, m.Batches, m.Estimate)
	d.Bias = skewBias(d.Skewness, d.Noise, m.Estimate)
	all.If(d.Bias > maxBias, "not Gaussian", "the loss differences are not Gaussian: delta has a skewness of %.2g at "+
		"sigma^2 = %.2g, by which acceptance ratios are off by up to about %.0f %%: take a larger BatchSize (n) than %d, "+
		"more Batches (M) than %d, or smaller steps", d.Skewness, d.Noise, 100*math.Expm1(d.Bias), m.BatchSize, m.Batches)
	return all
}

// penalised is the Metropolis that a sampler is, or embeds.
func penalised(s Sampler) (m Metropolis, ok bool) {
	as, ok := s.(interface{ penalty() Metropolis })
	if !ok {
		return m, false
	}
	return as.penalty(), true
}

func (m Metropolis) penalty() Metropolis { return m }

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
