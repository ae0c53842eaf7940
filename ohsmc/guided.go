package ohsmc

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
)

// Guided is Algorithm 3 of Millard et al. 2025: open-horizon SMC whose particles move toward the current batch's
// posterior, and are weighed against a backward kernel L instead of being accepted or rejected,
//
//	w_t = w_t-1  pi_t(phi_t; psi_t-1) / pi_t-1(phi_t-1; psi_t-2)  L(phi_t-1 | phi_t) / q(phi_t | phi_t-1)     (eq. 13)
//
// where pi_t(phi; psi) = p(phi) p(y_S | phi; psi)^(N/M) is the posterior estimated from the batch S_t. With one batch
// of all rows and psi fixed the target is constant, and the weighted particles are exact for it; with mini-batches it
// changes from step to step, and few particles keep their weight.
type Guided struct {
	// Proposal is q and L: RandomWalk, Langevin or HMC; default RandomWalk{}, whose steps are the cheapest. The paper
	// reports lower losses for Langevin if the first layer is stochastic; BenchmarkEqualSeconds compares the proposals on
	// the networks of its Table 8. With moves that go further, by adapted step sizes or preconditioning, fewer particles
	// keep their weight.
	Proposal Proposal
	// StepSize is h at each step; default constant 0.01. With Adapt, adaptation begins at its first value.
	StepSize optim.Schedule
	// Adapt, if above 0, adapts the step size to a mean acceptance a = Adapt that the moves would have if they were
	// accepted by the Metropolis-Hastings rule: log h <- log h + gain_t (acceptance - a), by at most 1 a step, with
	// gain_t = max(t^-0.6, 0.02) / (a (1 - a)) (Andrieu and Thoms 2008, section 4.2.2, and Garthwaite, Fan and Sisson
	// 2016 for the factor; the gain does not vanish, since psi keeps moving). Customary are 0.234 for a random walk,
	// 0.574 for Langevin, 0.65 for HMC. A step after which all weights are 0, as when all trajectories diverge, is
	// repeated with a step size smaller by the factor e. Adaptation costs RandomWalk one more evaluation.
	Adapt float64
	// Precondition takes step sizes in units of the weighted particles' standard deviation, coordinate by coordinate.
	Precondition bool
	// PerBatch targets the posterior given the batch alone, p(phi) p(y_S | phi; psi): wider, so that more particles
	// keep their weight.
	PerBatch bool
}

var (
	_ Described  = Guided{}
	_ Resampling = Guided{}
)

// Title implements Algorithm.
func (a Guided) Title() string { return "guided open-horizon SMC (Millard et al. 2025, Algorithm 3)" }

// Resampling implements Resampling: the paper's.
func (a Guided) Resampling() (float64, smc.Resampler) { return 0.5, smc.Multinomial }

// Describe implements Described: it names the proposal's type.
func (a Guided) Describe() any {
	return map[string]any{
		"proposal": typeAnd(a.Proposal), "step_size": a.StepSize, "adapt": a.Adapt, "precondition": a.Precondition,
		"per_batch": a.PerBatch,
	}
}

// Prepare implements Algorithm.
func (a Guided) Prepare(model *bayes.BoundModel) (Algorithm, error) {
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
	if !(a.Adapt >= 0 && a.Adapt < 1) {
		return nil, fmt.Errorf("ohsmc: Guided.Adapt is %v: it must be a mean acceptance between 0 and 1 (0: no adaptation)",
			a.Adapt)
	}
	return a, a.tryProposal(model.D)
}

// Compile implements Algorithm.
func (a Guided) Compile(c *Core) (Stepper, error) {
	g := &guided{Guided: a, Core: c, posterior: c.Target}
	if a.PerBatch {
		g.posterior = target.Full{Likelihood: c.Target.Likelihood}
	}
	var err error
	g.Stepper, err = NewStepper(c, Graphs{
		Start: g.begin, Step: g.step, PerParticle: []string{logDensityName}, Common: []string{logStepName},
		Inputs: func(step int) []float64 { return []float64{a.StepSize.At(step)} },
	})
	return g, err
}

// The entries of State.Auxiliary.
const (
	logDensityName = "log_density" // [J]: log pi_t-1(phi_t-1; psi_t-2)
	logStepName    = "log_step"    // scalar: log of the adapted step size
)

// guided is Guided bound to a model and data.
type guided struct {
	Guided
	*Core
	Stepper
	posterior target.Target
}

