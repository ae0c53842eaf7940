package train

import (
	"slices"
	"testing"

	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// The loss of two trainings, one after the other, stands at the steps of both, of which each has records of its own.
func TestThen(t *testing.T) {
	first := Details{Steps: 2, PerEpoch: 1, Trace: []StepRecord{{Loss: 5}, {Loss: 4}}}
	both := first.Then(&Details{Steps: 2, Trace: []StepRecord{{Loss: 3}, {Loss: 2}}})
	c := both.Result(run.Completed).Curve(fit.LossCurve)
	if both.Steps != 4 || !slices.Equal(c.Steps, []int{1, 2, 3, 4}) || !slices.Equal(c.Values, []float64{5, 4, 3, 2}) {
		t.Errorf("%d steps, and the loss %+v", both.Steps, c)
	}
	if len(first.Trace) != 2 || first.Steps != 2 {
		t.Errorf("the first training has changed: %+v", first)
	}
}
