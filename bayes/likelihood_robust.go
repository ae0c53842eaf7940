package bayes

import (
	"math"

	"gobnn/bayes/internal/stats"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// HeteroscedasticT is y = f(x) + s(x) e, where e has Student's t distribution with v degrees of freedom that are
// learnt: a regression whose noise depends on x, and that outliers do not mislead. It is ModelFor's likelihood of a
// regression. Of the 2K network outputs for K targets the first K are the centres f, and the others, g, give the
// scales, s = exp(6 tanh(g/6)), so that no scale is below .0025: a target that takes few values, such as a mark, could
// else be given a density as high as you like at each. The parameter t, named "noise/log_dof", [K], starts at 0 and
// gives v = 2.1 + 8 exp(3 tanh(t/3)), from 2.5 to 163, so that there is a variance. All are in standardised units. t
// is a shared parameter unless the model's Partition names it.
type HeteroscedasticT struct{ numbers }

// The bounds of HeteroscedasticT, see there.
const (
	logScaleBound = 6
	logDoFBound   = 3
	leastDoF      = 2.1
	moreDoF       = 8
)

// dofName is the name of learnt degrees of freedom.
const dofName = "noise/log_dof"

// Outputs implements Likelihood.
func (HeteroscedasticT) Outputs(size int) int { return 2 * size }

// Parameters implements Likelihood.
func (HeteroscedasticT) Parameters(size int) []nn.Parameter {
	return []nn.Parameter{
		{Name: dofName, Kind: nn.Noise, Shape: []int{size}, FanIn: 1, FanOut: size, Init: nn.Zeros},
	}
}

// LogDensity implements Likelihood: log Gamma((v+1)/2) - log Gamma(v/2) - log(pi v)/2 - log s - (v+1)/2 log(1 +
// ((y-f)/s)^2/v).
func (HeteroscedasticT) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	f, g := halves(outputs.Full())
	logScale, dof := within(g, logScaleBound), degrees(params)
	half, halfMore := graph.MulScalar(dof, .5), graph.MulScalar(graph.OnePlus(dof), .5)
	constant := graph.Sub(graph.Sub(logGamma(halfMore), logGamma(half)),
		graph.MulScalar(graph.Log(graph.MulScalar(dof, math.Pi)), .5))
	z := graph.Mul(graph.Sub(Targets(y), f), graph.Exp(graph.Neg(logScale)))
	tail := graph.Mul(halfMore, graph.Log1p(graph.Div(graph.Square(z), dof)))
	return SumTargets(graph.Sub(graph.Sub(constant, tail), logScale))
}

// degrees are the degrees of freedom.
func degrees(params nn.Params) *graph.Node {
	return graph.AddScalar(graph.MulScalar(graph.Exp(within(params[dofName].Full(), logDoFBound)), moreDoF), leastDoF)
}

// Information implements Informative: (v + 1)/(v + 3)/s^2 of a centre, and 2 v/(v + 3) (d log s/d g)^2 of g.
func (HeteroscedasticT) Information(params nn.Params, outputs nn.Value) *graph.Node {
	_, g := halves(outputs.Full())
	dof := degrees(params)
	more := graph.AddScalar(dof, 3)
	ofCentre := graph.Mul(graph.Div(graph.OnePlus(dof), more), graph.Exp(graph.MulScalar(within(g, logScaleBound), -2)))
	slope := graph.OneMinus(graph.Square(graph.Tanh(graph.DivScalar(g, logScaleBound))))
	ofScale := graph.Mul(graph.Div(graph.MulScalar(dof, 2), more), graph.Square(slope))
	return graph.Concatenate([]*graph.Node{ofCentre, ofScale}, 1)
}

// within keeps x between -bound and bound, smoothly.
func within(x *graph.Node, bound float64) *graph.Node {
	return graph.MulScalar(graph.Tanh(graph.DivScalar(x, bound)), bound)
}

// Predictive implements Likelihood.
func (HeteroscedasticT) Predictive(outputs, own []float64, target int) Distribution {
	soft := func(x, bound float64) float64 { return math.Exp(bound * math.Tanh(x/bound)) }
	return studentT{distuv.StudentsT{
		Mu:    outputs[target],
		Sigma: soft(outputs[len(outputs)/2+target], logScaleBound),
		Nu:    leastDoF + moreDoF*soft(own[target], logDoFBound),
	}}
}

// studentT is gonum's distribution, as a stats.LocationScale.
type studentT struct{ distuv.StudentsT }

// LocationScale implements stats.LocationScale.
func (s studentT) LocationScale() (location, scale float64, standard stats.Distribution) {
	return s.Mu, s.Sigma, studentT{distuv.StudentsT{Sigma: 1, Nu: s.Nu}}
}

func init() { Register(HeteroscedasticT{}) }

var _ Likelihood = HeteroscedasticT{}
