package pbnn

import (
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// The penalty is right for Gaussian noise. Let the losses at theta' and theta differ by D. The logarithm of the mean
// acceptance of a random walk's step, divided by that of the reverse step, should then be -D. If delta has a third
// cumulant kappa, it is, to first order in kappa,
//
//	-D + kappa (1/3 + A'/(2A) + A''/(2A))
//	-D - kappa (1 + 3 A'/A + 3 A''/A)/6       where s comes from other mini-batches than delta (OneBatch)
//
// where A(D) = Phi(-D/sqrt(s) - sqrt(s)/2) + exp(-D) Phi(D/sqrt(s) - sqrt(s)/2) is the mean acceptance with Gaussian
// noise of variance s. The term is kappa/3 or -kappa/6 for D far from 0; at D = 0 A'/A is -1/2 and A''/A is 1/2 -
// phi(sqrt(s)/2)/(2 sqrt(s) Phi(-sqrt(s)/2)). It holds for kappa much smaller than s^(3/2). The derivation is in
// derivations.md.

// skewBias is the absolute value of the term with kappa, at D = 0 or far from it, whichever is larger, for a delta of
// variance s and the given skewness, kappa = skewness s^(3/2).
func skewBias(skewness, s float64, e Estimate) float64 {
	if s == 0 {
		return 0
	}
	root := math.Sqrt(s)
	hazard := distuv.UnitNormal.Prob(root/2) / distuv.UnitNormal.CDF(-root/2) / root
	far, near := 1./3, 1./3-hazard/4
	if e == OneBatch {
		far, near = -1./6, -(1-1.5*hazard)/6
	}
	return math.Abs(skewness) * s * root * math.Max(math.Abs(far), math.Abs(near))
}

// skewnessName is the entry of mcmc.Info.Extra that holds squaredSkewness.
const skewnessName = "squared skewness"

// squaredSkewness is m3^2/m2^3 of each row, m being central moments over the M entries, [J, M] to [J]; 0 where all
// entries are the same; nil for M < 3.
func squaredSkewness(x *graph.Node) *graph.Node {
	m := float64(x.Shape().Dim(1))
	if m < 3 {
		return nil
	}
	mean := graph.DivScalar(compute.RowSums(x), m)
	deviations := graph.Sub(x, graph.BroadcastToShape(graph.ExpandAxes(mean, 1), x.Shape()))
	squares := graph.Square(deviations)
	// scaled by the largest, so that powers neither overflow nor vanish
	largest := graph.ReduceMax(squares, 1)
	usable := graph.GreaterThan(largest, graph.ZerosLike(largest))
	scale := graph.Where(usable, largest, graph.OnesLike(largest))
	unit := graph.Div(deviations, graph.BroadcastToShape(graph.ExpandAxes(graph.Sqrt(scale), 1), x.Shape()))
	second := graph.DivScalar(compute.RowSums(graph.Square(unit)), m)
	third := graph.DivScalar(compute.RowSums(graph.Mul(graph.Square(unit), unit)), m)
	cube := graph.Mul(graph.Square(second), second)
	cube = graph.Where(usable, cube, graph.OnesLike(cube))
	return graph.Where(usable, graph.Div(graph.Square(third), cube), graph.ZerosLike(cube))
}

// deltaSkewness estimates the skewness of delta from the mean squared skewness of samples of m differences. Gaussian
// samples have 6(m-2)/((m+1)(m+3)) (Fisher 1930), which is subtracted; the mean of m differences has 1/sqrt(m) of the
// skewness of one. Since a sample's skewness is at most (m-2)/sqrt(m-1), a small m underestimates a strong one.
func deltaSkewness(squared float64, m int, e Estimate) float64 {
	if m < 3 {
		return 0
	}
	k := float64(m)
	excess := math.Max(0, squared-6*(k-2)/((k+1)*(k+3)))
	if e != OneBatch {
		excess /= k
	}
	return math.Sqrt(excess)
}
