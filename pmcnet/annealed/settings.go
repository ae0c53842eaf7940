package annealed

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/smc"
)

// Annealed is importance sampling from a mixture that is fitted to the particles of tempered sequential Monte Carlo.
// The zero value of every field works. Its steps are
//
//  1. SMC: a tempered SMC sampler (package smc) moves particles from the prior to the posterior, and estimates the
//     evidence with a standard error;
//  2. order: each particle is put into canonical order (hidden units sorted, signs of tanh units flipped), so that the
//     mixture has to fit one of the posterior's |G| identical images, not all (see the package comment);
//  3. fit: a mixture q of Student-t distributions is fitted to the particles, with one wide component for regions that
//     the particles have missed; if the particles are too few for a covariance there is none;
//  4. weighting: new draws of q get the weights w = pi(theta) / q(theta) in canonical order, 0 otherwise. The evidence
//     is |G| times the mean of w; the weights of the result are Pareto-smoothed;
//  5. bridge: if these weights cannot be trusted, or contradict the SMC, a second SMC sampler moves particles from q to
//     the posterior through q^(1-power) pi^power. In many dimensions weights degenerate if q is wrong by some
//     hundredths of its scale in each coordinate; the bridge is then short, and ends at the exact posterior;
//  6. choice: the result is one of the three estimates, by the rule in the package comment. The result's *Details say
//     which, and what each estimator gives.
//
// The SMC and the bridge have checkpoints of their own, whose names end in ".smc" and ".bridge"; the steps between them
// are repeated. Observe is called once, at the end, with step 1. A run that is cancelled, or whose ladder of powers
// stalls (see smc.Tempered), has no result but the error.
//
// The SMC moves particles until their correlation with their starting points is small (see smc.Tempered.Moves). It is
// waste-free only if SMC.WasteFree is set: waste-free chains have a fixed length, and if they do not mix within it, as
// on many networks, neither the posterior nor the error of the evidence can be estimated from them.
//
// Given the mixture, the weighted draws and their evidence do not depend on the moves of the SMC. But all three
// estimates miss a part of the posterior that no particle of the first SMC has found and the mixture does not cover.
//
// It needs a target with separate prior and likelihood (smc.Factored), as those of fit.Fit are. Most of the cost is the
// first SMC's. The rest is Draws evaluations, J M D^2 multiplications for each iteration of the fit of M components to
// J particles, and the bridge, if it is run, which can take several times the SMC's evaluations.
type Annealed struct {
	// SMC is the sampler of step 1; default smc.Tempered{Particles: 2000}. The bridge's is the
	// same, without the Ladder.
	SMC smc.Tempered

	// Components is the number of Student-t components, without the wide one. At most one for each particle. Default 0: 1,
	// 2, 4, 8 and 16 are tried in turn, while the log-density at a fifth of the particles, held out from the fit,
	// increases.
	Components int
	Draws      int // number of draws of the mixture, N; default 5000
	// Bridge says when step 5 is run; default "if needed".
	Bridge Bridging
}

var _ fit.Taker = Annealed{}

// Takes implements fit.Taker.
func (Annealed) Takes() fit.Takes { return fit.Takes{Density: true} }

// Bridging says when Annealed runs the bridge, its second SMC sampler, from the fitted mixture to the posterior. The
// default, "if needed", runs it in three cases: no weighted draws can be trusted; k-hat plus its standard error is
// above .5; or the weighted draws and the first SMC disagree on the log evidence by more than three standard errors.
type Bridging string

// When the bridge is run.
const (
	bridgeIfNeeded Bridging = "if needed"
	BridgeAlways   Bridging = "always"
	NoBridge       Bridging = "never"
)

// The mixture: the wide component's share of the draws, its degrees of freedom, and by how much it is wider than all
// particles; and the most components that are tried.
const (
	wideShare      = 0.1
	wideDoF        = 4
	inflation      = 1.2
	mostComponents = 16
)

// Title implements fit.Method.
func (Annealed) Title() string {
	return "importance sampling from a mixture fitted to the particles of tempered sequential Monte Carlo"
}

// Prepare implements fit.Method.
func (a Annealed) Prepare(j *fit.Job) (fit.Method, error) {
	if err := limits.Fill("annealed: Annealed",
		limits.Int("SMC.Particles", &a.SMC.Particles, 2000),
	); err != nil {
		return nil, err
	}
	sampler, err := a.SMC.Prepare(j)
	if err != nil {
		return nil, fmt.Errorf("annealed: Annealed.SMC: %w", err)
	}
	a.SMC = sampler.(smc.Tempered)
	if err := limits.Fill("annealed: Annealed",
		limits.Int("Components", &a.Components).Zero("chosen").Between(1, a.SMC.Particles).Because(
			"the number of SMC.Particles that they are fitted to"),
		limits.Int("Draws", &a.Draws, 5000).From(100),
		limits.Choice("Bridge", &a.Bridge, bridgeIfNeeded, bridgeIfNeeded, BridgeAlways, NoBridge),
	); err != nil {
		return nil, err
	}
	if err := limits.Check("annealed: Annealed", limits.Numbers("Draws", a.Draws, a.Draws, j.Dim())); err != nil {
		return nil, err
	}
	return a, nil
}

// checkProblem is an error for a problem that is not begun at draws from the prior, or whose target does not know prior
// and likelihood apart.
func checkProblem(p density.Problem, engine *compute.Engine) error {
	if err := limits.Check("annealed: Problem",
		limits.Field("Initial", "nil", p.Initial != nil,
			"a function that draws from the prior, of which it begins; pmcnet.PMC{} can begin at Problem.Start"),
		limits.Field("Start", "set", p.Start == nil,
			"nil: Annealed begins at draws from the prior, by Problem.Initial; take pmcnet.PMC{} to begin at Problem.Start"),
	); err != nil {
		return err
	}
	if err := p.Look(engine, func(target density.Target) {
		if _, ok := target.(smc.Factored); !ok {
			panic(fmt.Errorf("Problem.Target gives a %T, of which prior and likelihood are not known apart: Annealed tempers "+
				"the likelihood; give the target as an smc.Posterior, or take pmcnet.PMC{}", target))
		}
	}); err != nil {
		return fmt.Errorf("annealed: %w", err)
	}
	return nil
}
