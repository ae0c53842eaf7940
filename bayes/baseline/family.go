package baseline

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// family is a set of distributions q of the stochastic parameters, by parameters of its own, lambda, [L]. Its methods but width build graph.
type family interface {
	// kind names what its graphs depend on.
	kind() string
	width() int
	initial(rng random.Stream) *Node // lambda, [L]
	// draw makes phi, [count, D], so that gradients pass to lambda.
	draw(lambda *Node, rng random.Stream, count int) *Node
	// against is E_q log p(phi) - E_q log q(phi), a scalar, or its estimate from the draws phi.
	negativeKL(lambda, phi *Node) *Node
}

// sampled is the learner of a family: theta, [1, L + W], is lambda and the shared parameters psi. It maximises the evidence lower bound
//
//	(1/S) sum_s (N/n) log p(y_batch | phi_s; psi) + E_q log p(phi) - E_q log q(phi),  phi_s ~ q,
//
// jointly over lambda and psi: the S draws are the particles of the partial network, evaluated at once.
type variational struct {
	family
	bound              *bayes.BoundModel
	target, validation target.MiniBatch
	draws, predicted   int // S in training; and for a validation, or a posterior
	dtype              compute.DType
}

func (j *job) newSampled(f family, draws, predicted int) (*variational, error) {
	s := &variational{family: f, bound: j.bound, draws: draws, predicted: predicted, dtype: j.DType}
	var err error
	// One chunk: gradients pass through all draws at once, to lambda and through the shared layers before them.
	s.target = target.MiniBatch{Likelihood: target.Likelihood{Model: j.bound, Plan: compute.Plan{Particles: draws, Chunk: draws}}, Rows: j.parts.Train.Rows()}
	if j.parts.Validation != nil {
		s.validation, err = j.miniBatch(j.bound, target.Workload{Particles: predicted, Rows: j.parts.Validation.Rows(), Forward: true})
	}
	return s, err
}

// fitFamily trains a family with so many draws a step; the posterior is `predicted` draws.
func (j *job) fitFamily(ctx context.Context, f family, draws, predicted int) (*Result, error) {
	learner, err := j.newSampled(f, draws, predicted)
	if err != nil {
		return nil, err
	}
	t, err := j.train(ctx, j.training(learner))
	if err != nil {
		return nil, err
	}
	t.Posterior, err = learner.posterior(j, t.Status, t.theta)
	return t.Result, err
}

func (s *variational) kind() string {
	return fmt.Sprintf("%s, %d draws, %d predicted, %s", s.family.kind(), s.draws, s.predicted, text(s.bound.Model))
}

func (s *variational) size() (int, int) { return 1, s.width() + s.bound.W }

func (s *variational) initial(rng random.Stream) *Node {
	theta := s.family.initial(rng)
	if psi := s.bound.InitShared(rng, s.dtype, rng.Graph()); psi != nil {
		theta = Concatenate([]*Node{theta, psi}, 0)
	}
	return ExpandAxes(theta, 0)
}

// cut gives lambda, [L], and psi, [W] or nil.
func (s *variational) cut(theta *Node) (lambda, psi *Node) {
	flat := Reshape(theta, theta.Shape().Size())
	if s.bound.W > 0 {
		psi = Slice(flat, AxisRange(s.width()))
	}
	return Slice(flat, AxisRange(0, s.width())), psi
}

func (s *variational) objective(theta *Node, batch target.Batch, rng random.Stream) (value, gradient *Node) {
	lambda, psi := s.cut(theta)
	phi := s.draw(lambda, rng.Named("draws"), s.draws)
	logLik := MulScalar(ReduceAllSum(s.target.LogLikelihood(phi, psi, batch)), 1/float64(s.draws))
	bound := Add(Mul(logLik, s.target.Scale(batch)), s.negativeKL(lambda, phi))
	return Reshape(bound, 1), Gradient(bound, theta)[0]
}

func (s *variational) nlpd(theta *Node, batch target.Batch, rng random.Stream) *Node {
	lambda, psi := s.cut(theta)
	phi := s.draw(lambda, rng.Named("draws"), s.predicted)
	equal := BroadcastToDims(ConstAs(phi, -math.Log(float64(s.predicted))), s.predicted)
	return Reshape(Neg(ReduceAllMean(s.validation.LogPredictive(phi, psi, equal, batch))), 1)
}

// posterior draws the particles of a posterior from theta, flat [L + W].
func (s *variational) posterior(j *job, status Status, theta []float64) (*bayes.Posterior, error) {
	width := len(theta)
	exec, err := NewExec(j.engine.Backend(), func(args []*Node) *Node {
		lambda, _ := s.cut(args[0])
		return s.draw(lambda, random.FromSeed(args[1]).Named("posterior"), s.predicted)
	})
	if err != nil {
		return nil, fmt.Errorf("baseline: drawing from %s: %w", s.family.kind(), err)
	}
	defer exec.Finalize()
	drawn, err := exec.Call(compute.Floats(j.DType, theta, 1, width), tensors.FromFlatDataAndDimensions(random.SeedWords(j.Seed), 2))
	if err != nil {
		return nil, fmt.Errorf("baseline: drawing from %s: %w", s.family.kind(), err)
	}
	defer drawn[0].FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	phi, err := compute.Float64s(drawn[0])
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return j.posterior(s.bound, status, particles{phi: phi, psi: theta[s.width():]})
}

// initialStochastic draws one value of each stochastic parameter from its initialiser, [D].
func initialStochastic(bound *bayes.BoundModel, rng random.Stream, dtype compute.DType) *Node {
	var parts []*Node
	for _, slot := range bound.Slots {
		if slot.Stochastic {
			parts = append(parts, slot.Initialise(rng.Named(slot.Name), dtype, rng.Graph()))
		}
	}
	return Concatenate(parts, 0)
}
