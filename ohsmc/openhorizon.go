package ohsmc

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// OpenHorizon is Algorithm 3 of Zhao et al. 2024. It draws particles from the prior once, and keeps them from batch to
// batch. For each batch S, M of the N rows, it
//
//  1. resamples the particles, if their effective sample size is low;
//  2. moves them by a kernel h, phi_j ~ h(. | phi_j): a random walk or an Ornstein-Uhlenbeck process;
//  3. weighs them by the whole batch, w_j <- w_j p(y_S | phi_j; psi), and normalises the weights;
//  4. moves psi by Adam along g = (N/M) sum_j w_j grad_psi log p(y_S | phi_j; psi).
//
// The kernel accepts every move and leaves no posterior invariant, so the particles do not converge to p(phi | y; psi).
// Each batch makes their distribution narrower, by its likelihood, and each move makes it wider. In equilibrium it
// depends on about the last few batches. For a linear Gaussian model it is the distribution of a Kalman filter: for a
// random walk of variance q and batches that add the precision r, the stationary variance v solves 1/v = 1/(v + q) + r.
// It is too wide where batches are small and q is large. It is too narrow where q is small, since the same rows count
// again in each epoch. In a conjugate regression with 30 rows and the posterior variance .022, batches of 3 rows with q
// = .1 give a stationary variance of .10, and batches of 30 with q = .0005 one of .003.
type OpenHorizon struct {
	particles.Training // default Resampler smc.Stratified, Threshold 1: at every step, as in the paper
	// Kernel is h; default mcmc.RandomWalk{Variance: 0.01}. mcmc.OrnsteinUhlenbeck without Mean and StdDev takes those of
	// the prior, which must be normal. A kernel that evaluates a target, such as mcmc.HMC, is an error.
	Kernel mcmc.Kernel
	// Poisson makes the product of the weights an unbiased estimate of p(y_1:N | phi; psi). Default nil: the weights of
	// Algorithm 3.
	Poisson *Poisson
}

var (
	_ fit.Method          = OpenHorizon{}
	_ particles.Horizon   = OpenHorizon{}
	_ particles.Estimator = OpenHorizon{}
)

// Poisson removes the bias of mini-batches by the Poisson estimator (Zhao et al. 2024, section 3.4; Beskos et al.
// 2006). (N/M) log p(y_S | phi; psi) is unbiased for the log-likelihood of all N rows, but its exponential is biased
// for the likelihood. The Poisson estimator is unbiased. In place of Training.Epochs the run makes P steps, with P
// drawn from a Poisson distribution of mean Rate. Batches are drawn independently, and each step does
//
//	w_j <- w_j ((N/M) log p(y_S | phi_j; psi) + log c)
//
// instead of w_j p(y_S | phi_j; psi). At a fixed phi, exp(Rate)/c times the product of these factors divided by Rate^P
// has the mean p(y_1:N | phi; psi).
//
// The weights must be positive, so log c must be larger than -(N/M) log p(y_S | phi; psi) for every batch and every phi
// that occurs, which is not known beforehand. If it is not, the run stops with an error that names the constant needed
// at that step; LogConstant of particles.StepRecord has it for each step.
//
// At a fixed phi, with a the mean of (N/M) log p + log c over batches and v its variance, the estimate's relative
// variance is exp(((a - Rate)^2 + v)/Rate) - 1. It is least for a Rate near a = log c + log p(y_1:N | phi; psi).
type Poisson struct {
	Rate        float64 `json:"rate"`         // mean of the number of steps; above 0
	LogConstant float64 `json:"log_constant"` // log c
}

// Title implements fit.Method.
func (a OpenHorizon) Title() string { return "open-horizon SMC (Zhao et al. 2024, Algorithm 3)" }

// MarshalJSON names the kernel's type.
func (a OpenHorizon) MarshalJSON() ([]byte, error) {
	return written(a.Training, map[string]any{"kernel": typeAnd(a.Kernel), "poisson": a.Poisson})
}

