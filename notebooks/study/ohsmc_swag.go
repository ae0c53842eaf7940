package study

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/fit"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// publishedSWAG is SWAG as the authors of OHSMC compute it (swag.py of github.com/spdes/pbnn), to see where their
// numbers come from. It differs from baseline.SWAG, and from the paper, in two ways. The shared parameters psi are
// those of the best checkpoint of the training before, while phi's Gaussian is of the later epochs, in which psi has
// moved on: the two have never met. And a draw is mean + z L, of a row z of normals and the covariance S = L L', so
// that its covariance is L' L.
type publishedSWAG struct {
	baseline.Training `json:"training,omitzero"`
	Collect           int `json:"collect"` // epochs after the training, from whose ends phi has its Gaussian
	Rank              int `json:"rank"`
	Samples           int `json:"samples"`
}

// Title implements fit.Method.
func (publishedSWAG) Title() string { return "SWAG as in the program of Zhao et al. 2024" }

// Prepare implements fit.Method: the two parts prepare their settings.
func (m publishedSWAG) Prepare(*fit.Job) (fit.Method, error) { return m, nil }

// swagMoments is the number of draws of baseline.SWAG from which its Gaussian's mean and covariance are taken, to
// within a hundredth of a standard deviation.
const swagMoments = 20_000

// Run implements fit.Method. The training of the first part is that with which the second begins.
func (m publishedSWAG) Run(ctx context.Context, j *fit.Job) (result *fit.Result, err error) {
	defer caught(&err)
	best := must(j.RunFirst(ctx, baseline.MAP{Training: m.Training}))
	around := must(j.RunFirst(ctx, baseline.SWAG{Training: m.Training, Collect: m.Collect, Rank: m.Rank,
		Samples: swagMoments}))
	draws := mat.NewDense(swagMoments, j.Bound.D, must(compute.Float64s(must(around.Posterior.Draws()).Phi)))
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, draws, nil)
	var root mat.Cholesky
	if !root.Factorize(&covariance) {
		return nil, fmt.Errorf("study: SWAG's covariance has no Cholesky factor: %w", baseline.ErrDiverged)
	}
	var lower mat.TriDense
	root.LTo(&lower)
	rng := rand.New(rand.NewPCG(j.Seed, 0))
	z := mat.NewDense(m.Samples, j.Bound.D, nil)
	z.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, z)
	var out mat.Dense
	out.Mul(z, &lower)
	for k := range j.Bound.D {
		mean := stat.Mean(mat.Col(nil, k, draws), nil)
		for i := range m.Samples {
			out.Set(i, k, out.At(i, k)+mean)
		}
	}
	result = fit.Details[*train.Details](around).Result(around.Status)
	result.Approximation = "a Gaussian around the path of a gradient descent, with psi of before it"
	result.Draws = bayes.Draws{Psi: must(best.Posterior.Draws()).Psi, LogWeights: bayes.EqualLogWeights(m.Samples),
		Phi: compute.Floats(j.DType, out.RawMatrix().Data, m.Samples, j.Bound.D)}
	return result, nil
}

// authorsSWAG is the row of publishedSWAG, with the paper's rate and epochs.
func authorsSWAG(collect, rank int) contender {
	return contender{"SWAG, authors' program",
		[]attempt{{Method: publishedSWAG{Collect: collect, Rank: rank, Samples: 1000}, Rate: .01}}}
}
