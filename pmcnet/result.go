package pmcnet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// Details has the further results of a run of PMC: fit.Details[*pmcnet.Details](result).
type Details struct {
	// KHat is the k-hat of the draws' honest weights. It is NaN if the weights have no tail to estimate it from, for
	// instance if all are equal.
	KHat  float64
	ESS   float64 // effective sample size of the draws by their honest weights
	Trace []IterationRecord
}

// MaxKHat is the k-hat above which importance weights are not to be trusted, however many draws there are (Vehtari et
// al. 2024).
const MaxKHat = 0.7

// IterationRecord has the diagnostics of one iteration of PMC, by its honest weights unless stated otherwise.
type IterationRecord struct {
	// LogEvidence is the log of the mean weight of this iteration's draws, with its standard error. If KHat is above
	// MaxKHat it is no estimate: it is mostly far too low, and the standard error too small.
	LogEvidence, LogEvidenceStdErr float64

	ESS       float64 // effective sample size
	KHat      float64 // NaN if the weights have no tail to estimate it from
	Distinct  float64 // number of different draws among the next M means, over M
	Exponent  float64 // lambda of the weights of the result's draws; 1 unless they are tempered
	Replaced  int     // number of new covariances that were not positive definite: the one before was kept
	NonFinite int     // number of draws whose log-density is not finite: they have weight 0
	Wrong     int     // number of those whose log-density is NaN or +Inf, which no log-density should be
	Seconds   float64 // elapsed time of the iteration
}

// The names of curves of results, beside fit.ESSCurve; KHat is a diagnostic of the posterior too, beside the effective
// sample size, and for PMC the "share of distinct draws" among the means and "lambda", the exponent of the weights. PMC
// has a log evidence for each iteration, NaN if its k-hat is above MaxKHat. Annealed has the log evidence of the first
// SMC up to each power.
const (
	KHat             = "k-hat"
	LogEvidenceCurve = "log evidence"
)

// result is the result of the iterations so far.
func (r *running) result(ctx context.Context, at *fit.Trail[IterationRecord]) (*fit.Result, error) {
	if at.Step == 0 {
		return nil, errors.Join(errors.New("pmcnet: the run ended before the first iteration: there are no draws"),
			context.Cause(ctx))
	}
	host, err := at.Host(phiName, outputName)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	output, err := compute.Float64s(host[outputName])
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	weights, err := bayes.NewLogWeights(output)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	last, trace := at.Records[at.Step-1], slices.Clone(at.Records)
	d, draws := &Details{KHat: last.KHat, ESS: last.ESS, Trace: trace}, len(output)
	evidence := bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}
	if at.Status == run.Completed && d.trusted(draws) {
		evidence = bayes.Evidence{Value: last.LogEvidence, StdErr: last.LogEvidenceStdErr}
	}
	return &fit.Result{
		Status: at.Status, Elapsed: r.Elapsed(), Doubts: r.doubts(d), Approximation: r.approximation(d),
		Curves: []fit.Curve{
			fit.NewCurve(fit.ESSCurve, trace, func(i IterationRecord) float64 { return i.ESS }),
			fit.NewCurve(KHat, trace, func(i IterationRecord) float64 { return i.KHat }),
			fit.NewCurve(LogEvidenceCurve, trace, func(i IterationRecord) float64 { return i.stated(draws) }),
		},
		Draws: bayes.Draws{
			Phi: host[phiName], LogWeights: weights, Evidence: evidence,
			Diagnostics: map[string]float64{
				KHat: d.KHat, fit.ESSCurve: d.ESS, "share of distinct draws": last.Distinct, "lambda": last.Exponent,
			},
		},
		Details: []any{d},
	}, nil
}

// trusted says whether the weights of so many draws may be called an estimate of anything.
func (d *Details) trusted(draws int) bool { return trusted(d.KHat, d.ESS, draws) }

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
