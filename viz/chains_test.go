package viz_test

import (
	"strings"
	"testing"

	"gobnn/viz"
)

// Chains of unequal length are no draws of one parameter.
func TestTraceRankFaults(t *testing.T) {
	_, err := viz.TraceRank([][]float64{{1, 2, 3, 4}, {1, 2, 3}}, viz.Frame{})
	if err == nil || !strings.Contains(err.Error(), "chain 1 has 3 draws") {
		t.Errorf("error %v does not name the chain", err)
	}
}
