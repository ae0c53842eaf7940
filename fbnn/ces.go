package fbnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// This file is the paper's Algorithm 3, top to bottom: its settings and its three steps. The settings' defaults and
// checks are in ces_settings.go, the parts of the emulator in pairs.go, head.go and regressor.go, the choice of the
// sampling kernel's step size in step.go, and what is measured of a run in truth.go.

// CES is calibrate, emulate, sample (Moslemi, Meng, Lan and Shahbaba 2024, Algorithm 3; Cleary et al. 2021). It is the
// algorithm that nil stands for, and the zero value of every field works. FBNN(A-B) of the paper is
// CES{Calibration: A, Sampling: B}.
type CES struct {
	// Calibration is the kernel of the first step, on the true posterior; default mcmc.SGHMC, whose LearningRate is .001/N
	// if it is 0. The StdDev of an mcmc.PreconditionedCrankNicolson are the prior's if there are none, and a Beta of 0
	// stands for the one that is accepted with probability .3. Kernels that carry nothing from move to move, such as
	// SGHMC, take mini-batches; others take all rows.
	Calibration mcmc.Kernel
	Pairs       int // J, the number of pairs that are kept; default 200, at least 10
	PairsThin   int // transitions from one pair to the next; default 10
	PairsWarmUp int // transitions before the first pair; default 1000, mcmc.NoWarmUp: none
	BatchSize   int // rows of a mini-batch; default 50, or all rows if there are fewer

	Emulates  Emulated  // what the emulator predicts; default Outputs
	Regressor Regressor // the model that learns to predict it; default Network{}

	// Sampling is the kernel of the third step, on the emulated posterior; default mcmc.PreconditionedCrankNicolson with
	// the prior's scales. If its Beta is 0, or larger than the one with which a chain on the true posterior would accept
	// with probability .3, that one is taken. An mcmc.HMC that is corrected needs no StepSize: 0 stands for the one with
	// the largest expected squared jump of draws that the true posterior accepts.
	Sampling mcmc.Kernel
	Chains   int // default 1; all begin at the last pair
	Draws    int // of each chain; default 2000
	// Uncorrected samples the emulated posterior as it is. By default each transition on the emulated posterior is
	// accepted or rejected a second time, by the true one (mcmc.DelayedAcceptance). This makes the draws exact, and costs
	// an evaluation of all rows each time.
	Uncorrected bool
	// PaperMode reproduces the paper's tables; its draws are not the posterior. They are of the emulated posterior, the
	// default Beta is the one with which the emulated chain accepts with probability .3, also if it is far too large for
	// the true posterior, and Result.Predict returns the emulator's outputs in place of the network's.
	PaperMode bool
}

// ces is a run of CES.
type ces struct {
	CES
	*Job
	truth  *evaluator // of the true posterior
	name   string
	result *Result
	pairs  *pairs
	spent  mcmc.Evaluations // evaluations outside of the chains
}

// Sample implements Algorithm.
func (a CES) Sample(ctx context.Context, job *Job) (*Result, error) {
	r := &ces{CES: a, Job: job, result: &Result{Chains: a.Chains, SecondStage: math.NaN()}}
	if !a.corrected() {
		r.result.Approximation = "the emulated posterior"
	}
	var err error
	if r.name, err = job.name(); err != nil {
		return nil, err
	}
	if r.truth, err = newEvaluator(job, job.Problem); err != nil {
		return nil, err
	}
	defer r.truth.Close()
	// Step 1: pairs of theta and G(X; theta), by a short run on the true posterior.
	if err := r.calibrate(ctx); err != nil {
		return nil, err
	}
	// Step 2: the emulator.
	cheap, outputs, err := r.emulate(ctx)
	if err != nil {
		return nil, err
	}
	r.result.job, r.result.cheap = job, cheap
	// Step 3: draws of the emulated posterior, corrected by the true one.
	stopped := r.sample(ctx, cheap)
	if r.result.Phi == nil {
		return nil, stopped
	}
	return r.result, errors.Join(stopped, r.compare(ctx, cheap, outputs))
}

