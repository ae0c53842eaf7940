package bayes_test

import (
	"reflect"
	"testing"

	"gobnn/bayes/fit"
)

// mine is what a package's Result looks like.
type mine struct {
	fit.Result
	Trace []float64
}

func TestResult(t *testing.T) {
	r := &mine{Trace: []float64{3, 2}}
	r.Curves = []fit.Curve{
		fit.NewCurve(fit.LossCurve, r.Trace, func(v float64) float64 { return v / 2 }),
		{Name: fit.ValidationCurve, Steps: []int{2}, Values: []float64{1}},
	}
	r.Warnings = []string{"few"}
	common := fit.Fitted(r).Common()
	if common != &r.Result {
		t.Error("Common is a copy")
	}
	want := fit.Curve{Name: fit.LossCurve, Steps: []int{1, 2}, Values: []float64{1.5, 1}}
	if got := common.Curve(fit.LossCurve); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := common.Curve(fit.ESSCurve); got.Name != fit.ESSCurve || len(got.Steps) != 0 {
		t.Errorf("a curve that is not there is %+v", got)
	}
}
