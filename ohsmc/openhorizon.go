package ohsmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
	"gobnn/bayes/target"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// OpenHorizon is Algorithm 3 of Zhao et al. 2024: particles persist from batch to batch, moved by a kernel that accepts everything.
type OpenHorizon struct {
	// Kernel is h; default mcmc.RandomWalk{Variance: 0.01}. mcmc.OrnsteinUhlenbeck without Mean and StdDev takes the prior's.
	Kernel mcmc.Kernel
	// Poisson makes the product of the weights an unbiased estimate of p(y_1:N | phi; psi); nil: off.
	Poisson *Poisson
}

// Poisson removes the bias of mini-batches by the Poisson estimator (Zhao et al. 2024, section 3.4; Beskos et al. 2006): the run makes P steps, P drawn
// from a Poisson distribution, on batches drawn independently, and weighs by
//
//	w_j <- w_j ((N/M) log p(y_S | phi_j; psi) + log c)
//
// instead of the likelihood; then exp(Rate)/c times the product of the weights over Rate^P is unbiased for the likelihood of all data, as long as no
// weight is negative. That needs a constant log c of at least -(N/M) log p(y_S | phi; psi) for every batch and every phi that occurs, which nobody
// can know beforehand: a run that meets a smaller one stops with ErrNegativeWeight, which says what was needed there, and StepRecord.LogConstant traces
// it. At a fixed phi, with a the mean of (N/M) log p + log c over batches and v its variance, the estimate's relative variance is
// exp(((a - Rate)^2 + v)/Rate) - 1: a Rate near a, that is near log c + log p(y_1:N | phi; psi), serves best.
type Poisson struct {
	Rate        float64 `json:"rate"`         // of the number of steps, the mean; above 0
	LogConstant float64 `json:"log_constant"` // log c
}

// ErrNegativeWeight says that the constant of the Poisson estimator was too small.
var ErrNegativeWeight = errors.New("ohsmc: a weight of the Poisson estimator is not positive")

func (a OpenHorizon) prepared(bound *bayes.BoundModel) (Algorithm, error) {
	if a.Kernel == nil {
		a.Kernel = mcmc.RandomWalk{Variance: 0.01}
	}
	var err error
	if a.Kernel, err = withPrior(a.Kernel, bound); err != nil {
		return nil, err
	}
	if a.Kernel.UsesTarget() {
		return nil, fmt.Errorf("ohsmc: OpenHorizon.Kernel is %T, which asks its target: Algorithm 3 has none for it, and no accept/reject "+
			"step: take one that moves freely, such as mcmc.RandomWalk", a.Kernel)
	}
	if _, carries := a.Kernel.(mcmc.Stateful); carries || a.Kernel.Carries() != mcmc.CarriesNothing {
		return nil, fmt.Errorf("ohsmc: OpenHorizon.Kernel is %T, which carries a state of its own from move to move: Algorithm 3 resamples "+
			"particles without it: take one that carries nothing, such as mcmc.RandomWalk", a.Kernel)
	}
	if err := mcmc.Check(a.Kernel, bound.D, false); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if p := a.Poisson; p != nil {
		if !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
			return nil, fmt.Errorf("ohsmc: Poisson.Rate is %v: it must be positive and finite: the mean number of steps", p.Rate)
		}
		if math.IsNaN(p.LogConstant) || math.IsInf(p.LogConstant, 0) {
			return nil, fmt.Errorf("ohsmc: Poisson.LogConstant is %v: it must be finite", p.LogConstant)
		}
	}
	return a, nil
}

// withPrior gives an Ornstein-Uhlenbeck kernel without a stationary distribution of its own the prior's.
func withPrior(kernel mcmc.Kernel, bound *bayes.BoundModel) (mcmc.Kernel, error) {
	ou, ok := kernel.(mcmc.OrnsteinUhlenbeck)
	if !ok || len(ou.Mean)+len(ou.StdDev) > 0 {
		return kernel, nil
	}
	if _, ok := bound.Model.Prior.(bayes.Normal); !ok {
		return nil, fmt.Errorf("ohsmc: an Ornstein-Uhlenbeck kernel has a normal stationary distribution, but the prior is %T: set its StdDev, or use a random walk", bound.Model.Prior)
	}
	ou.StdDev = bound.Scales()
	return ou, nil
}

func (a OpenHorizon) resampling() (float64, smc.Resampler) { return 1, smc.Stratified }

func (a OpenHorizon) title() string { return "open-horizon SMC (Zhao et al. 2024, Algorithm 3)" }

func (a OpenHorizon) describe() any {
	return map[string]any{"type": "OpenHorizon", "kernel": map[string]any{"type": fmt.Sprintf("%T", a.Kernel), "settings": a.Kernel}, "poisson": a.Poisson}
}

