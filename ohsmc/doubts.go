package ohsmc

import (
	"math"

	"gobnn/bayes/fit"
	"gobnn/bayes/particles"
)

// largeGradient is the MeanGradient of a record above which the effective sample size promises too much: by chance a
// single coordinate exceeds it in 3 of 1000 runs, and three of them in 1 of 100 000.
const largeGradient = 3

// Doubts implements particles.Doubter: about an effective sample size that promises too much, see MeanGradient of
// particles.StepRecord.
func (a Guided) Doubts(_ particles.Training, _ int, trace []particles.StepRecord) (all fit.Doubts) {
	if len(trace) == 0 {
		return nil
	}
	last := trace[len(trace)-1]
	all.If(last.MeanGradient > largeGradient, "gradient", "the mean gradient of the log-density, which is 0 under the "+
		"posterior, is %.1f times the standard error that an effective sample size of %.0f promises, and the posterior's "+
		"means may be off by as many of theirs: as a rule copies of the few particles that the first weighing left have "+
		"hardly moved apart; take a longer StepSize or more Epochs, or draw from the posterior by mcmc.Chains (fit.From)",
		last.MeanGradient, last.ESS)
	return all
}

const (
	// fewAccepted is the mean acceptance of moves below which they hardly move the particles.
	fewAccepted = 0.05
	// fewToScale is the number of particles below which the bias of preconditioned moves may be visible in the evidence.
	fewToScale = 100
)

// Doubts implements particles.Doubter: about moves that are hardly ever accepted, and about an evidence whose standard
// error is not known, or which preconditioned moves bias.
func (a SMC) Doubts(t particles.Training, rows int, trace []particles.StepRecord) (all fit.Doubts) {
	if n := len(trace); n > 0 {
		all.If(trace[n-1].Acceptance < fewAccepted, "few accepted", "%.2g of the last step's moves were accepted, below "+
			"%.2f: the particles are copies of draws from the prior; take a smaller step of the Kernel, or Precondition",
			trace[n-1].Acceptance, fewAccepted)
	}
	e := a.Estimates(t, rows).Evidence(trace)
	all.If(e.Known() && math.IsNaN(e.StdErr), "no error", "the log evidence has no standard error: it cannot be "+
		"estimated from the genealogy of %s resampling; take Training.Resampler smc.Multinomial", t.Resampler)
	all.If(e.Known() && a.Precondition && t.Particles < fewToScale, "scaled", "the log evidence has a bias of the order "+
		"of 1/J, since the steps of the %d particles are scaled by themselves (.015 was measured with 50): take more "+
		"Particles, or no Precondition", t.Particles)
	return all
}
