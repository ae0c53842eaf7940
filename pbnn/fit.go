package pbnn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
)

// Settings of Fit and FitFrom. The zero value of every field works.
type Settings struct {
	// Sampling says how many chains there are, how long they run and where: Chains J, Draws, Thin, WarmUp, Seed, DType,
	// Engine, Devices, Checkpoint, Progress, as of mcmc.Sample. Its Observe must be nil.
	Sampling mcmc.Settings
	// Observe, if set, is called with the posterior of the draws so far each time that all chains have made ObserveEvery
	// more draws (default: Sampling.ObserveEvery, or a tenth of Sampling.Draws). step is the number of draws of each
	// chain. An error ends the run.
	Observe      func(step int, now *bayes.Posterior) error `json:"-"`
	ObserveEvery int
}

// Result of Fit and FitFrom.
type Result struct {
	// Result has the Posterior: all chains' draws, chain after chain, with equal weights; how the run ended and how long
	// it took; and Warnings, for a large Bias, and for chains that disagree on predictions (diag.Mixing; not of FitHeld,
	// which sees no rows).
	fit.Result
	Target  Target       // what the draws are of
	Sampler Sampler      // as it ran, defaults and adapted settings filled in
	Chains  *mcmc.Result // draws and counts of each chain
	// Noise is the mean sigma^2 of all proposals of all chains; 0 for samplers that have no sigma^2.
	Noise float64
	// Skewness is the absolute skewness of delta, estimated from the d_i of all proposals of a Metropolis: 0 for Gaussian
	// noise, which the penalty assumes. It is also 0 if it is not estimated: for M below 3, the rule Naive and other
	// samplers.
	Skewness float64
	// Bias is the largest error that Skewness causes in the logarithm of an acceptance ratio, to first order (see
	// derivations.md): at 0.1 the ratio is wrong by about a tenth.
	Bias float64
	// Acceptance is the mean probability of acceptance over all chains; NaN for samplers that accept everything.
	Acceptance float64
	// Passes is the cost of a chain's draws, in passes over the likelihoods of all N rows: use it to compare samplers at
	// equal cost. The losses of a row at one theta count as one evaluation of the row, its gradient as another.
	// Evaluations of a chain that only waits for the others count too. The climb to the start, the warm-up and the trials
	// in Adapted do not.
	Passes float64
	// RowsPerStep is the mean number of row evaluations in a transition, counted in the same way over the draws, but
	// without those of waiting chains: the cost of a chain that runs alone.
	RowsPerStep float64
	// Adapted lists the trials that chose Batches and BatchSize, if Metropolis.Noise asked for them.
	Adapted []Trial
}

// FullEvaluations implements diag.Evaluated: the number of full forward passes of the network for the draws.
func (r *Result) FullEvaluations() float64 { return r.Chains.FullEvaluations() }

// Fit samples the stochastic parameters of a model by J chains of the sampler, given the rows of parts.Train, in raw
// units. The other parts are not used. All parameters must be stochastic, as they are if Model.Stochastic is not set:
// if some are shared, train them first, and use FitFrom. Chains begin at draws from the prior, and each climbs from
// there to where the posterior has its mass (density.Climb), since at a draw from the prior the noise of mini-batches
// can be so large that nothing is accepted.
//
// A cancelled context is no error once all chains have a draw: the result has the draws so far and the status
// run.Cancelled. If a checkpoint cannot be written, there is a result besides the error, as for mcmc.Sample. Errors
// wrap mcmc.ErrStart, mcmc.ErrStuck or mcmc.ErrStepSize where these apply. If noise has stopped the chains of a
// Metropolis, the error names an n and an M with which they would move.
func Fit(
	ctx context.Context, model bayes.Model, sampler Sampler, parts dataset.Parts, settings Settings,
) (*Result, error) {
	met, err := fit.New("pbnn", fit.AllByDefault(model), parts)
	if err == nil {
		err = nothingShared(met.Bound, "FitFrom")
	}
	if err != nil {
		return nil, err
	}
	return FitHeld(ctx, Held{Data: met}, sampler, settings)
}

// FitFrom is Fit with the shared parameters and the standardisation of a trained posterior, such as baseline.MAP's or
// ohsmc's for a partial network; chains begin at its particles, drawn by their weights.
func FitFrom(
	ctx context.Context, trained *bayes.Posterior, sampler Sampler, parts dataset.Parts, settings Settings,
) (*Result, error) {
	met, err := fit.Of("pbnn", trained, parts.Train)
	if err != nil {
		return nil, err
	}
	return FitHeld(ctx, Held{Data: met}, sampler, settings)
}

// Held is a model and its rows, which may be held elsewhere, such as by the shards of package shards.
type Held struct {
	*fit.Data
	// Rows is N, and Names has the names of features, targets and classes that the posterior gets, both if the rows are
	// elsewhere: then Data.Parts.Train is nil.
	Rows  int
	Names bayes.Origin
}

// nothingShared returns an error if a model has shared parameters, which must be trained first.
func nothingShared(bound *bayes.BoundModel, from string) error {
	if bound.W == 0 {
		return nil
	}
	var names, others []string
	for _, slot := range bound.Slots {
		if slot.Stochastic {
			continue
		}
		names = append(names, slot.Name)
		if slot.Kind != nn.Weights && slot.Kind != nn.Biases {
			others = append(others, strconv.Quote(slot.Name))
		}
	}
	everything := "bayes.All()"
	if len(others) > 0 {
		everything += fmt.Sprintf(".And(bayes.Names(%s))", strings.Join(others, ", "))
	}
	return fmt.Errorf("pbnn: the model has shared parameters (%s), which this sampler does not train: sample them too, "+
		"by Model.Stochastic = %s, or train them first, for instance with baseline.MAP, and call %s",
		strings.Join(names, ", "), everything, from)
}

