package density_test

import (
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/tensors"
)

// Data of other shapes than the model's are refused with both shapes, those of one target and of several, and so are
// shared parameters that are missing or of another number.
func TestProblemRefuses(t *testing.T) {
	of := func(dims ...int) *tensors.Tensor {
		size := 1
		for _, d := range dims {
			size *= d
		}
		return compute.Floats(compute.Float64, make([]float64, size), dims...)
	}
	for _, c := range []struct {
		targets   int
		partial   bool
		x, y, psi *tensors.Tensor
		says      string // empty: it is right
	}{
		{1, false, of(5, 3), of(5), nil, ""},
		{1, false, of(15), of(5), nil, "it must be [N, 3]"},
		{1, false, of(5, 2), of(5), nil, "they must be [N, 3] and [N]"},
		{1, false, of(5, 3), of(4), nil, "they must be [N, 3] and [N]"},
		{1, false, of(5, 3), of(5, 1), nil, "they must be [N, 3] and [N]"},
		{2, false, of(5, 3), of(5, 2), nil, ""},
		{2, false, of(5, 3), of(5), nil, "they must be [N, 3] and [N, 2]"},
		{2, false, of(5, 3), of(2, 5), nil, "they must be [N, 3] and [N, 2]"},
		{1, true, of(5, 3), of(5), of(5), ""},
		{1, true, of(5, 3), of(5), nil, "5 shared numbers"},
		{1, true, of(5, 3), of(5), of(4), "5 shared numbers"},
	} {
		model := bayes.Model{Network: nn.MLP{Hidden: []int{4}}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.All()}
		if c.partial {
			model.Stochastic = bayes.Layers(1) // the second layer, 4 weights and a bias, is shared
		}
		bound, err := model.Bind(3, c.targets)
		if err != nil {
			t.Fatal(err)
		}
		_, err = density.NewProblem(computetest.Go(t), bound, c.x, c.y, c.psi, 4, 1)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%d targets, x %s, y %s: error %v, want %q", c.targets, c.x.Shape(), c.y.Shape(), err, c.says)
		}
	}
}
