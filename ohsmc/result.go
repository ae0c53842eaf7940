package ohsmc

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
)

// Details of a training: what fit.Details[*Details] finds in its result.
type Details struct {
	Steps     int          // number of steps made
	PerEpoch  int          // steps in an epoch
	Trace     []StepRecord // one for each step
	Validated []Validation // one for each validation
	Best      Validation   // the posterior's validation; Step 0 if there was none
	Plan      compute.Plan // how many particles were evaluated at once, and the memory estimated for them
}

// Validation is the NLPD on the validation part after a step, in the target's units.
type Validation struct {
	Step int // counted from 1
	NLPD float64
}

// plus turns a validation of the standardised target into one in the target's units: logScale is the data's.
func (v Validation) plus(logScale float64) Validation {
	v.NLPD += logScale
	return v
}

// StepRecord holds a step's diagnostics. Numbers that an algorithm does not have are NaN.
type StepRecord struct {
	// LogEvidence is, for OpenHorizon, log sum_j w_j p(y_S | phi_j; psi), the increment of the log evidence; with Poisson
	// the same with the factor of its weights in place of the likelihood. For Guided it is the log of the ratio of the
	// normalising constants of this step's target and the last one's, for SMC log p(y_S; psi) of the whole batch. As in
	// bayes.Evidence, it is of the standardised target.
	LogEvidence       float64
	LogEvidenceStdErr float64 // standard error of LogEvidence by smc.Genealogy, for runs of SMC with smc.Multinomial
	// Loss is minus the log-likelihood of the batch under the weighted particles, per row, in the target's units. (An
	// Algorithm gives and gets the loss of the standardised target.)
	Loss float64
	ESS  float64 // effective sample size, after weighing
	// MeanGradient tests ESS: it is the weighted mean of the log-density's gradient, which is 0 under the posterior,
	// over the standard error of a mean of ESS independent draws, root mean square over the coordinates. It is about 1
	// if ESS is right, and large if copies have hardly moved. It grows less if the slow directions are across several
	// coordinates, and the posterior is wide there: for two correlated features it was 2.2 where means were 4.7
	// standard errors off (20 runs). It is of the particles before the step; for Guided with gradients, all rows in one
	// batch and no psi.
	MeanGradient    float64
	UniqueAncestors float64 // different particles among the ancestors; J if not resampled; SMC: the fewest of the step
	Resamplings     int     // in this step: 0 or 1; SMC: up to the batch size
	// NonFinite is the number of particles whose log-likelihood, or whose gradient for a proposal, is NaN or infinite.
	// They get weight 0.
	NonFinite        int
	GradientRejected bool // the gradient with respect to psi was not finite, and psi stayed the same
	// Acceptance is the mean acceptance probability of the moves (SMC), or the hypothetical one of Guided with Adapt.
	Acceptance float64
	StepSize   float64 // of the proposals; Guided only
	// LogConstant is the smallest constant that would have kept the Poisson estimator's weights positive; OpenHorizon
	// with Poisson only.
	LogConstant float64
	Seconds     float64 // of the step, without validation
}

// plus turns a record of the standardised target into one in the target's units: logScale is the data's.
func (r StepRecord) plus(logScale float64) StepRecord {
	r.Loss += logScale
	return r
}

// recordOf is the record of a step's program.
func recordOf(v []float64) StepRecord {
	return StepRecord{
		LogEvidence: v[0], LogEvidenceStdErr: v[1], Loss: v[2], ESS: v[3], UniqueAncestors: v[4], Resamplings: count(v[5]),
		NonFinite: count(v[6]), GradientRejected: v[7] != 0 && v[7] == v[7], Acceptance: v[8], StepSize: v[9],
		LogConstant: v[10], MeanGradient: v[11], Seconds: v[12],
	}
}

// count is v as a count; 0 for NaN.
func count(v float64) int {
	if v == v {
		return int(v)
	}
	return 0
}

// curves returns the loss, the effective sample size and the validations along a run.
func curves(trace []StepRecord, validated []Validation) []fit.Curve {
	all := []fit.Curve{
		fit.NewCurve(fit.LossCurve, trace, func(r StepRecord) float64 { return r.Loss }),
		fit.NewCurve(fit.ESSCurve, trace, func(r StepRecord) float64 { return r.ESS }),
	}
	if len(validated) == 0 {
		return all
	}
	validation := fit.Curve{Name: fit.ValidationCurve}
	for _, v := range validated {
		validation.Steps, validation.Values = append(validation.Steps, v.Step), append(validation.Values, v.NLPD)
	}
	return append(all, validation)
}
