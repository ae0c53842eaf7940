package density

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
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
		{[]int{4, 3}, weights, 12}, {[]int{4, 3}, bayes.Layers(1, 2), 0}, {[]int{4, 3}, bayes.Names("layer1/biases"), 0},
	} {
		bound := computetest.Must(bayes.Model{Network: nn.MLP{Hidden: c.hidden}, Likelihood: bayes.Gaussian{},
			Stochastic: c.stochastic}.Bind(100, 1))
		if got := largestOwnMatrix(bound); got != c.want {
			t.Errorf("%v, %v: %d weights, want %d", c.hidden, c.stochastic, got, c.want)
		}
	}
}

// Particles of a network with convolutions are never in blocks, as those of an MLP of the same size are, and its plan
// counts the pixels of all layers, and the patches that own weights multiply, each as often as the numbers are held.
func TestPlanOfConvolutions(t *testing.T) {
	const batch = 10
	network := nn.CNN{Height: 4, Width: 6, Hidden: []int{7},
		Convolutions: []nn.Conv{{Filters: 5, Pool: 2}, {Filters: 2, Kernel: 2}}}
	for _, c := range []struct {
		stochastic bayes.Partition
		numbers    int
	}{
		{bayes.Layers(1), 24*5 + 24*9 + 6*5 + 6*2 + 2*7 + 2*3 + 3},
		{bayes.Layers(2), 6*2 + 6*20 + 2*7 + 2*3 + 3},
		{bayes.Layers(3), 2*7 + 2*3 + 3},
		{bayes.All(), 24*5 + 24*9 + 6*5 + 6*2 + 6*20 + 2*7 + 2*3 + 3},
	} {
		bound, err := bayes.Model{Network: network, Likelihood: bayes.Categorical{}, Stochastic: c.stochastic}.Bind(24, 3)
		if err != nil {
			t.Fatal(err)
		}
		if inBlocks(bound, batch) {
			t.Errorf("%v: in blocks", c.stochastic)
		}
		plan := NewPlan(bound, compute.Float32, Workload{Particles: 3, Rows: batch, Chunk: 1})
		if plan.Bytes != int64(4*activationCopies*batch*c.numbers) {
			t.Errorf("%v: a particle takes %d bytes, want %d", c.stochastic, plan.Bytes,
				4*activationCopies*batch*c.numbers)
		}
	}
}

// The rows are cut into parts where one particle's activations would take more than 2 GiB, and only there.
func TestPlanOfParts(t *testing.T) {
	bound := computetest.Must(bayes.Model{Network: nn.LeNet5(28, 28, 1), Likelihood: bayes.Categorical{},
		Stochastic: bayes.Layers(1)}.Bind(28*28, 10))
	for _, c := range []struct {
		work  Workload
		parts int
	}{
		{Workload{Particles: 100, Rows: 100}, 1},
		{Workload{Particles: 100, Rows: 9000, Forward: true}, 1},
		{Workload{Particles: 100, Rows: 10_000, Forward: true}, 266}, // of 8 MiB
		{Workload{Particles: 1, Rows: 10_000}, 3},
		{Workload{Particles: 4, Rows: 10_000, Devices: 2}, 0}, // devices share the particles, not the rows
	} {
		plan := NewPlan(bound, compute.Float32, c.work)
		if plan.Parts != c.parts || c.parts > 0 && plan.Bytes > partBytes {
			t.Errorf("%+v: %+v, want %d parts", c.work, plan, c.parts)
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
