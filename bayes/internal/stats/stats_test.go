package stats

import (
	"math"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{7}, 7}, {[]float64{3, 1}, 1}, {[]float64{5, -2, 9}, 5}, {[]float64{8, 1, 4, 2}, 2}} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want || !slices.Equal(before, c.values) {
			t.Errorf("the median of %v is %v, want %v; then they are %v", before, got, c.want, c.values)
		}
	}
	if got := Median([]float64{1, math.NaN(), 2}); !math.IsNaN(got) {
		t.Errorf("the median of numbers with a NaN is %v, want NaN", got)
	}
}
