package smc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
)

// Exchanger runs replica exchange repeatedly, with different seeds and settings, and different Problem.Data of the same
// names and shapes. It compiles only once for each DType, Engine, number of Sets and length of the ladder. Nothing else
// of the problem may change after the first run. Close it at the end.
type Exchanger struct {
	Problem density.Problem
	Kernel  mcmc.Kernel

	compiled compute.Cache[exchangeKind, *sweeps]
	searcher Sampler // looks for ladders
	tried    bool    // the target is no user's, or has passed its trial
}

// Close frees what was compiled.
func (e *Exchanger) Close() {
	e.compiled.Close()
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
	carried                 *compute.Program // compares what a user's own kernel carries; nil for others
}

// Close frees the programs.
func (s *sweeps) Close() {
	for _, p := range []*compute.Program{s.begin, s.start, s.move, s.end} {
		p.Close()
	}
	if s.carried != nil {
		s.carried.Close()
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
	Scouts    outlook   `json:"scouts"`
	Repeated  string    `json:"repeated"` // mcmc.Carrier.RepeatedDraws, as of the last checkpoint
}

// newExchange checks the problem, the kernel and the settings.
func (e *Exchanger) newExchange(settings ExchangeSettings) (*exchange, error) {
	if err := checkKernel(e.Kernel, e.Problem.Dim); err != nil {
		return nil, err
	}
	if err := checkProblem(e.Problem); err != nil {
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
	if err := limits.Check("smc: ExchangeSettings",
		limits.Numbers("Sets", settings.Sets, max(1, len(settings.Ladder)), settings.Sets, e.Problem.Dim),
		limits.Numbers("Thin", settings.Thin, settings.Sweeps/settings.Thin, settings.Sets, e.Problem.Dim),
	); err != nil {
		return nil, err
	}
	m := &exchange{ExchangeSettings: settings, owner: e}
	m.session = run.New(m, run.Options{
		Owner: "smc", Checkpoint: m.Checkpoint, Format: "gobnn.exchange/4", Every: m.CheckpointEvery, Replace: m.Replace,
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
	if err := m.own().tryOnce(&m.owner.tried, m.state); err != nil {
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

// carries says which of the kernel's carried values the sweeps reuse. With a small power they reuse none, since the
// log-likelihood would not follow from them exactly enough, see leastCarried.
func (m *exchange) carries() mcmc.Carries {
	if len(m.Powers) > 1 && m.Powers[1] < leastCarried {
		return mcmc.CarriesNothing
	}
	return m.owner.Kernel.Carries()
}

// own is a machine of Tempered for the same problem and kernel, which knows what these are.
func (m *exchange) own() *machine {
	return &machine{
		Tempered: Tempered{Kernel: m.owner.Kernel, Tempering: LikelihoodTempering}, problem: m.owner.Problem,
		Job: &fit.Job{Settings: run.Settings{DType: m.DType, Seed: m.Seed, Engine: m.engine}},
	}
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

// newSweeps asks a machine of Sample what the kernel needs and carries, and prepares the programs. Each program is
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
	s.carrier, err = mcmc.NewCarrier(engine, m.owner.Kernel, replicas, func(g *graph.Graph) density.Target {
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
	if s.carrier.ComparesCarried() {
		reads := append(append(s.carrier.Names(), scalesName), data...)
		all.carried, err = compute.NewProgram(engine, "exchange carried values", reads, nil, s.carriedStep)
	}
	return all, err
}

// Step makes one sweep or, after the last, a round of scouts.
func (m *exchange) Step(context.Context) error {
	if m.Made == m.WarmUp+m.Sweeps {
		if err := m.scout(); err != nil {
			return fmt.Errorf("smc: replica exchange, scouts: %w", err)
		}
		return nil
	}
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
	moves, shares, parity := key("move"), key("step sizes").Words(), float64(m.Made%2)
	for call := uint32(0); ; call++ {
		left, err := m.sweeps.move.Run(m.state, moves.At(call).Words(), steps, shares, parity)
		if err != nil {
			return nil, err
		}
		m.Moves += m.sweeps.replicas()
		if left[0] == 0 {
			break
		}
	}
	if sweep := m.Made + 1; m.sweeps.carried != nil && sweep&(sweep-1) == 0 { // a power of 2
		counts, err := m.sweeps.carried.Run(m.state)
		if err != nil {
			return nil, err
		}
		if err := m.sweeps.carrier.CheckCarried(counts, sweep); err != nil {
			return nil, err
		}
	}
	return m.sweeps.end.Run(m.state, key("exchange").Words(), adapts, parity, shares)
}

// Status is run.Completed once all sweeps are made, and the scouts are back.
func (m *exchange) Status() run.Status {
	if m.Made == m.WarmUp+m.Sweeps && m.Scouts.Rounds >= m.scoutRounds() {
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

func (m *exchange) close() {
	if m.giveBack != nil {
		m.giveBack()
	}
	if m.state != nil {
		m.state.Close()
	}
}
