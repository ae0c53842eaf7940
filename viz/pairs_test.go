package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/viz"
)

// The correlation is that of the weighted draws, and draws that are not finite are left out of it.
func TestPairsWeights(t *testing.T) {
	one, other := []float64{0, 1, 0, 1, math.NaN()}, []float64{0, 1, 1, 0, 5}
	rising, err := bayes.NewLogWeights([]float64{0, 0, math.Inf(-1), math.Inf(-1), 0})
	if err != nil {
		t.Fatal(err)
	}
	// A correlation that rounds to 0 has no sign.
	fig, err := viz.Pairs([]string{"a", "b"}, [][]float64{{-1, -1, 1, 1}, {-1, 1, -1, .999}}, viz.PairsOptions{})
	if svg := svgOf(t, fig, err); !strings.Contains(svg, ">0.00<") || strings.Contains(svg, ">−0.00<") {
		t.Error("a correlation of −0.0002 is not 0.00")
	}
	for want, w := range map[string]bayes.LogWeights{">0.00<": {}, ">1.00<": rising} {
		fig, err := viz.Pairs([]string{"one", "other"}, [][]float64{one, other}, viz.PairsOptions{Weights: w})
		if svg := svgOf(t, fig, err); !strings.Contains(svg, want) || !strings.Contains(svg, "1 non-finite value left out") {
			t.Errorf("weights %v: no %q, or no word of the draw that is not finite", w.Weights(), want)
		}
	}
}
