package surrogate

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
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/stat"
)

// NoSurrogate, as the value of Settings.Rows, means that there is no surrogate.
const NoSurrogate = -1

// Settings are the settings of Sample. The zero value works.
type Settings struct {
	mcmc.Settings // of the chains, and of the pilot
	// Iterations is the largest number of iterations of the search for the mode, by L-BFGS; default 2000.
	Iterations int
	// Rows is m, the number of rows of the surrogate; default: a pilot chooses it, or no surrogate. NoSurrogate: no
	// surrogate and no pilot.
	Rows int

	mode   []float64 // [D], if it is known
	shares []float64 // m/N that a pilot tries
}

// withDefaults fills in what is zero and checks the rest.
func (s Settings) withDefaults(problem Problem) (Settings, error) {
	var err error
	if s.Engine, err = s.Engine.Or(); err != nil {
		return s, err
	}
	s.Chains, s.DType = cmp.Or(s.Chains, 4), cmp.Or(s.DType, compute.Float32)
	s.Iterations = cmp.Or(s.Iterations, 2000)
	if s.shares == nil {
		s.shares = pilotShares
	}
	return s, limits.Check("surrogate: Settings",
		limits.Field("Rows", s.Rows, s.Rows >= NoSurrogate && s.Rows <= problem.Rows,
			fmt.Sprintf("from 1 to the %d rows of the data (0: a pilot chooses, NoSurrogate: none)", problem.Rows)),
		limits.Field("Iterations", s.Iterations, s.Iterations >= 1, "at least 1 (0: the default, 2000)"),
		limits.Field("Chains", s.Chains, s.Chains >= 1, "at least 1 (0: the default, 4)"),
	)
}

// Result is the result of Sample.
type Result struct {
	// Result is the result of the chains. Its Warnings say what makes the draws doubtful, including faults of the mode,
	// the pilot and the surrogate. It is no warning that a surrogate was not used because it does not pay: String says so.
	*mcmc.Result
	Kernel    SplitHMC // that made the draws
	Whitening *Whitening
	Pilot     *Pilot // nil if Rows was set, or the problem has no Part
	// SetUp is the time before the chains: the mode, the Hessian, the pilot and the surrogate. SetUpCost counts the
	// evaluations in it; those for the mode, the Hessian and the surrogate are in float64.
	SetUp     time.Duration
	SetUpCost mcmc.Evaluations
}

