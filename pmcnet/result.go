package pmcnet

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
)

// Result is the result of Fit and Sample.
type Result struct {
	// Result has the Posterior (nil for Sample), the Status, the time and the Warnings: look at them first.
	fit.Result
	Algorithm Algorithm // as it ran, with its defaults filled in
	// Phi are the draws, [J, D], and LogWeights their log-weights, [J]: for PMC of the last iteration or of all, see
	// PMC.Keep, and by PMC.Weights. The draws of Annealed are in canonical order, if there is one; if they are weighted
	// draws of the mixture, their weights are Pareto-smoothed (diag.PSIS).
	Phi        *tensors.Tensor
	LogWeights bayes.LogWeights
	// Evidence is the log evidence with its standard error. For PMC it is the log of the mean of the draws' honest weights
	// (see Weights), for Annealed that of the estimator in Annealed.Source. It is NaN if that mean is no estimate, because
	// k-hat is above MaxKHat or unknown, and if the run did not complete.
	Evidence bayes.Evidence
	// KHat is the k-hat of these draws' honest weights; for Annealed that of the mixture's draws, even if the result is
	// another estimator's. It is NaN if the weights have no tail to estimate it from, for instance if all are equal.
	KHat float64
	ESS  float64 // effective sample size of these draws by their honest weights, before smoothing
	// Exponent is lambda: the draws of the last iteration have the weights (pi/q)^lambda. It is 1 unless PMC.Weights
	// tempers.
	Exponent float64
	// Distinct is the number of different draws among the M means that the last iteration chose, over M: 1 for Local
	// resampling, near 1/M if one draw has all the weight of a Global one. NaN for Annealed.
	Distinct float64
	Trace    []IterationRecord // one for each iteration of PMC; nil for Annealed
	Annealed *Estimates        // what each estimator of Annealed gives; nil for PMC
	// Evaluations is the number of evaluations of the log-density of one particle, with or without its gradient.
	Evaluations int
	// Approximation describes the distribution of the weighted draws if it is not the posterior, see bayes.Provenance;
	// else empty.
	Approximation string
}

// MaxKHat is the k-hat above which importance weights are not to be trusted, however many draws there are (Vehtari et
// al. 2024).
const MaxKHat = 0.7

// IterationRecord has the diagnostics of one iteration of PMC, by its honest weights unless stated otherwise.
type IterationRecord struct {
	// LogEvidence is the log of the mean weight of this iteration's draws, with its standard error. If KHat is above
	// MaxKHat it is no estimate: it is mostly far too low, and the standard error too small.
	LogEvidence, LogEvidenceStdErr float64
	// Running is the same for the draws of all iterations so far. It is no estimate if the k-hat of all these draws, which
	// is not computed here, is above MaxKHat. With PMC.Keep AllIterations the last Running is Result.Evidence if
	// Result.KHat is at most MaxKHat.
	Running, RunningStdErr float64

	ESS       float64 // effective sample size
	KHat      float64 // NaN if the weights have no tail to estimate it from
	Distinct  float64 // number of different draws among the next M means, over M
	Exponent  float64 // lambda of the weights of the result's draws; 1 unless they are tempered
	Halvings  float64 // number of halvings of gamma (step 5), mean over the means that moved
	Stayed    int     // number of means that no gamma moved; for PMC.Light summed over the mini-batches
	Replaced  int     // number of new covariances that were not positive definite: the one before was kept
	Stalled   int     // number of proposals all of whose draws have weight 0: they are kept unchanged
	NonFinite int     // number of draws whose log-density is not finite: they have weight 0
	Wrong     int     // number of those whose log-density is NaN or +Inf, which no log-density should be
	Seconds   float64 // elapsed time of the iteration
}

const recordWidth = 15

func (r IterationRecord) values() []float64 {
	return []float64{
		r.LogEvidence, r.LogEvidenceStdErr, r.Running, r.RunningStdErr, r.ESS, r.KHat, r.Distinct, r.Exponent, r.Halvings,
		float64(r.Stayed), float64(r.Replaced), float64(r.Stalled), float64(r.NonFinite), r.Seconds,
		float64(r.Wrong),
	}
}

