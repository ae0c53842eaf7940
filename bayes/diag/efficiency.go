package diag

import (
	"fmt"
	"math"
	"slices"
)

// Evaluated is a result, or one of its Details, that counts how often its sampler evaluated the target, in full forward
// passes as mcmc.Evaluations.Forwards counts them; 0 if it is not known. [Of] then reports the ESS for each of them.
type Evaluated interface {
	FullEvaluations() float64
}

// Efficiency is the effective sample size (ESS) for each full evaluation of the target. It compares samplers of one
// target at equal cost, such as with and without a surrogate.
type Efficiency struct {
	Least, Median float64 // over the parameters, of the ESS for each evaluation
	Unknown       int     // parameters that never change or whose ESS is NaN, which are left out
}

// perEvaluation is the ESS of the parameters divided by the number of full evaluations of the target that the draws
// took: full forward passes, as mcmc.Evaluations.Forwards counts them, with partial ones in proportion. The ESS of a
// parameter is here the smaller one of its bulk and tail ESS, and at most the number of draws, so that antithetic
// chains do not count for more than independent draws. For a Summary in function space (NewForPrediction) it is the ESS
// of predictions, by which samplers of networks should be compared.
func (s Summary) perEvaluation(evaluations float64) (Efficiency, error) {
	if !(evaluations > 0) || math.IsInf(evaluations, 1) {
		return Efficiency{}, fmt.Errorf("diag: %v full evaluations: it must be positive and finite", evaluations)
	}
	var all []float64
	e := Efficiency{Least: math.NaN(), Median: math.NaN()}
	for _, r := range s.Rows {
		ess := min(r.BulkESS, r.TailESS, float64(s.Chains*s.Draws)) // NaN if one is
		if math.IsNaN(ess) || math.IsNaN(r.RHat) {
			e.Unknown++
			continue
		}
		all = append(all, ess/evaluations)
	}
	if len(all) > 0 {
		slices.Sort(all)
		e.Least, e.Median = all[0], (all[(len(all)-1)/2]+all[len(all)/2])/2
	}
	return e, nil
}

// String is one line of text, with the ESS per 1000 full evaluations.
func (e Efficiency) String() string {
	text := fmt.Sprintf("ESS in 1000 full evaluations: least %.3g, median %.3g", 1000*e.Least, 1000*e.Median)
	if e.Unknown > 0 {
		text += fmt.Sprintf(" (%d unknown)", e.Unknown)
	}
	return text
}
