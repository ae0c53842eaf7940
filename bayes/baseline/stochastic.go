package baseline

import (
	"context"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// MiniBatchChains say how chains that go by mini-batches run: after MAP training, from the mode, with the shared parameters fixed there.
type MiniBatchChains struct {
	Chains  int `json:"chains"`  // side by side, on the same mini-batches; default 10
	Epochs  int `json:"epochs"`  // passes over the training part, on top of those of the training; default Settings.Epochs
	BurnIn  int `json:"burn_in"` // of them before the draws, below Epochs; default half. -1: none
	Samples int `json:"samples"` // draws of all chains together, rounded up to a multiple of Chains: evenly spaced; default 100
}

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011) of the stochastic parameters, by mcmc.SGLD: its step is that of gradient ascent on
// the log-posterior, estimated from a mini-batch, with Gaussian noise of the variance that would make it a Langevin diffusion. Nothing is accepted or rejected:
// the draws are too wide by what the step size, and the noise of the mini-batch, add.
type SGLD struct {
	StepSize float64 `json:"step_size"` // a, a variance; default 0.02/N for N rows
	Offset   float64 `json:"offset"`    // b, of step sizes a (b + t)^-c; default 1
	Decay    float64 `json:"decay"`     // c; default 0: constant
	MiniBatchChains
}

// SGHMC is stochastic gradient Hamiltonian Monte Carlo with friction (Chen, Fox and Guestrin 2014) of the stochastic parameters, by mcmc.SGHMC: momentum
// carries the particles further than SGLD's diffusion, and friction takes out what the noise of the mini-batches puts in.
//
// Over times longer than 1/alpha moves it is a Langevin diffusion whose step, SGLD's StepSize, is 2 eta/alpha: for an eta of the same size as SGLD's step it moves
// further by 2/alpha, and so is its bias from the noise of the mini-batches larger. That is where its default comes from.
type SGHMC struct {
	LearningRate float64 `json:"learning_rate"` // eta, a squared step size; default 0.001/N for N rows: with the default friction, SGLD's default step
	Friction     float64 `json:"friction"`      // alpha, above 0 and below 1; default 0.1
	Noise        float64 `json:"noise"`         // beta, at most alpha: what the variance of the gradient is taken to be; default 0
	MiniBatchChains
}

var (
	_ Method = SGLD{}
	_ Method = SGHMC{}
)

// Name implements Method.
func (SGLD) Name() string { return "SGLD" }

// Name implements Method.
func (SGHMC) Name() string { return "SGHMC" }

func (SGLD) source() string  { return "stochastic gradient Langevin dynamics (Welling and Teh 2011)" }
func (SGHMC) source() string { return "stochastic gradient HMC (Chen et al. 2014)" }

func (m SGLD) describe() any  { return map[string]any{"type": "SGLD", "settings": m} }
func (m SGHMC) describe() any { return map[string]any{"type": "SGHMC", "settings": m} }

func (m SGLD) kernel() mcmc.SGLD {
	return mcmc.SGLD{StepSize: m.StepSize, Offset: m.Offset, Decay: m.Decay}
}

func (m SGHMC) kernel() mcmc.SGHMC {
	return mcmc.SGHMC{LearningRate: m.LearningRate, Friction: m.Friction, Noise: m.Noise}
}

func (m SGLD) prepared(bound *bayes.BoundModel, s Settings, rows int) (Method, error) {
	defaultFloat(&m.StepSize, 0.02/float64(rows))
	var err error
	m.MiniBatchChains, err = m.MiniBatchChains.prepared("SGLD", m.kernel(), bound, s, rows)
	return m, err
}

func (m SGHMC) prepared(bound *bayes.BoundModel, s Settings, rows int) (Method, error) {
	defaultFloat(&m.LearningRate, 0.001/float64(rows))
	var err error
	m.MiniBatchChains, err = m.MiniBatchChains.prepared("SGHMC", m.kernel(), bound, s, rows)
	return m, err
}

