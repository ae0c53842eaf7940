package mcmc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/stat"
)

// warming is a warm-up in progress. All chains step together: one that has completed its transition waits for the
// others, so that neither the step size nor the scales change within a trajectory. All numbers are finite, so that JSON
// holds them.
//
// A warm-up that tunes has the phases of Stan's (Stan reference manual, "Automatic parameter tuning"). A fast phase
// adapts the step size only. Slow windows follow, each twice as long as the one before: at the end of each the scales
// are set from its draws, and the step size is searched anew. A last fast phase ends the warm-up. In the first phase
// each chain has its own step size. Far out, where a chain may begin, the density can be so steep that it never accepts
// a step that suits the others. After that all chains share the step size and the scales, so every chain's draws serve
// all. The shared step size starts at the median of the chains' own.
type warming struct {
	Done    int       `json:"done"`    // transitions made, those of the searches not counted
	Last    []float64 `json:"last"`    // each chain's acceptance in the transition that it has ended last
	Waiting []bool    `json:"waiting"` // chains that have ended the transition that the others are in

	Tunes  bool       `json:"tunes"`
	Steps  []stepping `json:"steps,omitempty"` // each chain's own in the first phase, then one of all
	Window moments    `json:"window"`
}

// mean is the mean acceptance of the last transition.
func (w *warming) mean() float64 { return stat.Mean(w.Last, nil) }

// stepping chooses a step size: first by a rough search, to a factor of 2, then by dual averaging.
type stepping struct {
	StepSize float64       `json:"step_size"`
	Search   *stepSearch   `json:"search,omitempty"` // nil unless a search is running
	Average  dualAveraging `json:"average"`
}

// newStepping begins a search.
func newStepping(stepSize float64) stepping {
	return stepping{StepSize: stepSize, Search: &stepSearch{}}
}

// next adapts the step size to the acceptance of a transition. A search that fails is over; the step size stays as it
// was.
func (s *stepping) next(target, acceptance float64) error {
	if s.Search == nil {
		s.StepSize = s.Average.next(target, acceptance)
		return nil
	}
	next, found, err := s.Search.next(s.StepSize, acceptance)
	if err == nil {
		s.StepSize = next
	}
	if found || err != nil {
		s.Search, s.Average = nil, newDualAveraging(s.StepSize)
	}
	return err
}

// tunes says whether a warm-up chooses the step size.
func (c Chains) tunes() bool {
	t, ok := c.Kernel.(Tunable)
	if !ok || c.WarmUp <= 0 {
		return false
	}
	own, _ := t.Tune()
	return own == 0
}

// scales says whether the moves use scales of the coordinates.
func (c Chains) scales() bool {
	return len(c.Tuned.Scale) > 0 || c.tunes() && !c.FixedScale
}

func newWarming(c Chains, dim int) *warming {
	w := &warming{Waiting: make([]bool, c.Chains), Last: make([]float64, c.Chains), Tunes: c.tunes()}
	if !w.Tunes {
		return w
	}
	w.Window = newMoments(dim)
	for range c.Chains {
		w.Steps = append(w.Steps, newStepping(cmp.Or(c.Tuned.StepSize, 1)))
	}
	if ownPhase(c.WarmUp) == 0 {
		w.Steps = w.Steps[:1]
	}
	return w
}

// ownPhase is the number of transitions, of the n of a warm-up, in which each chain has a step size of its own: those
// before the first window, or half of a warm-up without windows.
func ownPhase(n int) int {
	begin, _ := slowWindows(n)
	return min(begin, n/2)
}

// stepSizes is each chain's step size now.
func (r *sampling) stepSizes() []float64 {
	steps := make([]float64, r.Chains.Chains)
	for chain := range steps {
		steps[chain] = r.position.Tuned.StepSize
		if r.Warming != nil && len(r.Warming.Steps) > 1 {
			steps[chain] = r.Warming.Steps[chain].StepSize
		}
	}
	return steps
}

// warm makes the moves of one call of the warm-up.
func (r *sampling) warm(ctx context.Context) error {
	w := r.Warming
	if w.Tunes && r.position.Tuned.StepSize == 0 {
		r.position.Tuned.StepSize = w.Steps[0].StepSize
	}
	moving := make([]bool, r.Chains.Chains)
	for chain := range moving {
		moving[chain] = !w.Waiting[chain]
	}
	t, made, err := r.advanceTogether(ctx, moving)
	if err != nil {
		return err
	}
	r.Move += made
	r.WarmUpMoves = r.Move
	left := 0
	for chain := range moving {
		switch {
		case !moving[chain]:
		case t.of(infoComplete, chain, 1) == 0:
			left++
		default:
			w.Waiting[chain] = true
			w.Last[chain] = finiteOr(t.of(infoSteadiness, chain, t.of(infoAcceptance, chain, 0)), 0)
		}
	}
	if left > 0 {
		return nil
	}
	clear(w.Waiting)
	if err := r.tune(); err != nil {
		return err
	}
	if w.Done == r.WarmUp {
		r.Warming, r.WarmUpTime = nil, r.at.Elapsed()
	}
	return nil
}

