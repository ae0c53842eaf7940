package mcmc

import (
	"cmp"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"

	. "github.com/gomlx/gomlx/core/graph"
)

// The kernels of this file propose without a gradient and accept or reject.
var _ Tunable = RandomWalkMetropolis{}

// RandomWalkMetropolis proposes phi + StepSize z, z standard normal, and accepts with probability min(1,
// p(phi')/p(phi)) (Metropolis et al. 1953), each particle for itself. It leaves the target invariant. A proposal whose
// log-density is not finite is rejected and counted. A move costs one evaluation of the log-density.
type RandomWalkMetropolis struct {
	StepSize float64 `json:"step_size"` // standard deviation of the proposal in every coordinate; 0: a warm-up chooses
}

// Traits implements Kernel.
func (k RandomWalkMetropolis) Traits() Traits {
	return Traits{Carries: CarriesLogDensity, Exact: true, Reversible: true}
}

// Check implements Kernel.
func (k RandomWalkMetropolis) Check(int) error {
	return checkStep("RandomWalkMetropolis", k.StepSize)
}

// Tune implements Tunable: 0.234 is best in many dimensions (Roberts, Gelman and Gilks 1997).
func (k RandomWalkMetropolis) Tune() (stepSize, acceptance float64) { return k.StepSize, 0.234 }

// Move implements Kernel.
func (k RandomWalkMetropolis) Move(rng random.Stream, s State, target density.Target, tuning Tuning) (State, Info) {
	step := Mul(tuning.Scaled(normal(rng.Named("proposal"), s.Phi)), tuning.Step(s.Phi, k.StepSize))
	proposal := State{Phi: Add(s.Phi, step)}
	proposal.LogDensity = logDensityOf(target, proposal.Phi)
	return MetropolisHastings(rng, s, proposal, Sub(proposal.LogDensity, s.LogDensity))
}

// PreconditionedCrankNicolson proposes sqrt(1 - b^2) phi + b s z, which by itself leaves the normal distribution N(0,
// s^2) invariant, and accepts by the ratio of the target's density to that distribution's (Cotter,
// Roberts, Stuart and White 2013, section 4.2). It leaves the target invariant. If the distribution is the prior,
// acceptance depends on the likelihood alone and does not fall with the dimension D. A move costs one evaluation of the
// log-density.
type PreconditionedCrankNicolson struct {
	Beta   float64   `json:"beta"`              // b, above 0 and at most 1; default 0.1
	StdDev []float64 `json:"std_dev,omitempty"` // s, [D]; empty: 1
}

// Traits implements Kernel.
func (k PreconditionedCrankNicolson) Traits() Traits {
	return Traits{Carries: CarriesLogDensity, Exact: true, Reversible: true}
}

// Check implements Kernel.
func (k PreconditionedCrankNicolson) Check(d int) error {
	const kernel = "PreconditionedCrankNicolson"
	if err := limits.Fill("mcmc: "+kernel, limits.Float("Beta", &k.Beta, 0.1).Above(0).To(1)); err != nil {
		return err
	}
	return checkNormal(kernel, nil, k.StdDev, d)
}

// Move implements Kernel.
func (k PreconditionedCrankNicolson) Move(rng random.Stream, s State, target density.Target, _ Tuning) (State, Info) {
	beta := cmp.Or(k.Beta, 0.1)
	proposal := State{Phi: pull(rng.Named("proposal"), s.Phi, math.Sqrt(1-beta*beta), beta, nil, k.StdDev)}
	proposal.LogDensity = logDensityOf(target, proposal.Phi)
	onReference := k.logReferenceRatio(s.Phi, proposal.Phi)
	return MetropolisHastings(rng, s, proposal, Sub(Sub(proposal.LogDensity, s.LogDensity), onReference))
}

// logReferenceRatio is log N(to; 0, s^2) - log N(from; 0, s^2), [J], of one sum, of (z' - z)(z' + z).
func (k PreconditionedCrankNicolson) logReferenceRatio(from, to *Node) *Node {
	step, sum := Sub(to, from), Add(to, from)
	if len(k.StdDev) > 0 {
		variance := make([]float64, len(k.StdDev))
		for i, s := range k.StdDev {
			variance[i] = s * s
		}
		sum = Div(sum, row(from, variance))
	}
	return MulScalar(compute.RowSums(Mul(step, sum)), -0.5)
}
