package fbnn

import (
	"fmt"

	"gobnn/bayes/fit"
)

// Thresholds beyond which a result is doubtful.
const (
	mostRMS       = 3.  // root mean square of Phi - Phi^e
	manyDeviation = 5.  // standard deviations of the calibration's Phi
	fewESS        = 10. // of the median coordinate
)

// doubt adds doubts to the result where a threshold is exceeded.
func (r *ces) doubt(out *fit.Result) {
	t := r.details.Truth
	all := &out.Doubts
	all.If(t.nonFinite > 0, "not finite", "at %d of %d states the true or the emulated potential is not finite",
		t.nonFinite, t.states)
	all.If(r.PaperMode, "paper mode", "CES.PaperMode: Predict gives the emulator's outputs, not the network's: they "+
		"carry no uncertainty of the network's weights where the emulator does not know them; "+
		"Posterior.Predict gives the network's")
	still := t.medianESS < fewESS
	limit := t.Calibration + manyDeviation*t.calibrationStdDev
	excess := t.True > limit
	asPrior := t.True > (t.Calibration+t.Prior)/2 || t.True > .75*t.Prior
	wrong := t.RMS > mostRMS && !r.corrected() // corrected draws are exact, however wrong the emulator is
	if excess || wrong {
		why := "the emulator is wrong where the chain is: take more pairs, or leave CES.Uncorrected and PaperMode out"
		switch {
		case r.corrected() && !still: // then the draws are right, whatever the emulator and the pairs are
			why = "the true posterior has accepted these draws, so the pairs are from too small a part of it: let the " +
				"calibration go further (CES.PairsWarmUp, CES.PairsThin)"
		case asPrior && !r.corrected():
			why = fmt.Sprintf("the chain samples the prior, where Phi is %.4g: the emulator knows no more than the %d "+
				"directions of its pairs, of %d; leave CES.Uncorrected and PaperMode out", t.Prior,
				min(r.pairs.learnt-1, r.Bound.D), r.Bound.D)
		case still:
			why = fmt.Sprintf("the chain hardly moves: half of the coordinates have fewer than %.3g effective draws",
				t.medianESS)
		}
		all.If(true, "emulator", "at %d emulated states the true potential Phi is %.5g on average, the emulated one %.5g "+
			"(root mean square of the difference %.3g), over the calibration %.5g +- %.2g: %s", t.states, t.True, t.Emulated,
			t.RMS,
			t.Calibration, t.calibrationStdDev, why)
	} else {
		all.If(still, "hardly moves", "the chain hardly moves: half of the coordinates have fewer than %.3g effective draws "+
			"of %d; in %d dimensions the steps that the true posterior accepts are too short for this number of draws: take "+
			"more Draws, or another sampler (mcmc.Chains)", t.medianESS, out.Draws.Phi.Shape().Dim(0), r.Bound.D)
	}
}

// doubtBeta adds a doubt if the Beta that was set, 0 for none, is not the one that was taken.
func (r *ces) doubtBeta(set, taken float64) {
	r.doubts.If(set > 0, "beta", "CES.Sampling.Beta is %.3g, but the true chain needs %.3g to be accepted with "+
		"probability %.1f: that was taken", set, taken, wanted)
}
