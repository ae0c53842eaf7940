package pbnn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Settings of Sample. The zero value of every field works.
type Settings struct {
	mcmc.Settings // Chains J, Draws, Thin, WarmUp, Seed, DType, Engine, Devices, Checkpoint, Progress: as of mcmc.Sample
}

// Result of Sample.
type Result struct {
	Posterior *bayes.Posterior // all chains' draws, chain after chain, with equal weights
	Target    Target           // what they are draws of
	Sampler   Sampler          // as it ran, with what was chosen for it
	Chains    *mcmc.Result     // draws and counts of each chain, status and times
	// Noise is the mean of the sigma^2 that proposals were judged with, over all chains; 0 for samplers without one.
	Noise float64
	// Skewness is that of delta, as the d_i of all proposals show it, whatever its sign: 0 where the noise is Gaussian, as the penalty has it, and where M is below 3.
	Skewness float64
	// Bias is the first term of what Skewness does to the logarithm of an acceptance ratio, at most (see skewBias): 0.1 is a ratio that is wrong by a tenth.
	Bias float64
	// Warnings say in words what of the above makes the draws doubtful; empty if nothing does.
	Warnings []string
	// Acceptance is the mean probability of acceptance over all chains; NaN for samplers that accept everything.
	Acceptance float64
	// Passes is how many times the N rows' likelihoods a chain evaluated for its draws: the measure by which samplers are compared at equal cost. Each place and each gradient counts as one evaluation, and so
	// does what chains evaluated in vain while they waited for one another. WarmUpPasses is the same of what was before the draws: the start, the warm-up and the trials in Adapted. A run that went on
	// from a checkpoint counts those before it, but for the trials' of the earlier sessions.
	Passes, WarmUpPasses float64
	// RowsPerStep is how many rows' likelihoods a chain's transition took, in the mean over the draws' transitions, counted likewise: what a chain by itself would need, without waiting.
	RowsPerStep float64
	// Adapted are the trials that chose Batches and BatchSize, if Metropolis.Noise asked for them.
	Adapted []Trial
}

// Sample runs J chains of a sampler of the model's stochastic parameters, given data in raw units. Nothing may be shared in the model: where something is, train first and
// take SampleFrom. Chains begin at draws from the prior.
//
// A cancelled context is no error once all chains have a draw: the result holds what there is, with the status
// run.Cancelled. Where a checkpoint cannot be written there is a result beside the error, as of mcmc.Sample. Errors wrap
// mcmc.ErrStart, mcmc.ErrStuck or mcmc.ErrStepSize where these are at fault; of chains that noise has stopped the error
// says what n and M would do.
func Sample(ctx context.Context, model bayes.Model, data *dataset.Dataset, sampler Sampler, settings Settings) (*Result, error) {
	joined, err := fit.New("pbnn", model, dataset.Parts{Train: data})
	if err != nil {
		return nil, err
	}
	d := &prepared{Data: joined, rows: joined.Rows(), settings: settings}
	if d.Bound.W > 0 {
		return nil, fmt.Errorf("pbnn: the model shares %d numbers between its particles: train them, for instance with baseline.MAP, and go on with SampleFrom, or take bayes.All()", d.Bound.W)
	}
	return d.sample(ctx, sampler)
}

// SampleFrom is Sample with the shared parameters and the standardisation of a trained posterior, such as baseline.MAP's or ohsmc's for a partial network; chains begin at
// its particles, drawn by their weights.
func SampleFrom(ctx context.Context, trained *bayes.Posterior, data *dataset.Dataset, sampler Sampler, settings Settings) (*Result, error) {
	joined, err := fit.Of("pbnn", trained, data)
	if err != nil {
		return nil, err
	}
	if settings.Engine == nil {
		settings.Engine = trained.Engine()
	}
	d := &prepared{Data: joined, rows: joined.Rows(), settings: settings}
	return d.sample(ctx, sampler)
}

// prepared is a run with everything checked and the data standardised.
type prepared struct {
	*fit.Data // without rows if shards hold them; without Trained chains begin at draws from the prior
	settings  Settings

	x, y     *tensors.Tensor // [N, d] and [N]
	features *tensors.Tensor // [N, width]: what the layers before the first stochastic one make of x; nil if there are none
	columns  *tensors.Tensor // [width, N]: features as the network takes all rows
	psi      *tensors.Tensor // [W], nil if nothing is shared
	rows     int             // N
	perMove  float64         // times Sampler.RowsPerMove are the rows that a move evaluates; 0: 1
	start    *tensors.Tensor // [J, D]: where chains begin; nil: at draws from the prior
	engine   *compute.Engine
}

// sample fills in what is missing, adapts if asked, and runs the chains.
func (d *prepared) sample(ctx context.Context, sampler Sampler) (*Result, error) {
	if err := d.prepare(); err != nil {
		return nil, err
	}
	if sampler == nil {
		return nil, errors.New("pbnn: there is no sampler: take Metropolis, Barker, Confidence, Unadjusted or AllRows")
	}
	sampler, err := sampler.prepared(d.rows)
	if err != nil {
		return nil, err
	}
	var trials []Trial
	if m, ok := sampler.(Metropolis); ok && m.Noise > 0 {
		if sampler, trials, err = d.adapt(ctx, m); err != nil {
			return nil, err
		}
	}
	problem, kernel, err := sampler.problem(d)
	if err != nil {
		return nil, err
	}
	chains, err := mcmc.Sample(ctx, problem, kernel, d.settings.Settings)
	if chains == nil {
		return nil, explain(err, sampler, d.rows)
	}
	return d.finish(ctx, sampler, chains, trials, err)
}