// calibrate makes the pairs.
func (r *ces) calibrate(ctx context.Context) error {
	drawn, phi, err := r.drawn(ctx)
	if err != nil {
		return err
	}
	theta, err := matrixOf(drawn)
	if err != nil {
		return err
	}
	for _, warning := range r.result.Calibration.Warnings {
		r.result.Warnings = append(r.result.Warnings, "calibration: "+warning)
	}
	r.pairs, err = newPairs(theta, phi)
	return err
}

// drawn returns the draws of the calibration, [J, D], and Phi at each.
func (r *ces) drawn(ctx context.Context) (theta *tensors.Tensor, phi []float64, err error) {
	problem, kernel, err := r.calibration(ctx)
	if err != nil {
		return nil, nil, err
	}
	problem.Name = r.name
	begun := time.Now()
	chain, err := mcmc.Sample(ctx, problem, kernel, mcmc.Settings{
		Chains: 1, Draws: r.Pairs, Thin: r.PairsThin, WarmUp: r.PairsWarmUp, FixedScale: true, Seed: r.Seed, DType: r.DType,
		Engine: r.Engine, Checkpoint: r.file("calibration"), CheckpointEvery: r.CheckpointEvery, Replace: r.Replace,
		Progress: r.progress("calibration"),
	})
	if chain == nil || chain.Status.Err() != nil {
		if chain != nil {
			err = errors.Join(err, chain.Status.Err(), context.Cause(ctx))
		}
		return nil, nil, fmt.Errorf("fbnn: calibration: %w", err)
	}
	r.resumed(chain.Elapsed, begun)
	r.result.Calibration = chain
	if phi, err = r.truth.potential(ctx, drawnPlaces{chain.Draws}); err != nil {
		return nil, nil, err
	}
	r.spent.Full += r.Pairs
	theta = chain.Draws.Tensor()
	r.result.Pairs, err = r.posterior(theta, 1, "calibration of "+string(chain.Status), mcmc.Approximation(kernel))
	return theta, phi, err
}

// calibration returns the problem that the first step samples, and its kernel.
func (r *ces) calibration(ctx context.Context) (density.Problem, mcmc.Kernel, error) {
	if r.Data.Source != nil {
		problem, _, err := r.byBatches(r.BatchSize, r.DType)
		return problem, r.Calibration, err
	}
	if r.Calibration.Carries() == mcmc.CarriesNothing {
		x, y, err := r.Data.Tensors(r.DType, r.Data.Parts.Train)
		if err != nil {
			return density.Problem{}, nil, err
		}
		batches, err := dataset.NewEpochBatches(r.Data.Rows(), r.BatchSize, r.Seed)
		if err != nil {
			return density.Problem{}, nil, fmt.Errorf("fbnn: %w", err)
		}
		problem, err := density.NewBatchProblem(r.Data.Bound, x, y, nil, batches, 1, 1)
		if err != nil {
			return density.Problem{}, nil, fmt.Errorf("fbnn: %w", err)
		}
		problem.Initial, problem.Climb = r.Problem.Initial, r.Problem.Climb
		return problem, r.Calibration, nil
	}
	pcn, ok := r.Calibration.(mcmc.PreconditionedCrankNicolson)
	if !ok || pcn.Beta > 0 {
		return r.Problem, r.Calibration, nil
	}
	// The chain begins where the climb from the prior ends, with the Beta that is accepted there with probability .3. The
	// sampler below has the smallest of steps: it is called for its climb.
	problem := r.Problem
	problem.Name = r.name
	begun := time.Now()
	climbed, err := mcmc.Sample(ctx, problem, mcmc.ULA{StepSize: 1e-6}, mcmc.Settings{
		Chains: 1, Draws: 1, WarmUp: mcmc.NoWarmUp, Seed: r.Seed, DType: r.DType, Engine: r.Engine,
		Checkpoint: r.file("start"), CheckpointEvery: r.CheckpointEvery, Replace: r.Replace,
	})
	if climbed == nil || climbed.Status.Err() != nil {
		return problem, nil, fmt.Errorf("fbnn: calibration: %w", errors.Join(err, context.Cause(ctx)))
	}
	r.resumed(climbed.Elapsed, begun)
	r.spent.FullGradients += problem.ClimbSteps()
	problem.Start = climbed.Draws.Tensor()
	start, err := matrixOf(climbed.Draws.Tensor())
	if err != nil {
		return problem, nil, err
	}
	pcn.Beta, err = r.acceptedBeta(ctx, r.truth, start, pcn)
	r.choose("calibration_beta", pcn.Beta)
	return problem, pcn, err
}

