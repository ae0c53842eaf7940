package smc

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

func TestLogWeights(t *testing.T) {
	inf := math.Inf(1)
	w, err := bayes.NewLogWeights([]float64{math.Log(1) + 700, math.Log(3) + 700, math.NaN(), -inf, inf})
	if err != nil {
		t.Fatal(err)
	}
	computetest.Near(t, "weights", w.Weights(), []float64{.25, .75, 0, 0, 0}, 1e-12)
	if got, want := w.EffectiveSampleSize(), 1/(.25*.25+.75*.75); math.Abs(got-want) > 1e-12 {
		t.Errorf("ESS = %v, want %v", got, want)
	}
	given := []float64{0, 0}
	w, _ = bayes.NewLogWeights(given)
	given[0] = -inf
	if w[0] != math.Log(.5) {
		t.Error("log-weights changed with the slice that they were made from")
	}
	for _, bad := range [][]float64{{}, {-inf, -inf}, {math.NaN(), -inf}} {
		_, err := bayes.NewLogWeights(bad)
		if !errors.Is(err, bayes.ErrZeroWeights) || !strings.Contains(err.Error(), fmt.Sprint(len(bad))) {
			t.Errorf("NewLogWeights(%v): error %v", bad, err)
		}
	}
}

func TestGraphWeights(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		inf := math.Inf(1)
		out := computetest.Run(t, engine, func(_ *Graph, args []*Node) []*Node {
			logWeights := compute.Gate(ConvertDType(args[0], dtype))
			normalised, sum := Normalise(logWeights)
			dead, deadSum := Normalise(compute.Gate(ConvertDType(args[1], dtype)))
			return []*Node{Exp(normalised), sum, EffectiveSampleSize(normalised), Exp(dead), deadSum}
		}, []float64{80, 80 + math.Log(3), math.NaN(), inf, -inf}, []float64{-inf, math.NaN()})
		computetest.Near(t, "weights", out[0], []float64{.25, .75, 0, 0, 0}, 1e-5)
		computetest.Near(t, "log-sum", out[1], []float64{80 + math.Log(4)}, 1e-5)
		computetest.Near(t, "ESS", out[2], []float64{1.6}, 1e-5)
		computetest.Near(t, "dead weights", out[3], []float64{0, 0}, 0)
		if !math.IsInf(out[4][0], -1) {
			t.Errorf("log-sum of no weights = %v, want -Inf", out[4][0])
		}
	})
}

// The local scale is a Gaussian's standard deviation given the other coordinates, and the width of one of two modes,
// however far apart they lie. Where the density is flat, or its gradient beyond all numbers, it stays a scale.
func TestLocalScale(t *testing.T) {
	const n, rho, width, apart = 4000, .8, .02, 3
	rng := rand.New(rand.NewPCG(1, 2))
	var gradients []float64
	for range n {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		b = rho*a + math.Sqrt(1-rho*rho)*b
		gradients = append(gradients, -(a-rho*b)/(1-rho*rho), -(b-rho*a)/(1-rho*rho), rng.NormFloat64()/width, 0, 1e30)
	}
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		out := computetest.Run(t, engine, func(_ *Graph, args []*Node) []*Node {
			all := Reshape(ConvertDType(args[1], dtype), n, 5)
			return []*Node{localScale(ConvertDType(args[0], dtype), all)}
		}, []float64{1, 1, apart, 2, 1}, gradients)[0]
		given := math.Sqrt(1 - rho*rho)
		for i, want := range []float64{given, given, width, 2} {
			if math.Abs(out[i]/want-1) > .05 { // four standard errors of a mean of 4000
				t.Errorf("scale %d is %.4g, want %.4g", i, out[i], want)
			}
		}
		if !(out[4] > 0 && out[4] < 1e-29) {
			t.Errorf("the scale of gradients of 1e30 is %v", out[4])
		}
	})
}

var schemes = []Resampler{Multinomial, Stratified}

// resampled is what each scheme has drawn, again and again: how often each particle.
type resampled map[Resampler][][]float64

