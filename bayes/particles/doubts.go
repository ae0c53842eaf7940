package particles

import (
	"slices"

	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// doubts are those about the particles after so many steps.
func (r *training) doubts(d *Details, steps int, status run.Status) (all fit.Doubts) {
	if steps == 0 {
		return nil
	}
	rejected := 0
	for _, t := range d.Trace {
		if t.GradientRejected {
			rejected++
		}
	}
	all.If(rejected > 0, "psi stayed", "in %d of %d steps the gradient of psi was not finite, and psi stayed", rejected,
		d.Steps)
	all.If(len(d.Validated) > 0 && d.Best.Step == 0, "not validated", "none of the %d validations has a finite NLPD, so "+
		"that the posterior is that of the last step: check the validation part for outliers", len(d.Validated))
	if i := slices.IndexFunc(d.Trace[:steps], func(t StepRecord) bool {
		return t.Resamplings > 0 && t.UniqueAncestors < 2
	}); i >= 0 {
		all.If(r.Particles > 1, "copies", "at step %d all %d particles became copies of one: what the others had found is "+
			"lost, and the posterior is what has spread from there since: take more Particles, a larger BatchSize or a smaller "+
			"learning rate, or compare with other seeds", i+1, r.Particles)
	}
	ess := d.Trace[steps-1].ESS
	all.If(ess < 2, "few effective", "the posterior is carried by %.1f of %d particles (effective sample size): take "+
		"shorter moves (the kernel's Variance or the StepSize), more Particles or a smaller BatchSize, or draw from the "+
		"posterior by mcmc.Chains (fit.From)", ess, r.Particles)
	if status == run.Completed {
		scores := make([]float64, len(d.Validated))
		for i, v := range d.Validated {
			scores[i] = v.NLPD
		}
		all = append(all, fit.Ending(scores, d.Steps, d.Steps/d.PerEpoch)...)
	}
	if a, ok := r.algorithm.(Doubter); ok {
		all = append(all, a.Doubts(r.Training, r.Rows(), d.Trace[:steps])...)
	}
	return all
}
