package baseline

import (
	"cmp"
	"context"
	"fmt"

	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011) of the stochastic parameters, by mcmc.SGLD:
// gradient ascent on the log-posterior, estimated from a mini-batch, plus Gaussian noise of the variance that makes it
// a discretised Langevin diffusion. Nothing is rejected, so the step size and the mini-batches' noise make the draws
// too wide. Chains start at the mode of MAP training, with the shared parameters fixed there.
type SGLD struct {
	Training
	StepSize float64 // a, a variance; default 0.02/N for N rows
	Offset   float64 // b, of step sizes a (b + t)^-c; default 1
	Decay    float64 // c; default 0: constant
	// A transition of the Chains is a step on one mini-batch, the same for all chains. Default 10 chains of 10 draws, over
	// as many passes over the data as Epochs: the first half is the warm-up, and the draws are spread evenly (Thin) over
	// the second. Their Kernel is left out: the fields above are its.
	Chains mcmc.Chains
}

// SGHMC is stochastic gradient Hamiltonian Monte Carlo with friction (Chen, Fox and Guestrin 2014) of the stochastic
// parameters, by mcmc.SGHMC: momentum carries the particles further than SGLD's diffusion, and friction dissipates the
// energy that the mini-batches' noise adds.
//
// The friction is alpha = 0.1, the default of the kernel, and no noise of the gradient is assumed. Over more than
// 1/alpha moves it is a Langevin diffusion whose step, in the sense of SGLD's StepSize, is 2 eta/alpha.
// If eta equals SGLD's step, its effective step, and with it the bias from the noise of mini-batches, is larger by the
// factor 2/alpha: hence the smaller default.
type SGHMC struct {
	Training
	// LearningRate is eta, a squared step size; default 0.001/N for N rows: with the default friction, SGLD's default
	// step.
	LearningRate float64
	Chains       mcmc.Chains // with SGLD's defaults
}

var (
	_ fit.Method = SGLD{}
	_ fit.Method = SGHMC{}
)

// Title implements fit.Method.
func (SGLD) Title() string { return "stochastic gradient Langevin dynamics (Welling and Teh 2011)" }

// Title implements fit.Method.
func (SGHMC) Title() string { return "stochastic gradient HMC (Chen et al. 2014)" }

// MarshalJSON writes the settings of the chains, with their kernel, and, if they are set, those of the training.
func (m SGLD) MarshalJSON() ([]byte, error) {
	m.Chains.Kernel = m.kernel()
	return writeChains(m.Training, m.Chains)
}

// MarshalJSON writes the settings of the chains, with their kernel, and, if they are set, those of the training.
func (m SGHMC) MarshalJSON() ([]byte, error) {
	m.Chains.Kernel = m.kernel()
	return writeChains(m.Training, m.Chains)
}

func (m SGLD) kernel() mcmc.SGLD {
	return mcmc.SGLD{StepSize: m.StepSize, Offset: m.Offset, Decay: m.Decay}
}

func (m SGHMC) kernel() mcmc.SGHMC {
	return mcmc.SGHMC{LearningRate: m.LearningRate}
}

// Prepare implements fit.Method.
func (m SGLD) Prepare(j *fit.Job) (_ fit.Method, err error) {
	m.StepSize = cmp.Or(m.StepSize, 0.02/float64(j.Rows()))
	m.Training, m.Chains, err = preparedMiniBatchChains(j, "SGLD", m.Training, m.Chains, m.kernel())
	return m, err
}

// Prepare implements fit.Method.
func (m SGHMC) Prepare(j *fit.Job) (_ fit.Method, err error) {
	m.LearningRate = cmp.Or(m.LearningRate, 0.001/float64(j.Rows()))
	m.Training, m.Chains, err = preparedMiniBatchChains(j, "SGHMC", m.Training, m.Chains, m.kernel())
	return m, err
}

// preparedMiniBatchChains fills in the settings of a training, and of chains on mini-batches: in all as many passes as
// the training.
func preparedMiniBatchChains(
	j *fit.Job, owner string, t Training, chains mcmc.Chains, kernel mcmc.Kernel,
) (Training, mcmc.Chains, error) {
	if chains.Kernel != nil {
		return t, chains, fmt.Errorf("baseline: %s.Chains.Kernel is %T: leave it out, since the other fields of %[1]s make "+
			"it", owner, chains.Kernel)
	}
	t, err := preparedPoints(j, t)
	if err != nil {
		return t, chains, err
	}
	perEpoch := (j.Rows() + t.BatchSize - 1) / t.BatchSize
	half := t.Epochs / 2
	warmUp := mcmc.NoWarmUp
	if half > 0 {
		warmUp = half * perEpoch
	}
	chains.Kernel, chains.WarmUp = kernel, cmp.Or(chains.WarmUp, warmUp)
	chains.Chains, chains.Draws = cmp.Or(chains.Chains, 10), cmp.Or(chains.Draws, 10)
	chains.Thin = cmp.Or(chains.Thin, max(1, (t.Epochs-half)*perEpoch/max(1, chains.Draws)))
	chains, err = preparedChains(j, chains)
	return t, chains, err
}

// Run implements fit.Method.
func (m SGLD) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return runMiniBatchChains(ctx, j, m.Training, m.Chains)
}

// Run implements fit.Method.
func (m SGHMC) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return runMiniBatchChains(ctx, j, m.Training, m.Chains)
}

// runMiniBatchChains samples phi by an estimate of the posterior from the next batch of shuffled epochs at each move.
func runMiniBatchChains(ctx context.Context, j *fit.Job, t Training, chains mcmc.Chains) (*fit.Result, error) {
	batches, err := dataset.NewBatches(j.Rows(), t.BatchSize, j.Seed)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return chainsFrom(ctx, j, t, chains, func(x, y, psi *tensors.Tensor) (density.Problem, error) {
		return density.NewBatchProblem(j.Bound, x, y, psi, batches, chains.Chains, j.Devices), nil
	})
}
