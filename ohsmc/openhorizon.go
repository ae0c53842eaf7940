package ohsmc

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/smc"
)

// OpenHorizon is Algorithm 3 of Zhao et al. 2024. It draws particles from the prior once, and keeps them from batch to
// batch. For each batch S, M of the N rows, it
//
//  1. resamples the particles, if their effective sample size is low;
//  2. moves them by a kernel h, phi_j ~ h(. | phi_j): a random walk or an Ornstein-Uhlenbeck process;
//  3. weighs them by the whole batch, w_j <- w_j p(y_S | phi_j; psi), and normalises the weights;
//  4. moves psi by Adam along g = (N/M) sum_j w_j grad_psi log p(y_S | phi_j; psi).
//
// This is the algorithm as printed. The authors' program resamples after it has weighed, so that its g is a mean over
// resampled particles, of the same expectation with more variance.
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
}

var (
	_ fit.Method          = OpenHorizon{}
	_ particles.Estimator = OpenHorizon{}
)

// Title implements fit.Method.
func (a OpenHorizon) Title() string { return "open-horizon SMC (Zhao et al. 2024, Algorithm 3)" }

// MarshalJSON names the kernel's type.
func (a OpenHorizon) MarshalJSON() ([]byte, error) {
	return written(a.Training, map[string]any{"kernel": typeAnd(a.Kernel)})
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
	a.Training, err = a.Training.Prepared(j, 1, smc.Stratified)
	return a, err
}

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

// Compile implements particles.Algorithm.
func (a OpenHorizon) Compile(c *particles.Core) (particles.Stepper, error) {
	return particles.NewStepper(c, particles.Graphs{Step: openHorizon{a, c}.step})
}

// openHorizon is OpenHorizon bound to a model and data.
type openHorizon struct {
	OpenHorizon
	*particles.Core
}

// step is one iteration of Algorithm 3.
func (a openHorizon) step(
	s particles.State, batch density.Batch, now particles.Now,
) (particles.State, particles.StepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.Resample(s.LogWeights, now.RNG.Named("resample"))

	// Move: phi_j ~ h(. | phi_j).
	from := mcmc.State{Phi: smc.Select(s.Phi, ancestors)}
	moved, _ := a.Kernel.Move(now.RNG.Named("move"), from, nil, mcmc.Tuning{})

	// Weigh by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalise.
	weighed := a.Target.Reweight(moved.Phi, s.Psi, logWeights, batch, density.LikelihoodPotential)
	next := s
	next.Phi = moved.Phi
	next.LogWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	next, rejected := a.Learn(next, weighed.Gradient, batch, now)

	return next, particles.StepInfo{
		LogEvidence: weighed.LogSum, Loss: perRow(weighed.LogSum, batch), ESS: smc.EffectiveSampleSize(next.LogWeights),
		UniqueAncestors: smc.UniqueAncestors(ancestors, s.Phi.DType()), Resampled: resampled,
		NonFinite: nonFinite(weighed.LogLikelihood), GradientRejected: rejected,
	}
}

// Estimates implements particles.Estimator: the kernel leaves nothing invariant, so that the particles are not those of
// the posterior, and there is no evidence.
func (OpenHorizon) Estimates(particles.Training, int) particles.Estimates {
	return particles.Estimates{}
}
