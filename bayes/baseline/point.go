package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
)

// MLE maximises the likelihood over all parameters, stochastic and shared, by Adam on mini-batches. Its posterior is one particle: what it predicts has the
// likelihood's noise and no other uncertainty.
type MLE struct{}

// MAP maximises the posterior density log p(y | phi; psi) + log p(phi) jointly over the stochastic parameters phi, which have the prior, and the shared psi,
// which have none, by Adam on mini-batches. Its posterior is one particle, a mode.
type MAP struct{}

// Ensemble is a deep ensemble (Lakshminarayanan, Pritzel and Blundell 2017): members trained each by MAP, or by MLE, from starts of their own. All members
// are trained at once, as particles of one graph, on the same mini-batches: they differ by where they start. (The paper shuffles the data for each
// as well, and leaves its adversarial training optional; so there is none here.) Each member keeps the parameters of its own best validation.
//
// The members share nothing, so the posterior's model has every parameter stochastic, whatever the Model's partition; its particles are the members, of
// equal weight.
type Ensemble struct {
	// Members is how many, at least 2: one member is MAP or MLE, and a table should call it so. Default 10.
	Members int `json:"members"`
	// Likelihood trains members by MLE, as the paper does; by default they have the prior of MAP.
	Likelihood bool `json:"likelihood"`
}

var (
	_ Method = MLE{}
	_ Method = MAP{}
	_ Method = Ensemble{}
)

// Name implements Method.
func (MLE) Name() string { return "MLE" }

// Name implements Method.
func (MAP) Name() string { return "MAP" }

// Name implements Method.
func (Ensemble) Name() string { return "deep ensemble" }

func (m MLE) prepared(*bayes.BoundModel, Settings, int) (Method, error) { return m, nil }

func (m MAP) prepared(*bayes.BoundModel, Settings, int) (Method, error) { return m, nil }

func (m Ensemble) prepared(*bayes.BoundModel, Settings, int) (Method, error) {
	defaultInt(&m.Members, 10)
	return m, limits.Check("baseline: Ensemble", limits.Field("Members", m.Members, m.Members >= 2, "at least 2 (0 takes the default, 10): an ensemble of one is baseline.MAP or baseline.MLE"))
}

func (MLE) source() string { return "maximum likelihood" }
func (MAP) source() string { return "maximum a posteriori" }
func (Ensemble) source() string {
	return "deep ensemble (Lakshminarayanan et al. 2017)"
}

func (MLE) describe() any        { return map[string]any{"type": "MLE"} }
func (MAP) describe() any        { return map[string]any{"type": "MAP"} }
func (m Ensemble) describe() any { return map[string]any{"type": "Ensemble", "settings": m} }

func (MLE) fit(ctx context.Context, j *job) (*Result, error) { return j.fitPoint(ctx, false) }
func (MAP) fit(ctx context.Context, j *job) (*Result, error) { return j.fitPoint(ctx, true) }

// fitPoint is MLE or MAP: a posterior of one particle.
func (j *job) fitPoint(ctx context.Context, prior bool) (*Result, error) {
	point, err := j.trainPoint(ctx, prior)
	if err != nil {
		return nil, err
	}
	phi, psi := split(j.bound, point.theta)
	point.Posterior, err = j.posterior(j.bound, point.Status, particles{phi: phi, psi: psi})
	return point.Result, err
}

// trainPoint trains one point estimate of all parameters, in the order of the slots.
func (j *job) trainPoint(ctx context.Context, prior bool) (trained, error) {
	points, err := j.newPoints(1, prior)
	if err != nil {
		return trained{}, err
	}
	return j.train(ctx, j.training(points))
}

// trainMode trains the MAP that a second stage begins at. A cancelled one is an error: what would begin there is another run.
func (j *job) trainMode(ctx context.Context) (trained, error) {
	mode, err := j.trainPoint(ctx, true)
	if err == nil && mode.Status == Cancelled {
		err = fmt.Errorf("baseline: cancelled after %d steps of the training that %s begins with: %w", mode.Steps, j.method.Name(), context.Cause(ctx))
	}
	return mode, err
}

func (m Ensemble) fit(ctx context.Context, j *job) (*Result, error) {
	points, err := j.newPoints(m.Members, !m.Likelihood)
	if err != nil {
		return nil, err
	}
	members, err := j.train(ctx, j.training(points))
	if err != nil {
		return nil, err
	}
	model := points.whole.Model
	model.Prior = j.bound.Model.Prior
	whole, err := model.Bind(j.bound.Inputs, j.bound.Outputs)
	if err != nil {
		return nil, err
	}
	members.Posterior, err = j.posterior(whole, members.Status, particles{phi: members.theta})
	return members.Result, err
}

// training is a stage with the settings' epochs and learning rate, and validation where there is a part for it.
func (j *job) training(l learner) stage {
	return stage{learner: l, name: training, epochs: j.Epochs, schedule: j.Optimiser.Schedule, validate: j.parts.Validation != nil}
}

