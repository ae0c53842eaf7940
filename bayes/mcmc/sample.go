package mcmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/tensors"
)

// ErrStuck says that no transition after the warm-up was accepted, or every one diverged, after 1000 transitions of all
// chains together or when the draws are complete. The error is a StuckError, which has the counts. Take a smaller step
// size, or a warm-up if there was none.
var ErrStuck = errors.New("mcmc: the chains do not move")

// errStart says that chains begin where the target's log-density or its gradient is not finite. Kernels that carry no
// log-density (ULA, SGLD, SGHMC) cannot notice this.
var errStart = errors.New("mcmc: chains start where the log-density or its gradient is not finite")

// Details has the details of a run of Chains: fit.Details[*mcmc.Details](result).
type Details struct {
	Draws *Draws
	Stats []ChainStats // one for each chain, over its draws
	// Tuned are the step size and scales with which the draws were made; its StepSize is 0 for kernels that are not
	// Tunable.
	Tuned Tuned
	// Gradients is the number of gradients of all chains' transitions, without the warm-up, or the sum of Info.Length; 0
	// for kernels that report neither.
	Gradients int
	// Evaluations counts the evaluations in all chains' transitions after the warm-up, of the target and of cheaper ones.
	Evaluations Evaluations
	// Moves is the number of moves of all chains together after the warm-up, WarmUpMoves the number during the warm-up. In
	// each move every chain evaluates one gradient, if the kernel takes one gradient a move; Gradients / (Moves Chains) is
	// the share of these that belongs to the transitions of the draws.
	Moves, WarmUpMoves int
	Sampling           time.Duration // after the warm-up, over all sessions
}

// Run implements fit.Method.
func (c Chains) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := problemOf(j, c.Chains, c.Kernel)
	if err != nil {
		return nil, err
	}
	r := newSampling(j, c, problem)
	defer r.close()
	stopped := j.Loop(ctx, r.session)
	if r.session.Status() == "" {
		return nil, stopped
	}
	if r.common() == 0 {
		return nil, fmt.Errorf("mcmc: the run ended before all chains had a draw%s: %w", r.outlook(),
			errors.Join(stopped, context.Cause(ctx)))
	}
	result, err := r.result()
	if err != nil {
		return nil, errors.Join(stopped, err)
	}
	switch p := result.Posterior; {
	case p != nil:
		result.Warnings = append(result.Warnings, diag.Mixing(ctx, p, j.Parts.Train)...)
	case j.OwnDensity():
		all := fit.Details[*Details](result)
		result.Warnings = append(result.Warnings, all.Draws.apart()...)
		result.Warnings = append(result.Warnings, slowEnergies(c.Kernel, all.Stats)...)
	}
	return result, stopped
}

// outlook says how long the warm-up of a run that ended in it would have taken, and what would do; empty after it.
func (r *sampling) outlook() string {
	if r.Warming == nil {
		return ""
	}
	done, spent := r.Warming.Done, r.session.Elapsed()
	pace := "the first took longer than that"
	if done > 0 {
		whole := time.Duration(float64(spent) * float64(r.WarmUp) / float64(done))
		pace = fmt.Sprintf("all would take about %.0f s", whole.Seconds())
	}
	return fmt.Sprintf(", in its warm-up, after %d of %d transitions in %.1f s (%s): give it that long, in pieces by a "+
		"Checkpoint; or a smaller WarmUp, fewer chains, or auto.Method, which keeps a budget", done, r.WarmUp,
		spent.Seconds(), pace)
}

// sampling is a run.Machine: the compiled moves, the state on the device, and the records on the host. Moves and state
// exist from Begin on.
type sampling struct {
	setup
	*moves
	job     *fit.Job
	problem density.Problem
	kernel  Kernel
	state   *compute.State
	draws   *Draws
	position
	session *run.Run
	adopted map[string]*tensors.Tensor // tensors of a checkpoint, until Begin

	pending  []moveRecord // moves that the device has made, and that the position does not count yet
	observed int          // draws that all chains had when the session began, or Observe was last called

	giveBack func() // the moves, to the engine
}

