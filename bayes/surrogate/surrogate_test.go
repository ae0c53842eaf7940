package surrogate

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// simulated is y = f(x) + .3 eps with a network 10-10-1, x ~ N(0, I): a posterior that some thousands of rows identify.
type simulated struct {
	bound *bayes.BoundModel
	x, y  *tensors.Tensor // [N, 10], [N]
	test  *tensors.Tensor // [50, 10]
	truth []float64       // [121], the network that made the data
}

func readSimulated(t testing.TB, path string) simulated {
	t.Helper()
	read := safetensors(t, path)
	model := bayes.Model{
		Network:    nn.MLP{Hidden: []int{10}, Activation: nn.Tanh},
		Likelihood: bayes.Gaussian{StdDev: .3}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.All(),
	}
	bound, err := model.Bind(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	file, err := compute.Float64s(read("theta_true"))
	if err != nil {
		t.Fatal(err)
	}
	truth := slices.Clone(file)
	for in := range 10 { // numpy's W1 is [in, out], a layer's weights here are [out, in]
		for out := range 10 {
			truth[out*10+in] = file[in*10+out]
		}
	}
	return simulated{bound, read("x"), read("y"), read("x_test"), truth}
}

// safetensors reads tensors of a file that Python wrote, which has no digest as package tensorfile wants it.
func safetensors(t testing.TB, path string) func(name string) *tensors.Tensor {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	length := binary.LittleEndian.Uint64(all)
	var header map[string]struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(all[8:8+length], &header); err != nil {
		t.Fatal(err)
	}
	return func(name string) *tensors.Tensor {
		h, ok := header[name]
		if !ok {
			t.Fatalf("%s has no tensor %q", path, name)
		}
		dtype := map[string]compute.DType{"F32": compute.Float32, "F64": compute.Float64}[h.DType]
		of := tensors.FromShape(shapes.Make(dtype, h.Shape...))
		of.MutableBytes(func(to []byte) { copy(to, all[8+int(length)+h.Offsets[0]:8+int(length)+h.Offsets[1]]) })
		return of
	}
}

func (s simulated) problem(t testing.TB, engine *compute.Engine) posterior {
	t.Helper()
	return givenRows(t, engine, s.bound, s.x, s.y)
}

// BenchmarkHessian is a whitening by the full Hessian of 121 parameters in float64, given 100 000 rows: 128 gradients,
// in blocks of the rows.
func BenchmarkHessian(b *testing.B) {
	computetest.Bench(b, func(b *testing.B, engine *compute.Engine) {
		s := readSimulated(b, "testdata/surrogates_n10000.safetensors")
		copies := 10
		if testing.Short() {
			copies = 1
		}
		var x, y []float64
		for range copies {
			for to, from := range map[*[]float64]*tensors.Tensor{&x: s.x, &y: s.y} {
				values, err := compute.Float64s(from)
				if err != nil {
					b.Fatal(err)
				}
				*to = append(*to, values...)
			}
		}
		s.x, s.y = compute.Floats(compute.Float32, x, len(y), 10), compute.Floats(compute.Float32, y, len(y))
		problem := s.problem(b, engine)
		mode, err := findMode(b.Context(), problem, s.truth, engine)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := whitenedAt(b.Context(), problem, mode, engine); err != nil {
				b.Fatal(err)
			}
		}
	})
}