// begin weighs particles from the prior by the first batch, w_0 = pi(phi_0; psi_0)/p(phi_0) (eq. 14).
func (a *guided) begin(s State, batch target.Batch, _ random.Stream) (State, *Node) {
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
func (a *guided) step(s State, batch target.Batch, now Now) (State, StepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.Resample(s.LogWeights, now.RNG.Named("resample"))
	phi, before := smc.Select(s.Phi, ancestors), smc.Select(s.Auxiliary[logDensityName], ancestors)

	// Propagate, phi_t ~ q(. | phi_t-1; psi_t-1), toward the current batch.
	current := target.At(a.posterior, s.Psi, batch)
	stepSize := now.Inputs[0]
	if a.Adapt > 0 {
		stepSize = Exp(s.Auxiliary[logStepName])
	}
	from, proposed, alive := a.propagate(now.RNG.Named("propose"), phi, logWeights, current, stepSize, a.scale(s))

	// Weigh by eq. 13, and normalise.
	weighed, logDensity := a.weigh(s.Psi, alive, before, proposed, batch)
	next := s
	next.Auxiliary = map[string]*Node{logDensityName: logDensity, logStepName: s.Auxiliary[logStepName]}
	// Particles of weight 0 stay the same, so that all coordinates remain finite.
	weighs := BroadcastToDims(ExpandAxes(IsFinite(weighed.LogWeights), 1), phi.Shape().Dimensions...)
	next.Phi = Where(weighs, proposed.Phi, phi)
	next.LogWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	next, rejected := a.Learn(next, weighed.Gradient, batch, now)

	t := StepInfo{
		LogEvidence:     weighed.LogSum,
		Loss:            perRow(ReduceAllSum(Mul(Exp(next.LogWeights), compute.Finite(weighed.LogLikelihood))), batch),
		ESS:             smc.EffectiveSampleSize(next.LogWeights),
		UniqueAncestors: smc.UniqueAncestors(ancestors, phi.DType()), Resampled: resampled,
		NonFinite: nonFinite(weighed.LogWeights), GradientRejected: rejected, StepSize: stepSize,
	}
	if a.Adapt > 0 {
		// The increments without the change of target from step to step are the Metropolis-Hastings ratios.
		logRatio := Sub(Add(Sub(weighed.LogWeights, logWeights), before), from.LogDensity)
		probability := Exp(MinScalar(compute.Only(Not(IsNaN(logRatio)), logRatio), 0))
		t.Acceptance = ReduceAllSum(Mul(Exp(logWeights), probability))
		gain := MulScalar(MaxScalar(Exp(MulScalar(Log(now.Number), -0.6)), 0.02), 1/(a.Adapt*(1-a.Adapt)))
		change := ClipScalar(Mul(gain, AddScalar(t.Acceptance, -a.Adapt)), -1, 1)
		left := IsFinite(weighed.LogSum)
		next = keepIfDegenerate(left, next, s)
		next.Auxiliary[logStepName] = Add(s.Auxiliary[logStepName], Where(left, change, ConstAs(change, -1.0)))
	}
	return next, t
}

// propagate proposes particles, [J, D]. A particle with a gradient that is not finite has weight 0 from here on: alive
// are the log-weights of the others.
func (a *guided) propagate(
	rng random.Stream, phi, logWeights *Node, current mcmc.Target, stepSize, scale *Node,
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
	proposed = a.Proposal.Propose(rng, from, current, stepSize, scale)
	if proposed.Lost != nil {
		alive = compute.Only(Not(proposed.Lost), alive)
	}
	return from, proposed, alive
}

// keepIfDegenerate is the next state, or the one before if all weights are 0: adaptation then repeats the step with a
// smaller step size.
func keepIfDegenerate(left *Node, next, before State) State {
	keep := func(next, before *Node) *Node {
		if next == nil {
			return nil
		}
		return Where(BroadcastToDims(left, next.Shape().Dimensions...), next, before)
	}
	next.Phi, next.LogWeights = keep(next.Phi, before.Phi), keep(next.LogWeights, before.LogWeights)
	next.Auxiliary[logDensityName] = keep(next.Auxiliary[logDensityName], before.Auxiliary[logDensityName])
	next.Psi = keep(next.Psi, before.Psi)
	next.Moments.Mean = keep(next.Moments.Mean, before.Moments.Mean)
	next.Moments.Square = keep(next.Moments.Square, before.Moments.Square)
	return next
}

// weigh computes the proposed particles' weights, the gradient with respect to psi under these, and log pi_t(phi_t;
// psi_t-1), [J].
func (a *guided) weigh(psi, logWeights, before *Node, proposed Proposed, batch target.Batch) (target.Reweighted,
	*Node) {
	prior := a.Bound.LogPrior(proposed.Phi)
	power := a.posterior.Scale(batch)
	weighing := target.Potential{Gradient: proposed.NeedsGradient}
	var ofPrior *Node
	if proposed.NeedsGradient {
		ofPrior = Gradient(ReduceAllSum(prior), proposed.Phi)[0]
	}
	weighing.Factor = func(e target.Evaluated) *Node {
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

// scale is the unit of step sizes, [D]; nil: 1.
func (a *guided) scale(s State) *Node {
	if !a.Precondition {
		return nil
	}
	return smc.WeightedStdDev(s.Phi, s.LogWeights)
}

// maxTries is how often a step with adaptation is tried while all weights become 0, each time with a step size smaller
// by the factor e.
const maxTries = 30

// Advance implements Stepper.
func (a *guided) Advance(ctx context.Context, s *Session) (StepRecord, error) {
	for tries := 1; ; tries++ {
		record, err := a.Stepper.Advance(ctx, s)
		if err != nil || a.Adapt == 0 || !math.IsInf(record.LogEvidence, -1) || tries == maxTries {
			return record, err
		}
	}
}
