package mcmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// ErrStuck says that no transition after the warm-up was accepted, or every one diverged, after 1000 transitions of all
// chains together or when the draws are complete. The error is a StuckError, whose text has the counts. Take a smaller
// step size, or a warm-up if there was none.
var ErrStuck = errors.New("mcmc: the chains do not move")

// errStart says that chains begin where the target's log-density or its gradient is not finite. Kernels that carry no
// log-density (SGLD, SGHMC) cannot notice this.
var errStart = errors.New("mcmc: chains start where the log-density or its gradient is not finite")

// Details has the details of a run of Chains: fit.Details[*mcmc.Details](result).
type Details struct {
	Draws *Draws
	Stats []ChainStats // one for each chain, over its draws
	// Tuned are the step size and scales with which the draws were made; its StepSize is 0 for kernels that are not
	// Tunable.
	Tuned Tuned
	// Evaluations counts the evaluations in all chains' transitions after the warm-up, of the target and of cheaper ones.
	Evaluations Evaluations
	// Moves is the number of moves of all chains together after the warm-up, WarmUpMoves the number during the warm-up. In
	// each move every chain evaluates one gradient, if the kernel takes one gradient a move; the share of these that
	// belongs to the transitions of the draws is in Evaluations.
	Moves, WarmUpMoves int
	Sampling           time.Duration // after the warm-up, over all sessions
}

// Run implements fit.Method.
func (c Chains) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := problemOf(j, c.Chains, c.Kernel)
	if err != nil {
		return nil, err
	}
	size := int64(c.Chains) * int64(c.Draws) * int64(problem.Dim*j.DType.Size())
	if err := compute.CheckHost(size, "the draws of all chains", "draws"); err != nil {
		return nil, fmt.Errorf("mcmc: %w", err)
	}
	result, err := newSampling(j, c, problem).loop().Run(ctx, j)
	switch {
	case result == nil:
		return nil, err
	case result.Posterior != nil:
		result.Doubts = append(result.Doubts, diag.Mixing(ctx, result.Posterior, j.Parts.Train)...)
	case j.OwnDensity():
		all := fit.Details[*Details](result)
		result.Doubts = append(append(result.Doubts, all.Draws.apart()...), slowEnergies(all.Stats)...)
	}
	return result, err
}

// outlook says how far the warm-up of a run that ended in it came, and what would do; empty after it.
func (r *sampling) outlook(spent time.Duration) string {
	if r.Warming == nil {
		return ""
	}
	return fmt.Sprintf(", in its warm-up, after %d of %d transitions in %.1f s: give it longer, in pieces by a "+
		"Checkpoint; or a smaller WarmUp, fewer chains, or auto.Method, which keeps a budget", r.Warming.Done, r.WarmUp,
		spent.Seconds())
}

// sampling is a run: the compiled moves and the state on the device, from begin on, and the draws on the host.
type sampling struct {
	Chains // the settings
	run.Settings
	*moves
	job     *fit.Job
	problem density.Problem
	state   *compute.State
	draws   *Draws
	position
	resumed map[string]*tensors.Tensor // what a checkpoint has of the device, until begin
	queue   []moveRecord               // moves that the device has made, and that the position does not count yet
	at      *trail                     // from the first step or result on
}

// trail is where a run's loop stands: its steps are the draws that all chains have. The records are in position.
type trail = fit.Trail[struct{}]

// position is where a run stands, without the tensors on the device and the draws.
type position struct {
	Move        int           `json:"move"`              // number of the next move
	WarmUpMoves int           `json:"warm_up_moves"`     // made
	WarmUpTime  time.Duration `json:"warm_up_time"`      // spent
	Warming     *warming      `json:"warming,omitempty"` // nil when the warm-up is over
	Tuned       Tuned         `json:"tuned"`             // now
	Tallies     []tally       `json:"tallies"`           // one for each chain
	Reported    []string      `json:"reported"`          // the fields of Info that the kernel reports
	Repeated    string        `json:"repeated"`          // Carrier.RepeatedDraws
}

// newSampling is a run before its first move.
func newSampling(j *fit.Job, c Chains, problem density.Problem) *sampling {
	if c.WarmUp == NoWarmUp {
		c.WarmUp = 0
	}
	r := &sampling{Chains: c, Settings: j.Settings, job: j, problem: problem}
	r.draws = newDraws(c.Chains, c.Draws, problem.Dim, r.DType)
	r.Tallies = make([]tally, c.Chains)
	r.position.Tuned = c.Tuned
	if t, ok := c.Kernel.(Tunable); ok && r.position.Tuned.StepSize == 0 {
		r.position.Tuned.StepSize, _ = t.Tune()
	}
	if c.WarmUp > 0 {
		r.Warming = newWarming(c, problem.Dim)
	}
	return r
}

