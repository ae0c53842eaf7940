package particles

import (
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Details of a training: what fit.Details[*Details] finds in its result.
type Details struct {
	Steps     int          // number of steps made
	PerEpoch  int          // steps in an epoch
	Trace     []StepRecord // one for each step
	Validated []run.Best   // the NLPD on the validation part, in the target's units, at each validation
	Best      run.Best     // the posterior's validation; Step 0 if there was none
}

// StepRecord holds a step's diagnostics. Numbers that an algorithm does not have are NaN.
type StepRecord struct {
	// LogEvidence is what the step adds to the log evidence of the standardised target, as in bayes.Evidence. For
	// ohsmc.OpenHorizon it is log sum_j w_j p(y_S | phi_j; psi); for ohsmc.Guided the log of the ratio of the normalising
	// constants of this step's target and the last one's; for ohsmc.SMC log p(y_S; psi) of the whole batch. -Inf says that
	// no particle has a weight: the run ends.
	LogEvidence       float64
	LogEvidenceStdErr float64 // standard error of LogEvidence by smc.Genealogy, of ohsmc.SMC with smc.Multinomial
	// Loss is minus the log-likelihood of the batch under the weighted particles, per row, in the target's units. (An
	// Algorithm gives and gets the loss of the standardised target.)
	Loss float64
	ESS  float64 // effective sample size, after weighing
	// MeanGradient tests ESS: it is the weighted mean of the log-density's gradient, which is 0 under the posterior, over
	// the standard error of a mean of ESS independent draws, root mean square over the coordinates. It is about 1 if ESS
	// is right, and large if copies have hardly moved. It grows less if the slow directions are across several
	// coordinates, and the posterior is wide there: for two correlated features it was 2.2 where means were 4.7 standard
	// errors off (20 runs). It is of the particles before the step; for ohsmc.Guided with gradients, all rows in one
	// batch and no psi.
	MeanGradient    float64
	UniqueAncestors float64 // different particles among the ancestors; J if not resampled; ohsmc.SMC: the fewest
	Resamplings     int     // in this step: 0 or 1; ohsmc.SMC: up to the batch size
	// NonFinite is the number of particles whose log-likelihood, or whose gradient for a proposal, is NaN or infinite.
	// They get weight 0.
	NonFinite        int
	GradientRejected bool // the gradient with respect to psi was not finite, and psi stayed the same
	// Acceptance is the mean acceptance probability of the moves (ohsmc.SMC), or the hypothetical one of ohsmc.Guided
	// with Adapt.
	Acceptance float64
	StepSize   float64 // of the proposals; ohsmc.Guided only
}

// recordOf is the record of a step's program.
func recordOf(v []float64) StepRecord {
	return StepRecord{
		LogEvidence: v[0], LogEvidenceStdErr: v[1], Loss: v[2], ESS: v[3], UniqueAncestors: v[4], Resamplings: count(v[5]),
		NonFinite: count(v[6]), GradientRejected: v[7] != 0 && v[7] == v[7], Acceptance: v[8], StepSize: v[9],
		MeanGradient: v[10],
	}
}

// count is v as a count; 0 for NaN.
func count(v float64) int {
	if v == v {
		return int(v)
	}
	return 0
}

// progress has the scores of the last step.
func (r *training) progress(at *fit.Trail[StepRecord]) (p run.Progress) {
	if n := len(at.Records); n > 0 {
		last := at.Records[n-1]
		p.Scores = []run.Score{
			{Name: fit.LossCurve, Value: last.Loss + r.LogScale()}, {Name: fit.ESSCurve, Value: last.ESS},
		}
	}
	return p
}

// curves returns the loss, the effective sample size and the validations along a run.
func (d *Details) curves() []fit.Curve {
	all := []fit.Curve{
		fit.NewCurve(fit.LossCurve, d.Trace, func(r StepRecord) float64 { return r.Loss }),
		fit.NewCurve(fit.ESSCurve, d.Trace, func(r StepRecord) float64 { return r.ESS }),
	}
	if len(d.Validated) == 0 {
		return all
	}
	validation := fit.Curve{Name: fit.ValidationCurve}
	for _, v := range d.Validated {
		validation.Steps, validation.Values = append(validation.Steps, v.Step), append(validation.Values, v.NLPD)
	}
	return append(all, validation)
}

// result is the result with the posterior of the best validation at the end of a run, and of the last step on its way.
func (r *training) result(at *fit.Trail[StepRecord]) (*fit.Result, error) {
	best := at.Selection.Best[0]
	best.NLPD += r.LogScale()
	step, prefix := at.Step, ""
	if at.Status != "" && best.Step > 0 {
		step, prefix = best.Step, run.BestPrefix
	}
	posterior, err := r.posterior(at, step, prefix)
	if err != nil {
		return nil, err
	}
	d := &Details{Steps: at.Step, PerEpoch: r.batches.PerEpoch(), Best: best}
	for _, t := range at.Records {
		t.Loss += r.LogScale()
		d.Trace = append(d.Trace, t)
	}
	for _, v := range at.Validated {
		d.Validated = append(d.Validated, run.Best{Step: v.Step, NLPD: v.Scores[0] + r.LogScale()})
	}
	return &fit.Result{
		Posterior: posterior, Status: at.Status, Elapsed: at.Elapsed(), Doubts: r.doubts(d, step, at.Status),
		Curves: d.curves(), Details: []any{d},
	}, nil
}

// estimates are what the algorithm says of its particles, or else what is so where each move is weighed.
func (r *training) estimates() Estimates {
	if e, ok := r.algorithm.(Estimator); ok {
		return e.Estimates(r.Training, r.Rows())
	}
	return Estimates{Posterior: r.BatchSize == r.Rows() && r.Bound.W == 0}
}

// posterior is made of the particles after a step: the current ones, or with run.BestPrefix those of the best
// validation.
func (r *training) posterior(at *fit.Trail[StepRecord], step int, prefix string) (*bayes.Posterior, error) {
	names := []string{prefix + phiName, prefix + weightsName}
	if r.Bound.W > 0 {
		names = append(names, prefix+psiName)
	}
	host, err := at.Host(names...)
	if err != nil {
		return nil, fmt.Errorf("particles: %w", err)
	}
	logWeights, err := compute.Float64s(host[prefix+weightsName])
	if err != nil {
		return nil, fmt.Errorf("particles: %w", err)
	}
	draws := bayes.Draws{Phi: host[prefix+phiName], Psi: host[prefix+psiName], LogWeights: logWeights}
	draws.Evidence = bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}
	estimates := r.estimates()
	if estimates.Evidence != nil {
		draws.Evidence = estimates.Evidence(at.Records[:step])
	}
	approximation := ""
	if !estimates.Posterior {
		approximation = "a distribution that depends most on the last mini-batches; mcmc.Chains (fit.From) draw from the " +
			"posterior"
	}
	return r.PosteriorOf(draws, bayes.Provenance{Status: string(at.Status), Approximation: approximation})
}

// validation scores the particles on the validation part, by NLPD = -mean_n log sum_j w_j p(y_n | phi_j; psi), and
// keeps the state if that is the lowest so far. The record is the NLPD.
func (c *Core) validation(rows int) compute.Step {
	likelihood := density.Likelihood{Model: c.Bound, Plan: planOf(c.Bound, c.Training, c.Settings, rows, true)}
	return func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
		batch := density.Batch{X: s["valid_x"], Y: s["valid_y"]}
		density := likelihood.LogPredictive(s[phiName], s[psiName], s[weightsName], batch)
		nlpd := Neg(ReduceAllMean(ConvertDType(density, dtypes.Float64)))
		return run.KeepBest(s, nlpd, nil, c.kept()...), Reshape(nlpd, 1)
	}
}
