package ohsmc

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"
	"gobnn/bayes/target"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Guided is Algorithm 3 of Millard et al. 2025: open-horizon SMC whose particles move toward the current batch's posterior, and are weighed against
// a backward kernel L instead of being accepted or rejected,
//
//	w_t = w_t-1  pi_t(phi_t; psi_t-1) / pi_t-1(phi_t-1; psi_t-2)  L(phi_t-1 | phi_t) / q(phi_t | phi_t-1)     (eq. 13)
//
// where pi_t(phi; psi) = p(phi) p(y_S | phi; psi)^(N/M) is the posterior as the batch S_t estimates it. With one batch of all rows and psi fixed the
// target stays the same, and the weighted particles are exact for it; with mini-batches the target jumps from step to step, and few particles keep
// their weight.
type Guided struct {
	// Proposal is q and L: RandomWalk, Langevin or HMC; default RandomWalk{}. At equal seconds on yacht and energy (net of Table 8, 105 stochastic numbers, 100
	// particles) the test NLPDs of the random walk and both forms of Langevin came out equal, or the random walk's lower while training was short, since its
	// step is the cheapest; adapted step sizes and preconditioning, which move particles further and so leave fewer with a weight, came out behind
	// (BenchmarkEqualSeconds). The paper reports Langevin ahead where the first layer is stochastic.
	Proposal Proposal
	// StepSize is h at each step; default constant 0.01. With Adapt, its first value is where adaptation begins.
	StepSize optim.Schedule
	// Adapt, if above 0, moves the step size so that the moves, were they accepted or rejected as Metropolis and Hastings do, would be accepted with
	// this mean probability a: log h <- log h + gain_t (acceptance - a), by at most 1 a step, with gain_t = max(t^-0.6, 0.02) / (a (1 - a)) (Andrieu and
	// Thoms 2008, section 4.2.2, and Garthwaite, Fan and Sisson 2016 for the factor; the gain does not vanish, since psi goes on moving). Customary are
	// 0.234 for a random walk, 0.574 for Langevin, 0.65 for HMC. A step that leaves no particle with a weight, as when all trajectories diverge, is made
	// again with a step size smaller by e. It costs RandomWalk one more evaluation.
	Adapt float64
	// Precondition takes step sizes in units of the weighted particles' standard deviation, coordinate by coordinate.
	Precondition bool
	// PerBatch targets the posterior given the batch alone, p(phi) p(y_S | phi; psi): wider, so that more particles keep their weight.
	PerBatch bool
}

func (a Guided) prepared(*bayes.BoundModel) (Algorithm, error) {
	if a.Proposal == nil {
		a.Proposal = RandomWalk{}
	}
	if err := a.Proposal.Check(); err != nil {
		return nil, err
	}
	if h := a.StepSize.At(0); !(h > 0) || math.IsInf(h, 0) || !(a.StepSize.Decay >= 0) || a.StepSize.Every < 0 {
		return nil, fmt.Errorf("ohsmc: Guided.StepSize is %+v: rate and decay must be positive and finite (0: the defaults, 0.01 and constant)", a.StepSize)
	}
	if !(a.Adapt >= 0 && a.Adapt < 1) {
		return nil, fmt.Errorf("ohsmc: Guided.Adapt is %v: it must be a mean acceptance between 0 and 1 (0: no adaptation)", a.Adapt)
	}
	return a, nil
}

func (a Guided) resampling() (float64, smc.Resampler) { return 0.5, smc.Multinomial }

func (a Guided) title() string { return "guided open-horizon SMC (Millard et al. 2025, Algorithm 3)" }

func (a Guided) describe() any {
	return map[string]any{
		"type": "Guided", "proposal": map[string]any{"type": fmt.Sprintf("%T", a.Proposal), "settings": a.Proposal},
		"step_size": a.StepSize, "adapt": a.Adapt, "precondition": a.Precondition, "per_batch": a.PerBatch,
	}
}

func (a Guided) horizon(s Settings, rows int) (dataset.Batches, int, error) { return epochs(s, rows) }

func (a Guided) build(c *core, engine *compute.Engine) (stepper, error) {
	g := &guided{Guided: a, core: c, posterior: c.target}
	if a.PerBatch {
		g.posterior = target.Full{Likelihood: c.target.Likelihood}
	}
	data := []string{"train_x", "train_y"}
	var err error
	if g.start, err = compute.NewProgram(engine, "guided ohsmc start", append(c.kept(), data...), []string{"log_weights", "log_density"}, g.startStep); err != nil {
		return nil, err
	}
	carried := append(c.carried(), "log_density", "log_step")
	g.program, err = compute.NewProgram(engine, "guided ohsmc step", append(carried, data...), carried, g.compiled)
	return g, err
}

