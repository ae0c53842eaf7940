package smc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/interp"
	"gonum.org/v1/gonum/stat"
)

// Exchanger runs replica exchange repeatedly, with different seeds and settings, and different Problem.Data of the same
// names and shapes. It compiles only once for each DType, Engine, number of Sets and length of the ladder. Nothing else
// of the problem may change after the first run. Close it at the end.
type Exchanger struct {
	Problem mcmc.Problem
	Kernel  mcmc.Kernel

	compiled run.Cache[exchangeKind, *sweeps]
	searcher Sampler // looks for ladders
}

// Close frees what was compiled.
func (e *Exchanger) Close() {
	e.compiled.Close()
	e.searcher.Close()
}

// Sample is ReplicaExchange with the problem and kernel of the Exchanger.
func (e *Exchanger) Sample(ctx context.Context, settings ExchangeSettings) (*ExchangeResult, error) {
	m, err := e.newExchange(settings)
	if err != nil {
		return nil, err
	}
	defer m.close()
	err = m.session.Loop(ctx)
	if m.session.Status() == "" {
		return nil, err
	}
	result, failed := m.result()
	return result, cmp.Or(failed, err)
}

// exchangeKind identifies what the compiled programs depend on besides the problem and the kernel.
type exchangeKind struct {
	engine       *compute.Engine
	dtype        compute.DType
	sets, powers int
	carries      mcmc.Carries
}

// sweeps are the programs of a sweep.
type sweeps struct {
	*sweep
	begin, start, move, end *compute.Program
}

// Close frees the programs.
func (s *sweeps) Close() {
	for _, p := range []*compute.Program{s.begin, s.start, s.move, s.end} {
		p.Close()
	}
}

// exchange is a replica exchange in progress.
type exchange struct {
	ExchangeSettings
	owner    *Exchanger
	session  *run.Run
	engine   *compute.Engine
	sweeps   *sweeps
	giveBack func() // of the sweeps
	state    *compute.State

	kept map[string]*tensors.Tensor // tensors of a checkpoint, until there is a state
	exchangePosition
	logLikelihood, accepted, odds, draws [][]float64 // a row for each sweep that counts; draws for each that is kept
}

// exchangePosition is the progress of a run, without the replicas and the records of its sweeps.
type exchangePosition struct {
	Powers    []float64 `json:"powers"` // from 0
	Made      int       `json:"made"`   // sweeps, those of the warm-up included
	Arrivals  int       `json:"arrivals"`
	NonFinite int       `json:"non_finite"`
	Moves     int       `json:"moves"`  // moves of single replicas, each an evaluation
	Search    int       `json:"search"` // evaluations that it took to find the ladder
}

// newExchange checks the problem, the kernel and the settings.
func (e *Exchanger) newExchange(settings ExchangeSettings) (*exchange, error) {
	if err := checkSampled(e.Problem, e.Kernel); err != nil {
		return nil, err
	}
	if e.Problem.Initial == nil {
		return nil, fmt.Errorf("smc: Problem.Initial is nil: replica exchange draws from the prior in every sweep")
	}
	if e.Problem.Start != nil {
		return nil, fmt.Errorf("smc: Problem.Start is set: replica exchange begins at draws of Problem.Initial, leave it out")
	}
	settings, err := settings.WithDefaults()
	if err != nil {
		return nil, err
	}
	m := &exchange{ExchangeSettings: settings, owner: e}
	m.session = run.New(m, run.Options{
		Owner: "smc", Checkpoint: m.Checkpoint, Format: "gobnn.exchange/3", Every: m.CheckpointEvery, Replace: m.Replace,
		Progress: m.ExchangeSettings.Progress,
	})
	return m, nil
}