// Run implements fit.Method.
func (a OpenHorizon) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, a.Training, a)
}

// Prepare implements fit.Method: by default resampling is at every step, stratified.
func (a OpenHorizon) Prepare(j *fit.Job) (fit.Method, error) {
	if a.Kernel == nil {
		a.Kernel = mcmc.RandomWalk{Variance: 0.01}
	}
	var err error
	if a.Kernel, err = withPrior(a.Kernel, j.Bound); err != nil {
		return nil, err
	}
	if !a.Kernel.Traits().NoTarget {
		return nil, fmt.Errorf("ohsmc: OpenHorizon.Kernel is %T, which asks its target: Algorithm 3 has no target for "+
			"moves, and no accept/reject step: take one that needs no target, such as mcmc.RandomWalk", a.Kernel)
	}
	if _, carries := a.Kernel.(mcmc.Stateful); carries || a.Kernel.Traits().Carries != mcmc.CarriesNothing {
		return nil, fmt.Errorf("ohsmc: OpenHorizon.Kernel is %T, which carries a state of its own from move to move: "+
			"Algorithm 3 resamples particles without it: take one that carries nothing, such as mcmc.RandomWalk", a.Kernel)
	}
	if err := mcmc.Check(a.Kernel, j.Bound.D, false); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if p := a.Poisson; p != nil {
		if !(p.Rate > 0 && p.Rate <= mostRate) {
			return nil, fmt.Errorf("ohsmc: Poisson.Rate is %v: it must be positive and at most %d: the mean number of steps",
				p.Rate, mostRate)
		}
		if math.IsNaN(p.LogConstant) || math.IsInf(p.LogConstant, 0) {
			return nil, fmt.Errorf("ohsmc: Poisson.LogConstant is %v: it must be finite", p.LogConstant)
		}
	}
	a.Training, err = a.Training.Prepared(j, 1, smc.Stratified)
	return a, err
}

// mostRate is the largest mean number of steps: the number that is drawn stays far below the most that a run can make,
// 2^31 - 1.
const mostRate = math.MaxInt32 / 2

// withPrior sets the stationary distribution of an Ornstein-Uhlenbeck kernel, unless it is set, to the prior.
func withPrior(kernel mcmc.Kernel, bound *bayes.BoundModel) (mcmc.Kernel, error) {
	ou, ok := kernel.(mcmc.OrnsteinUhlenbeck)
	if !ok || len(ou.Mean)+len(ou.StdDev) > 0 {
		return kernel, nil
	}
	if _, ok := bound.Model.Prior.(bayes.Normal); !ok {
		return nil, fmt.Errorf("ohsmc: an Ornstein-Uhlenbeck kernel has a normal stationary distribution, but the prior is "+
			"%T: set its StdDev, or use a random walk", bound.Model.Prior)
	}
	ou.StdDev = bound.Scales()
	return ou, nil
}

// Horizon implements particles.Horizon: with Poisson a random number of steps, on independent batches.
func (a OpenHorizon) Horizon(t particles.Training, rows int, seed uint64) (dataset.Batches, int, error) {
	if a.Poisson == nil {
		return nil, 0, nil
	}
	batches, err := dataset.NewSampledBatches(rows, t.BatchSize, seed)
	return batches, a.Poisson.steps(seed), err
}

// steps draws P.
func (p Poisson) steps(seed uint64) int {
	return int(distuv.Poisson{Lambda: p.Rate, Src: rand.NewPCG(seed, 0x9e3779b97f4a7c15)}.Rand())
}

// Compile implements particles.Algorithm.
func (a OpenHorizon) Compile(c *particles.Core) (particles.Stepper, error) {
	step := &openHorizon{OpenHorizon: a, Core: c}
	var err error
	if step.Stepper, err = particles.NewStepper(c, particles.Graphs{Step: step.step}); err != nil {
		return nil, err
	}
	return step, nil
}

