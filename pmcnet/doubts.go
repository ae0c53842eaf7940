package pmcnet

import (
	"fmt"
	"math"

	"gobnn/bayes/fit"
)

// What makes a result doubtful.
const (
	fewDraws     = 100 // effective draws
	manyReplaced = 0.1 // share of covariances, or of draws that are not finite
)

// by is by which weights the draws of a result count, in words; empty where these are the honest ones.
func (r *running) by(d *Details) string {
	switch last := d.Trace[len(d.Trace)-1]; {
	case r.Weights == Floored:
		return "weights to which 1e-50 is added"
	case last.Exponent < 1:
		return fmt.Sprintf("weights to the power %.3g", last.Exponent)
	}
	return ""
}

// approximation is the result's.
func (r *running) approximation(d *Details) string {
	const between = "a distribution between the proposals and the posterior: "
	switch by := r.by(d); {
	case !d.trusted(r.Proposals * r.Draws):
		return fmt.Sprintf("%sk-hat of the weights is %.2f", between, d.KHat)
	case by != "":
		return between + "the draws count by " + by
	}
	return ""
}

// doubts are those about a finished run.
func (r *running) doubts(d *Details) (all fit.Doubts) {
	draws := r.Proposals * r.Draws
	replaced, nonFinite, wrong, n := 0, 0, 0, len(d.Trace)
	for _, t := range d.Trace {
		replaced, nonFinite, wrong = replaced+t.Replaced, nonFinite+t.NonFinite, wrong+t.Wrong
	}
	covariances, made := n*r.Proposals, n*r.Proposals*r.Draws
	shrinkage := r.shrinkage(r.problem.Dim)
	all.If(math.IsNaN(d.KHat) && !d.trusted(draws), "no k-hat", "k-hat of the weights cannot be told from %d draws: no "+
		"evidence is stated; take more draws", draws)
	all.If(d.KHat > MaxKHat, "k-hat", "k-hat of the weights is %.2f, above %.1f, with an effective sample size of %.1f "+
		"of %d draws: the draws are not the posterior's, and no evidence is stated", d.KHat, MaxKHat, d.ESS, draws)
	all.If(d.trusted(draws) && d.ESS < fewDraws, "few effective", "the effective sample size is %.1f of %d draws: take "+
		"more draws", d.ESS, draws)
	all.If(r.by(d) != "", "other weights", "the draws count by %s: they are of a distribution between the proposals and "+
		"the posterior", r.by(d))
	all.If(shrinkage > 0, "shrunk", "%d draws of each proposal have a covariance of rank %d in %d dimensions: its "+
		"off-diagonal part was shrunk by %.2f; take more Draws, or DiagonalCovariance", r.Draws, r.Draws-1, r.problem.Dim,
		shrinkage)
	all.If(float64(replaced) > manyReplaced*float64(covariances), "replaced", "%d of %d covariances were not positive "+
		"definite, and replaced by the ones before: take more Draws, or DiagonalCovariance", replaced, covariances)
	DoubtWrong(&all, wrong, made)
	all.If(wrong == 0 && float64(nonFinite) > manyReplaced*float64(made), "not finite", "%d of %d draws had a "+
		"log-density that is not finite: check the target", nonFinite, made)
	return all
}

// DoubtWrong adds a doubt about draws whose log-density is none, given how many they are and of how many.
func DoubtWrong(all *fit.Doubts, wrong, draws int) {
	all.If(wrong > 0, "wrong density", "%d of %d draws had a log-density of NaN or +Inf, which counts as a density of 0: "+
		"check the target; -Inf says that there is none", wrong, draws)
}
