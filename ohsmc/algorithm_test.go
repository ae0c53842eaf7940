package ohsmc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
)

// own is an algorithm of a user's own, with its faults.
type own struct {
	Training
	Fault   string
	prepare func() (fit.Method, error)
	compile func(c *Core) (Stepper, error)
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
	return Run(ctx, j, o.Training, o)
}

func (o own) Compile(c *Core) (Stepper, error) { return o.compile(c) }

// weighed is a step that only weighs.
func weighed(c *Core, s State, batch density.Batch) (State, StepInfo) {
	all := c.Target.Reweight(s.Phi, s.Psi, s.LogWeights, batch, density.LikelihoodPotential)
	s.LogWeights, _ = smc.Normalise(all.LogWeights)
	return s, StepInfo{LogEvidence: all.LogSum}
}

// An algorithm of a user's own tells what is wrong with it by an error that names it, and what a step does not tell of
// itself is NaN.
func TestOwnAlgorithms(t *testing.T) {
	graphs := func(g func(c *Core) Graphs) func(c *Core) (Stepper, error) {
		return func(c *Core) (Stepper, error) { return NewStepper(c, g(c)) }
	}
	step := func(change func(*State, *StepInfo)) func(c *Core) (Stepper, error) {
		return graphs(func(c *Core) Graphs {
			return Graphs{Step: func(s State, batch density.Batch, _ Now) (State, StepInfo) {
				next, info := weighed(c, s, batch)
				change(&next, &info)
				return next, info
			}}
		})
	}
	fault := errors.New("a fault of its own")
	for _, c := range []struct {
		algorithm own
		says      []string
	}{
		{own{Fault: "prepare", prepare: func() (fit.Method, error) { return nil, fault }}, []string{"a fault of its own"}},
		{own{Fault: "no algorithm", prepare: func() (fit.Method, error) { return nil, nil }},
			[]string{"Prepare of ohsmc.own gives no method"}},
		{own{Fault: "compile", compile: func(*Core) (Stepper, error) { return nil, fault }}, []string{"a fault of its own"}},
		{own{Fault: "none", compile: func(*Core) (Stepper, error) { return nil, nil }},
			[]string{"ohsmc.own gives no Stepper"}},
		{own{Fault: "no step", compile: graphs(func(*Core) Graphs { return Graphs{} })}, []string{"Graphs needs a Step"}},
		{own{Fault: "no start", compile: graphs(func(c *Core) Graphs {
			return Graphs{Step: func(s State, _ density.Batch, _ Now) (State, StepInfo) { return s, StepInfo{} },
				Common: []string{"x"}}
		})}, []string{"a Start", `"x"`}},
		{own{Fault: "name", compile: graphs(func(c *Core) Graphs {
			return Graphs{
				Step:        func(s State, _ density.Batch, _ Now) (State, StepInfo) { return s, StepInfo{} },
				Start:       func(s State, _ density.Batch, _ random.Stream) (State, *Node) { return s, nil },
				PerParticle: []string{"phi"},
			}
		})}, []string{`"phi"`, "every run has one"}},
		{own{Fault: "evidence", compile: step(func(_ *State, i *StepInfo) { i.LogEvidence = nil })},
			[]string{"step 1", "LogEvidence is nil"}},
		{own{Fault: "phi", compile: step(func(s *State, _ *StepInfo) { s.Phi = nil })},
			[]string{"step 1", `nil for the state's "phi"`}},
		{own{Fault: "psi", compile: step(func(s *State, _ *StepInfo) { s.Psi = nil })},
			[]string{"step 1", `does not give "psi"`}},
		{own{Fault: "shape", compile: step(func(s *State, _ *StepInfo) { s.Phi = Concatenate([]*Node{s.Phi, s.Phi}, 0) })},
			[]string{"step 1", `"phi" is (Float32)[6, 18] before the step and (Float32)[12, 18] after it`}},
		{own{Fault: "lost", compile: step(func(s *State, i *StepInfo) { i.LogEvidence = Log(ZerosLike(i.LogEvidence)) })},
			[]string{"step 1", "all weights are zero"}},
	} {
		settings := Settings{Particles: 6, BatchSize: 36, Epochs: 2, Engine: computetest.Go(t)}
		result, err := Fit(t.Context(), small, c.algorithm, parts(t), settings)
		for _, want := range c.says {
			if result != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not say %q", c.algorithm.Fault, err, want)
			}
		}
	}

	result, err := Fit(t.Context(), small, own{compile: step(func(*State, *StepInfo) {})}, parts(t), Settings{
		Particles: 6, BatchSize: 36, Epochs: 2, Engine: computetest.Go(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if last := result.Trace[1]; last.ESS == last.ESS || last.Loss == last.Loss || last.NonFinite != 0 ||
		last.Resamplings != 0 ||
		last.GradientRejected || len(result.Warnings) > 0 || result.Posterior.Evidence().Known() {
		t.Errorf("a step that tells of its evidence alone has the record %+v, warnings %q", last, result.Warnings)
	}
}
