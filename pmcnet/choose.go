package pmcnet

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is step 6 of Annealed: what its three estimators say, and which is the result.

// Estimator is one of the three ways in which Annealed gets an evidence and draws of the posterior.
type Estimator string

// The estimators of Annealed.
const (
	BySMC        Estimator = "SMC"                 // tempered from the prior
	ByImportance Estimator = "importance sampling" // weighted draws of the fitted mixture
	ByBridge     Estimator = "bridge"              // SMC from the fitted mixture
)

// Estimates are the results of Annealed's three estimators (by SMC, by importance sampling and by the bridge), and
// which of them is the result.
type Estimates struct {
	// Source is the estimator whose draws and evidence the result has. Why gives the reason, with the numbers.
	Source Estimator
	Why    string

	SMC    *smc.Result // of step 1, with its particles before they were put into canonical order
	Bridge *smc.Result // of step 5; nil if the bridge was not run or failed: see NoBridge
	// NoBridge is the reason why the bridge failed, or would have begun too far away to be worth its moves; empty if
	// neither, or if it was not asked for.
	NoBridge string
	// The estimates of the log evidence. ImportanceEvidence is NaN if k-hat is above MaxKHat or unknown, BridgeEvidence if
	// there is no bridge.
	SMCEvidence, ImportanceEvidence, BridgeEvidence bayes.Evidence
	// KHat and ESS are those of the mixture's draws, by their weights before smoothing; NaN if there are none.
	KHat, ESS float64
	// KHatStdErr is the standard error of KHat, (1 + KHat)/sqrt(n), where n is the number of weights in the tail to which
	// the Pareto distribution is fitted.
	KHatStdErr float64

	// Order is the reason why there is no canonical order (see the package comment); empty if there is one. LogImages is
	// log |G|, the log of the number of the posterior's identical images; 0 if there is no order.
	Order     string
	LogImages float64
	// Outside is the share of the mixture's draws that are not in canonical order, and NonFinite the number of those whose
	// log-density is not finite. Both kinds have weight 0.
	Outside   float64
	NonFinite int

	Components int     // number of components of the mixture, without the wide one
	Dropped    int     // number of components that were given up, with too few particles for a covariance
	DoF        float64 // degrees of freedom of the components, without the wide one
}

// weightedDraws are step 4's, [N, D], with smoothed weights; theta is nil where these cannot be trusted.
type weightedDraws struct {
	theta      *mat.Dense
	logWeights bayes.LogWeights
	// firstPower is the power of the weights, at most 1, that the bridge's first step would reach.
	firstPower float64
}

// unknown is an evidence that is not known.
var unknown = bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}

// unweighed says why there are no weighted draws.
func (e *Estimates) unweighed(why string) {
	e.ImportanceEvidence, e.BridgeEvidence, e.Why = unknown, unknown, why
	e.KHat, e.KHatStdErr, e.ESS = math.NaN(), math.NaN(), math.NaN()
}

// judge says whether draws of the mixture can be trusted, by their log-weights, [N], and what they give.
func (r *annealing) judge(theta *mat.Dense, logWeights []float64) (draws weightedDraws, err error) {
	said := &r.said
	draws.firstPower = firstPower(logWeights, r.Sampling.Threshold)
	honest, err := bayes.NewLogWeights(logWeights)
	if err != nil {
		said.unweighed(fmt.Sprintf("none of %d draws of the mixture has any weight, with %.3g of them outside the canonical "+
			"order and %d log-densities that are not finite", r.Draws, said.Outside, said.NonFinite))
		said.ESS = 0
		return draws, nil
	}
	said.unweighed("")
	said.ESS = honest.EffectiveSampleSize()
	s, err := diag.PSIS(honest, 1)
	switch {
	case err == nil:
		said.KHat, said.KHatStdErr = s.KHat, (1+s.KHat)/math.Sqrt(float64(s.Tail))
	case !errors.Is(err, diag.ErrNoTail):
		return draws, fmt.Errorf("pmcnet: %w", err)
	}
	if said.KHat <= MaxKHat {
		e := &said.ImportanceEvidence
		e.Value, e.StdErr = smc.LogEvidence(logWeights)
		e.Value += r.order.logImages
	}
	verdict := fmt.Sprintf("k-hat of the mixture's %d draws is %.2f, with %.1f effective draws", r.Draws, said.KHat,
		said.ESS)
	switch {
	case !(said.KHat <= MaxKHat):
		said.Why = fmt.Sprintf("%s, not at most %.1f: the mixture does not fit the posterior", verdict, MaxKHat)
	case said.ESS < fewDraws:
		said.Why = fmt.Sprintf("%s, fewer than %d", verdict, fewDraws)
	case !said.haveVariance():
		said.Why = fmt.Sprintf("%s: with its standard error, %.2f, k-hat may be above %.1f, where the weights have no "+
			"finite variance and the evidence is too low more often than its standard error says", verdict, said.KHatStdErr,
			safeKHat)
		draws.theta, draws.logWeights = theta, s.LogWeights
	default:
		said.Why = verdict
		draws.theta, draws.logWeights = theta, s.LogWeights
	}
	return draws, nil
}

