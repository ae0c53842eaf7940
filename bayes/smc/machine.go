package smc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// machine is a run in progress: the compiled stages, and the position in the sequence of distributions.
type machine struct {
	*fit.Job
	Tempered
	stages  *Stages
	problem density.Problem
	folded  bool       // Problem.Start need not be spread as LogPrior is: see folded
	key     random.Key // of the random numbers
	part    bool       // of a RunTo
	rungs   int        // the powers of the Ladder that it goes to; 0: to the posterior
	resumed bool       // from a checkpoint
	position
}

// position is where a run stands, without the state on the device and the records.
type position struct {
	Next        stage      `json:"next"`         // what the next call does
	Place       float64    `json:"place"`        // the power that is reached
	Rung        int        `json:"rung"`         // number of the ladder's powers that are reached
	Calls       uint32     `json:"calls"`        // made so far: the counter of the random numbers
	Transition  int        `json:"transition"`   // made since the last resampling
	Halfway     float64    `json:"halfway"`      // correlation at the last look for a plateau, see enough
	Going       bool       `json:"going"`        // a transition of several moves is not complete
	Slot        int        `json:"slot"`         // of a waste-free chain: number of the next state that is kept
	StepSize    float64    `json:"step_size"`    // now
	Trajectory  trajectory `json:"trajectory"`   // of a Steered kernel
	LogEvidence float64    `json:"log_evidence"` // so far
	Genealogy   Genealogy  `json:"genealogy"`    // for its standard error
	Drift       drift      `json:"drift"`        // likewise: what the moves changed
	Evaluations int        `json:"evaluations"`  // of the likelihood of one particle
	Transitions int        `json:"transitions"`  // made in the whole run
	Sum         float64    `json:"sum"`          // of the acceptance, over the moves of the transitions in progress
	Full        float64    `json:"full"`         // the same of particles with full steps
	Repeated    string     `json:"repeated"`     // mcmc.Carrier.RepeatedDraws
}

// Keep implements fit.Keeper.
func (m *machine) Keep() (any, map[string]*tensors.Tensor, error) { return m.position, nil, nil }

// Adopt implements fit.Keeper.
func (m *machine) Adopt(head json.RawMessage, _ map[string]*tensors.Tensor) error {
	m.resumed = true
	if err := json.Unmarshal(head, &m.position); err != nil {
		return err
	}
	if m.rungs > 0 && m.Rung > m.rungs {
		return fmt.Errorf("it has come to %d powers of the Ladder, further than RunTo %d", m.Rung, m.rungs)
	}
	return nil
}

// stage names the work of the next call of Step.
type stage string

const (
	toWeigh   stage = "weigh"
	toRestart stage = "restart"
	toMove    stage = "move"
	stalled   stage = "stalled" // the ladder has come to an end, at which a resumed run ends again
	finished  stage = "finished"
)

// loop declares the run. A step is a temperature: its weighing and its moves, of which each call to the device makes a
// part.
func (m *machine) loop() *fit.Loop[StepRecord] {
	return &fit.Loop[StepRecord]{
		Format: "gobnn.smc/7", Begin: m.begin, Step: m.step, Done: m.done, Host: m,
		Data: []string{density.DataPrefix, startName}, Progress: m.progress, ObserveEvery: 1, Result: m.result,
	}
}

// begin prepares the stages, puts the data on the device, and draws particles from the prior unless a checkpoint has
// some.
func (m *machine) begin(context.Context) (state *compute.State, release func(), err error) {
	if m.stages, release, err = m.compiled(); err != nil {
		return nil, nil, err
	}
	sharding := compute.Sharding{Devices: m.Devices, Particles: m.stages.Sharded()}
	if state, err = compute.NewShardedState(m.Engine, sharding); err == nil {
		err = m.fill(state)
	}
	if err != nil {
		return state, release, fmt.Errorf("smc: %w", err)
	}
	return state, release, nil
}

// fill puts the data and, of a new run, the first particles into a state.
func (m *machine) fill(state *compute.State) error {
	if err := m.problem.Load(state); err != nil {
		return err
	}
	if start := m.problem.Start; start != nil {
		local, err := start.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("Problem.Start: %w", err)
		}
		state.Set(startName, local)
	}
	if m.resumed {
		return nil
	}
	if k, ok := m.Kernel.(mcmc.Tunable); ok {
		own, _ := k.Tune()
		m.position.StepSize = cmp.Or(own, 2.38/math.Sqrt(float64(m.problem.Dim)))
	}
	if m.steers() {
		m.Trajectory.Length = shortest
	}
	m.Next, m.Repeated = toWeigh, m.stages.carrier.RepeatedDraws()
	m.calls(1)
	return m.stages.Start(state, m.numbers())
}

// step makes one call to the device: a weighing with its resampling, the evaluation of what the kernel carries, or some
// moves.
func (m *machine) step(_ context.Context, at *fit.Trail[StepRecord]) error {
	var err error
	switch m.Next {
	case toWeigh:
		err = m.weigh(at)
	case toRestart:
		m.Evaluations += m.chains()
		err = m.stages.Restart(at.State(), m.Place, m.numbers().At(m.calls(1)))
		m.Next = toMove
	case toMove:
		err = m.move(at)
	case stalled:
		err = m.stall(at)
	}
	if err != nil {
		return fmt.Errorf("smc: at power %.4g: %w", m.Place, err)
	}
	return nil
}

