package annealed

import (
	"gobnn/bayes"
	"gobnn/bayes/fit"
)

// Estimator is one of the three ways in which Annealed gets an evidence and draws of the posterior.
type Estimator string

// The estimators of Annealed.
const (
	BySMC        Estimator = "SMC"                 // tempered from the prior
	ByImportance Estimator = "importance sampling" // weighted draws of the fitted mixture
	ByBridge     Estimator = "bridge"              // SMC from the fitted mixture
)

// Details has the results of Annealed's three estimators (by SMC, by importance sampling and by the bridge), and which
// of them is the result: fit.Details[*annealed.Details](result).
type Details struct {
	// Source is the estimator whose draws and evidence the result has.
	Source Estimator
	// NoBridge is the reason why the bridge failed; empty if it did not, or if it was not asked for.
	NoBridge string
	// The estimates of the log evidence. ImportanceEvidence is NaN if k-hat is above pmcnet.MaxKHat or unknown,
	// BridgeEvidence if there is no bridge.
	SMCEvidence, ImportanceEvidence, BridgeEvidence bayes.Evidence
	// KHat and ESS describe the mixture's draws, by their weights before smoothing; NaN if there are no draws.
	KHat, ESS float64

	why string // the reason for Source, with the numbers
	// The results of steps 1, with its particles before they were put into canonical order, and 5; nil without a bridge.
	tempered, bridged *fit.Result
	// The standard error of KHat, (1 + KHat)/sqrt(n), where n is the number of weights in the tail to which the Pareto
	// distribution is fitted.
	kHatStdErr float64
}
