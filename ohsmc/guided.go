package ohsmc

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/smc"
	"gobnn/bayes/train"

	. "github.com/gomlx/gomlx/core/graph"
)

// Guided is Algorithm 3 of Millard et al. 2025: open-horizon SMC with moves that may use the gradient, such as Langevin
// steps toward the posterior given the current batch. Step t draws phi_t from a proposal q(. | phi_t-1). It accepts all
// moves, and corrects the weights by a backward kernel L,
//
//	w_t = w_t-1  pi_t(phi_t; psi_t-1) / pi_t-1(phi_t-1; psi_t-2)  L(phi_t-1 | phi_t) / q(phi_t | phi_t-1)     (eq. 13)
//
// where pi_t(phi; psi) = p(phi) p(y_S | phi; psi) is the unnormalised posterior given batch S = S_t alone. With all
// rows in one batch and psi fixed the target is the same in all steps, and the weighted particles are exact for it.
// With mini-batches the target is wider than the posterior given all rows, and changes from step to step: watch
// the ESS of each step (particles.StepRecord).
//
// The first weighing, of particles from the prior, leaves copies of a few of them where the data say much. Until the
// moves have taken these apart the particles are far from the posterior, and ESS, which sees weights only, does not
// show it. Take a conjugate regression of 30 rows with 2000 particles: 200 steps of Langevin of the default StepSize
// gave an ESS of 1999, and means off by .5 posterior standard deviations (root mean square of 20 runs). With steps of
// .03 the means were as exact as ESS says. MeanGradient of a step shows the error where it can be known, and the
// result warns: in 18 of the first 20 runs, and in none of the others. RandomWalk has no gradient, and so no such test:
// with the default steps its means were off by .3, with an ESS of 1314.
type Guided struct {
	particles.Training // default Resampler smc.Multinomial, Threshold 0.5, as in the paper
	// Proposal is q and L: RandomWalk, Langevin or HMC; default RandomWalk{}, whose steps are the cheapest. The paper
	// reports lower losses for Langevin if the first layer is stochastic. Longer moves, as Adapt may make them, leave the
	// weight to fewer particles.
	Proposal Proposal
	// StepSize is h at each step; default constant 0.01. With Adapt, adaptation begins at its first value.
	StepSize train.Schedule
	// Adapt is the mean acceptance at which the step size aims, between 0 and 1; default 0: no adaptation. Moves are
	// never rejected: the acceptance is the probability a move would have by the Metropolis-Hastings rule, averaged over
	// the weighted particles. Customary are 0.234 for a random walk, 0.574 for Langevin, 0.65 for HMC.
	//
	// With a = Adapt, log h <- log h + gain_t (acceptance - a), by at most 1 a step, with gain_t = max(t^-0.6, 0.02) / (a
	// (1 - a)) (Andrieu and Thoms 2008, section 4.2.2; Garthwaite, Fan and Sisson 2016 for the factor 1/(a (1 - a))). The
	// gain does not go to 0, since psi keeps changing the target. Where all moves of a step diverge the run ends:
	// begin with a smaller StepSize. Adaptation costs RandomWalk one more evaluation.
	Adapt float64
	// AllRows targets the posterior given all rows as the batch estimates it, p(phi) p(y_S | phi; psi)^(N/M). Of small
	// batches most of the weight then goes to a few particles. (On cars, diabetes and epa of the practice tables the
	// NLPD was higher by .03 to .07, on credit and hpc lower by .01 and .03; on four of six all particles became copies
	// of one within 30 steps.) The gradient for psi has the factor N/M in any case.
	AllRows bool
}

var (
	_ fit.Method        = Guided{}
	_ particles.Doubter = Guided{}
)

// Title implements fit.Method.
func (a Guided) Title() string { return "guided open-horizon SMC (Millard et al. 2025, Algorithm 3)" }

// MarshalJSON names the proposal's type.
func (a Guided) MarshalJSON() ([]byte, error) {
	return written(a.Training, map[string]any{
		"proposal": typeAnd(a.Proposal), "step_size": a.StepSize, "adapt": a.Adapt, "per_batch": !a.AllRows,
	})
}

// Run implements fit.Method.
func (a Guided) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, a.Training, a)
}

