package bayes_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// sigmoidsBetween is sigmoid(a) - sigmoid(b) for a > b; where both are near 1 it is taken from their other sides.
func sigmoidsBetween(a, b float64) float64 {
	if b > 0 {
		a, b = -b, -a
	}
	return sigmoid(a) - sigmoid(b)
}

// cutsOf are the cut points of an Ordinal with the parameter t, between an infinite one on either side: [C+1].
func cutsOf(t []float64) []float64 {
	classes := float64(len(t) + 1)
	even := func(k int) float64 { return math.Log(float64(k+1) / (classes - float64(k+1))) } // logit((k+1)/C)
	cuts := []float64{math.Inf(-1)}
	for k, v := range t {
		if k == 0 {
			cuts = append(cuts, even(0)+v)
			continue
		}
		cuts = append(cuts, cuts[k]+(even(k)-even(k-1))*math.Exp(v))
	}
	return append(cuts, math.Inf(1))
}

// The density and its gradients by the output and by the cut points' parameter are those of differences of sigmoids,
// also where all but one class have next to no probability, or two cuts are next to each other; in float32 they are
// finite there. So is the information, the variance of the gradient.
func TestOrdinal(t *testing.T) {
	for _, own := range [][]float64{{0}, {.4}, {0, 0, 0}, {-1.2, .5, -.8}, {3, -14, 2}, {-30, 4, -12, 1}} {
		cuts := cutsOf(own)
		classes := len(own) + 1
		var f, y, density, byOutput, information []float64
		byOwn := make([]float64, len(own))
		for _, output := range []float64{-50, -7, 0, .6, 50} {
			variance := 0.
			for class := range classes {
				at, below := cuts[class+1]-output, cuts[class]-output
				slope := sigmoid(at) - sigmoid(-below) // d log P / df, exact where P is
				p := sigmoidsBetween(at, below)
				variance += p * slope * slope
				f, y = append(f, output), append(y, float64(class))
				density, byOutput = append(density, math.Log(p)), append(byOutput, slope)
				for k := range own {
					const h = 1e-5
					for _, sign := range []float64{1, -1} {
						moved := slices.Clone(own)
						moved[k] += sign * h
						law := bayes.Ordinal{}.Predictive([]float64{output}, moved, 0)
						byOwn[k] += sign * law.LogProb(float64(class)) / (2 * h)
					}
				}
			}
			for range classes {
				information = append(information, variance)
			}
			law := bayes.Ordinal{}.Predictive([]float64{output}, own, 0)
			for class := range classes {
				name := fmt.Sprintf("t %v, f %v, class %d", own, output, class)
				computetest.Near(t, name+": Predictive", []float64{law.LogProb(float64(class)), law.CDF(float64(class))},
					[]float64{density[len(density)-classes+class], sigmoid(cuts[class+1] - output)}, 1e-7)
			}
		}
		for dtype, tolerance := range map[compute.DType]float64{compute.Float64: 1e-6, compute.Float32: 2e-5} {
			got := computetest.Run(t, computetest.Go(t), func(_ *graph.Graph, in []*graph.Node) []*graph.Node {
				params := nn.Params{"noise/cuts": nn.Value{Node: in[1]}}
				logs := bayes.Ordinal{}.LogDensity(params, nn.Value{Node: in[0]}, in[2])
				gradients := graph.Gradient(graph.ReduceAllSum(logs), in[0], in[1])
				return []*graph.Node{logs, gradients[0], gradients[1],
					bayes.Ordinal{}.Information(params, nn.Value{Node: in[0]})}
			}, compute.Floats(dtype, f, 1, len(f)), compute.Floats(dtype, own, len(own)), compute.Floats(dtype, y, 1, len(y)))
			for i, want := range [][]float64{density, byOutput, byOwn, information} {
				name := []string{"density", "gradient by f", "gradient by t", "information"}[i]
				computetest.Near(t, fmt.Sprintf("t %v, %s: %s", own, dtype, name), got[i], want, tolerance)
			}
			if slices.Min(got[3]) < 0 { // its root is taken
				t.Errorf("t %v, %s: the information %v is negative", own, dtype, slices.Min(got[3]))
			}
		}
	}
}

// With t = 0 and f = 0 all classes have the same probability.
func TestOrdinalStartsEven(t *testing.T) {
	for _, classes := range []int{2, 3, 10} {
		own := make([]float64, bayes.Ordinal{}.Parameters(classes)[0].Size())
		law := bayes.Ordinal{}.Predictive([]float64{0}, own, 0)
		for class := range classes {
			computetest.Near(t, fmt.Sprintf("class %d of %d", class, classes), []float64{math.Exp(law.LogProb(float64(class)))},
				[]float64{1 / float64(classes)}, 1e-14)
		}
	}
}