// guided is Guided bound to a model and data.
type guided struct {
	Guided
	*core
	posterior      target.Target
	start, program *compute.Program
}

// guidedState is what a step carries beside a state.
type guidedState struct {
	state
	logDensity *Node // [J]: log pi_t-1(phi_t-1; psi_t-2)
	logStep    *Node // scalar: log of the adapted step size
}

// step is one iteration of Algorithm 3. number counts from 1, rate is the learning rate and stepSize the schedule's step size, scalars.
func (a *guided) step(s guidedState, batch target.Batch, rng random.Stream, number, rate, stepSize *Node) (guidedState, stepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.resample(s.logWeights, func() *Node { return a.Resampler.Resample(s.logWeights, rng.Named("resample")) })
	phi, before := smc.Select(s.phi, ancestors), smc.Select(s.logDensity, ancestors)

	// Propagate, phi_t ~ q(. | phi_t-1; psi_t-1), toward the current batch.
	current := target.At(a.posterior, s.psi, batch)
	from := mcmc.State{Phi: phi}
	alive := logWeights // but for particles whose move is rejected, as its gradient is not finite somewhere: they have no weight from here on
	switch {
	case a.Proposal.NeedsGradient():
		from.LogDensity, from.Gradient = current.Gradient(phi)
		usable := LogicalAll(IsFinite(from.Gradient), 1)
		from.Gradient = Where(BroadcastToDims(ExpandAxes(usable, 1), phi.Shape().Dimensions...), from.Gradient, ZerosLike(from.Gradient))
		alive = compute.Only(usable, alive)
	case a.Adapt > 0:
		from.LogDensity = current.LogDensity(phi)
	}
	if a.Adapt > 0 {
		stepSize = Exp(s.logStep)
	}
	proposed := a.Proposal.Propose(rng.Named("propose"), from, current, stepSize, a.scale(s))
	if proposed.Lost != nil {
		alive = compute.Only(Not(proposed.Lost), alive)
	}

	// Weigh by eq. 13, and normalise.
	weighed, logDensity := a.weigh(s.psi, alive, before, proposed, batch)
	next := s
	next.logDensity = logDensity
	// Particles without a weight stay where they were, so that all coordinates are finite for ever.
	next.phi = Where(BroadcastToDims(ExpandAxes(IsFinite(weighed.LogWeights), 1), phi.Shape().Dimensions...), proposed.Phi, phi)
	next.logWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	learnt, rejected := a.learn(next.state, weighed.Gradient, batch, number, rate)
	next.state = learnt

	t := stepInfo{
		logEvidence: weighed.LogSum, ess: smc.EffectiveSampleSize(next.logWeights), unique: smc.UniqueAncestors(ancestors, phi.DType()),
		loss:      perRow(ReduceAllSum(Mul(Exp(next.logWeights), compute.Finite(weighed.LogLikelihood))), batch),
		resampled: resampled, nonFinite: nonFinite(weighed.LogWeights), rejected: rejected, stepSize: stepSize,
	}
	if a.Adapt > 0 {
		// The increments without the change of target from step to step are the ratios of Metropolis and Hastings.
		logRatio := Sub(Add(Sub(weighed.LogWeights, logWeights), before), from.LogDensity)
		probability := Exp(MinScalar(compute.Only(Not(IsNaN(logRatio)), logRatio), 0))
		t.acceptance = ReduceAllSum(Mul(Exp(logWeights), probability))
		gain := MulScalar(MaxScalar(Exp(MulScalar(Log(number), -0.6)), 0.02), 1/(a.Adapt*(1-a.Adapt)))
		change := ClipScalar(Mul(gain, AddScalar(t.acceptance, -a.Adapt)), -1, 1)
		next = a.unlessLost(IsFinite(weighed.LogSum), next, s)
		next.logStep = Add(s.logStep, Where(IsFinite(weighed.LogSum), change, ConstAs(change, -1.0)))
	}
	return next, t
}