// Prepare implements fit.Method: by default resampling is the paper's, multinomial when the effective sample size is
// at most J/2.
func (a Guided) Prepare(j *fit.Job) (fit.Method, error) {
	if a.Proposal == nil {
		a.Proposal = RandomWalk{}
	}
	if err := a.Proposal.Check(); err != nil {
		return nil, err
	}
	if h := a.StepSize.At(0); !(h > 0) || math.IsInf(h, 0) || !(a.StepSize.Decay >= 0) || a.StepSize.Every < 0 {
		return nil, fmt.Errorf("ohsmc: Guided.StepSize is %+v: rate and decay must be positive and finite "+
			"(0: the defaults, 0.01 and constant)", a.StepSize)
	}
	if err := limits.Fill("ohsmc: Guided",
		limits.Float("Adapt", &a.Adapt).Zero("no adaptation").Inside(0, 1).Because("a mean acceptance"),
	); err != nil {
		return nil, err
	}
	var err error
	if a.Training, err = a.Training.Prepared(j, 0.5, smc.Multinomial); err != nil {
		return nil, err
	}
	return a, a.tryProposal(j.Bound.D)
}

// Compile implements particles.Algorithm.
func (a Guided) Compile(c *particles.Core) (particles.Stepper, error) {
	g := &guided{Guided: a, Core: c, posterior: c.Target}
	if !a.AllRows {
		g.posterior = density.Full(c.Target.Likelihood)
	}
	return particles.NewStepper(c, particles.Graphs{
		Start: g.begin, Step: g.step, PerParticle: []string{logDensityName}, Common: []string{logStepName},
		Inputs: func(step int) []float64 { return []float64{a.StepSize.At(step)} },
	})
}

// The entries of State.Auxiliary.
const (
	logDensityName = "log_density" // [J]: log pi_t-1(phi_t-1; psi_t-2)
	logStepName    = "log_step"    // scalar: log of the adapted step size
)

// guided is Guided bound to a model and data.
type guided struct {
	Guided
	*particles.Core
	posterior density.Posterior
}

// begin weighs particles from the prior by the first batch, w_0 = pi(phi_0; psi_0)/p(phi_0) (eq. 14).
func (a *guided) begin(s particles.State, batch density.Batch, _ random.Stream) (particles.State, *Node) {
	logLik := Mul(a.Target.LogLikelihood(s.Phi, s.Psi, batch), a.posterior.Scale(batch))
	logWeights, logSum := smc.Normalise(logLik)
	s.LogWeights = logWeights
	s.Auxiliary = map[string]*Node{
		logDensityName: Add(a.Bound.LogPrior(s.Phi), logLik),
		logStepName:    Scalar(s.Phi.Graph(), s.Phi.DType(), math.Log(a.StepSize.At(0))),
	}
	return s, logSum
}

// step is one iteration of Algorithm 3.
func (a *guided) step(
	s particles.State, batch density.Batch, now particles.Now,
) (particles.State, particles.StepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.Resample(s.LogWeights, now.RNG.Named("resample"))
	phi, before := smc.Select(s.Phi, ancestors), smc.Select(s.Auxiliary[logDensityName], ancestors)

	// Propagate, phi_t ~ q(. | phi_t-1; psi_t-1), toward the current batch.
	current := density.At(a.posterior, s.Psi, batch)
	stepSize := now.Inputs[0]
	if a.Adapt > 0 {
		stepSize = Exp(s.Auxiliary[logStepName])
	}
	from, proposed, alive := a.propagate(now.RNG.Named("propose"), phi, logWeights, current, stepSize)

	// Weigh by eq. 13, and normalise.
	weighed, logDensity := a.weigh(s.Psi, alive, before, proposed, batch)
	next := s
	next.Auxiliary = map[string]*Node{logDensityName: logDensity, logStepName: s.Auxiliary[logStepName]}
	// Particles of weight 0 stay where they were, so that all coordinates remain finite.
	weighs := BroadcastToDims(ExpandAxes(IsFinite(weighed.LogWeights), 1), phi.Shape().Dimensions...)
	next.Phi = Where(weighs, proposed.Phi, phi)
	next.LogWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	next, rejected := a.Learn(next, weighed.Gradient, batch, now)

	t := particles.StepInfo{
		LogEvidence:     weighed.LogSum,
		Loss:            perRow(ReduceAllSum(Mul(Exp(next.LogWeights), compute.Finite(weighed.LogLikelihood))), batch),
		ESS:             smc.EffectiveSampleSize(next.LogWeights),
		UniqueAncestors: smc.UniqueAncestors(ancestors, phi.DType()), Resampled: resampled,
		NonFinite: nonFinite(weighed.LogWeights), GradientRejected: rejected, StepSize: stepSize,
	}
	// With another batch, or another psi, the mean under the particles' target, the one of the step before, is not 0.
	if from.Gradient != nil && a.Bound.W == 0 && a.Core.BatchSize == a.Target.Rows {
		t.MeanGradient = meanGradient(from.Gradient, s.LogWeights, logWeights, resampled)
	}
	if a.Adapt > 0 {
		// The Metropolis-Hastings ratio has the current target at both ends, pi_t(phi_t) / pi_t(phi_t-1), where the
		// increment of the log-weight has pi_t-1 at phi_t-1: add log pi_t-1 and subtract log pi_t there.
		logRatio := Sub(Add(Sub(weighed.LogWeights, logWeights), before), from.LogDensity)
		logRatio = compute.Only(Not(IsNaN(logRatio)), logRatio)
		probability := Exp(MinScalar(logRatio, 0))
		t.Acceptance = ReduceAllSum(Mul(Exp(logWeights), probability))
		gain := MulScalar(MaxScalar(Exp(MulScalar(Log(now.Number), -0.6)), 0.02), 1/(a.Adapt*(1-a.Adapt)))
		change := ClipScalar(Mul(gain, AddScalar(t.Acceptance, -a.Adapt)), -1, 1)
		next.Auxiliary[logStepName] = Add(s.Auxiliary[logStepName], change)
	}
	return next, t
}

