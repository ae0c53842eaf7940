package mcmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/run"
)

// NoSurrogate as SplitSettings.Rows means none.
const NoSurrogate = -1

// SplitSettings of SampleSplit. The zero value works.
type SplitSettings struct {
	Settings                    // of the chains
	Search    ModeSettings      // of the mode
	Mode      []float64         // [D]; default: searched
	Whitening WhiteningSettings // of the coordinates
	Pilot     PilotSettings
	// Rows of the surrogate, m; default: a pilot chooses them, or none. NoSurrogate: none, and no pilot.
	Rows int
}

// SplitResult of SampleSplit.
type SplitResult struct {
	*Result
	Kernel    SplitHMC // that made the draws
	Whitening *Whitening
	Pilot     *Pilot // nil if Rows was set
	// SetUp is the time before the chains: the mode, the Hessian and the pilot. SetUpGradients are the gradients that the
	// mode and the Hessian took, in float64.
	SetUp          time.Duration
	SetUpGradients int
}

// SampleSplit samples a posterior near its mode by SplitHMC: it searches the mode, whitens by the Hessian there, runs
// a pilot that says whether a surrogate of a part of the rows pays, and samples with or without it. The problem's
// Start is where the mode is searched from, and not where chains begin: they begin about the mode, or where the pilot
// has come to.
//
// Progress has the stages "mode", "Hessian" and "pilot" before those of Sample. The result's warnings have the
// pilot's line if it decided against the surrogate because the posterior is not near the Gaussian, what NewWhitening
// notes, and Pilot.Sticky. Errors are those of FindMode, NewWhitening, NewPilot and Sample.
func SampleSplit(ctx context.Context, problem Problem, s SplitSettings) (*SplitResult, error) {
	began := time.Now()
	engine, err := s.Engine.Or()
	if err != nil {
		return nil, err
	}
	s.Engine = engine
	if s.Rows < NoSurrogate || s.Rows > problem.Rows {
		return nil, fmt.Errorf("mcmc: SplitSettings.Rows is %d: the data have %d, take from 1 to that (0: a pilot chooses, "+
			"NoSurrogate: none)", s.Rows, problem.Rows)
	}
	for _, owned := range []**compute.Engine{&s.Search.Engine, &s.Whitening.Engine, &s.Pilot.Engine} {
		*owned = engine
	}
	s.Search.Seed, s.Pilot.Seed, s.Pilot.DType = cmp.Or(s.Search.Seed, s.Seed), s.Seed, s.DType
	s.Pilot.Chains = cmp.Or(s.Chains, 4)

	result := &SplitResult{}
	p, err := newPlaces(ctx, engine, problem)
	if err != nil {
		return nil, err
	}
	tell := func(stage string) {
		if s.Progress != nil {
			s.Progress(run.Progress{Stage: stage, Elapsed: time.Since(began)})
		}
	}
	mode := s.Mode
	if mode == nil {
		tell("mode")
		mode, err = p.climb(problem, s.Search)
	}
	if err == nil {
		tell("Hessian")
		result.Whitening, err = p.whiten(mode, s.Whitening)
	}
	result.SetUpGradients = p.Gradients
	p.Close()
	if err != nil {
		return nil, err
	}
	problem.Start = nil
	tell("pilot")
	on, err := result.prepare(ctx, problem, s)
	if err != nil {
		return nil, err
	}
	result.SetUp = time.Since(began)
	result.Result, err = Sample(ctx, on, result.Kernel, s.Settings)
	if result.Result == nil {
		return nil, err
	}
	result.Warnings = append(result.Warnings, result.Whitening.Notes...)
	if pilot := result.Pilot; pilot != nil {
		if len(pilot.Tried) == 0 {
			result.Warnings = append(result.Warnings, pilot.Reason)
		}
		result.Warnings = append(result.Warnings, pilot.Sticky(result.Result, nil)...)
	}
	return result, err
}

// prepare chooses the kernel and gives the problem what it needs.
func (r *SplitResult) prepare(ctx context.Context, problem Problem, s SplitSettings) (on Problem, err error) {
	dtype, chains := cmp.Or(s.DType, compute.Float32), cmp.Or(s.Chains, 4)
	switch {
	case s.Rows > 0:
		if problem.Part == nil {
			return Problem{}, errors.New("mcmc: SplitSettings.Rows is set, but the problem has no Part")
		}
		part, err := problem.Part(s.Rows, r.Whitening.Mode)
		if err != nil {
			return Problem{}, err
		}
		r.Kernel = onSurrogate(part.Rows, part.Of)
		return r.Whitening.WithSurrogate(ctx, s.Engine, problem, part, chains, dtype, s.Seed)
	case s.Rows == NoSurrogate || problem.Part == nil:
		walk := &Pilot{problem: problem} // for the step
		if _, err := walk.walk(ctx, r.Whitening, s.Pilot.withDefaults(), false); err != nil {
			return Problem{}, err
		}
		on, r.Kernel = walk.Problem(r.Whitening, dtype)
		return on, nil
	}
	if r.Pilot, err = NewPilot(ctx, problem, r.Whitening, s.Pilot); err != nil {
		return Problem{}, err
	}
	on, r.Kernel = r.Pilot.Problem(r.Whitening, dtype)
	return on, nil
}