func (c MiniBatchChains) prepared(owner string, kernel mcmc.Kernel, bound *bayes.BoundModel, s Settings, rows int) (MiniBatchChains, error) {
	defaultInt(&c.Chains, 10)
	defaultInt(&c.Epochs, s.Epochs)
	defaultInt(&c.BurnIn, max(1, c.Epochs/2))
	defaultInt(&c.Samples, 100)
	if c.Epochs == 1 && c.BurnIn == 1 {
		c.BurnIn = -1
	}
	if err := limits.Check("baseline: "+owner,
		limits.Field("Chains", c.Chains, c.Chains >= 1, "at least 1"),
		limits.Field("Epochs", c.Epochs, c.Epochs >= 1, "at least 1"),
		limits.Field("BurnIn", c.BurnIn, c.BurnIn >= -1 && c.BurnIn < c.Epochs, fmt.Sprintf("-1 (none) or below the %d Epochs", c.Epochs)),
		limits.Field("Samples", c.Samples, c.Samples >= 1, "at least 1"),
	); err != nil {
		return c, err
	}
	if steps := (c.Epochs - max(c.BurnIn, 0)) * ((rows + s.BatchSize - 1) / s.BatchSize); c.perChain() > steps {
		return c, fmt.Errorf("baseline: %s.Samples is %d, %d for each of %d chains, but each makes %d steps after the burn-in: raise Epochs, or ask for fewer", owner, c.Samples, c.perChain(), c.Chains, steps)
	}
	if err := mcmc.Check(kernel, bound.D, false); err != nil {
		return c, fmt.Errorf("baseline: %w", err)
	}
	return c, nil
}

// perChain is how many draws each chain keeps.
func (c MiniBatchChains) perChain() int { return (c.Samples + c.Chains - 1) / c.Chains }

func (m SGLD) fit(ctx context.Context, j *job) (*Result, error) {
	return m.run(ctx, j, m.kernel())
}

func (m SGHMC) fit(ctx context.Context, j *job) (*Result, error) {
	return m.run(ctx, j, m.kernel())
}

func (c MiniBatchChains) run(ctx context.Context, j *job, kernel mcmc.Kernel) (*Result, error) {
	point, err := j.trainMode(ctx)
	if err != nil {
		return nil, err
	}
	phi, psi := split(j.bound, point.theta)
	problem, perEpoch, err := j.miniBatchProblem(psi, c.Chains)
	if err != nil {
		return nil, err
	}
	problem.Start = j.startAt(phi, c.Chains)
	burnIn := max(c.BurnIn, 0)
	settings := mcmc.Settings{Chains: c.Chains, Draws: c.perChain(), Thin: (c.Epochs - burnIn) * perEpoch / c.perChain(), WarmUp: burnIn * perEpoch}
	if settings.WarmUp == 0 {
		settings.WarmUp = mcmc.NoWarmUp
	}
	return j.sample(ctx, point.Result, j.bound, psi, problem, kernel, settings)
}

// miniBatchProblem is the posterior of phi at psi, flat [W], estimated at each move from the next batch of shuffled epochs.
func (j *job) miniBatchProblem(psi []float64, chains int) (problem mcmc.Problem, perEpoch int, err error) {
	batches, err := dataset.NewEpochBatches(j.parts.Train.Rows(), j.BatchSize, j.Seed)
	if err != nil {
		return mcmc.Problem{}, 0, fmt.Errorf("baseline: %w", err)
	}
	posterior, err := j.miniBatch(j.bound, target.Workload{Particles: chains, Rows: j.BatchSize})
	if err != nil {
		return mcmc.Problem{}, 0, err
	}
	x, y, err := j.data.Tensors(j.DType, j.parts.Train)
	if err != nil {
		return mcmc.Problem{}, 0, err
	}
	data := map[string]*tensors.Tensor{"x": x, "y": y}
	if j.bound.W > 0 {
		data["psi"] = compute.Floats(j.DType, psi, j.bound.W)
	}
	return mcmc.Problem{
		Name: "posterior of a network, from mini-batches", Dim: j.bound.D, Data: data,
		Target: func(data compute.Nodes, inputs []*Node) mcmc.Target {
			rows := ExpandAxes(inputs[0], -1)
			batch := target.Batch{X: Gather(data["x"], rows), Y: Gather(data["y"], rows), Count: ConvertDType(inputs[1], j.DType)}
			return target.At(posterior, data["psi"], batch)
		},
		Inputs: func(move int) []any {
			batch := batches.At(move)
			return []any{batch.Rows, float64(batch.Count)}
		},
	}, batches.PerEpoch(), nil
}
