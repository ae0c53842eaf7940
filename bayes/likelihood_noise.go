package bayes

import (
	"math"

	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Heteroscedastic is y ~ N(f(x), s(x)^2), whose standard deviation depends on x: of the 2K network outputs for K
// targets, the first K are the means f and the others, g, give the standard deviations, s = exp(g). All are in
// standardised units.
type Heteroscedastic struct{ numbers }

// Outputs implements Likelihood.
func (Heteroscedastic) Outputs(size int) int { return 2 * size }

// LogDensity implements Likelihood: -((y - f)/s)^2/2 - log s - log(2 pi)/2.
func (Heteroscedastic) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f, g := halves(outputs.Full())
	scaled := graph.Mul(graph.Sub(Targets(y), f), graph.Exp(graph.Neg(g)))
	density := graph.Sub(graph.MulScalar(graph.Square(scaled), -0.5), g)
	return SumTargets(graph.SubScalar(density, 0.5*math.Log(2*math.Pi)))
}

// LogSurvival implements Survivor: log Q((y - f)/s), where Q(z) is a standard normal's P(Z > z).
func (Heteroscedastic) LogSurvival(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f, g := halves(outputs.Full())
	return SumTargets(logNormalSurvival(graph.Mul(graph.Sub(Targets(y), f), graph.Exp(graph.Neg(g)))))
}

// logNormalSurvival is log P(Z > z) of a standard normal: up to tailFrom by the error function, and from there by the
// continued fraction of Laplace, P(Z > z) = p(z)/(z + 1/(z + 2/(z + ...))), since 1 - erf has no digits left far out.
func logNormalSurvival(z *graph.Node) *graph.Node {
	near := graph.MinScalar(z, tailFrom)
	near = graph.Log(graph.MulScalar(graph.OneMinus(graph.Erf(graph.DivScalar(near, math.Sqrt2))), .5))
	far := graph.MaxScalar(z, tailFrom)
	fraction := far
	for n := tailTerms; n > 0; n-- {
		fraction = graph.Add(far, graph.Div(graph.ConstAs(far, float64(n)), fraction))
	}
	far = graph.Sub(graph.MulScalar(graph.Square(far), -.5), graph.Log(fraction))
	far = graph.SubScalar(far, .5*math.Log(2*math.Pi))
	return graph.Where(graph.LessThan(z, graph.ConstAs(z, tailFrom)), near, far)
}

// From 3 on 32 terms of the fraction leave a relative error below 1e-12.
const (
	tailFrom  = 3
	tailTerms = 32
)

// Information implements Informative: 1/s^2 of a mean, and 2 of g.
func (Heteroscedastic) Information(_ nn.Params, outputs nn.Value) *graph.Node {
	f, g := halves(outputs.Full())
	ofMean := graph.Exp(graph.MulScalar(g, -2))
	return graph.Concatenate([]*graph.Node{ofMean, graph.AddScalar(graph.ZerosLike(f), 2)}, 1)
}

// halves are the first and the second half of the outputs, [J/c, 2K, B, c].
func halves(outputs *graph.Node) (first, second *graph.Node) {
	all := outputs.Shape().Dim(1)
	return graph.Slice(outputs, graph.AxisRange(), graph.AxisRange(0, all/2)),
		graph.Slice(outputs, graph.AxisRange(), graph.AxisRange(all/2, all))
}

// Predictive implements Likelihood.
func (Heteroscedastic) Predictive(outputs, _ []float64, target int) Distribution {
	return normal{outputs[target], math.Exp(outputs[len(outputs)/2+target])}
}

// Poisson is a count y in {0, 1, 2, ...} with mean exp f(x), for each of K targets. The target is not standardised.
type Poisson struct{ counts }

// LogDensity implements Likelihood: y f - exp f - log y!. It uses Loader's saddle-point form (2000), which loses no
// digits where y is large. With d = f - log y and the error e(y) of Stirling's formula, it is -y (exp d - 1 - d) -
// log(2 pi y)/2 - e(y).
func (Poisson) LogDensity(_ nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f, n := outputs.Full(), Targets(y)
	some := graph.MaxScalar(n, 1)
	d := graph.Sub(f, graph.Log(some))
	density := graph.Neg(graph.Mul(some, graph.Sub(expm1(d), d)))
	density = graph.Sub(density, halfLogCircle(some))
	density = graph.Sub(density, stirlingError(some))
	return SumTargets(whereZero(n, graph.Neg(graph.Exp(f)), density))
}

// Predictive implements Likelihood.
func (Poisson) Predictive(outputs, _ []float64, target int) Distribution {
	return poisson{math.Exp(outputs[target])}
}

// NegativeBinomial is a count y in {0, 1, 2, ...} with mean m = exp f(x) and variance m + m^2/r, for each of K targets.
// The variance is larger than that of a Poisson count, which is the limit of large r. r = exp(t) is learnt: the
// parameter t, named "noise/log_scale", [K], starts at 0. It is a shared parameter unless the model's Partition names
// it. The target is not standardised.
type NegativeBinomial struct{ counts }

// Parameters implements Likelihood.
func (NegativeBinomial) Parameters(size int) []nn.Parameter { return noiseParameters(size) }

