package baseline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011) of the stochastic parameters, by mcmc.SGLD: its
// step is that of gradient ascent on the log-posterior, estimated from a mini-batch, with Gaussian noise of the
// variance that would make it a Langevin diffusion. Nothing is accepted or rejected: the draws are too wide by what the
// step size, and the noise of the mini-batch, add. Chains run after MAP training, from the mode, with the shared
// parameters fixed there.
type SGLD struct {
	StepSize float64 // a, a variance; default 0.02/N for N rows
	Offset   float64 // b, of step sizes a (b + t)^-c; default 1
	Decay    float64 // c; default 0: constant
	// Sampling is how the chains run, a transition being a step on one mini-batch, the same for all chains; default 10
	// chains of 10 draws. By default they take as many passes over the data as Settings.Epochs: half of them is the
	// warm-up, and the draws are spread evenly (Thin) over the other half.
	Sampling mcmc.Settings
}

// SGHMC is stochastic gradient Hamiltonian Monte Carlo with friction (Chen, Fox and Guestrin 2014) of the stochastic
// parameters, by mcmc.SGHMC: momentum carries the particles further than SGLD's diffusion, and friction takes out what
// the noise of the mini-batches puts in.
//
// Over times longer than 1/alpha moves it is a Langevin diffusion whose step, SGLD's StepSize, is 2 eta/alpha: for an
// eta of the same size as SGLD's step it moves further by 2/alpha, and so is its bias from the noise of the
// mini-batches larger. That is where its default comes from.
type SGHMC struct {
	// LearningRate is eta, a squared step size; default 0.001/N for N rows: with the default friction, SGLD's default
	// step.
	LearningRate float64
	Friction     float64       // alpha, above 0 and below 1; default 0.1
	Noise        float64       // beta, at most alpha: what the variance of the gradient is taken to be; default 0
	Sampling     mcmc.Settings // how the chains run, with SGLD's defaults
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
	defaultFloat(&m.StepSize, 0.02/float64(j.Rows()))
	var err error
	m.Sampling, err = j.withMiniBatchChains("SGLD", m.kernel(), m.Sampling)
	return m, err
}

// Prepare implements Method.
func (m SGHMC) Prepare(j *Job) (Method, error) {
	defaultFloat(&m.LearningRate, 0.001/float64(j.Rows()))
	var err error
	m.Sampling, err = j.withMiniBatchChains("SGHMC", m.kernel(), m.Sampling)
	return m, err
}

// withMiniBatchChains fills in the Sampling of chains that go by mini-batches: in all as many passes as the training.
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

// byMiniBatches is the posterior of phi at psi, flat [W], estimated at each move from the next batch of shuffled
// epochs.
func (j *Job) byMiniBatches(psi []float64, s mcmc.Settings) (mcmc.Problem, error) {
	batches, err := dataset.NewEpochBatches(j.Rows(), j.BatchSize, j.Seed)
	if err != nil {
		return mcmc.Problem{}, fmt.Errorf("baseline: %w", err)
	}
	work := target.Workload{Particles: s.Chains, Rows: j.BatchSize, Devices: s.Devices}
	posterior, err := j.miniBatch(j.Bound, work)
	if err != nil {
		return mcmc.Problem{}, err
	}
	x, y, err := j.Tensors(j.DType, j.Parts.Train)
	if err != nil {
		return mcmc.Problem{}, err
	}
	data := map[string]*tensors.Tensor{"x": x, "y": y}
	if j.Bound.W > 0 {
		data["psi"] = compute.Floats(j.DType, psi, j.Bound.W)
	}
	return mcmc.Problem{
		Name: "posterior of a network, from mini-batches", Dim: j.Bound.D, Data: data,
		Target: func(data compute.Nodes, inputs []*Node) mcmc.Target {
			rows := ExpandAxes(inputs[0], -1)
			count := ConvertDType(inputs[1], j.DType)
			batch := target.Batch{X: Gather(data["x"], rows), Y: Gather(data["y"], rows), Count: count}
			return target.At(posterior, data["psi"], batch)
		},
		Inputs: func(move int) []any {
			batch := batches.At(move)
			return []any{batch.Rows, float64(batch.Count)}
		},
	}, nil
}
