package smc_test
import ("testing"
"gobnn/bayes/compute/computetest"
"gobnn/bayes/exchange"
)
func TestZZ(t *testing.T) {
  for _, r := range []exchange.Replicas{{Ladder: quick.Ladder},{Ladder: quick.Ladder, WarmUp: 200, Sweeps: 200}, {Ladder: []float64{.001,.008,.045,.3, 1}, WarmUp: 100, Sweeps: 200}} {
    e := needles[0].exchanged(t, computetest.Engines(t)[0], 5, r)
    t.Logf("%+v %+v", r, e)
  }
}
