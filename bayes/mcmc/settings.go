package mcmc

import (
	"encoding/json"
	"fmt"
	"math"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
)

// NoWarmUp, as the value of Chains.WarmUp, means no warm-up.
const NoWarmUp = -1

// Chains are Markov chains of any kernel, as a method of package fit: they sample all parameters of a model given all
// rows, a log-density of your own (fit.Sample), or the stochastic parameters of a trained posterior (fit.From). The
// zero value of every field works.
//
// After the warm-up each chain begins a transition as soon as the one before is complete, and keeps exactly the first
// Draws of its draws. If all chains stopped at one time instead, there would be more draws of chains with short
// trajectories, and so a bias.
//
// With XLA a call makes up to 64 moves after the warm-up, as many as take some ten milliseconds, and in the warm-up
// those of a transition, since a call takes longer than a short move. The draws do not depend on it, nor do the draws
// that Observe and fit.Now see. Draws are observed each time that all chains have ObserveEvery more of them, by
// default a tenth of Draws. The scores of Progress are the "acceptance", which is the last transition's in the warm-up
// and then the mean, the "step size" and the "divergences", as far as the kernel has them.
//
// The particles of the result are the draws of all chains, chain after chain, of equal weight: as many of each as all
// chains have made. Its details are a *Details, its warnings say if the chains disagree: on predictions (diag.Mixing),
// and of a density of your own on coordinates, of which some 250 are looked at (diag.Agreement). The error of chains
// that do not move wraps ErrStuck.
//
// With several devices (run.Settings.Devices), a Target of your own that evaluates the chains in blocks must divide
// them such that no block is on two devices, as density.NewProblem does if it is given their number: otherwise each
// block is computed by one device while the others wait.
type Chains struct {
	Kernel Kernel // default NUTS{}
	Chains int    // J; default 4
	Draws  int    // kept for each chain; default 1000
	Thin   int    // keep each Thin-th transition; default 1

	// WarmUp is the number of transitions of each chain before the draws; they are discarded. Default 1000; NoWarmUp:
	// none. For a Tunable kernel whose own step size is 0 the warm-up chooses the scales of the coordinates, roughly the
	// target's standard deviations, and one step size for all chains, in units of these scales.
	WarmUp int
	// FixedScale makes the warm-up choose the step size only, not the scales.
	FixedScale bool
	// Tuned are the step size and scales at which a warm-up that chooses them begins; without such a warm-up the draws
	// are made with them. They may be the Tuned of another Details. Default: the kernel's own step size, and scales of 1.
	Tuned Tuned
}

var (
	_ fit.Taker = Chains{}
)

// Takes implements fit.Taker.
func (Chains) Takes() fit.Takes { return fit.Takes{Density: true, Trained: true} }

// Title implements fit.Method.
func (c Chains) Title() string { return fmt.Sprintf("Markov chains of %T", c.Kernel) }

// MarshalJSON writes the settings, with the kernel's type.
func (c Chains) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", c.Kernel), "settings": c.Kernel, "chains": c.Chains, "draws": c.Draws, "thin": c.Thin,
		"warm_up": c.WarmUp, "fixed_scale": c.FixedScale, "tuned": c.Tuned,
	})
}

// Tuned are a step size and the scales of the coordinates, as a warm-up has chosen them.
type Tuned struct {
	StepSize float64   `json:"step_size"` // in units of the scales; 0: not set
	Scale    []float64 `json:"scale"`     // [D], of the coordinates; empty: 1
}

// Prepare implements fit.Method.
func (c Chains) Prepare(j *fit.Job) (fit.Method, error) {
	if c.Kernel == nil {
		c.Kernel = NUTS{}
	}
	dim := j.Dim()
	if err := limits.Fill("mcmc: Chains",
		limits.Int("Chains", &c.Chains, 4).From(1),
		limits.Int("Draws", &c.Draws, 1000).From(1),
		limits.Int("Thin", &c.Thin, 1).From(1),
		limits.Int("WarmUp", &c.WarmUp, 1000).From(0).Or(NoWarmUp, "mcmc.NoWarmUp"),
		limits.Float("Tuned.StepSize", &c.Tuned.StepSize).Zero("the kernel's own").Positive(),
		limits.Field("Tuned.Scale", fmt.Sprintf("of length %d", len(c.Tuned.Scale)),
			len(c.Tuned.Scale) == 0 || len(c.Tuned.Scale) == dim, fmt.Sprintf("empty or of length D, %d", dim)),
	); err != nil {
		return nil, err
	}
	if err := limits.Check("mcmc: Chains", limits.Numbers("Draws", c.Draws, c.Chains, c.Draws, dim)); err != nil {
		return nil, err
	}
	for i, v := range c.Tuned.Scale {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("mcmc: Chains.Tuned.Scale[%d] is %v: it must be positive and finite", i, v)
		}
	}
	if err := Check(c.Kernel, dim, c.WarmUp > 0 || c.Tuned.StepSize > 0); err != nil {
		return nil, err
	}
	if c.Kernel.Traits().NoTarget {
		return nil, fmt.Errorf("mcmc: %T does not ask its target, so its draws would know nothing of the problem: "+
			"use a kernel that does, such as mcmc.NUTS{} or mcmc.RandomWalkMetropolis{}", c.Kernel)
	}
	return c, j.OnDevices("Chains.Chains", c.Chains)
}

// problemOf is what chains sample for a job; where it continues a trained posterior they begin at its particles.
func problemOf(j *fit.Job, chains int, kernel Kernel) (density.Problem, error) {
	problem, err := j.Density(chains)
	if err != nil {
		return problem, err
	}
	start, err := j.Starts(chains)
	if err != nil {
		return problem, err
	}
	if start != nil {
		problem.Start = start
	}
	return problem, checkProblem(problem, kernel)
}

// checkProblem is an error for a problem that the kernel cannot sample.
func checkProblem(p density.Problem, kernel Kernel) error {
	if err := checkClimb(p.Climb); err != nil {
		return err
	}
	if p.Inputs != nil && p.HostInputs != nil {
		return fmt.Errorf("mcmc: Problem has Inputs and HostInputs: set one of them")
	}
	if (p.Inputs != nil || p.HostInputs != nil) && kernel.Traits().Carries != CarriesNothing {
		return fmt.Errorf("mcmc: the target takes new inputs at each move, but %T carries the log-density of the move "+
			"before: use a kernel for noisy gradients, such as mcmc.SGLD or mcmc.SGHMC", kernel)
	}
	return nil
}
