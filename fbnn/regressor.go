package fbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Regressor learns to predict R numbers, the scores, from theta. Network, RandomNetwork, GaussianProcess and Linear are
// regressors, and a type of your own can be one. It is a value that holds settings; its exported fields are compared
// when a run resumes from a checkpoint.
type Regressor interface {
	// Prepare fills in defaults for d coordinates, and returns an error that names a setting that is wrong.
	Prepare(d int) (Regressor, error)
	// Learn learns from the lesson's pairs.
	Learn(ctx context.Context, lesson *Lesson) (*Learnt, error)
}

var (
	_ Regressor = Network{}
	_ Regressor = GaussianProcess{}
	_ Regressor = Linear{}
)

// Lesson has all that a regressor needs for learning: the pairs and the run's settings.
type Lesson struct {
	Settings // of the run
	// Theta has the pairs' weights, [J, D], in the order of the chain, standardised by the mean and the standard
	// deviation of the first Learn pairs. Scores, [J, R], are the values to predict. Learn from the first Learn pairs.
	// The later ones are held out: use them for early stopping and to choose among candidates, but not to learn from.
	Theta, Scores *mat.Dense
	Learn         int
	// Judge computes a candidate's errors on the held-out pairs.
	Judge func(ctx context.Context, candidate *Learnt) (Errors, error)
	// Checkpoint is a name for files that hold a training's state; empty: none. Identity identifies the run and its pairs.
	Checkpoint string
	Identity   string

	resumed func(all time.Duration, begun time.Time) // gets the time of a training over all sessions
}

// Learnt is the result of a regressor's learning: tensors, and a function that predicts from them.
type Learnt struct {
	Data map[string]*tensors.Tensor // the tensors that Predict needs, by their names
	// Predict builds the scores, [J, R], from standardised theta, [J, D], and the data by their names.
	Predict    func(data compute.Nodes, theta *graph.Node) *graph.Node
	Activation nn.Activation // that was chosen; empty if there is none
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

// Linear predicts scores by linear regression: least squares, with the smallest coefficients if there are fewer pairs
// than coordinates. It is exact if the network is linear in theta.
type Linear struct{}

// Prepare implements Regressor.
func (l Linear) Prepare(int) (Regressor, error) { return l, nil }

// Learn implements Regressor. It works with the pairs' inner products, so there are no more equations than pairs.
func (l Linear) Learn(_ context.Context, lesson *Lesson) (*Learnt, error) {
	_, d := lesson.Theta.Dims()
	x := mat.NewDense(lesson.Learn, d+1, nil)
	x.Copy(lesson.Theta.Slice(0, lesson.Learn, 0, d))
	for j := range lesson.Learn {
		x.Set(j, d, 1)
	}
	_, rank := lesson.Scores.Dims()
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) {
		return nil, fmt.Errorf("%w: no singular values of the %d pairs", ErrEmulator, lesson.Learn)
	}
	var w mat.Dense // [D+1, R]
	svd.SolveTo(&w, lesson.Scores.Slice(0, lesson.Learn, 0, rank), svd.Rank(1e-10))
	return &Learnt{
		Data: map[string]*tensors.Tensor{
			"w": compute.Floats(lesson.DType, mat.DenseCopyOf(w.Slice(0, d, 0, rank)).RawMatrix().Data, d, rank),
			"b": compute.Floats(lesson.DType, mat.Row(nil, d, &w), 1, rank),
		},
		Predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
			return Add(Einsum("jd,dr->jr", theta, data["w"]), data["b"])
		},
	}, nil
}

// GaussianProcess is Gaussian-process regression (Rasmussen and Williams 2006, chapter 2), the emulator of the
// classical calibrate-emulate-sample (Cleary et al. 2021), for few dimensions. Each score has the covariance s^2
// exp(-|u - u'|^2 / (2 l^2)) plus a nugget, with standardised u. The length l and the nugget, the same for all scores,
// maximise the marginal likelihood on a grid, and s maximises it given these.
type GaussianProcess struct{}

// mostForProcess is the largest number of coordinates of a Gaussian process: beyond, all pairs are about equally far
// from each other.
const mostForProcess = 50

// Prepare implements Regressor.
func (p GaussianProcess) Prepare(d int) (Regressor, error) {
	return p, limits.Check("fbnn: GaussianProcess", limits.Field("dimension", d, d <= mostForProcess,
		fmt.Sprintf("at most %d coordinates, beyond which all pairs are about as far from each other: take fbnn.Network",
			mostForProcess)))
}

// Learn implements Regressor.
func (p GaussianProcess) Learn(ctx context.Context, lesson *Lesson) (*Learnt, error) {
	n := lesson.Learn
	_, d := lesson.Theta.Dims()
	_, rank := lesson.Scores.Dims()
	x, y := lesson.Theta.Slice(0, n, 0, d), mat.DenseCopyOf(lesson.Scores.Slice(0, n, 0, rank))
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
	return &Learnt{
		Data: map[string]*tensors.Tensor{
			"x":      compute.Floats(lesson.DType, mat.DenseCopyOf(x).RawMatrix().Data, n, d),
			"alpha":  compute.Floats(lesson.DType, alpha.RawMatrix().Data, n, rank),
			"length": compute.Floats(lesson.DType, []float64{length}, 1),
		},
		Predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
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