// advanceTogether makes the moves of one call of the chains that are in a transition, and says how many.
func (r *sampling) advanceTogether(ctx context.Context, moving []bool) (t moveRecord, made int, err error) {
	if r.lockStep == nil {
		t, err = r.moveOnce(ctx, moving)
		return t, 1, err
	}
	values, err := r.lockStep.Run(r.state, r.moveKey().Words(), uint32(r.Move), r.stepSizes(), moving)
	if err != nil {
		return moveRecord{}, 0, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	last := len(values) - 1
	return moveRecord{moves: r.moves, values: values[:last]}, int(values[last]), nil
}

// tune adapts step size and scales after a transition of all chains.
func (r *sampling) tune() error {
	w, tuned := r.Warming, &r.position.Tuned
	if !w.Tunes {
		w.Done++
		return nil
	}
	_, target := r.Kernel.(Tunable).Tune()
	var failed error
	failures, searching, steps, means := 0, false, []float64{}, []float64{}
	for i := range w.Steps {
		s, acceptance := &w.Steps[i], w.Last[i]
		if len(w.Steps) == 1 {
			acceptance = w.mean()
		}
		searching = searching || s.Search != nil
		if err := s.next(target, acceptance); err != nil {
			failed, failures = err, failures+1
		}
		steps, means = append(steps, s.StepSize), append(means, s.Average.mean())
	}
	if failures == len(w.Steps) {
		return failed
	}
	tuned.StepSize = stats.Median(steps)
	if searching {
		return nil
	}
	if w.Done++; w.Done == ownPhase(r.WarmUp) {
		tuned.StepSize = stats.Median(means)
		w.Steps = []stepping{newStepping(tuned.StepSize)}
		return nil
	}
	begin, ends := slowWindows(r.WarmUp)
	if !r.FixedScale && len(ends) > 0 && w.Done > begin && w.Done <= ends[len(ends)-1] {
		if err := r.state.Read(r.carrier.Phi(), w.Window.add); err != nil {
			return fmt.Errorf("mcmc: %w", err)
		}
		if slices.Contains(ends, w.Done) {
			tuned.Scale = w.Window.scales()
			r.setScale()
			w.Window = newMoments(r.problem.Dim)
			tuned.StepSize = means[0]
			w.Steps[0] = newStepping(tuned.StepSize)
			return nil
		}
	}
	if w.Done == r.WarmUp {
		tuned.StepSize = means[0]
	}
	return nil
}

// slowWindows divides a warm-up of n transitions as Stan does: the slow windows begin after the first `begin`
// transitions and end after those in ends. The first phase takes 75 transitions, the last 50, the first window 25, or
// 15, 10 and 75 % of a warm-up too short for that; one of fewer than 20 has no windows. If the transitions left would
// not suffice for the next window, a window takes them too.
func slowWindows(n int) (begin int, ends []int) {
	if n < 20 {
		return n, nil
	}
	begin, last, width := 75, 50, 25
	if n < begin+last+width {
		begin, last = n*15/100, n/10
		width = n - begin - last
	}
	for end := begin; end < n-last; {
		end += width
		if width *= 2; end+width > n-last {
			end = n - last
		}
		ends = append(ends, end)
	}
	return begin, ends
}

// stepSearch doubles or halves a step size until the acceptance crosses a half (Hoffman and Gelman 2014, algorithm 4,
// whose test of one leapfrog step is here a transition of all chains).
type stepSearch struct {
	Tries     int `json:"tries"`
	Direction int `json:"direction"` // 1: doubling, -1: halving, 0: undecided
}

func (s *stepSearch) next(stepSize, acceptance float64) (next float64, found bool, err error) {
	direction := 1
	if acceptance < 0.5 {
		direction = -1
	}
	if s.Direction == 0 {
		s.Direction = direction
	}
	if direction != s.Direction {
		return stepSize, true, nil
	}
	if s.Tries++; s.Tries > 50 {
		if direction > 0 {
			return 0, false, fmt.Errorf(
				"mcmc: no step size works: one of %.3g is still accepted with a mean probability of %.3g: is the target flat, and "+
					"so improper?", stepSize, acceptance,
			)
		}
		return 0, false, fmt.Errorf("mcmc: no step size works: one of %.3g is still accepted with a mean probability of "+
			"only %.3g: check the target for NaN and its gradient for a wrong sign", stepSize, acceptance)
	}
	return math.Ldexp(stepSize, direction), false, nil
}

// dualAveraging adapts the log step size to a wanted mean acceptance (Hoffman and Gelman 2014, section 3.2.1). A
// running mean of the lack of acceptance drives the search; an average of the log step sizes is the result. t0 and
// kappa are theirs. Their gamma, 0.05, and mu, log(10 h), suit the noisy acceptance of one chain. A mean over chains
// hardly varies, and there the step size would oscillate where acceptance falls steeply with it: 50 transitions of MALA
// end at an acceptance of 0.72 instead of 0.574. So gamma is 0.2 and mu log(2 h), after a search that has found h to a
// factor of 2. These end within 0.02 for kernels from the random walk to HMC, with one chain or many.
type dualAveraging struct {
	Centre  float64 `json:"centre"`  // mu: to which log step sizes shrink
	Steps   float64 `json:"steps"`   // t
	Error   float64 `json:"error"`   // H-bar: mean lack of acceptance
	Average float64 `json:"average"` // log of the averaged step size
	Log     float64 `json:"log"`     // of the step size now
}

func newDualAveraging(stepSize float64) dualAveraging {
	return dualAveraging{Centre: math.Log(2 * stepSize), Log: math.Log(stepSize)}
}

// next is the step size after a transition with the given acceptance.
func (a *dualAveraging) next(target, acceptance float64) float64 {
	const gamma, t0, kappa = 0.2, 10, 0.75
	a.Steps++
	a.Error += (target - acceptance - a.Error) / (a.Steps + t0)
	a.Log = a.Centre - math.Sqrt(a.Steps)/gamma*a.Error
	weight := math.Pow(a.Steps, -kappa)
	a.Average = weight*a.Log + (1-weight)*a.Average
	return math.Exp(a.Log)
}

// mean is the averaged step size, with which the draws are made.
func (a *dualAveraging) mean() float64 {
	if a.Steps == 0 {
		return math.Exp(a.Log)
	}
	return math.Exp(a.Average)
}