// LogDensity implements Likelihood: log Gamma(y+r) - log Gamma(r) - log y! + r log(r/(r+m)) + y log(m/(r+m)). It uses
// Loader's saddle-point form (2000), which loses no digits where y is large. With n = y + r and d = f - log y, it is
//
//	y d - n log((r + m)/n) + log(r/(2 pi n y))/2 + e(n) - e(r) - e(y)
//
// where e is the error of Stirling's formula.
func (NegativeBinomial) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f, count := outputs.Full(), Targets(y)
	r := graph.Exp(params[noiseName].Full())
	some := graph.MaxScalar(count, 1)
	n := graph.Add(some, r)
	d := graph.Sub(f, graph.Log(some))
	density := graph.Sub(graph.Mul(some, d), graph.Mul(n, logRatio(graph.Mul(some, expm1(d)),
		graph.Add(r, graph.Exp(f)), n)))
	density = graph.Sub(density, halfLogCircle(some))
	density = graph.Sub(graph.Add(density, graph.MulScalar(graph.Log(graph.Div(r, n)), 0.5)), stirlingError(some))
	density = graph.Add(density, graph.Sub(stirlingError(n), stirlingError(r)))
	none := graph.Neg(graph.Mul(r, graph.Log1p(graph.Div(graph.Exp(f), r)))) // y = 0
	return SumTargets(whereZero(count, none, density))
}

// Predictive implements Likelihood.
func (NegativeBinomial) Predictive(outputs, own []float64, target int) Distribution {
	return negativeBinomial{math.Exp(outputs[target]), math.Exp(own[target])}
}

// logRatio is log(a/b), where a = b + excess: by log(1 + excess/b) where a and b are close, which loses no precision.
func logRatio(excess, a, b *graph.Node) *graph.Node {
	relative := graph.Div(excess, b)
	far := graph.Log(graph.Div(a, b))
	near := graph.LessThan(graph.Abs(relative), graph.ConstAs(relative, 0.5))
	return graph.Where(near, graph.Log1p(graph.Where(near, relative, graph.ZerosLike(relative))), far)
}

// expm1 is exp(x) - 1 with full precision for small x, as tanh(x/2) (exp(x) + 1): GoMLX has no gradient of its Expm1.
func expm1(x *graph.Node) *graph.Node {
	return graph.Mul(graph.Tanh(graph.MulScalar(x, 0.5)), graph.AddScalar(graph.Exp(x), 1))
}

// whereZero selects zero where count is 0, and other elsewhere; all have axes like those of nn.Value.Full.
func whereZero(count, zero, other *graph.Node) *graph.Node {
	dims := other.Shape().Dimensions
	return graph.Where(graph.BroadcastToDims(graph.LessThan(count, graph.ScalarOne(count.Graph(), count.DType())),
		dims...),
		graph.BroadcastToDims(zero, dims...), other)
}

// halfLogCircle is log(2 pi x)/2.
func halfLogCircle(x *graph.Node) *graph.Node {
	return graph.MulScalar(graph.Log(graph.MulScalar(x, 2*math.Pi)), 0.5)
}

// stirlingError is log Gamma(x+1) - (x + 1/2) log x + x - log(2 pi)/2 for x > 0: by its series from 16 on, below by the
// recurrence of log Gamma.
func stirlingError(x *graph.Node) *graph.Node {
	large := graph.MaxScalar(x, stirlingFrom)
	small := graph.MinScalar(x, stirlingFrom)
	direct := graph.Sub(logGamma(graph.AddScalar(small, 1)), graph.Mul(graph.AddScalar(small, 0.5), graph.Log(small)))
	direct = graph.SubScalar(graph.Add(direct, small), 0.5*math.Log(2*math.Pi))
	return graph.Where(graph.LessThan(x, graph.ConstAs(x, stirlingFrom)), direct, stirlingSeries(large))
}

const stirlingFrom = 16.0

// stirlingSeries is 1/(12 x) - 1/(360 x^3) + 1/(1260 x^5) - 1/(1680 x^7) + 1/(1188 x^9) (Abramowitz and Stegun 6.1.41);
// its error is below 1e-16 from 16 on.
func stirlingSeries(x *graph.Node) *graph.Node {
	inverse := graph.Reciprocal(x)
	square := graph.Square(inverse)
	sum := graph.MulScalar(square, 1./1188)
	for _, c := range []float64{-1. / 1680, 1. / 1260, -1. / 360} {
		sum = graph.Mul(graph.AddScalar(sum, c), square)
	}
	return graph.Mul(graph.AddScalar(sum, 1./12), inverse)
}

// logGamma is log Gamma(x) for x between 0 and some 1e9: Stirling's formula at x + 16, less log(x (x+1) ... (x+15)).
func logGamma(x *graph.Node) *graph.Node {
	z := graph.AddScalar(x, stirlingFrom)
	value := graph.Sub(graph.Mul(graph.SubScalar(z, 0.5), graph.Log(z)), z)
	value = graph.AddScalar(graph.Add(value, stirlingSeries(z)), 0.5*math.Log(2*math.Pi))
	for i := 0; i < stirlingFrom; i += 4 { // the product of all would overflow
		product := graph.Mul(graph.AddScalar(x, float64(i)), graph.AddScalar(x, float64(i+1)))
		product = graph.Mul(product, graph.Mul(graph.AddScalar(x, float64(i+2)), graph.AddScalar(x, float64(i+3))))
		value = graph.Sub(value, graph.Log(product))
	}
	return value
}

func init() {
	for _, value := range []any{Heteroscedastic{}, Poisson{}, NegativeBinomial{}} {
		Register(value)
	}
}

var (
	_ Likelihood = Heteroscedastic{}
	_ Likelihood = Poisson{}
	_ Likelihood = NegativeBinomial{}
)
