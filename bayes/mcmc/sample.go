package mcmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/tensors"
)

// Status says how a run ended.
type Status string

// The ways to end.
const (
	Completed Status = "completed"
	Cancelled Status = "cancelled" // by the context: the draws are those that all chains had made
	Stopped   Status = "stopped"   // by Problem.HostInputs: likewise; Result.Stopped says why
)

// Errors that Sample wraps; test for them with errors.Is.
var (
	// ErrStart says that chains begin where the target has no finite log-density.
	ErrStart = errors.New("mcmc: chains start where the log-density or its gradient is not finite")
	// ErrStuck says that no chain moved, or that every trajectory diverged: what was drawn is no sample of anything.
	ErrStuck = errors.New("mcmc: the chains do not move")
	// ErrStepSize says that a warm-up found no step size.
	ErrStepSize = errors.New("mcmc: no step size works")
)

// Result of Sample.
type Result struct {
	Draws  *Draws
	Chains []ChainStats // one for each chain, over its draws
	Tuned  Tuned        // step size and scales that the draws were made with; its StepSize is 0 for kernels that are not Tunable
	Status Status
	// Stopped is the error of Problem.HostInputs that ended the run; nil if none did.
	Stopped error
	// Gradients is how many gradients of one chain's target the draws are made of, those of the warm-up not counted, or the sum of Info.Length; 0 for kernels that tell neither.
	Gradients int
	// Moves is how many moves of all chains were made after the warm-up; WarmUpMoves in it. Gradients / (Moves Chains) is the share of what was
	// evaluated that counts.
	Moves, WarmUpMoves int
	Elapsed            time.Duration // over all sessions
	Sampling           time.Duration // of it after the warm-up
}

// Sample runs J chains of a kernel and keeps their draws. After the warm-up each chain begins a transition as soon as it has ended the one
// before, and gives exactly the first Settings.Draws of its draws: a fast chain's draws do not displace a slow one's.
//
// A cancelled context is no error: the result holds the draws that all chains had made, with the status Cancelled. Errors wrap ErrStart, ErrStuck or
// ErrStepSize where these are at fault.
func Sample(ctx context.Context, problem Problem, kernel Kernel, settings Settings) (*Result, error) {
	sampler := Sampler{Problem: problem, Kernel: kernel}
	defer sampler.Close()
	return sampler.Sample(ctx, settings)
}

// run is a sampling in progress: the compiled moves, the state on the device, and what the host keeps.
type run struct {
	Settings
	*moves
	engine *compute.Engine
	state  *compute.State
	draws  *Draws
	position

	begun    time.Time
	saved    time.Time // last checkpoint
	reported time.Time
}

// position is where a run stands, but for the state on the device and the draws.
type position struct {
	Move        int           `json:"move"`              // the next one's number
	WarmUpMoves int           `json:"warm_up_moves"`     // made
	WarmUpTime  time.Duration `json:"warm_up_time"`      // spent
	Warming     *warming      `json:"warming,omitempty"` // nil when the warm-up is over
	Tuned       Tuned         `json:"tuned"`             // now
	Tallies     []tally       `json:"tallies"`           // one for each chain
	Done        bool          `json:"done"`              // all draws are made
	Before      time.Duration `json:"before"`            // of earlier sessions
	status      Status
	stopped     error
}

// newRun checks everything, prepares what is not compiled yet and puts the data on the device.
func (s *Sampler) newRun(settings Settings) (*run, error) {
	problem, kernel := s.Problem, s.Kernel
	settings, err := settings.withDefaults(problem, kernel)
	if err != nil {
		return nil, err
	}
	r := &run{Settings: settings, begun: time.Now(), saved: time.Now()}
	if r.engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if err := r.engine.CheckDevices(settings.Devices, settings.Chains); err != nil {
		return nil, fmt.Errorf("mcmc: Settings.Devices is %d, Settings.Chains %d: %w", settings.Devices, settings.Chains, err)
	}
	if r.moves, err = s.moves(r.engine, settings); err != nil {
		return nil, err
	}
	sharding := compute.Sharding{Devices: settings.Devices, Particles: r.carrier.Names()}
	if r.state, err = compute.NewShardedState(r.engine, sharding); err != nil {
		return nil, fmt.Errorf("mcmc: %w", err)
	}
	put := func(as, what string, t *tensors.Tensor) error {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("mcmc: %s: %w", what, err)
		}
		r.state.Set(as, local)
		return nil
	}
	for name, t := range problem.Data {
		if err == nil {
			err = put(dataPrefix+name, fmt.Sprintf("Problem.Data[%q]", name), t)
		}
	}
	if err == nil && problem.Start != nil {
		err = put(startName, "Problem.Start", problem.Start)
	}
	if err != nil {
		r.state.Close()
		return nil, err
	}
	r.draws = newDraws(settings.Chains, settings.Draws, problem.Dim, settings.DType)
	r.Tallies = make([]tally, settings.Chains)
	r.position.Tuned = settings.Tuned
	if t, ok := kernel.(Tunable); ok && r.position.Tuned.StepSize == 0 {
		r.position.Tuned.StepSize, _ = t.Tune()
	}
	if settings.WarmUp > 0 {
		r.Warming = newWarming(settings, kernel, problem.Dim)
	}
	return r, nil
}

