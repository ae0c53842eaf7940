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
	// Phi holds the draws, [J, D], and LogWeights their log-weights, [J]. For PMC they are from the last iteration,
	// weighted by PMC.Weights. The draws of Annealed are in canonical order, if there is one; if they are weighted
	// draws of the mixture, their weights are Pareto-smoothed (diag.PSIS).
	Phi        *tensors.Tensor
	LogWeights bayes.LogWeights
	// Evidence is the log evidence with its standard error. For PMC it is the log of the mean of the draws' honest
	// weights (see Weights). For Annealed it is the value of the estimator in annealed.Estimates.Source. It is NaN if
	// that mean is no estimate, because k-hat is above MaxKHat or unknown, and if the run did not complete.
	Evidence bayes.Evidence
	// KHat is the k-hat of these draws' honest weights. For Annealed it is the k-hat of the mixture's draws, even if
	// the result is another estimator's. It is NaN if the weights have no tail to estimate it from, for instance if all
	// are equal.
	KHat  float64
	ESS   float64           // effective sample size of these draws by their honest weights, before smoothing
	Trace []IterationRecord // one for each iteration of PMC; nil for others
	// Details holds further results of an algorithm: an *annealed.Estimates for Annealed (annealed.EstimatesOf); nil
	// for PMC.
	Details any
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
	// is not computed here, is above MaxKHat.
	Running, RunningStdErr float64

	ESS       float64 // effective sample size
	KHat      float64 // NaN if the weights have no tail to estimate it from
	Distinct  float64 // number of different draws among the next M means, over M
	Exponent  float64 // lambda of the weights of the result's draws; 1 unless they are tempered
	Halvings  float64 // number of halvings of gamma (step 5), mean over the means that moved
	Stayed    int     // number of means that no gamma moved; of PMCnet-light summed over the mini-batches
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
// evidence for each iteration, NaN if its k-hat is above MaxKHat. Annealed has the log evidence of the first SMC up to
// each power.
const (
	khatCurve          = "k-hat"
	LogEvidenceCurve   = "log evidence"
	khatDiagnostic     = "k-hat"
	essDiagnostic      = "effective sample size"
	distinctDiagnostic = "share of distinct draws" // of PMC, as the next
	exponentDiagnostic = "lambda"
)

// unknown is an evidence that is not known.
var unknown = bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}

// result makes the result from the iterations so far.
func (m *machine) result(status run.Status) (*Result, error) {
	if m.Iteration == 0 {
		return nil, fmt.Errorf("pmcnet: the run ended before the first iteration: there are no draws: %w", status.Err())
	}
	last, err := m.lastDraws()
	if err != nil {
		return nil, err
	}
	count := m.Proposals * m.Draws
	r := &Result{
		Phi:   compute.Floats(m.DType, last, count, m.Problem.Dim),
		Trace: slices.Clone(m.Trace), // a run goes on with its own
	}
	r.Status = status
	honest, err := bayes.NewLogWeights(m.honest)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	r.KHat, r.ESS = kHat(honest), honest.EffectiveSampleSize()
	if r.LogWeights = honest; m.Weights != Honest {
		if r.LogWeights, err = bayes.NewLogWeights(m.output); err != nil {
			return nil, fmt.Errorf("pmcnet: %w", err)
		}
	}
	if r.Evidence = unknown; status == run.Completed && r.trusted() {
		r.Evidence.Value, r.Evidence.StdErr = smc.LogEvidence(m.honest)
	}
	r.Curves = []fit.Curve{
		fit.NewCurve(fit.ESSCurve, m.Trace, func(r IterationRecord) float64 { return r.ESS }),
		fit.NewCurve(khatCurve, m.Trace, func(r IterationRecord) float64 { return r.KHat }),
		fit.NewCurve(LogEvidenceCurve, m.Trace, func(r IterationRecord) float64 { return r.stated(count) }),
	}
	r.Approximation, r.Warnings = m.approximation(r), m.doubts(r)
	return r, nil
}

// trusted says whether the weights may be called an estimate of anything.
func (r *Result) trusted() bool { return trusted(r.KHat, r.ESS, r.LogWeights.Len()) }

// trusted says whether weights of `draws` draws are an estimate: k-hat is at most MaxKHat, or the weights are all equal
// and have no tail.
func trusted(kHat, ess float64, draws int) bool {
	return kHat <= MaxKHat || math.IsNaN(kHat) && ess > .999*float64(draws)
}

// stated returns the log evidence to report for an iteration of `draws` draws: NaN where its weights cannot be trusted.
func (r IterationRecord) stated(draws int) float64 {
	if !trusted(r.KHat, r.ESS, draws) {
		return math.NaN()
	}
	return r.LogEvidence
}
