package ohsmc

import (
	"context"
	"fmt"
	"math"
	"time"

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
)

// Status says how a run ended.
type Status string

// The ways to end.
const (
	Completed    Status = "completed"     // all epochs
	StoppedEarly Status = "stopped early" // no better validation for Patience validations
	Cancelled    Status = "cancelled"     // by the context: the posterior is what was there
)

// Result of Train.
type Result struct {
	Posterior *bayes.Posterior // at the best validation, or the last step without a validation part
	Status    Status
	Steps     int           // made
	PerEpoch  int           // steps in an epoch
	Trace     []StepRecord  // one for each step
	Validated []Validation  // one for each validation
	Best      Validation    // the one that the posterior belongs to; Step 0 if there was none
	Plan      compute.Plan  // how the particles were chunked
	Elapsed   time.Duration // over all sittings
}

// StepRecord is what a step leaves on the host.
type StepRecord struct {
	LogEvidence      float64 // log sum_j w_j p(y_S | phi_j; psi): the increment of the log evidence
	Loss             float64 // -LogEvidence per row
	ESS              float64 // after weighing
	UniqueAncestors  float64 // different particles among the ancestors; J if not resampled
	Resampled        bool
	NonFinite        int     // particles whose log-likelihood is NaN or infinite: they got weight 0
	GradientRejected bool    // the gradient was not finite, and psi stayed
	Seconds          float64 // of the step, without validation
}

// Validation is the NLPD on the validation part after a step.
type Validation struct {
	Step int // counted from 1
	NLPD float64
}

// algorithm is Algorithm 3 bound to a model and data.
type algorithm struct {
	Settings
	bound    *bayes.Bound
	target   target.MiniBatch
	validate target.Likelihood
}

// state are the tensors that a step carries, and those of the best validation.
type state struct {
	phi        *Node // [J, D]
	logWeights *Node // [J], normalised
	psi        *Node // [W]; nil if nothing is shared
	moments    optim.Moments
}

// step is one iteration of Algorithm 3. number counts from 1, a scalar; rate is the learning rate, a scalar.
func (a *algorithm) step(s state, batch target.Batch, rng random.Stream, number, rate *Node) (state, []*Node) {
	j := a.Particles
	dtype := s.phi.DType()

	// Resample if the effective sample size is at most Threshold J.
	resample := LessOrEqual(smc.EffectiveSampleSize(s.logWeights), ConstAs(s.phi, a.Threshold*float64(j)*(1+1e-6)))
	ancestors := a.Resampler.Resample(s.logWeights, rng.Named("resample"))
	if a.Threshold < 1 {
		ancestors = Where(BroadcastToDims(resample, j), ancestors, Iota(s.phi.Graph(), ancestors.Shape(), 0))
	}
	uniform := BroadcastToDims(ConstAs(s.phi, -math.Log(float64(j))), j)
	logWeights := Where(BroadcastToDims(resample, j), uniform, s.logWeights)

	// Move: phi_j ~ h(. | phi_j).
	moved, _ := a.Kernel.Move(rng.Named("move"), mcmc.State{Phi: smc.Select(s.phi, ancestors)}, nil, mcmc.Tuning{})
	phi := moved.Phi

	// Weigh by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalise.
	evidence := a.target.Evidence(phi, s.psi, logWeights, batch)
	next := state{phi: phi, psi: s.psi, moments: s.moments}
	next.logWeights, _ = smc.Normalise(Add(logWeights, evidence.LogLikelihood))

	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi). A gradient that is not finite moves nothing.
	rejected := ConstAs(s.phi, 0.0)
	if s.psi != nil {
		gradient := Mul(evidence.Gradient, a.target.Scale(batch))
		usable := LogicalAll(IsFinite(gradient))
		psi, moments := a.Optimiser.Ascend(s.psi, gradient, s.moments, number, rate)
		keep := func(new, old *Node) *Node { return Where(BroadcastToDims(usable, a.bound.W), new, old) }
		next.psi = keep(psi, s.psi)
		next.moments = optim.Moments{Mean: keep(moments.Mean, s.moments.Mean), Square: keep(moments.Square, s.moments.Square)}
		rejected = ConvertDType(Not(usable), dtype)
	}

	nonFinite := ReduceAllSum(ConvertDType(Not(IsFinite(evidence.LogLikelihood)), dtype))
	return next, []*Node{
		evidence.LogEvidence, smc.EffectiveSampleSize(next.logWeights), smc.UniqueAncestors(ancestors, dtype),
		ConvertDType(resample, dtype), nonFinite, rejected,
	}
}

// recordOf reads what step returned.
func recordOf(values []float64, rows int, seconds float64) StepRecord {
	return StepRecord{
		LogEvidence: values[0], Loss: -values[0] / float64(rows), ESS: values[1], UniqueAncestors: values[2],
		Resampled: values[3] != 0, NonFinite: int(values[4]), GradientRejected: values[5] != 0, Seconds: seconds,
	}
}

// Train runs OHSMC (Algorithm 3 of Zhao et al. 2024) on the training part. Features, and the target of a regression, are
// standardised by the training part's means and standard deviations; the posterior keeps them and predicts in raw units.
//
// A cancelled context is no error: the result is what was there, with the status Cancelled. If no particle has any weight left, the
// error wraps smc.ErrZeroWeights and says at which step.
func Train(ctx context.Context, model bayes.Model, parts dataset.Parts, settings Settings) (*Result, error) {
	trainer := NewTrainer(model)
	defer trainer.Close()
	return trainer.Train(ctx, parts, settings)
}

