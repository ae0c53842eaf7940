package smc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// machine is a run in progress: the compiled stages, the state on the device, and the position in the sequence.
type machine struct {
	*fit.Job
	Tempered
	problem  density.Problem
	session  *run.Run
	stages   *programs
	giveBack func() // of the stages
	state    *compute.State
	kept     map[string]*tensors.Tensor // of a checkpoint, until there is a state
	folded   bool                       // Problem.Start need not be spread as LogPrior is: see Folded
	seed     uint64                     // of the random numbers
	part     bool                       // of a RunTo
	rungs    int                        // the powers of the Ladder that it goes to; 0: to the posterior
	position
	Trace []StepRecord
}

// stage names the work of the next call of Step.
type stage string

const (
	toWeigh   stage = "weigh"
	toRestart stage = "restart"
	toMove    stage = "move"
	toScout   stage = "scout"
	stalled   stage = "stalled" // the ladder has come to an end, at which a resumed run ends again
	finished  stage = "finished"
)

// Begin prepares the stages, puts the data on the device, and draws particles from the prior unless a checkpoint has
// some.
func (m *machine) Begin(context.Context) error {
	var err error
	if m.stages, m.giveBack, err = m.compiled(); err != nil {
		return err
	}
	sharding := compute.Sharding{Devices: m.Devices, Particles: m.stages.Sharded()}
	if m.state, err = compute.NewShardedState(m.Engine, sharding); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	if err := m.problem.Load(m.state); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	if start := m.problem.Start; start != nil {
		local, err := start.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("smc: Problem.Start: %w", err)
		}
		m.state.Set(startName, local)
	}
	if m.kept != nil {
		return m.adopt()
	}
	if m.tunes() {
		own, _ := m.Kernel.(mcmc.Tunable).Tune()
		m.position.StepSize = cmp.Or(own, 2.38/math.Sqrt(float64(m.problem.Dim)))
	}
	if m.steers() {
		m.Trajectory.Length = shortest
	}
	m.Next = toWeigh
	if !m.stages.tried {
		if err := m.tryTarget(m.state); err != nil {
			return fmt.Errorf("smc: %w", err)
		}
		m.stages.tried = true
	}
	if err := m.stages.Start(m.state, m.counter(1), m.seed); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	return nil
}

// Step makes one call to the device: a weighing with its resampling, the evaluation of what the kernel carries, or some
// moves; or, at the end, it sends out scouts.
func (m *machine) Step(context.Context) error {
	begun := time.Now()
	var err error
	switch m.Next {
	case toWeigh:
		err = m.weigh()
	case toRestart:
		m.Evaluations += m.chains()
		err = m.stages.Restart(m.state, m.Place, m.counter(1), m.seed)
		m.Next = toMove
	case toMove:
		err = m.move()
	case toScout:
		err = m.scout()
	case stalled:
		err = m.stall()
	}
	if n := len(m.Trace); n > 0 {
		m.Trace[n-1].Seconds += time.Since(begun).Seconds()
	}
	if err != nil {
		return fmt.Errorf("smc: at power %.4g: %w", m.Place, err)
	}
	return m.observe()
}

// weigh takes in the next part of the likelihood, and resamples: always on a ladder that the particles choose, at the
// end, and for waste-free chains on a given ladder; otherwise if the weights have become too unequal.
func (m *machine) weigh() error {
	step, most, resampling := 0., 1-m.Place, always
	next := 1.
	if len(m.Ladder) > 0 {
		next = m.Ladder[m.Rung]
		step = next - m.Place
		if next < 1 && !m.stages.wasteFree() {
			resampling = IfNeeded
		}
	}
	m.Evaluations += m.Particles
	w, err := m.stages.Weigh(m.state, Weighing{
		Place: m.Place, Resampling: resampling, step: step, most: most, last: m.Drift.Step,
	}, m.counter(1), m.seed)
	if err != nil {
		return err
	}
	if len(m.Ladder) == 0 && w.step < most {
		next = m.Place + w.step
	}
	m.Place, m.Rung = next, m.Rung+1
	m.LogEvidence += w.Increment
	m.Genealogy.Add(w)
	m.Drift.add(w)
	m.Trace = append(m.Trace, StepRecord{
		Place: m.Place, LogEvidence: w.Increment, ESS: w.ESS, Ancestors: w.Ancestors,
		First: 1 / w.families, Resampled: w.Resampled, NonFinite: w.NonFinite, StepSize: m.position.StepSize,
		Acceptance: math.NaN(), Drift: m.Drift.Sum,
	})
	if math.IsInf(w.Increment, -1) || math.IsNaN(w.Increment) {
		return fmt.Errorf("%w: %d of %d particles have a log-likelihood that is not finite; check the data for outliers, "+
			"or take more particles", bayes.ErrZeroWeights, w.NonFinite, m.Particles)
	}
	m.Transition, m.Slot, m.Going, m.Halfway = 0, 1, false, 0
	if m.Next = toRestart; m.stages.CarriesDensity() {
		m.Next = toMove
	}
	if m.stalls(w) && w.step < most {
		m.Next = stalled
		return m.stall()
	}
	return nil
}

