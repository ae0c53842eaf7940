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

// efficiency is the effective sample size (ESS) for each full evaluation of the target. It compares samplers of one
// target at equal cost, such as with and without a surrogate.
type efficiency struct {
	least, median float64 // over the parameters, of the ESS for each evaluation
	unknown       int     // parameters that never change or whose ESS is NaN, which are left out
}

// perEvaluation is the ESS of the parameters divided by the number of full evaluations of the target that the draws
// took: full forward passes, as mcmc.Evaluations.Forwards counts them, with partial ones in proportion. The ESS of a
// parameter is here the smaller one of its bulk and tail ESS, and at most the number of draws, so that antithetic
// chains do not count for more than independent draws. For a Summary in function space (NewForPrediction) it is the ESS
// of predictions, by which samplers of networks should be compared.
func (s Summary) perEvaluation(evaluations float64) *efficiency {
	var all []float64
	e := &efficiency{least: math.NaN(), median: math.NaN()}
	for _, r := range s.Rows {
		ess := min(r.BulkESS, r.TailESS, float64(s.Chains*s.Draws)) // NaN if one is
		if math.IsNaN(ess) || math.IsNaN(r.RHat) {
			e.unknown++
			continue
		}
		all = append(all, ess/evaluations)
	}
	if len(all) > 0 {
		slices.Sort(all)
		e.least, e.median = all[0], (all[(len(all)-1)/2]+all[len(all)/2])/2
	}
	return e
}

// text is one line, with the ESS per 1000 full evaluations.
func (e *efficiency) text() string {
	text := fmt.Sprintf("ESS in 1000 full evaluations: least %.3g, median %.3g", 1000*e.least, 1000*e.median)
	if e.unknown > 0 {
		text += fmt.Sprintf(" (%d unknown)", e.unknown)
	}
	return text
}