// loop declares the run. Each call of advance makes a move, and as its steps count the draws that all chains have.
func (r *sampling) loop() *fit.Loop[struct{}] {
	return &fit.Loop[struct{}]{
		Format: "gobnn.mcmc/12", Steps: r.Chains.Draws, Begin: r.begin, Step: r.advance, Host: r,
		Data:     []string{density.DataPrefix, startName, scaleName, burstPhi, climbMean, climbSquare},
		Progress: r.progress, ObserveEvery: max(1, r.Chains.Draws/10), Result: r.result,
	}
}

// begin compiles the moves unless they are compiled, and puts the data on the device and, of a new run, the chains to
// their starting points.
func (r *sampling) begin(ctx context.Context) (state *compute.State, release func(), err error) {
	if r.moves, release, err = compute.Keep(r.Engine, r.key(), func() (*moves, error) {
		return newMoves(r.Engine, r.problem, r.Chains, r.Settings)
	}); err != nil {
		return nil, nil, err
	}
	r.moves.problem = r.problem // the one that the moves were compiled for may have had other data
	sharding := compute.Sharding{Devices: r.Devices, Particles: r.carrier.Names()}
	if r.state, err = compute.NewShardedState(r.Engine, sharding); err != nil {
		return r.state, release, fmt.Errorf("mcmc: %w", err)
	}
	if err := r.load(); err != nil {
		return r.state, release, fmt.Errorf("mcmc: %w", err)
	}
	r.setScale()
	r.Reported, r.Repeated = r.carrier.reportedFields(), r.carrier.RepeatedDraws()
	if r.resumed == nil {
		return r.state, release, r.begins(ctx)
	}
	for name, want := range r.carrier.entryShapes() { // a user's own kernel may have changed, and no setting with it
		if _, err := run.Tensor(r.resumed, name, want); err != nil {
			return r.state, release, fmt.Errorf("mcmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
		}
	}
	r.resumed = nil
	return r.state, release, nil
}

// key names what the moves depend on; "" if that is not known.
func (r *sampling) key() string {
	of := r.problem.ProgramKey()
	if of == "" {
		return ""
	}
	return compute.KeyOf("mcmc", of, r.Kernel, r.Chains.Chains, r.Devices, r.DType, r.scales())
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

// begins sets the chains to their starting points, uphill if they climb, and refuses points without a finite
// log-density.
func (r *sampling) begins(ctx context.Context) error {
	if r.problem.ClimbSteps() > 0 {
		if err := r.climbUp(ctx); err != nil {
			return err
		}
	}
	start, err := r.start.Run(r.state, append([]any{random.KeyOf(r.Seed).Words()}, blankInputs(r.problem)...)...)
	if err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	var bad []int
	for chain, logDensity := range start[:r.Chains.Chains] {
		if !finite(logDensity) {
			bad = append(bad, chain)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w: %d of %d, the first is chain %d: let Problem.Initial draw where the target has mass, "+
			"and check the data for NaN", errStart, len(bad), r.Chains.Chains, bad[0])
	}
	if err := r.tried.Check(start[r.Chains.Chains:]); err != nil {
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
		r.position.Tuned.Scale = slices.Repeat([]float64{1}, r.problem.Dim)
	}
	r.state.Set(scaleName, compute.Floats(r.dtype, r.position.Tuned.Scale, r.problem.Dim))
}

// moveOnce makes one move of the chains for which moving is true.
func (r *sampling) moveOnce(ctx context.Context, moving []bool) (moveRecord, error) {
	inputs := []any{r.moveKey().At(uint32(r.Move)).Words(), r.stepSizes()}
	if r.carrier.SeveralMoves() {
		inputs = append(inputs, moving)
	}
	inputs, err := r.inputs(ctx, inputs...)
	if err != nil {
		return moveRecord{}, err
	}
	values, err := r.step.Run(r.state, inputs...)
	if err != nil {
		return moveRecord{}, fmt.Errorf("mcmc: move %d: %w", r.Move, err)
	}
	t := moveRecord{moves: r.moves, values: values, phi: r.carrier.Phi()}
	return t, r.checkMove(t)
}

// moveKey is the key from which each move's random numbers are derived, by its number.
func (r *sampling) moveKey() random.Key { return random.KeyOf(r.Seed).Named("move") }

// advance is a step of the loop: a move of the warm-up, or the next one of a call that has made several.
func (r *sampling) advance(ctx context.Context, at *trail) (err error) {
	r.at = at
	if r.Warming != nil {
		return r.warm(ctx)
	}
	if r.done() { // Keep has taken in the last move
		return nil
	}
	if len(r.queue) == 0 {
		if r.queue, err = r.make(ctx); err != nil {
			return err
		}
	}
	return r.receive()
}

// done says whether all chains have their draws.
func (r *sampling) done() bool { return r.common() == r.Chains.Draws }

// receive takes in the next move of the queue, unless all draws are made.
func (r *sampling) receive() error {
	t := r.queue[0]
	if r.queue = r.queue[1:]; r.done() {
		return nil
	}
	r.Move++
	err := r.account(t)
	r.at.Step = r.common()
	return err
}

// account counts a move's outcome for the chains that have draws to make, and keeps the draws of the chains that have
// completed a transition in it.
func (r *sampling) account(t moveRecord) error {
	var kept []int // chains with a new draw
	transitions := 0
	for chain := range r.Tallies {
		tally := &r.Tallies[chain]
		if tally.Kept < r.Draws && tally.add(t, chain) && tally.Transitions%r.Thin == 0 {
			kept = append(kept, chain)
		}
		transitions += tally.Transitions
	}
	if err := r.keep(kept, t); err != nil {
		return err
	}
	if r.done() || transitions >= maxRejections {
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
		return phi.ConstBytes(func(raw []byte) {
			for _, chain := range chains {
				row := r.draws.row(chain, r.Tallies[chain].Kept, 1)
				copy(row, raw[(t.slot*r.Chains.Chains+chain)*len(row):])
			}
		})
	})
	if err != nil {
		return fmt.Errorf("mcmc: %w", err)
	}
	for _, chain := range chains {
		r.Tallies[chain].Kept++
	}
	return nil
}

// common is the number of draws that all chains have.
func (r *sampling) common() int {
	common := r.Chains.Draws
	for _, t := range r.Tallies {
		common = min(common, t.Kept)
	}
	return common
}

// progress has the draws of all chains together, or the transitions of the warm-up.
func (r *sampling) progress(*trail) run.Progress {
	p := run.Progress{Stage: "draws", Steps: r.Chains.Chains * r.Chains.Draws}
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
	_, ok := r.Kernel.(Tunable)
	return ok
}

// stats returns the statistics of each chain.
func (r *sampling) stats() (stats []ChainStats) {
	share := 0.0
	if c, ok := r.Kernel.(costs); ok {
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

// result is the result so far: as many draws of each chain as all chains have made.
func (r *sampling) result(at *trail) (*fit.Result, error) {
	r.at = at
	if at.Status != "" && at.Step == 0 {
		return nil, fmt.Errorf("mcmc: the run ended before all chains had a draw%s", r.outlook(at.Elapsed()))
	}
	d := &Details{
		Draws: r.draws.first(at.Step), Tuned: r.position.Tuned, Stats: r.stats(), Moves: r.Move - r.WarmUpMoves,
		WarmUpMoves: r.WarmUpMoves,
	}
	if r.Warming == nil {
		d.Sampling = at.Elapsed() - r.WarmUpTime
	}
	if !r.tunable() {
		d.Tuned.StepSize = 0
	}
	for _, c := range d.Stats {
		d.Evaluations = d.Evaluations.plus(c.Evaluations)
	}
	result := &fit.Result{
		Status: at.Status, Elapsed: r.job.Elapsed(), Doubts: r.doubts(d.Stats), Approximation: approximation(r.Kernel),
		Details: []any{d},
	}
	if at.Step == 0 {
		return result, nil
	}
	result.Draws = bayes.Draws{
		Phi: d.Draws.Tensor(), LogWeights: bayes.EqualLogWeights(r.Chains.Chains * at.Step), Chains: r.Chains.Chains,
	}
	if r.job.Inner() {
		return result, nil
	}
	var err error
	result.Posterior, err = r.job.PosteriorOf(result.Draws, bayes.Provenance{
		Status: string(at.Status), Approximation: result.Approximation,
	})
	return result, err
}

// drawsName is the name in a checkpoint of the draws.
const drawsName = "draws"

// Keep implements fit.Keeper. It first takes in what the device has made already.
func (r *sampling) Keep() (any, map[string]*tensors.Tensor, error) {
	for len(r.queue) > 0 {
		if err := r.receive(); err != nil {
			return nil, nil, err
		}
	}
	kept := map[string]*tensors.Tensor{}
	if most := r.mostKept(); most > 0 {
		kept[drawsName] = r.draws.copied(most).Tensor()
	}
	return r.position, kept, nil
}

// mostKept is the largest number of draws of any chain so far.
func (r *sampling) mostKept() int {
	most := 0
	for _, t := range r.Tallies {
		most = max(most, t.Kept)
	}
	return most
}

// Adopt implements fit.Keeper.
func (r *sampling) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	r.position, r.resumed = position{}, kept // else a warm-up that is over would stay
	if err := json.Unmarshal(head, &r.position); err != nil {
		return err
	}
	most := r.mostKept()
	if most == 0 {
		return nil
	}
	draws, err := run.Tensor(kept, drawsName, shapes.Make(r.DType, r.Chains.Chains*most, r.problem.Dim))
	if err != nil {
		return err
	}
	err = draws.ConstBytes(func(raw []byte) {
		for chain := range r.Tallies {
			row := r.draws.row(chain, 0, most)
			copy(row, raw[chain*len(row):])
		}
	})
	draws.FinalizeAll() //nolint:errcheck // freeing a copy
	delete(kept, drawsName)
	return err
}