// Begin finds the ladder, compiles the sweep, and draws all replicas from the prior unless a checkpoint has some.
func (m *exchange) Begin(ctx context.Context) error {
	var err error
	if m.engine, err = m.Engine.Or(); err != nil {
		return err
	}
	if m.Powers == nil {
		if m.Powers, err = m.ladder(ctx); err != nil {
			return err
		}
	}
	if err := m.compile(); err != nil {
		return fmt.Errorf("smc: replica exchange: %w", err)
	}
	m.state = compute.NewState(m.engine)
	for name, t := range m.owner.Problem.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("smc: Problem.Data[%q]: %w", name, err)
		}
		m.state.Set(dataPrefix+name, local)
	}
	m.state.Set(powersName, compute.Floats(m.DType, m.Powers, len(m.Powers)))
	if m.kept != nil {
		for _, name := range m.sweeps.entries() {
			m.state.Set(name, m.kept[name])
		}
		m.kept = nil
		return nil
	}
	if err := m.own().tryOnce(&m.owner.searcher.tried, m.state); err != nil {
		return fmt.Errorf("smc: replica exchange: %w", err)
	}
	record, err := m.sweeps.begin.Run(m.state, random.KeyOf(m.Seed).Named("exchange begins").Words())
	if err == nil && len(record) > 1 {
		err = checkTrial(record, m.owner.Problem.Dim, ofInitial)
	}
	if err != nil {
		return fmt.Errorf("smc: replica exchange: %w", err)
	}
	return nil
}

// ladder returns the ladder of the settings, or else that of a short SMC run, with 0 before it.
func (m *exchange) ladder(ctx context.Context) ([]float64, error) {
	ladder := m.Ladder
	if len(ladder) == 0 {
		search := &m.owner.searcher
		search.Problem, search.Kernel = m.owner.Problem, m.owner.Kernel
		found, err := search.Sample(ctx, Settings{
			Particles: 300, Moves: 5, Seed: m.Seed, DType: m.DType, Engine: m.Engine,
		})
		if err != nil {
			return nil, fmt.Errorf("smc: looking for a ladder of powers (or set ExchangeSettings.Ladder): %w", err)
		}
		if found.Status != run.Completed {
			return nil, fmt.Errorf("smc: looking for a ladder of powers: %w", context.Cause(ctx))
		}
		for _, r := range found.Trace {
			ladder = append(ladder, r.Place)
		}
		m.Search = found.Evaluations
		ladder = ExchangeLadder(ladder)
	}
	return append([]float64{0}, ladder...), nil
}

// atOnce: the number of steps of a found ladder is a multiple of it.
const atOnce = 4

// stretch is the largest length of a step of the new ladder, in steps of Sample. Sample needs more overlap between
// neighbouring powers than exchanges do: replicas come down soonest when about a fourth of the exchanges is accepted
// (Atchade, Roberts and Rosenthal 2011).
const stretch = 1.5

// ExchangeLadder converts a ladder of powers that a run of Sample found, ascending and the last 1, to one for
// ExchangeSettings.Ladder. The number of steps becomes a multiple of four, and none is more than one and a half times
// as long as the found steps in its place; a ladder of at most four steps stays as it is. The last step of Sample is
// only as long as what was left, and all the new steps share that. Ladders of about the same length, such as those of
// several splits of the data, then need one compilation. Where a power would be over 500 times the one before it, half
// of what ExchangeSettings refuses, further powers are inserted.
func ExchangeLadder(found []float64) []float64 {
	ladder := found
	if len(found) > atOnce {
		ladder = evenLadder(found)
	}
	var all []float64
	for i, power := range ladder {
		if i > 0 {
			between := math.Ceil(math.Log(power/ladder[i-1]) / math.Log(mostRatio/2))
			for k := 1.; k < between; k++ {
				all = append(all, ladder[i-1]*math.Pow(power/ladder[i-1], k/between))
			}
		}
		all = append(all, power)
	}
	return all
}

// evenLadder divides a ladder of more than four powers into steps of one length.
func evenLadder(found []float64) []float64 {
	n := len(found)
	last := (found[n-1] - found[n-2]) / (found[n-2] - found[n-3]) // length of the last step, in units of the one before it
	length := float64(n-1) + min(1, last)
	steps := atOnce * int(math.Ceil(length/(stretch*atOnce)))
	places := make([]float64, n+1)
	for i := range n {
		places[i] = float64(i)
	}
	places[n] = length
	var powerAt interp.PiecewiseLinear
	if err := powerAt.Fit(places, append([]float64{0}, found...)); err != nil {
		panic(err) // both ascend
	}
	ladder := make([]float64, steps)
	for k := range ladder {
		ladder[k] = powerAt.Predict(length * float64(k+1) / float64(steps))
	}
	ladder[steps-1] = found[n-1]
	return ladder
}