// position is the state of a run, without the tensors on the device and the draws.
type position struct {
	Move        int           `json:"move"`              // number of the next move
	WarmUpMoves int           `json:"warm_up_moves"`     // made
	WarmUpTime  time.Duration `json:"warm_up_time"`      // spent
	Warming     *warming      `json:"warming,omitempty"` // nil when the warm-up is over
	Tuned       Tuned         `json:"tuned"`             // now
	Tallies     []tally       `json:"tallies"`           // one for each chain
	Reported    []string      `json:"tells"`             // the fields of Info that the kernel reports
}

// newSampling is a run before its first move.
func newSampling(j *fit.Job, c Chains, problem density.Problem) *sampling {
	if c.WarmUp == NoWarmUp {
		c.WarmUp = 0
	}
	r := &sampling{setup: setup{c, j.Settings}, job: j, problem: problem, kernel: c.Kernel}
	if r.ObserveEvery == 0 {
		r.ObserveEvery = max(1, c.Draws/10)
	}
	r.draws = newDraws(c.Chains, c.Draws, problem.Dim, r.DType)
	r.Tallies = make([]tally, c.Chains)
	r.position.Tuned = c.Tuned
	if t, ok := c.Kernel.(Tunable); ok && r.position.Tuned.StepSize == 0 {
		r.position.Tuned.StepSize, _ = t.Tune()
	}
	if c.WarmUp > 0 {
		r.Warming = newWarming(r.setup, c.Kernel, problem.Dim)
	}
	r.session = j.Session(r, checkpointFormat)
	return r
}

// close releases what Begin has acquired.
func (r *sampling) close() {
	r.pending = nil
	if r.state != nil {
		r.state.Close()
		r.state = nil
	}
	if r.giveBack != nil {
		r.giveBack()
		r.giveBack = nil
	}
}

