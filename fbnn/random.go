package fbnn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes/compute"
	"gobnn/bayes/limits"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// RandomNetwork is the surrogate of RNS-HMC (random network surrogate HMC, Zhang, Shahbaba and Zhao 2017; a baseline of
// the paper, section 2.3): a network of one hidden layer, sum_k v_k tanh(w_k'u + b_k), with u the standardised theta.
// The w and b are drawn at random and not trained. v is found by ridge regression, with the ridge whose error on the
// held-out pairs is smallest. RNS-HMC is
//
//	CES{Emulates: LogLikelihood, Regressor: RandomNetwork{}, Sampling: mcmc.HMC{Steps: 10}}
//
// with trajectories on the surrogate, whose ends the true posterior accepts or rejects. The step size is chosen for the
// largest expected squared jump of accepted ends. (RNS-HMC accepts an end once, by the true energy. Here the surrogate
// accepts or rejects first, and then the true posterior, which leaves the same posterior invariant.) In hundreds of
// dimensions a surrogate from 200 pairs has learnt next to nothing about the gradient, as Details.HeldOut shows.
// Then the step size is small, and the chain a random walk.
type RandomNetwork struct {
	Units int // default 1000
}

var _ Regressor = RandomNetwork{}

// prepare implements Regressor.
func (n RandomNetwork) prepare() (Regressor, error) {
	err := limits.Fill("fbnn: RandomNetwork", limits.Int("Units", &n.Units, 1000).From(1))
	return n, err
}

// learn implements Regressor. With F the hidden units at the n learnt pairs, [n, Units], y their scores, and ridge r, v
// = F' (F F' + r I)^-1 y. This form has n equations to solve, however many units there are.
func (n RandomNetwork) learn(_ context.Context, lesson *lesson) (*predictor, error) {
	rows, d := lesson.theta.Dims()
	_, rank := lesson.scores.Dims()
	rng := rand.New(rand.NewPCG(lesson.Seed, 0x726e73))
	w, b := mat.NewDense(d, n.Units, nil), make([]float64, n.Units)
	for k := range n.Units {
		b[k] = rng.NormFloat64()
		for i := range d {
			w.Set(i, k, rng.NormFloat64()/math.Sqrt(float64(d)))
		}
	}
	var units mat.Dense // [J, Units]
	units.Mul(lesson.theta, w)
	units.Apply(func(_, k int, v float64) float64 { return math.Tanh(v + b[k]) }, &units)
	learn, held := units.Slice(0, lesson.learn, 0, n.Units), units.Slice(lesson.learn, rows, 0, n.Units)
	y, ofHeld := lesson.scores.Slice(0, lesson.learn, 0, rank), lesson.scores.Slice(lesson.learn, rows, 0, rank)
	var gram mat.SymDense
	gram.SymOuterK(1, mat.DenseCopyOf(learn))
	mean := mat.Trace(&gram) / float64(lesson.learn)
	var best mat.Dense
	least := math.Inf(1)
	for exponent := -8; exponent <= 1; exponent++ {
		ridged := mat.NewSymDense(lesson.learn, nil)
		ridged.CopySym(&gram)
		for i := range lesson.learn {
			ridged.SetSym(i, i, gram.At(i, i)+mean*math.Pow(10, float64(exponent)))
		}
		var c mat.Cholesky
		var solved, v, off mat.Dense
		if !c.Factorize(ridged) || c.SolveTo(&solved, y) != nil {
			continue
		}
		v.Mul(learn.T(), &solved)
		off.Mul(held, &v)
		off.Sub(&off, ofHeld)
		if e := mat.Norm(&off, 2); e < least {
			least = e
			best.CloneFrom(&v)
		}
	}
	if math.IsInf(least, 1) {
		return nil, fmt.Errorf("%w: no ridge makes the equations of %d random units solvable", ErrEmulator, n.Units)
	}
	return &predictor{
		data: map[string]*tensors.Tensor{
			"w": compute.Floats(lesson.DType, w.RawMatrix().Data, d, n.Units),
			"b": compute.Floats(lesson.DType, b, 1, n.Units),
			"v": compute.Floats(lesson.DType, best.RawMatrix().Data, n.Units, rank),
		},
		predict: func(data compute.Nodes, theta *graph.Node) *graph.Node {
			units := Tanh(Add(Einsum("jd,dk->jk", theta, data["w"]), data["b"]))
			return Einsum("jk,kr->jr", units, data["v"])
		},
	}, nil
}
