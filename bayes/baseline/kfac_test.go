package baseline

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// Of a layer without hidden ones and K targets of different noise the factors are exact: A = [X 1]' [X 1] / N and G =
// N diag(1/s_k^2).
func TestKroneckerOfTargets(t *testing.T) {
	engine := computetest.Go(t)
	bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5, Learn: true},
		Prior: bayes.Normal{StdDev: 2}, Stochastic: bayes.All()}.Bind(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{1, 2, -1, .5, 0, 3, 2, -2}
	logScales := []float64{.3, -.7, 0} // psi
	of := curvedRows{engine: engine, bound: bound, x: compute.Floats(compute.Float64, x, 4, 2),
		y: compute.Floats(compute.Float64, make([]float64, 12), 4, 3)}
	factors, err := of.kronecker(t.Context(), make([]float64, bound.D), logScales)
	if err != nil {
		t.Fatal(err)
	}
	if len(factors) != 1 {
		t.Fatalf("%d factors, want 1", len(factors))
	}
	f := factors[0]
	var got, want []float64
	for i := range 3 {
		for k := range 3 {
			got = append(got, f.Outputs.At(i, k))
			if want = append(want, 0); i == k {
				want[len(want)-1] = 4 * math.Exp(-2*logScales[k]) / .25
			}
		}
	}
	computetest.Near(t, "G", got, want, 1e-9)
	got, want = nil, nil
	for i := range 3 {
		for k := range 3 {
			got = append(got, f.Inputs.At(i, k))
			sum := 0.
			for n := range 4 {
				row := []float64{x[2*n], x[2*n+1], 1}
				sum += row[i] * row[k] / 4
			}
			want = append(want, sum)
		}
	}
	computetest.Near(t, "A", got, want, 1e-9)
	if f.Precision != .25 {
		t.Errorf("the prior's precision is %v, want .25", f.Precision)
	}
}