// stall is the error of a ladder whose last step was the smallest there is.
func (m *machine) stall() error {
	return run.Stop(fmt.Errorf("the ladder stalls: a step of the power by %.2g already leaves an effective sample size "+
		"of %.1f of %d, where Threshold asks for %.4g; take more particles, or a likelihood without cliffs", m.Drift.Step,
		m.Trace[len(m.Trace)-1].ESS, m.Particles, m.Threshold*float64(m.Particles)))
}

// fewest is the effective sample size below which one particle has nearly all the weight.
const fewest = 1.5

// stalls says whether a ladder that the particles choose cannot go on. Either no step of the power is small enough to
// leave more than one particle with weight, or the step no longer changes the power in floating point.
func (m *machine) stalls(w Weighed) bool {
	if len(m.Ladder) > 0 {
		return false
	}
	alone := w.ESS < min(fewest, .99*m.Threshold*float64(m.Particles))
	return alone || w.step > 0 && m.Place-w.step == m.Place
}

// gain times (acceptance - wanted acceptance) is the correction of the log step size. Near the best step size, in many
// dimensions, acceptance falls with the log step size with a slope of .5 (a random walk), 1.2 (MALA) and .4 (HMC). So
// one correction leaves .3, -.7 and .4 of the error, and repeated ones converge.
const gain = 1.4

// move makes transitions of the chains, and adapts the step size to their acceptance.
func (m *machine) move() error {
	last := &m.Trace[len(m.Trace)-1]
	made := m.stages.PerCall
	moved, err := m.stages.Move(m.state, Moves{
		Place: m.Place, Begin: !m.Going, number: m.Transitions, first: last.Transitions == 0 && !m.Going, slot: m.Slot,
		stepSize: m.position.StepSize, steps: trajectorySteps(m.Trajectory.Length, last.Transitions),
	}, m.counter(made), m.seed)
	if err != nil {
		return err
	}
	m.Evaluations += m.chains() * made
	last.Rejected += moved.nonFinite
	last.Divergent += moved.divergent
	m.Sum, m.Full = m.Sum+moved.Acceptance, m.Full+moved.full
	m.Trajectory.Jump += moved.squaredJump
	m.Trajectory.Growth += moved.jumpGrowth
	if m.Going = moved.Unfinished > 0; m.Going {
		return nil
	}
	before := 0.
	if last.Transitions > 0 { // else it is NaN
		before = last.Acceptance * float64(last.Transitions)
	}
	last.Acceptance = (before + m.Sum) / float64(last.Transitions+made)
	last.Transitions += made
	m.Transitions += made
	last.StepSize, last.Correlation, last.Unmoved = m.position.StepSize, moved.correlation, moved.unmoved
	last.Steps = int(math.Round(m.Trajectory.Length))
	if wanted, ok := m.adapts(); ok {
		m.position.StepSize *= math.Exp(gain * (m.Full/float64(made) - wanted))
	}
	m.Sum, m.Full = 0, 0
	if m.Transition += made; !m.enough(moved) {
		return nil
	}
	m.Transition = 0
	if m.Slot++; m.Slot < m.WasteFree {
		return nil
	}
	if m.steers() {
		m.Trajectory.adapt()
	}
	switch {
	case m.Place < 1:
		m.Next = toWeigh
	case m.scouts():
		m.Next = toScout
	default:
		m.Next = finished
	}
	return nil
}

// trajectory is the length of the trajectories of a Steered kernel, and what is needed to choose it. The best length
// has the largest expected squared jump for each gradient (Pasarica and Gelman 2010; within SMC: Buchholz, Chopin and
// Jacob 2021). There, a trajectory that is longer by a percent, and so costs a percent more, has a squared jump that is
// larger by a percent. A length is chosen after the moves at each temperature, for the next: it depends on earlier
// temperatures only, so that the moves leave their distribution invariant.
type trajectory struct {
	Length float64 `json:"length"` // in steps, not rounded
	Jump   float64 `json:"jump"`   // sum of the squared jumps at this temperature
	Growth float64 `json:"growth"` // sum of their derivatives with respect to the logarithm of the length
}