// loop makes steps until the run ends.
func (r *run) loop(ctx context.Context) error {
	for r.status == "" {
		if r.step == r.steps {
			r.status = Completed
			break
		}
		if ctx.Err() != nil {
			r.status = Cancelled
			break
		}
		if err := r.advance(); err != nil {
			return err
		}
		if r.Patience > 0 && r.sinceBest >= r.Patience {
			r.status = StoppedEarly
		}
		if err := r.checkpointIfDue(); err != nil {
			return err
		}
		r.report(false)
	}
	r.report(true)
	return r.checkpoint()
}

// advance makes one step and, where one is due, a validation.
func (r *run) advance() error {
	batch := r.batches.At(r.step)
	start := time.Now()
	values, err := r.train.Run(r.state, batch.Rows, []float64{float64(r.step + 1), r.Optimiser.Schedule.At(r.step), float64(batch.Count)}, random.SeedWords(r.Seed))
	if err != nil {
		return fmt.Errorf("ohsmc: step %d: %w", r.step+1, err)
	}
	record := recordOf(values, batch.Count, time.Since(start).Seconds())
	r.step++
	r.trace = append(r.trace, record)
	if math.IsInf(record.LogEvidence, -1) || math.IsNaN(record.LogEvidence) {
		return fmt.Errorf("ohsmc: step %d of %d: %w: %d of %d particles have a log-likelihood that is not finite; "+
			"check the data for outliers, use a smaller learning rate or a smaller step of the kernel", r.step, r.steps, smc.ErrZeroWeights, record.NonFinite, r.Particles)
	}
	if r.validation != nil && (r.step%r.ValidateEvery == 0 || r.step == r.steps) {
		return r.runValidation()
	}
	return nil
}

// runValidation scores the particles on the validation part and keeps them if they are the best so far.
func (r *run) runValidation() error {
	values, err := r.validation.Run(r.state)
	if err != nil {
		return fmt.Errorf("ohsmc: validation after step %d: %w", r.step, err)
	}
	v := Validation{Step: r.step, NLPD: values[0]}
	r.validated = append(r.validated, v)
	if values[1] != 0 {
		r.best = v
		r.sinceBest = 0
	} else {
		r.sinceBest++
	}
	return nil
}

// initialStep draws phi from the prior and psi from its initialisers; weights are equal.
func (a *algorithm) initialStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromSeed(inputs[0])
	start := compute.Nodes{
		"phi":         a.bound.SamplePrior(rng.Named("prior"), a.DType, a.Particles),
		"log_weights": BroadcastToDims(ConstAs(s["train_x"], -math.Log(float64(a.Particles))), a.Particles),
	}
	if a.bound.W > 0 {
		start["psi"] = a.bound.InitShared(rng.Named("shared"), a.DType, inputs[0].Graph())
	}
	return start, ConstAs(s["train_x"], []float64{0})
}

// trainStep is the compiled step over the named state.
func (a *algorithm) trainStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rows, scalars := inputs[0], inputs[1]
	dtype := s["phi"].DType()
	scalar := func(i int) *Node { return Reshape(Slice(scalars, AxisElem(i))) }
	number, rate, count := scalar(0), scalar(1), scalar(2)
	rng := random.FromSeed(inputs[2]).At(ConvertDType(number, dtypes.Uint32))
	batch := target.Batch{
		X:     Gather(s["train_x"], ExpandAxes(rows, -1)),
		Y:     Gather(s["train_y"], ExpandAxes(rows, -1)),
		Count: ConvertDType(count, dtype),
	}
	current := state{phi: s["phi"], logWeights: s["log_weights"], psi: s["psi"], moments: optim.Moments{Mean: s["mean"], Square: s["square"]}}
	next, record := a.step(current, batch, rng, ConvertDType(number, dtype), ConvertDType(rate, dtype))
	updated := compute.Nodes{"phi": next.phi, "log_weights": next.logWeights}
	if next.psi != nil {
		updated["psi"], updated["mean"], updated["square"] = next.psi, next.moments.Mean, next.moments.Square
	}
	return updated, Stack(record, 0)
}

// validateStep scores NLPD = -mean_n log sum_j w_j p(y_n | phi_j; psi) and keeps the state in "best_..." if that is lower than "best_nlpd".
func (a *algorithm) validateStep(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
	density := a.validate.LogPredictive(s["phi"], s["psi"], s["log_weights"], target.Batch{X: s["valid_x"], Y: s["valid_y"]})
	nlpd := Neg(ReduceAllMean(ConvertDType(density, dtypes.Float64)))
	better := LessThan(nlpd, s["best_nlpd"])
	updated := compute.Nodes{"best_nlpd": Where(better, nlpd, s["best_nlpd"])}
	for _, name := range a.kept() {
		updated["best_"+name] = Where(BroadcastToDims(better, s[name].Shape().Dimensions...), s[name], s["best_"+name])
	}
	return updated, Stack([]*Node{nlpd, ConvertDType(better, dtypes.Float64)}, 0)
}

// kept names the tensors that make a posterior.
func (a *algorithm) kept() []string {
	if a.bound.W == 0 {
		return []string{"phi", "log_weights"}
	}
	return []string{"phi", "log_weights", "psi"}
}
