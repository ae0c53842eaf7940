package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/mat"
)

// kroneckerSampler draws phi, [D], around a mode: for each block the mode plus U Y V', where Y has independent normals
// whose variances are the inverse eigenvalues of the precision.
func kroneckerSampler(factors []mcmc.KroneckerFactor) (drawer, error) {
	all := make([]mcmc.KroneckerEigen, len(factors))
	for i, f := range factors {
		var err error
		if all[i], err = f.Eigen(); err != nil {
			return nil, fmt.Errorf("baseline: Laplace: %w", err)
		}
	}
	return func(mode []float64, rng *rand.Rand) []float64 {
		phi := slices.Clone(mode)
		for _, e := range all {
			y := mat.NewDense(e.Out, e.In, nil)
			for k, value := range e.Values {
				y.Set(k/e.In, k%e.In, rng.NormFloat64()/math.Sqrt(value))
			}
			e.AddTo(phi, e.Rotate(y))
		}
		return phi
	}, nil
}