// safeKHat is the k-hat above which the weights' distribution has no finite variance, so that what is stated as the
// standard error of their mean says nothing.
const safeKHat = .5

// haveVariance says whether the weights' distribution has a variance, beyond what k-hat's own error leaves open. Of 100
// runs on boston with two tanh units, whose k-hat was .7 in the mean, four had .42 to .50, and an evidence too low by 2
// to 4 of the errors that its weights stated: with k-hat taken at its word these four were a sixth of the result's
// variance, and runs stated 3/4 of their error.
func (e *Estimates) haveVariance() bool { return e.KHat+e.KHatStdErr <= safeKHat }

// bridges says whether step 5 is to be made, where there is a mixture.
func (r *annealing) bridges(fitted bool, draws weightedDraws) bool {
	switch {
	case !fitted || r.Bridge == NoBridge:
		return false
	case r.Bridge == BridgeAlways:
		return true
	}
	said := &r.said
	if draws.theta != nil && said.haveVariance() && apart(said.ImportanceEvidence, said.SMCEvidence) <= mostApart {
		return false
	}
	if prior := said.SMC.Trace[0].Place; draws.firstPower < nearness*prior {
		said.NoBridge = fmt.Sprintf("the mixture is further from the posterior than the prior is: the bridge's first step "+
			"of the power would be %.2g, the first SMC's was %.2g (BridgeAlways runs it all the same)", draws.firstPower,
			prior)
		return false
	}
	return true
}

// nearness is the share of the first SMC's first power that the bridge's must have, if it is not asked for: the larger
// its first power, the nearer is what an SMC begins at to what it ends at. With 500 to 2000 particles the bridge cost
// more than three times the SMC's gradients where the share was below .08 (networks of 27, 52 and 301 weights, and 16
// rows), .8 and 2 times as many at .4, and .1 to 2.8 times at 3 and above (boston, yacht, australian, and Friedman's
// function).
const nearness = .1