// openHorizon is OpenHorizon bound to a model and data.
type openHorizon struct {
	OpenHorizon
	*particles.Core
	particles.Stepper
}

// step is one iteration of Algorithm 3.
func (a *openHorizon) step(
	s particles.State, batch density.Batch, now particles.Now,
) (particles.State, particles.StepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.Resample(s.LogWeights, now.RNG.Named("resample"))

	// Move: phi_j ~ h(. | phi_j).
	from := mcmc.State{Phi: smc.Select(s.Phi, ancestors)}
	moved, _ := a.Kernel.Move(now.RNG.Named("move"), from, nil, mcmc.Tuning{})

	// Weigh by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalise.
	weighed := a.Target.Reweight(moved.Phi, s.Psi, logWeights, batch, a.potential())
	next := s
	next.Phi = moved.Phi
	next.LogWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	next, rejected := a.Learn(next, weighed.Gradient, batch, now)

	t := particles.StepInfo{
		LogEvidence: weighed.LogSum, Loss: perRow(weighed.LogSum, batch), ESS: smc.EffectiveSampleSize(next.LogWeights),
		UniqueAncestors: smc.UniqueAncestors(ancestors, s.Phi.DType()), Resampled: resampled,
		NonFinite: nonFinite(weighed.LogLikelihood), GradientRejected: rejected,
	}
	if a.Poisson != nil {
		t.LogConstant = Neg(ReduceAllMin(Mul(weighed.LogLikelihood, a.Target.Scale(batch))))
		t.Loss = perRow(ReduceAllSum(Mul(Exp(next.LogWeights), compute.Finite(weighed.LogLikelihood))), batch)
	}
	return next, t
}

// potential returns the factor of the weights: the likelihood, or the factor of the Poisson estimator (section 3.4).
func (a *openHorizon) potential() density.Potential {
	if a.Poisson == nil {
		return density.LikelihoodPotential
	}
	factor := func(e density.Evaluated) *Node {
		return Log(AddScalar(Mul(e.LogLikelihood, a.Target.Scale(e.Batch)), a.Poisson.LogConstant))
	}
	return density.Potential{Standalone: true, Factor: factor}
}

// Advance implements particles.Stepper.
func (a *openHorizon) Advance(ctx context.Context, s *particles.Session) (particles.StepRecord, error) {
	record, err := a.Stepper.Advance(ctx, s)
	if p := a.Poisson; err == nil && p != nil && !(record.LogConstant < p.LogConstant) {
		err = fmt.Errorf("ohsmc: a weight of the Poisson estimator is not positive: LogConstant is %v, but this batch needs "+
			"more than %.6g: raise it, or take larger batches", p.LogConstant, record.LogConstant)
	}
	return record, err
}

// Estimates implements particles.Estimator: the kernel leaves nothing invariant, so that the particles are not those of
// the posterior, and only with Poisson there is an evidence.
func (a OpenHorizon) Estimates(_ particles.Training, _ int, seed uint64) particles.Estimates {
	if a.Poisson == nil {
		return particles.Estimates{}
	}
	return particles.Estimates{Evidence: func(trace []particles.StepRecord) bayes.Evidence {
		return a.Poisson.evidence(seed, trace)
	}}
}

// evidence is known after all P steps: e^Rate/c times the product over the steps of (1/Rate) sum_j w_j ((N/M) log
// p(y_S | phi_j; psi) + log c).
func (p Poisson) evidence(seed uint64, trace []particles.StepRecord) bayes.Evidence {
	if len(trace) != p.steps(seed) {
		return bayes.Evidence{Value: nan, StdErr: nan}
	}
	total := p.Rate - p.LogConstant
	for _, t := range trace {
		total += t.LogEvidence - math.Log(p.Rate)
	}
	return bayes.Evidence{Value: total, StdErr: nan}
}