// String is a summary: one line for the kernel, one for the set-up, one for the pilot's decision with its numbers
// (Pilot.Reason), if there was a pilot, and one for each warning.
func (r *Result) String() string {
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

// Sample samples a posterior near its mode by SplitHMC. It searches the mode and whitens by the Hessian there. A pilot
// decides whether a surrogate from a part of the rows pays, and Sample samples with or without it. The search begins at
// the problem's Start. The chains do not: they begin around the mode, or at the last states of the pilot.
//
// Progress has the stages "mode", "Hessian" and "pilot" before those of Sample. The result's warnings contain the
// pilot's line if it decided against the surrogate because the posterior is not near the Gaussian, and the notes of the
// Whitening. For a run on a surrogate they also say where it is worse than predicted, by the parameters' effective
// sample sizes too (of at most 200, evenly spaced). Errors wrap ErrNoMode if no mode was found.
func Sample(ctx context.Context, problem Problem, s Settings) (*Result, error) {
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
	result := &Result{}
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
	result.Result, err = mcmc.Sample(ctx, on, result.Kernel, s.Settings)
	if result.Result == nil {
		return nil, err
	}
	result.warn()
	return result, err
}

// whiten finds the mode and the coordinates.
func (r *Result) whiten(ctx context.Context, problem Problem, s Settings, tell func(stage string)) error {
	p, err := newPlaces(ctx, s.Engine, problem)
	if err != nil {
		return err
	}
	defer r.finish(p)
	mode := s.mode
	if mode == nil {
		tell("mode")
		if mode, err = p.climb(s.Seed, s.Iterations); err != nil {
			return err
		}
	}
	tell("Hessian")
	r.Whitening, err = p.whiten(mode)
	return err
}

// finish adds what places has evaluated to the cost of the set-up, and closes it.
func (r *Result) finish(p *places) {
	r.SetUpCost = r.SetUpCost.Plus(mcmc.Evaluations{Full: p.Forwards, FullGradients: p.Gradients})
	p.Close()
}

// prepare chooses the kernel, and returns the problem with the whitening, the starting points and, if there is one, the
// surrogate.
func (r *Result) prepare(
	ctx context.Context, problem Problem, s Settings,
) (on density.Problem, err error) {
	switch {
	case s.Rows > 0:
		if problem.Part == nil {
			return density.Problem{}, errors.New("surrogate: Settings.Rows is set, but the problem has no Part")
		}
		part, err := problem.Part(s.Rows, r.Whitening.Mode)
		if err != nil {
			return density.Problem{}, err
		}
		c, err := r.Whitening.expand(ctx, s.Engine, problem.Problem, part)
		if err != nil {
			return density.Problem{}, err
		}
		r.Kernel, r.SetUpCost = onSurrogate(part.Rows, part.Of), r.SetUpCost.Plus(c.cost())
		problem.Start = r.Whitening.starts(s.Chains, s.DType, s.Seed)
		return c.on(problem.Problem, s.DType), nil
	case s.Rows == NoSurrogate || problem.Part == nil:
		walk := &Pilot{problem: problem} // to find the step
		if _, err := walk.walk(ctx, r.Whitening, s, false); err != nil {
			return density.Problem{}, err
		}
		r.SetUpCost = r.SetUpCost.Plus(walk.cost)
		on, r.Kernel = walk.chose(r.Whitening, s.DType)
		return on, nil
	}
	if r.Pilot, err = newPilot(ctx, problem, r.Whitening, s); err != nil {
		return density.Problem{}, err
	}
	r.SetUpCost = r.SetUpCost.Plus(r.Pilot.cost)
	on, r.Kernel = r.Pilot.chose(r.Whitening, s.DType)
	return on, nil
}

// warn adds the faults of the mode, the pilot and the surrogate that make the draws doubtful.
func (r *Result) warn() {
	r.Warnings = append(r.Warnings, r.Whitening.notes...)
	if r.Pilot != nil && !r.Pilot.near() {
		r.Warnings = append(r.Warnings, r.Pilot.Reason)
	}
	if r.Kernel.OnSurrogate {
		r.Warnings = append(r.Warnings, sticky(r.Result, r.predicted(), effectiveSizes(r.Draws))...)
	}
}

// predicted is the acceptance on the surrogate that the pilot has predicted; 0 if there was none.
func (r *Result) predicted() float64 {
	if r.Pilot != nil {
		for _, t := range r.Pilot.Tried {
			if t.Rows == r.Pilot.Rows {
				return t.Predicted
			}
		}
	}
	return 0
}

// mostSized is the largest number of coordinates that effectiveSizes looks at.
const mostSized = 200

// effectiveSizes returns the effective sample sizes of at most 200 coordinates, evenly spaced. Nil if a chain has fewer
// than 4 draws.
func effectiveSizes(d *mcmc.Draws) (sizes []float64) {
	if d.PerChain < 4 {
		return nil
	}
	count := min(mostSized, d.Dim)
	for i := range count {
		sizes = append(sizes, effectiveSize(d.Coordinate(i*d.Dim/count)))
	}
	return sizes
}

// effectiveSize is the smaller one of the effective sample sizes of a coordinate's mean and of its variance, at most
// the number of draws.
func effectiveSize(chains [][]float64) float64 {
	half := len(chains[0]) / 2
	var values, squares []float64 // of half chains
	for _, chain := range chains {
		values = slices.Concat(values, chain[:half], chain[len(chain)-half:])
	}
	mean := stat.Mean(values, nil)
	for _, v := range values {
		squares = append(squares, (v-mean)*(v-mean))
	}
	var e stats.ESS
	return min(e.Mean(values, half), e.Mean(squares, half), float64(len(values)))
}