// finish makes a result of what chains have drawn until they came to their end, or until an error stopped them.
func (d *prepared) finish(
	ctx context.Context, sampler Sampler, chains *mcmc.Result, trials []Trial, stopped error,
) (*Result, error) {
	if chains.Draws.PerChain == 0 {
		return nil, fmt.Errorf("pbnn: ended before all chains had a draw: %w", errors.Join(stopped, context.Cause(ctx)))
	}
	result, err := d.result(sampler, chains, trials)
	if stopped != nil {
		stopped = fmt.Errorf("pbnn: %w", stopped)
	}
	return result, errors.Join(stopped, err)
}

// prepare checks the data and puts it into tensors.
func (d *prepared) prepare() error {
	d.settings.Chains = cmp.Or(d.settings.Chains, 4)
	d.settings.DType = cmp.Or(d.settings.DType, compute.Float32)
	var err error
	if d.x, d.y, err = d.Tensors(d.settings.DType, d.Parts.Train); err != nil {
		return err
	}
	if d.engine, err = d.settings.Engine.Or(); err != nil {
		return err
	}
	if d.Trained == nil {
		return nil
	}
	if d.psi, d.start, err = target.ChainStarts(d.Trained, d.settings.DType, max(1, d.settings.Chains), d.settings.Seed); err != nil {
		return fmt.Errorf("pbnn: %w", err)
	}
	if d.Bound.HasPrefix() {
		if d.columns, err = target.Features(d.engine, d.Bound, d.x, d.psi); err != nil {
			return fmt.Errorf("pbnn: %w", err)
		}
		d.features, err = graph.CallOnce(d.engine.Backend(), func(columns *graph.Node) *graph.Node { return graph.Transpose(columns, 0, 1) }, d.columns)
		if err != nil {
			return fmt.Errorf("pbnn: features of the shared layers: %w", err)
		}
	}
	return nil
}

// explain says of chains that noise has stopped what would help.
func explain(err error, sampler Sampler, rows int) error {
	stuck := (*mcmc.StuckError)(nil)
	m, ok := sampler.(Metropolis)
	if !ok || !errors.As(err, &stuck) || stuck.Noise <= acceptableNoise {
		return fmt.Errorf("pbnn: %w", err)
	}
	batches, size := m.sizeFor(acceptableNoise, stuck.Noise, rows)
	return fmt.Errorf("pbnn: the loss differences have a variance sigma^2 of %.3g, whose penalty lets nothing pass; at this step size, %.3g, it would be about %g with Batches (M) %d instead of %d, or with BatchSize (n) %d instead of %d: %w",
		stuck.Noise, stuck.StepSize, acceptableNoise, batches, m.Batches, size, m.BatchSize, err)
}

// count fills in Passes, WarmUpPasses and RowsPerStep, for data of N rows and moves that evaluate so many times what the sampler says.
func (r *Result) count(rows int, times float64) {
	perMove := times * float64(r.Sampler.RowsPerMove(rows))
	r.Passes = float64(r.Chains.Moves) * perMove / float64(rows)
	r.WarmUpPasses = float64(r.Chains.WarmUpMoves) * perMove / float64(rows)
	if a, ok := r.Sampler.(AllRows); ok && a.Kernel.Carries() != mcmc.CarriesNothing {
		r.WarmUpPasses++ // where the chains begin
	}
	for _, trial := range r.Adapted {
		r.WarmUpPasses += trial.Passes
	}
	moves, transitions := 0, 0
	for _, c := range r.Chains.Chains {
		moves += max(c.Gradients, c.Transitions) // those that end a transition in each move do not tell
		transitions += c.Transitions
	}
	r.RowsPerStep = perMove * float64(moves) / float64(transitions)
}

func (d *prepared) result(sampler Sampler, chains *mcmc.Result, trials []Trial) (*Result, error) {
	r := &Result{Target: sampler.Sampled(), Sampler: sampler, Chains: chains, Adapted: trials}
	for _, c := range chains.Chains {
		r.Noise += c.Noise / float64(len(chains.Chains))
		r.Acceptance += c.Acceptance / float64(len(chains.Chains))
	}
	r.judgeNoise()
	r.count(d.rows, cmp.Or(d.perMove, 1))

	phi := chains.Draws.Tensor()
	settings, err := json.Marshal(map[string]any{
		"sampler": sampler, "type": fmt.Sprintf("%T", sampler), "target": r.Target.String(), "chains": d.settings.Chains, "draws": chains.Draws.PerChain,
		"thin": max(1, d.settings.Thin), "tuned": chains.Tuned,
	})
	if err != nil {
		return nil, fmt.Errorf("pbnn: the sampler's settings: %w", err)
	}
	draws := bayes.Draws{Phi: phi, Psi: d.psi, LogWeights: bayes.EqualLogWeights(phi.Shape().Dim(0)), Chains: d.settings.Chains}
	r.Posterior, err = d.Posterior(draws, bayes.Provenance{
		Algorithm: fmt.Sprintf("pbnn: %T of the %s", sampler, r.Target), Status: string(chains.Status), Seed: d.settings.Seed,
		Settings: settings, Rows: d.rows,
	}, d.engine)
	return r, err
}
