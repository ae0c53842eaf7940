package fbnn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// This file is the paper's Algorithm 3, top to bottom: its settings and its three steps. The settings' defaults and
// checks are in ces_settings.go, the parts of the emulator in pairs.go, head.go and regressor.go, the choice of the
// sampling kernel's step size in step.go, and what is measured of a run in truth.go.

// CES is calibrate, emulate, sample (Moslemi, Meng, Lan and Shahbaba 2024, Algorithm 3; Cleary et al. 2021). The zero
// value of every field works. FBNN(A-B) of the paper is CES{Calibration: A, Sampling: B}.
//
// Its checkpoint is a file for each stage: with ".start", ".calibration", ".emulation" (one for each activation that is
// tried) and ".sampling" after the name. Observe and fit.Now see the draws of the sampling, whose posterior predicts
// by the network, also with PaperMode. Errors wrap mcmc.ErrStuck if chains do not move, and ErrEmulator if the emulator
// is of no use.
//
// Rows of a Source are read at most 4096 at a time. The calibration takes mini-batches from few blocks, and so must
// have a kernel for mini-batches, mcmc.SGHMC or mcmc.SGLD. Phi, gradients and the inner products of the pairs' outputs
// are sums over all blocks, and so is each evaluation of the true posterior in the second accept/reject step. They are
// in float64, whatever run.Settings.DType is, since differences of sums over millions of rows decide on acceptance. Put
// the rows in random order. The outputs are emulated only for a regression with known noise: other likelihoods would
// need the outputs of all rows at once, so that Emulates must be LogLikelihood. Draws and pairs are in memory.
type CES struct {
	// Calibration is the kernel of the first step, on the true posterior; default mcmc.SGHMC, whose LearningRate is .001/N
	// if it is 0. The StdDev of an mcmc.PreconditionedCrankNicolson are the prior's if there are none, and a Beta of 0
	// stands for the one that is accepted with probability .3. Kernels that carry nothing from move to move, such as
	// SGHMC, take mini-batches; others take all rows.
	Calibration mcmc.Kernel
	Pairs       int // J, the number of pairs that are kept; default 200, at least 10
	PairsThin   int // transitions from one pair to the next; default 10, with PaperMode 1
	PairsWarmUp int // transitions before the first pair; default 1000, with PaperMode none; mcmc.NoWarmUp: none
	BatchSize   int // rows of a mini-batch; default 50, or all rows if there are fewer

	Emulates  Emulated  // what the emulator predicts; default the network's outputs on all rows
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
	// PaperMode reproduces the paper's tables; its draws are not the posterior. The pairs are by default those of the
	// calibration's first transitions, one after the other (section 4.1). The draws are of the emulated posterior, the
	// default Beta is the one with which the emulated chain accepts with probability .3, also if it is far too large for
	// the true posterior, and Details.Predict returns the emulator's outputs in place of the network's.
	PaperMode bool
}

// ces is a run of CES.
type ces struct {
	CES
	*job
	truth   *evaluator // of the true posterior
	details *Details
	doubts  fit.Doubts // of the stages before the sampling
	pairs   *pairs
	spent   mcmc.Evaluations // evaluations outside of the chains
}

func newCES(a CES, j *fit.Job) (*ces, error) {
	own, err := newJob(j)
	if err != nil {
		return nil, err
	}
	r := &ces{CES: a, job: own, details: &Details{SecondStage: math.NaN(), job: own}}
	r.truth, err = newEvaluator(own, own.problem)
	return r, err
}

// Run implements fit.Method.
func (a CES) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	r, err := newCES(a, j)
	if err != nil {
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
	// Step 3: draws of the emulated posterior, corrected by the true one.
	result, stopped := r.sample(ctx, cheap)
	if result == nil {
		return nil, stopped
	}
	return result, errors.Join(stopped, r.compare(ctx, result, cheap, outputs))
}

// calibrate makes the pairs.
func (r *ces) calibrate(ctx context.Context) error {
	drawn, phi, err := r.drawn(ctx, false)
	if err != nil {
		return err
	}
	theta, err := matrixOf(drawn.Draws.Phi)
	if err != nil {
		return err
	}
	r.doubts = append(r.doubts, drawn.Doubts.Of("calibration")...)
	r.pairs, err = newPairs(theta, phi)
	return err
}

