package baseline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/tensors"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011) of the stochastic parameters, by mcmc.SGLD:
// gradient ascent on the log-posterior, estimated from a mini-batch, plus Gaussian noise of the variance that makes it
// a discretised Langevin diffusion. Nothing is rejected, so the step size and the mini-batches' noise make the draws
// too wide. Chains start at the mode of MAP training, with the shared parameters fixed there.
type SGLD struct {
	StepSize float64 // a, a variance; default 0.02/N for N rows
	Offset   float64 // b, of step sizes a (b + t)^-c; default 1
	Decay    float64 // c; default 0: constant
	// Sampling are the chains' settings. A transition is a step on one mini-batch, the same for all chains. Default 10
	// chains of 10 draws, over as many passes over the data as Settings.Epochs: the first half is the warm-up, and the
	// draws are spread evenly (Thin) over the second.
	Sampling mcmc.Settings
}

// SGHMC is stochastic gradient Hamiltonian Monte Carlo with friction (Chen, Fox and Guestrin 2014) of the stochastic
// parameters, by mcmc.SGHMC: momentum carries the particles further than SGLD's diffusion, and friction dissipates the
// energy that the mini-batches' noise adds.
//
// Over more than 1/alpha moves it is a Langevin diffusion whose step, in the sense of SGLD's StepSize, is 2 eta/alpha.
// If eta equals SGLD's step, its effective step, and with it the bias from the noise of mini-batches, is larger by the
// factor 2/alpha: hence the smaller default.
type SGHMC struct {
	// LearningRate is eta, a squared step size; default 0.001/N for N rows: with the default friction, SGLD's default
	// step.
	LearningRate float64
	Friction     float64       // alpha, above 0 and below 1; default 0.1
	Noise        float64       // beta, at most alpha: the assumed variance of the gradient's noise; default 0
	Sampling     mcmc.Settings // the chains' settings, with SGLD's defaults
}

var (
	_ Method = SGLD{}
	_ Method = SGHMC{}
)

// Name implements Method.
func (SGLD) Name() string { return "SGLD" }

// Name implements Method.
func (SGHMC) Name() string { return "SGHMC" }

// Source implements Method.
func (SGLD) Source() string { return "stochastic gradient Langevin dynamics (Welling and Teh 2011)" }

// Source implements Method.
func (SGHMC) Source() string { return "stochastic gradient HMC (Chen et al. 2014)" }

// MarshalJSON writes what decides the draws.
func (m SGLD) MarshalJSON() ([]byte, error) {
	return json.Marshal(describeChains(m.kernel(), m.Sampling))
}

// MarshalJSON writes what decides the draws.
func (m SGHMC) MarshalJSON() ([]byte, error) {
	return json.Marshal(describeChains(m.kernel(), m.Sampling))
}

func (m SGLD) kernel() mcmc.SGLD {
	return mcmc.SGLD{StepSize: m.StepSize, Offset: m.Offset, Decay: m.Decay}
}

func (m SGHMC) kernel() mcmc.SGHMC {
	return mcmc.SGHMC{LearningRate: m.LearningRate, Friction: m.Friction, Noise: m.Noise}
}

// Prepare implements Method.
func (m SGLD) Prepare(j *Job) (Method, error) {
	m.StepSize = cmp.Or(m.StepSize, 0.02/float64(j.Rows()))
	var err error
	m.Sampling, err = j.withMiniBatchChains("SGLD", m.kernel(), m.Sampling)
	return m, err
}

// Prepare implements Method.
func (m SGHMC) Prepare(j *Job) (Method, error) {
	m.LearningRate = cmp.Or(m.LearningRate, 0.001/float64(j.Rows()))
	var err error
	m.Sampling, err = j.withMiniBatchChains("SGHMC", m.kernel(), m.Sampling)
	return m, err
}

// withMiniBatchChains fills in the Sampling of chains on mini-batches: in all as many passes as the training.
func (j *Job) withMiniBatchChains(owner string, kernel mcmc.Kernel, s mcmc.Settings) (mcmc.Settings, error) {
	perEpoch := (j.Rows() + j.BatchSize - 1) / j.BatchSize
	byDefault := mcmc.Settings{Chains: 10, Draws: 10, WarmUp: mcmc.NoWarmUp}
	half := j.Epochs / 2
	if half > 0 {
		byDefault.WarmUp = half * perEpoch
	}
	byDefault.Thin = (j.Epochs - half) * perEpoch / max(1, cmp.Or(s.Draws, byDefault.Draws))
	s, err := withChains(owner, s, byDefault)
	if err != nil {
		return s, err
	}
	if err := mcmc.Check(kernel, j.Bound.D, false); err != nil {
		return s, fmt.Errorf("baseline: %w", err)
	}
	return s, nil
}

// Fit implements Method.
func (m SGLD) Fit(ctx context.Context, j *Job) (*Result, error) {
	return j.fitMiniBatchChains(ctx, m.kernel(), m.Sampling)
}

// Fit implements Method.
func (m SGHMC) Fit(ctx context.Context, j *Job) (*Result, error) {
	return j.fitMiniBatchChains(ctx, m.kernel(), m.Sampling)
}

func (j *Job) fitMiniBatchChains(ctx context.Context, kernel mcmc.Kernel, s mcmc.Settings) (*Result, error) {
	mode, err := j.Mode(ctx)
	if err != nil {
		return nil, err
	}
	problem, err := j.byMiniBatches(mode.Psi, s)
	if err != nil {
		return nil, err
	}
	problem.Start = j.startAt(mode.Phi, s.Chains)
	return j.sample(ctx, mode.Result(nil), j.Data, mode.Psi, problem, kernel, s)
}

// byMiniBatches is the problem of sampling phi at psi, flat [W], by an estimate of the posterior from the next batch of
// shuffled epochs at each move.
func (j *Job) byMiniBatches(psi []float64, s mcmc.Settings) (density.Problem, error) {
	batches, err := dataset.NewEpochBatches(j.Rows(), j.BatchSize, j.Seed)
	if err != nil {
		return density.Problem{}, fmt.Errorf("baseline: %w", err)
	}
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return density.Problem{}, err
	}
	var shared *tensors.Tensor
	if j.Bound.W > 0 {
		shared = compute.Floats(j.DType, psi, j.Bound.W)
	}
	problem, err := density.NewBatchProblem(j.Bound, x, y, shared, batches, s.Chains, s.Devices)
	if err != nil {
		return density.Problem{}, fmt.Errorf("baseline: %w", err)
	}
	return problem, nil
}
