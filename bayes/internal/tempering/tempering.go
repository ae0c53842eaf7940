// Package tempering holds what samplers share that lead particles from a prior to a posterior through powers of the
// likelihood, such as packages smc and exchange: the checks of kernels and ladders, the step sizes and lengths of
// trajectories, and the scouts, which look for modes that were lost on the way.
package tempering

import (
	"fmt"

	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// CheckKernel returns an error for a kernel that does not leave its target invariant. Errors begin with the owner.
func CheckKernel(owner string, kernel mcmc.Kernel, dim int) error {
	if err := mcmc.Check(kernel, dim, true); err != nil {
		return fmt.Errorf("%s: %w", owner, err)
	}
	if !kernel.Traits().Exact {
		return fmt.Errorf(
			"%s: %T leaves no target invariant, or does not say so (mcmc.Traits): take a kernel that accepts or "+
				"rejects, such as mcmc.HMC", owner, kernel)
	}
	return nil
}

// CheckProblem returns an error for a problem without a prior to draw from, or whose target changes from move to move.
func CheckProblem(owner string, p density.Problem) error {
	return limits.Check(owner+": Problem",
		limits.Field("Initial", "nil", p.Initial != nil || p.Start != nil,
			"a function that draws from the prior, whose density is the target's LogPrior, unless Start has such draws"),
		limits.Field("Inputs", "set", p.Inputs == nil && p.HostInputs == nil,
			"nil, as HostInputs: the target must be the same at every move"),
	)
}

// CheckLadder returns an error if the powers of a field do not ascend from above 0 to 1.
func CheckLadder(field string, ladder []float64) error {
	before := 0.
	for i, power := range ladder {
		if !(power > before && power <= 1) || i == len(ladder)-1 && power != 1 {
			return fmt.Errorf("%s[%d] is %v: powers ascend from above 0, and the last is 1", field, i, power)
		}
		before = power
	}
	return nil
}

// Adapts says whether a kernel leaves its step size to the sampler, and at what mean acceptance the sampler then aims.
func Adapts(kernel mcmc.Kernel) (acceptance float64, ok bool) {
	k, ok := kernel.(mcmc.Tunable)
	if !ok {
		return 0, false
	}
	own, acceptance := k.Tune()
	return acceptance, own == 0
}

// Steers says whether a kernel leaves the length of its trajectories to the sampler.
func Steers(kernel mcmc.Kernel) bool {
	k, ok := kernel.(mcmc.Steered)
	return ok && k.Length() == 0
}

// What makes a result doubtful.
const (
	LowAcceptance = 0.05 // of the moves at a temperature
	ManyRejected  = 0.1  // share of proposals that are not finite
)
