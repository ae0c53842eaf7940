package smc

import (
	"math"

	"gobnn/bayes"

	"gonum.org/v1/gonum/floats"
)

// LogEvidence returns the log of the mean of unnormalised weights from their logs, raw, [J]. If particles are drawn
// from the prior and raw has their log-likelihoods, the value is an estimate of log p(y). stdErr is its standard error
// by the delta method, the relative standard error of the mean weight: sqrt((J/ESS - 1) / (J - 1)). It means little
// once the effective sample size is a handful, and is NaN if J is 1. NaN and +Inf count as weight 0, as in
// NewLogWeights. If no particle has any weight, the value is -Inf and stdErr NaN.
//
// Normalised weights would not do, since they have lost the evidence: their mean is 1/J, whatever the data.
func LogEvidence(raw []float64) (value, stdErr float64) {
	w, err := bayes.NewLogWeights(raw)
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

// Genealogy estimates the standard error of a run's log evidence from this one run. It collects what it needs at each
// weighing; its zero value is the start of a run. Particles that descend from the same first particle are a family. The
// fewer families carry the weight in the end, the more another run could differ. Let G_i be the sum of the normalised
// weights of the family of first particle i. The relative variance of the estimate of the evidence after r resampling
// steps is estimated by
//
//	1 - (J/(J-1))^(r+1) (1 - sum_i G_i^2)
//
// (Lee and Whiteley 2018, eq. 7 at the last time; Chan and Lai 2013 have the same to first order; Du and Guyader 2021
// for ladders that the particles choose). Without resampling it is the relative variance of a mean of J weights. For a
// waste-free sampler the chains take the role of the particles: the weight of a chain is the sum of the weights of its
// states (Dau and Chopin 2022, section 2.4). Once all particles descend from a few, the estimate is itself noisy, and
// may be negative. So it has a lower bound: the sum over all steps of the relative variance of the mean weight. This is
// the variance if particles, or chains, were independent after each resampling.
type Genealogy struct {
	Before  int     `json:"before"`  // number of resampling steps before the last weighing
	Squares float64 `json:"squares"` // sum_i G_i^2 at the last weighing
	Sum     float64 `json:"sum"`     // sum of the relative variances of the mean weights, up to the last resampling
	Since   float64 `json:"since"`   // relative variance of the mean weight at the last weighing
	Now     bool    `json:"now"`     // whether particles were resampled after the last weighing
}

// Add takes in the next weighing.
func (g *Genealogy) Add(w Weighed) {
	if g.Now {
		g.Before++
		g.Sum += g.Since
	}
	g.Squares, g.Since, g.Now = w.families, w.variance, w.resampled
}

// drift measures how much the moves change the estimate of the log evidence; its zero value is the start of a run. A
// step of a tempered sampler from power a to power b has a second estimate besides the mean weight: the geometric
// bridge between the particles before the step and the moved particles after it (Meng and Wong 1996, section 3.3). With
// E_a and E_b the means over these particles, and h = (a + b)/2:
//
//	Z_b / Z_a = E_a[p(y | phi)^(h - a)] / E_b[p(y | phi)^(h - b)]
//
// If the particles are distributed as they should be, moves change nothing in the mean, and the bridge agrees with the
// mean weight. If a region whose share grows with the power has too few particles, moves lead particles there, and the
// bridge lies above the mean weight. If the moves repair the whole shortage, the bridge shows half of it, since each
// side counts half. Often they repair only a part: moves end once most particles are independent of where they were,
// long before a region that only a few have found is filled. So the stated error of the log evidence, which includes
// missing, may still be too small.
type drift struct {
	Sum  float64 `json:"sum"`  // the bridges' log evidence minus that of the mean weights, over all steps but the last
	Step float64 `json:"step"` // the last step; 0: none
	Open float64 `json:"open"` // the part of the last step's difference that is known before its moves are made
	// Variance + Alone is the variance of Sum by chance alone, if moves make particles independent of where they were. The
	// particles at each power enter the differences of two steps, one as those after the move and one as those before:
	// together with variance Joint. Those of the last step have entered one so far, with variance Alone.
	Variance float64 `json:"variance"`
	Joint    float64 `json:"joint"`
	Alone    float64 `json:"alone"`
}

// add takes in the next weighing, whose last step was d.Step.
func (d *drift) add(w Weighed) {
	if d.Step > 0 {
		d.Sum += d.Open - w.behind
		d.Variance, d.Alone = d.Variance+d.Joint, w.alone
	}
	d.Step, d.Open, d.Joint = w.step, w.ahead-w.Increment, w.joint
}

// driftErrors is the distance of Sum from 0, in standard deviations of its noise, from which it counts as drift.
const driftErrors = 3

// missing estimates by how much the log evidence is too low: the root of Sum^2 less its noise variance, or 0 if Sum may
// well be all noise. It is not twice that, although bridges find only half of what moves repair, because moves also
// repair more than was missing if the first particles happened to lie badly: in conjugate models twice Sum is too much
// in the mean.
func (d drift) missing() float64 {
	noise := d.Variance + d.Alone
	if d.Sum*d.Sum <= driftErrors*driftErrors*noise {
		return 0
	}
	return math.Sqrt(d.Sum*d.Sum - noise)
}

// StdErr is the standard error of the log evidence, given the resampling scheme and the number of particles, or of
// waste-free chains.
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
