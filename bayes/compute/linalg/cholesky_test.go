package linalg_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/linalg"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// matrices are M random ones, flat [M, D, D], positive definite with eigenvalues of about 1 to 4.
func matrices(m, d int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 5))
	out := make([]float64, 0, m*d*d)
	for range m {
		x := mat.NewDense(d, d, nil)
		for i := range d {
			for k := range d {
				x.Set(i, k, r.NormFloat64()/math.Sqrt(float64(d)))
			}
		}
		var a mat.Dense
		a.Mul(x, x.T())
		for i := range d {
			for k := range d {
				v := a.At(i, k)
				if i == k {
					v++
				}
				out = append(out, v)
			}
		}
	}
	return out
}

// factors runs Cholesky: lower, inverse, log-determinant and whether definite.
func factors(_ *graph.Graph, args []*graph.Node) []*graph.Node {
	f := linalg.Cholesky(args[0])
	return []*graph.Node{f.Lower, f.Inverse, f.LogDet, f.Definite}
}

// Factors, inverses and log-determinants are gonum's, in one block, in two and in many. XLA compiles one size of each.
func TestCholesky(t *testing.T) {
	tolerance := map[compute.DType]float64{compute.Float32: 2e-5, compute.Float64: 1e-12}
	for _, d := range []int{1, 2, 9, 12, 13, 24, 25, 61} {
		computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
			if engine.IsXLA() && d != 12 && d != 13 && d != 61 {
				return
			}
			const m = 3
			a := matrices(m, d, 7)
			got := computetest.Run(t, engine, factors, compute.Floats(dtype, a, m, d, d))
			var want [4][]float64
			for k := range m {
				var c mat.Cholesky
				if !c.Factorize(mat.NewSymDense(d, a[k*d*d:(k+1)*d*d])) {
					t.Fatal("this tests nothing: the matrix is not definite")
				}
				lower := mat.NewTriDense(d, mat.Lower, nil)
				c.LTo(lower)
				inverse := mat.NewTriDense(d, mat.Lower, nil)
				if err := inverse.InverseTri(lower); err != nil {
					t.Fatal(err)
				}
				for i := range d {
					for j := range d {
						want[0], want[1] = append(want[0], lower.At(i, j)), append(want[1], inverse.At(i, j))
					}
				}
				want[2], want[3] = append(want[2], c.LogDet()), append(want[3], 1)
			}
			for i, what := range []string{"lower", "inverse", "log det", "definite"} {
				computetest.Near(t, what, got[i], want[i], tolerance[dtype])
			}
		})
	}
}

// Only the lower triangle counts. Matrices that are indefinite, singular, of rank below D, with NaN or Inf anywhere are
// flagged, have the factors of the identity, and leave the one between them to the same bits.
func TestNotDefinite(t *testing.T) {
	const d = 20
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		good := matrices(1, d, 3)
		with := func(i, j int, v float64) []float64 {
			a := append([]float64(nil), good...)
			a[i*d+j], a[j*d+i] = v, v
			return a
		}
		thin := make([]float64, d*d) // rank 5
		r := rand.New(rand.NewPCG(1, 1))
		for range 5 {
			x := make([]float64, d)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			for i := range d {
				for j := range d {
					thin[i*d+j] += x[i] * x[j]
				}
			}
		}
		upper := append([]float64(nil), good...)
		for i := range d {
			for j := i + 1; j < d; j++ {
				upper[i*d+j] = math.NaN()
			}
		}
		all := append([]float64(nil), good...)
		bad := [][]float64{
			with(0, 0, -1), with(d-1, d-1, -1), with(3, 13, 5), with(11, 11, math.NaN()), with(19, 1, math.NaN()),
			with(2, 2, math.Inf(1)), with(5, 4, math.Inf(-1)), thin, make([]float64, d*d),
		}
		for _, a := range bad {
			all = append(append(all, a...), good...)
		}
		all = append(all, upper...)
		count := len(all) / d / d
		run := computetest.Compile(t, engine, factors)
		alone := run(compute.Floats(dtype, slices.Repeat(good, count), count, d, d))
		got := run(compute.Floats(dtype, all, count, d, d))
		for k := range count {
			definite := k%2 == 0 || k == count-1
			if (got[3][k] == 1) != definite {
				t.Errorf("matrix %d: definite is %v", k, got[3][k])
			}
			for part := range 2 {
				for i := range d * d {
					v, want := got[part][k*d*d+i], alone[part][i]
					if !definite {
						want = 0
						if i%(d+1) == 0 {
							want = 1
						}
					}
					if math.Abs(v-want) > 1e-6 || math.IsNaN(v) {
						t.Fatalf("matrix %d, part %d: element %d is %v, want %v", k, part, i, v, want)
					}
				}
			}
			if want := alone[2][0]; !definite && got[2][k] != 0 || definite && math.Abs(got[2][k]-want) > 1e-4 {
				t.Errorf("matrix %d: log det %v, want %v where definite", k, got[2][k], want)
			}
		}
	})
}

// BenchmarkCholesky factorises 50 matrices of 176 rows, as PMCnet's iteration on a network 33-5-1 does, and inverts
// their factors.
func BenchmarkCholesky(b *testing.B) {
	const m, d = 50, 176
	computetest.Bench(b, func(b *testing.B, engine *compute.Engine) {
		run := computetest.Compile(b, engine, func(_ *graph.Graph, args []*graph.Node) []*graph.Node {
			f := linalg.Cholesky(args[0])
			return []*graph.Node{graph.ReduceAllSum(f.Inverse), graph.ReduceAllSum(f.LogDet)}
		})
		a := compute.Floats(compute.Float32, matrices(m, d, 1), m, d, d)
		run(a)
		for b.Loop() {
			run(a)
		}
	})
}
