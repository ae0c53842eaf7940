package bayes_test

import (
	"reflect"
	"testing"

	"gobnn/bayes/fit"
)

func TestResult(t *testing.T) {
	r := &fit.Result{}
	r.Curves = []fit.Curve{
		fit.NewCurve(fit.LossCurve, []float64{3, 2}, func(v float64) float64 { return v / 2 }),
		{Name: fit.ValidationCurve, Steps: []int{2}, Values: []float64{1}},
	}
	r.Warnings = []string{"few"}
	want := fit.Curve{Name: fit.LossCurve, Steps: []int{1, 2}, Values: []float64{1.5, 1}}
	if got := r.Curve(fit.LossCurve); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.Curve(fit.ESSCurve); got.Name != fit.ESSCurve || len(got.Steps) != 0 {
		t.Errorf("a curve that is not there is %+v", got)
	}
}
