package pbnn

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
)

// half is a target of a user's: half of the rows' likelihood.
type half struct{ points float64 }

func (half) String() string                     { return "half" }
func (h half) EffectivePoints(rows int) float64 { return h.points * float64(rows) / 2 }
func (h half) ForBatchSize(int) FromMiniBatches { return h }

var _ FromMiniBatches = half{}

// own is a sampler of a user's, whose parts may be wrong.
type own struct {
	Sampling
	Target  Target
	problem func(d *Data) (density.Problem, mcmc.Kernel, error)
}

func (o own) Title() string { return title(o, o.Target) }
func (o own) Prepare(j *fit.Job) (m fit.Method, err error) {
	o.Sampling, err = o.Sampling.Prepared(j, o.Target)
	return o, err
}
func (o own) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, o, o.Target)
}
func (o own) Problem(d *Data) (density.Problem, mcmc.Kernel, error) { return o.problem(d) }

// What a user's sampler gets wrong is an error before the first draw.
func TestOwnSamplerChecks(t *testing.T) {
	walk := mcmc.RandomWalkMetropolis{StepSize: .1}
	all := func(change func(p *density.Problem), k mcmc.Kernel) func(d *Data) (density.Problem, mcmc.Kernel, error) {
		return func(d *Data) (density.Problem, mcmc.Kernel, error) {
			problem, err := d.AllRows(TargetFullData{})
			change(&problem)
			return problem, k, err
		}
	}
	same := func(*density.Problem) {}
	for _, c := range []struct {
		words   string
		sampler own
	}{
		{"there is no target", own{}},
		{"pbnn.half.EffectivePoints is 0: it must be positive", own{Target: half{}}},
		{"pbnn.half.EffectivePoints is NaN", own{Target: half{math.NaN()}}},
		{"gives no kernel", own{Target: half{1}, problem: all(same, nil)}},
		{"a problem of 2 dimensions", own{Target: half{1},
			problem: all(func(p *density.Problem) { p.Dim = 2 }, walk)}},
		{"or without a target", own{Target: half{1},
			problem: all(func(p *density.Problem) { p.Target = nil }, walk)}},
		{"never sees the data: its kernel, mcmc.RandomWalk",
			own{Target: half{1}, problem: all(same, mcmc.RandomWalk{Variance: 1})}},
		{"StepSize is -1", own{Target: half{1}, problem: all(same, mcmc.MALA{StepSize: -1})}},
		{"not now", own{Target: half{1}, problem: func(*Data) (density.Problem, mcmc.Kernel, error) {
			return density.Problem{}, nil, errors.New("not now")
		}}},
	} {
		_, err := fit.Fit(t.Context(), line, c.sampler, dataset.Parts{Train: fittest.Data(30)}, short(t))
		computetest.WantError(t, c.words, err, c.words)
	}
	r := fitted(t, line, own{Sampling: quick, Target: half{1}, problem: all(same, walk)}, fittest.Data(30), short(t))
	if r.RowsPerStep != 30 || !strings.Contains(r.Posterior.Provenance().Algorithm,
		"pbnn.own of the half") {
		t.Errorf("%v rows a step, %q", r.RowsPerStep, r.Posterior.Provenance().Algorithm)
	}
}
