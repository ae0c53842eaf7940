package fit_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// SVGD is Stein variational gradient descent (Liu and Wang 2016, Algorithm 1): J particles move along
//
//	phi(x) = 1/J sum_j k(x_j, x) grad log p(x_j) + grad_x_j k(x_j, x)
//
// where k(x, x') = exp(-|x - x'|^2 / h) draws them uphill together, and apart from each other.
type SVGD struct {
	particles.Training         // Particles, Epochs, BatchSize and what else all methods with mini-batches have
	StepSize           float64 // default 0.001
}

func (SVGD) Title() string {
	return "Stein variational gradient descent (Liu and Wang 2016, Algorithm 1)"
}

// Prepare fills in and bounds the settings: a row a field.
func (a SVGD) Prepare(j *fit.Job) (m fit.Method, err error) {
	if err := limits.Fill("SVGD", limits.Float("StepSize", &a.StepSize, .001).Positive()); err != nil {
		return nil, err
	}
	a.Training, err = a.Training.Prepared(j, 1, smc.Stratified)
	return a, err
}

// Run repeats the step; batches, validation, resume, progress and the posterior are the run's.
func (a SVGD) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, a.Training, a)
}

func (a SVGD) Compile(c *particles.Core) (particles.Stepper, error) {
	step := func(s particles.State, batch density.Batch, _ particles.Now) (particles.State, particles.StepInfo) {
		_, score := density.At(c.Target, s.Psi, batch).Gradient(s.Phi) // [J, D]
		k, repulsion := kernelOf(s.Phi)                                // [J, J], [J, D]
		s.Phi = Add(s.Phi, MulScalar(Add(Dot(k, score).Product(), repulsion), a.StepSize/float64(c.Particles)))
		return s, particles.StepInfo{ESS: Reciprocal(ReduceAllMean(k))}
	}
	return particles.NewStepper(c, particles.Graphs{Step: step})
}

// kernelOf is k(x_i, x_j) for all pairs, [J, J], and the sum over j of its gradient with respect to x_j, [J, D]. The
// bandwidth h is the mean squared distance over log J.
func kernelOf(x *graph.Node) (k, repulsion *graph.Node) {
	j := x.Shape().Dim(0)
	difference := Sub(ExpandAxes(x, 1), ExpandAxes(x, 0)) // [J, J, D]
	distance := ReduceSum(Square(difference), 2)
	h := MulScalar(ReduceAllMean(distance), 1/math.Log(float64(j)))
	k = Exp(Neg(Div(distance, h)))
	return k, ReduceSum(Mul(ExpandAxes(k, 2), MulScalar(Div(difference, h), 2)), 1)
}

// Doubts are reasons not to trust a finished run.
func (a SVGD) Doubts(_ particles.Training, _ int, trace []particles.StepRecord) (all fit.Doubts) {
	all.If(trace[len(trace)-1].ESS < 1.01, "collapsed", "the particles have collapsed into one: take a shorter StepSize, "+
		"or more Particles")
	return all
}

// A method of one's own is a type with three functions: it fits, validates, shows progress, saves, and goes on from its
// checkpoint as the methods of this library do.
func ExampleMethod() {
	ctx := context.Background()
	parts, err := dataset.MustLoad("yacht").Split(dataset.Fractions{Train: .6, Validation: .3, Test: .1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{10}}, Likelihood: bayes.Gaussian{StdDev: .5}}
	method := SVGD{Training: particles.Training{Particles: 20, Epochs: 400}, StepSize: .0006}
	result, err := fit.Fit(ctx, model, method, parts, run.Settings{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
	if err != nil {
		log.Fatal(err)
	}
	rmse, err := metric.RMSE(prediction, parts.Test.Y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, "by", result.Posterior.Provenance().Algorithm)
	fmt.Println("the error is below 6 units:", rmse.Value < 6)
	// Output:
	// completed by fit_test: Stein variational gradient descent (Liu and Wang 2016, Algorithm 1)
	// the error is below 6 units: true
}
