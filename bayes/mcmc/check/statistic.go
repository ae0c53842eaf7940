package check

import (
	"math"
	"slices"

	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// zTest is the statistic and the two-sided p-value for values whose mean should be want: Student's, which for thousands
// is the normal's.
func zTest(values []float64, want float64) (statistic, p float64) {
	n := float64(len(values))
	mean, sd := stat.MeanStdDev(values, nil)
	if sd == 0 && mean == want {
		return 0, 1
	}
	z := (mean - want) / (sd / math.Sqrt(n))
	if math.IsNaN(z) {
		return z, 0
	}
	return z, 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(math.Abs(z))
}

// meanTest is for the mean of standard normals, and varianceTest for their variance: both exact.
func meanTest(normals []float64) (statistic, p float64) {
	z := stat.Mean(normals, nil) * math.Sqrt(float64(len(normals)))
	return z, 2 * distuv.UnitNormal.Survival(math.Abs(z))
}

func varianceTest(normals []float64) (statistic, p float64) {
	squares := floats.Dot(normals, normals)
	n := float64(len(normals))
	distribution := distuv.ChiSquared{K: n}
	return squares / n, 2 * min(distribution.CDF(squares), distribution.Survival(squares))
}

// uniformTest is the statistic of Kolmogorov and Smirnov for draws that should be uniform on (0, 1).
func uniformTest(draws []float64) (statistic, p float64) {
	statistic = stats.Kolmogorov(draws, func(u float64) float64 { return u })
	return statistic, stats.KolmogorovP(statistic, float64(len(draws)))
}

// sameTest is the statistic of Kolmogorov and Smirnov for two samples that should have one distribution.
func sameTest(a, b []float64) (statistic, p float64) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	statistic = stat.KolmogorovSmirnov(a, nil, b, nil)
	n, m := float64(len(a)), float64(len(b))
	return statistic, stats.KolmogorovP(statistic, n*m/(n+m))
}

// rankTest is Pearson's chi-square for ranks, each of 0 to top, that should be uniform. Neighbouring ranks are pooled
// into at most 20 bins.
func rankTest(ranks []int, top int) (statistic, p float64) {
	bins := min(20, top+1, max(2, len(ranks)/20))
	counts, expected := make([]float64, bins), make([]float64, bins)
	for r := range top + 1 {
		expected[r*bins/(top+1)] += float64(len(ranks)) / float64(top+1)
	}
	for _, r := range ranks {
		counts[r*bins/(top+1)]++
	}
	statistic = stat.ChiSquare(counts, expected)
	return statistic, distuv.ChiSquared{K: float64(bins - 1)}.Survival(statistic)
}

// score is the standard normal quantile of a uniform, finite at 0 and 1 too.
func score(u float64) float64 {
	const least = 1e-12
	if math.IsNaN(u) {
		u = 1
	}
	return distuv.UnitNormal.Quantile(min(1-least, max(least, u)))
}
