package metric_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes/metric"
)

// Two diagrams pooled are the diagram of all rows.
func TestPoolBins(t *testing.T) {
	p, y := draw(world{seed: 4, rows: 60, classes: 3}, 20, 0)
	want, err := metric.ReliabilityDiagram(p, y, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []metric.Bin
	for _, cut := range [][2]int{{0, 25}, {25, 27}, {27, 60}} {
		bins, err := metric.ReliabilityDiagram(rowsOf(p, cut[0], cut[1]), y[cut[0]:cut[1]], 10)
		if err != nil {
			t.Fatal(err)
		}
		if got, err = metric.PoolBins(got, bins); err != nil {
			t.Fatal(err)
		}
	}
	same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
	for i, b := range got {
		if w := want[i]; b.Count != w.Count || b.Lower != w.Lower || !same(b.Confidence, w.Confidence) ||
			!same(b.Accuracy, w.Accuracy) {
			t.Errorf("bin %d: pooled %+v, of all rows %+v", i, b, w)
		}
	}
}

func TestPoolBinsOfDifferentDiagrams(t *testing.T) {
	two, three := []metric.Bin{{Upper: .5}, {Lower: .5, Upper: 1}}, make([]metric.Bin, 3)
	other := []metric.Bin{{Upper: .4}, {Lower: .4, Upper: 1}}
	for _, c := range []struct {
		a, b []metric.Bin
		says string
	}{{two, three, "2 and 3 bins"}, {two, other, "0.4"}} {
		if _, err := metric.PoolBins(c.a, c.b); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want one with %q", err, c.says)
		}
	}
}