// The names of stages.
const (
	training   = "training"
	collecting = "collecting"
	sampling   = "sampling"
)

// points is the learner of point estimates: member j's theta_j are all parameters, in the order of the slots, [J, D + W]. They are the particles of a
// model that has every parameter stochastic.
type points struct {
	whole              *bayes.BoundModel
	target, validation target.MiniBatch
	members            int
	dtype              compute.DType
	name               string
}

func (j *job) newPoints(members int, prior bool) (*points, error) {
	p := &points{members: members, dtype: j.DType, name: fmt.Sprintf("%d points, prior %t", members, prior)}
	model, on := j.bound.Model, map[string]bool{}
	var all []string
	for _, slot := range j.bound.Slots {
		all = append(all, slot.Name)
		on[slot.Name] = prior && slot.Stochastic
	}
	model.Stochastic = bayes.Names(all...)
	model.Prior = partialPrior{model.Prior, on}
	var err error
	if p.whole, err = model.Bind(j.bound.Inputs, j.bound.Outputs); err != nil {
		return nil, err
	}
	p.name += " " + string(text(j.bound.Model))
	if p.target, err = j.miniBatch(p.whole, target.Workload{Particles: members, Rows: j.BatchSize}); err != nil {
		return nil, err
	}
	if j.parts.Validation != nil {
		p.validation, err = j.miniBatch(p.whole, target.Workload{Particles: members, Rows: j.parts.Validation.Rows(), Forward: true})
	}
	return p, err
}

// miniBatch is the posterior of particles, estimated from batches.
func (j *job) miniBatch(bound *bayes.BoundModel, work target.Workload) (target.MiniBatch, error) {
	plan, err := target.NewPlan(bound, j.DType, work)
	if err != nil {
		return target.MiniBatch{}, fmt.Errorf("baseline: %w", err)
	}
	return target.MiniBatch{Likelihood: target.Likelihood{Model: bound, Plan: plan}, Rows: j.parts.Train.Rows()}, nil
}

func (p *points) kind() string     { return p.name }
func (p *points) size() (int, int) { return p.members, p.whole.D }

// initial draws every parameter from its initialiser, member j's from row j of the parameter's own stream: a member starts where it would in an ensemble
// of another size.
func (p *points) initial(rng random.Stream) *Node {
	var parts []*Node
	for _, slot := range p.whole.Slots {
		all := slot.Parameter
		all.Shape = append([]int{p.members}, slot.Shape...)
		parts = append(parts, Reshape(all.Initialise(rng.Named(slot.Name), p.dtype, rng.Graph()), p.members, slot.Size()))
	}
	return Concatenate(parts, 1)
}

// objective is log p(phi_j) + (N/n) log p(y_batch | phi_j; psi_j), the prior on what the user's partition says, or nowhere.
func (p *points) objective(theta *Node, batch target.Batch, _ random.Stream) (value, gradient *Node) {
	return p.target.Gradient(theta, nil, batch)
}

func (p *points) nlpd(theta *Node, batch target.Batch, _ random.Stream) *Node {
	return DivScalar(Neg(p.validation.LogLikelihood(theta, nil, batch)), float64(batch.Y.Shape().Dim(0)))
}

// someOf is a prior on some parameters, and none, an improper constant, on the others.
type partialPrior struct {
	bayes.Prior
	on map[string]bool // by the parameter's name
}

// Scale is 0 for parameters without a prior.
func (s partialPrior) Scale(p nn.Parameter) float64 {
	if !s.on[p.Name] {
		return 0
	}
	return s.Prior.Scale(p)
}

// LogDensity is that of the coordinates whose scale is not 0.
func (s partialPrior) LogDensity(phi *Node, scales []float64) *Node {
	var parts []*Node
	var kept []float64
	for from := 0; from < len(scales); {
		to := from
		for to < len(scales) && (scales[to] == 0) == (scales[from] == 0) {
			to++
		}
		if scales[from] != 0 {
			parts = append(parts, Slice(phi, AxisRange(), AxisRange(from, to)))
			kept = append(kept, scales[from:to]...)
		}
		from = to
	}
	if len(parts) == 0 {
		return MulScalar(ReduceSum(phi, 1), 0)
	}
	return s.Prior.LogDensity(Concatenate(parts, 1), kept)
}

// split cuts a point, [D + W] in the order of the slots, into phi, [D], and psi, [W].
func split(bound *bayes.BoundModel, theta []float64) (phi, psi []float64) {
	from := 0
	for _, slot := range bound.Slots {
		if slot.Stochastic {
			phi = append(phi, theta[from:from+slot.Size()]...)
		} else {
			psi = append(psi, theta[from:from+slot.Size()]...)
		}
		from += slot.Size()
	}
	return phi, psi
}
