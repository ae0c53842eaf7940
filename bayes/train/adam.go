package train

import (
	"cmp"
	"math"

	"gobnn/bayes/limits"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Adam is the optimiser of Kingma and Ba (2015), algorithm 1; with WeightDecay it is AdamW (Loshchilov and Hutter 2019,
// algorithm 2): the decay is not part of the gradient, and so not of the moments.
type Adam struct {
	Schedule    Schedule `json:"schedule"`
	Beta2       float64  `json:"beta2,omitempty"` // decay of the mean square; default 0.999
	WeightDecay float64  `json:"weight_decay,omitempty"`
}

// What the paper keeps fixed: the decay of the mean, and what is added to the root of the mean square.
const beta1, epsilon = 0.9, 1e-8

// Schedule is the learning rate as a function of the step: Rate Decay^(step/Every), or with Annealed half a cosine.
type Schedule struct {
	Rate     float64 `json:"rate"`               // default 0.01
	Decay    float64 `json:"decay,omitempty"`    // factor for each Every steps; 0 or 1: constant
	Every    int     `json:"every,omitempty"`    // default 1
	Annealed int     `json:"annealed,omitempty"` // steps until the rate is 0; 0: never
}

// Constant is a learning rate that does not change.
func Constant(rate float64) Schedule { return Schedule{Rate: rate} }

// Exponential multiplies the rate by decay each `every` steps, smoothly in between: rate decay^(step/every).
func Exponential(rate, decay float64, every int) Schedule {
	return Schedule{Rate: rate, Decay: decay, Every: every}
}

// Cosine lowers the rate to 0 along half a cosine, rate (1 + cos(pi step/steps))/2 (Loshchilov and Hutter 2017,
// equation 5, without restarts).
func Cosine(rate float64, steps int) Schedule { return Schedule{Rate: rate, Annealed: steps} }

// At is the rate at a step counted from 0.
func (s Schedule) At(step int) float64 {
	rate := cmp.Or(s.Rate, 0.01)
	if s.Annealed > 0 {
		rate *= (1 + math.Cos(math.Pi*min(float64(step)/float64(s.Annealed), 1))) / 2
	}
	if s.Decay == 0 || s.Decay == 1 {
		return rate
	}
	return rate * math.Pow(s.Decay, float64(step)/float64(max(1, s.Every)))
}

// Check returns an error that names a setting that is wrong.
func (a Adam) Check() error {
	s := a.Schedule
	return limits.Fill("Optimiser",
		limits.Float("Schedule.Rate", &s.Rate).Zero("0.01").Positive(),
		limits.Float("Schedule.Decay", &s.Decay).From(0),
		limits.Int("Schedule.Every", &s.Every).From(0),
		limits.Int("Schedule.Annealed", &s.Annealed).From(0),
		limits.Float("Beta2", &a.Beta2).Zero("0.999").Inside(0, 1),
		limits.Float("WeightDecay", &a.WeightDecay).From(0),
	)
}

// Moments are the state of Adam: running means of the gradient and of its square, [W] each.
type Moments struct{ Mean, Square *graph.Node }

// AscendFinite moves psi, [..., W], along the gradient of what is to be maximised, and skips steps that are not finite.
// A row of psi and its moments change only if its gradient and its new value are finite, and usable, [...], is true
// (nil: true for all). moved, [...], says which rows have moved. step counts from 1, a scalar of psi's type; rate is
// the schedule's value, a scalar. It builds graph, and panics as GoMLX does.
func (a Adam) AscendFinite(
	usable, psi, gradient *graph.Node, m Moments, step, rate *graph.Node,
) (next *graph.Node, after Moments, moved *graph.Node) {
	moved = LogicalAll(IsFinite(gradient), -1)
	if usable != nil {
		moved = And(usable, moved)
	}
	beta2 := cmp.Or(a.Beta2, 0.999)
	after.Mean = Add(MulScalar(m.Mean, beta1), MulScalar(gradient, 1-beta1))
	after.Square = Add(MulScalar(m.Square, beta2), MulScalar(Square(gradient), 1-beta2))
	unbias := func(moment *Node, beta float64) *Node {
		return Div(moment, OneMinus(Exp(MulScalar(step, math.Log(beta)))))
	}
	direction := Div(unbias(after.Mean, beta1), AddScalar(Sqrt(unbias(after.Square, beta2)), epsilon))
	if a.WeightDecay > 0 {
		direction = Sub(direction, MulScalar(psi, a.WeightDecay))
	}
	next = Add(psi, Mul(direction, rate))
	moved = And(moved, LogicalAll(IsFinite(next), -1))
	keep := func(new, old *Node) *Node {
		return Where(BroadcastToDims(ExpandAxes(moved, -1), old.Shape().Dimensions...), new, old)
	}
	return keep(next, psi), Moments{Mean: keep(after.Mean, m.Mean), Square: keep(after.Square, m.Square)}, moved
}