// carries is what sweeps take over of what the kernel carries: nothing where a power is small, since that would not
// tell the log-likelihood exactly enough, see leastCarried.
func (m *exchange) carries() mcmc.Carries {
	if len(m.Powers) > 1 && m.Powers[1] < leastCarried {
		return mcmc.CarriesNothing
	}
	return m.owner.Kernel.Carries()
}

// own is a machine of Sample for the same problem and kernel, which knows what these are.
func (m *exchange) own() *machine {
	settings := Settings{Tempering: LikelihoodTempering, DType: m.DType, Seed: m.Seed}
	return &machine{Settings: settings, engine: m.engine,
		sampler: &Sampler{Problem: m.owner.Problem, Kernel: m.owner.Kernel}}
}

// compile prepares the programs of a sweep, or takes those of an earlier run of the same kind.
func (m *exchange) compile() error {
	own := m.own()
	if err := compute.Try(own.probe); err != nil {
		return err
	}
	var err error
	key := exchangeKind{engine: m.engine, dtype: m.DType, sets: m.Sets, powers: len(m.Powers), carries: m.carries()}
	m.sweeps, m.giveBack, err = m.owner.compiled.Take(key, func() (*sweeps, error) { return m.newSweeps(own) })
	return err
}

// newSweeps asks a machine of Sample what the kernel needs and carries, and prepares the programs, each of which is
// compiled at its first call.
func (m *exchange) newSweeps(own *machine) (*sweeps, error) {
	problem, engine := m.owner.Problem, m.engine
	s := &sweep{
		carries: m.carries(), powers: len(m.Powers), sets: m.Sets, dim: problem.Dim, dtype: m.DType,
		tuned: own.adapts(), steered: own.steers(),
		factored: own.factored,
		initial:  func(rng random.Stream, n int) *graph.Node { return problem.Initial(rng, own.DType, n) },
	}
	if own.adapts() {
		s.acceptance, s.stepSize = own.wanted(), 1/math.Sqrt(float64(problem.Dim))
	}
	s.scaled = s.tuned && m.owner.Kernel.Carries() == mcmc.CarriesGradient
	replicas := shapes.Make(m.DType, s.replicas(), problem.Dim)
	var err error
	s.carrier, err = mcmc.NewCarrier(engine, m.owner.Kernel, replicas, func(g *graph.Graph) mcmc.Target {
		return own.factored(own.parameters(g)).Tempered(graph.Scalar(g, own.DType, 0.5))
	})
	if err != nil {
		return nil, err
	}
	data := []string{powersName}
	for _, name := range slices.Sorted(maps.Keys(problem.Data)) {
		data = append(data, dataPrefix+name)
	}
	all := &sweeps{sweep: s}
	for _, p := range []struct {
		program        **compute.Program
		name           string
		reads, updates []string
		step           compute.Step
	}{
		{&all.begin, "exchange begin", nil, s.entries(), s.first},
		{&all.start, "exchange start", s.starts(), s.within(), s.transition},
		{&all.move, "exchange move", append(s.within(), stepsName, scalesName), s.within(), s.moves},
		{&all.end, "exchange", append(s.within(), descendName, stepsName, scalesName), s.entries(), s.exchange},
	} {
		*p.program, err = compute.NewProgram(engine, p.name, append(p.reads, data...), p.updates, p.step)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Step makes one sweep.
func (m *exchange) Step(context.Context) error {
	counts := m.Made >= m.WarmUp
	record, err := m.sweepOnce(flag(!counts))
	if err != nil {
		return fmt.Errorf("smc: replica exchange, sweep %d: %w", m.Made+1, err)
	}
	m.Made++
	if !counts {
		return nil
	}
	take := func(n int) []float64 {
		part := record[:n]
		record = record[n:]
		return part
	}
	pairs := len(m.Powers) - 1
	m.logLikelihood = append(m.logLikelihood, take((pairs+1)*m.Sets))
	m.accepted, m.odds = append(m.accepted, take(pairs)), append(m.odds, take(pairs))
	m.Arrivals += int(take(1)[0])
	m.NonFinite += int(take(1)[0])
	if (m.Made-m.WarmUp)%m.Thin == 0 {
		m.draws = append(m.draws, record)
	}
	return nil
}

// sweepOnce makes one sweep and returns its record.
func (m *exchange) sweepOnce(adapts float64) ([]float64, error) {
	key := func(purpose string) random.Key { return random.KeyOf(m.Seed).Named(purpose).At(uint32(m.Made)) }
	if _, err := m.sweeps.start.Run(m.state, key("transition").Words()); err != nil {
		return nil, err
	}
	steps := float64(trajectory{Length: exchangeSteps}.steps(m.Made))
	moves := key("move")
	for call := uint32(0); ; call++ {
		left, err := m.sweeps.move.Run(m.state, moves.At(call).Words(), steps)
		if err != nil {
			return nil, err
		}
		m.Moves += m.sweeps.replicas()
		if left[0] == 0 {
			break
		}
	}
	return m.sweeps.end.Run(m.state, key("exchange").Words(), adapts, float64(m.Made%2))
}

// Status is run.Completed once all sweeps are made.
func (m *exchange) Status() run.Status {
	if m.Made == m.WarmUp+m.Sweeps {
		return run.Completed
	}
	return ""
}

// Progress reports the stage, the number of sweeps made and the scores.
func (m *exchange) Progress() run.Progress {
	p := run.Progress{Stage: "replica exchange", Step: m.Made, Steps: m.WarmUp + m.Sweeps}
	if m.Made < m.WarmUp {
		p.Stage = "warm-up"
	}
	if n := len(m.accepted); n > 0 {
		p.Scores = []run.Score{{Name: "acceptance", Value: stat.Mean(m.accepted[n-1], nil)},
			{Name: "exchanged", Value: 2 * stat.Mean(m.odds[n-1], nil)}, {Name: "arrivals", Value: float64(m.Arrivals)}}
	}
	return p
}

// result summarises the sweeps so far.
func (m *exchange) result() (*ExchangeResult, error) {
	sweeps := len(m.logLikelihood)
	result := &ExchangeResult{
		LogEvidence: math.NaN(), LogEvidenceStdErr: math.NaN(), Arrivals: m.Arrivals, NonFinite: m.NonFinite,
		Status: m.session.Status(), Elapsed: m.session.Elapsed(),
		Evaluations: m.Search + m.Moves + m.evaluatedBetween(),
	}
	if flat := m.inside(); len(flat) > 0 {
		result.Phi = compute.Floats(m.DType, flat, len(flat)/m.owner.Problem.Dim, m.owner.Problem.Dim)
	}
	step, err := m.stepSizes()
	if err != nil {
		return nil, err
	}
	for t, power := range m.Powers {
		r := PowerRecord{Power: power, Acceptance: math.NaN(), Exchanged: math.NaN(), LogEvidence: math.NaN()}
		if t > 0 {
			r.StepSize, r.Acceptance = step[t-1], 0
		}
		for i := range sweeps {
			if t > 0 {
				r.Acceptance += m.accepted[i][t-1] / float64(sweeps)
			}
			r.LogLikelihood += stat.Mean(m.logLikelihood[i][t*m.Sets:(t+1)*m.Sets], nil) / float64(sweeps)
		}
		if t < len(m.Powers)-1 {
			r.Exchanged = m.exchanges(t)
		}
		result.Powers = append(result.Powers, r)
	}
	if result.Status != run.Completed {
		return result, nil
	}
	all := exchanged{powers: m.Powers, sets: m.Sets, rows: m.logLikelihood}
	result.Outside = all.outside()
	var steps []float64
	result.LogEvidence, result.LogEvidenceStdErr, steps = all.evidence()
	drift := m.drift()
	if drift.apart() {
		result.LogEvidenceStdErr = max(result.LogEvidenceStdErr, math.Abs(drift.first-drift.second)/2)
	}
	for t, v := range steps {
		result.Powers[t].LogEvidence = v
	}
	result.Warnings = m.warnings(result, drift)
	return result, nil
}

// inside are the draws that were kept of replicas whose likelihood was not 0, flat [S R, D].
func (m *exchange) inside() (flat []float64) {
	for _, row := range m.draws {
		likelihoods, phi := row[:m.Sets], row[m.Sets:]
		for set, l := range likelihoods {
			if !math.IsInf(l, -1) {
				flat = append(flat, phi[set*m.owner.Problem.Dim:(set+1)*m.owner.Problem.Dim]...)
			}
		}
	}
	return flat
}

// evaluatedBetween is the number of evaluations of a replica outside of moves: those at the beginning, and those of the
// prior's draws in each sweep. If the kernel carries no log-density, every sweep evaluates all replicas.
func (m *exchange) evaluatedBetween() int {
	moved, drawn := max(0, len(m.Powers)-1)*m.Sets, m.Made*m.Sets
	switch {
	case m.carries() >= mcmc.CarriesLogDensity:
		return moved + drawn
	case m.owner.Kernel.Carries() >= mcmc.CarriesLogDensity: // whose transitions begin with an evaluation
		return drawn + 2*m.Made*moved
	}
	return drawn + m.Made*moved
}

// exchanges is the mean probability of an exchange with the next power, over the sweeps in which it was tried.
func (m *exchange) exchanges(t int) float64 {
	sum, tried := 0., 0
	for i, row := range m.odds {
		if (m.WarmUp+i)%2 == t%2 {
			sum, tried = sum+row[t], tried+1
		}
	}
	return sum / float64(tried)
}

// What makes a result doubtful.
const (
	fewArrivals  = 5   // per set: below it the posterior depends much on where its replicas began
	lowExchanged = 0.1 // mean probability of an exchange with the next power
	manyRounded  = .05 // rounding of log-likelihoods
	apartHalves  = 4   // difference of the log evidence between the halves of the sweeps, in standard errors
)

// drift holds the log evidence of either half of the sweeps, with its standard error.
type drift struct{ first, firstErr, second, secondErr float64 }

func (m *exchange) drift() (d drift) {
	half := len(m.logLikelihood) / 2
	d.first, d.firstErr, _ = exchanged{m.Powers, m.Sets, m.logLikelihood[:half]}.evidence()
	d.second, d.secondErr, _ = exchanged{m.Powers, m.Sets, m.logLikelihood[half:]}.evidence()
	return d
}

// apart says whether the halves differ by more than chance explains.
func (d drift) apart() bool {
	return math.Abs(d.first-d.second) > apartHalves*math.Hypot(d.firstErr, d.secondErr)
}

// warnings lists what makes a finished run doubtful.
func (m *exchange) warnings(r *ExchangeResult, drift drift) (out []string) {
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Arrivals < fewArrivals*m.Sets {
		warn("replicas travelled from the prior to the posterior only %d times, in %d sets: the draws still depend on where "+
			"the replicas began; take more Sweeps and WarmUp, or a finer Ladder", r.Arrivals, m.Sets)
	}
	for _, p := range r.Powers[:len(r.Powers)-1] {
		if p.Exchanged < lowExchanged {
			warn("replicas at power %.4g and at the next power were exchanged with a mean probability of only %.3f; take a "+
				"finer Ladder", p.Power, p.Exchanged)
		}
	}
	for _, p := range r.Powers[1:] {
		if p.Acceptance < lowAcceptance {
			warn("moves at power %.4g were accepted with a mean probability of only %.3f; take a smaller step size, or a "+
				"longer WarmUp", p.Power, p.Acceptance)
		}
	}
	if drift.apart() {
		warn("the log evidence is %.2f ± %.2f in the first half of the sweeps and %.2f ± %.2f in the second: the replicas "+
			"have not reached their stationary distribution; take a longer WarmUp", drift.first, drift.firstErr, drift.second,
			drift.secondErr)
	}
	l := math.Abs(r.Powers[len(r.Powers)-1].LogLikelihood)
	rounding := l * compute.Epsilon(m.DType)
	if m.DType == compute.Float32 && rounding > manyRounded && !math.IsInf(l, 1) {
		warn("log-likelihoods of about %.2g are rounded to multiples of some %.2g in float32, which the evidence has too: "+
			"subtract a constant from them, or take DType: compute.Float64", l, rounding)
	}
	if r.Outside > 0 {
		warn("%d of %d states of replicas at powers above 0 had a likelihood of 0 (counted over all sweeps): these replicas "+
			"began there and had not left; they are not part of the draws and the evidence; take a longer WarmUp, or let "+
			"Problem.Initial draw where the likelihood is above 0", r.Outside, (len(m.Powers)-1)*m.Sets*m.Sweeps)
	}
	if proposals := (len(m.Powers) - 1) * m.Sets * m.Sweeps; float64(m.NonFinite) > manyRejected*float64(proposals) {
		warn("%d of %d proposals had a log-density or a gradient that is not finite: check the target", m.NonFinite,
			proposals)
	}
	return out
}

// stepSizes are the step sizes of the moves, one for each power but the prior's; 0 if there are none, as before the
// first sweep.
func (m *exchange) stepSizes() ([]float64, error) {
	moved := max(0, len(m.Powers)-1) // there are none until the ladder is found
	if k, ok := m.owner.Kernel.(mcmc.Tunable); !ok || m.state == nil && m.kept == nil {
		return make([]float64, moved), nil
	} else if own, _ := k.Tune(); own > 0 {
		return slices.Repeat([]float64{own}, moved), nil
	}
	host := m.kept
	if m.state != nil {
		var err error
		if host, err = m.state.Host(stepsName); err != nil {
			return nil, fmt.Errorf("smc: %w", err)
		}
	}
	return compute.Float64s(host[stepsName])
}

// Identity lists what must agree with a checkpoint for a run to resume from it.
func (m *exchange) Identity() ([]run.Part, error) {
	parts, err := m.owner.Problem.Identity(m.owner.Kernel)
	if err != nil {
		return nil, err
	}
	engine, err := m.Engine.Or()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(m.ExchangeSettings.Record())
	return append(parts, run.Part{Name: "seed", Value: fmt.Sprint(m.Seed)},
		run.Part{Name: "settings", Value: string(settings)}, run.Part{Name: "backend", Value: engine.Name()}), err
}

// The tables of a checkpoint, beside the replicas.
const (
	likelihoodTable = "log_likelihoods"
	acceptedTable   = "accepted"
	oddsTable       = "exchanged"
	drawsTable      = "draws"
)

// table holds a record of the sweeps: a row for each sweep, of the given width.
type table struct {
	rows  *[][]float64
	width int
}

func (m *exchange) tables() map[string]table {
	t := len(m.Powers)
	return map[string]table{
		likelihoodTable: {&m.logLikelihood, t * m.Sets}, acceptedTable: {&m.accepted, t - 1}, oddsTable: {&m.odds, t - 1},
		drawsTable: {&m.draws, m.Sets * (1 + m.owner.Problem.Dim)},
	}
}

// Keep returns what a checkpoint holds.
func (m *exchange) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := m.state.Host(m.sweeps.entries()...)
	if err != nil {
		return nil, nil, err
	}
	for name, table := range m.tables() {
		kept[name] = run.Table(slices.Concat(*table.rows...), table.width)
	}
	return m.exchangePosition, kept, nil
}

// Adopt checks and restores what Keep returned.
func (m *exchange) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at exchangePosition
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	n := len(at.Powers)
	if n < 2 || at.Powers[0] != 0 || at.Made < 0 || at.Made > m.WarmUp+m.Sweeps || at.Arrivals < 0 || at.NonFinite < 0 ||
		at.Moves < 0 || at.Search < 0 || len(m.Ladder) > 0 && !slices.Equal(m.Ladder, at.Powers[1:]) {
		return fmt.Errorf("no such run stands at %+v", at)
	}
	if err := checkLadder("its ladder", at.Powers[1:]); err != nil {
		return err
	}
	m.exchangePosition = at
	counted := max(0, at.Made-m.WarmUp)
	for name, table := range m.tables() {
		rows := counted
		if name == drawsTable {
			rows = counted / m.Thin
		}
		var err error
		if *table.rows, err = run.Rows(kept, name, rows, table.width); err != nil {
			return err
		}
		delete(kept, name)
	}
	s := sweep{carries: m.carries(), powers: n, sets: m.Sets, dim: m.owner.Problem.Dim, dtype: m.DType}
	for name, shape := range s.shapes() {
		if _, err := run.Tensor(kept, name, shape); err != nil {
			return err
		}
	}
	m.kept = kept
	return nil
}

func (m *exchange) close() {
	if m.giveBack != nil {
		m.giveBack()
	}
	if m.state != nil {
		m.state.Close()
	}
}