func (a OpenHorizon) horizon(s Settings, rows int) (dataset.Batches, int, error) {
	if a.Poisson == nil {
		return epochs(s, rows)
	}
	batches, err := dataset.NewSampledBatches(rows, s.BatchSize, s.Seed)
	return batches, int(distuv.Poisson{Lambda: a.Poisson.Rate, Src: rand.NewPCG(s.Seed, 0x9e3779b97f4a7c15)}.Rand()), err
}

func (a OpenHorizon) build(c *core, engine *compute.Engine) (stepper, error) {
	carried := c.carried()
	step := &openHorizon{OpenHorizon: a, core: c}
	var err error
	step.program, err = compute.NewProgram(engine, "ohsmc step", append(carried, "train_x", "train_y"), carried, step.compiled)
	return step, err
}

// openHorizon is OpenHorizon bound to a model and data.
type openHorizon struct {
	OpenHorizon
	*core
	program *compute.Program
}

// step is one iteration of Algorithm 3. number counts from 1, a scalar; rate is the learning rate, a scalar.
func (a *openHorizon) step(s state, batch target.Batch, rng random.Stream, number, rate *Node) (state, stepInfo) {
	// Resample if needed.
	ancestors, logWeights, resampled := a.resample(s.logWeights, func() *Node { return a.Resampler.Resample(s.logWeights, rng.Named("resample")) })

	// Move: phi_j ~ h(. | phi_j).
	moved, _ := a.Kernel.Move(rng.Named("move"), mcmc.State{Phi: smc.Select(s.phi, ancestors)}, nil, mcmc.Tuning{})

	// Weigh by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalise.
	weighed := a.target.Reweight(moved.Phi, s.psi, logWeights, batch, a.weighing(batch))
	next := s
	next.phi = moved.Phi
	next.logWeights, _ = smc.Normalise(weighed.LogWeights)

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	next, rejected := a.learn(next, weighed.Gradient, batch, number, rate)

	t := stepInfo{
		logEvidence: weighed.LogSum, ess: smc.EffectiveSampleSize(next.logWeights), unique: smc.UniqueAncestors(ancestors, s.phi.DType()),
		resampled: resampled, nonFinite: nonFinite(weighed.LogLikelihood), rejected: rejected,
	}
	t.loss = perRow(weighed.LogSum, batch)
	if a.Poisson != nil {
		t.logConstant = Neg(ReduceAllMin(Mul(weighed.LogLikelihood, a.target.Scale(batch))))
		t.loss = perRow(ReduceAllSum(Mul(Exp(next.logWeights), compute.Finite(weighed.LogLikelihood))), batch)
	}
	return next, t
}

// weighing is by the likelihood, or as the Poisson estimator asks, section 3.4.
func (a *openHorizon) weighing(batch target.Batch) target.Potential {
	if a.Poisson == nil {
		return target.LikelihoodPotential
	}
	return target.Potential{Factor: func(e target.Evaluated) *Node {
		return Log(AddScalar(Mul(e.LogLikelihood, a.target.Scale(batch)), a.Poisson.LogConstant))
	}}
}

// compiled is step over the named state.
func (a *openHorizon) compiled(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rows, scalars := inputs[0], inputs[1]
	dtype := s["phi"].DType()
	number := element(scalars, 0)
	rng := random.FromSeed(inputs[2]).At(ConvertDType(number, dtypes.Uint32))
	batch := a.gather(s, rows, element(scalars, 2))
	next, outcome := a.step(stateOf(s), batch, rng, ConvertDType(number, dtype), ConvertDType(element(scalars, 1), dtype))
	return next.nodes(), outcome.record()
}

func (a *openHorizon) begin(*run) error { return nil }

func (a *openHorizon) sharded() []string { return nil }

func (a *openHorizon) advance(_ context.Context, r *run, batch dataset.Batch) (StepRecord, error) {
	values, err := a.program.Run(r.state, batch.Rows, []float64{float64(r.step + 1), r.Optimiser.Schedule.At(r.step), float64(batch.Count)}, random.SeedWords(r.Seed))
	if err != nil {
		return StepRecord{}, err
	}
	record := recordOf(values)
	if p := a.Poisson; p != nil && !(record.LogConstant < p.LogConstant) {
		return record, fmt.Errorf("%w: LogConstant is %v, but this batch needs more than %.6g: raise it, or take larger batches", ErrNegativeWeight, p.LogConstant, record.LogConstant)
	}
	return record, nil
}

func (a *openHorizon) close() { a.program.Close() }

// logEvidence is the Poisson estimate of log p(y_1:N; psi) from the increments of a whole run: e^rate/c prod_i (1/rate) sum_j w_j (...).
func (p Poisson) logEvidence(trace []StepRecord) float64 {
	total := p.Rate - p.LogConstant
	for _, t := range trace {
		total += t.LogEvidence - math.Log(p.Rate)
	}
	return total
}
