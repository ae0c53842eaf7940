package mcmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/stat"
)

// NoSurrogate, as the value of SplitSettings.Rows, means that there is no surrogate.
const NoSurrogate = -1

// SplitSettings are the settings of SampleSplit. The zero value works.
type SplitSettings struct {
	Settings // of the chains
	// Search are the settings of the search for the mode, Whitening those of the coordinates. Their engines, and
	// Search.Seed, are by default those of the chains.
	Search    ModeSettings
	Mode      []float64 // [D]; default: searched
	Whitening WhiteningSettings
	// Pilot are the settings of the pilot that chooses the surrogate, or only the step if there is no surrogate. Its Seed
	// and Engine are by default those of the chains. Its Chains and DType are always those of the chains, which begin
	// where the pilot's end: other values are an error, as are Shares if no pilot chooses Rows.
	Pilot PilotSettings
	// Rows is m, the number of rows of the surrogate; default: a pilot chooses it, or no surrogate. NoSurrogate: no
	// surrogate and no pilot.
	Rows int
}

// withDefaults gives the settings of the search, the whitening and the pilot their defaults from those of the chains,
// and checks that they agree.
func (s SplitSettings) withDefaults(problem SplitProblem) (SplitSettings, error) {
	var err error
	if s.Engine, err = s.Engine.Or(); err != nil {
		return s, err
	}
	s.Chains, s.DType = cmp.Or(s.Chains, 4), cmp.Or(s.DType, compute.Float32)
	s.Search.Engine, s.Search.Seed = cmp.Or(s.Search.Engine, s.Engine), cmp.Or(s.Search.Seed, s.Seed)
	s.Whitening.Engine = cmp.Or(s.Whitening.Engine, s.Engine)
	pilot := &s.Pilot
	pilot.Engine, pilot.Seed = cmp.Or(pilot.Engine, s.Engine), cmp.Or(pilot.Seed, s.Seed)
	pilot.Chains, pilot.DType = cmp.Or(pilot.Chains, s.Chains), cmp.Or(pilot.DType, s.DType)
	const alike = " of the chains, which begin where the pilot's end: leave it out, or set both alike"
	return s, limits.Check("mcmc: SplitSettings",
		limits.Field("Rows", s.Rows, s.Rows >= NoSurrogate && s.Rows <= problem.Rows,
			fmt.Sprintf("from 1 to the %d rows of the data (0: a pilot chooses, NoSurrogate: none)", problem.Rows)),
		limits.Field("Pilot.Chains", pilot.Chains, pilot.Chains == s.Chains, fmt.Sprintf("the %d%s", s.Chains, alike)),
		limits.Field("Pilot.DType", pilot.DType, pilot.DType == s.DType, fmt.Sprintf("the %v%s", s.DType, alike)),
		limits.Field("Pilot.Shares", pilot.Shares, len(pilot.Shares) == 0 || s.Rows == 0,
			fmt.Sprintf("left out where Rows is set, which is %d: no pilot chooses among them", s.Rows)),
	)
}

// SplitResult is the result of SampleSplit.
type SplitResult struct {
	// Result is the result of the chains. Its Warnings say what makes the draws doubtful, including faults of the mode,
	// the pilot and the surrogate. It is no warning that a surrogate was not used because it does not pay: String says so.
	*Result
	Kernel    SplitHMC // that made the draws
	Whitening *Whitening
	Pilot     *Pilot // nil if Rows was set, or the problem has no Part
	// SetUp is the time before the chains: the mode, the Hessian, the pilot and the surrogate. SetUpCost counts the
	// evaluations in it; those for the mode, the Hessian and the surrogate are in float64.
	SetUp     time.Duration
	SetUpCost Evaluations
}

// String is a summary: one line for the kernel, one for the set-up, one for the pilot's decision with its numbers
// (Pilot.Reason), if there was a pilot, and one for each warning.
func (r *SplitResult) String() string {
	on := "the target's gradient"
	if r.Kernel.OnSurrogate {
		on = fmt.Sprintf("a surrogate of %.3g of the rows", r.Kernel.Share)
	}
	lines := []string{
		fmt.Sprintf("%d chains of %d draws, %d steps of %.3g on %s: acceptance %.2g, %.4g full forwards", r.Draws.Chains,
			r.Draws.PerChain, r.Kernel.Steps, r.Kernel.StepSize, on, acceptanceOf(r.Result), r.Evaluations.Forwards()),
		fmt.Sprintf("set-up: %.4g full forwards in %.3g s", r.SetUpCost.Forwards(), r.SetUp.Seconds()),
	}
	if r.Pilot != nil {
		lines = append(lines, r.Pilot.String())
	}
	for _, w := range r.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}

