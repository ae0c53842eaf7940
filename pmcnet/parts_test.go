package pmcnet

import (
	"syscall"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/linalg"

	. "github.com/gomlx/gomlx/core/graph"
)

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec)*1e3 + float64(u.Utime.Usec+u.Stime.Usec)/1e3
}

func BenchmarkParts(b *testing.B) {
	const m, k, d = 50, 100, 176
	engine := computetest.Engines(b)[0]
	f := func(a ...int) any {
		n := 1
		for _, v := range a {
			n *= v
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i%97)/97 - .5
		}
		return compute.Floats(compute.Float32, x, a...)
	}
	one := func(x ...*Node) []*Node {
		sum := ReduceAllSum(wide(x[0]))
		for _, v := range x[1:] {
			sum = Add(sum, ReduceAllSum(wide(v)))
		}
		return []*Node{sum}
	}
	for _, c := range []struct {
		name string
		fn   func(g *Graph, a []*Node) []*Node
		args []any
	}{
		{"nothing", func(g *Graph, a []*Node) []*Node { return one(a[0]) }, []any{f(m, k, d)}},
		{"mixture full", func(g *Graph, a []*Node) []*Node {
			q := proposals{mean: a[1], family: full{}, covariance: compute.Nodes{inverseName: a[2], logDetName: a[3]}}
			return one(q.logMixture(a[0], m))
		}, []any{f(m, k, d), f(m, d), f(m, d, d), f(m)}},
		{"mixture diagonal", func(g *Graph, a []*Node) []*Node {
			q := proposals{mean: a[1], family: diagonal{}, covariance: compute.Nodes{varianceName: AddScalar(a[1], 1)}}
			return one(q.logMixture(a[0], m))
		}, []any{f(m, k, d), f(m, d)}},
		{"distances", func(g *Graph, a []*Node) []*Node {
			return one(distances(AddScalar(a[1], 1), a[1], Reshape(a[0], 1, m*k, d)))
		}, []any{f(m, k, d), f(m, d)}},
		{"scatter", func(g *Graph, a []*Node) []*Node {
			w := Abs(a[1])
			s := newScatter(a[0], w, w, ConstAs(w, .5), ConstAs(w, .5), .5)
			return one(s.matrix())
		}, []any{f(m, k, d), f(m, k)}},
		{"cholesky", func(g *Graph, a []*Node) []*Node {
			c := linalg.Cholesky(Add(a[0], unit(a[0], m, d)))
			return one(c.Lower, c.Inverse)
		}, []any{f(m, d, d)}},
		{"exponents", func(g *Graph, a []*Node) []*Node { return one(exponents(wide(a[0]), 500)) }, []any{f(1, m*k)}},
		{"draw", func(g *Graph, a []*Node) []*Node {
			return one(full{}.spread(compute.Nodes{lowerName: a[1]}, a[0]))
		}, []any{f(m, k, d), f(m, d, d)}},
		{"gather", func(g *Graph, a []*Node) []*Node {
			return one(Gather(a[0], ExpandAxes(ConvertDType(MulScalar(a[1], 10), 3), -1)))
		}, []any{f(m, d, d), f(m)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			run := computetest.Compile(b, engine, c.fn)
			before := cpu()
			run(c.args...)
			b.ReportMetric(cpu()-before, "compile-cpu-ms")
			before = cpu()
			for b.Loop() {
				run(c.args...)
			}
			b.ReportMetric((cpu()-before)/float64(b.N), "cpu-ms/op")
		})
	}
}
