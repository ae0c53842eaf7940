package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes/fit"
	"gobnn/bayes/internal/tempering"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Replicas are replicas of a model's parameters at powers of the likelihood that exchange their places (parallel
// tempering: Geyer 1991; Hukushima and Nemoto 1996), as a method of package fit. They sample all parameters of a model
// given all rows, or a log-density of your own (fit.Sample), and estimate the evidence, independently of smc.Tempered.
// The zero value of every field works.
//
// Each of R sets has a replica at every power of the likelihood, from the prior to the posterior. In a sweep
//
//	move:      every replica by the kernel, which leaves p(phi) p(y | phi)^power invariant; at power 0 a new draw of
//	           the prior takes its place
//	exchange:  neighbours at powers a < b swap places with probability
//	           min(1, (p(y | phi_a) / p(y | phi_b))^(b - a)), the even pairs in one sweep, the odd ones in the next
//
// A replica that is held by one mode goes up to small powers, where modes join, and comes down in another one. So the
// share of each mode is right in the end, even if moves alone never leave a mode. The number of sweeps must be large
// enough for replicas to come down from the prior often, see Details.Arrivals. SMC visits each power once, so it is
// faster where moves mix; replica exchange is the check where they do not.
//
// The evidence is the product of the ratios of normalising constants at neighbouring powers, each by Bennett's
// estimator from the replicas at both (1976; the geometric bridge of Meng and Wong 1996 with the best power):
// thermodynamic integration without its discretisation error. Its standard error is from the spread over the sets; if
// the two halves of the sweeps contradict each other, which a warning reports, it is at least half of their difference.
//
// The target must be smc.Factored. The kernel must leave its target invariant. If it leaves the length of trajectories
// to the sampler, as mcmc.HMC{}, they have 20 steps, more or less by a third. A kernel of your own that carries values
// of another point than the replica's is an error once it shows, as for mcmc.Chains.
//
// The draws are of the posterior, all of the same weight: those of all R sets after the first kept sweep, then after
// the second, and so on. Replicas that still stood where the likelihood is 0 are left out, see Details.Outside. A run
// that is cancelled has the draws so far, and no evidence. Settings.Observe is called with the draws so far each
// ObserveEvery of the sweeps that count, by default a tenth of them. The scores of Progress are "acceptance",
// "exchanged" and "arrivals". A run looks for its ladder in a stage of its own, by smc.Tempered. Details are a
// *Details.
type Replicas struct {
	Kernel mcmc.Kernel // leaves its target invariant; default mcmc.HMC{Steps: 10}
	// Ladder holds the powers of the likelihood in ascending order, the last one 1; the prior, of power 0, comes before
	// them. Empty: the ladder that a short run of smc.Tempered finds. The Trace of an earlier such run contains one, see
	// LadderOf.
	Ladder []float64
	// Sets is R, the number of sets of replicas, each with a replica at every power. The sets are independent of each
	// other, and their spread gives the standard error of the evidence: at least 4, default 32.
	Sets int
	// WarmUp is the number of sweeps before those that count; step sizes and scales are chosen in them. All replicas begin
	// at the prior: if by the end of the warm-up they have not found a region, it is missing from the evidence, which is
	// then too low by more than its stated error. Few Details.Arrivals show it. Take a longer WarmUp, or longer
	// trajectories, until the evidence no longer rises. Default 300.
	WarmUp int
	Sweeps int // the number of sweeps that count; default 500
	// Thin keeps the draws of the posterior after every Thin-th sweep; default: chosen such that about 2000 draws are
	// kept.
	Thin int
}

var _ fit.OfDensity = Replicas{}

// OfDensity implements fit.OfDensity.
func (Replicas) OfDensity() {}

// Title implements fit.Method.
func (Replicas) Title() string { return "replica exchange (Geyer 1991)" }

// MarshalJSON writes the settings, with the kernel's type.
func (r Replicas) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", r.Kernel), "settings": r.Kernel, "ladder": r.Ladder, "sets": r.Sets,
		"warm_up": r.WarmUp, "sweeps": r.Sweeps, "thin": r.Thin,
	})
}

