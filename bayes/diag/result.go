package diag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
)

// Diagnosis holds the diagnostics of one result. A number that does not apply is NaN.
type Diagnosis struct {
	Particles int
	Chains    int     // of the particles; 0: they are not of Markov chains
	RHat      float64 // the largest of all parameters; NaN if the particles are not from chains
	// ESS is, for chains, the smallest bulk ESS of the parameters that move; for weighted particles 1 / sum of w^2, where
	// particles that are copies of each other count as one.
	ESS      float64
	KHat     float64  // of weighted particles: the tail shape of their weights, see [PSIS]; NaN if they have no tail
	Warnings []string // those of the run, and one for each number above that is beyond its bound
}

// leastESSShare is the share of weighted particles below which their ESS is too small where k-hat is not known.
const leastESSShare = .1

// Of diagnoses any result. If the particles are from Markov chains, it computes R-hat and ESS of all stochastic
// parameters; if they are weighted, ESS and k-hat of the weights. Parameters that never change are left out of R-hat
// and ESS, with a warning. Parameters of a network are not identified, since its units can be exchanged: chains that
// disagree on them may agree on predictions, see [OfPrediction].
func Of(result *fit.Result) (Diagnosis, error) {
	if result == nil || result.Posterior == nil {
		return Diagnosis{}, errors.New("diag: the result has no posterior: check the error of the function that made it")
	}
	p := result.Posterior
	nan := math.NaN()
	d := Diagnosis{
		Particles: p.Particles(), Chains: p.Chains(), RHat: nan, ESS: nan, KHat: nan,
		Warnings: slices.Clone(result.Warnings),
	}
	if err := result.Status.Err(); err != nil {
		d.warn("%v", err)
	}
	switch weights := p.LogWeights(); {
	case d.Chains > 0:
		summary, err := OfPosterior(p)
		if err != nil {
			return d, err
		}
		d.ofChains(summary)
	case !equal(weights.Weights()):
		d.ESS = weights.EffectiveSampleSize()
		smoothed, err := PSIS(weights, 1)
		if err != nil && !errors.Is(err, ErrNoTail) {
			return d, err
		}
		if err == nil {
			d.KHat = smoothed.KHat
		}
		switch most := kHatThreshold(d.Particles); {
		case d.KHat > most:
			d.warn("k-hat of the weights is %.2f, above %.2f: few particles carry the estimates", d.KHat, most)
		case math.IsNaN(d.KHat) && d.ESS < max(2, leastESSShare*float64(d.Particles)): // as if all but one weigh nothing
			d.warn("the effective sample size of the %d weighted particles is %.1f, and k-hat of their weights cannot be "+
				"computed: few particles carry the estimates", d.Particles, d.ESS)
		}
	}
	if d.Chains == 0 {
		if err := d.ofCopies(p); err != nil {
			return d, err
		}
	}
	return d, nil
}

// ofCopies replaces the ESS where particles are copies of each other, as after resampling or where moves were
// rejected: equal particles count as one, with the sum of their weights.
func (d *Diagnosis) ofCopies(p *bayes.Posterior) error {
	draws, err := p.Draws()
	if err != nil {
		return fmt.Errorf("diag: %w", err)
	}
	phi, err := compute.Float64s(draws.Phi)
	if err != nil {
		return fmt.Errorf("diag: %w", err)
	}
	weights := p.LogWeights().Weights()
	merged, different := merge(phi, weights)
	if different == len(weights) {
		return nil
	}
	squares := 0.
	for _, w := range merged {
		squares += w * w
	}
	d.ESS = 1 / squares
	if 2*different < d.Particles {
		d.warn("the %d particles are copies of only %d different ones, whose ESS is %.0f: use the weighted particles before "+
			"resampling, or moves that are accepted more often", d.Particles, different, d.ESS)
	}
	return nil
}

// merge sums the weights of particles with equal values at the first of them, so that copies count as one; the other
// copies get weight 0. values holds an equal number of values for each particle. different is the number of different
// particles.
func merge(values, weights []float64) (merged []float64, different int) {
	each := len(values) / len(weights)
	merged = make([]float64, len(weights))
	first := map[string]int{}
	var key []byte
	for j, w := range weights {
		key = key[:0]
		for _, v := range values[j*each : (j+1)*each] {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
		}
		own, seen := first[string(key)]
		if !seen {
			own = j
			first[string(key)] = j
		}
		merged[own] += w
	}
	return merged, len(first)
}

// ofChains fills in the worst values of a summary of chains.
func (d *Diagnosis) ofChains(s Summary) {
	slow, apart := 0, 0 // rows of the smallest ESS and of the largest R-hat
	for i, r := range s.Rows {
		if math.IsNaN(r.RHat) { // all draws are equal: its ESS is the number of draws (see Summary), which means nothing
			continue
		}
		if r.BulkESS < d.ESS || math.IsNaN(d.ESS) {
			d.ESS, slow = r.BulkESS, i
		}
		if r.RHat > d.RHat || math.IsNaN(d.RHat) {
			d.RHat, apart = r.RHat, i
		}
	}
	if still := s.still(); len(still) > 0 {
		d.warn("%d of %d parameters never change: all their draws are equal; if they should move, take a smaller step",
			len(still), len(s.Rows))
	}
	if d.RHat > mostRHat {
		d.warn("R-hat of %s is %.3f, above %.2f: the %d chains disagree", s.Rows[apart].Name, d.RHat,
			mostRHat, d.Chains)
	}
	if least := float64(leastESSPerChain * d.Chains); d.ESS < least {
		d.warn("the effective sample size of %s is %.0f, below %.0f: take more draws", s.Rows[slow].Name, d.ESS, least)
	}
}

func (d *Diagnosis) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

// equal says whether all weights are equal.
func equal(weights []float64) bool {
	return !slices.ContainsFunc(weights, func(w float64) bool { return math.Abs(w*float64(len(weights))-1) > 1e-6 })
}

// String is a line with the numbers that apply, and one for each warning.
func (d Diagnosis) String() string {
	parts := []string{fmt.Sprintf("%d particles", d.Particles)}
	if d.Chains > 0 {
		parts[0] = fmt.Sprintf("%d chains of %d draws", d.Chains, d.Particles/d.Chains)
	}
	for _, v := range []struct {
		format string
		value  float64
	}{{"ESS %.0f", d.ESS}, {"R-hat %.3f", d.RHat}, {"k-hat %.2f", d.KHat}} {
		if !math.IsNaN(v.value) {
			parts = append(parts, fmt.Sprintf(v.format, v.value))
		}
	}
	return strings.Join(append([]string{strings.Join(parts, ", ")}, d.Warnings...), "\n  ")
}