// begin goes on from a checkpoint, or draws where the chains begin.
func (r *run) begin() error {
	resumed, err := r.restore()
	if err != nil {
		return err
	}
	r.setScale()
	if resumed {
		return nil
	}
	start, err := r.start.Run(r.state, append([]any{random.SeedWords(r.Seed)}, r.problem.blank()...)...)
	if err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	bad, first := 0, 0
	for chain, logDensity := range start {
		if math.IsNaN(logDensity) || math.IsInf(logDensity, 0) {
			if bad++; bad == 1 {
				first = chain
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w: %d of %d, the first is chain %d: let Problem.Initial draw where the target has mass, and check the data for NaN", ErrStart, bad, r.Chains, first)
	}
	return r.checkpoint() // an unwritable folder shows now, not after hours
}

// setScale puts the scales on the device, if the moves take any.
func (r *run) setScale() {
	if !r.scaled {
		return
	}
	if len(r.position.Tuned.Scale) == 0 {
		r.position.Tuned.Scale = make([]float64, r.problem.Dim)
		for i := range r.position.Tuned.Scale {
			r.position.Tuned.Scale[i] = 1
		}
	}
	r.state.Set("scale", compute.Floats(r.dtype, r.position.Tuned.Scale, r.problem.Dim))
}

// loop makes moves until the run ends.
func (r *run) loop(ctx context.Context) error {
	for r.status == "" {
		if r.Done {
			r.status = Completed
			break
		}
		if ctx.Err() != nil {
			r.status = Cancelled
			break
		}
		var err error
		if r.Warming != nil {
			err = r.warm(ctx)
		} else {
			err = r.draw(ctx)
		}
		if e := (*unanswered)(nil); errors.As(err, &e) { // nothing has moved
			r.status, err = Cancelled, nil
			if ctx.Err() == nil {
				r.status, r.stopped = Stopped, e
			}
		}
		if err == nil {
			err = r.checkpointIfDue()
		}
		if err != nil {
			return err
		}
		r.report(false)
	}
	r.report(true)
	if err := r.checkpoint(); err != nil {
		return err
	}
	return nil
}

// advance makes a move: of all chains if moving is nil.
func (r *run) advance(ctx context.Context, moving []bool) (moveRecord, error) {
	program, inputs := r.step, []any{random.SeedWords(r.Seed), uint32(r.Move), r.position.Tuned.StepSize}
	if moving != nil && r.maskedStep != r.step {
		program, inputs = r.maskedStep, append(inputs, moving)
	}
	inputs, err := r.inputs(ctx, inputs...)
	if err != nil {
		return moveRecord{}, err
	}
	values, err := program.Run(r.state, inputs...)
	if err != nil {
		return moveRecord{}, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	r.Move++
	return moveRecord{r.moves, values}, nil
}

// draw makes one move after the warm-up and keeps the draws of the chains that have ended a transition in it.
func (r *run) draw(ctx context.Context) error {
	t, err := r.advance(ctx, nil)
	if err != nil {
		return err
	}
	var phi *tensors.Tensor
	left, transitions := 0, 0
	for chain := range r.Tallies {
		tally := &r.Tallies[chain]
		if ended := tally.add(t, chain, r.kernel.Carries()); ended && tally.Transitions%r.Thin == 0 && tally.Kept < r.Draws {
			if phi == nil {
				if phi, err = r.host("phi"); err != nil {
					return err
				}
				defer phi.FinalizeAll() //nolint:errcheck // freeing a copy
			}
			if err := r.draws.set(chain, tally.Kept, phi); err != nil {
				return fmt.Errorf("mcmc: %w", err)
			}
			if tally.Kept++; tally.Kept == r.Draws {
				tally.Closed = true
			}
		}
		if !tally.Closed {
			left++
		}
		transitions += tally.Transitions
	}
	r.Done = left == 0
	if r.Done || transitions >= maxRejections {
		return r.stuck()
	}
	return nil
}

func (r *run) host(name string) (*tensors.Tensor, error) {
	copies, err := r.state.Host(name)
	if err != nil {
		return nil, fmt.Errorf("mcmc: %w", err)
	}
	return copies[name], nil
}

func (r *run) elapsed() time.Duration { return r.Before + time.Since(r.begun) }

// report calls Progress, but not more than about ten times a second.
func (r *run) report(end bool) {
	if r.Progress == nil || !end && time.Since(r.reported) < 100*time.Millisecond {
		return
	}
	r.reported = time.Now()
	p := Progress{
		WarmUp: r.WarmUp, WarmUps: r.WarmUp, AllDraws: r.Chains * r.Settings.Draws, Moves: r.Move, StepSize: r.position.Tuned.StepSize, Elapsed: r.elapsed(),
	}
	sum, transitions := 0.0, 0
	for _, t := range r.Tallies {
		p.Draws += t.Kept
		p.Divergences += t.Divergences
		sum += t.Acceptance
		transitions += t.Transitions
	}
	p.Acceptance = sum / float64(transitions)
	if r.Warming != nil {
		p.WarmUp, p.Acceptance = r.Warming.Done, r.Warming.Last
	}
	if !r.tells(infoAcceptance) {
		p.Acceptance = math.NaN()
	}
	r.Progress(p)
}

// result keeps as many draws of each chain as all have.
func (r *run) result() (*Result, error) {
	common := r.Settings.Draws
	for _, t := range r.Tallies {
		common = min(common, t.Kept)
	}
	result := &Result{
		Draws: r.draws.first(common), Tuned: r.position.Tuned, Status: r.status, Stopped: r.stopped,
		Moves: r.Move - r.WarmUpMoves, WarmUpMoves: r.WarmUpMoves, Elapsed: r.elapsed(),
	}
	if r.Warming == nil {
		result.Sampling = result.Elapsed - r.WarmUpTime
	}
	if !r.tunable() {
		result.Tuned.StepSize = 0
	}
	for _, t := range r.Tallies {
		result.Chains = append(result.Chains, t.stats(r.moves))
		result.Gradients += t.Gradients
	}
	return result, nil
}
