package bayes

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Likelihood is the distribution of the target given a network's outputs: LogDensity in a graph, to train and to
// sample, and Predictive on the host, to predict. A likelihood of your own can be used wherever the library's can; call
// Register once, so that its posteriors can be saved and loaded.
//
// The argument size is the number of targets K of a regression, the number of classes C of a classification, or 1 for a
// binary classification. Outputs and targets are in standardised units, except for counts (see Counted).
type Likelihood interface {
	// Task is the task that the likelihood is for.
	Task() dataset.Task
	// Outputs is the number W of network outputs that the likelihood takes for data of the given size; 0 if it cannot be
	// used for such data.
	// It need not be the number of targets or classes: Heteroscedastic takes two for each target, and Ordinal one for all
	// classes.
	Outputs(size int) int
	// Parameters are the likelihood's own parameters for data of the given size, such as a learnt noise; nil if it has
	// none.
	Parameters(size int) []nn.Parameter
	// LogDensity is log p(y_b | network outputs), summed over targets, per particle and row, in blocks of c particles (see
	// nn.Block): [J/c, B, c], or [1, B, 1] if it depends on no per-particle value. outputs are [W, B] or [J/c, W, B, c]; y
	// is [K, B]: the targets, or the index of the class as a number, [1, B]. The method builds graph nodes, and panics on
	// errors, as GoMLX does. Targets and SumTargets convert between these shapes.
	LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node
	// Predictive is the distribution of one target, counted from 0, given one particle: outputs, [W], are the network's,
	// own the values of Parameters, one after another. It must not keep the slices.
	Predictive(outputs, own []float64, target int) Distribution
	// Check returns an error that names a setting that is wrong.
	Check() error
}

// Distribution is the distribution of one target: of a number, or of the index of a class. Those of gonum's package
// distuv, such as distuv.Laplace and distuv.StudentsT, are Distributions.
type Distribution interface {
	Mean() float64
	Variance() float64
	LogProb(y float64) float64  // the logarithm of the density, or of the probability
	CDF(y float64) float64      // P(Y <= y)
	Survival(y float64) float64 // P(Y > y)
	Quantile(p float64) float64 // the smallest y with CDF(y) >= p, for 0 < p < 1
}

// Informative is a Likelihood whose Fisher information in the network's outputs is diagonal, and known:
// -E[d^2 log p(y | outputs) / d output^2] of each output. baseline.Laplace takes its curvature from it.
type Informative interface {
	// Information has the shape of outputs.Full().
	Information(params nn.Params, outputs nn.Value) *graph.Node
}

// Counted is a Likelihood of a regression whose targets are counts: 0, 1, 2, ... Other targets are an error, and counts
// are not standardised.
type Counted interface {
	// LogMean says whether the outputs are the logarithms of the targets' means: then the data may have exposures
	// (dataset.Dataset.Exposure), whose logarithms are added to the outputs.
	LogMean() bool
}

// IsCounted says whether the targets of a likelihood are counts.
func IsCounted(l Likelihood) bool {
	_, counted := l.(Counted)
	return counted
}

// takesExposure says whether data of a likelihood may have exposures.
func takesExposure(l Likelihood) bool {
	counted, ok := l.(Counted)
	return ok && counted.LogMean()
}

// Survivor is a Likelihood that takes censored targets (dataset.Dataset.Censored), of one target.
type Survivor interface {
	// LogSurvival is log P(target > y_b | network outputs), of the shapes of LogDensity.
	LogSurvival(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node
}

var (
	_ Counted  = Poisson{}
	_ Counted  = NegativeBinomial{}
	_ Survivor = Gaussian{}
	_ Survivor = Heteroscedastic{}
)

var (
	_ Informative = Gaussian{}
	_ Informative = Bernoulli{}
	_ Informative = Heteroscedastic{}
	_ Informative = HeteroscedasticT{}
)

// CheckTarget returns an error if y, a target of a regression, is not a number that the likelihood takes.
func CheckTarget(l Likelihood, y float64) error {
	if !finite(y) {
		return fmt.Errorf("is %v: it must be finite", y)
	}
	if IsCounted(l) && (y < 0 || y != math.Trunc(y)) {
		return fmt.Errorf("is %v, but %T is for counts, which are whole and not negative", y, l)
	}
	return nil
}

// noiseName is the name of a learnt noise parameter: the logarithm of a factor on the likelihood's scale.
const noiseName = "noise/log_scale"

// noiseParameters is the learnt noise of each target.
func noiseParameters(size int) []nn.Parameter {
	return []nn.Parameter{{Name: noiseName, Kind: nn.Noise, Shape: []int{size}, FanIn: 1, FanOut: size, Init: nn.Zeros}}
}

// checkPositive returns an error unless a setting is positive, or 0, which means 1.
func checkPositive(name string, value float64) error {
	if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("bayes: %s is %v: it must be positive (0 means 1)", name, value)
	}
	return nil
}

// Targets reshapes y, [K, B], to the axes of nn.Value.Full, [1, K, B, 1]. The LogDensity of a Likelihood uses it.
func Targets(y *graph.Node) *graph.Node { return nn.Value{Node: y}.Full() }

// SumTargets sums log-densities over the targets, from [J/c, K, B, c] to [J/c, B, c], the shape that LogDensity of a
// Likelihood returns.
func SumTargets(density *graph.Node) *graph.Node {
	if density.Shape().Dim(1) == 1 {
		return graph.Squeeze(density, 1)
	}
	return graph.ReduceSum(density, 1)
}

// numbers is embedded by the likelihoods of a regression: they have one output for each target, no parameters of their
// own and no settings, unless they say otherwise.
type numbers struct{}

