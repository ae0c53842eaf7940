package baseline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// SWAG is stochastic weight averaging Gaussian (Maddox, Garipov, Izmailov, Vetrov and Wilson 2019). After MAP training,
// ascent at a constant learning rate moves around the mode. A Gaussian is fitted to its iterates theta_1, ..., theta_T
// at the ends of T epochs:
//
//	mean = (1/T) sum_t theta_t,  diag = (1/T) sum_t theta_t^2 - mean^2,  D = [theta_t - mean_t] for the last K of them,
//
// where mean_t is the mean of the first t. A draw is mean + diag^(1/2) z / sqrt 2 + D z' / sqrt(2 (K - 1)) (the paper's
// equation 1). (The squares are summed about the running mean, which is the same but for rounding.)
//
// In a partial model the Gaussian is over the stochastic parameters; the shared ones are at the mean. The iterates are
// Adam's, as in Zhao et al. 2024, whose settings are Collect 50 to 200 and Rank 20 to 100; the paper takes those of
// stochastic gradient descent. The T epochs come on top of Epochs.
type SWAG struct {
	Training `json:"training,omitzero"`
	Collect  int     `json:"collect"` // T, at least 2; default half of Epochs
	Rank     int     `json:"rank"`    // K, from 2 to Collect; default 20, or Collect if that is less
	Rate     float64 `json:"rate"`    // constant learning rate; default the rate that Optimiser begins with
	Samples  int     `json:"samples"` // particles of the posterior; default 100
}

var _ fit.Method = SWAG{}

// Title implements fit.Method.
func (SWAG) Title() string { return "SWAG (Maddox et al. 2019)" }

// Prepare implements fit.Method.
func (m SWAG) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if m.Training, err = preparedPoints(j, m.Training); err != nil {
		return nil, err
	}
	if err := limits.Fill("baseline: SWAG",
		limits.Int("Collect", &m.Collect, max(2, m.Epochs/2)).From(2).Because("as a Gaussian is fitted to its iterates"),
		limits.Float("Rate", &m.Rate, m.Optimiser.Schedule.At(0)).Positive(),
		limits.Int("Samples", &m.Samples, 100).From(1),
	); err != nil {
		return nil, err
	}
	return m, limits.Fill("baseline: SWAG",
		limits.Int("Rank", &m.Rank, min(20, m.Collect)).Between(2, m.Collect).Because("the epochs of Collect"))
}

// Run implements fit.Method.
func (m SWAG) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	mode, err := modeOf(ctx, j, m.Training)
	if err != nil {
		return nil, err
	}
	points, err := newPoints(j, m.Training, 1, true)
	if err != nil {
		return nil, err
	}
	collected, err := train.Run(ctx, j, m.around(), m.collecting(j, points, mode.trained.Theta))
	if collected == nil {
		return nil, err
	}
	around := fit.Details[*train.Details](collected)
	count := around.Steps / around.PerEpoch
	if count < 2 {
		return nil, fmt.Errorf("baseline: cancelled when SWAG had collected %d of %d iterates: %w",
			count, m.Collect, errors.Join(err, context.Cause(ctx)))
	}
	fitted, failed := m.gaussian(around, count)
	if failed != nil {
		return nil, fmt.Errorf("baseline: %w", failed)
	}
	var phi []float64
	rng := rand.New(rand.NewPCG(j.Seed, 0x53574147))
	for range m.Samples {
		draw, _ := split(j.Bound, fitted.draw(rng))
		phi = append(phi, draw...)
	}
	_, psi := split(j.Bound, fitted.mean)
	both := mode.trained.Then(around)
	result := both.Result(collected.Status)
	result.Draws, result.Approximation = drawsOf(j, phi, psi), "a Gaussian around the path of a gradient descent"
	return result, err
}

// around are the settings of the ascent around the mode.
func (m SWAG) around() Training {
	t := m.Training
	t.Epochs, t.Optimiser.Schedule = m.Collect, train.Constant(m.Rate)
	return t
}

// collecting is that ascent.
func (m SWAG) collecting(j *fit.Job, p *points, start []float64) train.Task {
	return train.Task{
		Learner: iterates{p, m.Rank}, Name: "collecting", Train: train.OfTraining(j), Start: start,
	}
}

// iterates is the learner whose values at the ends of epochs are collected.
type iterates struct {
	*points
	rank int
}

var _ train.Collector = iterates{}

// The entries of state: the running mean, the sum of squares about it, and the last K deviations, the newest last.
const (
	swagMean       = "swag_mean"       // [1, Q]
	swagSquares    = "swag_squares"    // [1, Q]
	swagDeviations = "swag_deviations" // [K, Q]
)

// Collected implements train.Collector.
func (c iterates) Collected(dtype compute.DType) map[string]*tensors.Tensor {
	_, width := c.Size()
	return map[string]*tensors.Tensor{
		swagMean:       compute.Floats(dtype, make([]float64, width), 1, width),
		swagSquares:    compute.Floats(dtype, make([]float64, width), 1, width),
		swagDeviations: compute.Floats(dtype, make([]float64, c.rank*width), c.rank, width),
	}
}

// Collect implements train.Collector: Welford's update of mean and sum of squares by theta, [1, Q], the count-th
// iterate.
func (c iterates) Collect(s compute.Nodes, count *graph.Node) compute.Nodes {
	before := Sub(s["theta"], s[swagMean])
	mean := Add(s[swagMean], Div(before, count))
	deviation := Sub(s["theta"], mean)
	return compute.Nodes{
		swagMean: mean, swagSquares: Add(s[swagSquares], Mul(before, deviation)),
		swagDeviations: Concatenate([]*Node{Slice(s[swagDeviations], AxisRange(1)), deviation}, 0),
	}
}

// gaussian is the fitted Gaussian.
type gaussian struct {
	mean, variance []float64   // [Q]; variance is diag
	deviations     [][]float64 // the K columns of D, [Q] each
}

func (m SWAG) gaussian(t *train.Details, iterates int) (g gaussian, err error) {
	if g.mean, err = compute.Float64s(t.Collected[swagMean]); err != nil {
		return g, err
	}
	if g.variance, err = compute.Float64s(t.Collected[swagSquares]); err != nil {
		return g, err
	}
	for i := range g.variance {
		g.variance[i] /= float64(iterates)
	}
	flat, err := compute.Float64s(t.Collected[swagDeviations])
	if err != nil {
		return g, err
	}
	width := len(g.mean)
	for k := max(0, m.Rank-iterates); k < m.Rank; k++ { // a run that was cancelled early has fewer
		g.deviations = append(g.deviations, flat[k*width:(k+1)*width])
	}
	return g, nil
}

// draw is one point, [Q].
func (g gaussian) draw(rng *rand.Rand) []float64 {
	point := make([]float64, len(g.mean))
	for i := range point {
		point[i] = g.mean[i] + math.Sqrt(0.5*g.variance[i])*rng.NormFloat64()
	}
	for _, deviation := range g.deviations {
		z := rng.NormFloat64() / math.Sqrt(2*float64(len(g.deviations)-1))
		for i := range point {
			point[i] += z * deviation[i]
		}
	}
	return point
}
