package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// MLE maximises the likelihood over all parameters, stochastic and shared, by Adam on mini-batches. Its posterior is
// one particle: predictions have the likelihood's noise and no other uncertainty.
type MLE struct{}

// MAP maximises the posterior density log p(y | phi; psi) + log p(phi) jointly over the stochastic parameters phi,
// which have the prior, and the shared psi, which have none, by Adam on mini-batches. Its posterior is one particle, a
// mode.
type MAP struct{}

// Ensemble is a deep ensemble (Lakshminarayanan, Pritzel and Blundell 2017): members trained by MAP, or by MLE, from
// different random starting points. All are trained at once, as particles of one graph, on the same mini-batches. They
// differ by their starting points only. (The paper also shuffles the data for each; its adversarial training is
// optional there, and not done here.) Each member keeps the parameters of its own best validation.
//
// The members share nothing, so the posterior's model has every parameter stochastic, whatever the Model's partition;
// its particles are the members, of equal weight.
type Ensemble struct {
	// Members is their number, at least 2: for one take MAP or MLE. Default 10.
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

// Prepare implements Method.
func (m MLE) Prepare(*Job) (Method, error) { return m, nil }

// Prepare implements Method.
func (m MAP) Prepare(*Job) (Method, error) { return m, nil }

// Prepare implements Method.
func (m Ensemble) Prepare(*Job) (Method, error) {
	err := limits.Fill("baseline: Ensemble",
		limits.Int("Members", &m.Members, 10).From(2).Because("an ensemble of one is baseline.MAP or baseline.MLE"))
	return m, err
}

// Source implements Method.
func (MLE) Source() string { return "maximum likelihood" }

// Source implements Method.
func (MAP) Source() string { return "maximum a posteriori" }

// Source implements Method.
func (Ensemble) Source() string { return "deep ensemble (Lakshminarayanan et al. 2017)" }

// Fit implements Method.
func (MLE) Fit(ctx context.Context, j *Job) (*Result, error) { return j.fitPoint(ctx, false) }

// Fit implements Method.
func (MAP) Fit(ctx context.Context, j *Job) (*Result, error) { return j.fitPoint(ctx, true) }

// fitPoint is MLE or MAP.
func (j *Job) fitPoint(ctx context.Context, prior bool) (*Result, error) {
	point, err := j.newPoints(1, prior)
	if err != nil {
		return nil, err
	}
	return j.Train(ctx, point, j.posteriorOfPoint)
}

// posteriorOfPoint is a posterior of one particle, theta, [D + W].
func (j *Job) posteriorOfPoint(status run.Status, theta []float64) (*bayes.Posterior, error) {
	phi, psi := split(j.Bound, theta)
	return j.Posterior(status, Particles{Phi: phi, Psi: psi, Approximation: "one maximum"})
}

// Fit implements Method.
func (m Ensemble) Fit(ctx context.Context, j *Job) (*Result, error) {
	points, err := j.newPoints(m.Members, !m.Likelihood)
	if err != nil {
		return nil, err
	}
	whole, err := j.Whole()
	if err != nil {
		return nil, err
	}
	return j.Train(ctx, points, func(status run.Status, theta []float64) (*bayes.Posterior, error) {
		return j.posterior(whole, status, Particles{Phi: theta, Approximation: "maxima from several starts"})
	})
}

// points is the learner of point estimates: theta_j of member j has all parameters in the order of the slots, [J, D +
// W], as a particle of a model whose every parameter is stochastic.
type points struct {
	whole              *bayes.BoundModel
	target, validation density.MiniBatch
	members            int
	dtype              compute.DType
	name               string
}

func (j *Job) newPoints(members int, prior bool) (*points, error) {
	if err := j.trainsPoints(prior); err != nil {
		return nil, err
	}
	p := &points{members: members, dtype: j.DType, name: fmt.Sprintf("%d points, prior %t", members, prior)}
	model, on := j.Bound.Model, map[string]bool{}
	var all []string
	for _, slot := range j.Bound.Slots {
		all = append(all, slot.Name)
		on[slot.Name] = prior && slot.Stochastic
	}
	model.Stochastic = bayes.Names(all...)
	model.Prior = partialPrior{model.Prior, on}
	var err error
	if p.whole, err = model.Bind(j.Bound.Inputs, j.Bound.Outputs); err != nil {
		return nil, err
	}
	p.name += " " + string(text(j.Bound.Model))
	if p.target, err = j.miniBatch(p.whole, density.Workload{Particles: members, Rows: j.BatchSize}); err != nil {
		return nil, err
	}
	if j.Parts.Validation != nil {
		work := density.Workload{Particles: members, Rows: j.Parts.Validation.Rows(), Forward: true}
		p.validation, err = j.miniBatch(p.whole, work)
	}
	return p, err
}

// trainsPoints returns an error if a maximum of the objective says nothing: with a prior whose density is infinite
// somewhere, training learns nothing from the data; with hyperparameters, the likelihood is flat in them.
func (j *Job) trainsPoints(prior bool) error {
	p := j.Bound.Model.Prior
	const cure = "take baseline.VI, HMC (not FromMode) or SMC, ohsmc.SMC, or another prior"
	if u, ok := p.(bayes.UnboundedPrior); ok && prior {
		return fmt.Errorf("baseline: with the prior %T there is no mode for %s to train, since the density is infinite "+
			"%s: %s", p, j.method.Name(), u.Unbounded(), cure)
	}
	if _, ok := p.(bayes.HierarchicalPrior); ok {
		return fmt.Errorf("baseline: %s trains no hyperparameters, which the prior %T has: %s", j.method.Name(), p, cure)
	}
	return nil
}

// Kind implements train.Learner.
func (p *points) Kind() string { return p.name }

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

// LogDensity is the log-density of the coordinates whose scale is not 0.
func (s partialPrior) LogDensity(phi *graph.Node, scales []float64) *graph.Node {
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
