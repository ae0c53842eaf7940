package random

import (
	"fmt"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

func subsets(t testing.TB, engine *compute.Engine, count, rows, size int) [][]int {
	flat := computetest.Run(t, engine, func(g *Graph, _ []*Node) []*Node {
		return []*Node{New(g, 3).Subsets(count, rows, size)}
	})[0]
	all := make([][]int, count)
	for i := range all {
		for _, v := range flat[i*size : (i+1)*size] {
			all[i] = append(all[i], int(v))
		}
	}
	return all
}

// No number stands twice in a subset, in both ways to draw and where they meet, and every backend draws the same, as
// does the host.
func TestSubsetsHaveNoDuplicates(t *testing.T) {
	for _, c := range []struct{ count, rows, size int }{
		{20, 1, 1}, {20, 5, 5}, {20, 64, 16}, {20, 64, 17}, {20, 1600, 100}, {4, 50_000, 100}, {300, 17, 1},
	} {
		var first [][]int
		for _, engine := range computetest.Engines(t) {
			got := subsets(t, engine, c.count, c.rows, c.size)
			if first == nil {
				first = got
				var all []int32
				for _, subset := range got {
					for _, v := range subset {
						all = append(all, int32(v))
					}
				}
				if host := KeyOf(3).Subsets(c.count, c.rows, c.size); !slices.Equal(host, all) {
					t.Errorf("%+v: on the host %v, in the graph %v", c, host, all)
				}
			}
			for i, subset := range got {
				if !slices.Equal(subset, first[i]) {
					t.Fatalf("%+v: subset %d is %v on %s, not %v", c, i, subset, engine.Name(), first[i])
				}
				subset = slices.Sorted(slices.Values(subset))
				if len(slices.Compact(slices.Clone(subset))) != c.size || subset[0] < 0 || subset[c.size-1] >= c.rows {
					t.Errorf("%+v on %s: subset %d is %v", c, engine.Name(), i, subset)
				}
			}
		}
	}
}

// All ordered subsets are equally likely: chi-squared over all of them, and over pairs of places in larger ones, at a
// false-alarm rate of 1e-4 each.
func TestSubsetsAreUniform(t *testing.T) {
	engine := computetest.Go(t)
	for _, c := range []struct {
		count, rows, size int
		of                [][2]int // places that are counted
	}{
		{20_000, 5, 2, [][2]int{{0, 1}}}, // sorted
		{20_000, 32, 2, [][2]int{{0, 1}}},
		{3000, 200, 50, [][2]int{{0, 49}, {48, 49}}}, // rejection, where many are drawn again; in blocks of 20 rows
	} {
		width := max(1, c.rows/10)
		if c.rows <= 32 {
			width = 1
		}
		drawn := subsets(t, engine, c.count, c.rows, c.size)
		for _, of := range c.of {
			counts := map[[2]int]float64{}
			for _, s := range drawn {
				counts[[2]int{s[of[0]] / width, s[of[1]] / width}]++
			}
			chi2, cells := 0.0, -1.0
			blocks := c.rows / width
			for a := range blocks {
				for b := range blocks {
					pairs := float64(width * width)
					if a == b {
						pairs = float64(width * (width - 1))
					}
					expected := float64(c.count) * pairs / float64(c.rows*(c.rows-1))
					if expected == 0 {
						if counts[[2]int{a, b}] > 0 {
							t.Errorf("%+v, %v: %d stands twice", c, of, a)
						}
						continue
					}
					cells++
					d := counts[[2]int{a, b}] - expected
					chi2 += d * d / expected
				}
			}
			if p := (distuv.ChiSquared{K: cells}).Survival(chi2); p < 1e-4 {
				t.Errorf("%+v, %v: chi-squared %.1f with %v degrees of freedom, p %.2g", c, of, chi2, cells, p)
			}
		}
	}
}

func TestSubsetsBadInput(t *testing.T) {
	g := NewGraph(computetest.Go(t).Backend(), "bad")
	defer g.Finalize()
	for _, c := range [][3]int{{1, 5, 6}, {1, 5, 0}, {0, 5, 1}, {1, 0, 1}} {
		if err := compute.Try(func() { New(g, 1).Subsets(c[0], c[1], c[2]) }); err == nil {
			t.Errorf("%v: no error", c)
		}
	}
}

func BenchmarkSubsets(b *testing.B) { computetest.Bench(b, benchmarkSubsets) }

func benchmarkSubsets(b *testing.B, engine *compute.Engine) {
	for _, c := range [][3]int{{10, 50_000, 100}, {5, 2000, 10}, {10, 2000, 200}, {10, 400, 20}, {1, 400, 20}} {
		b.Run(fmt.Sprintf("%dof%d/%d", c[2], c[1], c[0]), func(b *testing.B) {
			exec, err := NewExec(engine.Backend(), func(seed *Node) *Node { return FromKey(seed).Subsets(c[0], c[1], c[2]) })
			if err != nil {
				b.Fatal(err)
			}
			defer exec.Finalize()
			i := uint64(0)
			call := func() {
				i++
				out, err := exec.Call(KeyOf(i).Words())
				if err != nil {
					b.Fatal(err)
				}
				out[0].FinalizeAll() //nolint:errcheck // freeing a result
			}
			call() // compiles
			for b.Loop() {
				call()
			}
		})
	}
}
