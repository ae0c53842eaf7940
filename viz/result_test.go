package viz_test

import (
	"strings"
	"testing"

	"gobnn/bayes/fit"
	"gobnn/viz"
)

// Any result's training is drawn by one call, to the same picture as its curves by hand; without training it says so.
func TestTrainingCurvesOf(t *testing.T) {
	r := &fit.Result{Curves: []fit.Curve{
		{Name: fit.ESSCurve, Steps: []int{1, 2, 3, 4}, Values: []float64{9, 8, 7, 6}},
		{Name: fit.LossCurve, Steps: []int{1, 2, 3, 4}, Values: []float64{4, 3, 2.5, 2.25}},
		{Name: fit.ValidationCurve, Steps: []int{2, 4}, Values: []float64{2, 1.5}},
	}}
	of, err := viz.TrainingCurvesOf(r, viz.Frame{})
	got := svgOf(t, of, err)
	by, err := viz.TrainingCurves(viz.Series{Value: []float64{4, 3, 2.5, 2.25}},
		viz.Series{Step: []float64{2, 4}, Value: []float64{2, 1.5}}, viz.Frame{})
	if want := svgOf(t, by, err); got != want {
		t.Error("the picture is another than that of the curves by hand")
	}
	r.Curves = r.Curves[:1]
	if _, err := viz.TrainingCurvesOf(r, viz.Frame{}); err == nil ||
		!strings.Contains(err.Error(), "nothing in it was trained") {
		t.Errorf("without training: %v", err)
	}
}
