package pbnn

import (
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// With exponential noise in the differences, whose skewness is 2, the log-ratio of the acceptances there and back is
// off by what the third cumulant's term says, to a third of it, where the term is 0.05 and more; and so by no more than
// skewBias. The derivatives of A are by differences. 50 000 samples of 40: standard errors below 0.01.
func TestSkewnessBias(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const samples, m = 50_000, 40
	cdf := distuv.UnitNormal.CDF
	cases := []struct {
		difference, s float64
		estimate      Estimate
	}{{2, 1, MeanOfBatches}, {0, .3, MeanOfBatches}, {2, .04, OneBatch}}
	batches := func(e Estimate) float64 { // whose mean delta is
		if e == OneBatch {
			return 1
		}
		return m
	}
	outputs := computetest.Run(t, computetest.Go(t), func(g *Graph, _ []*Node) (out []*Node) {
		standard := AddScalar(Neg(Log(random.New(g, 5).Uniform(compute.Float64, samples, m))), -1)
		for _, c := range cases {
			noise := MulScalar(standard, math.Sqrt(c.s*batches(c.estimate)))
			mean := func(difference, sign float64) *Node {
				n := c.estimate.of(AddScalar(MulScalar(noise, sign), -difference), nil, 0)
				return ReduceAllMean(Exp(MinScalar(Corrected.logRatio(n), 0)))
			}
			out = append(out, mean(c.difference, -1), mean(-c.difference, 1))
		}
		return append(out, ReduceAllMean(squaredSkewness(standard)))
	})
	for i, c := range cases {
		k, there, back, squared := batches(c.estimate), outputs[2*i][0], outputs[2*i+1][0], outputs[2*len(cases)][0]
		root := math.Sqrt(c.s)
		a := func(d float64) float64 { return cdf(-d/root-root/2) + math.Exp(-d)*cdf(d/root-root/2) }
		const h = 1e-3
		first := (a(c.difference+h) - a(c.difference-h)) / (2 * h) / a(c.difference)
		second := (a(c.difference+h) - 2*a(c.difference) + a(c.difference-h)) / (h * h) / a(c.difference)
		skewness := 2 / math.Sqrt(k)
		kappa := skewness * c.s * root
		want := kappa * (1./3 + first/2 + second/2)
		if c.estimate == OneBatch {
			want = -kappa * (1 + 3*first + 3*second) / 6
		}
		got := math.Log(there/back) + c.difference
		t.Logf("%+v: off by %.4f, by the formula %.4f, at most %.4f", c, got, want, skewBias(skewness, c.s, c.estimate))
		if math.Abs(got-want) > math.Abs(want)/3+.01 {
			t.Errorf("%+v: the log-ratio is off by %.4f, by the formula %.4f", c, got, want)
		}
		if bound := skewBias(skewness, c.s, c.estimate); math.Abs(want) > bound*1.001 && c.difference == 0 {
			t.Errorf("%+v: %.4f is more than skewBias, %.4f", c, want, bound)
		}
		if seen := deltaSkewness(squared, m, c.estimate); seen < skewness/2 || seen > skewness {
			t.Errorf("%+v: a skewness of %.3f is seen, it is %.3f", c, seen, skewness)
		}
	}
}

// Squared skewness by its definition; samples that are all the same have none.
func TestSquaredSkewness(t *testing.T) {
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		out := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
			return []*Node{squaredSkewness(ConvertDType(a[0], dtype))}
		}, [][]float64{{0, 0, 3e-9}, {1e8, 1e8, 4e8}, {5, 5, 5}, {-1, 0, 1}})
		computetest.Near(t, "squared skewness", out[0], []float64{.5, .5, 0, 0}, 1e-5) // of 0, 0, 1: m2 = 2/9, m3 = 2/27
	})
}