// SampleSplit samples a posterior near its mode by SplitHMC: it searches the mode, whitens by the Hessian there, runs a
// pilot that says whether a surrogate from a part of the rows pays, and samples with or without it. The search begins
// at the problem's Start. The chains do not: they begin around the mode, or at the last states of the pilot.
//
// Progress has the stages "mode", "Hessian" and "pilot" before those of Sample. The result's warnings contain the
// pilot's line if it decided against the surrogate because the posterior is not near the Gaussian, the notes of
// NewWhitening and, for a run on a surrogate, what Pilot.Sticky says given the effective sample sizes of the parameters
// (of at most 200, evenly spaced; with Rows set there is no prediction to compare the acceptance with). Errors are
// those of FindMode, NewWhitening, NewPilot and Sample, and of settings that contradict each other.
func SampleSplit(ctx context.Context, problem SplitProblem, s SplitSettings) (*SplitResult, error) {
	began := time.Now()
	s, err := s.withDefaults(problem)
	if err != nil {
		return nil, err
	}
	tell := func(stage string) {
		if s.Progress != nil {
			s.Progress(run.Progress{Stage: stage, Elapsed: time.Since(began)})
		}
	}
	result := &SplitResult{}
	if err := result.whiten(ctx, problem, s, tell); err != nil {
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
	result.warn()
	return result, err
}

// whiten finds the mode and the coordinates. If both use the same engine, the rows are put on the device once for both.
func (r *SplitResult) whiten(
	ctx context.Context, problem SplitProblem, s SplitSettings, tell func(stage string),
) (err error) {
	mode := s.Mode
	var p *places
	use := func(engine *compute.Engine) (err error) {
		if p != nil && p.engine == engine {
			return nil
		}
		if p != nil {
			r.finish(p)
		}
		p, err = newPlaces(ctx, engine, problem)
		return err
	}
	defer func() {
		if p != nil {
			r.finish(p)
		}
	}()
	if mode == nil {
		if err := use(s.Search.Engine); err != nil {
			return err
		}
		tell("mode")
		if mode, err = p.climb(problem.Problem, s.Search); err != nil {
			return err
		}
	}
	if err := use(s.Whitening.Engine); err != nil {
		return err
	}
	tell("Hessian")
	r.Whitening, err = p.whiten(mode, s.Whitening)
	return err
}

// finish adds what places has evaluated to the cost of the set-up, and closes it.
func (r *SplitResult) finish(p *places) {
	r.SetUpCost = r.SetUpCost.plus(Evaluations{Full: p.Forwards, FullGradients: p.Gradients})
	p.Close()
}

// prepare chooses the kernel, and returns the problem with the whitening, the starting points and, if there is one, the
// surrogate.
func (r *SplitResult) prepare(
	ctx context.Context, problem SplitProblem, s SplitSettings,
) (on density.Problem, err error) {
	switch {
	case s.Rows > 0:
		if problem.Part == nil {
			return density.Problem{}, errors.New("mcmc: SplitSettings.Rows is set, but the problem has no Part")
		}
		part, err := problem.Part(s.Rows, r.Whitening.Mode)
		if err != nil {
			return density.Problem{}, err
		}
		c, err := r.Whitening.expand(ctx, s.Engine, problem.Problem, part)
		if err != nil {
			return density.Problem{}, err
		}
		r.Kernel, r.SetUpCost = onSurrogate(part.Rows, part.Of), r.SetUpCost.plus(c.cost())
		problem.Start = r.Whitening.starts(s.Chains, s.DType, s.Seed)
		return c.on(problem.Problem, s.DType), nil
	case s.Rows == NoSurrogate || problem.Part == nil:
		walk := &Pilot{problem: problem} // to find the step
		if _, err := walk.walk(ctx, r.Whitening, s.Pilot.withDefaults(), false); err != nil {
			return density.Problem{}, err
		}
		r.SetUpCost = r.SetUpCost.plus(walk.Cost)
		on, r.Kernel = walk.Problem(r.Whitening, s.DType)
		return on, nil
	}
	if r.Pilot, err = NewPilot(ctx, problem, r.Whitening, s.Pilot); err != nil {
		return density.Problem{}, err
	}
	r.SetUpCost = r.SetUpCost.plus(r.Pilot.Cost)
	on, r.Kernel = r.Pilot.Problem(r.Whitening, s.DType)
	return on, nil
}

// warn adds the faults of the mode, the pilot and the surrogate that make the draws doubtful.
func (r *SplitResult) warn() {
	r.Warnings = append(r.Warnings, r.Whitening.Notes...)
	if r.Pilot != nil && !r.Pilot.near() {
		r.Warnings = append(r.Warnings, r.Pilot.Reason)
	}
	switch {
	case !r.Kernel.OnSurrogate:
	case r.Pilot == nil:
		r.Warnings = append(r.Warnings, sticky(r.Result, 0, effectiveSizes(r.Draws))...)
	default:
		r.Warnings = append(r.Warnings, r.Pilot.Sticky(r.Result, effectiveSizes(r.Draws))...)
	}
}

// mostSized is the largest number of coordinates that effectiveSizes looks at.
const mostSized = 200

// effectiveSizes are the effective sample sizes of at most 200 coordinates, evenly spaced. Each is the smaller one of
// those of the mean and of the variance, at most the number of draws. Nil if a chain has fewer than 4 draws.
func effectiveSizes(d *Draws) (sizes []float64) {
	half := d.PerChain / 2
	if half < 2 {
		return nil
	}
	var e stats.ESS
	count := min(mostSized, d.Dim)
	for i := range count {
		var values, squares []float64 // of half chains
		for _, chain := range d.Coordinate(i * d.Dim / count) {
			values = slices.Concat(values, chain[:half], chain[d.PerChain-half:])
		}
		mean := stat.Mean(values, nil)
		for _, v := range values {
			squares = append(squares, (v-mean)*(v-mean))
		}
		sizes = append(sizes, min(e.Mean(values, half), e.Mean(squares, half), float64(len(values))))
	}
	return sizes
}