// emulate trains the emulator, and returns the emulated posterior as a problem to sample.
func (r *ces) emulate(ctx context.Context) (cheap density.Problem, outputs *outputsHead, err error) {
	h, outputs, err := r.newHead(ctx, r.Job, r.pairs)
	if err != nil {
		return cheap, nil, err
	}
	if outputs != nil {
		r.spent.Full += r.Pairs
		if knownNoise(r.Data.Bound) == 0 {
			r.spent.Full += r.Pairs // a second pass
		}
	}
	judge, err := r.newJudge(ctx, h)
	if err != nil {
		return cheap, nil, err
	}
	lesson := &Lesson{
		Settings: r.Settings, Theta: r.pairs.standardised(r.pairs.theta), Scores: h.scores(), Learn: r.pairs.learnt,
		Judge: judge.errors, Checkpoint: r.file("emulator"), Identity: r.name + r.pairs.digest(),
		resumed: r.resumed,
	}
	lesson.Progress = r.progress("emulation")
	learnt, err := r.Regressor.Learn(ctx, lesson)
	if err != nil {
		return cheap, nil, err
	}
	if learnt == nil || learnt.Predict == nil {
		return cheap, nil, fmt.Errorf("%w: %T.Learn gives none", ErrEmulator, r.Regressor)
	}
	found, err := judge.errors(ctx, learnt)
	if err != nil {
		return cheap, nil, err
	}
	r.result.Emulator = EmulatorReport{
		Activation: learnt.Activation, Rank: h.rank(), HeldOut: found,
	}
	return r.emulatedProblem(h, learnt), outputs, nil
}

// emulatedProblem is the emulated posterior, with the data of its emulator.
func (r *ces) emulatedProblem(h head, learnt *Learnt) density.Problem {
	p, d := r.pairs, r.Data.Bound.D
	data := map[string]*tensors.Tensor{
		centerName: compute.Floats(r.DType, p.center, 1, d), scaleName: compute.Floats(r.DType, p.scale, 1, d),
	}
	for name, t := range h.data() {
		data[headPrefix+name] = t
	}
	for name, t := range learnt.Data {
		data[learntPrefix+name] = t
	}
	return density.Problem{
		Name: r.name, Dim: d, Data: data,
		Target: func(nodes compute.Nodes, _ []*graph.Node) density.Target {
			return emulated{bound: r.Data.Bound, head: h, regressor: r.Regressor, learnt: learnt, nodes: nodes}
		},
	}
}