// unlessLost is the next state, or the one before where no particle is left: adaptation then makes the step once more, and smaller.
func (a *guided) unlessLost(left *Node, next, before guidedState) guidedState {
	keep := func(next, before *Node) *Node {
		if next == nil {
			return nil
		}
		return Where(BroadcastToDims(left, next.Shape().Dimensions...), next, before)
	}
	next.phi, next.logWeights, next.logDensity = keep(next.phi, before.phi), keep(next.logWeights, before.logWeights), keep(next.logDensity, before.logDensity)
	next.psi = keep(next.psi, before.psi)
	next.moments.Mean, next.moments.Square = keep(next.moments.Mean, before.moments.Mean), keep(next.moments.Square, before.moments.Square)
	return next
}

// weigh gives the proposed particles their weights, the gradient with respect to psi under these, and log pi_t(phi_t; psi_t-1), [J].
func (a *guided) weigh(psi, logWeights, before *Node, proposed Proposed, batch target.Batch) (target.Reweighted, *Node) {
	prior := a.bound.LogPrior(proposed.Phi)
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
		return Add(factor, proposed.LogRatio(e, gradient))
	}
	weighed := a.target.Reweight(proposed.Phi, psi, logWeights, batch, weighing)
	return weighed, Add(prior, Mul(weighed.LogLikelihood, power))
}

// scale is what step sizes are in units of, [D]; nil: 1.
func (a *guided) scale(s guidedState) *Node {
	if !a.Precondition {
		return nil
	}
	return weightedStdDev(s.phi, s.logWeights)
}

// compiled is step over the named state.
func (a *guided) compiled(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	scalars := inputs[1]
	dtype := s["phi"].DType()
	number := element(scalars, 0)
	as := func(i int) *Node { return ConvertDType(element(scalars, i), dtype) }
	batch := a.gather(s, inputs[0], element(scalars, 2))
	current := guidedState{state: stateOf(s), logDensity: s["log_density"], logStep: s["log_step"]}
	next, outcome := a.step(current, batch, random.FromSeed(inputs[2]).At(ConvertDType(number, dtypes.Uint32)), as(0), as(1), as(3))
	nodes := next.nodes()
	nodes["log_density"], nodes["log_step"] = next.logDensity, next.logStep
	return nodes, outcome.record()
}

// startStep weighs particles from the prior by the first batch, w_0 = pi(phi_0; psi_0)/p(phi_0) (eq. 14). The record is the log of the weights' sum.
func (a *guided) startStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := a.gather(s, inputs[0], element(inputs[1], 0))
	logLik := Mul(a.target.LogLikelihood(s["phi"], s["psi"], batch), a.posterior.Scale(batch))
	logWeights, logSum := smc.Normalise(logLik)
	return compute.Nodes{"log_weights": logWeights, "log_density": Add(a.bound.LogPrior(s["phi"]), logLik)}, Reshape(logSum, 1)
}

func (a *guided) begin(r *run) error {
	batch := r.batches.At(0)
	record, err := a.start.Run(r.state, batch.Rows, []float64{float64(batch.Count)})
	if err != nil {
		return err
	}
	if math.IsInf(record[0], -1) {
		return fmt.Errorf("%w: none of the %d particles from the prior has a finite log-likelihood of the first batch: check the data for outliers", smc.ErrZeroWeights, a.Particles)
	}
	first := math.Log(a.StepSize.At(0))
	if a.DType == compute.Float64 {
		r.state.Set("log_step", tensors.FromScalar(first))
	} else {
		r.state.Set("log_step", tensors.FromScalar(float32(first)))
	}
	return nil
}

func (a *guided) advance(_ context.Context, r *run, batch dataset.Batch) (StepRecord, error) {
	scalars := []float64{float64(r.step + 1), r.Optimiser.Schedule.At(r.step), float64(batch.Count), a.StepSize.At(r.step)}
	for tries := 1; ; tries++ {
		values, err := a.program.Run(r.state, batch.Rows, scalars, random.SeedWords(r.Seed))
		if err != nil {
			return StepRecord{}, err
		}
		record := recordOf(values)
		if a.Adapt == 0 || !math.IsInf(record.LogEvidence, -1) || tries == maxTries {
			return record, nil
		}
	}
}

func (a *guided) sharded() []string { return []string{"log_density"} }

// maxTries is how often an adapted step that leaves no particle with a weight is made, each time with a step size smaller by e.
const maxTries = 30

func (a *guided) close() {
	a.start.Close()
	a.program.Close()
}
