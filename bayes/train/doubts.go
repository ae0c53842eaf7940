package train

import (
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// doubts are those about a training, given the curve of its validations.
func (d *Details) doubts(scores fit.Curve, status run.Status) (all fit.Doubts) {
	rejected, never, validations := 0, 0, len(scores.Steps)
	for _, s := range d.Trace {
		rejected += s.Rejected
	}
	for _, b := range d.Best {
		if b.Step == 0 {
			never++
		}
	}
	all.If(rejected > 0, "stayed", "in %d steps a member stayed where it was, since its gradient was not finite: take a "+
		"smaller learning rate, and check the data for outliers", rejected)
	all.If(never > 0 && validations > 0, "not validated", "of %d members %d never had a finite NLPD on the validation "+
		"part: their last parameters are taken, not their best; check the validation part for outliers", len(d.Best), never)
	if validations > 0 && status == run.Completed {
		steps := scores.Steps[validations-1] // without those of a later stage
		all = append(all, fit.Ending(scores.Values, steps, steps/d.PerEpoch)...)
	}
	all.If(d.patience > 0 && d.Best == nil, "no patience", "Training.Patience is %d, and there is no validation part, so "+
		"that no training was stopped early", d.patience)
	return all
}