// Begin implements run.Machine: it compiles the moves unless they are compiled, puts the data on the device, and sets
// the chains to the checkpoint's state or to their starting points.
func (r *sampling) Begin(ctx context.Context) error {
	r.close() // of a session that was cancelled before its first step
	var err error
	if r.moves, r.giveBack, err = compute.Keep(r.Engine, r.key(), func() (*moves, error) {
		return newMoves(r.Engine, r.problem, r.kernel, r.setup)
	}); err != nil {
		return err
	}
	r.moves.problem = r.problem // the one that the moves were compiled for may have had other data
	sharding := compute.Sharding{Devices: r.Devices, Particles: r.carrier.Names()}
	if r.state, err = compute.NewShardedState(r.Engine, sharding); err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	if err := r.load(); err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	r.setScale()
	r.observed = r.common()
	if r.adopted == nil {
		r.Reported = r.carrier.reportedFields()
		return r.begin(ctx)
	}
	if err := r.resume(); err != nil {
		return fmt.Errorf("mcmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
	}
	return nil
}

// key names what the moves depend on; "" if that is not known.
func (r *sampling) key() string {
	of := r.problem.ProgramKey()
	if of == "" {
		return ""
	}
	return compute.KeyOf("mcmc", of, r.kernel, r.Chains, r.Devices, r.Thin, r.DType, r.scales(r.kernel))
}

// load puts the data on the device.
func (r *sampling) load() error {
	if err := r.problem.Load(r.state); err != nil || r.problem.Start == nil {
		return err
	}
	start, err := r.problem.Start.LocalClone() // the state owns what it holds, and frees it
	if err != nil {
		return fmt.Errorf("Problem.Start: %w", err)
	}
	r.state.Set(startName, start)
	return nil
}

// begin sets the chains to their starting points, uphill if they climb, and refuses points without a finite
// log-density.
func (r *sampling) begin(ctx context.Context) error {
	if r.problem.ClimbSteps() > 0 {
		if err := r.climbUp(ctx); err != nil {
			return err
		}
	}
	start, err := r.start.Run(r.state, append([]any{random.KeyOf(r.Seed).Words()}, blankInputs(r.problem)...)...)
	if err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	bad, first := 0, 0
	for chain, logDensity := range start[:r.Chains] {
		if math.IsNaN(logDensity) || math.IsInf(logDensity, 0) {
			if bad++; bad == 1 {
				first = chain
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w: %d of %d, the first is chain %d: let Problem.Initial draw where the target has mass, "+
			"and check the data for NaN", errStart, bad, r.Chains, first)
	}
	if _, err := CheckTried(start[r.Chains:], r.tried...); err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	return nil
}

// setScale puts the scales on the device, if the moves use them.
func (r *sampling) setScale() {
	if !r.scaled {
		return
	}
	if len(r.position.Tuned.Scale) == 0 {
		r.position.Tuned.Scale = make([]float64, r.problem.Dim)
		for i := range r.position.Tuned.Scale {
			r.position.Tuned.Scale[i] = 1
		}
	}
	r.state.Set(scaleName, compute.Floats(r.dtype, r.position.Tuned.Scale, r.problem.Dim))
}

// Step implements run.Machine: a move of the warm-up or of the draws.
func (r *sampling) Step(ctx context.Context) error {
	if r.Warming != nil {
		return r.warm(ctx)
	}
	return r.draw(ctx)
}

// Status implements run.Machine: Completed once all chains have their draws.
func (r *sampling) Status() run.Status {
	for _, t := range r.Tallies {
		if !t.Closed {
			return ""
		}
	}
	return run.Completed
}

// advance makes one move of the chains for which moving is true; nil moves all.
func (r *sampling) advance(ctx context.Context, moving []bool) (moveRecord, error) {
	program, inputs := r.step, []any{r.moveKey().At(uint32(r.Move)).Words(), r.stepSizes()}
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
	t := moveRecord{moves: r.moves, values: values, phi: r.carrier.Phi()}
	return t, r.checkMove(t)
}

// moveKey is the key from which each move's random numbers are derived, by its number.
func (r *sampling) moveKey() random.Key { return random.KeyOf(r.Seed).Named("move") }

// draw makes one move after the warm-up: the next of a burst, or of a new one.
func (r *sampling) draw(ctx context.Context) error {
	if r.Status() == "" { // else Keep has had the last move
		if len(r.pending) == 0 {
			var err error
			if r.pending, err = r.make(ctx); err != nil {
				return err
			}
		}
		if err := r.hear(); err != nil {
			return err
		}
	}
	return r.observe()
}

// hear takes in the next pending move, unless all draws are made.
func (r *sampling) hear() error {
	t := r.pending[0]
	r.pending = r.pending[1:]
	if r.Status() != "" {
		return nil
	}
	r.Move += r.leaps
	return r.account(t)
}

// account counts a move's outcome, and keeps the draws of the chains that have completed a transition in it.
func (r *sampling) account(t moveRecord) error {
	var kept []int // chains with a new draw
	transitions := 0
	for chain := range r.Tallies {
		tally := &r.Tallies[chain]
		ended := tally.add(t, chain, r.kernel.Traits().Carries)
		if ended && tally.Transitions%r.Thin == 0 && tally.Kept < r.Draws {
			kept = append(kept, chain)
		}
		transitions += tally.Transitions
	}
	if err := r.keep(kept, t); err != nil {
		return err
	}
	if r.Status() != "" || transitions >= maxRejections {
		return r.stuck()
	}
	return nil
}

// keep stores the chains' places after a move, as a draw of each.
func (r *sampling) keep(chains []int, t moveRecord) error {
	if len(chains) == 0 {
		return nil
	}
	err := r.state.Read(t.phi, func(phi *tensors.Tensor) error {
		return r.draws.set(chains, func(chain int) int { return r.Tallies[chain].Kept }, phi, t.slot*r.Chains)
	})
	if err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	for _, chain := range chains {
		tally := &r.Tallies[chain]
		if r.reports(infoDivergent) {
			r.draws.diverges(chain, tally.Kept, t.of(infoDivergent, chain, 0))
		}
		if tally.Kept++; tally.Kept == r.Draws {
			tally.Closed = true
		}
	}
	return nil
}

// common is the number of draws that all chains have.
func (r *sampling) common() int {
	common := r.settings.Draws
	for _, t := range r.Tallies {
		common = min(common, t.Kept)
	}
	return common
}

// observe calls Settings.Observe when it is due: more than once if a checkpoint has counted several moves at once.
func (r *sampling) observe() error {
	now, every := r.common(), r.ObserveEvery
	if r.Observe == nil {
		return nil
	}
	for draws := r.observed - r.observed%every + every; draws <= now; draws += every {
		r.observed = draws
		if err := r.show(draws); err != nil {
			return run.Stop(fmt.Errorf("mcmc: Settings.Observe after %d draws: %w", draws, err))
		}
	}
	return nil
}

// show calls Settings.Observe with the posterior of the first draws of each chain.
func (r *sampling) show(draws int) error {
	p, err := r.posterior(r.draws.first(draws), "")
	if err != nil {
		return err
	}
	return r.Observe(draws, p)
}

// posterior is the job's posterior with these draws.
func (r *sampling) posterior(draws *Draws, status run.Status) (*bayes.Posterior, error) {
	return r.job.PosteriorOf(draws.equal(), bayes.Provenance{
		Status: string(status), Approximation: approximation(r.kernel),
	})
}

// Progress implements run.Machine.
func (r *sampling) Progress() run.Progress {
	p := run.Progress{Stage: "draws", Steps: r.Chains * r.settings.Draws}
	acceptance, transitions, divergences := 0.0, 0, 0
	for _, t := range r.Tallies {
		p.Step += t.Kept
		divergences += t.Divergences
		acceptance += t.Acceptance
		transitions += t.Transitions
	}
	acceptance /= float64(transitions)
	if r.Warming != nil {
		p.Stage, p.Step, p.Steps, acceptance = "warm-up", r.Warming.Done, r.WarmUp, r.Warming.mean()
	}
	if r.reports(infoAcceptance) {
		p.Scores = append(p.Scores, run.Score{Name: "acceptance", Value: acceptance})
	}
	if r.tunable() {
		p.Scores = append(p.Scores, run.Score{Name: "step size", Value: r.position.Tuned.StepSize})
	}
	if r.reports(infoDivergent) {
		p.Scores = append(p.Scores, run.Score{Name: "divergences", Value: float64(divergences)})
	}
	return p
}

// reports says whether the kernel fills in a field of Info.
func (r *sampling) reports(f info) bool { return slices.Contains(r.Reported, infoNames[f]) }

// tunable says whether the kernel has a step size to tune.
func (r *sampling) tunable() bool {
	_, ok := r.kernel.(Tunable)
	return ok
}

// stats returns the statistics of each chain.
func (r *sampling) stats() (stats []ChainStats) {
	share := 0.0
	if c, ok := r.kernel.(costs); ok {
		share = c.PartialShare()
	}
	for _, t := range r.Tallies {
		s := t.stats(r.reports(infoAcceptance), share)
		if of := r.problem.BatchShare; of > 0 {
			s.Evaluations = s.Evaluations.ofMiniBatches(of)
		}
		stats = append(stats, s)
	}
	return stats
}

// Now is the result so far, for fit.Steps.
func (r *sampling) Now() (*fit.Result, error) { return r.result() }

// result is the result so far: as many draws of each chain as all chains have made.
func (r *sampling) result() (*fit.Result, error) {
	chains := r.details()
	result := &fit.Result{
		Status: r.session.Status(), Elapsed: r.job.Elapsed(), Warnings: r.doubts(chains.Stats),
		Approximation: approximation(r.kernel), Details: []any{chains},
	}
	if chains.Draws.PerChain == 0 {
		return result, nil
	}
	result.Draws = chains.Draws.equal()
	if r.job.Inner() {
		return result, nil
	}
	var err error
	result.Posterior, err = r.posterior(chains.Draws, result.Status)
	return result, err
}

// details are those of the run so far.
func (r *sampling) details() *Details {
	d := &Details{
		Draws: r.draws.first(r.common()), Tuned: r.position.Tuned, Stats: r.stats(), Moves: r.Move - r.WarmUpMoves,
		WarmUpMoves: r.WarmUpMoves,
	}
	if r.Warming == nil {
		d.Sampling = r.session.Elapsed() - r.WarmUpTime
	}
	if !r.tunable() {
		d.Tuned.StepSize = 0
	}
	for chain, c := range d.Stats {
		d.Gradients += r.Tallies[chain].Gradients
		d.Evaluations = d.Evaluations.plus(c.Evaluations)
	}
	return d
}
