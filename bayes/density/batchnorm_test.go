package density

import (
	"fmt"
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// normed normalises within a residual block, and behind it.
type normed struct{}

func (normed) Layers(inputs, outputs int) ([]nn.Layer, error) {
	norm := func(number int) nn.Layer { return nn.BatchNorm{Number: number, Height: 1, Width: 1, Channels: inputs} }
	return []nn.Layer{
		nn.Residual{Layers: []nn.Layer{nn.Dense{Number: 1, In: inputs, Out: inputs}, norm(2)}}, nn.Tanh, norm(3),
		nn.Dense{Number: 4, In: inputs, Out: outputs},
	}, nil
}

// In training the gradient with respect to psi passes through the mini-batch's statistics, as differences of the log
// evidence do; padding changes nothing, NaN as well, and running statistics have no gradient. Layers that normalise are
// not evaluated in parts of the rows, however much memory they take.
func TestBatchNormGradient(t *testing.T) {
	const batch, count = 6, 4
	bound, err := bayes.Model{Network: normed{}, Likelihood: bayes.Gaussian{StdDev: .7}, Stochastic: bayes.Layers(4)}.
		Bind(dims, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y := waves(batch*dims, .9), waves(batch, 3.1)
	for i := count; i < batch; i++ {
		x[i*dims], y[i] = math.NaN(), math.NaN()
	}
	const few = 5
	defer func(was int64) { partBytes = was }(partBytes)
	partBytes = 1
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		evaluate := func(engine *compute.Engine, dtype compute.DType, chunk int) func(args ...any) [][]float64 {
			plan := computetest.Must(compute.NewPlan(few, 1, chunk))
			return computetest.Compile(t, engine, func(_ *Graph, a []*Node) []*Node {
				for i := range a {
					a[i] = ConvertDType(a[i], dtype)
				}
				in := Batch{X: Reshape(a[2], batch, dims), Y: a[3], Count: ConstAs(a[3], float64(count)), Training: &Statistics{}}
				e := Likelihood{Model: bound, Plan: plan}.Reweight(Reshape(a[0], few, bound.D), a[1], a[4], in, LikelihoodPotential)
				return []*Node{e.LogSum, e.Gradient}
			})
		}
		phi, psi, weights := waves(few*bound.D, 1.7), waves(bound.W, 2.3), bayes.EqualLogWeights(few)
		got := evaluate(engine, dtype, 2)(phi, psi, x, y, weights)
		exact, gradient := evaluate(computetest.Go(t), compute.Float64, 0), make([]float64, bound.W)
		at := func() float64 { return exact(phi, psi, x, y, weights)[0][0] }
		value := at()
		for i, v := range psi {
			const h = 1e-6
			psi[i] = v + h
			gradient[i] = at()
			psi[i] = v - h
			gradient[i] = (gradient[i] - at()) / (2 * h)
			psi[i] = v
		}
		within := 1e-6
		if dtype == compute.Float32 {
			within = 1e-3
		}
		computetest.Near(t, "log evidence", got[0], []float64{value}, within)
		computetest.Near(t, "gradient", got[1], gradient, within)
		for _, slot := range bound.Slots {
			for i := range slot.Size() {
				still := slot.Kind == nn.Statistics
				if !slot.Stochastic && still != (got[1][slot.Offset+i] == 0) && slot.Name != "layer1/biases" {
					t.Errorf("the gradient of %s is %v", slot.Name, got[1][slot.Offset+i])
				}
			}
		}
	})
}

// The running statistics of particles that share nothing are each one's own, however many are evaluated at once, and
// are those of a model that shares this particle's numbers.
func TestBatchNormMoved(t *testing.T) {
	const batch, count = 5, 4
	model := bayes.Model{Network: normed{}, Likelihood: bayes.Gaussian{StdDev: .7}, Stochastic: bayes.Layers(4)}
	partial := computetest.Must(model.Bind(dims, 1))
	var all []string
	for _, slot := range partial.Slots {
		all = append(all, slot.Name)
	}
	model.Stochastic = bayes.Names(all...)
	whole := computetest.Must(model.Bind(dims, 1))
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		evaluate := func(engine *compute.Engine, dtype compute.DType, chunk int) []float64 {
			plan := computetest.Must(compute.NewPlan(particles, 1, chunk))
			return computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
				for i := range a {
					a[i] = ConvertDType(a[i], dtype)
				}
				plan.Parts = 2
				phi := Reshape(a[0], particles, whole.D)
				in := Batch{X: Reshape(a[1], batch, dims), Y: a[2], Count: ConstAs(a[2], float64(count)),
					Training: &Statistics{}}
				if chunk > 0 {
					Likelihood{Model: whole, Plan: plan}.LogLikelihood(phi, nil, in)
					return []*Node{in.Training.In(AddScalar(phi, 1))}
				}
				var one []*Node
				for j := range particles { // all but phi is psi, in the same order
					psi := Reshape(Slice(phi, AxisElem(j), AxisRange(0, partial.W)), partial.W)
					own := Slice(phi, AxisElem(j), AxisRange(partial.W))
					Likelihood{Model: partial, Plan: plan}.LogLikelihood(own, psi, in)
					own, psi = AddScalar(own, 1), ExpandAxes(AddScalar(psi, 1), 0)
					one = append(one, in.Training.In(Concatenate([]*Node{own, psi}, 1)))
				}
				all := Concatenate(one, 0) // phi and then psi
				return []*Node{Concatenate([]*Node{Slice(all, AxisRange(), AxisRange(partial.D)),
					Slice(all, AxisRange(), AxisRange(0, partial.D))}, 1)}
			}, waves(particles*whole.D, 1.7), waves(batch*dims, .9), waves(batch, 3.1))[0]
		}
		want := evaluate(computetest.Go(t), compute.Float64, 0)
		for _, chunk := range []int{5, 16, particles} {
			if engine.IsXLA() && chunk != 5 {
				continue // compiles long
			}
			computetest.Near(t, fmt.Sprintf("chunks of %d", chunk), evaluate(engine, dtype, chunk), want, tolerance(dtype))
		}
	})
}
