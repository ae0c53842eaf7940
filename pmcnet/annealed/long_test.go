//go:build long

package annealed

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"
)

// Over 100 seeds the standard errors that the three estimators state of the log evidence are those of the runs: the
// root mean square of the errors is within a quarter of that of the stated ones, and at least 88 lie within 1.96 of
// their own. Of 100 runs the former has a standard deviation of 7 %, and the latter are fewer in 1 of 300 tests.
func TestCoverageLong(t *testing.T) {
	l := fittest.Regression(5, 50, 1)
	_, _, want := l.Posterior()
	settings := run.Settings{Engine: computetest.Go(t), DType: compute.Float64}
	a := few
	a.Bridge = BridgeAlways
	found := map[Estimator][]bayes.Evidence{}
	for settings.Seed = range uint64(100) {
		_, d := fittest.Sample[*Details](t, fittest.Density(l), a, settings)
		found[ByImportance] = append(found[ByImportance], d.ImportanceEvidence)
		found[ByBridge] = append(found[ByBridge], d.BridgeEvidence)
		found[BySMC] = append(found[BySMC], d.SMCEvidence)
	}
	for by, all := range found {
		stated, squares, within := 0., 0., 0
		for _, e := range all {
			stated += e.StdErr * e.StdErr
			if squares += math.Pow(e.Value-want, 2); math.Abs(e.Value-want) < 1.96*e.StdErr {
				within++
			}
		}
		if ratio := math.Sqrt(squares / stated); math.Abs(ratio-1) > .25 || within < 88 {
			t.Errorf("%s: errors are %.2f times the stated ones; %d of 100 within 1.96 of them", by, ratio, within)
		}
	}
}
