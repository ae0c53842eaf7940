package density

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// logNormal is a likelihood of a user's own of positive numbers: log y is normal about f.
type logNormal struct{ bayes.Gaussian }

func (l logNormal) LogDensity(params nn.Params, outputs nn.Value, y *Node) *Node {
	logs := Log(y) // [K, B], K = 1
	return Sub(l.Gaussian.LogDensity(params, outputs, logs), ReduceSum(bayes.Targets(logs), 1))
}

func (l logNormal) Predictive(outputs, _ []float64, target int) bayes.Distribution {
	return logNormalOf{distuv.LogNormal{Mu: outputs[target], Sigma: l.StdDev}}
}

type logNormalOf struct{ distuv.LogNormal }

// Padding is 0, where such a likelihood has no density: it changes neither the value nor the gradient.
func TestPaddingWithoutDensity(t *testing.T) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: logNormal{bayes.Gaussian{StdDev: .4}}, Stochastic: bayes.All(),
		Scaling: bayes.Scaling{KeepTarget: true}}
	bound := computetest.Must(model.Bind(2, 1))
	plan := compute.NewPlan(2, 1, 0)
	posterior := MiniBatch(Likelihood{Model: bound, Plan: plan}, 7)
	phi := [][]float64{{.1, -.2, .3}, {1, .5, -1}}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		of := func(x [][]float64, y []float64) []float64 {
			exec := computetest.Must(NewExec(engine.Backend(), func(phi, x, y *Node) *Node {
				as := func(x *Node) *Node { return ConvertDType(x, dtype) }
				batch := Batch{X: as(x), Y: as(y), Count: ConstAs(as(y), 3.)}
				value, gradient := At(posterior, nil, batch).Gradient(as(phi))
				return ConvertDType(Concatenate([]*Node{ExpandAxes(value, 1), gradient}, 1), compute.Float64)
			}))
			defer exec.Finalize()
			out := computetest.Must(exec.Call(phi, x, y))
			values := computetest.Must(compute.Float64s(out[0]))
			return values
		}
		x, y := [][]float64{{1, 2}, {-1, .5}, {.2, -.4}}, []float64{1.5, .2, 3}
		whole, padded := of(x, y), of(append(x, []float64{0, 0}, []float64{0, 0}), append(y, 0, 0))
		for i, v := range padded {
			if math.IsNaN(v) || math.Abs(v-whole[i]) > 1e-5*(1+math.Abs(whole[i])) {
				t.Errorf("number %d is %v with padding, %v without", i, v, whole[i])
			}
		}
	})
}
