package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// MLE maximises the likelihood over all parameters, stochastic and shared, by Adam on mini-batches. Its posterior is
// one particle: predictions have the likelihood's noise and no other uncertainty.
type MLE struct {
	Training `json:"training,omitzero"`
}

// MAP maximises the posterior density log p(y | phi; psi) + log p(phi) jointly over the stochastic parameters phi,
// which have the prior, and the shared psi, which have none, by Adam on mini-batches. Its posterior is one particle, a
// mode.
type MAP struct {
	Training `json:"training,omitzero"`
}

// Ensemble is a deep ensemble (Lakshminarayanan, Pritzel and Blundell 2017): members trained by MAP, or by MLE, from
// different random starting points. All are trained at once, as particles of one graph, on the same mini-batches. They
// differ by their starting points only. (The paper also shuffles the data for each; its adversarial training is
// optional there, and not done here.) Each member keeps the parameters of its own best validation.
//
// The members share nothing, so the posterior's model has every parameter stochastic, whatever the Model's partition;
// its particles are the members, of equal weight.
type Ensemble struct {
	Training `json:"training,omitzero"`
	// Members is their number, at least 2: for one take MAP or MLE. Default 10.
	Members int `json:"members"`
	// Likelihood trains members by MLE, as the paper does; by default they have the prior of MAP.
	Likelihood bool `json:"likelihood"`
}

var (
	_ fit.Method = MLE{}
	_ fit.Method = MAP{}
	_ fit.Method = Ensemble{}
)

// Title implements fit.Method.
func (MLE) Title() string { return "maximum likelihood" }

// Title implements fit.Method.
func (MAP) Title() string { return "maximum a posteriori" }

// Title implements fit.Method.
func (Ensemble) Title() string { return "deep ensemble (Lakshminarayanan et al. 2017)" }

// Prepare implements fit.Method.
func (m MLE) Prepare(j *fit.Job) (_ fit.Method, err error) {
	m.Training, err = preparedPoints(j, m.Training)
	return m, err
}

// Prepare implements fit.Method.
func (m MAP) Prepare(j *fit.Job) (_ fit.Method, err error) {
	m.Training, err = preparedPoints(j, m.Training)
	return m, err
}

// Prepare implements fit.Method.
func (m Ensemble) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if err := limits.Fill("baseline: Ensemble",
		limits.Int("Members", &m.Members, 10).From(2).Because("an ensemble of one is baseline.MAP or baseline.MLE"),
	); err != nil {
		return nil, err
	}
	m.Training, err = preparedPoints(j, m.Training)
	return m, err
}

// Run implements fit.Method.
func (m MLE) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return runPoint(ctx, j, m.Training, false)
}

// Run implements fit.Method.
func (m MAP) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return runPoint(ctx, j, m.Training, true)
}

// runPoint is MLE or MAP. The posterior has one particle.
func runPoint(ctx context.Context, j *fit.Job, t Training, prior bool) (*fit.Result, error) {
	point, err := newPoints(j, t, 1, prior)
	if err != nil {
		return nil, err
	}
	return maximise(ctx, j, t, point, func(status run.Status, theta []float64) (*bayes.Posterior, error) {
		phi, psi := split(j.Bound, theta)
		from := bayes.Provenance{Status: string(status), Approximation: "one maximum"}
		return j.PosteriorOf(drawsOf(j, phi, psi), from)
	})
}

// Run implements fit.Method.
func (m Ensemble) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	points, err := newPoints(j, m.Training, m.Members, !m.Likelihood)
	if err != nil {
		return nil, err
	}
	whole, err := wholeOf(j)
	if err != nil {
		return nil, err
	}
	return maximise(ctx, j, m.Training, points, func(status run.Status, theta []float64) (*bayes.Posterior, error) {
		from := bayes.Provenance{Status: string(status), Approximation: "maxima from several starts"}
		return whole.PosteriorOf(drawsOf(whole, theta, nil), from)
	})
}

