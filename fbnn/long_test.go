//go:build long

package fbnn

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/run"
)

// Means of pCN on a posterior that a linear emulator knows exactly are within .01 posterior standard deviations, and
// so are those of a wrong emulator that is corrected. 400 chains of 10 000 draws have 240 000 and 98 000 effective
// ones: .01 is 4.9 and 3.1 of their errors.
func TestConjugateLong(t *testing.T) {
	model, parts, l := regression()
	for name, a := range map[string]CES{
		"linear, uncorrected": {Regressor: linear{}, Uncorrected: true},
		"wrong, corrected":    {Regressor: shifted{By: .3}},
	} {
		a.Chains, a.Draws = 400, 10_000
		r := fitted(t, model, a, parts, run.Settings{
			Engine: computetest.Engines(t)[0], DType: compute.Float64, Seed: 5,
		})
		t.Log(name, off(t, r, l), r.Truth.minESS)
		for i, e := range off(t, r, l) {
			if !(math.Abs(e) < .01) {
				t.Errorf("%s: the mean of coordinate %d is off by %.4f standard deviations", name, i, e)
			}
		}
	}
}
