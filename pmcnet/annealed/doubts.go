package annealed

import (
	"fmt"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/fit"
	"gobnn/pmcnet"
)

// This file has the reasons for what is missing in a result, for the estimator that is the result, and for its doubts.

// Why there are no weighted draws.

func unfitted(particles, d int) string {
	return fmt.Sprintf("no mixture could be fitted to %d particles in %d dimensions: their covariance is not positive "+
		"definite, or they are too few", particles, d)
}

func (r *annealing) weightless() string {
	return fmt.Sprintf("none of %d draws of the mixture has any weight, with %.3g of them outside the canonical order "+
		"and %d log-densities that are not finite", r.Draws, r.outside, r.nonFinite)
}

// verdict says of weighted draws whether they can be trusted.
func (r *annealing) verdict() string {
	details := &r.details
	verdict := fmt.Sprintf("k-hat of the mixture's %d draws is %.2f, with %.1f effective draws", r.Draws, details.KHat,
		details.ESS)
	switch {
	case !(details.KHat <= pmcnet.MaxKHat):
		return fmt.Sprintf("%s, not at most %.1f: the mixture does not fit the posterior", verdict, pmcnet.MaxKHat)
	case details.ESS < fewDraws:
		return fmt.Sprintf("%s, fewer than %d", verdict, fewDraws)
	case !details.haveVariance():
		return fmt.Sprintf("%s: with its standard error, %.2f, k-hat may be above %.1f, where the weights have no finite "+
			"variance and the evidence is too low more often than its standard error says", verdict, details.kHatStdErr,
			safeKHat)
	}
	return verdict
}

// ofBridge says what came of the bridge.
func (e *Details) ofBridge() string {
	switch {
	case e.bridged != nil && len(e.bridged.Doubts) == 0:
		return fmt.Sprintf("; the bridge says %.3f +- %.3f", e.BridgeEvidence.Value, e.BridgeEvidence.StdErr)
	case e.bridged != nil:
		return fmt.Sprintf("; the bridge is doubtful: %s", strings.Join(e.bridged.Doubts.Sentences(), "; "))
	case e.NoBridge != "":
		return fmt.Sprintf("; there is no bridge: %s", e.NoBridge)
	}
	return ""
}

// results end the reason with what is the result.
var results = map[Estimator]string{
	ByImportance: ": the result is the weighted draws and their evidence",
	ByBridge:     ": the result is the bridge's particles and evidence",
	BySMC:        ": the result is the SMC's particles and evidence",
}

// doubts are those about a finished run, besides those about its first SMC.
func (r *annealing) doubts() (all fit.Doubts) {
	e := &r.details
	all.If(e.Source == BySMC || e.Source == ByBridge && !(e.KHat <= pmcnet.MaxKHat), "by particles", "%s", e.why)
	pmcnet.DoubtWrong(&all, r.wrong, r.Draws)
	contradict := func(by Estimator, b bayes.Evidence, as Estimator, a bayes.Evidence) {
		off := apart(a, b)
		all.If(off > mostApart, "evidences differ", "the log evidence is %.3f +- %.3f by %s and %.3f +- %.3f by %s, which "+
			"differ by %.1f standard errors: one of them is wrong; take more particles, and, for a prior of your own whose "+
			"coordinates depend on each other, see whether its density lacks a constant", b.Value, b.StdErr, by, a.Value,
			a.StdErr, as, off)
	}
	contradict(BySMC, e.SMCEvidence, ByImportance, e.ImportanceEvidence)
	contradict(BySMC, e.SMCEvidence, ByBridge, e.BridgeEvidence)
	contradict(ByImportance, e.ImportanceEvidence, ByBridge, e.BridgeEvidence)
	return all
}
