package diag

import (
	"math"
	"testing"
)

// The ESS that counts is the smaller of bulk and tail, at most the draws; what is NaN is counted and left out.
func TestPerEvaluation(t *testing.T) {
	s := Summary{Chains: 4, Draws: 100, Rows: []Row{
		{BulkESS: 300, TailESS: 200}, {BulkESS: 900, TailESS: 700}, {BulkESS: 100, TailESS: 350},
		{BulkESS: math.NaN(), TailESS: 100}, {BulkESS: 400, TailESS: 400, RHat: math.NaN()}, // which never changes
	}}
	e, err := s.perEvaluation(1000)
	if err != nil || e.Least != .1 || e.Median != .2 || e.Unknown != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if text := e.String(); text != "ESS in 1000 full evaluations: least 100, median 200 (2 unknown)" {
		t.Error(text)
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := s.perEvaluation(bad); err == nil {
			t.Errorf("%v evaluations are taken", bad)
		}
	}
	if e, err := (Summary{}).perEvaluation(1); err != nil || !math.IsNaN(e.Least) {
		t.Errorf("no parameters: %+v, %v", e, err)
	}
}
