package fbnn

import (
	"context"
	"fmt"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// linear predicts scores by linear regression: least squares, with the smallest coefficients if there are fewer pairs
// than coordinates. It is exact if the network is linear in theta.
type linear struct{}

func (l linear) prepare() (Regressor, error) { return l, nil }

// learn works with the pairs' inner products, so there are no more equations than pairs.
func (l linear) learn(_ context.Context, lesson *lesson) (*predictor, error) {
	_, d := lesson.theta.Dims()
	x := mat.NewDense(lesson.learn, d+1, nil)
	x.Copy(lesson.theta.Slice(0, lesson.learn, 0, d))
	for j := range lesson.learn {
		x.Set(j, d, 1)
	}
	_, rank := lesson.scores.Dims()
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) {
		return nil, fmt.Errorf("%w: no singular values of the %d pairs", ErrEmulator, lesson.learn)
	}
	var w mat.Dense // [D+1, R]
	svd.SolveTo(&w, lesson.scores.Slice(0, lesson.learn, 0, rank), svd.Rank(1e-10))
	return &predictor{
		data: map[string]*tensors.Tensor{
			"w": compute.Floats(lesson.DType, mat.DenseCopyOf(w.Slice(0, d, 0, rank)).RawMatrix().Data, d, rank),
			"b": compute.Floats(lesson.DType, mat.Row(nil, d, &w), 1, rank),
		},
		predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
			return Add(Einsum("jd,dr->jr", theta, data["w"]), data["b"])
		},
	}, nil
}
