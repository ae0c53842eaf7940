package pbnn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
)

// Sampler is a method that samples a target by chains: Metropolis, Unadjusted, AllRows, or one of your own. It is
// a struct of settings that embeds Sampling. Its method Prepare ends with Sampling.Prepared, and its method Run calls
// the function Run.
//
// Like all methods of package fit it samples all parameters of a model, whose chains begin at draws from the prior and
// climb from there to where the posterior has its mass (density.Climb): at a draw from the prior the noise of
// mini-batches can be so large that nothing is accepted. Or it samples the stochastic parameters of a trained posterior
// (fit.From), such as that of baseline.MAP for a partial network. Rows are those of the training part.
type Sampler interface {
	fit.Method
	// Problem gives what the chains sample, a problem made by Data.MiniBatches or Data.AllRows, and the kernel that
	// samples it. It is called on the sampler that Prepare returned.
	Problem(data *Data) (density.Problem, mcmc.Kernel, error)

	sampling() Sampling
}

// Sampling is what all samplers have: how many chains there are, and how long they are. The fields are those of
// mcmc.Chains. The zero value of every field works.
type Sampling struct {
	Chains int `json:"chains,omitempty"` // J; default 4
	Draws  int `json:"draws,omitempty"`  // kept of each chain; default 1000
	Thin   int `json:"thin,omitempty"`   // keep each Thin-th transition; default 1
	// WarmUp is the number of transitions of each chain before the draws, which choose a step size that is 0, and the
	// scales of the coordinates. Default 1000; mcmc.NoWarmUp: none.
	WarmUp int `json:"warm_up,omitempty"`
}

// Takes implements fit.Taker.
func (Sampling) Takes() fit.Takes { return fit.Takes{Trained: true} }

func (s Sampling) sampling() Sampling { return s }

// Prepared fills in what is zero, and checks the rest and the target, whose own defaults are filled in. Unless the job
// continues a trained posterior, all parameters of its model become stochastic.
func (s Sampling) Prepared(j *fit.Job, of Target) (Sampling, error) {
	if j.Trained == nil {
		if err := j.SampleAll(); err != nil {
			return s, err
		}
	}
	if of == nil {
		return s, errors.New("pbnn: there is no target: take one such as TargetFull{}")
	}
	points := of.EffectivePoints(j.Rows())
	err := limits.Fill("pbnn: Sampling",
		limits.Int("Chains", &s.Chains, 4).From(1),
		limits.Int("Draws", &s.Draws, 1000).From(1),
		limits.Int("Thin", &s.Thin, 1).From(1),
		limits.Int("WarmUp", &s.WarmUp, 1000).From(0).Or(mcmc.NoWarmUp, "mcmc.NoWarmUp"),
		limits.Field(fmt.Sprintf("%T.EffectivePoints", of), points, points > 0 && !math.IsInf(points, 1),
			"positive and finite"),
	)
	if err != nil {
		return s, err
	}
	return s, j.OnDevices("Sampling.Chains", s.Chains)
}

// Run runs the chains of a prepared sampler, for its method Run. The target is the one that was given to Prepared. The
// result's details are a *Details and a *mcmc.Details; its warnings say if Details.Bias is large. Errors wrap
// mcmc.ErrStuck if the chains do not move. If noise has stopped the chains of a Metropolis, the error names an n and an
// M with which they would move.
func Run(ctx context.Context, j *fit.Job, s Sampler, of Target) (*fit.Result, error) {
	d, found := &Data{Job: j, Chains: s.sampling().Chains}, &Details{}
	if m, ok := s.(Metropolis); ok && m.Noise > 0 {
		adapted, trials, err := d.adapt(ctx, m)
		if err != nil {
			return nil, err
		}
		s, found.Adapted = adapted, trials
		j.Choose("batches", adapted.Batches)
		j.Choose("batch_size", adapted.BatchSize)
	}
	stage, err := d.stage(s)
	if err != nil {
		return nil, err
	}
	rows := j.Rows()
	stage.LikelihoodPower = of.EffectivePoints(rows) / float64(rows)
	if m, ok := penalised(s); ok && m.Rule == Naive {
		stage.Approximation = "wider than the target, by the noise of the mini-batches: the rule is " + string(Naive)
	}
	result, err := j.RunStage(ctx, stage)
	if result == nil {
		return nil, explain(err, s, rows)
	}
	found.Sampler, result.Approximation = s, cmp.Or(stage.Approximation, result.Approximation)
	result.Doubts = append(result.Doubts, found.of(fit.Details[*mcmc.Details](result), rows)...)
	result.Details = append(result.Details, found)
	return result, err
}

// stage is the chains of a prepared sampler; an error if its kernel would not sample the model's parameters.
func (d *Data) stage(s Sampler) (fit.Stage, error) {
	problem, kernel, err := s.Problem(d)
	switch {
	case err != nil:
	case kernel == nil:
		err = fmt.Errorf("pbnn: %T.Problem gives no kernel", s)
	case kernel.Traits().NoTarget:
		err = fmt.Errorf("pbnn: %T never sees the data: its kernel, %T, does not ask its target: take one that evaluates "+
			"its target, such as mcmc.RandomWalkMetropolis{} or mcmc.SGLD{StepSize: 0.001}", s, kernel)
	case problem.Target == nil || problem.Dim != d.Bound.D:
		err = fmt.Errorf("pbnn: %T.Problem gives a problem of %d dimensions, or without a target, for a model of %d "+
			"stochastic parameters: take one that Data.MiniBatches or Data.AllRows makes", s, problem.Dim, d.Bound.D)
	}
	chains := s.sampling()
	return fit.Stage{Name: "chains", Problem: problem, Method: mcmc.Chains{
		Kernel: kernel, Chains: chains.Chains, Draws: chains.Draws, Thin: chains.Thin, WarmUp: chains.WarmUp,
	}}, err
}

// title is the title of a sampler of a target.
func title(s Sampler, of Target) string { return fmt.Sprintf("%T of the %s", s, of) }