func (numbers) Task() dataset.Task            { return dataset.Regression }
func (numbers) Outputs(size int) int          { return size }
func (numbers) Parameters(int) []nn.Parameter { return nil }
func (numbers) Check() error                  { return nil }

// counts is embedded by the likelihoods of counts, whose outputs are the logarithms of the means.
type counts struct{ numbers }

func (counts) LogMean() bool { return true }

// labels is embedded by the likelihoods of a classification, as numbers by those of a regression.
type labels struct{ numbers }

func (labels) Task() dataset.Task { return dataset.Classification }

// Gaussian is y ~ N(f(x), s^2), in standardised units, for each of K targets with its own output and noise. With Learn,
// s = StdDev exp(t), where the parameter t, named "noise/log_scale", [K], starts at 0. It is a shared parameter unless
// the model's Partition names it.
type Gaussian struct {
	StdDev float64 `json:"std_dev"` // default 1
	Learn  bool    `json:"learn,omitempty"`
	numbers
}

// Check implements Likelihood.
func (g Gaussian) Check() error { return checkPositive("Gaussian.StdDev", g.StdDev) }

// Parameters implements Likelihood.
func (g Gaussian) Parameters(size int) []nn.Parameter {
	if !g.Learn {
		return nil
	}
	return noiseParameters(size)
}

// LogDensity implements Likelihood: -((y - f)/s)^2/2 - log s - log(2 pi)/2.
func (g Gaussian) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	stdDev := cmp.Or(g.StdDev, 1)
	residual := graph.Sub(Targets(y), outputs.Full())
	constant := math.Log(stdDev) + 0.5*math.Log(2*math.Pi)
	if !g.Learn {
		return SumTargets(graph.SubScalar(graph.MulScalar(graph.Square(residual), -0.5/(stdDev*stdDev)), constant))
	}
	t := params[noiseName].Full()
	scaled := graph.Mul(graph.DivScalar(residual, stdDev), graph.Exp(graph.Neg(t)))
	return SumTargets(graph.SubScalar(graph.Sub(graph.MulScalar(graph.Square(scaled), -0.5), t), constant))
}

// LogSurvival implements Survivor: log Q((y - f)/s), where Q(z) is a standard normal's P(Z > z).
func (g Gaussian) LogSurvival(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	scaled := graph.DivScalar(graph.Sub(Targets(y), outputs.Full()), cmp.Or(g.StdDev, 1))
	if g.Learn {
		scaled = graph.Mul(scaled, graph.Exp(graph.Neg(params[noiseName].Full())))
	}
	return SumTargets(logNormalSurvival(scaled))
}

// Information implements Informative: 1/s^2.
func (g Gaussian) Information(params nn.Params, outputs nn.Value) *graph.Node {
	information := graph.AddScalar(graph.ZerosLike(outputs.Full()), math.Exp(-2*math.Log(cmp.Or(g.StdDev, 1))))
	if g.Learn {
		information = graph.Mul(information, graph.Exp(graph.MulScalar(params[noiseName].Full(), -2)))
	}
	return information
}

// Predictive implements Likelihood.
func (g Gaussian) Predictive(outputs, own []float64, target int) Distribution {
	stdDev := cmp.Or(g.StdDev, 1)
	if g.Learn {
		stdDev *= math.Exp(own[target])
	}
	return normal{outputs[target], stdDev}
}

// Bernoulli is y in {0, 1} with P(y = 1) = sigmoid(f(x)).
type Bernoulli struct{ labels }

// Task implements Likelihood.
func (Bernoulli) Task() dataset.Task { return dataset.BinaryClassification }

// Information implements Informative: p (1 - p).
func (Bernoulli) Information(_ nn.Params, outputs nn.Value) *graph.Node {
	p := graph.Sigmoid(outputs.Full())
	return graph.Mul(p, graph.OneMinus(p))
}

// LogDensity implements Likelihood: -softplus(-f) if y = 1, -softplus(f) if y = 0.
func (Bernoulli) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	sign := graph.SubScalar(graph.MulScalar(Targets(y), 2), 1) // -1 or 1
	margin := graph.Mul(outputs.Full(), sign)
	return SumTargets(graph.Neg(nn.Softplus.Apply(nil, nn.Value{Node: graph.Neg(margin)}).Node))
}

// Predictive implements Likelihood: class 0 has the logit 0.
func (Bernoulli) Predictive(outputs, _ []float64, _ int) Distribution {
	return newClasses([]float64{0, outputs[0]})
}

// Categorical is y in {0, ..., C-1} with P(y = c) proportional to exp f_c(x).
type Categorical struct{ labels }

// LogDensity implements Likelihood: f_y - log sum_c exp f_c.
func (Categorical) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	return ofClass(graph.LogSoftmax(outputs.Full(), 1), y)
}

// ofClass picks the log-probability of each row's class, y, [1, B], from those of all classes, [J/c, C, B, c], which
// must be finite: [J/c, B, c].
func ofClass(logs, y *graph.Node) *graph.Node {
	classes, rows := logs.Shape().Dim(1), y.Shape().Dim(1)
	oneHot := graph.OneHot(graph.ConvertDType(graph.Reshape(y, rows), dtypes.Int32), classes, logs.DType()) // [B, C]
	return graph.ReduceSum(graph.Mul(logs, graph.ExpandAxes(graph.Transpose(oneHot, 0, 1), 0, -1)), 1)
}

// Predictive implements Likelihood.
func (Categorical) Predictive(outputs, _ []float64, _ int) Distribution {
	return newClasses(slices.Clone(outputs))
}

var (
	_ Likelihood = Gaussian{}
	_ Likelihood = Bernoulli{}
	_ Likelihood = Categorical{}
)
