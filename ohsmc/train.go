package ohsmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
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
	Steps     int          // made
	PerEpoch  int          // steps in an epoch
	Trace     []StepRecord // one for each step
	Validated []Validation // one for each validation
	Best      Validation   // the one that the posterior belongs to; Step 0 if there was none
	// LogEvidence estimates log p(y; psi) of the whole training part: for OpenHorizon with Poisson, and for SMC whose batch is all rows, of the last step
	// and at the psi before it; NaN otherwise.
	LogEvidence float64
	Plan        compute.Plan  // how the particles were chunked
	Elapsed     time.Duration // over all sessions
}

// Validation is the NLPD on the validation part after a step.
type Validation struct {
	Step int // counted from 1
	NLPD float64
}

// Train runs Settings.Algorithm on the training part. Features, and the target of a regression, are standardised by the training part's
// means and standard deviations unless Model.Scaling says otherwise; the posterior keeps them and predicts in raw units.
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
	if r.validation != nil && r.step < r.steps {
		r.validation.Prepare(r.state) // beside the first step, which compiles too
	}
	for r.status == "" {
		if r.step == r.steps {
			r.status = Completed
			break
		}
		if ctx.Err() != nil {
			r.status = Cancelled
			break
		}
		if err := r.advance(ctx); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.status = Cancelled
			break
		} else if err != nil {
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
func (r *run) advance(ctx context.Context) error {
	start := time.Now()
	record, err := r.stepper.advance(ctx, r, r.batches.At(r.step))
	if err != nil {
		return fmt.Errorf("ohsmc: step %d: %w", r.step+1, err)
	}
	record.Seconds = time.Since(start).Seconds()
	r.step++
	r.trace = append(r.trace, record)
	if math.IsInf(record.LogEvidence, -1) || math.IsNaN(record.LogEvidence) {
		return r.zeroWeights(record)
	}
	if r.validation != nil && (r.step%r.ValidateEvery == 0 || r.step == r.steps) {
		if err := r.runValidation(); err != nil {
			return err
		}
	}
	return r.observe()
}

// observe calls Settings.Observe where it is due.
func (r *run) observe() error {
	every := r.ObserveEvery
	if every == 0 {
		every = r.batches.PerEpoch()
	}
	if r.Observe == nil || r.step%every != 0 {
		return nil
	}
	now, err := r.posterior("")
	if err != nil {
		return err
	}
	if err := r.Observe(r.step, now); err != nil {
		return fmt.Errorf("ohsmc: Settings.Observe after step %d: %w", r.step, err)
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
func (c *core) initialStep(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromSeed(inputs[0])
	phi := c.bound.SamplePrior(rng.Named("prior"), c.DType, c.Particles)
	start := compute.Nodes{"phi": phi, "log_weights": c.uniform(phi)}
	if c.bound.W > 0 {
		start["psi"] = c.bound.InitShared(rng.Named("shared"), c.DType, inputs[0].Graph())
	}
	return start, ConstAs(phi, []float64{0})
}

// validateStep scores NLPD = -mean_n log sum_j w_j p(y_n | phi_j; psi) and keeps the state in "best_..." if that is lower than "best_nlpd".
func (c *core) validateStep(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
	density := c.validate.LogPredictive(s["phi"], s["psi"], s["log_weights"], target.Batch{X: s["valid_x"], Y: s["valid_y"]})
	nlpd := Neg(ReduceAllMean(ConvertDType(density, dtypes.Float64)))
	better := LessThan(nlpd, s["best_nlpd"])
	updated := compute.Nodes{"best_nlpd": Where(better, nlpd, s["best_nlpd"])}
	for _, name := range c.kept() {
		updated["best_"+name] = Where(BroadcastToDims(better, s[name].Shape().Dimensions...), s[name], s["best_"+name])
	}
	return updated, Stack([]*Node{nlpd, ConvertDType(better, dtypes.Float64)}, 0)
}