func recordOf(v []float64) IterationRecord {
	return IterationRecord{
		LogEvidence: v[0], LogEvidenceStdErr: v[1], Running: v[2], RunningStdErr: v[3], ESS: v[4], KHat: v[5],
		Distinct: v[6], Exponent: v[7], Halvings: v[8], Stayed: int(v[9]), Replaced: int(v[10]), Stalled: int(v[11]),
		NonFinite: int(v[12]), Seconds: v[13], Wrong: int(v[14]),
	}
}

// The names of the curves in Result.Curves, beside fit.ESSCurve, and of the posterior's diagnostics. PMC has a log
// evidence for each iteration, NaN if its k-hat is above MaxKHat; Annealed has that of the first SMC up to each power.
const (
	KHatCurve          = "k-hat"
	LogEvidenceCurve   = "log evidence"
	khatDiagnostic     = "k-hat"
	essDiagnostic      = "effective sample size"
	distinctDiagnostic = "share of distinct draws" // of PMC, as the next
	exponentDiagnostic = "lambda"
)

// result is what there is.
func (m *machine) result(status run.Status) (*Result, error) {
	if m.Iteration == 0 {
		return nil, fmt.Errorf("pmcnet: the run ended before the first iteration: there are no draws: %w", status.Err())
	}
	last, err := m.lastDraws()
	if err != nil {
		return nil, err
	}
	phi := append(m.draws[:len(m.draws):len(m.draws)], last...)
	d, count := m.Problem.Dim, m.Proposals*m.Draws
	r := &Result{
		Phi: compute.Floats(m.DType, phi, len(phi)/d, d), Exponent: m.Exponent,
		Trace:    slices.Clone(m.Trace), // a run goes on with its own
		Distinct: m.Trace[m.Iteration-1].Distinct,
	}
	r.Status = status
	honest, err := bayes.NewLogWeights(m.honest)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	r.KHat, r.ESS = kHat(honest), honest.EffectiveSampleSize()
	if r.LogWeights = honest; m.Weights != Honest {
		if r.LogWeights, err = bayes.NewLogWeights(eachNormalised(m.output, count)); err != nil {
			return nil, fmt.Errorf("pmcnet: %w", err)
		}
	}
	if r.Evidence = unknown; status == run.Completed && r.trusted() {
		r.Evidence.Value, r.Evidence.StdErr = smc.LogEvidence(m.honest)
	}
	r.Evaluations = m.Iteration * m.evaluations()
	r.Curves = []fit.Curve{
		fit.NewCurve(fit.ESSCurve, m.Trace, func(r IterationRecord) float64 { return r.ESS }),
		fit.NewCurve(KHatCurve, m.Trace, func(r IterationRecord) float64 { return r.KHat }),
		fit.NewCurve(LogEvidenceCurve, m.Trace, func(r IterationRecord) float64 { return r.stated(count) }),
	}
	r.Approximation, r.Warnings = m.approximation(r), m.warnings(r)
	return r, nil
}

// eachNormalised are log-weights of iterations of so many draws, normalised within each.
func eachNormalised(l []float64, count int) (out []float64) {
	for from := 0; from < len(l); from += count {
		w, err := bayes.NewLogWeights(l[from : from+count])
		for i := range count {
			if err != nil {
				out = append(out, math.Inf(-1))
				continue
			}
			out = append(out, w.At(i))
		}
	}
	return out
}

// evaluations of one particle's target in an iteration.
func (m *machine) evaluations() int {
	draws, ascent := m.Proposals*m.Draws, m.Proposals*(m.Halvings+2)
	if m.GradientFree {
		return draws
	}
	return draws + ascent // of Light: of all rows once, by batches
}

// trusted says whether the weights may be called an estimate of anything.
func (r *Result) trusted() bool { return trusted(r.KHat, r.ESS, r.LogWeights.Len()) }

// trusted says so of weights of so many draws: k-hat is at most MaxKHat, or they are all the same and have no tail.
func trusted(kHat, ess float64, draws int) bool {
	return kHat <= MaxKHat || math.IsNaN(kHat) && ess > .999*float64(draws)
}

