package baseline

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// SAE is sequential anchored ensembles (Delaunoy and Louppe 2021, arXiv 2201.00649). A member of an anchored ensemble
// (Pearce, Leibfried, Brintrup, Zaki and Neely 2020) maximises
//
//	log p(y | theta) + log N(theta; a, s^2)
//
// where the anchor a is a draw from the prior N(0, s^2); for a posterior density the anchor would be 0. Where the data
// say nothing, the members are therefore spread as the prior is. In SAE the anchors are a Markov chain. Each member's
// training begins where the one before ended, so that it needs a fraction of the epochs: here a twentieth, at least
// one. The chain is Gustafson's guided walk (1998) in each coordinate separately: it keeps its direction until a step
// is rejected.
//
// For a linear Gaussian model the members have the posterior's mean, but the covariance P^-1 s^-2 P^-1 instead of P^-1,
// with P the posterior's precision: it is too small in directions that the data determine.
//
// The prior must be a bayes.Normal. Like the members of Ensemble, these share nothing: the posterior's model has every
// parameter stochastic. Parameters that the Model's partition calls shared have no anchor.
type SAE struct {
	Training `json:"training,omitzero"`
	Chains   int `json:"chains"`  // of anchors, trained side by side; default 5
	Members  int `json:"members"` // of each chain; default 20
	// StepSize is the standard deviation of a step of the anchors' walk, in units of the prior's; default 0.3.
	StepSize float64 `json:"step_size"`
}

// memberShare is Epochs over the epochs of each member after the first; a variable for the tests.
var memberShare = 20

var _ fit.Method = SAE{}

// Title implements fit.Method.
func (SAE) Title() string { return "sequential anchored ensembles (Delaunoy and Louppe 2021)" }

// Prepare implements fit.Method.
func (m SAE) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if m.Training, err = preparedPoints(j, m.Training); err != nil {
		return nil, err
	}
	if _, normal := j.Bound.Model.Prior.(bayes.Normal); !normal {
		return nil, fmt.Errorf("baseline: SAE draws anchors of a normal prior, and the prior is a %T: take bayes.Normal, or "+
			"baseline.Ensemble", j.Bound.Model.Prior)
	}
	decay := m.Optimiser.WeightDecay
	return m, limits.Fill("baseline: SAE",
		limits.Int("Chains", &m.Chains, 5).From(1),
		limits.Int("Members", &m.Members, 20).From(1),
		limits.Float("StepSize", &m.StepSize, 0.3).Positive(),
		limits.Field("Optimiser.WeightDecay", decay, decay == 0, "0: the anchors are what holds the weights"),
	)
}

// Run implements fit.Method. A cancelled run returns the members that were trained to their end; if there are none, the
// first members as they are.
func (m SAE) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	points, err := newPoints(j, m.Training, m.Chains, true)
	if err != nil {
		return nil, err
	}
	whole, err := wholeOf(j)
	if err != nil {
		return nil, err
	}
	learner := newAnchored(points)
	posterior := func(status run.Status, members ...[]float64) (*bayes.Posterior, error) {
		from := bayes.Provenance{Status: string(status), Approximation: "maxima around anchors drawn from the prior"}
		return whole.PosteriorOf(drawsOf(whole, learner.byChain(members), nil), from)
	}
	first, err := maximise(ctx, j, m.Training, learner,
		func(status run.Status, theta []float64) (*bayes.Posterior, error) { return posterior(status, theta) })
	if first == nil {
		return nil, err
	}
	all, status := *fit.Details[*train.Details](first), first.Status
	theta, members := all.Theta, [][]float64{all.Theta}
	walk := newGuidedWalk(learner.anchors(theta), learner.scales, m.StepSize, j.Seed)
	for k := 2; k <= m.Members && err == nil && status.Err() == nil; k++ {
		walk.step()
		var next *fit.Result
		if next, err = m.next(ctx, j, k, learner, learner.with(theta, walk.anchors)); next == nil {
			return nil, err
		}
		status = next.Status
		one := fit.Details[*train.Details](next)
		all = all.Then(one)
		if status.Err() == nil { // at its end, which Patience may have set
			members, theta = append(members, one.Theta), one.Theta
		}
	}
	result := all.Result(status)
	var failed error
	if result.Posterior, failed = posterior(status, members...); failed != nil {
		return nil, failed
	}
	return result, err
}

// next trains the k-th member of each chain. Each has its own mini-batches.
func (m SAE) next(ctx context.Context, j *fit.Job, k int, l anchored, start []float64) (*fit.Result, error) {
	member := *j
	member.Seed = rand.New(rand.NewPCG(j.Seed, uint64(k))).Uint64()
	t := m.Training
	t.Epochs = max(1, m.Epochs/memberShare)
	return train.Run(ctx, &member, t, train.Task{
		Learner: l, Name: fmt.Sprintf("member%d", k), Start: start,
		Train: train.OfTraining(j), Validation: train.Of(j, j.Parts.Validation),
	})
}