// firstPower is the largest power, at most 1, of weights at which their effective sample size is at least a share of
// the draws that have a weight at all, within a thousandth of it. logWeights, [N], may hold -Inf and NaN.
// smc.Stages.Weigh looks for its step in the same way, on the device, where draws without a weight count too.
func firstPower(logWeights []float64, share float64) float64 {
	var finite []float64
	for _, w := range logWeights {
		if !math.IsInf(w, -1) && !math.IsNaN(w) {
			finite = append(finite, w)
		}
	}
	enough := func(power float64) bool {
		tempered := slices.Clone(finite)
		floats.Scale(power, tempered)
		w, err := bayes.NewLogWeights(tempered)
		return err == nil && w.EffectiveSampleSize() >= share*float64(len(finite))
	}
	if len(finite) == 0 || enough(1) {
		return 1
	}
	low, high := math.SmallestNonzeroFloat64, 1.
	for high > 1.001*low {
		if middle := math.Sqrt(low) * math.Sqrt(high); enough(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// mostApart is how many standard errors two estimates of the evidence may differ by.
const mostApart = 3

// apart is by how many standard errors of their difference two estimates differ; 0 where one is not known.
func apart(a, b bayes.Evidence) float64 {
	if !a.Known() || !b.Known() {
		return 0
	}
	return math.Abs(a.Value-b.Value) / math.Hypot(a.StdErr, b.StdErr)
}

// choose is step 6. x are the SMC's particles, across the bridge's, nil where there is none.
func (r *annealing) choose(particles *smc.Result, x *mat.Dense, draws weightedDraws, across *mat.Dense) *Result {
	said := &r.said
	said.decide(draws.theta != nil)
	var warnings []string
	var result *Result
	switch said.Source {
	case ByImportance:
		result = r.of(particles, draws.theta, said.ImportanceEvidence)
		result.LogWeights, result.ESS = draws.logWeights, said.ESS
	case ByBridge:
		result = r.of(said.Bridge, across, said.BridgeEvidence)
		if !(said.KHat <= MaxKHat) {
			warnings = append(warnings, said.Why)
		}
	default:
		result = r.of(particles, x, said.SMCEvidence)
		warnings = append(warnings, said.Why)
	}
	if r.wrong > 0 {
		warnings = append(warnings, fmt.Sprintf(WrongDraws, r.wrong, r.Draws))
	}
	result.Warnings = slices.Concat(particles.Warnings, warnings, said.contradictions())
	return result
}

// decide says which estimator is the result: the first, in the order of how small and how sure their errors are, that
// no other is above by more than three standard errors. An estimate of p(y) whose mean is right, but whose distribution
// has a long tail, is too low in most runs, since they missed a part of the posterior, and far too high in few: so of
// two that contradict each other the higher one has seen more. The SMC is asked where there is no bridge, or a doubtful
// one: where the two differed, on problems with known evidence, the bridge was right each time.
func (e *Estimates) decide(weighted bool) {
	type candidate struct {
		by Estimator
		bayes.Evidence
	}
	var all []candidate
	add := func(is bool, by Estimator, evidence bayes.Evidence) {
		if is {
			all = append(all, candidate{by, evidence})
		}
	}
	add(weighted && e.haveVariance(), ByImportance, e.ImportanceEvidence)
	sound := e.Bridge != nil && len(e.Bridge.Warnings) == 0
	switch {
	case sound:
		add(true, ByBridge, e.BridgeEvidence)
		e.Why += fmt.Sprintf("; the bridge says %.3f +- %.3f", e.BridgeEvidence.Value, e.BridgeEvidence.StdErr)
	case e.Bridge != nil:
		e.Why += fmt.Sprintf("; the bridge is doubtful: %s", strings.Join(e.Bridge.Warnings, "; "))
	case e.NoBridge != "":
		e.Why += fmt.Sprintf("; there is no bridge: %s", e.NoBridge)
	}
	add(weighted && !e.haveVariance(), ByImportance, e.ImportanceEvidence)
	add(!sound, BySMC, e.SMCEvidence)
	e.Source = all[slices.IndexFunc(all, func(c candidate) bool {
		return !slices.ContainsFunc(all, func(o candidate) bool {
			return o.Value > c.Value && apart(o.Evidence, c.Evidence) > mostApart
		})
	})].by
	e.Why += map[Estimator]string{
		ByImportance: ": the result is the weighted draws and their evidence",
		ByBridge:     ": the result is the bridge's particles and evidence",
		BySMC:        ": the result is the SMC's particles and evidence",
	}[e.Source]
}

// contradictions are the pairs of estimates that differ by more than three standard errors, in words.
func (e *Estimates) contradictions() (out []string) {
	all := []struct {
		by Estimator
		bayes.Evidence
	}{{BySMC, e.SMCEvidence}, {ByImportance, e.ImportanceEvidence}, {ByBridge, e.BridgeEvidence}}
	for i, a := range all {
		for _, b := range all[:i] {
			if off := apart(a.Evidence, b.Evidence); off > mostApart {
				out = append(out, fmt.Sprintf("the log evidence is %.3f +- %.3f by %s and %.3f +- %.3f by %s, which differ by "+
					"%.1f standard errors: one of them is wrong; take more particles, and, for a prior of your own whose "+
					"coordinates depend on each other, see whether its density lacks a constant", b.Value, b.StdErr, b.by,
					a.Value, a.StdErr, a.by, off))
			}
		}
	}
	return out
}

// unchecked is the result of a run that ended, with a status, before the SMC's particles were checked: these particles
// as they are, without an evidence. why is the warning.
func (r *annealing) unchecked(particles *smc.Result, status run.Status, why string) (*Result, error) {
	r.said.unweighed(why)
	r.said.Source = BySMC
	flat, err := compute.Float64s(particles.Phi)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	result := r.of(particles, mat.NewDense(particles.LogWeights.Len(), r.Problem.Dim, flat), unknown)
	result.Status = status
	result.Warnings = append(slices.Clone(particles.Warnings), why)
	return result, nil
}

// of is the result that particles of step 1, or 5, are, the rows of x, with their evidence.
func (r *annealing) of(particles *smc.Result, x *mat.Dense, e bayes.Evidence) *Result {
	result := &Result{
		Phi: r.rows(x), LogWeights: particles.LogWeights, Evidence: e, KHat: r.said.KHat,
		ESS: particles.LogWeights.EffectiveSampleSize(), Exponent: 1, Distinct: math.NaN(), Annealed: &r.said,
		Evaluations: r.said.SMC.Evaluations + r.evaluated,
	}
	if r.said.Bridge != nil {
		result.Evaluations += r.said.Bridge.Evaluations
	}
	result.Status = particles.Status
	sum, trace := 0., r.said.SMC.Trace
	result.Curves = []fit.Curve{
		fit.NewCurve(fit.ESSCurve, trace, func(t smc.StepRecord) float64 { return t.ESS }),
		fit.NewCurve(LogEvidenceCurve, trace, func(t smc.StepRecord) float64 {
			sum += t.LogEvidence
			return sum
		}),
	}
	return result
}

// rows are those of x as a tensor, [J, D].
func (r *annealing) rows(x *mat.Dense) *tensors.Tensor {
	rows, d := x.Dims()
	return compute.Floats(r.DType, x.RawMatrix().Data, rows, d)
}
