package smc

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// LogEvidence is the log of the mean of unnormalised weights: log p(y) if particles are drawn from the prior and raw,
// [J], are their log-likelihoods. stdErr is its standard error by the delta method, the relative standard error of the
// mean weight, sqrt((J/ESS - 1) / (J - 1)); it means little once the effective sample size is a handful, and is NaN if
// J is 1. NaN and +Inf count as weight 0, as in NewLogWeights. If no particle has any weight, the value is -Inf and
// stdErr NaN.
//
// Normalised weights have lost the evidence: their mean is 1/J, whatever the data.
func LogEvidence(raw []float64) (value, stdErr float64) {
	w, err := NewLogWeights(raw)
	if err != nil {
		return math.Inf(-1), math.NaN()
	}
	var finite []float64
	for _, v := range raw {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			finite = append(finite, v)
		}
	}
	j := float64(len(raw))
	return floats.LogSumExp(finite) - math.Log(j), math.Sqrt(max(0, j/w.EffectiveSampleSize()-1) / (j - 1))
}

// Genealogy collects, over the weighing steps of a run, what is needed to estimate the error of its evidence; its zero
// value is the start of a run. Let G_i be the sum of the normalised weights of all particles that descend from the
// first particle i. The relative variance of the evidence estimate after r resampling steps is estimated by
//
//	1 - (J/(J-1))^(r+1) (1 - sum_i G_i^2)
//
// (Lee and Whiteley 2018, eq. 7 at the last time; Chan and Lai 2013 have the same to first order; Du and Guyader 2021
// for ladders that the particles choose). Without resampling it is the relative variance of a mean of J weights. For a
// waste-free sampler the chains take the role of the particles: the weight of a chain is the sum of its places' weights
// (Dau and Chopin 2022, section 2.4). The estimate is itself noisy, and may be negative, once all particles descend
// from a few. It is therefore never taken smaller than the sum of the relative variances of the mean weights, which is
// the variance if particles, or chains, were independent after each resampling.
type Genealogy struct {
	Before  int     `json:"before"`  // number of resampling steps before the last weighing
	Squares float64 `json:"squares"` // sum_i G_i^2 at the last weighing
	Sum     float64 `json:"sum"`     // sum of the relative variances of the mean weights, up to the last resampling
	Since   float64 `json:"since"`   // relative variance of the mean weight at the last weighing
	Now     bool    `json:"now"`     // whether particles were resampled after the last weighing
}

// Add takes in one more weighing.
func (g *Genealogy) Add(w Weighed) {
	if g.Now {
		g.Before++
		g.Sum += g.Since
	}
	g.Squares, g.Since, g.Now = w.Families, w.Variance, w.Resampled
}

// Drift is by how much the moves change the estimate of the log evidence; its zero value is the start of a run. Each
// step of a tempered sampler, from power t to t+1, has a second estimate: the geometric bridge between the particles
// before the step and those after it, once these were moved (Meng and Wong 1996, section 3.3; h is the power half way):
//
//	Z_(t+1) / Z_t = E_t[p(y | phi)^(h - t)] / E_(t+1)[p(y | phi)^(h - (t+1))]
//
// If the particles are distributed as they should be, moves change nothing and the bridge agrees with the mean weight.
// If a region whose share grows with the power has too few particles, moves lead particles there, and the bridge lies
// above the mean weight: by half of what is missing if the moves repair all of it, since each side counts half.
type Drift struct {
	Sum  float64 `json:"sum"`  // the bridges' log evidence minus that of the mean weights, over all steps but the last
	Step float64 `json:"step"` // the last step; 0: none
	Open float64 `json:"open"` // the part of the last step's difference that is known before its moves are made
	// Variance + Alone is the variance of Sum if moves make particles independent of where they were. The particles of a
	// step enter two differences, with variance Joint; those of the last step have entered one so far, with variance
	// Alone.
	Variance float64 `json:"variance"`
	Joint    float64 `json:"joint"`
	Alone    float64 `json:"alone"`
}

// Add takes in one more weighing, whose Last was d.Step.
func (d *Drift) Add(w Weighed) {
	if d.Step > 0 {
		d.Sum += d.Open - w.Behind
		d.Variance, d.Alone = d.Variance+d.Joint, w.Alone
	}
	d.Step, d.Open, d.Joint = w.Step, w.Ahead-w.Increment, w.Joint
}

// driftErrors is how many standard deviations of its noise a Drift must be away from 0 to count as drift.
const driftErrors = 3

// Missing estimates how much too low the log evidence is: the root of Sum^2 less its noise variance, or 0 if Sum may
// well be all noise. Bridges find half of what moves repair, but moves repair more than was missing if the first
// particles happened to lie badly: in conjugate models twice Sum is too much in the mean.
func (d Drift) Missing() float64 {
	noise := d.Variance + d.Alone
	if d.Sum*d.Sum <= driftErrors*driftErrors*noise {
		return 0
	}
	return math.Sqrt(d.Sum*d.Sum - noise)
}

// StdErr is the standard error of the log evidence for the given number of particles, or waste-free chains, and scheme.
//
// It is valid for Multinomial only. Schemes of smaller variance keep the sizes of families even, so that the genealogy
// no longer shows what the moves add to the variance, and the estimate is half of what it should be, or less. For these
// schemes it is NaN, unless there was no resampling.
func (g Genealogy) StdErr(scheme Resampler, particles int) float64 {
	if g.Before > 0 && scheme != Multinomial {
		return math.NaN()
	}
	j := float64(particles)
	families := 1 - math.Pow(j/(j-1), float64(g.Before+1))*(1-g.Squares)
	return math.Sqrt(max(families, g.Sum+g.Since))
}