// anchored is the learner of point estimates with anchors: theta of a member is its parameters followed by its anchor,
// [J, 2 Q]. The anchor has no gradient, so that Adam does not move it.
type anchored struct {
	*points
	scales []float64 // [Q], of the prior; 0 where there is none
}

func newAnchored(p *points) anchored { return anchored{p, p.whole.Scales()} }

// Size implements train.Learner.
func (a anchored) Size() (members, width int) { return a.members, 2 * a.whole.D }

// Initial implements train.Learner: the anchors are draws of the prior.
func (a anchored) Initial(rng random.Stream) *graph.Node {
	theta := a.points.Initial(rng)
	anchor := rng.Named("anchors").Normal(a.dtype, a.members, a.whole.D)
	return Concatenate([]*Node{theta, Mul(anchor, a.row(theta.Graph(), a.scales))}, 1)
}

// row is a constant of each coordinate, [1, Q].
func (a anchored) row(g *Graph, v []float64) *Node {
	return ConvertDType(Const(g, [][]float64{v}), a.dtype)
}

// Objective implements train.Learner: log N(theta; a, s^2) is log N(theta; 0, s^2) + (theta a - a^2/2) / s^2.
func (a anchored) Objective(
	theta *graph.Node, batch density.Batch, rng random.Stream,
) (value, gradient *graph.Node) {
	phi, anchor := a.cut(theta)
	value, gradient = a.points.Objective(phi, batch, rng)
	precision := make([]float64, len(a.scales))
	for i, s := range a.scales {
		if s > 0 {
			precision[i] = 1 / (s * s)
		}
	}
	pull := Mul(anchor, a.row(theta.Graph(), precision))
	value = Add(value, ReduceSum(Mul(pull, Sub(phi, MulScalar(anchor, .5))), 1))
	return value, Concatenate([]*Node{Add(gradient, pull), ZerosLike(anchor)}, 1)
}

// Score implements train.Learner.
func (a anchored) Score(theta *graph.Node, batch density.Batch, rng random.Stream) *graph.Node {
	phi, _ := a.cut(theta)
	return a.points.Score(phi, batch, rng)
}

// cut splits theta into parameters and anchors, [J, Q] each.
func (a anchored) cut(theta *Node) (phi, anchor *Node) {
	return Slice(theta, AxisRange(), AxisRange(0, a.whole.D)), Slice(theta, AxisRange(), AxisRange(a.whole.D))
}

// anchors returns the anchors, flat [J, Q], of theta, flat [J, 2 Q].
func (a anchored) anchors(theta []float64) (out []float64) {
	for row := range slices.Chunk(theta, 2*a.whole.D) {
		out = append(out, row[a.whole.D:]...)
	}
	return out
}

// with is theta with other anchors.
func (a anchored) with(theta, anchors []float64) []float64 {
	out, d := slices.Clone(theta), a.whole.D
	for c := range a.members {
		copy(out[(2*c+1)*d:(2*c+2)*d], anchors[c*d:(c+1)*d])
	}
	return out
}

// byChain returns the parameters of the members of all chains, chain by chain, flat [C K, Q], from theta of each
// training, flat [C, 2 Q].
func (a anchored) byChain(members [][]float64) (out []float64) {
	d := a.whole.D
	for c := range a.members {
		for _, theta := range members {
			out = append(out, theta[2*c*d:(2*c+1)*d]...)
		}
	}
	return out
}

// guidedWalk is Gustafson's guided walk (1998), Metropolis-Hastings of each coordinate by itself with the target N(0,
// s^2): a proposal goes on by |N(0, step^2 s^2)| in the coordinate's direction, which a rejection turns round.
type guidedWalk struct {
	anchors   []float64 // flat [J, Q]
	direction []float64 // 1 or -1, of each
	scales    []float64 // [Q]; a coordinate of scale 0 stays at 0
	size      float64
	rng       *rand.Rand
}

func newGuidedWalk(anchors, scales []float64, size float64, seed uint64) *guidedWalk {
	w := &guidedWalk{anchors: slices.Clone(anchors), scales: scales, size: size}
	w.rng = rand.New(rand.NewPCG(seed, 0x534145))
	for range anchors {
		w.direction = append(w.direction, float64(2*w.rng.IntN(2)-1))
	}
	return w
}

func (w *guidedWalk) step() {
	for i, from := range w.anchors {
		s := w.scales[i%len(w.scales)]
		z, u := w.rng.NormFloat64(), w.rng.Float64()
		if s == 0 {
			continue
		}
		to := from + w.direction[i]*w.size*s*math.Abs(z)
		if math.Log(u) < (from*from-to*to)/(2*s*s) {
			w.anchors[i] = to
		} else {
			w.direction[i] = -w.direction[i]
		}
	}
}
