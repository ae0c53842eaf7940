package pbnn

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// delta, sigma^2 and the log-ratios, worked out by gonum from the same differences.
func TestEstimates(t *testing.T) {
	differences := [][]float64{{1, 2.5, -.5, 3}, {-.2, -.2, -.3, .1}} // of the log-posterior
	within := []float64{.8, 0}
	const degrees = 20
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		for _, e := range []Estimate{MeanOfBatches, OneBatch, WithinBatches} {
			var delta, variance []float64
			f := 0.0
			for j, d := range differences {
				losses := make([]float64, len(d))
				for i := range d {
					losses[i] = -d[i]
				}
				mean, v := stat.MeanVariance(losses, nil)
				switch e {
				case MeanOfBatches:
					delta, variance, f = append(delta, mean), append(variance, v/4), 3
				case OneBatch:
					delta, variance, f = append(delta, losses[0]), append(variance, stat.Variance(losses[1:], nil)), 2
				case WithinBatches:
					delta, variance, f = append(delta, mean), append(variance, within[j]/4), degrees
				}
			}
			out := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
				n := e.of(ConvertDType(a[0], dtype), ConvertDType(a[1], dtype), degrees)
				if n.degrees != f {
					t.Errorf("%s: %v degrees of freedom, want %v", e, n.degrees, f)
				}
				return []*Node{n.delta, n.variance, Naive.logRatio(n), Penalty.logRatio(n), Corrected.logRatio(n)}
			}, differences, within)
			want := [][]float64{delta, variance, nil, nil, nil}
			for j, d := range delta {
				s := variance[j]
				want[2] = append(want[2], -d)
				want[3] = append(want[3], -d-s/2)
				want[4] = append(want[4], -d-s/2-s*s/(4*(f+2))-s*s*s/(3*(f+2)*(f+4)))
			}
			for i, name := range []string{"delta", "variance", "naive", "penalty", "corrected"} {
				computetest.Near(t, fmt.Sprintf("%s: %s", e, name), out[i], want[i], 1e-6)
			}
		}
	})
}

// The corrected penalty's mean of exp(-u) over the distribution of an estimated variance is exp(-sigma^2/2), to the
// order of what its series leaves out: sigma^8/f^3. That of the plain penalty is off by sigma^4/(4 f). A quadrature
// over the quantiles of chi-squared.
func TestCorrectionIsUnbiased(t *testing.T) {
	engine := computetest.Go(t)
	const points = 20_000
	for _, c := range []struct{ sigma2, f float64 }{{.2, 4}, {.5, 9}, {1, 9}, {1, 19}, {2, 49}} {
		chi := distuv.ChiSquared{K: c.f}
		s, zeros := make([]float64, points), make([]float64, points)
		for i := range s {
			s[i] = c.sigma2 * chi.Quantile((float64(i)+.5)/points) / c.f
		}
		out := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
			n := noisyDifference{delta: a[1], variance: a[0], degrees: c.f}
			return []*Node{ReduceAllMean(Exp(Corrected.logRatio(n))), ReduceAllMean(Exp(Penalty.logRatio(n)))}
		}, s, zeros)
		want := math.Exp(-c.sigma2 / 2)
		corrected, plain := out[0][0]/want-1, out[1][0]/want-1
		if left := math.Pow(c.sigma2, 4) / math.Pow(c.f, 3); math.Abs(corrected) > left+1e-5 {
			t.Errorf("%+v: corrected penalty off by %.2g of itself, want below %.2g", c, corrected, left)
		}
		if first := c.sigma2 * c.sigma2 / (4 * c.f); plain < first/2 || plain > 2*first {
			t.Errorf("%+v: plain penalty off by %.2g of itself, want about %.2g", c, plain, first)
		}
	}
}

// Detailed balance on average (eq. 15): a proposal and its way back, with loss differences Delta and -Delta seen with
// noise of variance sigma^2, are accepted in the ratio exp(-Delta), by a quadrature over the noise.
func TestBalanceOnAverage(t *testing.T) {
	engine := computetest.Go(t)
	const points = 20_000
	for _, c := range []struct{ difference, sigma2 float64 }{{.7, .5}, {-1.3, 2}, {2, 4}} {
		z := make([]float64, points)
		for i := range z {
			z[i] = math.Sqrt(c.sigma2) * distuv.UnitNormal.Quantile((float64(i)+.5)/points)
		}
		accepted := func(difference float64) float64 {
			return computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
				n := noisyDifference{delta: AddScalar(a[0], difference), variance: MulScalar(OnesLike(a[0]), c.sigma2)}
				return []*Node{ReduceAllMean(Exp(MinScalar(Penalty.logRatio(n), 0)))}
			}, z)[0][0]
		}
		if got, want := math.Log(accepted(c.difference)/accepted(-c.difference)), -c.difference; math.Abs(got-want) > 2e-3 {
			t.Errorf("%+v: log-ratio of the acceptances %.4f, want %.4f", c, got, want)
		}
	}
}

func TestEstimateBadInput(t *testing.T) {
	for _, c := range []struct {
		e             Estimate
		batches, size int
		words         string // empty: no error
	}{
		{MeanOfBatches, 1, 10, "Batches is 1: one mini-batch has no variance"}, {MeanOfBatches, 2, 1, ""},
		{OneBatch, 2, 10, "Batches is 2: OneBatch takes the variance from"}, {OneBatch, 3, 1, ""},
		{WithinBatches, 1, 1, "BatchSize is 1: one row has no variance"}, {WithinBatches, 1, 2, ""},
	} {
		if err := c.e.check(c.batches, c.size); err != nil || c.words != "" {
			computetest.WantError(t, string(c.e), err, cmp.Or(c.words, "no error is wanted"))
		}
	}
}