// FitHeld is Fit, or FitFrom if the data have a trained posterior, for rows that may be held elsewhere. Then the
// sampler's problem has to ask for what it needs of them.
func FitHeld(ctx context.Context, held Held, sampler Sampler, settings Settings) (*Result, error) {
	d := &Data{Data: held.Data, Sampling: settings.Sampling, rows: held.Rows, names: held.Names}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	sampler, err := prepared(sampler, d.rows)
	if err != nil {
		return nil, err
	}
	r := &sampling{Data: d, sampler: sampler}
	if err := r.observe(settings.Observe, settings.ObserveEvery); err != nil {
		return nil, err
	}
	if m, ok := sampler.(Metropolis); ok && m.Noise > 0 {
		if r.sampler, r.trials, err = d.adapt(ctx, m); err != nil {
			return nil, err
		}
	}
	problem, kernel, err := d.problemOf(r.sampler)
	if err != nil {
		return nil, err
	}
	return r.sample(ctx, problem, kernel)
}

// sampling is a run of chains on data by a prepared sampler.
type sampling struct {
	*Data
	sampler Sampler
	trials  []Trial
}

// observe makes mcmc.Sample call the user's function.
func (r *sampling) observe(user func(int, *bayes.Posterior) error, every int) error {
	if r.Sampling.Observe != nil {
		return errors.New("pbnn: Settings.Sampling.Observe is set: set Settings.Observe, which is given a posterior")
	}
	if err := limits.Check("pbnn: Settings",
		limits.Field("ObserveEvery", every, every >= 0, "0 (a tenth of the draws) or more"),
	); err != nil || user == nil {
		return err
	}
	r.Sampling.ObserveEvery = cmp.Or(every, r.Sampling.ObserveEvery)
	r.Sampling.Observe = func(draws int, now *mcmc.Draws) error {
		p, err := r.posterior(now, mcmc.Tuned{}, "observed")
		if err != nil {
			return err
		}
		return user(draws, p)
	}
	return nil
}

// sample runs the chains.
func (r *sampling) sample(ctx context.Context, problem density.Problem, kernel mcmc.Kernel) (*Result, error) {
	chains, stopped := mcmc.Sample(ctx, problem, kernel, r.Sampling)
	if fault := chains.Unusable(ctx, stopped); fault != nil {
		return nil, explain(fault, r.sampler, r.rows)
	}
	result, err := r.result(chains)
	if train := r.Parts.Train; err == nil && train != nil {
		result.Warnings = append(result.Warnings, diag.Mixing(ctx, result.Posterior, train)...)
	}
	if stopped != nil {
		stopped = fmt.Errorf("pbnn: %w", stopped)
	}
	return result, errors.Join(stopped, err)
}

func (r *sampling) result(chains *mcmc.Result) (*Result, error) {
	result := &Result{Target: r.sampler.Sampled(), Sampler: r.sampler, Chains: chains, Adapted: r.trials}
	result.Status, result.Elapsed = chains.Status, chains.Elapsed
	for _, c := range chains.Stats {
		result.Noise += c.Noise / float64(len(chains.Stats))
		result.Acceptance += c.Acceptance / float64(len(chains.Stats))
	}
	result.Warnings = append(result.Warnings, chains.Warnings...)
	result.judgeNoise()
	result.count(r)
	var err error
	result.Posterior, err = r.posterior(chains.Draws, chains.Tuned, string(chains.Status))
	return result, err
}

// count fills in Passes and RowsPerStep.
func (r *Result) count(of *sampling) {
	perMove := float64(r.Sampler.RowsPerMove(of.rows))
	r.Passes = float64(r.Chains.Moves) * perMove / float64(of.rows)
	took, transitions := 0, 0
	for _, c := range r.Chains.Stats {
		took += max(c.Gradients, c.Transitions) // 0 for kernels with one move a transition
		transitions += c.Transitions
	}
	r.RowsPerStep = perMove * float64(took) / float64(transitions)
}

// posterior is the posterior of the draws, with equal weights.
func (r *sampling) posterior(of *mcmc.Draws, tuned mcmc.Tuned, status string) (*bayes.Posterior, error) {
	settings, err := json.Marshal(map[string]any{
		"sampler": r.sampler, "type": fmt.Sprintf("%T", r.sampler), "target": r.sampler.Sampled().String(),
		"chains": of.Chains, "draws": of.PerChain, "thin": max(1, r.Sampling.Thin), "tuned": tuned,
	})
	if err != nil {
		return nil, fmt.Errorf("pbnn: the sampler's settings: %w", err)
	}
	draws := bayes.Draws{
		Phi: of.Tensor(), Psi: r.psi, LogWeights: bayes.EqualLogWeights(of.Chains * of.PerChain), Chains: of.Chains,
	}
	p, err := r.Posterior(draws, bayes.Provenance{
		Algorithm: fmt.Sprintf("pbnn: %T of the %s", r.sampler, r.sampler.Sampled()), Status: status,
		Seed: r.Sampling.Seed, Settings: settings, Rows: r.rows,
		LikelihoodPower: r.sampler.Sampled().EffectivePoints(r.rows) / float64(r.rows),
		Approximation:   approximation(r.sampler),
	}, r.Sampling.Engine)
	if err != nil || r.Parts.Train != nil || r.Source != nil || r.Trained != nil {
		return p, err
	}
	origin := p.Origin() // without names, which only the shards know
	origin.FeatureNames, origin.TargetNames, origin.Classes = r.names.FeatureNames, r.names.TargetNames, r.names.Classes
	if p, err = bayes.NewPosterior(r.Bound, draws, origin); err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	return p, nil
}
