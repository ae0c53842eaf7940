package exchange

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Bennett's ratio from exact draws: at power p of the likelihood exp(-phi^2/2) and the prior N(0, 1) phi has variance
// 1/(1+p), so that log Z_b/Z_a is half of log((1+a)/(1+b)). A third of the replicas at the middle power stand outside,
// so that the numbers of draws differ in both steps, one way and the other. An error of 4 standard errors has a
// probability of 6e-5 each time.
func TestRatioOfUnequalNumbers(t *testing.T) {
	const sets, sweeps = 16, 300
	powers := []float64{0, .5, 1}
	rng := rand.New(rand.NewPCG(1, 2))
	e := exchanged{powers: powers, sets: sets}
	for sweep := range sweeps {
		var row []float64
		for t, power := range powers {
			for set := range sets {
				phi := rng.NormFloat64() / math.Sqrt(1+power)
				l := -phi * phi / 2
				if t == 1 && (sweep+set)%3 == 0 {
					l = math.Inf(-1)
				}
				row = append(row, l)
			}
		}
		e.rows = append(e.rows, row)
	}
	for step := range len(powers) - 1 {
		got, of := e.ratio(step)
		squares := 0.
		for _, v := range of {
			squares += v * v
		}
		stdErr := math.Sqrt(squares) / sets
		exact := .5 * math.Log((1+powers[step])/(1+powers[step+1]))
		if t.Logf("%.4f +- %.4f, exact %.4f", got, stdErr, exact); !(math.Abs(got-exact) < 4*stdErr) || stdErr > .02 {
			t.Errorf("from power %v to %v the log ratio is %.4f +- %.4f, exact %.4f", powers[step], powers[step+1], got,
				stdErr, exact)
		}
	}
}