// resampler gives a function that draws so many ancestors of weights by every scheme, a number of times.
func resampler(t *testing.T, engine *compute.Engine, draws int) func(weights []float64, times int) resampled {
	exec := MustNewExec(engine.Backend(), func(w, step *Node) (all []*Node) {
		for i, scheme := range schemes {
			all = append(all, scheme.Draw(w, draws, random.New(w.Graph(), uint64(7+i)).At(step)))
		}
		return all
	})
	t.Cleanup(exec.Finalize)
	return func(weights []float64, times int) resampled {
		n := len(weights)
		logWeights := make([]float64, n)
		for i, w := range weights {
			logWeights[i] = math.Log(w)
		}
		counts := resampled{}
		for time := range times {
			for i, drawn := range exec.MustCall(logWeights, uint32(time)) {
				scheme, count := schemes[i], make([]float64, n)
				ancestors := tensors.MustCopyFlatData[int32](drawn)
				if len(ancestors) != draws {
					t.Fatalf("%s: %d ancestors, want %d", scheme, len(ancestors), draws)
				}
				for k, a := range ancestors {
					if a < 0 || int(a) >= n {
						t.Fatalf("%s: ancestor %d of %d", scheme, a, n)
					}
					if k > 0 && a < ancestors[k-1] {
						t.Fatalf("%s: ancestors do not ascend: %v", scheme, ancestors)
					}
					count[a]++
				}
				counts[scheme] = append(counts[scheme], count)
			}
		}
		return counts
	}
}

var unequal = []float64{.3, 0, .05, .2, .01, .14, .1, .2}

// Every scheme draws particle j J w_j times in the mean, and never one of weight 0. The tolerance is 4.5 standard
// errors: at 8 particles and 4 schemes a correct scheme fails with probability 2e-4, and the seed is fixed. The
// spread of a count obeys the scheme's bound: multinomial exactly J w (1 - w), the others within one of J w.
func TestUnbiased(t *testing.T) {
	const times = 400
	for i, draws := range []int{len(unequal), 3, 13} { // as many as there are particles, fewer (waste-free) and more
		engine := computetest.Go(t)
		if i == 0 {
			engine = computetest.Engines(t)[0]
		}
		n := float64(draws)
		for scheme, counts := range resampler(t, engine, draws)(unequal, times) {
			for j, w := range unequal {
				column := make([]float64, times)
				for i := range counts {
					column[i] = counts[i][j]
				}
				mean, variance := stat.MeanVariance(column, nil)
				if w == 0 && mean != 0 {
					t.Errorf("%s: a particle of weight 0 was drawn", scheme)
				}
				multinomial := n * w * (1 - w)
				if math.Abs(mean-n*w) > 4.5*math.Sqrt(multinomial/times)+1e-12 {
					t.Errorf("%s: particle %d drawn %.3f times, want %.3f", scheme, j, mean, n*w)
				}
				if scheme == Multinomial && multinomial > .25 && (variance < .7*multinomial || variance > 1.35*multinomial) {
					t.Errorf("multinomial: variance of count %d is %.3f, want %.3f", j, variance, multinomial)
				}
				for _, c := range column {
					if scheme == Stratified && math.Abs(c-n*w) >= 2 {
						t.Errorf("%s: particle %d drawn %v times, but J w = %.3f", scheme, j, c, n*w)
						break
					}
				}
			}
		}
	}
}

func TestResampleExtremes(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		resample := resampler(t, engine, 5)
		for scheme, counts := range resample([]float64{0, 0, 1, 0, 0}, 3) {
			for _, c := range counts {
				if c[2] != 5 {
					t.Errorf("%s on %s: one particle has all the weight, but counts are %v", scheme, engine.Name(), c)
				}
			}
		}
	}
}

func TestSelectAndUnique(t *testing.T) {
	engine := computetest.Engines(t)[0]
	out := computetest.Run(t, engine, func(_ *Graph, args []*Node) []*Node {
		return []*Node{Select(args[0], args[1]), UniqueAncestors(args[1], dtypes.Float32)}
	}, [][]float32{{1, 2}, {3, 4}, {5, 6}}, []int32{0, 2, 2})
	computetest.Near(t, "selected", out[0], []float64{1, 2, 5, 6, 5, 6}, 0)
	computetest.Near(t, "unique", out[1], []float64{2}, 0)
}
