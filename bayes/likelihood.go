package bayes

import (
	"fmt"
	"math"

	"gobnn/bayes/nn"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Likelihood says how a network's output becomes a density of the target. Gaussian, Bernoulli and Categorical implement it.
type Likelihood interface {
	// Task that the likelihood serves.
	Task() Task
	// Parameters of the likelihood itself, such as a noise that is learnt; nil if it has none.
	Parameters() []nn.Parameter
	// LogDensity is log p(y_b | network output) per particle and row, in the blocks of nn.Block, [J/c, B, c], or [1, B, 1] if nothing in it is per
	// particle. outputs are [K, B] or [J/c, K, B, c]; y is [B]: the target, or the index of the class as a number.
	LogDensity(leaves nn.Params, outputs nn.Value, y *graph.Node) *graph.Node
	// Check returns an error that names a setting that is wrong.
	Check() error
}

// noiseName is the parameter of a Gaussian that learns its noise.
const noiseName = "noise/log_scale"

// Gaussian is y ~ N(f(x), s^2), in standardised units. With Learn, s = StdDev exp(t), and t, named "noise/log_scale", starts at
// 0: shared unless the model's Partition names it.
type Gaussian struct {
	StdDev float64 `json:"std_dev"` // default 1
	Learn  bool    `json:"learn,omitempty"`
}

// Task implements Likelihood.
func (g Gaussian) Task() Task { return Regression }

// Check implements Likelihood.
func (g Gaussian) Check() error {
	if g.StdDev < 0 || math.IsNaN(g.StdDev) || math.IsInf(g.StdDev, 0) {
		return fmt.Errorf("bayes: Gaussian.StdDev is %v: it must be positive (0 means 1)", g.StdDev)
	}
	return nil
}

func (g Gaussian) stdDev() float64 {
	if g.StdDev == 0 {
		return 1
	}
	return g.StdDev
}

// Parameters implements Likelihood.
func (g Gaussian) Parameters() []nn.Parameter {
	if !g.Learn {
		return nil
	}
	return []nn.Parameter{{Name: noiseName, Kind: nn.Noise, Shape: []int{1}, FanIn: 1, FanOut: 1, Init: nn.Zeros}}
}

// LogDensity implements Likelihood: -((y - f)/s)^2/2 - log s - log(2 pi)/2.
func (g Gaussian) LogDensity(leaves nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f := oneOutput(outputs)
	residual := graph.Sub(graph.ExpandAxes(y, 0, -1), f)
	constant := 0.5*math.Log(2*math.Pi) + math.Log(g.stdDev())
	if !g.Learn {
		return graph.SubScalar(graph.MulScalar(graph.Square(residual), -0.5/(g.stdDev()*g.stdDev())), constant)
	}
	t := leaves[noiseName].Node // [1] or [J/c, 1, c]
	if !leaves[noiseName].PerParticle {
		t = graph.ExpandAxes(t, 0, -1)
	}
	scaled := graph.Mul(graph.DivScalar(residual, g.stdDev()), graph.Exp(graph.Neg(t)))
	return graph.SubScalar(graph.Sub(graph.MulScalar(graph.Square(scaled), -0.5), t), constant)
}

// oneOutput drops the axis of a network with one output: [1, B, 1] or [J/c, B, c].
func oneOutput(outputs nn.Value) *graph.Node {
	if outputs.PerParticle {
		return graph.Squeeze(outputs.Node, 1)
	}
	return graph.ExpandAxes(outputs.Node, -1)
}

// Bernoulli is y in {0, 1} with P(y = 1) = sigmoid(f(x)).
type Bernoulli struct{}

// Task implements Likelihood.
func (Bernoulli) Task() Task { return BinaryClassification }

// Check implements Likelihood.
func (Bernoulli) Check() error { return nil }

// Parameters implements Likelihood.
func (Bernoulli) Parameters() []nn.Parameter { return nil }

// LogDensity implements Likelihood: -softplus(-f) if y = 1, -softplus(f) if y = 0.
func (Bernoulli) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	sign := graph.SubScalar(graph.MulScalar(y, 2), 1) // [B], -1 or 1
	margin := graph.Mul(oneOutput(outputs), graph.ExpandAxes(sign, 0, -1))
	return graph.Neg(nn.Softplus.Apply(nil, nn.Value{Node: graph.Neg(margin)}).Node)
}

// Categorical is y in {0, ..., C-1} with P(y = c) proportional to exp f_c(x).
type Categorical struct{}

// Task implements Likelihood.
func (Categorical) Task() Task { return Classification }

// Check implements Likelihood.
func (Categorical) Check() error { return nil }

// Parameters implements Likelihood.
func (Categorical) Parameters() []nn.Parameter { return nil }

// LogDensity implements Likelihood: f_y - log sum_c exp f_c.
func (Categorical) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	logits := outputs.Node
	if !outputs.PerParticle {
		logits = graph.ExpandAxes(logits, 0, -1)
	}
	classes := logits.Shape().Dim(1)
	oneHot := graph.OneHot(graph.ConvertDType(y, dtypes.Int32), classes, logits.DType()) // [B, C]
	picked := graph.Mul(graph.LogSoftmax(logits, 1), graph.ExpandAxes(graph.Transpose(oneHot, 0, 1), 0, -1))
	return graph.ReduceSum(picked, 1)
}

var (
	_ Likelihood = Gaussian{}
	_ Likelihood = Bernoulli{}
	_ Likelihood = Categorical{}
)