// drawn runs the calibration, and returns its result and Phi at each draw. With shown its draws are the run's own.
func (r *ces) drawn(ctx context.Context, shown bool) (result *fit.Result, phi []float64, err error) {
	problem, kernel, err := r.calibration(ctx)
	if err != nil {
		return nil, nil, err
	}
	result, err = r.RunStage(ctx, fit.Stage{
		Name: "calibration", Problem: problem, Inner: !shown,
		Method: mcmc.Chains{
			Kernel: kernel, Chains: 1, Draws: r.Pairs, Thin: r.PairsThin, WarmUp: r.PairsWarmUp, FixedScale: true,
		},
	})
	if err := unfinished(ctx, result, err); err != nil {
		return nil, nil, fmt.Errorf("fbnn: calibration: %w", err)
	}
	r.details.Calibration = fit.Details[*mcmc.Details](result)
	phi, err = r.truth.potential(ctx, drawnPlaces{r.details.Calibration.Draws})
	r.spent.Full += r.Pairs
	return result, phi, err
}

// unfinished is the error of a stage that has not made all its draws; nil if it has.
func unfinished(ctx context.Context, stage *fit.Result, err error) error {
	if err == nil && stage.Status.Err() != nil {
		return errors.Join(stage.Status.Err(), context.Cause(ctx))
	}
	return err
}

// calibration returns the problem that the first step samples, and its kernel.
func (r *ces) calibration(ctx context.Context) (density.Problem, mcmc.Kernel, error) {
	if r.Source != nil {
		problem, _ := r.byBatches(r.BatchSize, r.DType)
		return problem, r.Calibration, nil
	}
	if r.Calibration.Traits().Carries == mcmc.CarriesNothing {
		x, y, err := r.Tensors(r.DType, r.Parts.Train)
		if err != nil {
			return density.Problem{}, nil, err
		}
		batches, err := dataset.NewBatches(r.Rows(), r.BatchSize, r.Seed)
		if err != nil {
			return density.Problem{}, nil, fmt.Errorf("fbnn: %w", err)
		}
		problem := density.NewBatchProblem(r.Bound, x, y, nil, batches, 1, 1)
		problem.Initial, problem.Climb = r.problem.Initial, r.problem.Climb
		return problem, r.Calibration, nil
	}
	pcn, ok := r.Calibration.(mcmc.PreconditionedCrankNicolson)
	if !ok || pcn.Beta > 0 {
		return r.problem, r.Calibration, nil
	}
	// The chain begins where the climb from the prior ends, with the Beta that is accepted there with probability .3. The
	// sampler below has the smallest of steps: it is called for its climb.
	problem := r.problem
	climbed, err := r.RunStage(ctx, fit.Stage{
		Name: "start", Problem: problem, Inner: true,
		Method: mcmc.Chains{Kernel: mcmc.SGLD{StepSize: 1e-12}, Chains: 1, Draws: 1, WarmUp: mcmc.NoWarmUp},
	})
	if err := unfinished(ctx, climbed, err); err != nil {
		return problem, nil, fmt.Errorf("fbnn: calibration: %w", err)
	}
	r.spent.FullGradients += problem.ClimbSteps()
	problem.Start = climbed.Draws.Phi
	start, err := matrixOf(problem.Start)
	if err != nil {
		return problem, nil, err
	}
	pcn.Beta, err = r.acceptedBeta(ctx, r.truth, start, pcn)
	r.Choose("calibration_beta", pcn.Beta)
	return problem, pcn, err
}

// emulate trains the emulator, and returns the emulated posterior as a problem to sample.
func (r *ces) emulate(ctx context.Context) (cheap density.Problem, outputs *outputsHead, err error) {
	h, outputs, err := r.newHead(ctx, r.job, r.pairs)
	if err != nil {
		return cheap, nil, err
	}
	if outputs != nil {
		r.spent.Full += r.Pairs
		if knownNoise(r.Bound) == 0 {
			r.spent.Full += r.Pairs // a second pass
		}
	}
	judge, err := r.newJudge(ctx, h)
	if err != nil {
		return cheap, nil, err
	}
	part, data := *r.Job, *r.Data
	part.Data, part.Settings = &data, r.Within("emulation")
	part.Settings.Progress = squaredErrors(part.Settings.Progress)
	data.Target = dataset.Scaler{} // an emulator's errors are of the scores
	learnt, err := r.Regressor.learn(ctx, &lesson{
		Job: &part, theta: r.pairs.standardised(r.pairs.theta), scores: h.scores(), learn: r.pairs.learnt,
		judge: judge.errors, identity: r.pairs.digest(),
	})
	if err != nil {
		return cheap, nil, err
	}
	found, err := judge.errors(ctx, learnt)
	if err != nil {
		return cheap, nil, err
	}
	r.details.HeldOut = found
	if learnt.activation != "" {
		r.Choose("emulator_activation", learnt.activation)
	}
	r.details.cheap = r.emulatedProblem(h, learnt)
	return r.details.cheap, outputs, nil
}

