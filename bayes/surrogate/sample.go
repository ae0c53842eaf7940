package surrogate

import (
	"context"
	"time"

	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Chains samples a density near its mode by split HMC in whitened coordinates, as a method of package fit. It searches
// the mode and whitens by the Hessian there. A pilot finds the step, and decides whether a surrogate from a part of the
// rows pays. The search begins at the problem's Start, or a draw of its Initial; the chains at the pilot's last states.
//
// Progress has the stages "mode", "Hessian" and "pilot" before those of the chains, and the checkpoint is of the
// chains. The result's warnings contain the pilot's line if the posterior is not near the Gaussian. The details are
// *Details.
type Chains struct {
	Chains int // J; default 4
	Draws  int // kept for each chain; default 1000
	WarmUp int // transitions of each chain before the draws; default 1000, mcmc.NoWarmUp: none

	of *posterior // in place of the job's
}

var _ fit.Taker = Chains{}

// Takes implements fit.Taker.
func (Chains) Takes() fit.Takes { return fit.Takes{Density: true} }

// Title implements fit.Method.
func (Chains) Title() string {
	return "split HMC about a mode (Shahbaba, Lan, Johnson and Neal 2014), on a surrogate where a pilot finds that it pays"
}

// Prepare implements fit.Method.
func (c Chains) Prepare(j *fit.Job) (fit.Method, error) {
	err := limits.Fill("surrogate: Chains",
		limits.Int("Chains", &c.Chains, 4).From(1),
		limits.Int("Draws", &c.Draws, 1000).From(1),
		limits.Int("WarmUp", &c.WarmUp, 1000).From(0).Or(mcmc.NoWarmUp, "mcmc.NoWarmUp"),
	)
	return c, err
}

// Details of a run of Chains: fit.Details[*surrogate.Details](result).
type Details struct {
	Chains *mcmc.Details // the run that made the draws
	// Pilot is the decision for or against a surrogate, with its numbers, in one line; empty for a density of your own,
	// which has no rows.
	Pilot    string
	StepSize float64       // h, an angle
	Steps    int           // of a trajectory
	SetUp    time.Duration // before the chains: the mode, the Hessian, the pilot and the surrogate

	whitening *whitening
	pilot     *pilot
}

// Run implements fit.Method.
func (c Chains) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	began := time.Now()
	report := func(stage string) {
		if progress := j.Settings.Progress; progress != nil {
			progress(run.Progress{Stage: stage, Elapsed: time.Since(began)})
		}
	}
	quiet := *j // its mode and its pilot are found anew when a run resumes
	quiet.Checkpoint, quiet.Settings.Progress = "", nil
	p := &pilot{job: &quiet, chains: c.Chains}
	var err error
	if p.of, err = newPosterior(j, c.Chains); err != nil {
		return nil, err
	}
	if c.of != nil {
		p.of = *c.of
	}
	if p.w, err = p.of.whitened(ctx, j, report); err != nil {
		return nil, err
	}
	report("pilot")
	if err := p.decide(ctx); err != nil {
		return nil, err
	}
	problem, kernel := p.chosen()
	d := &Details{Pilot: p.reason, StepSize: kernel.StepSize, Steps: kernel.Steps, SetUp: time.Since(began),
		whitening: p.w, pilot: p}
	j.Choose("pilot", p.reason)
	j.Choose("kernel", kernel)
	result, err := j.RunStage(ctx, fit.Stage{
		Name: "sampling", Problem: problem,
		Method: mcmc.Chains{Kernel: kernel, Chains: c.Chains, Draws: c.Draws, WarmUp: c.WarmUp},
	})
	if result == nil {
		return nil, err
	}
	d.Chains = fit.Details[*mcmc.Details](result)
	result.Details = []any{d}
	result.Doubts.If(p.of.part != nil && !p.near(), "far from Gaussian", "%s", p.reason)
	return result, err
}

// whitened finds the mode and the coordinates.
func (of posterior) whitened(ctx context.Context, j *fit.Job, report func(stage string)) (*whitening, error) {
	p, err := newPlaces(ctx, j.Engine, of)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	report("mode")
	mode, err := p.climb(j.Seed)
	if err != nil {
		return nil, err
	}
	report("Hessian")
	return p.whiten(mode)
}