// sample makes the draws.
func (r *ces) sample(ctx context.Context, cheap density.Problem) error {
	kernel, err := r.stepped(ctx, cheap)
	if err != nil {
		return err
	}
	problem := cheap
	switch {
	case r.corrected() && r.Data.Source != nil:
		byChain, err := newEvaluator(r.Job, r.Problem)
		if err != nil {
			return err
		}
		defer byChain.Close()
		byChain.atOnce = r.Chains
		problem = mcmc.Hosted(cheap, r.Chains, byChain.logDensity)
		kernel = mcmc.DelayedAcceptance{Inner: kernel, Share: r.share(cheap), OnHost: true}
	case r.corrected():
		problem = r.withTruth(cheap)
		kernel = mcmc.DelayedAcceptance{Inner: kernel, Share: r.share(cheap), Cheap: func(t density.Target) density.Target {
			return t.(corrected).cheap
		}}
	}
	last := r.pairs.theta.RawRowView(r.Pairs - 1)
	var start []float64
	for range r.Chains {
		start = append(start, last...)
	}
	problem.Start = compute.Floats(r.DType, start, r.Chains, len(last))
	begun := time.Now()
	chain, stopped := mcmc.Sample(ctx, problem, kernel, mcmc.Settings{
		Chains: r.Chains, Draws: r.Draws, WarmUp: mcmc.NoWarmUp, Seed: r.Seed + 1, DType: r.DType,
		Engine: r.Engine, Checkpoint: r.file("sampling"), CheckpointEvery: r.CheckpointEvery, Replace: r.Replace,
		Progress: r.progress("sampling"), ObserveEvery: r.ObserveEvery, Observe: r.observe(),
	})
	if err := chain.Unusable(ctx, stopped); err != nil {
		if k, ok := r.Sampling.(mcmc.HMC); ok && k.StepSize > 0 && r.corrected() && errors.Is(err, mcmc.ErrStuck) {
			return fmt.Errorf("fbnn: sampling: %w; the steps of CES.Sampling are %.3g: with a StepSize of 0 they are chosen "+
				"by what the true posterior accepts", err, k.StepSize)
		}
		return fmt.Errorf("fbnn: sampling: %w", err)
	}
	if stopped != nil {
		stopped = fmt.Errorf("fbnn: sampling: %w", stopped)
	}
	r.resumed(chain.Elapsed, begun)
	out := r.result
	out.Sampling, out.Phi, out.Status = chain, chain.Draws.Tensor(), chain.Status
	out.Warnings = append(out.Warnings, chain.Warnings...)
	var accepted []float64
	for _, c := range chain.Stats { // NaN if the emulated chain never moved, so that there was nothing to accept
		if v, ok := c.Extra["second-stage acceptance"]; ok && !math.IsNaN(v) {
			accepted = append(accepted, v)
		}
	}
	if len(accepted) > 0 {
		out.SecondStage = stat.Mean(accepted, nil)
	}
	return stopped
}

// corrected is the true posterior, which carries the emulated one along for mcmc.DelayedAcceptance.
type corrected struct {
	density.Target
	cheap emulated
}

// The names of the true posterior's data begin with this prefix when they are stored together with the emulator's.
const truthPrefix = "truth/"

// withTruth is the problem of sampling the true posterior with moves on the emulated one: its target is a corrected.
func (r *ces) withTruth(cheap density.Problem) density.Problem {
	problem := r.Problem
	problem.Name, problem.Data = cheap.Name, map[string]*tensors.Tensor{}
	for name, t := range r.Problem.Data {
		problem.Data[truthPrefix+name] = t
	}
	for name, t := range cheap.Data {
		problem.Data[name] = t
	}
	problem.Target = func(nodes compute.Nodes, inputs []*graph.Node) density.Target {
		return corrected{
			Target: r.Problem.Target(within(nodes, truthPrefix), inputs), cheap: cheap.Target(nodes, inputs).(emulated),
		}
	}
	return problem
}

// share is the approximate cost of an evaluation of the emulator relative to one of the network: the ratio of the
// numbers of multiplications.
func (r *ces) share(cheap density.Problem) float64 {
	numbers := 0
	for _, t := range cheap.Data {
		numbers += t.Size()
	}
	return min(1, float64(numbers)/(float64(r.Data.Rows())*float64(r.Data.Bound.D)))
}

// observe calls Settings.Observe with the posterior of the draws so far; nil if it is not set.
func (r *ces) observe() func(int, *mcmc.Draws) error {
	if r.Observe == nil {
		return nil
	}
	return func(step int, now *mcmc.Draws) error {
		posterior, err := r.posterior(now.Tensor(), now.Chains, "observed", r.result.Approximation)
		if err != nil {
			return err
		}
		return r.Observe(step, posterior)
	}
}