// meanGradient is that of a record, for gradients of the log-density, [J, D], at the particles that a step
// begins with. before has the log-weights before resampling, [J], and gives the effective sample size of the particles.
// Resampling adds the error of J draws.
func meanGradient(gradient, before, after, resampled *Node) *Node {
	w := ExpandAxes(Exp(after), 1)
	mean, square := ReduceSum(Mul(w, gradient), 0), ReduceSum(Mul(w, Square(gradient)), 0)
	drawn := DivScalar(ConvertDType(resampled, after.DType()), float64(after.Shape().Dim(0)))
	variance := Add(Reciprocal(smc.EffectiveSampleSize(before)), drawn)
	return Sqrt(ReduceAllMean(Div(Square(mean), Mul(square, variance))))
}

// propagate proposes particles, [J, D]. It returns the start with what was evaluated there, and the log-weights, [J],
// which are -Inf for particles that have met a gradient that is not finite.
func (a *guided) propagate(
	rng random.Stream, phi, logWeights *Node, current density.Target, stepSize *Node,
) (from mcmc.State, proposed Proposed, alive *Node) {
	from, alive = mcmc.State{Phi: phi}, logWeights
	switch {
	case a.Proposal.NeedsGradient():
		from.LogDensity, from.Gradient = current.Gradient(phi)
		usable := LogicalAll(IsFinite(from.Gradient), 1)
		rows := BroadcastToDims(ExpandAxes(usable, 1), phi.Shape().Dimensions...)
		from.Gradient = Where(rows, from.Gradient, ZerosLike(from.Gradient))
		alive = compute.Only(usable, alive)
	case a.Adapt > 0:
		from.LogDensity = current.LogDensity(phi)
	}
	proposed = a.Proposal.Propose(rng, from, current, stepSize)
	if proposed.Lost != nil {
		alive = compute.Only(Not(proposed.Lost), alive)
	}
	return from, proposed, alive
}

// weigh computes the proposed particles' weights, the gradient with respect to psi under these, and log pi_t(phi_t;
// psi_t-1), [J].
func (a *guided) weigh(psi, logWeights, before *Node, proposed Proposed, batch density.Batch) (density.Reweighted,
	*Node) {
	prior := a.Bound.LogPrior(proposed.Phi)
	power := a.posterior.Scale(batch)
	weighing := density.Potential{Gradient: proposed.NeedsGradient}
	var ofPrior *Node
	if proposed.NeedsGradient {
		ofPrior = Gradient(ReduceAllSum(prior), proposed.Phi)[0]
	}
	weighing.Factor = func(e density.Evaluated) *Node {
		density := Add(e.Of(prior), Mul(e.LogLikelihood, power))
		factor := Sub(density, e.Of(before))
		if proposed.LogRatio == nil {
			return factor
		}
		var gradient *Node
		if proposed.NeedsGradient {
			gradient = Add(e.Of(ofPrior), Mul(e.Gradient, power))
		}
		ratio := proposed.LogRatio(e, gradient)
		if !ratio.Shape().Equal(factor.Shape()) {
			panic(fmt.Errorf("LogRatio of %T is %s for particles of shape %s: it must be one number for each of these, %s (of "+
				"values of all particles take those of the ones that are evaluated, of.Of(values))", a.Proposal, ratio.Shape(),
				e.Of(proposed.Phi).Shape(), factor.Shape()))
		}
		return Add(factor, ratio)
	}
	weighed := a.Target.Reweight(proposed.Phi, psi, logWeights, batch, weighing)
	return weighed, Add(prior, Mul(weighed.LogLikelihood, power))
}
