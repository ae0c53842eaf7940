package bayes_test

import (
	"reflect"
	"testing"

	"gobnn/bayes"
)

// mine is what a package's Result looks like.
type mine struct {
	bayes.Result
	Trace []float64
}

func TestResult(t *testing.T) {
	r := &mine{Trace: []float64{3, 2}}
	r.Curves = []bayes.Curve{
		bayes.NewCurve(bayes.LossCurve, r.Trace, func(v float64) float64 { return v / 2 }),
		{Name: bayes.ValidationCurve, Steps: []int{2}, Values: []float64{1}},
	}
	r.Warnings = []string{"few"}
	common := bayes.Fitted(r).Common()
	if common != &r.Result {
		t.Error("Common is a copy")
	}
	want := bayes.Curve{Name: bayes.LossCurve, Steps: []int{1, 2}, Values: []float64{1.5, 1}}
	if got := common.Curve(bayes.LossCurve); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := common.Curve(bayes.ESSCurve); got.Name != bayes.ESSCurve || len(got.Steps) != 0 {
		t.Errorf("a curve that is not there is %+v", got)
	}
}
