package particles_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
)

// The types of a step, as its author writes them often.
type (
	core    = particles.Core
	state   = particles.State
	info    = particles.StepInfo
	stepper = particles.Stepper
	graphs  = particles.Graphs
)

// own is an algorithm of a user's own, with its faults.
type own struct {
	particles.Training
	Fault   string
	prepare func() (fit.Method, error)
	compile func(c *core) (stepper, error)
}

func (o own) Title() string { return "of one's own" }

func (o own) Prepare(j *fit.Job) (m fit.Method, err error) {
	if o.prepare != nil {
		return o.prepare()
	}
	o.Training, err = o.Training.Prepared(j, .5, smc.Stratified)
	return o, err
}

func (o own) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, o.Training, o)
}

func (o own) Compile(c *core) (stepper, error) { return o.compile(c) }

// weighed is a step that only weighs.
func weighed(c *core, s state, batch density.Batch) (state, info) {
	all := c.Target.Reweight(s.Phi, s.Psi, s.LogWeights, batch, density.LikelihoodPotential)
	s.LogWeights, _ = smc.Normalise(all.LogWeights)
	return s, info{LogEvidence: all.LogSum}
}

// What is wrong with an algorithm of a user's own is an error that names it, and a number that a step does not have is
// NaN.
func TestOwnAlgorithms(t *testing.T) {
	compiled := func(g func(c *core) graphs) func(c *core) (stepper, error) {
		return func(c *core) (stepper, error) { return particles.NewStepper(c, g(c)) }
	}
	step := func(change func(*state, *info)) func(c *core) (stepper, error) {
		return compiled(func(c *core) graphs {
			return graphs{Step: func(s state, batch density.Batch, _ particles.Now) (state, info) {
				next, its := weighed(c, s, batch)
				change(&next, &its)
				return next, its
			}}
		})
	}
	training, parts := particles.Training{Particles: 6, BatchSize: 36, Epochs: 2}, fittest.Parts(t, 60)
	settings := run.Settings{Engine: computetest.Go(t)}
	fault := errors.New("a fault of its own")
	for _, c := range []struct {
		algorithm own
		words     []string
	}{
		{own{Fault: "prepare", prepare: func() (fit.Method, error) { return nil, fault }}, []string{"a fault of its own"}},
		{own{Fault: "no algorithm", prepare: func() (fit.Method, error) { return nil, nil }},
			[]string{"Prepare of particles_test.own gives no method"}},
		{own{Fault: "compile", compile: func(*core) (stepper, error) { return nil, fault }}, []string{"a fault of its own"}},
		{own{Fault: "none", compile: func(*core) (stepper, error) { return nil, nil }},
			[]string{"particles_test.own gives no Stepper"}},
		{own{Fault: "no step", compile: compiled(func(*core) graphs { return graphs{} })}, []string{"Graphs needs a Step"}},
		{own{Fault: "no start", compile: compiled(func(c *core) graphs {
			return graphs{Step: func(s state, _ density.Batch, _ particles.Now) (state, info) { return s, info{} },
				Common: []string{"x"}}
		})}, []string{"a Start", `"x"`}},
		{own{Fault: "name", compile: compiled(func(c *core) graphs {
			return graphs{
				Step:        func(s state, _ density.Batch, _ particles.Now) (state, info) { return s, info{} },
				Start:       func(s state, _ density.Batch, _ random.Stream) (state, *Node) { return s, nil },
				PerParticle: []string{"phi"},
			}
		})}, []string{`"phi"`, "every run has one"}},
		{own{Fault: "phi", compile: step(func(s *state, _ *info) { s.Phi = nil })},
			[]string{"step 1", `nil for the state's "phi"`}},
		{own{Fault: "psi", compile: step(func(s *state, _ *info) { s.Psi = nil })},
			[]string{"step 1", `does not give "psi"`}},
		{own{Fault: "shape", compile: step(func(s *state, _ *info) { s.Phi = Concatenate([]*Node{s.Phi, s.Phi}, 0) })},
			[]string{"step 1", `"phi" is (Float32)[6, 18] before the step and (Float32)[12, 18] after it`}},
		{own{Fault: "lost", compile: step(func(s *state, i *info) { i.LogEvidence = Log(ZerosLike(i.LogEvidence)) })},
			[]string{"step 1", "all weights are zero"}},
		{own{Fault: "not a number", compile: step(func(_ *state, i *info) {
			i.LogEvidence = MulScalar(i.LogEvidence, math.NaN())
		})}, []string{"step 1", "all weights are zero"}},
		{own{Fault: "lost, no evidence", compile: step(func(s *state, i *info) {
			i.LogEvidence, s.LogWeights = nil, Log(ZerosLike(s.LogWeights))
		})}, []string{"all weights are zero"}},
		{own{Fault: "nowhere, no evidence", compile: step(func(s *state, i *info) {
			i.LogEvidence, s.Phi = nil, Log(ZerosLike(s.Phi))
		})}, []string{"all weights are zero"}},
	} {
		c.algorithm.Training = training
		_, err := fit.Fit(t.Context(), fittest.Small, c.algorithm, parts, settings)
		computetest.WantError(t, c.algorithm.Fault, err, c.words...)
	}

	for has, change := range map[string]func(*state, *info){
		"its evidence alone": func(*state, *info) {}, "nothing": func(_ *state, i *info) { i.LogEvidence = nil },
	} {
		method := own{Training: training, compile: step(change)}
		result, d := fittest.Fit[*particles.Details](t, fittest.Small, method, parts, settings)
		last := d.Trace[1]
		if last.ESS == last.ESS || last.Loss == last.Loss || last.NonFinite != 0 || last.Resamplings != 0 ||
			math.IsNaN(last.LogEvidence) != (has == "nothing") || last.GradientRejected || len(result.Warnings) > 0 ||
			result.Posterior.Evidence().Known() {
			t.Errorf("a step with %s has the record %+v, warnings %q", has, last, result.Warnings)
		}
	}
	// One particle with a weight is enough.
	method := own{Training: training, compile: step(func(s *state, i *info) {
		first := Equal(Iota(s.Phi.Graph(), s.LogWeights.Shape(), 0), ScalarZero(s.Phi.Graph(), s.LogWeights.DType()))
		i.LogEvidence, s.LogWeights = nil, Where(first, ZerosLike(s.LogWeights), Log(ZerosLike(s.LogWeights)))
	})}
	fittest.Fit[*particles.Details](t, fittest.Small, method, parts, settings)
}
