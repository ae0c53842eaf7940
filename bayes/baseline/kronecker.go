package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// kroneckerFactor is the curvature of one dense layer of a network by KFAC (Martens and Grosse 2015; Ritter, Botev and
// Barber 2018). The layer's parameters form a matrix with a row for each output and a column for each input; the last
// column holds the biases. Their block of the curvature is G kron A + p I.
type kroneckerFactor struct {
	Out, In         int // of the matrix; In is the number of the weights' inputs plus one for the biases
	Weights, Biases int // first coordinates in theta, the weights row by row; -1: not in theta
	Precision       float64
	// A, [In, In], are the inputs' second moments, and G, [Out, Out], the outputs' curvature.
	Inputs, Outputs *mat.SymDense
}

// kroneckerEigen holds a factor's eigenvectors, of G and of A, and the eigenvalues u_o v_i + p of its block, [Out, In]
// row by row.
type kroneckerEigen struct {
	kroneckerFactor
	left, right mat.Dense
	values      []float64
}

// eigen decomposes the factor; eigenvalues of G and A that rounding has made negative are 0.
func (f kroneckerFactor) eigen() (*kroneckerEigen, error) {
	e := &kroneckerEigen{kroneckerFactor: f}
	var outputs, inputs mat.EigenSym
	for _, of := range []struct {
		m     *mat.SymDense
		eigen *mat.EigenSym
	}{{f.Outputs, &outputs}, {f.Inputs, &inputs}} {
		infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
		if slices.ContainsFunc(of.m.RawSymmetric().Data, infinite) || !of.eigen.Factorize(of.m, true) {
			return nil, fmt.Errorf("a Kronecker factor of %d rows has no eigenvalues in floating point: it is not finite",
				of.m.SymmetricDim())
		}
	}
	outputs.VectorsTo(&e.left)
	inputs.VectorsTo(&e.right)
	for _, u := range outputs.Values(nil) {
		for _, v := range inputs.Values(nil) {
			e.values = append(e.values, math.Max(u, 0)*math.Max(v, 0)+f.Precision)
		}
	}
	return e, nil
}

// at is the coordinate in theta of an entry of the matrix.
func (f kroneckerFactor) at(out, in int) int {
	inputs := f.In
	if f.Biases >= 0 {
		inputs--
	}
	if in < inputs {
		return f.Weights + out*inputs + in
	}
	return f.Biases + out
}

// kroneckerSampler draws phi, [D], around a mode: for each block the mode plus U Y V', where Y has independent normals
// whose variances are the inverse eigenvalues of the precision.
func kroneckerSampler(factors []kroneckerFactor) (drawer, error) {
	all := make([]*kroneckerEigen, len(factors))
	for i, f := range factors {
		var err error
		if all[i], err = f.eigen(); err != nil {
			return nil, fmt.Errorf("baseline: Laplace: %w", err)
		}
	}
	return func(mode []float64, rng *rand.Rand) []float64 {
		phi := slices.Clone(mode)
		for _, e := range all {
			y := mat.NewDense(e.Out, e.In, nil)
			for k, value := range e.values {
				y.Set(k/e.In, k%e.In, rng.NormFloat64()/math.Sqrt(value))
			}
			var rotated mat.Dense
			rotated.Product(&e.left, y, e.right.T())
			for o := range e.Out {
				for i := range e.In {
					phi[e.at(o, i)] += rotated.At(o, i)
				}
			}
		}
		return phi
	}, nil
}
