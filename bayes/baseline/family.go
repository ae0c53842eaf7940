package baseline

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// family is a variational family: distributions q of the stochastic parameters, given by variational parameters lambda,
// [L]. All methods except name and width build graph.
type family interface {
	// name is for provenance.
	name() string
	// width is the number of variational parameters, L.
	width() int
	// initial draws lambda's starting values, [L].
	initial(rng random.Stream) *Node
	// draw gives independent draws from q, phi [count, D], reparameterised: gradients pass to lambda.
	draw(lambda *Node, rng random.Stream, count int) *Node
	// negativeKL is minus the Kullback-Leibler divergence of q from the prior, E_q log p(phi) - E_q log q(phi), a
	// scalar, or its estimate from the draws phi.
	negativeKL(lambda, phi *Node) *Node
}

// variational is the learner of a family: theta, [1, L + W], is lambda and the shared parameters psi. It maximises the
// evidence lower bound
//
//	(1/S) sum_s (N/n) log p(y_batch | phi_s; psi) + E_q log p(phi) - E_q log q(phi),  phi_s ~ q,
//
// jointly over lambda and psi: the S draws are the particles of a partial network, evaluated at once.
type variational struct {
	family
	bound            *bayes.BoundModel
	target           density.Posterior
	validation       density.Likelihood
	draws, predicted int // S in training; the number of draws in a validation and in the posterior
	dtype            compute.DType
}

func newVariational(j *fit.Job, t Training, f family, draws, predicted int) *variational {
	s := &variational{family: f, bound: j.Bound, draws: draws, predicted: predicted, dtype: j.DType}
	// One chunk: gradients pass through all draws at once, to lambda and through the shared layers before them.
	plan := compute.Plan{Particles: draws, Chunk: draws}
	s.target = miniBatch(j, t, density.Likelihood{Model: j.Bound, Plan: plan})
	if j.Parts.Validation != nil {
		work := density.Workload{Particles: predicted, Rows: j.Parts.Validation.Rows(), Forward: true}
		s.validation = likelihood(j, j.Bound, work)
	}
	return s
}

// fitFamily trains a family with `draws` draws a step. The posterior has `predicted` draws.
func fitFamily(ctx context.Context, j *fit.Job, t Training, f family, draws, predicted int) (*fit.Result, error) {
	learner := newVariational(j, t, f, draws, predicted)
	return maximise(ctx, j, t, learner, func(status run.Status, theta []float64) (*bayes.Posterior, error) {
		phi, err := learner.particles(j, theta)
		if err != nil {
			return nil, fmt.Errorf("baseline: drawing from %s: %w", f.name(), err)
		}
		from := bayes.Provenance{Status: string(status), Approximation: "the nearest of a family, " + f.name()}
		return j.PosteriorOf(drawsOf(j, phi, theta[f.width():]), from)
	})
}

// Size implements train.Learner.
func (s *variational) Size() (members, width int) { return 1, s.width() + s.bound.W }

// Initial implements train.Learner.
func (s *variational) Initial(rng random.Stream) *graph.Node {
	theta := s.family.initial(rng)
	if psi := s.bound.InitShared(rng, s.dtype, rng.Graph()); psi != nil {
		theta = Concatenate([]*Node{theta, psi}, 0)
	}
	return ExpandAxes(theta, 0)
}

// cut splits theta into lambda, [L], and psi, [W] or nil.
func (s *variational) cut(theta *Node) (lambda, psi *Node) {
	flat := Reshape(theta, theta.Shape().Size())
	if s.bound.W > 0 {
		psi = Slice(flat, AxisRange(s.width()))
	}
	return Slice(flat, AxisRange(0, s.width())), psi
}

// Objective implements train.Learner: the evidence lower bound.
func (s *variational) Objective(
	theta *graph.Node, batch density.Batch, rng random.Stream,
) (value, gradient *graph.Node) {
	lambda, psi := s.cut(theta)
	phi := s.draw(lambda, rng.Named("draws"), s.draws)
	logLik := MulScalar(ReduceAllSum(s.target.LogLikelihood(phi, psi, batch)), 1/float64(s.draws))
	bound := Add(Mul(logLik, s.target.Scale(batch)), s.negativeKL(lambda, phi))
	return Reshape(bound, 1), Gradient(bound, theta)[0]
}

// Score implements train.Learner: the NLPD of the prediction by as many draws as the posterior has.
func (s *variational) Score(theta *graph.Node, batch density.Batch, rng random.Stream) *graph.Node {
	lambda, psi := s.cut(theta)
	phi := s.draw(lambda, rng.Named("draws"), s.predicted)
	equal := BroadcastToDims(ConstAs(phi, -math.Log(float64(s.predicted))), s.predicted)
	return Reshape(Neg(ReduceAllMean(s.validation.LogPredictive(phi, psi, equal, batch))), 1)
}

// particles draws the posterior's particles from theta, flat [L + W].
func (s *variational) particles(j *fit.Job, theta []float64) ([]float64, error) {
	exec, err := NewExec(j.Engine.Backend(), func(args []*Node) *Node {
		lambda, _ := s.cut(args[0])
		return s.draw(lambda, random.FromKey(args[1]), s.predicted)
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	key := tensors.FromFlatDataAndDimensions(random.KeyOf(j.Seed).Named("posterior").Words(), 2)
	drawn, err := exec.Call(compute.Floats(j.DType, theta, 1, len(theta)), key)
	if err != nil {
		return nil, err
	}
	defer drawn[0].FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	return compute.Float64s(drawn[0])
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
