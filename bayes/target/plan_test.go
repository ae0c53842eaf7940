package target

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"
)

// The largest matrix that particles multiply with numbers of their own: not the first, which meets the data; none where
// a matrix is shared.
func TestLargestOwnMatrix(t *testing.T) {
	for _, c := range []struct {
		hidden     []int
		stochastic bayes.Partition
		want       int
	}{
		{[]int{4, 3}, bayes.All(), 12}, {[]int{9, 3}, bayes.All(), 27}, {[]int{4}, bayes.All(), 4}, {nil, bayes.All(), 0},
		{[]int{4, 3}, bayes.Weights(1, 2, 3), 12}, {[]int{4, 3}, bayes.Layers(1, 2), 0}, {[]int{4, 3}, bayes.Biases(), 0},
	} {
		bound, err := bayes.Model{Network: nn.MLP{Hidden: c.hidden}, Likelihood: bayes.Gaussian{},
			Stochastic: c.stochastic}.Bind(100, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := largestOwnMatrix(bound); got != c.want {
			t.Errorf("%v, %v: %d weights, want %d", c.hidden, c.stochastic, got, c.want)
		}
	}
}

// Blocks pad by at most a quarter, and there are none for few particles, on an accelerator or on the Go backend.
func TestSIMDWidth(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		for particles, want := range map[int]int{1: 1, 15: 1, 16: 8, 17: 4, 20: 8, 25: 4, 100: 8, 1001: 8} {
			if !engine.IsXLA() || !engine.OnCPU() {
				want = 1
			}
			if got := simdWidth(engine.Backend(), particles); got != want {
				t.Errorf("%s: %d particles in blocks of %d, want %d", engine.Name(), particles, got, want)
			}
		}
	}
}