// wholeOf is the job with a model whose every parameter is stochastic, for the posterior of members that share nothing.
func wholeOf(j *fit.Job) (*fit.Job, error) {
	whole := *j
	var err error
	whole.Data, err = j.Whole()
	return &whole, err
}

// points is the learner of point estimates: theta_j of member j has all parameters in the order of the slots, [J, D +
// W], as a particle of a model whose every parameter is stochastic.
type points struct {
	whole      *bayes.BoundModel
	target     density.Posterior
	validation density.Likelihood
	members    int
	dtype      compute.DType
}

func newPoints(j *fit.Job, t Training, members int, prior bool) (*points, error) {
	p := &points{members: members, dtype: j.DType}
	model, on := j.Bound.Model, map[string]bool{}
	var all []string
	for _, slot := range j.Bound.Slots {
		all = append(all, slot.Name)
		on[slot.Name] = prior && slot.Stochastic
	}
	model.Stochastic = bayes.Names(all...)
	model.Prior = partialPrior{model.Prior, on}
	whole, err := j.With(model)
	if err != nil {
		return nil, err
	}
	p.whole = whole.Bound
	p.target = miniBatch(j, t, likelihood(j, p.whole, density.Workload{Particles: members, Rows: t.BatchSize}))
	if j.Parts.Validation != nil {
		work := density.Workload{Particles: members, Rows: j.Parts.Validation.Rows(), Forward: true}
		p.validation = likelihood(j, p.whole, work)
	}
	return p, nil
}

// preparedPoints fills in the settings of a training to a maximum of the likelihood, or of the posterior density. It
// refuses a LearntPrecision: the mode of a density that is integrated over hyperparameters says little of where its
// mass is.
func preparedPoints(j *fit.Job, t Training) (Training, error) {
	if p, ok := j.Bound.Model.Prior.(bayes.LearntPrecision); ok {
		return t, fmt.Errorf("baseline: a training to a maximum takes no prior of hyperparameters, as %T is: take "+
			"baseline.VI, mcmc.Chains or smc.Tempered, ohsmc.SMC, or another prior", p)
	}
	return t.Prepared("baseline", j.Rows())
}

// Size implements train.Learner.
func (p *points) Size() (members, width int) { return p.members, p.whole.D }

// Initial implements train.Learner: every parameter by its initialiser, member j's from row j of the parameter's own
// stream, so that it does not depend on the number of members.
func (p *points) Initial(rng random.Stream) *graph.Node {
	var parts []*Node
	for _, slot := range p.whole.Slots {
		all := slot.Parameter
		all.Shape = append([]int{p.members}, slot.Shape...)
		parts = append(parts, Reshape(all.Initialise(rng.Named(slot.Name), p.dtype, rng.Graph()), p.members, slot.Size()))
	}
	return Concatenate(parts, 1)
}

// Objective implements train.Learner: log p(phi_j) + (N/n) log p(y_batch | phi_j; psi_j), with the prior on the
// parameters that the user's partition calls stochastic, or without it.
func (p *points) Objective(theta *graph.Node, batch density.Batch, _ random.Stream) (value, gradient *graph.Node) {
	return p.target.Gradient(theta, nil, batch)
}

// Score implements train.Learner: the NLPD of each member by itself.
func (p *points) Score(theta *graph.Node, batch density.Batch, _ random.Stream) *graph.Node {
	return DivScalar(Neg(p.validation.LogLikelihood(theta, nil, batch)), float64(batch.Y.Shape().Dim(0)))
}

// partialPrior is a prior on some parameters, with a flat, improper prior on the others.
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

// LogDensity is the log-density of the parameters that have a prior.
func (s partialPrior) LogDensity(phi *graph.Node, slots []bayes.Slot) *graph.Node {
	var parts []*Node
	var kept []bayes.Slot
	at := 0 // in what is kept
	for _, slot := range slots {
		if s.on[slot.Name] {
			parts = append(parts, Slice(phi, AxisRange(), AxisRange(slot.Offset, slot.Offset+slot.Size())))
			slot.Offset = at
			at += slot.Size()
			kept = append(kept, slot)
		}
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