// weigh takes in the next part of the likelihood, and resamples: always on a ladder that the particles choose, at the
// end, and for waste-free chains on a given ladder; otherwise if the weights have become too unequal.
func (m *machine) weigh(at *fit.Trail[StepRecord]) error {
	take := weighing{place: m.Place, share: math.Inf(1), most: 1 - m.Place, last: m.Drift.Step}
	next := 1.
	if len(m.Ladder) > 0 {
		next = m.Ladder[m.Rung]
		take.step = next - m.Place
		if next < 1 && !m.stages.wasteFree() {
			take.share = m.Threshold
		}
	}
	m.Evaluations += m.Particles
	w, err := m.stages.weighBy(at.State(), take, m.numbers().At(m.calls(1)))
	if err != nil {
		return err
	}
	if len(m.Ladder) == 0 && w.step < take.most {
		next = m.Place + w.step
	}
	m.Place, m.Rung = next, m.Rung+1
	m.LogEvidence += w.Increment
	m.Genealogy.Add(w)
	m.Drift.add(w)
	at.Records = append(at.Records, StepRecord{
		Place: m.Place, LogEvidence: w.Increment, ESS: w.ESS, First: 1 / w.families, NonFinite: w.NonFinite,
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
	if m.stalls(w) && w.step < take.most {
		m.Next = stalled
		return m.stall(at)
	}
	return nil
}

// stall is the error of a ladder whose last step was the smallest there is.
func (m *machine) stall(at *fit.Trail[StepRecord]) error {
	return run.Stop(fmt.Errorf("the ladder stalls: a step of the power by %.2g already leaves an effective sample size "+
		"of %.1f of %d, where Threshold asks for %.4g; take more particles, or a likelihood without cliffs", m.Drift.Step,
		at.Records[len(at.Records)-1].ESS, m.Particles, m.Threshold*float64(m.Particles)))
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
func (m *machine) move(at *fit.Trail[StepRecord]) error {
	last := &at.Records[len(at.Records)-1]
	made := m.stages.PerCall
	moved, err := m.stages.moveBy(at.State(), moves{
		place: m.Place, begin: !m.Going, number: m.Transitions, shares: m.key.Named("transition"),
		first: last.Transitions == 0 && !m.Going, slot: m.Slot, stepSize: m.position.StepSize,
		steps: trajectorySteps(m.Trajectory.Length, last.Transitions),
	}, m.numbers(), m.calls(made))
	if err != nil {
		return err
	}
	m.Evaluations += m.chains() * made
	last.Rejected += moved.nonFinite
	last.Divergent += moved.divergent
	m.Sum, m.Full = m.Sum+moved.acceptance, m.Full+moved.full
	m.Trajectory.Jump += moved.squaredJump
	m.Trajectory.Growth += moved.jumpGrowth
	if m.Going = moved.unfinished > 0; m.Going {
		return nil
	}
	before := 0.
	if last.Transitions > 0 { // else it is NaN
		before = last.Acceptance * float64(last.Transitions)
	}
	last.Acceptance = (before + m.Sum) / float64(last.Transitions+made)
	last.Transitions += made
	m.Transitions += made
	last.Correlation, last.Unmoved = moved.correlation, moved.unmoved
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
	at.Step++
	if m.Next = finished; m.Place < 1 {
		m.Next = toWeigh
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
// two tanh units on twelve points of a wave was .36 too low with 1000 particles, with at least 15 it was .13, for a
// quarter more gradients.
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
func (m *machine) enough(moved movement) bool {
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

// numbers is the key of the random numbers of the stages' calls.
func (m *machine) numbers() random.Key { return m.key.At(0) }

// calls gives the next call its own part of the stream of random numbers: it returns the first of so many numbers of
// calls, one for each transition of a call that makes several.
func (m *machine) calls(draws int) uint32 {
	first := m.Calls
	m.Calls += uint32(draws)
	return first
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

// done says whether the particles were moved under the posterior, or a RunTo has weighed its last power.
func (m *machine) done(at *fit.Trail[StepRecord]) bool {
	return m.Next == finished || m.rungs > 0 && m.Rung == m.rungs && m.Next != toWeigh && !m.Going &&
		at.Records[len(at.Records)-1].Transitions == 0
}

// progress has the power that is reached, and the scores.
func (m *machine) progress(at *fit.Trail[StepRecord]) run.Progress {
	p := run.Progress{Stage: "likelihood tempering", Step: len(at.Records), Steps: len(m.Ladder)}
	p.Scores = []run.Score{{Name: "power", Value: m.Place}, {Name: "log evidence", Value: m.LogEvidence}}
	if n := len(at.Records); n > 0 {
		last := at.Records[n-1]
		p.Scores = append(p.Scores, run.Score{Name: "ESS", Value: last.ESS})
		if last.Transitions > 0 {
			p.Scores = append(p.Scores, run.Score{Name: "acceptance", Value: last.Acceptance})
		}
	}
	return p
}