// stated is the log evidence of an iteration of so many draws, as people see it: NaN where its weights cannot be
// trusted.
func (r IterationRecord) stated(draws int) float64 {
	if !trusted(r.KHat, r.ESS, draws) {
		return math.NaN()
	}
	return r.LogEvidence
}

// What makes a result doubtful.
const (
	fewDraws     = 100 // effective draws
	manyReplaced = 0.1 // share of covariances, or of draws that are not finite
)

// approximation is the result's.
func (m *machine) approximation(r *Result) string {
	const between = "a distribution between the proposals and the posterior: "
	switch power := m.power(); {
	case !r.trusted():
		return fmt.Sprintf("%sk-hat of the weights is %.2f", between, r.KHat)
	case m.Own != nil:
		return fmt.Sprintf("what weights of your own, %q, make of the proposals", m.Own.Title())
	case m.Weights == Clipped:
		return between + "weights are clipped"
	case power != "":
		return fmt.Sprintf("%sweights count by their %s", between, power)
	}
	return ""
}

// power is the power, in words, by which the weights of the result's draws count: that of the last iteration or, where
// all are kept, of each; empty if all are 1.
func (m *machine) power() string {
	kept := m.Trace[m.Iteration-1:]
	if m.PMC.Keep == AllIterations {
		kept = m.Trace
	}
	low, high := 1., 0.
	for _, t := range kept {
		low, high = min(low, t.Exponent), max(high, t.Exponent)
	}
	switch {
	case low == 1:
		return ""
	case low == high:
		return fmt.Sprintf("power %.3g", low)
	}
	return fmt.Sprintf("powers %.3g to %.3g", low, high)
}

// warnings are what is doubtful about a run.
func (m *machine) warnings(r *Result) (out []string) {
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	draws := r.LogWeights.Len()
	switch {
	case math.IsNaN(r.KHat) && !r.trusted():
		warn("k-hat of the weights cannot be told from %d draws: no evidence is stated; take more draws", draws)
	case !r.trusted():
		warn("k-hat of the weights is %.2f, above %.1f, with an effective sample size of %.1f of %d draws: the draws are "+
			"not the posterior's, and no evidence is stated", r.KHat, MaxKHat, r.ESS, draws)
	case r.ESS < fewDraws:
		warn("the effective sample size is %.1f of %d draws: take more draws, or more iterations", r.ESS, draws)
	}
	switch power := m.power(); {
	case m.Own != nil:
		warn("the draws count by weights of your own, %q, not by those of importance sampling", m.Own.Title())
	case m.Weights == Clipped:
		warn("the draws count by clipped weights: they are biased towards the proposals")
	case power != "":
		warn("the draws count by weights to the %s: they are of a distribution between the proposals and the posterior",
			power)
	}
	if m.Shrinkage > 0 && m.Draws <= m.Problem.Dim && m.Covariance == FullCovariance {
		warn("%d draws of each proposal have a covariance of rank %d in %d dimensions: its off-diagonal part was shrunk "+
			"by %.2f (PMC.Shrinkage); take more Draws, or DiagonalCovariance", m.Draws, m.Draws-1, m.Problem.Dim, m.Shrinkage)
	}
	replaced, nonFinite, wrong, n := 0, 0, 0, len(m.Trace)
	for _, t := range m.Trace {
		replaced, nonFinite, wrong = replaced+t.Replaced, nonFinite+t.NonFinite, wrong+t.Wrong
	}
	if float64(replaced) > manyReplaced*float64(n*m.Proposals) {
		warn("%d of %d covariances were not positive definite, and replaced by the ones before: take more Draws, or "+
			"DiagonalCovariance", replaced, n*m.Proposals)
	}
	if wrong > 0 {
		out = append(out, wrongDraws(wrong, n*m.Proposals*m.Draws))
	} else if float64(nonFinite) > manyReplaced*float64(n*m.Proposals*m.Draws) {
		warn("%d of %d draws had a log-density that is not finite: check the target", nonFinite, n*m.Proposals*m.Draws)
	}
	return out
}

// wrongDraws is the warning for draws whose log-density is none.
func wrongDraws(wrong, draws int) string {
	return fmt.Sprintf("%d of %d draws had a log-density of NaN or +Inf, which counts as a density of 0: check the "+
		"target; -Inf says that there is none", wrong, draws)
}