// Prepare implements fit.Method.
func (r Replicas) Prepare(j *fit.Job) (fit.Method, error) {
	if r.Kernel == nil {
		r.Kernel = mcmc.HMC{Steps: 10}
	}
	const owner = "exchange: Replicas"
	if err := limits.Fill(owner,
		limits.Int("Sets", &r.Sets, 32).From(4).Because("whose spread is the standard error"),
		limits.Int("WarmUp", &r.WarmUp, 300).From(1),
		limits.Int("Sweeps", &r.Sweeps, 500).From(2),
	); err != nil {
		return nil, err
	}
	if err := limits.Check(owner, limits.Numbers("Sweeps", r.Sweeps, r.Sweeps, r.Sets)); err != nil {
		return nil, err
	}
	if err := limits.Fill(owner,
		limits.Int("Thin", &r.Thin, max(1, min(r.Sweeps, r.Sweeps*r.Sets/2000))).Between(1, r.Sweeps).Because("the Sweeps"),
	); err != nil {
		return nil, err
	}
	r.Ladder = slices.Clone(r.Ladder) // the caller may change it while the run is on its way
	for i := 1; i < len(r.Ladder); i++ {
		if below, power := r.Ladder[i-1], r.Ladder[i]; below > 0 && power > mostRatio*below {
			return nil, fmt.Errorf("%s.Ladder[%d] is %v after %v: at most %v times the power before it; put powers between",
				owner, i, power, below, float64(mostRatio))
		}
	}
	if err := tempering.CheckLadder(owner+".Ladder", r.Ladder); err != nil {
		return nil, err
	}
	return r, tempering.CheckKernel("exchange", r.Kernel, j.Dim())
}

// usualPowers is the number of powers of usual ladders, for the plan of the work before the ladder is known.
const usualPowers = 15

// Run implements fit.Method.
func (r Replicas) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := j.Density(usualPowers * r.Sets)
	if err != nil {
		return nil, err
	}
	if err := tempering.CheckProblem("exchange", problem); err != nil {
		return nil, err
	}
	if problem.Initial == nil {
		return nil, errors.New("exchange: Problem.Initial is nil: replica exchange draws from the prior in every sweep")
	}
	if problem.Start != nil {
		return nil, errors.New("exchange: Problem.Start is set: replica exchange begins at draws of Problem.Initial, leave " +
			"it out")
	}
	m := &machine{Job: j, Replicas: r, problem: problem}
	m.session = j.Session(m, checkpointFormat)
	defer m.close()
	stopped := j.Loop(ctx, m.session)
	status := m.session.Status()
	if status == "" {
		return nil, stopped
	}
	result, err := m.result()
	switch {
	case err != nil:
		return nil, errors.Join(stopped, err)
	case result.Draws.Phi != nil:
		return result, stopped
	case status.Err() != nil:
		return nil, fmt.Errorf("exchange: the run ended before there was a draw: %w",
			errors.Join(stopped, context.Cause(ctx), status.Err()))
	}
	return nil, errors.Join(stopped, errors.New("exchange: Replicas has no draw of the posterior: in all sweeps its "+
		"replicas were where the likelihood is 0: check the likelihood, or take a longer WarmUp"))
}

// Details are what a run of Replicas adds to its result: fit.Details[*exchange.Details](result).
type Details struct {
	Powers []PowerRecord // the prior's first, the posterior's last
	// Arrivals counts how often a replica came to the posterior having been at the prior since it was last there, over all
	// sets: the number of independent draws.
	Arrivals  int
	NonFinite int // proposals that were rejected because their log-density, or its gradient, was not finite
	// Outside counts the replicas at powers above 0 that stood where the likelihood is 0, over the sweeps that count: all
	// replicas begin at draws of the prior, and none had led these out yet. They count in neither the evidence nor the
	// draws.
	Outside int
	// Evaluations counts the log-likelihoods of single replicas that were evaluated, with or without the gradient.
	Evaluations int
}

// PowerRecord summarises the counted sweeps at one power; means are NaN if there are none yet.
type PowerRecord struct {
	Power         float64
	Acceptance    float64 // mean, of the kernel's moves; NaN for the prior, from which new draws are made
	StepSize      float64 // 0 for kernels that are not Tunable, and for the prior
	Exchanged     float64 // mean probability of an exchange with the next power; NaN for the last
	LogEvidence   float64 // log of the ratio of normalising constants, next power over this one; NaN for the last
	LogLikelihood float64 // mean
}
