package bayes

import (
	"math"

	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
)

// Ordinal is y in {0, ..., C-1}, classes that have an order, such as low, medium and high: the proportional odds model
// (McCullagh 1980, Regression models for ordinal data),
//
//	P(y <= k) = sigmoid(c_k - f(x)),  k = 0, ..., C-2.
//
// The larger the one network output f, the higher the class. The cut points c are learnt, and ascend whatever their
// parameter t, named "noise/cuts", [C-1], is: with l_k = logit((k+1)/C)
//
//	c_0 = l_0 + t_0,  c_k = c_(k-1) + (l_k - l_(k-1)) exp(t_k).
//
// t starts at 0, where each class has the probability 1/C at f = 0. It is a shared parameter unless the model's
// Partition names it. There is no scale of a noise to learn: it would do what the scale of f does, which is that of the
// last layer's weights. That layer's bias moves all cut points, as t_0 does; of the two only the difference is known.
//
// The order is that of the data's classes, which dataset.CSVOptions.Classes says; the data's Task is Classification,
// also where there are two.
type Ordinal struct{ labels }

// cutsName is the name of the cut points' parameter.
const cutsName = "noise/cuts"

// Outputs implements Likelihood: f.
func (Ordinal) Outputs(int) int { return 1 }

// Parameters implements Likelihood.
func (Ordinal) Parameters(size int) []nn.Parameter {
	return []nn.Parameter{
		{Name: cutsName, Kind: nn.Noise, Shape: []int{size - 1}, FanIn: 1, FanOut: size - 1, Init: nn.Zeros},
	}
}

// LogDensity implements Likelihood: log P(y).
func (Ordinal) LogDensity(params nn.Params, outputs nn.Value, y *graph.Node) *graph.Node {
	logs, _ := ordered(params, outputs)
	return ofClass(logs, y)
}

// Information implements Informative: sum_k s_k (P(y = k) + P(y = k+1)), where s_k = sigmoid'(c_k - f).
func (Ordinal) Information(params nn.Params, outputs nn.Value) *graph.Node {
	logs, away := ordered(params, outputs)
	p, cuts := graph.Exp(logs), away.Shape().Dim(1)
	beside := graph.Add(graph.Slice(p, graph.AxisRange(), graph.AxisRange(0, cuts)),
		graph.Slice(p, graph.AxisRange(), graph.AxisRange(1, cuts+1)))
	slope := graph.Mul(graph.Sigmoid(away), graph.Sigmoid(graph.Neg(away)))
	return graph.ReduceAndKeep(graph.Mul(slope, beside), graph.ReduceSum, 1)
}

// ordered returns log P(y = k) of all classes, [J/c, C, B, c], and f - c_k, [J/c, C-1, B, c]. For a class between two
// cuts a difference of sigmoids would lose all digits where both are near 0 or 1. It is the product
//
//	sigmoid(c_k - f) sigmoid(f - c_(k-1)) (1 - exp(-(c_k - c_(k-1))))
//
// whose logarithms are finite whatever f is. Of the first and the last class a factor is 1.
func ordered(params nn.Params, outputs nn.Value) (logs, away *graph.Node) {
	t := params[cutsName].Full() // [J/c, C-1, 1, c]
	classes := t.Shape().Dim(1) + 1
	var cuts, apart []*graph.Node // c_k; log(1 - exp(-gap)), where gap = c_k - c_(k-1)
	for k := range classes - 1 {
		own := graph.Slice(t, graph.AxisRange(), graph.AxisRange(k, k+1))
		if k == 0 {
			cuts = append(cuts, graph.AddScalar(own, evenCut(0, classes)))
			continue
		}
		gap := graph.MulScalar(graph.Exp(own), evenCut(k, classes)-evenCut(k-1, classes))
		cuts = append(cuts, graph.Add(cuts[k-1], gap))
		// 1 - exp(-g) = tanh(g/2) (1 + exp(-g)), exact for small g too
		apart = append(apart, graph.Add(graph.Log(graph.Tanh(graph.MulScalar(gap, .5))),
			graph.Log1p(graph.Exp(graph.Neg(gap)))))
	}
	away = graph.Sub(outputs.Full(), graph.Concatenate(cuts, 1))
	logSigmoid := func(x *graph.Node) *graph.Node {
		return graph.Neg(nn.Softplus.Apply(nil, nn.Value{Node: graph.Neg(x)}).Node)
	}
	none := graph.ZerosLike(graph.Slice(away, graph.AxisRange(), graph.AxisRange(0, 1)))
	logs = graph.Add(graph.Concatenate([]*graph.Node{logSigmoid(graph.Neg(away)), none}, 1),
		graph.Concatenate([]*graph.Node{none, logSigmoid(away)}, 1))
	end := graph.ZerosLike(cuts[0])
	apart = append(append([]*graph.Node{end}, apart...), end)
	return graph.Add(logs, graph.Concatenate(apart, 1)), away
}

// evenCut is the cut point above class k at which, with f = 0, each of the classes has the same probability.
func evenCut(k, classes int) float64 { return math.Log(float64(k+1) / float64(classes-k-1)) }

// Predictive implements Likelihood.
func (Ordinal) Predictive(outputs, own []float64, _ int) Distribution {
	logSigmoid := func(x float64) float64 { return min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }
	f, classes := outputs[0], len(own)+1
	logs := make([]float64, classes)
	cut := 0.0
	for k, t := range own {
		if k == 0 {
			cut = evenCut(0, classes) + t
		} else {
			gap := (evenCut(k, classes) - evenCut(k-1, classes)) * math.Exp(t)
			cut += gap
			logs[k] += math.Log(-math.Expm1(-gap))
		}
		logs[k] += logSigmoid(cut - f)
		logs[k+1] += logSigmoid(f - cut)
	}
	return newClasses(logs)
}

func init() { Register(Ordinal{}) }

var (
	_ Likelihood  = Ordinal{}
	_ Informative = Ordinal{}
)