// shortest and longest bound the length of trajectories, which is shortest at first. The lower bound is needed because
// jumps say nothing of a region that no particle has found yet. With trajectories down to 3 steps the log evidence of
// TestStatesWhatIsMissingLong's curve was .36 too low with 1000 particles, with at least 15 it was .13, for a quarter
// more gradients.
const shortest, longest = 15, 100

// adapt chooses the length for the next temperature: longer if a percent more length gives more than a percent more
// squared jump, that is if growth/jump is above 1. It multiplies by the square root of this ratio, within 1/2 to 2: on
// a round Gaussian the ratio falls, near 1, by 1.2 times the increase of the log length, so that the root settles at
// once, where the ratio itself would swing.
func (t *trajectory) adapt() {
	longer := 1.
	if t.Jump > 0 {
		longer = math.Sqrt(max(.25, min(4, t.Growth/t.Jump)))
	}
	*t = trajectory{Length: max(shortest, min(longest, t.Length*longer))}
}

// firstLook and plateau decide when a correlation no longer falls: it lost less than a tenth while the number of
// transitions doubled, from 20 on. If it still decays as exp(-t/tau), tau is above 190 transitions.
const firstLook, plateau = 20, 0.9

// mostUnmoved is the share of particles that may have stayed where resampling put them once there were enough moves.
const mostUnmoved = 0.01

// enough says whether there were enough transitions since the resampling, or for waste-free chains since the last kept
// state. A correlation that no longer falls means that the kernel does not leave its modes, and more moves do not help.
func (m *machine) enough(moved Moved) bool {
	if m.Moves > 0 {
		return m.Transition >= m.Moves
	}
	correlation := moved.correlation
	if correlation <= enoughForgotten && float64(moved.unmoved) <= mostUnmoved*float64(m.chains()) ||
		m.Transition >= mostMoves {
		return true
	}
	look := firstLook
	for look < m.Transition {
		look *= 2
	}
	if look != m.Transition {
		return false
	}
	stalls := look > firstLook && correlation > plateau*m.Halfway
	m.Halfway = correlation
	return stalls
}

// counter gives the next call its own part of the stream of random numbers; a call that makes several draws, one for
// each transition, gets as many.
func (m *machine) counter(draws int) Counter {
	at := Counter{Call: m.Calls}
	m.Calls += uint32(draws)
	return at
}

// tunes says whether moves take a step size.
func (m *machine) tunes() bool {
	_, ok := m.Kernel.(mcmc.Tunable)
	return ok
}

// adapts says whether the kernel leaves its step size to the sampler, and at what mean acceptance the sampler then
// aims.
func (m *machine) adapts() (acceptance float64, ok bool) {
	k, ok := m.Kernel.(mcmc.Tunable)
	if !ok {
		return 0, false
	}
	own, acceptance := k.Tune()
	return acceptance, own == 0
}

// steers says whether the kernel leaves the length of its trajectories to the sampler.
func (m *machine) steers() bool {
	k, ok := m.Kernel.(mcmc.Steered)
	return ok && k.Length() == 0
}

// Status is run.Completed once the particles were moved under the posterior, or a RunTo has weighed its last power.
func (m *machine) Status() run.Status {
	there := m.rungs > 0 && m.Rung == m.rungs && m.Next != toWeigh && m.Trace[len(m.Trace)-1].Transitions == 0 && !m.Going
	if m.Next == finished || there {
		return run.Completed
	}
	return ""
}

// Progress reports the power that is reached, and the scores.
func (m *machine) Progress() run.Progress {
	p := run.Progress{Stage: "likelihood tempering", Step: len(m.Trace), Steps: len(m.Ladder)}
	p.Scores = []run.Score{{Name: "power", Value: m.Place}, {Name: "log evidence", Value: m.LogEvidence}}
	if n := len(m.Trace); n > 0 {
		last := m.Trace[n-1]
		p.Scores = append(p.Scores, run.Score{Name: "ESS", Value: last.ESS})
		if last.Transitions > 0 {
			p.Scores = append(p.Scores, run.Score{Name: "acceptance", Value: last.Acceptance})
		}
	}
	return p
}

func (m *machine) close() {
	if m.state != nil {
		m.state.Close()
	}
	if m.giveBack != nil {
		m.giveBack()
	}
}