// emulatedProblem is the emulated posterior, with the data of its emulator.
func (r *ces) emulatedProblem(h head, learnt *predictor) density.Problem {
	p, d := r.pairs, r.Bound.D
	data := map[string]*tensors.Tensor{
		centerName: compute.Floats(r.DType, p.center, 1, d), scaleName: compute.Floats(r.DType, p.scale, 1, d),
	}
	for name, t := range h.data(r.DType) {
		data[headPrefix+name] = t
	}
	for name, t := range learnt.data {
		data[learntPrefix+name] = t
	}
	return density.Problem{
		Name: "emulated posterior", Dim: d, Data: data,
		Target: func(nodes compute.Nodes, _ []*graph.Node) density.Target {
			return emulated{bound: r.Bound, head: h, learnt: learnt, nodes: nodes}
		},
	}
}

// sample makes the draws.
func (r *ces) sample(ctx context.Context, cheap density.Problem) (*fit.Result, error) {
	kernel, err := r.stepped(ctx, cheap)
	if err != nil {
		return nil, err
	}
	problem := cheap
	switch {
	case r.corrected() && r.Source != nil:
		problem = mcmc.Hosted(cheap, r.Chains, r.truth.logDensity)
		kernel = mcmc.DelayedAcceptance{Inner: kernel, Share: r.share(cheap), OnHost: true}
	case r.corrected():
		problem = r.withTruth(cheap)
		kernel = mcmc.DelayedAcceptance{Inner: kernel, Share: r.share(cheap)}
	}
	last := r.pairs.theta.RawRowView(r.Pairs - 1)
	var start []float64
	for range r.Chains {
		start = append(start, last...)
	}
	problem.Start = compute.Floats(r.DType, start, r.Chains, len(last))
	stage := fit.Stage{
		Name: "sampling", Problem: problem, Seed: 1,
		Method: mcmc.Chains{Kernel: kernel, Chains: r.Chains, Draws: r.Draws, WarmUp: mcmc.NoWarmUp},
	}
	if !r.corrected() {
		stage.Approximation = "the emulated posterior"
	}
	result, stopped := r.RunStage(ctx, stage)
	if k, ok := r.Sampling.(mcmc.HMC); ok && k.StepSize > 0 && r.corrected() && errors.Is(stopped, mcmc.ErrStuck) {
		stopped = fmt.Errorf("%w; the steps of CES.Sampling are %.3g: with a StepSize of 0 they are chosen by what the true "+
			"posterior accepts", stopped, k.StepSize)
	}
	if stopped != nil {
		stopped = fmt.Errorf("fbnn: sampling: %w", stopped)
	}
	if result == nil {
		return nil, stopped
	}
	chain := fit.Details[*mcmc.Details](result)
	r.details.Sampling = chain
	result.Doubts, result.Details = append(r.doubts, result.Doubts...), []any{r.details}
	var accepted []float64
	for _, c := range chain.Stats { // NaN if the emulated chain never moved, so that there was nothing to accept
		if v, ok := c.Extra["second-stage acceptance"]; ok && !math.IsNaN(v) {
			accepted = append(accepted, v)
		}
	}
	if len(accepted) > 0 {
		r.details.SecondStage = stat.Mean(accepted, nil)
	}
	return result, stopped
}

// corrected is the true posterior, which carries the emulated one along for mcmc.DelayedAcceptance.
type corrected struct {
	density.Target
	cheap density.Target
}

// Surrogate implements mcmc.Surrogated.
func (c corrected) Surrogate() density.Target { return c.cheap }

// The names of the true posterior's data begin with this prefix when they are stored together with the emulator's.
const truthPrefix = "truth/"

// withTruth is the problem of sampling the true posterior with moves on the emulated one: its target is a corrected.
func (r *ces) withTruth(cheap density.Problem) density.Problem {
	problem := r.problem
	problem.Data = maps.Clone(cheap.Data)
	for name, t := range r.problem.Data {
		problem.Data[truthPrefix+name] = t
	}
	problem.Target = func(nodes compute.Nodes, inputs []*graph.Node) density.Target {
		return corrected{
			Target: r.problem.Target(within(nodes, truthPrefix), inputs), cheap: cheap.Target(nodes, inputs),
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
	return min(1, float64(numbers)/(float64(r.Rows())*float64(r.Bound.D)))
}
