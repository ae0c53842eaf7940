package fbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Regressor learns to predict R numbers, the scores, from theta: Network, RandomNetwork or GaussianProcess.
type Regressor interface {
	// prepare fills in defaults for d coordinates, and returns an error that names a setting that is wrong.
	prepare(d int) (Regressor, error)
	// learn learns from the lesson's pairs.
	learn(ctx context.Context, lesson *lesson) (*predictor, error)
}

var (
	_ Regressor = Network{}
	_ Regressor = GaussianProcess{}
)

// lesson has all that a regressor needs for learning: the pairs and the run's settings.
type lesson struct {
	*fit.Job // the run, with settings for the part that learns
	// theta has the pairs' weights, [J, D], in the order of the chain, standardised by the mean and the standard
	// deviation of the first learn pairs. scores, [J, R], are the values to predict. A regressor learns from the first
	// learn pairs. The later ones are held out: for early stopping and to choose among candidates, but not to learn from.
	theta, scores *mat.Dense
	learn         int
	// judge computes a candidate's errors on the held-out pairs.
	judge    func(ctx context.Context, candidate *predictor) (Errors, error)
	identity run.Part // of the pairs
}

// predictor is the result of a regressor's learning: tensors, and a function that predicts from them.
type predictor struct {
	data map[string]*tensors.Tensor // the tensors that predict needs, by their names
	// predict builds the scores, [J, R], from standardised theta, [J, D], and the data by their names.
	predict    func(data compute.Nodes, theta *graph.Node) *graph.Node
	activation nn.Activation // that was chosen; empty if there is none
}

// within returns the nodes whose names begin with the prefix, by their names without it.
func within(nodes compute.Nodes, prefix string) compute.Nodes {
	some := compute.Nodes{}
	for name, node := range nodes {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			some[bare] = node
		}
	}
	return some
}

// GaussianProcess is Gaussian-process regression (Rasmussen and Williams 2006, chapter 2), the emulator of the
// classical calibrate-emulate-sample (Cleary et al. 2021), for few dimensions. Each score has the covariance s^2
// exp(-|u - u'|^2 / (2 l^2)) plus a nugget, with standardised u. The length l and the nugget, the same for all scores,
// maximise the marginal likelihood on a grid, and s maximises it given these.
type GaussianProcess struct{}

// mostForProcess is the largest number of coordinates of a Gaussian process: beyond, all pairs are about equally far
// from each other.
const mostForProcess = 50

// prepare implements Regressor.
func (p GaussianProcess) prepare(d int) (Regressor, error) {
	return p, limits.Check("fbnn: GaussianProcess", limits.Field("dimension", d, d <= mostForProcess,
		fmt.Sprintf("at most %d coordinates, beyond which all pairs are about as far from each other: take fbnn.Network",
			mostForProcess)))
}

// learn implements Regressor.
func (p GaussianProcess) learn(ctx context.Context, lesson *lesson) (*predictor, error) {
	n := lesson.learn
	_, d := lesson.theta.Dims()
	_, rank := lesson.scores.Dims()
	x, y := lesson.theta.Slice(0, n, 0, d), mat.DenseCopyOf(lesson.scores.Slice(0, n, 0, rank))
	squares := squaredDistances(x)
	best, length := math.Inf(-1), 0.
	nuggets := []float64{1e-8, 1e-6, 1e-4, 1e-2, .1, 1}
	if lesson.DType == compute.Float32 { // with smaller nuggets the sum over pairs loses all digits in float32
		nuggets = nuggets[2:]
	}
	var alpha mat.Dense
	for i := range 17 {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("fbnn: %w", err)
		}
		l := math.Sqrt(float64(d)) * math.Pow(2, float64(i-6)/2) // from 1/8 of the pairs' radius to 32 times it
		for _, nugget := range nuggets {
			k := mat.NewSymDense(n, nil)
			for a := range n {
				for b := range a + 1 {
					k.SetSym(a, b, math.Exp(-squares.At(a, b)/(2*l*l)))
				}
				k.SetSym(a, a, 1+nugget)
			}
			var c mat.Cholesky
			if !c.Factorize(k) {
				continue
			}
			var solved, quadratic mat.Dense
			if err := c.SolveTo(&solved, y); err != nil {
				var bad mat.Condition
				if !errors.As(err, &bad) {
					return nil, fmt.Errorf("fbnn: %w", err)
				}
				continue
			}
			quadratic.Mul(y.T(), &solved)
			// With the optimal s^2, tr(y' K^-1 y)/(n R), this is the log marginal likelihood up to a constant.
			s2 := mat.Trace(&quadratic) / float64(n*rank)
			if m := -.5*float64(n*rank)*math.Log(s2) - .5*float64(rank)*c.LogDet(); m > best {
				best, length = m, l
				alpha.CloneFrom(&solved)
			}
		}
	}
	if length == 0 {
		return nil, fmt.Errorf("%w: no covariance of the %d pairs is positive definite", ErrEmulator, n)
	}
	return &predictor{
		data: map[string]*tensors.Tensor{
			"x":      compute.Floats(lesson.DType, mat.DenseCopyOf(x).RawMatrix().Data, n, d),
			"alpha":  compute.Floats(lesson.DType, alpha.RawMatrix().Data, n, rank),
			"length": compute.Floats(lesson.DType, []float64{length}, 1),
		},
		predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
			away := Sub(ExpandAxes(theta, 1), ExpandAxes(data["x"], 0)) // [J, n, D]
			l := compute.Element(data["length"], 0)
			k := Exp(Div(MulScalar(ReduceSum(Square(away), 2), -.5), Square(l)))
			return Einsum("jn,nr->jr", k, data["alpha"])
		},
	}, nil
}

// squaredDistances returns the squared distances between the rows of x.
func squaredDistances(x mat.Matrix) *mat.SymDense {
	n, _ := x.Dims()
	var inner mat.Dense
	inner.Mul(x, x.T())
	out := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a {
			out.SetSym(a, b, max(0, inner.At(a, a)+inner.At(b, b)-2*inner.At(a, b)))
		}
	}
	return out
}
